/*
 * The order in which jobs are run and completed, how the content came in, how
 * many threads there are and what the cache did before: none of it is seen in
 * the content, and with fixed segments none of it is seen in the frame's bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "support/env.h"
#include "support/expect.h"

enum {
    KIB = 1 << 10,
    MIB = 1 << 20,
    SEGMENT = 64 * KIB,
    JOBS_MAX = 5,
    SEED = 3
};

/* A frame in memory of its own. */
struct frame {
    unsigned char *bytes;
    size_t len;
};

/* How a frame is made; what must not matter. */
struct way {
    size_t push_bytes;
    bool by_ref;
    bool by_reader;
    enum drive_order order;
    unsigned jobs_held;
    segzstd_executor *executor;
};

/* The content in one push, jobs run as they come. */
static const struct way plain_way = {SIZE_MAX,     false, false,
                                     DRIVE_OLDEST, 1,     NULL};

static struct frame make_frame(segzstd_cache *cache,
                               const segzstd_stream_options *options,
                               const unsigned char *content, size_t len,
                               const struct way *way)
{
    struct drive_source source = {content, len, 0, 0, NULL};
    segzstd_stream *stream = expect_stream(cache, options);
    struct drive d;

    drive_init(&d, stream, len);
    d.push_bytes = way->push_bytes;
    d.order = way->order;
    d.jobs_held = way->jobs_held;
    d.executor = way->executor;
    if (way->by_reader)
        assert_int_equal(drive_push_source(&d, &source, len, SEGZSTD_END), 0);
    else if (way->by_ref)
        assert_int_equal(drive_push_ref(&d, content, len, SEGZSTD_END), 0);
    else
        assert_int_equal(drive_push(&d, content, len, SEGZSTD_END), 0);
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, content, len);
    segzstd_stream_free(stream);
    return (struct frame){d.out, d.out_len};
}

static void expect_same_frame(const struct frame *a, const struct frame *b)
{
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->bytes, b->bytes, a->len);
}

/* Makes the frame in this way too, and compares. */
static void expect_way(segzstd_cache *cache,
                       const segzstd_stream_options *options,
                       const unsigned char *content, size_t len,
                       const struct way *way, const struct frame *want)
{
    struct frame got = make_frame(cache, options, content, len, way);

    expect_same_frame(&got, want);
    free(got.bytes);
}

static segzstd_stream_options fixed_options(int level, size_t segment_bytes)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

    options.level = level;
    options.segment_bytes = segment_bytes;
    return options;
}

/* ------------------------------------------------------------------------ */
/* All orders                                                               */

static void swap(unsigned *a, unsigned *b)
{
    unsigned kept = *a;

    *a = *b;
    *b = kept;
}

/* The next permutation in lexical order; false after the last. */
static bool permute(unsigned *order, unsigned n)
{
    unsigned i = n - 1, k = n - 1;

    while (i > 0 && order[i - 1] > order[i])
        i--;
    if (i == 0)
        return false;
    while (order[k] < order[i - 1])
        k--;
    swap(&order[i - 1], &order[k]);
    for (k = n - 1; i < k; i++, k--)
        swap(&order[i], &order[k]);
    return true;
}

static void test_permute__of_five__gives_all_120(void **state)
{
    unsigned order[JOBS_MAX] = {0, 1, 2, 3, 4};
    unsigned last[JOBS_MAX] = {4, 3, 2, 1, 0};
    unsigned count = 1;

    (void)state;
    while (permute(order, JOBS_MAX))
        count++;
    assert_int_equal(count, 120);
    assert_memory_equal(order, last, sizeof(last));
}

/* Takes the jobs there are, up to `n`, and completes them in the order. All
 * are run before that, or each just before it is completed. */
