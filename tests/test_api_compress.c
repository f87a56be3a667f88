/*
 * segzstd_compress(): one call, one frame that declares its content's size.
 */
#include <stdlib.h>
#include <string.h>

#include "support/env.h"
#include "support/expect.h"

enum { KIB = 1 << 10, MIB = 1 << 20, SEGMENT = 64 * KIB, SEED = 23 };

static const unsigned char mark = 0x5a;

/* Compresses into memory of exactly the bound, with a mark behind it. */
static size_t round_trip(const segzstd_stream_options *options,
                         const unsigned char *content, size_t len,
                         unsigned threads)
{
    struct oracle_want want = {content, len, NULL, 0, 0, ORACLE_SIZE_PRESENT};
    size_t bound = segzstd_compress_bound(len), written = 0;
    unsigned char *dst = malloc(bound + 1);

    assert_non_null(dst);
    dst[bound] = mark;
    if (options != NULL)
        want.window_log = options->window_log;
    assert_int_equal(
        segzstd_compress(dst, bound, &written, content, len, options, threads),
        0);
    assert_true(written <= bound);
    assert_int_equal(dst[bound], mark);
    expect_no_fault(oracle_check(dst, written, &want));
    free(dst);
    return written;
}

static void test_compress__any_size_and_threads__round_trips(void **state)
{
    static const size_t lens[] = {0,           1,         2000,    SEGMENT,
                                  SEGMENT + 1, 128 * KIB, 1000000, 5 * MIB};
    size_t count = env_pick("sizes", 8, 7);
    unsigned char *content = data_new(5 * MIB, DATA_MIXTURE, SEED);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

        for (unsigned threads = 0; threads <= 4; threads++) {
            round_trip(NULL, content, lens[i], threads);
            options.level = 1;
            options.checksum = 1;
            options.segment_bytes = threads % 2 == 0 ? SEGMENT : 0;
            round_trip(&options, content, lens[i], threads);
        }
        round_trip(&options, content, lens[i], 16);
    }
    free(content);
}

static void test_compress__any_level__round_trips(void **state)
{
    size_t len = env_pick("content", 300 * KIB, 70 * KIB);
    int top = (int)env_pick("highest level", (size_t)segzstd_max_level(), 9);
    unsigned char *content = data_new(len, DATA_JSON, SEED);

    (void)state;
    for (int level = -7; level <= top; level++) {
        segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

        options.level = level;
        round_trip(&options, content, len, 2);
    }
    free(content);
}

static void test_compress__fixed__any_threads_give_the_same_size(void **state)
{
    size_t len = env_pick("content", 3 * MIB, 500 * KIB);
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    size_t want;

    (void)state;
    options.segment_bytes = 128 * KIB;
    want = round_trip(&options, content, len, 1);
    for (unsigned threads = 2; threads <= 8; threads++)
        assert_int_equal(round_trip(&options, content, len, threads), want);
    free(content);
}

/* What cannot be compressed, in the smallest of segments, is the worst case. */
static void test_bound__of_any_content__is_enough(void **state)
{
    static const int levels[] = {-5, 1, 4, 7, 16};
    unsigned char *content = data_new(MIB + 1, DATA_RANDOM, SEED);
    size_t count = env_pick("levels", 5, 2);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        for (size_t size = 1; size <= MIB; size *= 4) {
            segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

            options.level = levels[i];
            options.checksum = 1;
            round_trip(&options, content, size - 1, 2);
            options.segment_bytes = SEGMENT;
            options.window_log = 10;
            options.overlap_bytes = SEGZSTD_OVERLAP_NONE;
            round_trip(&options, content, size, 2);
            round_trip(&options, content, size + 1, 2);
        }
    }
    free(content);
}

/* With a small window every block is small. */
static void test_bound__of_a_mixture_in_small_windows__is_enough(void **state)
{
    size_t len = env_pick("content", 2 * MIB, 300 * KIB);

    (void)state;
    for (unsigned window_log = 10; window_log < 20; window_log += 3) {
        unsigned char *content = data_new(len, DATA_MIXTURE, window_log);
        segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

        options.window_log = window_log;
        options.level = 1;
        options.segment_bytes = SEGMENT;
        round_trip(&options, content, len, 2);
        free(content);
    }
}

static void test_bound__of_too_much__is_0(void **state)
{
    (void)state;
    assert_int_equal(segzstd_compress_bound(SIZE_MAX), 0);
    assert_true(segzstd_compress_bound(0) > 0);
    assert_true(segzstd_compress_bound((size_t)1 << 30) > (size_t)1 << 30);
    for (size_t len = 1; len < SIZE_MAX / 6; len *= 3)
        assert_true(segzstd_compress_bound(len) >= len &&
                    segzstd_compress_bound(len) <= len + len / 32 + 1024);
}

