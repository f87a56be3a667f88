#include "plan.h"

#include "encoder.h"

#include <stdlib.h>
#include <zstd.h>

#include "support/expect.h"

/* All levels that have a row of their own, and some of the fast ones. */
static const int levels[] = {-131072, -1000, -50, -8, -7, -6, -5, -4, -3,
                             -2,      -1,    0,   1,  2,  3,  4,  5,  6,
                             7,       8,     9,   10, 11, 12, 13, 14, 15,
                             16,      17,    18,  19, 20, 21, 22};

enum { LEVELS = sizeof(levels) / sizeof(levels[0]) };

/* ---- windows ---- */

/* Window_Descriptor of a stream of unknown size, as libzstd writes it. */
static unsigned libzstd_window_log(int level)
{
    static char out[1 << 18];
    ZSTD_inBuffer in = {"some content", 12, 0};
    ZSTD_outBuffer dst = {out, sizeof(out), 0};
    ZSTD_CCtx *cctx = ZSTD_createCCtx();
    unsigned char descriptor;

    assert_non_null(cctx);
    ZSTD_CCtx_setParameter(cctx, ZSTD_c_compressionLevel, level);
    assert_int_equal(ZSTD_compressStream2(cctx, &dst, &in, ZSTD_e_flush), 0);
    ZSTD_freeCCtx(cctx);
    /* not a single segment, and a window that is a power of two */
    assert_int_equal(out[4] & 0x20, 0);
    descriptor = (unsigned char)out[5];
    assert_int_equal(descriptor & 7, 0);
    return 10 + (descriptor >> 3);
}

/* Before 1.5.0 the window of level 9 was half as large. */
static void test_level_window_log__all_levels__are_libzstds(void **state)
{
    (void)state;
    for (int i = 0; i < LEVELS; i++)
        if (levels[i] != 9 || ZSTD_versionNumber() >= 10500)
            assert_int_equal(segzstd__plan_level_window_log(levels[i]),
                             libzstd_window_log(levels[i]));
}

/* A later libzstd may have more levels; the window must still be one. */
static void test_level_window_log__level_to_come__is_the_last(void **state)
{
    (void)state;
    assert_int_equal(segzstd__plan_level_window_log(23),
                     segzstd__plan_level_window_log(22));
    assert_int_equal(segzstd__plan_level_window_log(INT32_MAX),
                     segzstd__plan_level_window_log(22));
}

static void test_window_log__size_unknown__is_the_levels_up_to_the_cap(
    void **state)
{
    (void)state;
    for (int i = 0; i < LEVELS; i++) {
        unsigned own = segzstd__plan_level_window_log(levels[i]);

        for (unsigned cap = 10; cap <= 31; cap++)
            assert_int_equal(segzstd__plan_window_log(
                                 levels[i], cap, SEGZSTD_SIZE_UNKNOWN, false),
                             own < cap ? own : cap);
    }
}

/* No larger than needed, so that tables are small, but never so small that a
 * certain size does not fit while the level would have room for it. */
static void test_window_log__certain_size__just_fits(void **state)
{
    (void)state;
    for (unsigned log = 0; log < 63; log++) {
        for (int delta = -1; delta <= 1; delta++) {
            uint64_t size = ((uint64_t)1 << log) + (uint64_t)(int64_t)delta;
            unsigned got = segzstd__plan_window_log(19, 23, size, true);

            assert_in_range(got, 10, 23);
            assert_true(got == 23 || (uint64_t)1 << got >= size);
            assert_true(got == 10 || (uint64_t)1 << (got - 1) < size);
        }
    }
    assert_int_equal(segzstd__plan_window_log(1, 23, UINT64_MAX - 1, true), 19);
}

