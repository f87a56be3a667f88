/*
 * Jobs that the owner runs by itself: small ones, at once, whatever the workers
 * are doing.
 */
#include <stdlib.h>

#include "support/env.h"
#include "support/expect.h"

enum { KIB = 1 << 10, MIB = 1 << 20, SEED = 11 };

/* More than any job here takes by prediction. */
#define ANY_NS UINT64_MAX

static segzstd_stream *level_stream(segzstd_cache *cache, int level)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

    options.level = level;
    return expect_stream(cache, &options);
}

static void push_all(struct drive *d, const unsigned char *src, size_t len,
                     segzstd_op op)
{
    size_t taken;

    assert_int_equal(drive_push_once(d, src, len, op, &taken), 0);
    assert_int_equal(taken, len);
}

static segzstd_job *poll_inline(struct drive *d, uint64_t most_ns)
{
    segzstd_job *job;

    assert_int_equal(segzstd_stream_poll_inline(d->stream, most_ns, &job), 0);
    return job;
}

static void run(segzstd_job *job)
{
    assert_non_null(job);
    segzstd_job_run(job);
    assert_int_equal(segzstd_job_complete(job), 0);
}

/* ------------------------------------------------------------------------ */

/* Or every small response would wait for the large ones. */
static void test_inline__workers_have_all_they_can__gives_a_job(void **state)
{
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(8 * MIB, DATA_JSON, SEED);
    segzstd_stream *large[2];
    segzstd_job *out[2], *job;
    struct drive d;
    size_t taken;

    (void)state;
    for (int i = 0; i < 2; i++) {
        large[i] = level_stream(cache, 9);
        assert_int_equal(segzstd_stream_push(large[i], content, 8 * MIB,
                                             SEGZSTD_END, &taken),
                         0);
        assert_int_equal(segzstd_stream_poll_job(large[i], &out[i]), 0);
        assert_non_null(out[i]);
    }
    drive_init(&d, level_stream(cache, 9), SEED);
    push_all(&d, content, 2000, SEGZSTD_END);
    assert_int_equal(segzstd_stream_poll_job(d.stream, &job), 0);
    assert_null(job);
    run(poll_inline(&d, ANY_NS));
    assert_int_equal(expect_cache_stats(cache).jobs_out, 2);
    drive_read(&d);
    expect_frame(&d, content, 2000);
    segzstd_stream_free(d.stream);
    drive_free(&d);
    for (int i = 0; i < 2; i++) {
        segzstd_job_complete(out[i]);
        segzstd_stream_free(large[i]);
    }
    assert_int_equal(expect_cache_stats(cache).jobs_out, 0);
    free(content);
    segzstd_cache_free(cache);
}

static void test_inline__dearer_than_allowed__gives_none(void **state)
{
    static const int levels[] = {-3, 1, 9, 19};
    segzstd_cache *cache = expect_cache(1, NULL);
    unsigned char *content = data_new(100 * KIB, DATA_JSON, SEED);

    (void)state;
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        struct drive d;

        drive_init(&d, level_stream(cache, levels[i]), SEED);
        push_all(&d, content, 100 * KIB, SEGZSTD_END);
        assert_null(poll_inline(&d, 50000));
        run(poll_inline(&d, 50000000));
        assert_null(poll_inline(&d, ANY_NS));
        drive_read(&d);
        expect_frame(&d, content, 100 * KIB);
        segzstd_stream_free(d.stream);
        drive_free(&d);
    }
    free(content);
    segzstd_cache_free(cache);
}

/* A long response of unknown length comes in pieces that are each small. They
 * are work for a pool all the same. */
static void test_inline__more_is_to_come__gives_none(void **state)
{
    segzstd_cache *cache = expect_cache(1, NULL);
    unsigned char *content = data_new(MIB, DATA_TEXT, SEED);
    struct drive d;

    (void)state;
    drive_init(&d, level_stream(cache, 1), SEED);
    push_all(&d, content, 300 * KIB, SEGZSTD_CONTINUE);
    assert_null(poll_inline(&d, ANY_NS));
    push_all(&d, content + 300 * KIB, 100, SEGZSTD_FLUSH);
    push_all(&d, content + 300 * KIB + 100, 200 * KIB, SEGZSTD_CONTINUE);
    assert_null(poll_inline(&d, ANY_NS));
    assert_int_equal(
        drive_push(&d, content + 500 * KIB + 100, 524 * KIB - 100, SEGZSTD_END),
        0);
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, content, MIB);
    segzstd_stream_free(d.stream);
    drive_free(&d);
    free(content);
    segzstd_cache_free(cache);
}

