/*
 * Adaptive segmentation: a cut is made for a worker that has nothing to do,
 * and for no other reason; and there are never more jobs out than workers.
 */
#include <stdlib.h>
#include <string.h>

#include "support/env.h"
#include "support/expect.h"

enum { KIB = 1 << 10, MIB = 1 << 20, SEED = 9 };

static segzstd_stream_options level_options(int level)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

    options.level = level;
    return options;
}

/* Pushes what fits, and takes no job. */
static size_t push_some(struct drive *d, const unsigned char *src, size_t len)
{
    size_t taken;

    assert_int_equal(
        segzstd_stream_push(d->stream, src, len, SEGZSTD_CONTINUE, &taken), 0);
    d->taken += taken;
    return taken;
}

static size_t plain_size(const unsigned char *content, size_t len, int level)
{
    size_t bound = ZSTD_compressBound(len);
    unsigned char *dst = malloc(bound);
    size_t size;

    assert_non_null(dst);
    size = ZSTD_compress(dst, bound, content, len, level);
    assert_false(ZSTD_isError(size));
    free(dst);
    return size;
}

/* ------------------------------------------------------------------------ */

/* The stream is the one encoder's, whatever the pieces: also in its size. */
static void test_split__one_worker__never(void **state)
{
    static const size_t pieces[] = {0, 100 * KIB, MIB, SIZE_MAX};
    size_t len = env_pick("content", 10 * MIB, MIB);
    segzstd_cache *cache = expect_cache(1, NULL);
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    size_t plain = plain_size(content, len, 3);

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        segzstd_stream_options options = level_options(3);
        segzstd_stream_stats stats;
        struct drive d;

        options.size = len;
        drive_init(&d, expect_stream(cache, &options), SEED);
        d.push_bytes = pieces[i];
        assert_int_equal(drive_push(&d, content, len, SEGZSTD_END), 0);
        assert_int_equal(drive_end(&d), 0);
        expect_frame(&d, content, len);
        stats = expect_stream_stats(d.stream);
        assert_int_equal(stats.splits, 0);
        assert_int_equal(stats.segments, 1);
        assert_int_equal(stats.encoders, 1);
        assert_int_equal(stats.jobs_peak, 1);
        assert_true(d.out_len <= plain + plain / 100);
        segzstd_stream_free(d.stream);
        drive_free(&d);
    }
    assert_int_equal(expect_cache_stats(cache).splits, 0);
    free(content);
    segzstd_cache_free(cache);
}

/* Of unknown length: larger and larger extents are begun, a few in all. */
static void test_split__one_worker_and_no_hint__never(void **state)
{
    size_t len = env_pick("content", 12 * MIB, MIB);
    segzstd_stream_options options = level_options(1);
    segzstd_cache *cache = expect_cache(1, NULL);
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    size_t plain = plain_size(content, len, 1);

    (void)state;
    for (size_t piece = 20 * KIB; piece <= 8 * MIB; piece *= 20) {
        segzstd_stream_stats stats;
        struct drive d;

        drive_init(&d, expect_stream(cache, &options), SEED);
        d.push_bytes = piece;
        assert_int_equal(drive_push(&d, content, len, SEGZSTD_END), 0);
        assert_int_equal(drive_end(&d), 0);
        expect_frame(&d, content, len);
        stats = expect_stream_stats(d.stream);
        assert_int_equal(stats.splits, 0);
        assert_true(stats.segments <= 5);
        assert_int_equal(stats.jobs_peak, 1);
        assert_true(d.out_len <= plain + plain / 100);
        segzstd_stream_free(d.stream);
        drive_free(&d);
    }
    free(content);
    segzstd_cache_free(cache);
}

