/*
 * The walker judges frames in other tests, so each fault that it is to find is
 * made here once.
 */
#include "support/frame_walk.h"

#include <stdlib.h>
#include <zdict.h>
#include <zstd.h>

#include "support/block_make.h"
#include "support/data.h"
#include "support/expect.h"

enum { CAP = 1 << 20 };

static void expect_walks(const unsigned char *frame, size_t len,
                         struct frame_walk *out)
{
    if (frame_walk(frame, len, 0, out) != 0)
        fail_msg("%s", out->error);
    assert_string_equal(out->error, "");
}

static void expect_fault(const unsigned char *frame, size_t len,
                         size_t dict_len, const char *what)
{
    struct frame_walk out;

    assert_int_equal(frame_walk(frame, len, dict_len, &out), -1);
    if (strstr(out.error, what) == NULL)
        fail_msg("\"%s\" instead of \"%s\"", out.error, what);
}

/* A frame of one block with one match after `literals` bytes. */
static size_t put_match(unsigned char *dst, unsigned window_log,
                        uint64_t content_size, uint32_t literals,
                        uint32_t offset_value)
{
    static unsigned char bytes[1 << 17];
    struct segzstd__frame_header header = {window_log, content_size, 0, false};
    struct make_sequence seq = {literals, 10, offset_value};
    struct make_block block = {0};
    struct maker maker;
    size_t n = segzstd__frame_put_header(dst, &header);

    maker_init(&maker);
    block.literals_type = LITERALS_RLE;
    block.literals_format = 3;
    block.literals = bytes;
    block.literals_len = literals;
    block.seq = &seq;
    block.count = 1;
    n += maker_put(&maker, &block, dst + n, CAP);
    segzstd__frame_put_block_header(dst + n, BLOCK_RAW, 0, true);
    return n + BLOCK_HEADER_BYTES;
}

static void test_walk__offset_at_its_limit__and_one_beyond(void **state)
{
    unsigned char *frame = malloc(CAP);
    struct frame_walk out;
    size_t len;

    (void)state;
    assert_non_null(frame);
    len = put_match(frame, 10, SEGZSTD_SIZE_UNKNOWN, 500, 3 + 500);
    expect_walks(frame, len, &out);
    assert_int_equal(out.max_offset, 500);
    assert_int_equal(out.window, 1024);
    assert_int_equal(out.decoded, 510);
    assert_int_equal(out.sequences, 1);
    assert_int_equal(out.repeat_codes, 0);
    len = put_match(frame, 10, SEGZSTD_SIZE_UNKNOWN, 500, 3 + 501);
    expect_fault(frame, len, 0, "beyond the start");
    free(frame);
}

static void test_walk__offset_beyond_window__found_though_it_decodes(
    void **state)
{
    struct segzstd__frame_header header = {10, SEGZSTD_SIZE_UNKNOWN, 0, false};
    struct make_sequence seq = {1, 10, 3 + 1024};
    struct make_block block = {0};
    unsigned char *frame = malloc(CAP), content[4096];
    struct frame_walk out;
    struct maker maker;
    size_t head, len;

    (void)state;
    assert_non_null(frame);
    maker_init(&maker);
    head = segzstd__frame_put_header(frame, &header);
    for (int i = 0; i < 2; i++, head += 4) { /* 2 times 1000 bytes */
        segzstd__frame_put_block_header(frame + head, BLOCK_RLE, 1000, false);
        frame[head + BLOCK_HEADER_BYTES] = 'x';
    }
    block.literals = frame;
    block.literals_len = 1;
    block.seq = &seq;
    block.count = 1;
    for (uint32_t beyond = 0; beyond < 2; beyond++) {
        seq.offset_value = 3 + 1024 + beyond;
        len = head + maker_put(&maker, &block, frame + head, CAP - head);
        segzstd__frame_put_block_header(frame + len, BLOCK_RAW, 0, true);
        len += BLOCK_HEADER_BYTES;
        assert_int_equal(ZSTD_decompress(content, sizeof(content), frame, len),
                         2011);
        if (beyond == 0)
            expect_walks(frame, len, &out);
        else
            expect_fault(frame, len, 0, "beyond the window (1025)");
    }
    free(frame);
}

static void test_walk__dictionary__reached_until_the_window_is_full(
    void **state)
{
    unsigned char *frame = malloc(CAP);
    struct frame_walk out;
    size_t len;

    (void)state;
    assert_non_null(frame);
    len = put_match(frame, 10, SEGZSTD_SIZE_UNKNOWN, 900, 3 + 900 + 70);
    assert_int_equal(frame_walk(frame, len, 70, &out), 0);
    expect_fault(frame, len, 69, "beyond the start");
    free(frame);
}

static void test_walk__block_beyond_window__refused(void **state)
{
    unsigned char *frame = malloc(CAP);
    struct frame_walk out;
    size_t len;

    (void)state;
    assert_non_null(frame);
    len = put_match(frame, 10, SEGZSTD_SIZE_UNKNOWN, 1014, 4);
    expect_walks(frame, len, &out);
    len = put_match(frame, 10, SEGZSTD_SIZE_UNKNOWN, 1015, 4);
    expect_fault(frame, len, 0, "decodes to too much (1025)");
    free(frame);
}