static void expect_too_small(const segzstd_stream_options *options,
                             const unsigned char *content, size_t len,
                             size_t dst_len)
{
    unsigned char *dst = malloc(dst_len + 1);
    size_t written;

    assert_non_null(dst);
    dst[dst_len] = mark;
    assert_int_equal(
        segzstd_compress(dst, dst_len, &written, content, len, options, 2),
        SEGZSTD_ERR_DST_SIZE);
    assert_int_equal(dst[dst_len], mark);
    free(dst);
}

static void test_compress__dst_too_small__is_refused(void **state)
{
    unsigned char *content = data_new(400 * KIB, DATA_JSON, SEED);
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;
    size_t exact, written;
    unsigned char *dst;

    (void)state;
    options.segment_bytes = SEGMENT;
    exact = round_trip(&options, content, 400 * KIB, 1);
    expect_too_small(&options, content, 400 * KIB, exact - 1);
    expect_too_small(&options, content, 400 * KIB, exact / 2);
    expect_too_small(&options, content, 400 * KIB, 10);
    expect_too_small(&options, content, 400 * KIB, 0);
    expect_too_small(NULL, content, 0, 5);
    dst = malloc(exact);
    assert_int_equal(
        segzstd_compress(dst, exact, &written, content, 400 * KIB, &options, 2),
        0);
    assert_int_equal(written, exact);
    free(dst);
    free(content);
}

static void test_compress__with_a_dictionary__round_trips(void **state)
{
    unsigned char *content = data_new(300 * KIB, DATA_JSON, SEED);
    unsigned char *dict = data_new(5000, DATA_JSON, SEED + 1);
    struct oracle_want want = {content, 0, dict, 5000, 0, ORACLE_SIZE_PRESENT};
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;
    segzstd_cache *cache = expect_cache(1, NULL);
    size_t cap = segzstd_compress_bound(300 * KIB), written;
    unsigned char *dst = malloc(cap);

    (void)state;
    assert_int_equal(segzstd_dict_new(&options.dict, cache, dict, 5000), 0);
    for (size_t len = 3 * KIB; len <= 300 * KIB; len *= 10) {
        want.len = len;
        options.segment_bytes = len == 300 * KIB ? SEGMENT : 0;
        assert_int_equal(
            segzstd_compress(dst, cap, &written, content, len, &options, 2), 0);
        expect_no_fault(oracle_check(dst, written, &want));
    }
    segzstd_dict_free(options.dict);
    segzstd_cache_free(cache);
    free(dst);
    free(dict);
    free(content);
}

static void test_compress__size_options__are_not_looked_at(void **state)
{
    unsigned char *content = data_new(100 * KIB, DATA_JSON, SEED);
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

    (void)state;
    options.size = 5;
    options.size_is_certain = 1;
    round_trip(&options, content, 100 * KIB, 2);
    options.size = SEGZSTD_SIZE_UNKNOWN;
    round_trip(&options, content, 100 * KIB, 2);
    free(content);
}

static void test_compress__options_out_of_range__are_refused(void **state)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;
    unsigned char dst[100];
    size_t written;

    (void)state;
    options.level = 100;
    assert_int_equal(
        segzstd_compress(dst, sizeof(dst), &written, "x", 1, &options, 1),
        SEGZSTD_ERR_INVALID);
    options.level = 1;
    assert_int_equal(
        segzstd_compress(dst, sizeof(dst), &written, "x", 1, &options, 2000),
        SEGZSTD_ERR_INVALID);
}

static void test_compress__null_of_length_0__is_an_empty_frame(void **state)
{
    unsigned char dst[64];
    size_t written = 0;
    struct oracle_want want = {"", 0, NULL, 0, 0, ORACLE_SIZE_PRESENT};

    (void)state;
    assert_int_equal(
        segzstd_compress(dst, sizeof(dst), &written, NULL, 0, NULL, 1), 0);
    expect_no_fault(oracle_check(dst, written, &want));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compress__any_size_and_threads__round_trips),
        cmocka_unit_test(test_compress__any_level__round_trips),
        cmocka_unit_test(test_compress__fixed__any_threads_give_the_same_size),
        cmocka_unit_test(test_bound__of_any_content__is_enough),
        cmocka_unit_test(test_bound__of_a_mixture_in_small_windows__is_enough),
        cmocka_unit_test(test_bound__of_too_much__is_0),
        cmocka_unit_test(test_compress__dst_too_small__is_refused),
        cmocka_unit_test(test_compress__with_a_dictionary__round_trips),
        cmocka_unit_test(test_compress__size_options__are_not_looked_at),
        cmocka_unit_test(test_compress__options_out_of_range__are_refused),
        cmocka_unit_test(test_compress__null_of_length_0__is_an_empty_frame),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