static unsigned complete_in_order(segzstd_stream *stream, const unsigned *order,
                                  unsigned n, bool run_first)
{
    segzstd_job *jobs[JOBS_MAX];
    unsigned count = 0, left;

    while (count < n) {
        assert_int_equal(segzstd_stream_poll_job(stream, &jobs[count]), 0);
        if (jobs[count] == NULL)
            break;
        count++;
    }
    for (unsigned i = 0; run_first && i < count; i++)
        segzstd_job_run(jobs[i]);
    left = count;
    for (unsigned i = 0; i < n; i++) {
        if (order[i] >= count)
            continue;
        if (!run_first)
            segzstd_job_run(jobs[order[i]]);
        assert_int_equal(segzstd_job_complete(jobs[order[i]]), 0);
        assert_int_equal(segzstd_stream_jobs_out(stream), --left);
    }
    return count;
}

/* Returns how many jobs were out at once. */
static unsigned expect_order(segzstd_cache *cache, size_t segment_bytes,
                             const unsigned char *content, size_t len,
                             const unsigned *order, unsigned n, bool run_first)
{
    segzstd_stream_options options = fixed_options(1, segment_bytes);
    segzstd_stream *stream;
    unsigned count;
    struct drive d;

    options.max_jobs = n;
    stream = expect_stream(cache, &options);
    drive_init(&d, stream, SEED);
    assert_int_equal(
        segzstd_stream_push(stream, content, len, SEGZSTD_END, &(size_t){0}),
        0);
    d.taken = len;
    d.ended = true;
    count = complete_in_order(stream, order, n, run_first);
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, content, len);
    segzstd_stream_free(stream);
    drive_free(&d);
    return count;
}

static void test_complete__fixed_in_any_order__keeps_input_order(void **state)
{
    segzstd_cache *cache = expect_cache(JOBS_MAX, NULL);
    unsigned char *content = data_new(6 * SEGMENT, DATA_MIXTURE, SEED);
    unsigned most = (unsigned)env_pick("jobs", JOBS_MAX, 4);

    (void)state;
    for (unsigned n = 1; n <= most; n++) {
        unsigned order[JOBS_MAX] = {0, 1, 2, 3, 4};

        do {
            size_t len = n * SEGMENT - n;

            assert_int_equal(
                expect_order(cache, SEGMENT, content, len, order, n, true), n);
            assert_int_equal(
                expect_order(cache, SEGMENT, content, len, order, n, false), n);
        } while (permute(order, n));
    }
    free(content);
    segzstd_cache_free(cache);
}

