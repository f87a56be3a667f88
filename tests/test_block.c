#include "block.h"

#include <stdlib.h>
#include <zstd.h>

#include "support/block_make.h"
#include "support/data.h"
#include "support/env.h"
#include "support/expect.h"

/* Blocks made by hand, and the frame around them. */
struct made {
    struct maker maker;
    unsigned char *bytes; /* frame header, then blocks */
    size_t len;
    size_t header;
    unsigned char *content; /* what stock libzstd decodes */
    size_t content_len;
};

enum { MADE_MAX = 1 << 20 };

static void made_new(struct made *made)
{
    struct segzstd__frame_header header = {24, SEGZSTD_SIZE_UNKNOWN, 0, false};

    maker_init(&made->maker);
    made->bytes = malloc(MADE_MAX);
    made->content = malloc(MADE_MAX);
    assert_non_null(made->bytes);
    assert_non_null(made->content);
    made->header = segzstd__frame_put_header(made->bytes, &header);
    made->len = made->header;
}

static void made_free(struct made *made)
{
    free(made->bytes);
    free(made->content);
}

/* Returns where the block is, or NULL if it cannot be. */
static unsigned char *made_add(struct made *made,
                               const struct make_block *block)
{
    unsigned char *at = made->bytes + made->len;
    size_t len = maker_put(&made->maker, block, at, MADE_MAX - made->len - 3);

    made->len += len;
    return len > 0 ? at : NULL;
}

/* Stock libzstd is the judge of what the maker made. */
static void made_expect_decodes(struct made *made)
{
    size_t n;

    segzstd__frame_put_block_header(made->bytes + made->len, BLOCK_RAW, 0,
                                    true);
    n = ZSTD_decompress(made->content, MADE_MAX, made->bytes,
                        made->len + BLOCK_HEADER_BYTES);
    if (ZSTD_isError(n))
        fail_msg("a block made by hand: %s", ZSTD_getErrorName(n));
    assert_int_equal(n, made->maker.position);
    made->content_len = n;
}

/* Reads all of a compressed block's inside. *decoded is what it decodes to. */
static bool read_block(struct segzstd__tables *tables, const uint8_t *src,
                       size_t len, struct segzstd__sequence *sequence,
                       size_t *count, size_t *decoded)
{
    struct segzstd__literals literals;
    struct segzstd__sequences_head head;
    struct segzstd__sequences_reader reader;

    if (!segzstd__block_read_literals(&literals, src, len))
        return false;
    src += literals.section;
    len -= literals.section;
    if (!segzstd__sequences_read_head(&head, tables, src, len))
        return false;
    *count = head.count;
    *decoded = literals.decoded;
    if (head.count == 0)
        return true;
    if (!segzstd__sequences_reader_init(&reader, tables, head.count,
                                        src + head.head_bytes,
                                        len - head.head_bytes))
        return false;
    for (size_t i = 0; i < head.count; i++) {
        struct segzstd__sequence s;

        if (!segzstd__sequences_read(&reader, &s))
            return false;
        *decoded += s.match;
        if (sequence != NULL)
            sequence[i] = s;
    }
    return true;
}

/* The block at `at` reads as the sequences that it was made of. */
static void expect_reads(struct segzstd__tables *tables,
                         const unsigned char *at,
                         const struct make_block *block)
{
    static struct segzstd__sequence sequence[SEQUENCES_MAX];
    struct segzstd__block_header header;
    size_t count, decoded, content = block->literals_len;

    assert_true(segzstd__block_read_header(&header, at, MADE_MAX));
    assert_int_equal(header.type, BLOCK_COMPRESSED);
    assert_true(read_block(tables, at + BLOCK_HEADER_BYTES, header.content,
                           sequence, &count, &decoded));
    assert_int_equal(count, block->count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(sequence[i].literals, block->seq[i].literals);
        assert_int_equal(sequence[i].match, block->seq[i].match);
        assert_int_equal(sequence[i].offset_value, block->seq[i].offset_value);
        content += block->seq[i].match;
    }
    assert_int_equal(decoded, content);
}

/* ----------------------------------------------------------------------- */
/* Headers                                                                 */

