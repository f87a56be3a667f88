#include "fse.h"

#include <stdlib.h>

#include "support/block_make.h"
#include "support/data.h"
#include "support/env.h"
#include "support/expect.h"

enum { DESCRIPTION_MAX = 8 + 2 * FSE_SYMBOLS_MAX };

struct described {
    struct segzstd__fse_counts counts;
    unsigned char bytes[DESCRIPTION_MAX];
    size_t len;
};

static struct described random_description(struct rng *rng)
{
    struct described d;
    unsigned symbol_max = 4 + (unsigned)rng_below(rng, FSE_SYMBOLS_MAX - 4);
    unsigned log = 5 + (unsigned)rng_below(rng, FSE_LOG_MAX - 4);

    make_random_counts(&d.counts, rng, symbol_max, log);
    d.len = make_description(&d.counts, d.bytes, sizeof(d.bytes));
    return d;
}

static void test_read_counts__random_distributions__come_back(void **state)
{
    struct rng rng = rng_seed(1);
    size_t rounds = env_pick("distributions", 20000, 500);

    (void)state;
    for (size_t i = 0; i < rounds; i++) {
        struct described d = random_description(&rng);
        struct segzstd__fse_counts read;
        size_t used;

        assert_true(segzstd__fse_read_counts(
            &read, d.bytes, d.len, FSE_SYMBOLS_MAX - 1, FSE_LOG_MAX, &used));
        assert_int_equal(used, d.len);
        assert_int_equal(read.log, d.counts.log);
        assert_int_equal(read.symbols, d.counts.symbols);
        assert_memory_equal(read.count, d.counts.count, sizeof(read.count));
    }
}

/* A description ends at any bit, so that a byte too few can look like a whole
 * one: the missing bits read as zeros, which are "less than one" symbols. */
static void test_read_counts__any_byte_missing__refused(void **state)
{
    struct rng rng = rng_seed(2);

    (void)state;
    for (size_t i = 0; i < 500; i++) {
        struct described d = random_description(&rng);
        struct segzstd__fse_counts read;
        size_t used;

        for (size_t len = 0; len < d.len; len++) {
            unsigned char *cut = malloc(len > 0 ? len : 1);

            assert_non_null(cut);
            memcpy(cut, d.bytes, len); /* so that ASan sees the end */
            assert_false(segzstd__fse_read_counts(
                &read, cut, len, FSE_SYMBOLS_MAX - 1, FSE_LOG_MAX, &used));
            free(cut);
        }
    }
}

static void test_read_counts__beyond_the_limits__refused(void **state)
{
    struct rng rng = rng_seed(3);

    (void)state;
    for (size_t i = 0; i < 2000; i++) {
        struct described d = random_description(&rng);
        struct segzstd__fse_counts read;
        unsigned top = d.counts.symbols - 1u;
        size_t used;

        if (d.counts.log > 5)
            assert_false(segzstd__fse_read_counts(&read, d.bytes, d.len,
                                                  FSE_SYMBOLS_MAX - 1,
                                                  d.counts.log - 1u, &used));
        assert_true(segzstd__fse_read_counts(&read, d.bytes, d.len, top,
                                             d.counts.log, &used));
        if (top > 0)
            assert_false(segzstd__fse_read_counts(
                &read, d.bytes, d.len, top - 1, d.counts.log, &used));
    }
}

/* The four bits of the accuracy allow 5 to 20. */
static void test_read_counts__accuracy_above_nine__refused(void **state)
{
    unsigned char bytes[16];
    struct segzstd__fse_counts read;
    size_t used;

    (void)state;
    for (unsigned field = 5; field < 16; field++) {
        memset(bytes, 0x11, sizeof(bytes));
        bytes[0] = (unsigned char)(0x10 | field);
        assert_false(segzstd__fse_read_counts(&read, bytes, sizeof(bytes),
                                              FSE_SYMBOLS_MAX - 1, FSE_LOG_MAX,
                                              &used));
    }
}

/* Only flags of 3 after an empty symbol: a run of zeros that never ends. */
static void test_read_counts__endless_run_of_zeros__refused(void **state)
{
    unsigned char bytes[64];
    struct segzstd__fse_counts read;
    size_t used;

    (void)state;
    memset(bytes, 0xff, sizeof(bytes));
    /* Accuracy 5, then a count of 0: of 33 values the ones below 30 take 5
     * bits, and 1 stands for 0. */
    bytes[0] = 0x10;
    bytes[1] = 0xfe;
    assert_false(segzstd__fse_read_counts(
        &read, bytes, sizeof(bytes), FSE_SYMBOLS_MAX - 1, FSE_LOG_MAX, &used));
}