static void test_walk__declared_size__must_be_true(void **state)
{
    unsigned char *frame = malloc(CAP);
    struct frame_walk out;
    size_t len;

    (void)state;
    assert_non_null(frame);
    len = put_match(frame, 20, 510, 500, 4);
    expect_walks(frame, len, &out);
    assert_int_equal(out.content_size, 510);
    len = put_match(frame, 20, 511, 500, 4);
    expect_fault(frame, len, 0, "another content size");
    free(frame);
}

/* Every field of libzstd's headers, with and without. */
static void test_walk__frames_of_libzstd__counted(void **state)
{
    unsigned char *frame = malloc(CAP);
    unsigned char *content = data_new(400000, DATA_MIXTURE, 3);
    ZSTD_CCtx *encoder = ZSTD_createCCtx();

    (void)state;
    assert_non_null(frame);
    assert_non_null(encoder);
    for (int i = 0; i < 24; i++) {
        size_t len = i & 8 ? 400000 : i & 16 ? 200 : 5000;
        struct frame_walk out;
        size_t n;

        ZSTD_CCtx_reset(encoder, ZSTD_reset_session_and_parameters);
        ZSTD_CCtx_setParameter(encoder, ZSTD_c_compressionLevel, i);
        ZSTD_CCtx_setParameter(encoder, ZSTD_c_checksumFlag, i & 1);
        ZSTD_CCtx_setParameter(encoder, ZSTD_c_contentSizeFlag, i >> 1 & 1);
        if ((i & 4) != 0)
            ZSTD_CCtx_setParameter(encoder, ZSTD_c_windowLog, 14);
        n = ZSTD_compress2(encoder, frame, CAP, content, len);
        assert_false(ZSTD_isError(n));
        expect_walks(frame, n, &out);
        assert_int_equal(out.decoded, len);
        assert_int_equal(out.checksum, i & 1);
        assert_int_equal(out.content_size,
                         i >> 1 & 1 ? (uint64_t)len : FRAME_WALK_NO_SIZE);
        assert_int_equal(out.blocks, out.blocks_raw + out.blocks_rle +
                                         out.blocks_compressed);
        assert_in_range(out.max_offset, 1, out.window);
        assert_in_range(out.sequences, 1, len / 3);
    }
    ZSTD_freeCCtx(encoder);
    free(content);
    free(frame);
}

static void test_walk__any_byte_missing_or_added__refused(void **state)
{
    unsigned char *frame = malloc(CAP);
    unsigned char *content = data_new(3000, DATA_JSON, 3);
    size_t n = ZSTD_compress(frame, CAP, content, 3000, 3);

    (void)state;
    assert_false(ZSTD_isError(n));
    for (size_t len = 0; len < n; len++) {
        unsigned char *cut = malloc(len > 0 ? len : 1);
        struct frame_walk out;

        assert_non_null(cut);
        memcpy(cut, frame, len);
        assert_int_equal(frame_walk(cut, len, 0, &out), -1);
        assert_true(out.error[0] != '\0');
        free(cut);
    }
    frame[n] = 0;
    expect_fault(frame, n + 1, 0, "bytes after the frame");
    memcpy(frame + n, frame, n);
    expect_fault(frame, 2 * n, 0, "bytes after the frame");
    free(content);
    free(frame);
}

/* A trained dictionary brings tables and repeat offsets, and the encoder makes
 * use of them in the first block. */
static void test_walk__trained_dictionary__its_tables_are_known(void **state)
{
    enum { SAMPLES = 400, SAMPLE = 300, DICT = 4000 };
    unsigned char *samples = data_new(SAMPLES * SAMPLE, DATA_JSON, 5);
    unsigned char *frame = malloc(CAP), dict[DICT];
    ZSTD_CCtx *encoder = ZSTD_createCCtx();
    size_t sizes[SAMPLES], dict_len, n, needed = 0;

    (void)state;
    assert_non_null(frame);
    assert_non_null(encoder);
    for (size_t i = 0; i < SAMPLES; i++)
        sizes[i] = SAMPLE;
    dict_len =
        ZDICT_trainFromBuffer(dict, DICT, samples, sizes, (unsigned)SAMPLES);
    assert_false(ZDICT_isError(dict_len));
    for (size_t i = 0; i < 50; i++) {
        struct frame_walk out;

        n = ZSTD_compress_usingDict(encoder, frame, CAP, samples + i * SAMPLE,
                                    SAMPLE, dict, dict_len, 3);
        assert_false(ZSTD_isError(n));
        if (frame_walk_dict(frame, n, dict, dict_len, &out) != 0)
            fail_msg("%s", out.error);
        assert_int_equal(out.decoded, SAMPLE);
        assert_int_equal(out.dict_id, ZDICT_getDictID(dict, dict_len));
        needed += frame_walk(frame, n, dict_len, &out) != 0;
    }
    assert_true(needed > 0);
    ZSTD_freeCCtx(encoder);
    free(frame);
    free(samples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walk__offset_at_its_limit__and_one_beyond),
        cmocka_unit_test(
            test_walk__offset_beyond_window__found_though_it_decodes),
        cmocka_unit_test(
            test_walk__dictionary__reached_until_the_window_is_full),
        cmocka_unit_test(test_walk__block_beyond_window__refused),
        cmocka_unit_test(test_walk__declared_size__must_be_true),
        cmocka_unit_test(test_walk__frames_of_libzstd__counted),
        cmocka_unit_test(test_walk__any_byte_missing_or_added__refused),
        cmocka_unit_test(test_walk__trained_dictionary__its_tables_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