static void test_read_header__each_type__size_and_content(void **state)
{
    static const struct {
        uint8_t bytes[3];
        size_t content;
        size_t decoded;
        enum segzstd__block_type type;
        bool last;
    } cases[] = {
        {{0x01, 0, 0}, 0, 0, BLOCK_RAW, true},
        {{0x08, 0, 0}, 1, 1, BLOCK_RAW, false},
        {{0x00, 0, 0x10}, 128 * KIB, 128 * KIB, BLOCK_RAW, false},
        {{0x02, 0, 0x10}, 1, 128 * KIB, BLOCK_RLE, false},
        {{0x02, 0, 0}, 1, 0, BLOCK_RLE, false},
        {{0x14, 0, 0}, 2, 0, BLOCK_COMPRESSED, false},
        {{0xfd, 0xff, 0x0f}, 128 * KIB - 1, 0, BLOCK_COMPRESSED, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct segzstd__block_header header;
        size_t whole = BLOCK_HEADER_BYTES + cases[i].content;

        assert_true(segzstd__block_read_header(&header, cases[i].bytes, whole));
        assert_int_equal(header.content, cases[i].content);
        assert_int_equal(header.decoded, cases[i].decoded);
        assert_int_equal(header.type, cases[i].type);
        assert_int_equal(header.last, cases[i].last);
        assert_false(
            segzstd__block_read_header(&header, cases[i].bytes, whole - 1));
        assert_false(segzstd__block_read_header(&header, cases[i].bytes, 2));
    }
}

static void test_read_header__reserved_or_too_large__refused(void **state)
{
    static const uint8_t bytes[][3] = {
        {0x0e, 0, 0},    /* reserved type */
        {0x08, 0, 0x10}, /* 128 KiB + 1, raw */
        {0x0a, 0, 0x10}, /* RLE */
        {0x0c, 0, 0x10}, /* compressed */
        {0xfa, 0xff, 0xff},
    };
    struct segzstd__block_header header;

    (void)state;
    for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++)
        assert_false(segzstd__block_read_header(&header, bytes[i], SIZE_MAX));
}

/* Every type, with the smallest and largest size of each size format. */
static void test_read_literals__each_format__sizes(void **state)
{
    static const struct {
        uint8_t bytes[5];
        enum literals_type type;
        size_t section;
        size_t decoded;
    } cases[] = {
        {{0x00}, LITERALS_RAW, 1, 0},
        {{0xf8}, LITERALS_RAW, 32, 31},
        {{0x08}, LITERALS_RAW, 2, 1}, /* the bit belongs to the size */
        {{0x04, 0x00}, LITERALS_RAW, 2, 0},
        {{0xf4, 0xff}, LITERALS_RAW, 2 + 4095, 4095},
        {{0x0c, 0x00, 0x00}, LITERALS_RAW, 3, 0},
        {{0x0c, 0x00, 0x20}, LITERALS_RAW, 3 + 128 * KIB, 128 * KIB},
        {{0x01}, LITERALS_RLE, 2, 0},
        {{0xf9}, LITERALS_RLE, 2, 31},
        {{0xf5, 0xff}, LITERALS_RLE, 3, 4095},
        {{0x0d, 0x00, 0x20}, LITERALS_RLE, 4, 128 * KIB},
        {{0x02, 0x40, 0x00}, LITERALS_COMPRESSED, 3 + 1, 0},
        {{0xf2, 0xff, 0xff}, LITERALS_COMPRESSED, 3 + 1023, 1023},
        {{0xf3, 0xff, 0xff}, LITERALS_TREELESS, 3 + 1023, 1023},
        {{0x66, 0x80, 0x02}, LITERALS_COMPRESSED, 3 + 10, 6},
        {{0xf6, 0xff, 0xff}, LITERALS_COMPRESSED, 3 + 1023, 1023},
        {{0x6a, 0x00, 0x28, 0x00}, LITERALS_COMPRESSED, 4 + 10, 6},
        {{0xfb, 0xff, 0xff, 0xff}, LITERALS_TREELESS, 4 + 16383, 16383},
        {{0x6e, 0, 0x80, 0x02, 0}, LITERALS_COMPRESSED, 5 + 10, 6},
        {{0x0f, 0x00, 0xe0, 0xff, 0xff},
         LITERALS_TREELESS,
         5 + 262143,
         128 * KIB},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct segzstd__literals literals;
        const uint8_t *bytes = cases[i].bytes;

        assert_true(
            segzstd__block_read_literals(&literals, bytes, cases[i].section));
        assert_int_equal(literals.type, cases[i].type);
        assert_int_equal(literals.section, cases[i].section);
        assert_int_equal(literals.decoded, cases[i].decoded);
        assert_false(segzstd__block_read_literals(&literals, bytes,
                                                  cases[i].section - 1));
        /* nor what ends within its header */
        for (size_t len = 0; len < min_size(5, cases[i].section); len++)
            assert_false(segzstd__block_read_literals(&literals, bytes, len));
    }
}