static void expect_states_covered(const struct segzstd__fse_table *table,
                                  unsigned symbol, unsigned states)
{
    unsigned size = 1u << table->log;
    unsigned char seen[1 << FSE_LOG_MAX] = {0};
    unsigned n = 0, covered = 0;

    for (unsigned i = 0; i < size; i++) {
        const struct segzstd__fse_entry *e = &table->entry[i];

        if (e->symbol != symbol)
            continue;
        n++;
        for (unsigned k = 0; k < 1u << e->bits; k++) {
            assert_in_range(e->base + k, 0, size - 1);
            assert_int_equal(seen[e->base + k]++, 0);
            covered++;
        }
    }
    assert_int_equal(n, states);
    assert_int_equal(covered, states > 0 ? size : 0);
}

/* Each symbol has as many states as it was given, and from them every state can
 * be reached, by exactly one of them. */
static void test_build__random_distributions__partition_the_states(void **state)
{
    struct rng rng = rng_seed(4);
    size_t rounds = env_pick("tables", 1000, 50);

    (void)state;
    for (size_t i = 0; i < rounds; i++) {
        struct described d = random_description(&rng);
        struct segzstd__fse_table table;

        memset(&table, 0xee, sizeof(table));
        segzstd__fse_build(&table, &d.counts);
        for (unsigned s = 0; s < FSE_SYMBOLS_MAX; s++) {
            int count = d.counts.count[s];

            expect_states_covered(&table, s, (unsigned)(count < 0 ? 1 : count));
        }
    }
}

static void test_build_rle__one_state__reads_no_bits(void **state)
{
    struct segzstd__fse_table table;
    unsigned at = 7;

    (void)state;
    segzstd__fse_build_rle(&table, 21);
    expect_states_covered(&table, 21, 1);
    assert_int_equal(table.log, 0);
    assert_true(segzstd__fse_last_state(&table, 21, &at));
    assert_int_equal(at, 0);
    assert_true(segzstd__fse_previous_state(&table, 21, 0, &at));
    assert_int_equal(at, 0);
    assert_false(segzstd__fse_last_state(&table, 20, &at));
    assert_false(segzstd__fse_previous_state(&table, 20, 0, &at));
}

/* Writes symbols from the last to the first, as an encoder does. */
static size_t encode(const struct segzstd__fse_table *table,
                     const unsigned char *symbol, size_t n, unsigned char *dst,
                     size_t cap)
{
    struct segzstd__bit_writer writer;
    unsigned next, at;
    size_t len;

    segzstd__bit_writer_init(&writer, dst, cap);
    assert_true(segzstd__fse_last_state(table, symbol[n - 1], &at));
    for (size_t i = n - 1; i-- > 0;) {
        next = at;
        assert_true(segzstd__fse_previous_state(table, symbol[i], next, &at));
        segzstd__bit_write(&writer, next - table->entry[at].base,
                           table->entry[at].bits);
    }
    segzstd__bit_write(&writer, at, table->log);
    assert_true(segzstd__bit_writer_end(&writer, &len));
    return len;
}

static void test_previous_state__random_symbols__decode_again(void **state)
{
    enum { SYMBOLS = 400 };
    unsigned char symbol[SYMBOLS], bytes[SYMBOLS * 2];
    struct rng rng = rng_seed(5);
    size_t rounds = env_pick("streams", 500, 20);

    (void)state;
    for (size_t i = 0; i < rounds; i++) {
        struct described d = random_description(&rng);
        struct segzstd__fse_table table;
        struct segzstd__bit_reader reader;
        unsigned at;
        size_t len;

        segzstd__fse_build(&table, &d.counts);
        for (size_t k = 0; k < SYMBOLS; k++)
            symbol[k] = table.entry[rng_below(&rng, 1u << table.log)].symbol;
        len = encode(&table, symbol, SYMBOLS, bytes, sizeof(bytes));
        assert_true(segzstd__bit_reader_init(&reader, bytes, len));
        at = segzstd__bit_read(&reader, table.log);
        for (size_t k = 0; k < SYMBOLS; k++) {
            const struct segzstd__fse_entry *e = &table.entry[at];

            assert_int_equal(e->symbol, symbol[k]);
            if (k < SYMBOLS - 1)
                at = e->base + segzstd__bit_read(&reader, e->bits);
        }
        assert_int_equal(reader.left, 0);
        assert_false(reader.overrun);
    }
}