static void test_inline__flush_after_flush__one_encoder_does_all(void **state)
{
    segzstd_cache *cache = expect_cache(1, NULL);
    unsigned char *content = data_new(20 * 200, DATA_TEXT, SEED);
    struct drive d;

    (void)state;
    drive_init(&d, level_stream(cache, 3), SEED);
    for (size_t i = 0; i < 20; i++) {
        push_all(&d, content + i * 200, 200, SEGZSTD_FLUSH);
        run(poll_inline(&d, 100000));
        assert_true(segzstd_stream_is_flushed(d.stream));
        drive_read(&d);
    }
    push_all(&d, NULL, 0, SEGZSTD_END);
    assert_int_equal(expect_stream_stats(d.stream).encoders, 1);
    assert_int_equal(drive_rest(&d), 0);
    expect_frame(&d, content, 20 * 200);
    segzstd_stream_free(d.stream);
    drive_free(&d);
    free(content);
    segzstd_cache_free(cache);
}

/* A small file may be read by the owner; the tail of a large one may lie on a
 * slow disk. */
static void test_inline__reader__only_if_it_is_all(void **state)
{
    segzstd_cache *cache = expect_cache(1, NULL);
    unsigned char *content = data_new(40 * KIB, DATA_TEXT, SEED);
    struct drive d;

    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        size_t before = whole ? 0 : 10 * KIB;
        struct drive_source source = {0};

        drive_init(&d, level_stream(cache, 3), SEED);
        if (!whole) {
            push_all(&d, content, before, SEGZSTD_FLUSH);
            run(poll_inline(&d, ANY_NS));
        }
        source.content = content + before;
        source.len = 40 * KIB - before;
        source.drive = &d;
        assert_int_equal(segzstd_stream_push_reader(
                             d.stream, drive_read_source, source.len,
                             SEGZSTD_END, drive_release_source, &source),
                         0);
        d.refs_lent++;
        d.taken += source.len;
        d.ended = true;
        if (whole)
            run(poll_inline(&d, ANY_NS));
        else
            assert_null(poll_inline(&d, ANY_NS));
        assert_int_equal(drive_rest(&d), 0);
        expect_frame(&d, content, 40 * KIB);
        segzstd_stream_free(d.stream);
        drive_free(&d);
    }
    free(content);
    segzstd_cache_free(cache);
}

/* Then there is none for one more job until a worker gives its own back. */
static void test_inline__workers_have_all_encoders__gives_none(void **state)
{
    segzstd_cache_options options = SEGZSTD_CACHE_OPTIONS_INIT;
    unsigned char *content = data_new(MIB, DATA_JSON, SEED);
    segzstd_stream *large;
    segzstd_cache *cache;
    segzstd_job *job;
    struct drive d;
    size_t taken;

    (void)state;
    options.workers = 1;
    options.encoders_kept = SEGZSTD_NONE;
    assert_int_equal(segzstd_cache_new(&cache, &options), 0);
    large = level_stream(cache, 1);
    assert_int_equal(
        segzstd_stream_push(large, content, MIB, SEGZSTD_CONTINUE, &taken), 0);
    drive_init(&d, level_stream(cache, 1), SEED);
    push_all(&d, content, 2000, SEGZSTD_END);
    assert_int_equal(segzstd_stream_poll_job(large, &job), 0);
    assert_non_null(job);
    assert_null(poll_inline(&d, ANY_NS));
    run(job);
    run(poll_inline(&d, ANY_NS));
    drive_read(&d);
    expect_frame(&d, content, 2000);
    segzstd_stream_free(d.stream);
    drive_free(&d);
    segzstd_stream_free(large);
    segzstd_cache_free(cache);
    free(content);
}