static void test_read_literals__impossible_sizes__refused(void **state)
{
    static const uint8_t bytes[][5] = {
        {0x1c, 0x00, 0x20},             /* 128 KiB + 1, raw */
        {0x1d, 0x00, 0x20},             /* RLE */
        {0x1e, 0x00, 0xa0, 0x02, 0x00}, /* Huffman-coded */
        {0x02, 0x00, 0x00},             /* a coded stream of 0 bytes */
        {0x66, 0x40, 0x02},             /* four streams in 9 bytes */
    };
    struct segzstd__literals literals;

    (void)state;
    for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++)
        assert_false(
            segzstd__block_read_literals(&literals, bytes[i], SIZE_MAX));
}

static void test_read_head__count_field__each_form(void **state)
{
    static const struct {
        uint8_t bytes[3];
        size_t count_bytes;
        size_t count;
    } cases[] = {
        {{0x01}, 1, 1},
        {{0x7f}, 1, 127},
        {{0x80, 0x01}, 2, 1}, /* longer than needed */
        {{0x80, 0x80}, 2, 128},
        {{0xfe, 0xff}, 2, 0x7eff},
        {{0xff, 0x00, 0x00}, 3, 0x7f00},
        {{0xff, 0xaa, 0x2b}, 3, SEQUENCES_MAX},
    };
    struct segzstd__tables tables = {0};
    struct segzstd__sequences_head head;
    uint8_t bytes[4];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        size_t n = cases[i].count_bytes;

        memcpy(bytes, cases[i].bytes, n);
        bytes[n] = 0; /* three predefined tables */
        assert_true(segzstd__sequences_read_head(&head, &tables, bytes, n + 1));
        assert_int_equal(head.count, cases[i].count);
        assert_int_equal(head.count_bytes, n);
        assert_int_equal(head.head_bytes, n + 1);
        for (size_t len = 0; len <= n; len++)
            assert_false(
                segzstd__sequences_read_head(&head, &tables, bytes, len));
    }
}

static void test_read_head__no_sequences__leaves_tables(void **state)
{
    static const uint8_t zero[] = {0}, zero_in_two[] = {0x80, 0};
    struct segzstd__tables tables = {0};
    struct segzstd__sequences_head head;

    (void)state;
    assert_true(segzstd__sequences_read_head(&head, &tables, zero, 1));
    assert_true(segzstd__sequences_read_head(&head, &tables, zero_in_two, 2));
    assert_int_equal(head.count, 0);
    for (int kind = 0; kind < TABLES_COUNT; kind++)
        assert_false(tables.exists[kind]);
    /* Nothing may follow. */
    assert_false(
        segzstd__sequences_read_head(&head, &tables, zero_in_two + 1, 2));
    assert_false(segzstd__sequences_read_head(&head, &tables,
                                              (const uint8_t[]){0, 0}, 2));
}

static void test_read_head__against_the_format__refused(void **state)
{
    static const uint8_t bytes[][4] = {
        {0xff, 0xab, 0x2b, 0}, /* more sequences than a block can hold */
        {1, 0x01, 0, 0},       /* reserved bits of the modes */
        {1, 0x02, 0, 0},
        {1, 0xc0, 0, 0}, /* a table to be repeated, but there is none */
        {1, 0x30, 0, 0},
        {1, 0x0c, 0, 0},
        {1, 0x40, 36, 0}, /* RLE of a code beyond the largest */
        {1, 0x10, 32, 0},
        {1, 0x04, 53, 0},
        {1, 0x80, 0x05, 0}, /* accuracy 10 of literals lengths */
        {1, 0x20, 0x04, 0}, /* accuracy 9 of offsets */
    };
    struct segzstd__sequences_head head;

    (void)state;
    for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++) {
        struct segzstd__tables tables = {0};

        assert_false(segzstd__sequences_read_head(&head, &tables, bytes[i],
                                                  sizeof(bytes[i])));
    }
}