/* A stream may outgrow its hint by far. */
static void test_window_log__hinted_size__is_at_least_one_block(void **state)
{
    (void)state;
    for (uint64_t size = 0; size <= 128 * KIB; size = 2 * size + 1) {
        assert_int_equal(segzstd__plan_window_log(3, 23, size, false), 17);
        assert_int_equal(segzstd__plan_window_log(3, 12, size, false), 12);
    }
    assert_int_equal(segzstd__plan_window_log(3, 23, 128 * KIB + 1, false), 18);
    assert_int_equal(segzstd__plan_window_log(3, 23, 100 * MIB, false), 21);
}

/* ---- overlap and jobs ---- */

static void test_overlap__any_numbers__is_in_window_and_part(void **state)
{
    (void)state;
    for (int i = 0; i < LEVELS; i++)
        for (unsigned log = 10; log <= 31; log++)
            for (uint64_t part = 0; part < (uint64_t)1 << 50;
                 part = part * 3 + 1) {
                size_t cut = segzstd__plan_overlap(levels[i], log, part, false);
                size_t regular =
                    segzstd__plan_overlap(levels[i], log, part, true);

                assert_true(cut <= (size_t)1 << log);
                assert_true(cut <= (levels[i] >= 5 && levels[i] <= 9
                                        ? part - part / 4
                                        : part / 2));
                /* what all segments have costs more than what one has */
                assert_true(regular <= cut && regular <= part / 8);
                assert_true(regular != 0 || part < 1 * MIB);
            }
}

static void test_overlap__more_window_or_part__is_not_less(void **state)
{
    (void)state;
    for (int i = 0; i < LEVELS; i++)
        for (unsigned log = 10; log < 31; log++)
            for (uint64_t part = 0; part < 1000 * MIB; part += 1 + part / 3) {
                size_t n = segzstd__plan_overlap(levels[i], log, part, true);

                assert_true(
                    segzstd__plan_overlap(levels[i], log + 1, part, true) >= n);
                assert_true(segzstd__plan_overlap(levels[i], log, part + 99999,
                                                  true) >= n);
            }
}

static void test_job_bytes__any_level__are_whole_blocks_and_fall(void **state)
{
    size_t before = SIZE_MAX;

    (void)state;
    for (int i = 0; i < LEVELS; i++) {
        size_t n = segzstd__plan_job_bytes(levels[i]);

        assert_true(n != 0 && n % BLOCK_BYTES_MAX == 0);
        assert_in_range(n, BLOCK_BYTES_MAX, 4 * MIB);
        assert_true(n <= before);
        assert_in_range(segzstd__plan_whole_bytes(levels[i]), BLOCK_BYTES_MAX,
                        n);
        assert_in_range(segzstd__plan_first_bytes(levels[i]), 16 * KIB,
                        BLOCK_BYTES_MAX);
        before = n;
    }
}

/* ---- cuts ---- */

/* What both parts of a cut have at least, as the header says: worth a hop to
 * another thread. The part that is kept is rounded down to whole blocks. */
static void expect_cut(int level, size_t overlap, uint64_t waiting,
                       unsigned idle, bool late)
{
    uint64_t least = level <= 4 ? 512 * KIB : 256 * KIB;
    uint64_t keep = segzstd__plan_keep(level, overlap, waiting, idle, late);

    if (late)
        least *= 2;
    if (overlap / 2 > least)
        least = overlap / 2;
    assert_int_equal(keep == 0, waiting < 2 * least);
    if (keep == 0)
        return;
    assert_int_equal(keep % BLOCK_BYTES_MAX, 0);
    assert_true(keep > least - BLOCK_BYTES_MAX);
    assert_true(waiting - keep >= least);
    /* The own encoder has no priming to do, so it keeps at least its share. */
    assert_true(keep + BLOCK_BYTES_MAX > waiting / (idle + 1));
}