static void test_split__other_worker_busy__waits_until_it_is_idle(void **state)
{
    segzstd_stream_options options = level_options(6);
    size_t len = 8 * MIB;
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    struct drive a, b;

    (void)state;
    drive_init(&a, expect_stream(cache, &options), SEED);
    drive_init(&b, expect_stream(cache, &options), SEED);
    assert_int_equal(drive_push(&a, content, 100 * KIB, SEGZSTD_FLUSH), 0);
    assert_int_equal(a.job_count, 1);

    assert_int_equal(push_some(&b, content, len), len);
    assert_int_equal(drive_take(&b), 0);
    assert_int_equal(b.job_count, 1);
    assert_int_equal(expect_cache_stats(cache).jobs_out, 2);
    assert_true(segzstd_stream_want_job(b.stream));
    assert_int_equal(expect_stream_stats(b.stream).splits, 0);

    assert_int_equal(drive_run_one(&a), 0);
    assert_int_equal(drive_take(&b), 0);
    assert_int_equal(b.job_count, 2);
    assert_int_equal(expect_stream_stats(b.stream).splits, 1);
    assert_int_equal(expect_cache_stats(cache).splits, 1);
    assert_int_equal(expect_cache_stats(cache).jobs_out, 2);

    assert_int_equal(drive_end(&b), 0);
    expect_frame(&b, content, len);
    assert_int_equal(drive_end(&a), 0);
    expect_frame(&a, content, 100 * KIB);
    segzstd_stream_free(a.stream);
    segzstd_stream_free(b.stream);
    drive_free(&a);
    drive_free(&b);
    free(content);
    segzstd_cache_free(cache);
}

static void test_split__all_workers_idle__uses_all(void **state)
{
    size_t len = 8 * MIB;
    segzstd_stream_options options = level_options(3);
    segzstd_cache *cache = expect_cache(4, NULL);
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    struct drive d;

    (void)state;
    drive_init(&d, expect_stream(cache, &options), SEED);
    assert_int_equal(push_some(&d, content, len), len);
    assert_int_equal(drive_take(&d), 0);
    assert_int_equal(d.job_count, 4);
    assert_int_equal(expect_stream_stats(d.stream).splits, 3);
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, content, len);
    segzstd_stream_free(d.stream);
    drive_free(&d);
    free(content);
    segzstd_cache_free(cache);
}

static void test_split__little_input__never(void **state)
{
    static const size_t lens[] = {1, 2000, 20 * KIB};
    segzstd_cache *cache = expect_cache(4, NULL);
    unsigned char *content = data_new(20 * KIB, DATA_JSON, SEED);

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        segzstd_stream_options options = level_options(3);
        struct drive d;

        drive_init(&d, expect_stream(cache, &options), SEED);
        assert_int_equal(drive_push(&d, content, lens[i], SEGZSTD_END), 0);
        assert_int_equal(drive_end(&d), 0);
        expect_frame(&d, content, lens[i]);
        assert_int_equal(expect_stream_stats(d.stream).splits, 0);
        segzstd_stream_free(d.stream);
        drive_free(&d);
    }
    free(content);
    segzstd_cache_free(cache);
}

static void test_max_jobs__smaller_than_workers__is_honoured(void **state)
{
    size_t len = env_pick("content", 8 * MIB, 4 * MIB);
    segzstd_cache *cache = expect_cache(4, NULL);
    unsigned char *content = data_new(len, DATA_JSON, SEED);

    (void)state;
    for (unsigned n = 1; n <= 6; n++) {
        segzstd_stream_options options = level_options(1);
        segzstd_stream_stats stats;
        struct drive d;

        options.max_jobs = n % 4;
        options.segment_bytes = n > 3 ? 64 * KIB : 0;
        drive_init(&d, expect_stream(cache, &options), SEED);
        assert_int_equal(drive_push(&d, content, len, SEGZSTD_END), 0);
        assert_int_equal(drive_end(&d), 0);
        expect_frame(&d, content, len);
        stats = expect_stream_stats(d.stream);
        assert_int_equal(stats.jobs_peak, n % 4 == 0 ? 4 : n % 4);
        if (n == 1)
            assert_int_equal(stats.splits, 0);
        segzstd_stream_free(d.stream);
        drive_free(&d);
    }
    free(content);
    segzstd_cache_free(cache);
}

/* A closed segment, shorter than a block but longer than a first job, is no
 * whole number of blocks. Its first job was empty, and so were all that followed
 * it. */
static void test_first_job__closed_segment_below_a_block__goes_on(void **state)
{
    enum { PART = 100 * KIB, LEN = 300 * KIB };
    static const int levels[] = {3, 5, 9, 19};
    unsigned char *content = data_new(LEN, DATA_JSON, SEED);

    (void)state;
    for (int i = 0; i < 4; i++) {
        segzstd_stream_options options = level_options(levels[i]);
        segzstd_cache *cache = expect_cache(1, NULL);
        struct drive d;

        drive_init(&d, expect_stream(cache, &options), SEED);
        assert_int_equal(segzstd_stream_push_ref(d.stream, content, PART,
                                                 SEGZSTD_CONTINUE, NULL, NULL),
                         0);
        d.taken += PART;
        assert_int_equal(
            drive_push(&d, content + PART, LEN - PART, SEGZSTD_END), 0);
        assert_int_equal(drive_end(&d), 0);
        expect_frame(&d, content, LEN);
        assert_true(expect_stream_stats(d.stream).jobs_peak == 1);
        segzstd_stream_free(d.stream);
        drive_free(&d);
        segzstd_cache_free(cache);
    }
    free(content);
}