static void test_complete__adaptive_in_any_order__keeps_input_order(
    void **state)
{
    size_t len = env_pick("content", 4 * MIB, 1500 * KIB);
    segzstd_cache *cache = expect_cache(JOBS_MAX, NULL);
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    unsigned n = (unsigned)env_pick("jobs", JOBS_MAX, 3);
    unsigned order[JOBS_MAX] = {0, 1, 2, 3, 4};

    (void)state;
    do {
        assert_true(expect_order(cache, 0, content, len, order, n, false) > 1);
    } while (permute(order, n));
    free(content);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */
/* The same bytes                                                           */

/* Options under which the bytes are compared. */
static segzstd_stream_options options_of_case(unsigned n)
{
    static const int levels[] = {1, 3, 6, -2, 13};
    static const size_t overlaps[] = {0, SEGZSTD_OVERLAP_NONE, 32 * KIB};
    segzstd_stream_options options = fixed_options(levels[n % 5], SEGMENT);

    options.overlap_bytes = overlaps[n % 3];
    options.checksum = n % 2;
    if (n % 4 == 1)
        options.segment_bytes = 150 * 1000;
    if (n % 4 == 2)
        options.window_log = 17;
    return options;
}

/* Content of some segments, the last whole or not, or of less than one. */
static size_t len_of_case(unsigned n)
{
    static const size_t lens[] = {6 * SEGMENT, 500 * 1000,  SEGMENT,
                                  SEGMENT + 1, SEGMENT - 1, 1000};

    return lens[n % 6];
}

enum { CASES = 12 };

static unsigned cases(void)
{
    return (unsigned)env_pick("sets of options", CASES, 2);
}

static void test_fixed__any_chunking__gives_the_same_bytes(void **state)
{
    static const size_t pieces[] = {0, 1000, SEGMENT, SEGMENT + 1};
    segzstd_cache *cache = expect_cache(3, NULL);

    (void)state;
    for (unsigned n = 0, end = cases(); n < end; n++) {
        segzstd_stream_options options = options_of_case(n);
        size_t len = len_of_case(n);
        unsigned char *content =
            data_new(len, (enum data_kind)(n % DATA_KINDS), SEED);
        struct frame want =
            make_frame(cache, &options, content, len, &plain_way);

        for (size_t i = 0; i < 4; i++) {
            struct way way = plain_way;

            way.push_bytes = pieces[i];
            expect_way(cache, &options, content, len, &way, &want);
            way.by_ref = true;
            expect_way(cache, &options, content, len, &way, &want);
            way.jobs_held = 0;
            expect_way(cache, &options, content, len, &way, &want);
            way.by_reader = true;
            expect_way(cache, &options, content, len, &way, &want);
        }
        free(want.bytes);
        free(content);
    }
    segzstd_cache_free(cache);
}

/* The whole content as one push without its end, in one of three ways. */
static void push_without_end(struct drive *d, struct drive_source *source,
                             unsigned how)
{
    size_t len = (size_t)source->len;

    d->push_bytes = len;
    source->drive = d;
    if (how == 0)
        assert_int_equal(drive_push(d, source->content, len, SEGZSTD_CONTINUE),
                         0);
    else if (how == 1)
        assert_int_equal(
            drive_push_ref(d, source->content, len, SEGZSTD_CONTINUE), 0);
    else
        assert_int_equal(drive_push_source(d, source, len, SEGZSTD_CONTINUE),
                         0);
}

/* The end comes alone, after all the content was compressed that may be. */
static void test_fixed__end_comes_late__gives_the_same_bytes(void **state)
{
    static const size_t lens[] = {
        0,       1,           1000,        SEGMENT - 1,
        SEGMENT, SEGMENT + 1, 2 * SEGMENT, 3 * SEGMENT - 1};
    segzstd_cache *cache = expect_cache(3, NULL);
    unsigned char *content = data_new(3 * SEGMENT, DATA_TEXT, SEED);
    segzstd_stream_options options = fixed_options(3, SEGMENT);

    (void)state;
    for (size_t i = 0; i < 8; i++) {
        struct frame want =
            make_frame(cache, &options, content, lens[i], &plain_way);

        for (unsigned how = 0; how < 3; how++) {
            struct drive_source source = {content, lens[i], 0, 0, NULL};
            segzstd_stream *stream = expect_stream(cache, &options);
            struct frame got;
            struct drive d;

            drive_init(&d, stream, SEED);
            push_without_end(&d, &source, how);
            assert_int_equal(drive_rest(&d), 0);
            assert_int_equal(drive_end(&d), 0);
            expect_frame(&d, content, lens[i]);
            got = (struct frame){d.out, d.out_len};
            expect_same_frame(&got, &want);
            segzstd_stream_free(stream);
            free(got.bytes);
        }
        free(want.bytes);
    }
    free(content);
    segzstd_cache_free(cache);
}

static void test_fixed__any_order__gives_the_same_bytes(void **state)
{
    static const enum drive_order orders[] = {DRIVE_OLDEST, DRIVE_NEWEST,
                                              DRIVE_ANY};

    (void)state;
    for (unsigned n = 0, end = cases(); n < end; n++) {
        segzstd_cache *cache = expect_cache(1 + n % 5, NULL);
        segzstd_stream_options options = options_of_case(n);
        size_t len = len_of_case(n);
        unsigned char *content =
            data_new(len, (enum data_kind)(n % DATA_KINDS), SEED);
        struct frame want =
            make_frame(cache, &options, content, len, &plain_way);

        for (size_t i = 0; i < 6; i++) {
            struct way way = plain_way;

            way.order = orders[i % 3];
            way.jobs_held = (unsigned)(i / 3 * 3);
            way.push_bytes = 0;
            expect_way(cache, &options, content, len, &way, &want);
        }
        free(want.bytes);
        free(content);
        segzstd_cache_free(cache);
    }
}

static void test_fixed__1_to_8_threads__give_the_same_bytes(void **state)
{
    static const unsigned threads[] = {1, 2, 3, 5, 8};
    size_t len = env_pick("content", 1500 * 1000, 300 * 1000);
    segzstd_stream_options options = fixed_options(2, SEGMENT);
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    segzstd_cache *cache = expect_cache(1, NULL);
    struct frame want = make_frame(cache, &options, content, len, &plain_way);

    (void)state;
    segzstd_cache_free(cache);
    for (size_t i = 0; i < 5; i++) {
        struct way way = plain_way;

        cache = expect_cache(threads[i], NULL);
        assert_int_equal(
            segzstd_executor_new(&way.executor, threads[i], NULL, NULL), 0);
        way.jobs_held = 0;
        expect_way(cache, &options, content, len, &way, &want);
        way.push_bytes = 0;
        expect_way(cache, &options, content, len, &way, &want);
        way.by_reader = true;
        expect_way(cache, &options, content, len, &way, &want);
        segzstd_executor_free(way.executor);
        segzstd_cache_free(cache);
    }
    free(want.bytes);
    free(content);
}

/* Encoders come back with the tables and parameters of other streams. */
static void test_fixed__used_cache__gives_the_same_bytes(void **state)
{
    segzstd_cache *used = expect_cache(3, NULL);
    size_t other_len = 700 * 1000;
    unsigned char *other = data_new(other_len, DATA_MIXTURE, SEED + 1);

    (void)state;
    for (unsigned n = 0, end = cases(); n < end; n++) {
        segzstd_cache *fresh = expect_cache(3, NULL);
        segzstd_stream_options options = options_of_case(n);
        segzstd_stream_options other_options = options_of_case(n + 1);
        size_t len = len_of_case(n);
        unsigned char *content =
            data_new(len, (enum data_kind)(n % DATA_KINDS), SEED);
        struct frame want =
            make_frame(fresh, &options, content, len, &plain_way);
        struct frame unused;

        unused =
            make_frame(used, &other_options, other, other_len - n, &plain_way);
        free(unused.bytes);
        expect_way(used, &options, content, len, &plain_way, &want);
        unused = make_frame(used, &options, other, other_len - n, &plain_way);
        free(unused.bytes);
        expect_way(used, &options, content, len, &plain_way, &want);
        segzstd_cache_free(fresh);
        free(want.bytes);
        free(content);
    }
    free(other);
    segzstd_cache_free(used);
}

/* Jobs that come back without having been run are given out again. */
static void test_fixed__jobs_returned__gives_the_same_bytes(void **state)
{
    size_t len = 6 * SEGMENT + 1;
    segzstd_stream_options options = fixed_options(3, SEGMENT);
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    segzstd_cache *cache = expect_cache(4, NULL);
    struct frame want = make_frame(cache, &options, content, len, &plain_way);
    segzstd_stream *stream = expect_stream(cache, &options);
    struct frame got;
    struct drive d;

    (void)state;
    drive_init(&d, stream, SEED);
    d.order = DRIVE_ANY;
    assert_int_equal(drive_push(&d, content, len, SEGZSTD_END), 0);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(drive_take(&d), 0);
        if (d.job_count > 0 && i % 4 == 0)
            assert_int_equal(drive_run_one(&d), 0);
        else if (d.job_count > 0)
            assert_int_equal(drive_return_one(&d), 0);
    }
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, content, len);
    got = (struct frame){d.out, d.out_len};
    expect_same_frame(&got, &want);
    segzstd_stream_free(stream);
    segzstd_cache_free(cache);
    free(got.bytes);
    free(want.bytes);
    free(content);
}