/* Some rows of RFC 8878, appendix A. */
static void test_build_predefined__some_states__as_published(void **state)
{
    static const struct {
        enum table_kind kind;
        unsigned at;
        struct segzstd__fse_entry entry;
    } rows[] = {
        {TABLE_LITERALS, 0, {0, 0, 4}},   {TABLE_LITERALS, 1, {16, 0, 4}},
        {TABLE_LITERALS, 2, {32, 1, 5}},  {TABLE_LITERALS, 10, {0, 14, 6}},
        {TABLE_LITERALS, 63, {0, 32, 6}}, {TABLE_LITERALS, 60, {0, 35, 6}},
        {TABLE_MATCHES, 0, {0, 0, 6}},    {TABLE_MATCHES, 1, {0, 1, 4}},
        {TABLE_MATCHES, 2, {32, 2, 5}},   {TABLE_MATCHES, 63, {0, 46, 6}},
        {TABLE_OFFSETS, 0, {0, 0, 5}},    {TABLE_OFFSETS, 1, {0, 6, 4}},
        {TABLE_OFFSETS, 31, {0, 24, 5}},  {TABLE_OFFSETS, 27, {0, 28, 5}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct segzstd__fse_table table;
        const struct segzstd__fse_entry *entry = &table.entry[rows[i].at];

        segzstd__table_build_predefined(&table, rows[i].kind);
        assert_int_equal(entry->base, rows[i].entry.base);
        assert_int_equal(entry->symbol, rows[i].entry.symbol);
        assert_int_equal(entry->bits, rows[i].entry.bits);
    }
}

/* ----------------------------------------------------------------------- */
/* Offsets                                                                 */

static void test_resolve__codes__move_the_offsets(void **state)
{
    static const struct {
        uint32_t value;
        uint32_t literals;
        uint32_t want;
        uint32_t after[OFFSETS_COUNT];
    } cases[] = {
        /* From 10, 20, 30. */
        {1, 5, 10, {10, 20, 30}},
        {2, 5, 20, {20, 10, 30}},
        {3, 5, 30, {30, 10, 20}},
        {4, 5, 1, {1, 10, 20}},
        {1, 0, 20, {20, 10, 30}},
        {2, 0, 30, {30, 10, 20}},
        {3, 0, 9, {9, 10, 20}},
        {13, 0, 10, {10, 10, 20}},
        {UINT32_MAX, 1, UINT32_MAX - 3, {UINT32_MAX - 3, 10, 20}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint32_t offset[OFFSETS_COUNT] = {10, 20, 30};

        assert_int_equal(
            segzstd__offset_resolve(offset, cases[i].value, cases[i].literals),
            cases[i].want);
        assert_memory_equal(offset, cases[i].after, sizeof(offset));
    }
}

static void test_resolve__not_known_or_zero__is_no_offset(void **state)
{
    uint32_t unknown[OFFSETS_COUNT] = {0, 20, 0};
    uint32_t one[OFFSETS_COUNT] = {1, 4, 8};

    (void)state;
    assert_int_equal(segzstd__offset_resolve(unknown, 1, 1), 0);
    assert_int_equal(segzstd__offset_resolve(unknown, 3, 1), 0);
    assert_int_equal(segzstd__offset_resolve(unknown, 3, 0), 0);
    assert_int_equal(unknown[1], 20);
    assert_int_equal(segzstd__offset_resolve(unknown, 2, 1), 20);
    assert_int_equal(unknown[0], 20);
    assert_int_equal(unknown[1], 0);
    assert_int_equal(segzstd__offset_resolve(one, 3, 0), 0);
}

/* ----------------------------------------------------------------------- */
/* Whole blocks                                                            */

/* Sequences whose lengths and offsets have several codes. */
/* Every repeat code, none of which leads to an offset of 0: libzstd from 1.5.6 on
 * refuses that. */
static const struct make_sequence mixed[] = {
    {9, 5, 6}, {0, 4, 1}, {2, 40, 8}, {0, 3, 3}, {20, 3, 2}, {1, 150, 3 + 60},
};

/* Sequences of one code each, as RLE tables need. */
static const struct make_sequence equal[] = {{2, 4, 5}, {2, 4, 4}, {2, 4, 5}};

static struct make_block plain_block(const struct make_sequence *seq,
                                     size_t count)
{
    static const unsigned char text[] =
        "the quick brown fox jumps over the lazy dog, and some more text.";
    struct make_block block = {0};

    block.literals = text;
    block.literals_len = 36;
    block.literals_format = 1;
    block.seq = seq;
    block.count = count;
    return block;
}

/* All 64 ways to combine the modes, after a block that sets all tables. */
static void test_read__every_combination_of_modes__sequences_come_back(
    void **state)
{
    (void)state;
    for (int modes = 0; modes < 64; modes++) {
        bool rle = false;
        struct segzstd__tables tables = {0};
        struct make_block first, block;
        struct made made;
        unsigned char *at;

        for (int kind = 0; kind < TABLES_COUNT; kind++)
            rle = rle || (modes >> 2 * kind & 3) == TABLE_RLE;
        first = rle ? plain_block(equal, 3) : plain_block(mixed, 6);
        block = first;
        for (int kind = 0; kind < TABLES_COUNT; kind++) {
            first.mode[kind] = TABLE_FSE;
            block.mode[kind] = (enum table_mode)(modes >> 2 * kind & 3);
        }
        made_new(&made);
        at = made_add(&made, &first);
        assert_non_null(at);
        expect_reads(&tables, at, &first);
        at = made_add(&made, &block);
        assert_non_null(at);
        expect_reads(&tables, at, &block);
        made_expect_decodes(&made);
        made_free(&made);
    }
}

/* A repeated table may be of any kind, RLE and predefined ones too, and blocks
 * without sequences in between change nothing. */
static void test_read__repeat_of_each_mode__same_table_again(void **state)
{
    (void)state;
    for (int mode = TABLE_PREDEFINED; mode <= TABLE_FSE; mode++) {
        struct segzstd__tables tables = {0};
        struct make_block first = plain_block(equal, 3);
        struct make_block none = plain_block(NULL, 0);
        struct make_block repeat = first;
        struct made made;
        unsigned char *at;

        if (mode == TABLE_RLE && !env_reads_short_sequences())
            continue;
        made_new(&made);
        for (int kind = 0; kind < TABLES_COUNT; kind++) {
            first.mode[kind] = (enum table_mode)mode;
            repeat.mode[kind] = TABLE_REPEAT;
        }
        assert_non_null(at = made_add(&made, &first));
        expect_reads(&tables, at, &first);
        assert_non_null(at = made_add(&made, &none));
        expect_reads(&tables, at, &none);
        for (int kind = 0; kind < TABLES_COUNT; kind++)
            assert_int_equal(tables.predefined[kind], mode == TABLE_PREDEFINED);
        for (int i = 0; i < 2; i++) {
            assert_non_null(at = made_add(&made, &repeat));
            expect_reads(&tables, at, &repeat);
        }
        made_expect_decodes(&made);
        made_free(&made);
    }
}

/* Makes, reads and decodes one block of literals alone, after one that brings a
 * Huffman table. False if the format cannot hold so many. */
static bool check_literals(const unsigned char *literals, size_t len,
                           enum literals_type type, unsigned format)
{
    struct segzstd__tables tables = {0};
    struct make_block first = {0}, block = {0};
    struct made made;
    unsigned char *at;

    made_new(&made);
    first.literals_type = LITERALS_COMPRESSED;
    first.literals = literals;
    first.literals_len = 20;
    assert_non_null(made_add(&made, &first));
    block.literals_type = type;
    block.literals_format = format;
    block.literals = literals;
    block.literals_len = len;
    at = made_add(&made, &block);
    if (at != NULL) {
        expect_reads(&tables, at, &block);
        made_expect_decodes(&made);
        for (size_t i = 0; i < len; i++) {
            size_t from = type == LITERALS_RLE ? 0 : i;

            if (made.content[20 + i] != literals[from])
                fail_msg("literal %zu of %zu is wrong", i, len);
        }
    }
    made_free(&made);
    return at != NULL;
}

/* From 1 byte to 128 KiB, in every type and size format that can hold it. With
 * 131068 raw literals the block would have 128 KiB itself, which libzstd before
 * 1.5 refuses. */
static void test_read__literals_of_each_type_and_size__decode(void **state)
{
    static const struct {
        size_t len;
        size_t forms; /* of 4 types with 4 formats each */
    } cases[] = {
        {1, 10},    {6, 16},    {31, 16},    {32, 12},    {1023, 12},
        {1024, 8},  {4095, 8},  {4096, 6},   {16383, 6},  {16384, 4},
        {65536, 4}, {99999, 4}, {131067, 4}, {131071, 3}, {131072, 3},
    };
    unsigned char *literals = malloc(BLOCK_BYTES_MAX);
    struct rng rng = rng_seed(11);

    (void)state;
    assert_non_null(literals);
    for (size_t i = 0; i < BLOCK_BYTES_MAX; i++)
        literals[i] = (unsigned char)rng_below(&rng, 2);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        size_t forms = 0;

        for (unsigned n = 0; n < 16; n++) {
            enum literals_type type = (enum literals_type)(n & 3);
            unsigned format = n >> 2;

            /* Four streams cannot have fewer literals than 6. */
            if (type >= LITERALS_COMPRESSED && format > 0 && cases[i].len < 6)
                continue;
            forms += check_literals(literals, cases[i].len, type, format);
        }
        assert_int_equal(forms, cases[i].forms);
    }
    free(literals);
}

/* One sequence with `literals` before it comes back as it was made. */
static void check_sequence(struct make_sequence s, enum table_mode offsets)
{
    static const unsigned char zero[1];
    struct segzstd__tables tables = {0};
    struct make_block block = {0};
    struct maker maker;
    unsigned char bytes[64];

    maker_init(&maker);
    block.literals_type = LITERALS_RLE;
    block.literals_format = 3;
    block.literals = zero;
    block.literals_len = s.literals;
    block.seq = &s;
    block.count = 1;
    block.mode[TABLE_OFFSETS] = offsets;
    assert_true(maker_put(&maker, &block, bytes, sizeof(bytes)) > 0);
    expect_reads(&tables, bytes, &block);
}

static void test_read__every_length_code_at_its_ends__comes_back(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 300; n++)
        check_sequence((struct make_sequence){n, 3 + n, 4}, TABLE_PREDEFINED);
    for (uint32_t power = 256; power <= 65536; power *= 2) {
        for (uint32_t n = power - 5; n <= power + 5; n++)
            check_sequence((struct make_sequence){n, n, 4}, TABLE_PREDEFINED);
    }
    check_sequence((struct make_sequence){131071, 131074, 4}, TABLE_RLE);
}