/* As a host does for a reader that is slow: while one job is allowed there is
 * no cut, whatever is idle; then there are again as many as before. */
static void test_set_max_jobs__one__makes_no_cut(void **state)
{
    enum { LEN = 8 * MIB };
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(LEN, DATA_JSON, SEED);
    segzstd_stream_options options = level_options(5);
    segzstd_job *job, *none;
    struct drive d;

    (void)state;
    drive_init(&d, expect_stream(cache, &options), SEED);
    segzstd_stream_set_max_jobs(d.stream, 1);
    push_some(&d, content, LEN);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(segzstd_stream_poll_job(d.stream, &job), 0);
        assert_non_null(job);
        assert_int_equal(segzstd_stream_poll_job(d.stream, &none), 0);
        assert_null(none);
        assert_false(segzstd_stream_want_job(d.stream));
        segzstd_job_run(job);
        assert_int_equal(segzstd_job_complete(job), 0);
    }
    assert_int_equal(expect_stream_stats(d.stream).splits, 0);
    segzstd_stream_set_max_jobs(d.stream, 0);
    assert_int_equal(
        drive_push(&d, content + d.taken, LEN - (size_t)d.taken, SEGZSTD_END),
        0);
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, content, LEN);
    assert_true(expect_stream_stats(d.stream).splits >= 1);
    segzstd_stream_free(d.stream);
    drive_free(&d);
    free(content);
    segzstd_cache_free(cache);
}

/* A job that was refused for busy workers is to be had again when one is
 * free, and until then it is announced. */
