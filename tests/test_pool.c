#include "pool.h"

#include <stdlib.h>

#include "support/data.h"
#include "support/expect.h"

/* The classes, written out. */
static size_t class_size(unsigned index)
{
    size_t base = (size_t)4096 << (index / 2);

    return index % 2 == 0 ? base : base + base / 2;
}

static void *put_new(struct segzstd__pool *pool, size_t bytes, uint64_t stamp)
{
    void *block = malloc(bytes);

    assert_non_null(block);
    segzstd__pool_put(pool, block, bytes, stamp);
    return block;
}

/* Oldest first. */
static void drain(struct segzstd__pool *pool)
{
    struct segzstd__idle_block *block;

    while ((block = segzstd__pool_oldest(pool)) != NULL) {
        segzstd__pool_remove(pool, block);
        free(block);
    }
    assert_int_equal(pool->bytes, 0);
}

static void expect_rounds(size_t bytes, size_t rounded)
{
    assert_int_equal(segzstd__pool_round(bytes), rounded);
    assert_true(segzstd__pool_holds(bytes));
    assert_int_equal(segzstd__pool_round(rounded), rounded);
}

static void test_round__around_each_class__is_the_next_class(void **state)
{
    (void)state;
    expect_rounds(1, 4096);
    expect_rounds(4095, 4096);
    for (unsigned i = 0; i < POOL_CLASSES; i++) {
        expect_rounds(class_size(i) - 1, class_size(i));
        expect_rounds(class_size(i), class_size(i));
        if (i + 1 < POOL_CLASSES)
            expect_rounds(class_size(i) + 1, class_size(i + 1));
    }
}

static void test_round__any_size__wastes_at_most_half(void **state)
{
    struct rng rng = rng_seed(1);

    (void)state;
    for (int i = 0; i < 10000; i++) {
        size_t bytes = rng_spread(&rng, 48 * MIB);
        size_t rounded = segzstd__pool_round(bytes);

        assert_true(rounded >= bytes);
        assert_true(rounded == 4096 || rounded <= bytes + bytes / 2);
    }
}

static void test_round__above_the_largest__is_as_asked_for(void **state)
{
    (void)state;
    assert_int_equal(class_size(POOL_CLASSES - 1), 48 * MIB);
    assert_true(segzstd__pool_holds(48 * MIB));
    assert_false(segzstd__pool_holds(48 * MIB + 1));
    assert_int_equal(segzstd__pool_round(48 * MIB + 1), 48 * MIB + 1);
    assert_true(segzstd__pool_round(SIZE_MAX) == SIZE_MAX);
}

static void test_take__empty_or_other_class__is_null(void **state)
{
    struct segzstd__pool pool;

    (void)state;
    segzstd__pool_init(&pool);
    assert_null(segzstd__pool_take(&pool, 4096));
    assert_null(segzstd__pool_oldest(&pool));
    put_new(&pool, 6144, 1);
    assert_null(segzstd__pool_take(&pool, 4096));
    assert_null(segzstd__pool_take(&pool, 8192));
    assert_null(segzstd__pool_take(&pool, 48 * MIB + 1));
    assert_int_equal(pool.bytes, 6144);
    drain(&pool);
}

static void test_take__several_of_a_class__newest_first(void **state)
{
    struct segzstd__pool pool;
    void *blocks[3];

    (void)state;
    segzstd__pool_init(&pool);
    for (uint64_t i = 0; i < 3; i++) {
        blocks[i] = put_new(&pool, 8192, i);
        put_new(&pool, 4096, i);
    }
    assert_int_equal(pool.bytes, 3 * 8192 + 3 * 4096);
    for (int i = 2; i >= 0; i--) {
        assert_ptr_equal(segzstd__pool_take(&pool, 8192), blocks[i]);
        free(blocks[i]);
    }
    assert_null(segzstd__pool_take(&pool, 8192));
    assert_int_equal(pool.bytes, 3 * 4096);
    drain(&pool);
}

static void test_oldest__over_all_classes__by_time_of_put(void **state)
{
    static const size_t sizes[] = {65536, 4096, 48 * MIB, 4096, 6144};
    struct segzstd__pool pool;
    void *blocks[5];

    (void)state;
    segzstd__pool_init(&pool);
    for (size_t i = 0; i < 5; i++)
        blocks[i] = put_new(&pool, sizes[i], 100 + i);
    for (size_t i = 0; i < 5; i++) {
        struct segzstd__idle_block *oldest = segzstd__pool_oldest(&pool);

        assert_ptr_equal(oldest, blocks[i]);
        assert_int_equal(oldest->bytes, sizes[i]);
        assert_int_equal(oldest->stamp_ns, 100 + i);
        segzstd__pool_remove(&pool, oldest);
        free(oldest);
    }
    assert_null(segzstd__pool_oldest(&pool));
    assert_int_equal(pool.bytes, 0);
}

/* Bytes and both lists against a count of what should be there. */
static void test_pool__random_use__bytes_and_lists_agree(void **state)
{
    struct segzstd__pool pool;
    struct rng rng = rng_seed(2);
    size_t idle[POOL_CLASSES] = {0}, bytes = 0;

    (void)state;
    segzstd__pool_init(&pool);
    for (uint64_t i = 0; i < 5000; i++) {
        unsigned class = (unsigned)rng_below(&rng, 8);
        size_t size = class_size(class);

        if (rng_below(&rng, 2) == 0) {
            put_new(&pool, size, i);
            idle[class]++;
            bytes += size;
        } else {
            void *block = segzstd__pool_take(&pool, size);

            assert_int_equal(block != NULL, idle[class] != 0);
            if (block != NULL) {
                idle[class]--;
                bytes -= size;
            }
            free(block);
        }
        assert_int_equal(pool.bytes, bytes);
    }
    drain(&pool);
    for (unsigned i = 0; i < POOL_CLASSES; i++)
        assert_true(list_is_empty(&pool.classes[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round__around_each_class__is_the_next_class),
        cmocka_unit_test(test_round__any_size__wastes_at_most_half),
        cmocka_unit_test(test_round__above_the_largest__is_as_asked_for),
        cmocka_unit_test(test_take__empty_or_other_class__is_null),
        cmocka_unit_test(test_take__several_of_a_class__newest_first),
        cmocka_unit_test(test_oldest__over_all_classes__by_time_of_put),
        cmocka_unit_test(test_pool__random_use__bytes_and_lists_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
