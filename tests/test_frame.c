/* For ZSTD_getFrameHeader(), which the shared library has. */
#define ZSTD_STATIC_LINKING_ONLY

#include "frame.h"

#include <stdlib.h>
#include <zstd.h>

#include "support/data.h"
#include "support/expect.h"

/* ---- frame headers ---- */

/* Each width of the content size field, at both of its ends. */
static const uint64_t sizes[] = {0,
                                 1,
                                 255,
                                 256,
                                 257,
                                 65535,
                                 65536,
                                 65536 + 255,
                                 65536 + 256,
                                 65536 + 257,
                                 1 << 20,
                                 0xFFFFFFFE,
                                 0xFFFFFFFF,
                                 0x100000000,
                                 0x123456789abcdef,
                                 UINT64_MAX - 2,
                                 SEGZSTD_SIZE_UNKNOWN};
static const uint32_t dict_ids[] = {0,     1,     255,        256,
                                    65535, 65536, 0x89abcdef, UINT32_MAX};

enum {
    SIZES = sizeof(sizes) / sizeof(sizes[0]),
    DICT_IDS = sizeof(dict_ids) / sizeof(dict_ids[0])
};

static void expect_parses(const struct segzstd__frame_header *ours)
{
    uint8_t bytes[FRAME_HEADER_BYTES_MAX + 1];
    uint64_t window = (uint64_t)1 << ours->window_log;
    ZSTD_frameHeader theirs;
    size_t len;

    memset(bytes, 0xaa, sizeof(bytes));
    len = segzstd__frame_put_header(bytes, ours);
    assert_true(len <= FRAME_HEADER_BYTES_MAX);
    for (size_t i = len; i < sizeof(bytes); i++)
        assert_int_equal(bytes[i], 0xaa);
    assert_int_equal(ZSTD_getFrameHeader(&theirs, bytes, len), 0);
    assert_int_equal(theirs.headerSize, len);
    assert_int_equal(theirs.frameContentSize, ours->content_size);
    assert_int_equal(ZSTD_getFrameContentSize(bytes, len), ours->content_size);
    assert_int_equal(theirs.dictID, ours->dict_id);
    assert_int_equal(theirs.checksumFlag, ours->checksum);
    /* content that is smaller than the window is a single segment */
    assert_int_equal(theirs.windowSize, min_u64(window, ours->content_size));
    for (size_t n = 0; n < len; n++)
        assert_int_equal(segzstd__frame_header_bytes(bytes, n), 0);
    assert_int_equal(segzstd__frame_header_bytes(bytes, len), len);
    assert_int_equal(segzstd__frame_header_bytes(bytes, len + 1), len);
}

static void test_put_header__all_widths_of_fields__libzstd_reads_them(
    void **state)
{
    struct segzstd__frame_header header;
    unsigned most = sizeof(size_t) == 4 ? 30 : 31; /* for libzstd */

    (void)state;
    for (unsigned log = 10; log <= most; log++)
        for (int i = 0; i < SIZES; i++)
            for (int k = 0; k < DICT_IDS; k++)
                for (int checksum = 0; checksum < 2; checksum++) {
                    header = (struct segzstd__frame_header){
                        log, sizes[i], dict_ids[k], checksum != 0};
                    expect_parses(&header);
                }
}