static void test_read__every_offset_code_at_its_ends__comes_back(void **state)
{
    (void)state;
    for (unsigned code = 0; code < 32; code++) {
        uint32_t first = (uint32_t)1 << code;
        uint32_t last = first + (first - 1);

        check_sequence((struct make_sequence){1, 3, first}, TABLE_RLE);
        check_sequence((struct make_sequence){1, 3, last}, TABLE_RLE);
    }
}

/* As many sequences as a block can have, each of three bytes. */
static void test_read__most_sequences__decode(void **state)
{
    struct make_sequence *seq = calloc(SEQUENCES_MAX, sizeof(*seq));
    struct segzstd__tables tables = {0};
    struct make_block block = {0};
    struct make_block first = plain_block(equal, 3);
    struct made made;
    unsigned char *at;

    (void)state;
    assert_non_null(seq);
    for (size_t i = 0; i < SEQUENCES_MAX; i++)
        seq[i] = (struct make_sequence){0, 3, 4 + (uint32_t)i % 7};
    block.seq = seq;
    block.count = SEQUENCES_MAX;
    block.mode[TABLE_LITERALS] = TABLE_RLE;
    block.mode[TABLE_OFFSETS] = TABLE_FSE;
    block.mode[TABLE_MATCHES] = TABLE_RLE;
    made_new(&made);
    assert_non_null(made_add(&made, &first));
    assert_non_null(at = made_add(&made, &block));
    expect_reads(&tables, at, &block);
    made_expect_decodes(&made);
    made_free(&made);
    free(seq);
}