static void test_want_job__refused_by_busy_workers__still_holds(void **state)
{
    segzstd_stream_options options = level_options(1);
    segzstd_cache *cache = expect_cache(2, NULL);
    struct drive d[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        drive_init(&d[i], expect_stream(cache, &options), SEED);
        assert_int_equal(drive_push(&d[i], "hello", 5, SEGZSTD_END), 0);
        assert_int_equal(d[i].job_count, i < 2);
    }
    assert_true(segzstd_stream_want_job(d[2].stream));
    assert_int_equal(drive_run_one(&d[0]), 0);
    assert_true(segzstd_stream_want_job(d[2].stream));
    assert_int_equal(drive_take(&d[2]), 0);
    assert_int_equal(d[2].job_count, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(drive_end(&d[i]), 0);
        expect_frame(&d[i], "hello", 5);
        segzstd_stream_free(d[i].stream);
        drive_free(&d[i]);
    }
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */

enum { STREAMS = 5, WORKERS = 3 };

struct crowd {
    segzstd_cache *cache;
    const unsigned char *content;
    size_t len; /* of each stream's content */
    struct drive drives[STREAMS];
};

static void expect_jobs_bounded(struct crowd *c)
{
    unsigned out = 0;

    for (int i = 0; i < STREAMS; i++)
        out += segzstd_stream_jobs_out(c->drives[i].stream);
    assert_true(out <= 2 * WORKERS);
    assert_int_equal(expect_cache_stats(c->cache).jobs_out, out);
}

static void act_at_random(struct crowd *c, struct rng *rng)
{
    struct drive *d = &c->drives[rng_below(rng, STREAMS)];
    size_t left = c->len - (size_t)d->taken, n;

    switch (rng_below(rng, 4)) {
    case 0:
        n = rng_spread(rng, 4 * MIB);
        push_some(d, c->content + d->taken, n < left ? n : left);
        break;
    case 1:
        d->jobs_held = d->job_count + 1;
        assert_int_equal(drive_take(d), 0);
        break;
    case 2:
        if (d->job_count > 0)
            assert_int_equal(drive_run_one(d), 0);
        break;
    default:
        drive_read(d);
        break;
    }
    expect_no_fault(d->fault);
}

/* The last jobs first, so that no stream waits for another one's. */
static void finish_all(struct crowd *c)
{
    for (int i = 0; i < STREAMS; i++) {
        while (c->drives[i].job_count > 0)
            assert_int_equal(drive_run_one(&c->drives[i]), 0);
    }
    for (int i = 0; i < STREAMS; i++) {
        struct drive *d = &c->drives[i];

        d->jobs_held = 0;
        assert_int_equal(drive_end(d), 0);
        expect_frame(d, c->content, (size_t)d->taken);
        segzstd_stream_free(d->stream);
        drive_free(d);
    }
}

static void test_schedule__at_random__decodes_and_is_bounded(void **state)
{
    size_t seeds = env_pick("schedules", 40, 3);
    size_t steps = env_pick("steps", 300, 100);
    size_t len = 6 * MIB;
    unsigned char *content = data_new(len, DATA_MIXTURE, SEED);

    (void)state;
    for (size_t seed = 0; seed < seeds; seed++) {
        struct rng rng = rng_seed(seed);
        struct crowd c;

        c.cache = expect_cache(WORKERS, NULL);
        c.content = content;
        c.len = len;
        for (int i = 0; i < STREAMS; i++) {
            segzstd_stream_options options =
                level_options((int)rng_below(&rng, 7) - 1);

            if (rng_below(&rng, 4) == 0)
                options.segment_bytes = 128 * KIB;
            if (rng_below(&rng, 3) == 0)
                options.overlap_bytes = SEGZSTD_OVERLAP_NONE;
            drive_init(&c.drives[i], expect_stream(c.cache, &options), seed);
            c.drives[i].order = DRIVE_ANY;
        }
        for (size_t i = 0; i < steps; i++) {
            act_at_random(&c, &rng);
            expect_jobs_bounded(&c);
        }
        finish_all(&c);
        segzstd_cache_free(c.cache);
    }
    free(content);
}

static int64_t read_zeros(void *arg, uint64_t offset, void *dst, size_t len)
{
    (void)arg;
    (void)offset;
    memset(dst, 0, len);
    return (int64_t)len;
}

/* Nothing can be read before it is back: what the others make must not pile up,
 * though it is small, nor what they have read. */
static void test_first_job__is_not_back__others_stop(void **state)
{
    segzstd_stream_options options = level_options(3);
    segzstd_cache *cache = expect_cache(4, NULL);
    segzstd_stream *stream;
    segzstd_job *first, *job;
    unsigned jobs = 0;

    (void)state;
    options.read_bytes = 1 * MIB;
    options.output_bytes = 8 * MIB;
    stream = expect_stream(cache, &options);
    assert_int_equal(segzstd_stream_push_reader(stream, read_zeros,
                                                (uint64_t)1 << 30, SEGZSTD_END,
                                                NULL, NULL),
                     0);
    assert_int_equal(segzstd_stream_poll_job(stream, &first), 0);
    assert_non_null(first);
    while (segzstd_stream_poll_job(stream, &job) == 0 && job != NULL) {
        segzstd_job_run(job);
        assert_int_equal(segzstd_job_complete(job), 0);
        assert_true(++jobs < 64);
    }
    assert_true(jobs > 0);
    assert_true(expect_stream_stats(stream).memory < 32 * MIB);
    assert_true(expect_cache_stats(cache).encoders_live <= 4);
    segzstd_job_run(first);
    assert_int_equal(segzstd_job_complete(first), 0);
    assert_int_equal(segzstd_stream_poll_job(stream, &job), 0);
    assert_non_null(job);
    segzstd_job_complete(job);
    segzstd_stream_free(stream);
    segzstd_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split__one_worker__never),
        cmocka_unit_test(test_split__one_worker_and_no_hint__never),
        cmocka_unit_test(test_split__other_worker_busy__waits_until_it_is_idle),
        cmocka_unit_test(test_split__all_workers_idle__uses_all),
        cmocka_unit_test(test_split__little_input__never),
        cmocka_unit_test(test_max_jobs__smaller_than_workers__is_honoured),
        cmocka_unit_test(test_first_job__closed_segment_below_a_block__goes_on),
        cmocka_unit_test(test_first_job__is_not_back__others_stop),
        cmocka_unit_test(test_set_max_jobs__one__makes_no_cut),
        cmocka_unit_test(test_want_job__refused_by_busy_workers__still_holds),
        cmocka_unit_test(test_schedule__at_random__decodes_and_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