/* The shortest encoding of each field, as libzstd would choose it. */
static void test_put_header__length__has_no_byte_too_many(void **state)
{
    static const struct {
        struct segzstd__frame_header header;
        size_t len;
    } cases[] = {
        {{20, SEGZSTD_SIZE_UNKNOWN, 0, false}, 6},
        {{20, SEGZSTD_SIZE_UNKNOWN, 255, true}, 7},
        {{20, SEGZSTD_SIZE_UNKNOWN, 65535, false}, 8},
        {{20, SEGZSTD_SIZE_UNKNOWN, 65536, false}, 10},
        {{20, 255, 0, false}, 6},
        {{20, 65791, 0, false}, 7},
        {{20, 1 << 20, 0, false}, 9},
        {{20, (1 << 20) + 1, 0, false}, 10},
        {{31, 0xFFFFFFFE, 0, false}, 10},
        {{31, 0xFFFFFFFF, UINT32_MAX, true}, 18},
    };
    uint8_t bytes[FRAME_HEADER_BYTES_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(segzstd__frame_put_header(bytes, &cases[i].header),
                         cases[i].len);
}

static void test_header_bytes__frames_of_libzstd__where_the_blocks_begin(
    void **state)
{
    static uint8_t content[100000], frame[200000];
    ZSTD_CCtx *cctx = ZSTD_createCCtx();

    (void)state;
    assert_non_null(cctx);
    for (size_t len = 0; len < sizeof(content); len = 2 * len + 1) {
        for (int flags = 0; flags < 4; flags++) {
            ZSTD_frameHeader theirs;
            size_t n;

            ZSTD_CCtx_setParameter(cctx, ZSTD_c_contentSizeFlag, flags & 1);
            ZSTD_CCtx_setParameter(cctx, ZSTD_c_checksumFlag, flags >> 1);
            n = ZSTD_compress2(cctx, frame, sizeof(frame), content, len);
            assert_int_equal(ZSTD_getFrameHeader(&theirs, frame, n), 0);
            assert_int_equal(segzstd__frame_header_bytes(frame, n),
                             theirs.headerSize);
        }
    }
    ZSTD_freeCCtx(cctx);
}

static void test_header_bytes__no_frame__is_0(void **state)
{
    uint8_t bytes[FRAME_HEADER_BYTES_MAX];
    const struct segzstd__frame_header header = {20, 1000, 0, false};

    (void)state;
    segzstd__frame_put_header(bytes, &header);
    for (size_t i = 0; i < 4; i++) {
        bytes[i] ^= 1;
        assert_int_equal(segzstd__frame_header_bytes(bytes, sizeof(bytes)), 0);
        bytes[i] ^= 1;
    }
    assert_int_not_equal(segzstd__frame_header_bytes(bytes, sizeof(bytes)), 0);
}

/* ---- blocks ---- */

static void test_put_block_header__any_fields__are_little_endian(void **state)
{
    static const size_t block_sizes[] = {0,    1,     31,     32,
                                         8191, 65536, 131072, 2097151};
    uint8_t bytes[4];

    (void)state;
    for (size_t i = 0; i < sizeof(block_sizes) / sizeof(block_sizes[0]); i++)
        for (unsigned type = BLOCK_RAW; type <= BLOCK_RESERVED; type++)
            for (unsigned last = 0; last < 2; last++) {
                uint32_t v;

                bytes[3] = 0xaa;
                segzstd__frame_put_block_header(bytes,
                                                (enum segzstd__block_type)type,
                                                block_sizes[i], last != 0);
                v = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 |
                    (uint32_t)bytes[2] << 16;
                assert_int_equal(v & 1, last);
                assert_int_equal(v >> 1 & 3, type);
                assert_int_equal(v >> 3, block_sizes[i]);
                assert_int_equal(bytes[3], 0xaa);
            }
}

static void test_frame__raw_and_rle_blocks__libzstd_decodes_it(void **state)
{
    const struct segzstd__frame_header header = {17, SEGZSTD_SIZE_UNKNOWN, 0,
                                                 true};
    struct segzstd__xxh64 hash;
    uint8_t frame[64], *p = frame;
    char text[32];

    (void)state;
    p += segzstd__frame_put_header(p, &header);
    segzstd__frame_put_block_header(p, BLOCK_RAW, 5, false);
    memcpy(p + BLOCK_HEADER_BYTES, "hello", 5);
    p += BLOCK_HEADER_BYTES + 5;
    segzstd__frame_put_block_header(p, BLOCK_RLE, 4, false);
    p[BLOCK_HEADER_BYTES] = '!';
    p += BLOCK_HEADER_BYTES + 1;
    segzstd__frame_put_block_header(p, BLOCK_RAW, 0, true);
    p += BLOCK_HEADER_BYTES;
    segzstd__xxh64_init(&hash);
    segzstd__xxh64_update(&hash, "hello!!!!", 9);
    store_le(p, segzstd__xxh64_digest(&hash) & UINT32_MAX, CHECKSUM_BYTES);
    p += CHECKSUM_BYTES;
    assert_int_equal(
        ZSTD_decompress(text, sizeof(text), frame, (size_t)(p - frame)), 9);
    assert_memory_equal(text, "hello!!!!", 9);
    p[-1] ^= 1;
    assert_true(ZSTD_isError(
        ZSTD_decompress(text, sizeof(text), frame, (size_t)(p - frame))));
}

static void test_store_le__any_width__load_le_reads_it(void **state)
{
    const uint64_t v = 0x8877665544332211;
    uint8_t bytes[16];

    (void)state;
    for (size_t width = 0; width <= 8; width++)
        for (size_t at = 0; at < 8; at++) {
            memset(bytes, 0xaa, sizeof(bytes));
            store_le(bytes + at, v, width);
            for (size_t i = 0; i < sizeof(bytes); i++)
                assert_int_equal(bytes[i], i >= at && i < at + width
                                               ? 0x11 * (i - at + 1)
                                               : 0xaa);
            assert_int_equal(load_le(bytes + at, width),
                             width == 8 ? v
                                        : v & (((uint64_t)1 << 8 * width) - 1));
        }
}

/* ---- checksums ---- */

static uint64_t hash_of(const void *src, size_t len)
{
    struct segzstd__xxh64 hash;

    segzstd__xxh64_init(&hash);
    segzstd__xxh64_update(&hash, src, len);
    return segzstd__xxh64_digest(&hash);
}

/* The published values for these texts, all 64 bits of them. */
static void test_xxh64__known_texts__have_the_published_hash(void **state)
{
    (void)state;
    assert_true(hash_of("", 0) == 0xEF46DB3751D8E999);
    assert_true(hash_of("a", 1) == 0xD24EC4F1A98C6E5B);
    assert_true(hash_of("abc", 3) == 0x44BC2CF5AD770999);
}

/* What libzstd writes as checksum of the content. */
static uint32_t libzstd_checksum(ZSTD_CCtx *cctx, const void *src, size_t len)
{
    size_t bound = ZSTD_compressBound(len) + 32, n;
    uint8_t *frame = malloc(bound);
    uint32_t checksum;

    assert_non_null(frame);
    n = ZSTD_compress2(cctx, frame, bound, src, len);
    assert_false(ZSTD_isError(n));
    checksum = (uint32_t)load_le(frame + n - 4, 4);
    free(frame);
    return checksum;
}

static void test_xxh64__any_length__is_libzstds_checksum(void **state)
{
    static const size_t large[] = {4095, 65537, 1000003, 5 << 20};
    unsigned char *content = data_new(5 << 20, DATA_RANDOM, 1);
    ZSTD_CCtx *cctx = ZSTD_createCCtx();

    (void)state;
    assert_non_null(cctx);
    ZSTD_CCtx_setParameter(cctx, ZSTD_c_compressionLevel, -5);
    ZSTD_CCtx_setParameter(cctx, ZSTD_c_checksumFlag, 1);
    for (size_t len = 0; len <= 1000; len++)
        assert_int_equal(hash_of(content, len) & UINT32_MAX,
                         libzstd_checksum(cctx, content, len));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(hash_of(content, large[i]) & UINT32_MAX,
                         libzstd_checksum(cctx, content, large[i]));
    ZSTD_freeCCtx(cctx);
    free(content);
}

static void test_xxh64__fed_in_pieces__is_the_same(void **state)
{
    static unsigned char content[20000];
    struct rng rng = rng_seed(3);

    (void)state;
    data_fill(content, sizeof(content), DATA_RANDOM, 2);
    for (int round = 0; round < 300; round++) {
        size_t len = rng_spread(&rng, sizeof(content)), at = 0;
        size_t most = 1 + rng_below(&rng, 100);
        struct segzstd__xxh64 hash;

        segzstd__xxh64_init(&hash);
        while (at < len) {
            size_t n = min_size(rng_below(&rng, most + 1), len - at);

            segzstd__xxh64_update(&hash, content + at, n);
            at += n;
            /* a digest in between changes nothing */
            if (rng_below(&rng, 8) == 0)
                assert_true(segzstd__xxh64_digest(&hash) ==
                            hash_of(content, at));
        }
        assert_true(segzstd__xxh64_digest(&hash) == hash_of(content, len));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_put_header__all_widths_of_fields__libzstd_reads_them),
        cmocka_unit_test(test_put_header__length__has_no_byte_too_many),
        cmocka_unit_test(
            test_header_bytes__frames_of_libzstd__where_the_blocks_begin),
        cmocka_unit_test(test_header_bytes__no_frame__is_0),
        cmocka_unit_test(test_put_block_header__any_fields__are_little_endian),
        cmocka_unit_test(test_frame__raw_and_rle_blocks__libzstd_decodes_it),
        cmocka_unit_test(test_store_le__any_width__load_le_reads_it),
        cmocka_unit_test(test_xxh64__known_texts__have_the_published_hash),
        cmocka_unit_test(test_xxh64__any_length__is_libzstds_checksum),
        cmocka_unit_test(test_xxh64__fed_in_pieces__is_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