/* Random blocks: what is read agrees with the stock decoder's length. */
static void test_read__random_blocks__agree_with_libzstd(void **state)
{
    struct rng rng = rng_seed(12);
    size_t rounds = env_pick("random frames", 1500, 40);

    (void)state;
    for (size_t i = 0; i < rounds; i++) {
        struct segzstd__tables tables = {0};
        struct made made;
        size_t at, blocks = 1 + rng_below(&rng, 4), total = 0;

        made_new(&made);
        at = made.len;
        for (size_t k = 0; k < blocks; k++)
            made.len +=
                maker_put_random(&made.maker, &rng, rng_spread(&rng, 131072),
                                 made.bytes + made.len);
        made_expect_decodes(&made);
        while (at < made.len) {
            struct segzstd__block_header header;
            size_t count, decoded;

            assert_true(segzstd__block_read_header(&header, made.bytes + at,
                                                   made.len - at));
            at += BLOCK_HEADER_BYTES;
            decoded = header.decoded;
            if (header.type == BLOCK_COMPRESSED)
                assert_true(read_block(&tables, made.bytes + at, header.content,
                                       NULL, &count, &decoded));
            at += header.content;
            total += decoded;
        }
        assert_int_equal(total, made.content_len);
        made_free(&made);
    }
}