/* ------------------------------------------------------------------------ */
/* One segment                                                              */

static struct frame make_plain_frame(const segzstd_stream_options *options,
                                     const unsigned char *content, size_t len)
{
    struct frame frame = {malloc(ZSTD_compressBound(len)), 0};
    ZSTD_CCtx *encoder = ZSTD_createCCtx();

    assert_non_null(frame.bytes);
    assert_non_null(encoder);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_compressionLevel, options->level);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_checksumFlag, options->checksum);
    if (options->window_log != 0)
        ZSTD_CCtx_setParameter(encoder, ZSTD_c_windowLog,
                               (int)options->window_log);
    frame.len = ZSTD_compress2(encoder, frame.bytes, ZSTD_compressBound(len),
                               content, len);
    assert_false(ZSTD_isError(frame.len));
    ZSTD_freeCCtx(encoder);
    return frame;
}

static void expect_plain_frame(segzstd_cache *cache,
                               const segzstd_stream_options *options,
                               const unsigned char *content, size_t len,
                               const struct way *way)
{
    struct frame want = make_plain_frame(options, content, len);

    expect_way(cache, options, content, len, way, &want);
    free(want.bytes);
}

static void test_one_segment__any_level__is_what_compress2_gives(void **state)
{
    int top = (int)env_pick("highest level", 19, 7);
    size_t most = env_pick("content", MIB, 200 * KIB);
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(MIB, DATA_JSON, SEED);

    (void)state;
    for (int level = -7; level <= top; level++) {
        size_t len = level > 12 ? 200 * KIB : most;
        segzstd_stream_options options = fixed_options(level, 2 * MIB);

        if (level == 0)
            continue;
        expect_plain_frame(cache, &options, content, len, &plain_way);
    }
    free(content);
    segzstd_cache_free(cache);
}