static void test_keep__grid_of_numbers__both_parts_are_worth_it(void **state)
{
    static const size_t overlaps[] = {0,         1,       128 * KIB,
                                      256 * KIB, 700001,  1 * MIB,
                                      3 * MIB,   8 * MIB, (size_t)1 << 31};
    static const unsigned idles[] = {1, 2, 3, 7, 64, 1024};

    (void)state;
    for (int i = 0; i < LEVELS; i++)
        for (size_t k = 0; k < sizeof(overlaps) / sizeof(overlaps[0]); k++)
            for (size_t m = 0; m < sizeof(idles) / sizeof(idles[0]); m++)
                for (uint64_t waiting = 0; waiting < (uint64_t)1 << 42;
                     waiting += 1 + waiting / 7)
                    expect_cut(levels[i], overlaps[k], waiting, idles[m],
                               waiting % 3 == 0);
}

static void test_keep__just_enough__cuts_in_the_middle(void **state)
{
    (void)state;
    assert_int_equal(segzstd__plan_keep(3, 256 * KIB, 1 * MIB - 1, 1, false),
                     0);
    assert_int_equal(segzstd__plan_keep(3, 256 * KIB, 1 * MIB, 1, false),
                     512 * KIB);
    assert_int_equal(segzstd__plan_keep(9, 256 * KIB, 512 * KIB - 1, 1, false),
                     0);
    assert_int_equal(segzstd__plan_keep(9, 256 * KIB, 512 * KIB, 1, false),
                     256 * KIB);
    /* a tail after a first cut must be longer */
    assert_int_equal(segzstd__plan_keep(9, 256 * KIB, 1 * MIB - 1, 1, true), 0);
    assert_int_equal(segzstd__plan_keep(9, 256 * KIB, 1 * MIB, 1, true),
                     512 * KIB);
}

/* 8 MiB for itself and 3 others, each of whom has 1 MiB to be primed with, a
 * quarter or half as dear as compressing: (8 + 3 / 4) / 4 and (8 + 3 / 2) / 4,
 * in whole blocks. */
static void test_keep__several_idle__shares_with_all(void **state)
{
    (void)state;
    assert_int_equal(segzstd__plan_keep(12, 1 * MIB, 8 * MIB, 3, false),
                     2 * MIB + 128 * KIB);
    assert_int_equal(segzstd__plan_keep(15, 1 * MIB, 8 * MIB, 3, false),
                     2 * MIB + 384 * KIB);
    /* more idle than there is work for: as if there were fewer */
    assert_int_equal(segzstd__plan_keep(9, 0, 1 * MIB, 1000, false),
                     segzstd__plan_keep(9, 0, 1 * MIB, 3, false));
}

/* ---- extents ---- */

static void test_extent_bytes__left_is_known__room_for_it(void **state)
{
    (void)state;
    assert_int_equal(segzstd__plan_extent_bytes(1, 0, 16 * MIB), 16 * KIB);
    assert_int_equal(segzstd__plan_extent_bytes(16 * KIB, 0, 16 * MIB),
                     16 * KIB);
    assert_int_equal(segzstd__plan_extent_bytes(99999, 0, 16 * MIB), 99999);
    assert_int_equal(segzstd__plan_extent_bytes(5 * MIB, 0, 16 * MIB), 5 * MIB);
    assert_int_equal(segzstd__plan_extent_bytes(17 * MIB, 0, 16 * MIB),
                     16 * MIB);
    assert_int_equal(segzstd__plan_extent_bytes(UINT64_MAX - 1, 0, 16 * MIB),
                     16 * MIB);
}

static void expect_steps(uint64_t left, size_t max)
{
    size_t before = 0;

    for (uint64_t run = 0; run < (uint64_t)1 << 40; run += 1 + run / 5) {
        size_t n = segzstd__plan_extent_bytes(left, run, max);

        assert_true(n >= before && n <= max && n >= min_size(max, 8 * KIB));
        assert_true(n > run || n == max || run >= 16 * MIB);
        before = n;
    }
    assert_int_equal(before, max);
}

/* A stream that ran over its hint has nothing left of it. */
static void test_extent_bytes__unknown_or_used_up__grow_with_the_run(
    void **state)
{
    static const size_t max[] = {256 * KIB, 16 * MIB, 300 * MIB, 8 * KIB};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        expect_steps(SEGZSTD_SIZE_UNKNOWN, max[i]);
        expect_steps(0, max[i]);
    }
    /* ten thousand event streams have one of these each */
    assert_true(segzstd__plan_extent_bytes(SEGZSTD_SIZE_UNKNOWN, 0, 16 * MIB) <=
                16 * KIB);
}