/* ----------------------------------------------------------------------- */
/* Writing                                                                 */

/* The sequences of the block in made->bytes at `at`, and the tables then. */
static size_t read_made(struct segzstd__tables *tables, const unsigned char *at,
                        struct segzstd__sequence *sequence)
{
    struct segzstd__block_header header;
    size_t count, decoded;

    assert_true(segzstd__block_read_header(&header, at, MADE_MAX));
    assert_true(read_block(tables, at + BLOCK_HEADER_BYTES, header.content,
                           sequence, &count, &decoded));
    return count;
}

static void test_write__same_table__same_lengths_and_offsets(void **state)
{
    struct make_block block = plain_block(mixed, 6);
    struct segzstd__sequence sequence[6], again[6];
    struct segzstd__sequences_reader reader;
    struct segzstd__fse_table offsets;

    (void)state;
    segzstd__table_build_predefined(&offsets, TABLE_OFFSETS);
    for (int modes = 0; modes < 4; modes++) {
        struct segzstd__tables tables = {0};
        struct made made;
        unsigned char bytes[256];
        unsigned char *at;
        size_t len;

        block.mode[TABLE_LITERALS] = modes & 1 ? TABLE_FSE : TABLE_PREDEFINED;
        block.mode[TABLE_MATCHES] = modes & 2 ? TABLE_FSE : TABLE_PREDEFINED;
        block.mode[TABLE_OFFSETS] = TABLE_FSE;
        made_new(&made);
        assert_non_null(at = made_add(&made, &block));
        assert_int_equal(read_made(&tables, at, sequence), 6);
        sequence[1].offset_value = 77; /* any other offset will do */
        assert_true(segzstd__sequences_write(&tables, &offsets, sequence, 6,
                                             bytes, sizeof(bytes), &len));
        tables.table[TABLE_OFFSETS] = offsets;
        assert_true(
            segzstd__sequences_reader_init(&reader, &tables, 6, bytes, len));
        for (int i = 0; i < 6; i++)
            assert_true(segzstd__sequences_read(&reader, &again[i]));
        assert_memory_equal(again, sequence, sizeof(again));
        made_free(&made);
    }
}

static void test_write__room_too_small__refused(void **state)
{
    struct make_block block = plain_block(mixed, 6);
    struct segzstd__tables tables = {0};
    struct segzstd__sequence sequence[6];
    struct segzstd__fse_table offsets;
    struct made made;
    unsigned char bytes[256];
    unsigned char *at;
    size_t len, n;

    (void)state;
    made_new(&made);
    assert_non_null(at = made_add(&made, &block));
    read_made(&tables, at, sequence);
    segzstd__table_build_predefined(&offsets, TABLE_OFFSETS);
    assert_true(segzstd__sequences_write(&tables, &offsets, sequence, 6, bytes,
                                         sizeof(bytes), &len));
    for (size_t cap = 0; cap < len; cap++) {
        memset(bytes, 0xaa, sizeof(bytes));
        assert_false(segzstd__sequences_write(&tables, &offsets, sequence, 6,
                                              bytes, cap, &n));
        for (size_t i = cap; i < sizeof(bytes); i++)
            assert_int_equal(bytes[i], 0xaa);
    }
    made_free(&made);
}

static void test_write__code_not_in_table__refused(void **state)
{
    struct make_block block = plain_block(mixed, 6);
    struct segzstd__tables tables = {0};
    struct segzstd__sequence sequence[6];
    struct segzstd__fse_table offsets;
    struct made made;
    unsigned char bytes[256];
    unsigned char *at;
    size_t n;

    (void)state;
    made_new(&made);
    assert_non_null(at = made_add(&made, &block));
    read_made(&tables, at, sequence);
    segzstd__table_build_predefined(&offsets, TABLE_OFFSETS);
    /* The predefined table ends with code 28. */
    for (int i = 0; i < 6; i += 5) {
        uint32_t before = sequence[i].offset_value;

        sequence[i].offset_value = ((uint32_t)1 << 29) - 1;
        assert_true(segzstd__sequences_write(&tables, &offsets, sequence, 6,
                                             bytes, sizeof(bytes), &n));
        sequence[i].offset_value++;
        assert_false(segzstd__sequences_write(&tables, &offsets, sequence, 6,
                                              bytes, sizeof(bytes), &n));
        sequence[i].offset_value = before;
    }
    made_free(&made);
}