/* The owner has it already: asking is not allowed to give two. */
static void test_inline__job_is_out__gives_none(void **state)
{
    segzstd_cache *cache = expect_cache(1, NULL);
    unsigned char content[100] = {0};
    segzstd_job *job;
    struct drive d;

    (void)state;
    drive_init(&d, level_stream(cache, 3), SEED);
    push_all(&d, content, sizeof(content), SEGZSTD_END);
    job = poll_inline(&d, ANY_NS);
    assert_non_null(job);
    assert_null(poll_inline(&d, ANY_NS));
    run(job);
    drive_read(&d);
    expect_frame(&d, content, sizeof(content));
    segzstd_stream_free(d.stream);
    drive_free(&d);
    segzstd_cache_free(cache);
}

static void test_inline__canceled__says_so(void **state)
{
    segzstd_cache *cache = expect_cache(1, NULL);
    segzstd_stream *stream = level_stream(cache, 3);
    segzstd_job *job;
    size_t taken;

    (void)state;
    assert_int_equal(
        segzstd_stream_push(stream, "hello", 5, SEGZSTD_END, &taken), 0);
    segzstd_stream_cancel(stream);
    assert_int_equal(segzstd_stream_poll_inline(stream, ANY_NS, &job),
                     SEGZSTD_ERR_CANCELED);
    assert_null(job);
    segzstd_stream_free(stream);
    segzstd_cache_free(cache);
}

/* Nothing is lost: the same is asked for again. */
static void test_inline__no_memory_to_read_into__later_there_is(void **state)
{
    unsigned char *content = data_new(40 * KIB, DATA_TEXT, SEED);
    struct drive_source source = {content, 40 * KIB, 0, 0, NULL};
    static struct test_alloc alloc;
    segzstd_cache *cache;
    segzstd_job *job;
    struct drive d;

    (void)state;
    alloc_init(&alloc);
    cache = expect_cache(1, &alloc);
    drive_init(&d, level_stream(cache, 3), SEED);
    source.drive = &d;
    assert_int_equal(segzstd_stream_push_reader(d.stream, drive_read_source,
                                                source.len, SEGZSTD_END,
                                                drive_release_source, &source),
                     0);
    d.refs_lent++;
    d.taken = source.len;
    d.ended = true;
    alloc_fail(&alloc, 0, ALLOC_FOR_EVER);
    assert_int_equal(segzstd_stream_poll_inline(d.stream, ANY_NS, &job),
                     SEGZSTD_ERR_NOMEM);
    assert_null(job);
    alloc_heal(&alloc);
    run(poll_inline(&d, ANY_NS));
    assert_int_equal(drive_rest(&d), 0);
    expect_frame(&d, content, 40 * KIB);
    segzstd_stream_free(d.stream);
    drive_free(&d);
    segzstd_cache_free(cache);
    expect_no_fault(alloc_done(&alloc));
    free(content);
}

static void test_inline__content_waits_before_it__gives_none(void **state)
{
    segzstd_cache *cache = expect_cache(4, NULL);
    segzstd_stream *stream = level_stream(cache, 3);
    unsigned char *content = data_new(3 * MIB, DATA_TEXT, SEED);
    segzstd_job *out, *job;
    size_t taken;

    (void)state;
    assert_int_equal(segzstd_stream_push_ref(stream, content, 3 * MIB,
                                             SEGZSTD_CONTINUE, NULL, NULL),
                     0);
    assert_int_equal(segzstd_stream_poll_job(stream, &out), 0);
    assert_non_null(out);
    assert_int_equal(
        segzstd_stream_push(stream, content, 1000, SEGZSTD_FLUSH, &taken), 0);
    assert_int_equal(segzstd_stream_poll_inline(stream, ANY_NS, &job), 0);
    assert_null(job);
    segzstd_job_complete(out);
    segzstd_stream_free(stream);
    segzstd_cache_free(cache);
    free(content);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inline__workers_have_all_they_can__gives_a_job),
        cmocka_unit_test(test_inline__dearer_than_allowed__gives_none),
        cmocka_unit_test(test_inline__more_is_to_come__gives_none),
        cmocka_unit_test(test_inline__flush_after_flush__one_encoder_does_all),
        cmocka_unit_test(test_inline__reader__only_if_it_is_all),
        cmocka_unit_test(test_inline__workers_have_all_encoders__gives_none),
        cmocka_unit_test(test_inline__job_is_out__gives_none),
        cmocka_unit_test(test_inline__content_waits_before_it__gives_none),
        cmocka_unit_test(test_inline__canceled__says_so),
        cmocka_unit_test(test_inline__no_memory_to_read_into__later_there_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
