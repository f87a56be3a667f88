/*
 * What the owner's side of a stream keeps and gives back between its jobs, where
 * the interface does not show it.
 */
#include <stdlib.h>

#include "stream.h"
#include "support/data.h"
#include "support/expect.h"

enum { CONTENT = 4 << 20 };

struct fixture {
    struct segzstd_cache *cache;
    struct segzstd_stream *stream;
    unsigned char *content;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return -1;
    f->cache = expect_cache(2, NULL);
    f->content = data_new(CONTENT, DATA_RANDOM, 1);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    segzstd_stream_free(f->stream);
    segzstd_cache_free(f->cache);
    free(f->content);
    free(f);
    return 0;
}

static void open_stream(struct fixture *f, size_t segment_bytes)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

    options.level = 1;
    options.segment_bytes = segment_bytes;
    f->stream = expect_stream(f->cache, &options);
}

static segzstd_job *poll(struct fixture *f)
{
    segzstd_job *job;

    assert_int_equal(segzstd_stream_poll_job(f->stream, &job), 0);
    assert_non_null(job);
    return job;
}

static void push(struct fixture *f, size_t len, segzstd_op op)
{
    size_t taken;

    assert_int_equal(
        segzstd_stream_push(f->stream, f->content, len, op, &taken), 0);
    assert_int_equal(taken, len);
}

/* A part that is finished before what comes before it needs no encoder, also if
 * it is only the end that tells that it is finished. */
static void test_end__last_part_is_done__its_encoder_is_free(void **state)
{
    struct fixture *f = *state;
    segzstd_job *first, *second;

    open_stream(f, 0);
    push(f, CONTENT, SEGZSTD_FLUSH);
    first = poll(f);
    second = poll(f);
    while (second->from + second->len != CONTENT) {
        segzstd_job_run(second);
        assert_int_equal(segzstd_job_complete(second), 0);
        second = poll(f);
    }
    segzstd_job_run(second);
    assert_int_equal(segzstd_job_complete(second), 0);
    assert_int_equal(expect_cache_stats(f->cache).encoders_held, 1);
    push(f, 0, SEGZSTD_END);
    assert_int_equal(expect_cache_stats(f->cache).encoders_held, 0);
    assert_int_equal(expect_cache_stats(f->cache).encoders_idle, 1);
    assert_int_equal(segzstd_job_complete(first), 0);
}

/* The first error is what the stream failed of. */
static void test_complete__libzstd_fails_twice__keeps_the_first_name(
    void **state)
{
    struct fixture *f = *state;
    segzstd_job *jobs[2];

    open_stream(f, 1 << 20);
    push(f, CONTENT, SEGZSTD_END);
    for (int i = 0; i < 2; i++) {
        jobs[i] = poll(f);
        jobs[i]->ran = true;
        jobs[i]->error = SEGZSTD_ERR_ZSTD;
        jobs[i]->zstd_error = i == 0 ? "the first" : "the second";
    }
    assert_string_equal(segzstd_stream_zstd_error(f->stream), "");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(segzstd_job_complete(jobs[i]), SEGZSTD_ERR_ZSTD);
        assert_string_equal(segzstd_stream_zstd_error(f->stream), "the first");
    }
}

static int64_t read_content(void *arg, uint64_t offset, void *dst, size_t len)
{
    struct fixture *f = arg;

    memcpy(dst, f->content + offset, len);
    return (int64_t)len;
}

/* Content bytes of the next job, which is run. */
static size_t run_next(struct fixture *f)
{
    segzstd_job *job = poll(f);
    size_t len = job->len;

    segzstd_job_run(job);
    assert_int_equal(segzstd_job_complete(job), 0);
    segzstd_stream_consume(f->stream, segzstd_stream_ready_bytes(f->stream));
    return len;
}

/* For some jobs after one that had no memory they read little, not for ever. */
static void test_reader__memory_was_short__reads_more_again(void **state)
{
    struct fixture *f = *state;
    segzstd_job *job;

    open_stream(f, 0);
    assert_int_equal(segzstd_stream_push_reader(f->stream, read_content,
                                                CONTENT, SEGZSTD_END, NULL, f),
                     0);
    segzstd_stream_set_max_jobs(f->stream, 1);
    f->cache->mem.budget = f->cache->mem.used + 1000;
    assert_int_equal(segzstd_stream_poll_job(f->stream, &job),
                     SEGZSTD_ERR_NOMEM);
    assert_null(job);
    f->cache->mem.budget = 0;
    for (int i = 0; i < 8; i++)
        assert_true(run_next(f) <= BLOCK_BYTES_MAX);
    run_next(f); /* the rest of the last extent */
    assert_true(run_next(f) > BLOCK_BYTES_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_end__last_part_is_done__its_encoder_is_free),
        TEST(test_complete__libzstd_fails_twice__keeps_the_first_name),
        TEST(test_reader__memory_was_short__reads_more_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