static void test_bits__any_widths__come_back_in_reverse(void **state)
{
    enum { VALUES = 300 };
    uint32_t value[VALUES];
    unsigned width[VALUES];
    unsigned char bytes[VALUES * 4 + 1];
    struct rng rng = rng_seed(6);

    (void)state;
    for (size_t round = 0; round < 200; round++) {
        size_t n = 1 + rng_below(&rng, VALUES), total = 0, len;
        struct segzstd__bit_writer writer;
        struct segzstd__bit_reader reader;

        segzstd__bit_writer_init(&writer, bytes, sizeof(bytes));
        for (size_t i = 0; i < n; i++) {
            width[i] = (unsigned)rng_below(&rng, 33);
            value[i] = (uint32_t)(rng_next(&rng) & ((1ull << width[i]) - 1));
            total += width[i];
            segzstd__bit_write(&writer, value[i], width[i]);
        }
        assert_true(segzstd__bit_writer_end(&writer, &len));
        assert_int_equal(len, total / 8 + 1);
        assert_true(segzstd__bit_reader_init(&reader, bytes, len));
        assert_int_equal(reader.left, total);
        for (size_t i = n; i-- > 0;)
            assert_int_equal(segzstd__bit_read(&reader, width[i]), value[i]);
        assert_int_equal(reader.left, 0);
        assert_false(reader.overrun);
    }
}

static void test_bit_reader__more_than_there_is__is_an_overrun(void **state)
{
    const unsigned char bytes[] = {0xff, 0x07}; /* 10 ones, then the flag */
    struct segzstd__bit_reader reader;

    (void)state;
    assert_true(segzstd__bit_reader_init(&reader, bytes, sizeof(bytes)));
    assert_int_equal(segzstd__bit_read(&reader, 8), 0xff);
    assert_int_equal(segzstd__bit_read(&reader, 3), 0);
    assert_true(reader.overrun);
    assert_int_equal(segzstd__bit_read(&reader, 1), 0);
    assert_int_equal(segzstd__bit_read(&reader, 0), 0);
    assert_true(reader.overrun);
}

static void test_bit_reader__no_final_flag__refused(void **state)
{
    const unsigned char bytes[] = {0xff, 0x00};
    struct segzstd__bit_reader reader;

    (void)state;
    assert_false(segzstd__bit_reader_init(&reader, bytes, sizeof(bytes)));
    assert_false(segzstd__bit_reader_init(&reader, bytes, 0));
    assert_true(segzstd__bit_reader_init(&reader, bytes, 1));
    assert_int_equal(reader.left, 7);
}

static void test_bit_writer__room_too_small__writes_nothing_beyond(void **state)
{
    unsigned char bytes[16];

    (void)state;
    for (size_t cap = 0; cap <= 8; cap++) {
        struct segzstd__bit_writer writer;
        size_t len;

        memset(bytes, 0xaa, sizeof(bytes));
        segzstd__bit_writer_init(&writer, bytes, cap);
        segzstd__bit_write(&writer, 0x12345678, 32);
        segzstd__bit_write(&writer, 0x1234567, 31);
        /* 63 bits and the flag are 8 bytes. */
        assert_int_equal(segzstd__bit_writer_end(&writer, &len), cap == 8);
        for (size_t i = cap; i < sizeof(bytes); i++)
            assert_int_equal(bytes[i], 0xaa);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_counts__random_distributions__come_back),
        cmocka_unit_test(test_read_counts__any_byte_missing__refused),
        cmocka_unit_test(test_read_counts__beyond_the_limits__refused),
        cmocka_unit_test(test_read_counts__accuracy_above_nine__refused),
        cmocka_unit_test(test_read_counts__endless_run_of_zeros__refused),
        cmocka_unit_test(
            test_build__random_distributions__partition_the_states),
        cmocka_unit_test(test_build_rle__one_state__reads_no_bits),
        cmocka_unit_test(test_previous_state__random_symbols__decode_again),
        cmocka_unit_test(test_bits__any_widths__come_back_in_reverse),
        cmocka_unit_test(test_bit_reader__more_than_there_is__is_an_overrun),
        cmocka_unit_test(test_bit_reader__no_final_flag__refused),
        cmocka_unit_test(
            test_bit_writer__room_too_small__writes_nothing_beyond),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