static void test_one_segment__any_size__is_what_compress2_gives(void **state)
{
    static const size_t lens[] = {
        0,       1,     2,         255,           256,    257,    4000,
        SEGMENT, 65791, 128 * KIB, 128 * KIB + 1, 300000, MIB - 1};
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(MIB, DATA_MIXTURE, SEED);

    (void)state;
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        segzstd_stream_options options = fixed_options(3, MIB);
        struct way way = plain_way;

        expect_plain_frame(cache, &options, content, lens[i], &way);
        options.checksum = 1;
        way.push_bytes = 0;
        expect_plain_frame(cache, &options, content, lens[i], &way);
        options.level = 9;
        way.by_ref = true;
        expect_plain_frame(cache, &options, content, lens[i], &way);
    }
    free(content);
    segzstd_cache_free(cache);
}

static void test_one_segment__any_kind__is_what_compress2_gives(void **state)
{
    segzstd_cache *cache = expect_cache(2, NULL);

    (void)state;
    for (int kind = 0; kind < DATA_KINDS; kind++) {
        unsigned char *content =
            data_new(500 * KIB, (enum data_kind)kind, SEED);
        segzstd_stream_options options = fixed_options(5, MIB);

        expect_plain_frame(cache, &options, content, 500 * KIB, &plain_way);
        options.window_log = 16;
        options.level = 7;
        expect_plain_frame(cache, &options, content, 500 * KIB, &plain_way);
        free(content);
    }
    segzstd_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permute__of_five__gives_all_120),
        cmocka_unit_test(test_complete__fixed_in_any_order__keeps_input_order),
        cmocka_unit_test(
            test_complete__adaptive_in_any_order__keeps_input_order),
        cmocka_unit_test(test_fixed__any_chunking__gives_the_same_bytes),
        cmocka_unit_test(test_fixed__end_comes_late__gives_the_same_bytes),
        cmocka_unit_test(test_fixed__any_order__gives_the_same_bytes),
        cmocka_unit_test(test_fixed__1_to_8_threads__give_the_same_bytes),
        cmocka_unit_test(test_fixed__used_cache__gives_the_same_bytes),
        cmocka_unit_test(test_fixed__jobs_returned__gives_the_same_bytes),
        cmocka_unit_test(test_one_segment__any_level__is_what_compress2_gives),
        cmocka_unit_test(test_one_segment__any_size__is_what_compress2_gives),
        cmocka_unit_test(test_one_segment__any_kind__is_what_compress2_gives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