/* ---- memory ---- */

/* What an encoder takes for a run of 2^log bytes, behind an overlap. */
static uint64_t bytes_taken(int level, unsigned log, size_t overlap,
                            bool stable_input)
{
    static uint8_t content[(8 << 20) + 100], out[1 << 10];
    struct segzstd__run run = {.level = level,
                               .window_log = log,
                               .base = content + overlap,
                               .len_max = (size_t)1 << log,
                               .prefix = content,
                               .prefix_len = overlap,
                               .stable_input = stable_input,
                               .at_frame_start = overlap == 0};
    struct segzstd__encoder *encoder;
    struct segzstd__mem mem;
    uint64_t bytes;
    size_t written;
    bool done;

    assert_true(overlap + 100 <= sizeof(content));
    segzstd__mem_init(&mem, NULL, 0, true);
    encoder = segzstd__encoder_new(&mem);
    assert_non_null(encoder);
    assert_int_equal(segzstd__encoder_begin(encoder, &run), 0);
    assert_int_equal(
        segzstd__encoder_flush(encoder, 100, out, sizeof(out), &written, &done),
        0);
    bytes = mem.table_used;
    segzstd__encoder_free(encoder);
    return bytes;
}

static void expect_encoder_bytes(bool stable_input)
{
    for (int i = 0; i < LEVELS; i++) {
        int level = levels[i] != 0 ? levels[i] : 3;

        for (unsigned log = 10; log <= 25; log++) {
            size_t most = segzstd__plan_overlap(level, log, UINT64_MAX, false);

            for (size_t overlap = 0; overlap <= most; overlap += most)
                assert_in_range(bytes_taken(level, log, overlap, stable_input),
                                1,
                                segzstd__plan_encoder_bytes(level, log, overlap,
                                                            stable_input));
        }
    }
}

/* Budgets are planned with it: it is never too low, and not much too high where
 * that counts. */
static void test_encoder_bytes__all_levels__is_what_libzstd_takes(void **state)
{
    static const int dear[] = {12, 15, 19, 22};

    (void)state;
    if (!segzstd__encoder_has_custom_alloc()) {
        print_message("not seen: this libzstd allocates by itself\n");
        skip();
    }
    expect_encoder_bytes(false);
    if (!segzstd__encoder_has_stable_input())
        return;
    expect_encoder_bytes(true);
    for (size_t i = 0; i < 4; i++)
        assert_in_range(segzstd__plan_encoder_bytes(dear[i], 23, 4 << 20, true),
                        1, bytes_taken(dear[i], 23, 4 << 20, true) * 5 / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_level_window_log__all_levels__are_libzstds),
        cmocka_unit_test(test_encoder_bytes__all_levels__is_what_libzstd_takes),
        cmocka_unit_test(test_level_window_log__level_to_come__is_the_last),
        cmocka_unit_test(
            test_window_log__size_unknown__is_the_levels_up_to_the_cap),
        cmocka_unit_test(test_window_log__certain_size__just_fits),
        cmocka_unit_test(test_window_log__hinted_size__is_at_least_one_block),
        cmocka_unit_test(test_overlap__any_numbers__is_in_window_and_part),
        cmocka_unit_test(test_overlap__more_window_or_part__is_not_less),
        cmocka_unit_test(test_job_bytes__any_level__are_whole_blocks_and_fall),
        cmocka_unit_test(test_keep__grid_of_numbers__both_parts_are_worth_it),
        cmocka_unit_test(test_keep__just_enough__cuts_in_the_middle),
        cmocka_unit_test(test_keep__several_idle__shares_with_all),
        cmocka_unit_test(test_extent_bytes__left_is_known__room_for_it),
        cmocka_unit_test(
            test_extent_bytes__unknown_or_used_up__grow_with_the_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