/* ----------------------------------------------------------------------- */
/* Malformed                                                               */

/* Reads a copy without a byte to spare, so that ASan sees any step beyond. */
static bool read_copy(const unsigned char *src, size_t len)
{
    struct segzstd__tables tables = {0};
    unsigned char *copy = malloc(len > 0 ? len : 1);
    size_t count, decoded;
    bool valid;

    assert_non_null(copy);
    memcpy(copy, src, len);
    valid = read_block(&tables, copy, len, NULL, &count, &decoded);
    free(copy);
    return valid;
}

/* A block is read to its last bit, so that no truncation passes for whole. */
static void test_read__every_truncation__refused(void **state)
{
    (void)state;
    for (int modes = 0; modes < 8; modes++) {
        struct make_block block = plain_block(mixed, 6);
        struct segzstd__block_header header;
        struct made made;
        unsigned char *at;

        for (int kind = 0; kind < TABLES_COUNT; kind++)
            block.mode[kind] = modes >> kind & 1 ? TABLE_FSE : TABLE_PREDEFINED;
        made_new(&made);
        assert_non_null(at = made_add(&made, &block));
        assert_true(segzstd__block_read_header(&header, at, MADE_MAX));
        at += BLOCK_HEADER_BYTES;
        assert_true(read_copy(at, header.content));
        for (size_t len = 0; len < header.content; len++)
            assert_false(read_copy(at, len));
        made_free(&made);
    }
}

/* Any byte changed to any other: refused or read, but never out of bounds. */
static void test_read__every_changed_byte__stays_inside(void **state)
{
    size_t valid = 0, broken = 0;
    size_t step = env_pick("every n-th value of a byte: n", 1, 16);

    (void)state;
    for (int modes = 0; modes < 8; modes++) {
        struct make_block block = plain_block(mixed, 6);
        struct segzstd__block_header header;
        struct made made;
        unsigned char *at;

        for (int kind = 0; kind < TABLES_COUNT; kind++)
            block.mode[kind] = modes >> kind & 1 ? TABLE_FSE : TABLE_PREDEFINED;
        made_new(&made);
        assert_non_null(at = made_add(&made, &block));
        assert_true(segzstd__block_read_header(&header, at, MADE_MAX));
        at += BLOCK_HEADER_BYTES;
        for (size_t i = 0; i < header.content; i++) {
            unsigned char before = at[i];

            for (size_t value = 0; value < 256; value += step) {
                at[i] = (unsigned char)value;
                if (read_copy(at, header.content))
                    valid++;
                else
                    broken++;
            }
            at[i] = before;
        }
        made_free(&made);
    }
    assert_true(valid > 0);
    assert_true(broken > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_header__each_type__size_and_content),
        cmocka_unit_test(test_read_header__reserved_or_too_large__refused),
        cmocka_unit_test(test_read_literals__each_format__sizes),
        cmocka_unit_test(test_read_literals__impossible_sizes__refused),
        cmocka_unit_test(test_read_head__count_field__each_form),
        cmocka_unit_test(test_read_head__no_sequences__leaves_tables),
        cmocka_unit_test(test_read_head__against_the_format__refused),
        cmocka_unit_test(test_build_predefined__some_states__as_published),
        cmocka_unit_test(test_resolve__codes__move_the_offsets),
        cmocka_unit_test(test_resolve__not_known_or_zero__is_no_offset),
        cmocka_unit_test(
            test_read__every_combination_of_modes__sequences_come_back),
        cmocka_unit_test(test_read__repeat_of_each_mode__same_table_again),
        cmocka_unit_test(test_read__literals_of_each_type_and_size__decode),
        cmocka_unit_test(test_read__every_length_code_at_its_ends__comes_back),
        cmocka_unit_test(test_read__every_offset_code_at_its_ends__comes_back),
        cmocka_unit_test(test_read__most_sequences__decode),
        cmocka_unit_test(test_read__random_blocks__agree_with_libzstd),
        cmocka_unit_test(test_write__same_table__same_lengths_and_offsets),
        cmocka_unit_test(test_write__room_too_small__refused),
        cmocka_unit_test(test_write__code_not_in_table__refused),
        cmocka_unit_test(test_read__every_truncation__refused),
        cmocka_unit_test(test_read__every_changed_byte__stays_inside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
