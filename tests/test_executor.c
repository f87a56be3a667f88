/*
 * executor.c is compiled into this test, so that threads, locks and memory can
 * be refused, and so that jobs can be played: such a job has no stream, and
 * does nothing but note that it ran.
 */
#if !defined(_POSIX_C_SOURCE)
#  define _POSIX_C_SOURCE 200809L /* sigset_t */
#endif

#include "job.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "stream.h"
#include "support/data.h"
#include "support/expect.h"
#include "support/park.h"

/* Each of these counts its calls; the one with that number, from 1, fails. */
static struct {
    unsigned create, create_fault;
    unsigned mutex, mutex_fault;
    unsigned cond, cond_fault;
    unsigned poll, poll_fault;
    unsigned run, run_fault;
    bool refuse_memory, refuse_stream, refuse_push;
} plan;

static int create(pthread_t *thread, const pthread_attr_t *attr,
                  void *(*start)(void *), void *arg)
{
    if (++plan.create == plan.create_fault)
        return -1;
    return pthread_create(thread, attr, start, arg);
}

static int init_mutex(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
    return ++plan.mutex == plan.mutex_fault ? -1
                                            : pthread_mutex_init(mutex, attr);
}

static int init_cond(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
    return ++plan.cond == plan.cond_fault ? -1 : pthread_cond_init(cond, attr);
}

static int poll_stream(segzstd_stream *stream, segzstd_job **job)
{
    *job = NULL;
    if (++plan.poll == plan.poll_fault)
        return SEGZSTD_ERR_NOMEM;
    return segzstd_stream_poll_job(stream, job);
}

static void run_job(struct segzstd_job *job);

#define calloc(n, size) (plan.refuse_memory ? NULL : calloc(n, size))
#define pthread_create create
#define pthread_mutex_init init_mutex
#define pthread_cond_init init_cond
#define segzstd_job_run run_job
#define segzstd_stream_poll_job poll_stream
#define segzstd_stream_new(stream, cache, options)                             \
  (plan.refuse_stream ? SEGZSTD_ERR_NOMEM                                      \
                      : segzstd_stream_new(stream, cache, options))
#define segzstd_stream_push_ref(stream, src, len, op, release, arg)            \
  (plan.refuse_push                                                            \
       ? SEGZSTD_ERR_NOMEM                                                     \
       : segzstd_stream_push_ref(stream, src, len, op, release, arg))
#include "executor.c"
#undef calloc
#undef pthread_create
#undef pthread_mutex_init
#undef segzstd_job_run

/* ---- played jobs ---- */

enum { JOBS = 10, MANY = 1000 };

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int ran[MANY]; /* numbers of jobs, in the order in which they ran */
static unsigned ran_count;

struct played {
    struct segzstd_job job;
    int number;
    struct park_gate *gate; /* where it stands still; NULL: nowhere */
    bool signals_blocked;
};

static void play(struct played *played)
{
    sigset_t set;

    pthread_sigmask(SIG_BLOCK, NULL, &set);
    played->signals_blocked = sigismember(&set, SIGTERM) == 1 &&
                              sigismember(&set, SIGUSR1) == 1 &&
                              sigismember(&set, SIGALRM) == 1;
    pthread_mutex_lock(&log_lock);
    ran[ran_count++] = played->number;
    pthread_mutex_unlock(&log_lock);
    played->job.ran = true;
    if (played->gate != NULL)
        gate_pass(played->gate);
}

static void run_job(struct segzstd_job *job)
{
    bool fault;

    if (job->shared == NULL) {
        play((struct played *)(void *)job);
        return;
    }
    pthread_mutex_lock(&log_lock);
    fault = ++plan.run == plan.run_fault;
    pthread_mutex_unlock(&log_lock);
    segzstd_job_run(job);
    if (fault)
        job->error = SEGZSTD_ERR_INTERNAL;
}

static int reset(void **state)
{
    (void)state;
    memset(&plan, 0, sizeof(plan));
    ran_count = 0;
    return 0;
}

static segzstd_executor *start(unsigned threads)
{
    segzstd_executor *ex = NULL;

    assert_int_equal(segzstd_executor_new(&ex, threads, NULL, NULL), 0);
    assert_non_null(ex);
    return ex;
}

static void init_jobs(struct played *jobs, int n)
{
    memset(jobs, 0, (size_t)n * sizeof(*jobs));
    for (int i = 0; i < n; i++)
        jobs[i].number = i;
}

/* ---- new ---- */

static void test_new__bad_arguments__refused(void **state)
{
    segzstd_executor *ex = NULL;

    (void)state;
    assert_int_equal(segzstd_executor_new(NULL, 1, NULL, NULL),
                     SEGZSTD_ERR_INVALID);
    assert_int_equal(segzstd_executor_new(&ex, 0, NULL, NULL),
                     SEGZSTD_ERR_INVALID);
    assert_int_equal(segzstd_executor_new(&ex, 1025, NULL, NULL),
                     SEGZSTD_ERR_INVALID);
    assert_null(ex);
    segzstd_executor_free(NULL);
}

static void test_new__no_memory_or_locks__leaks_nothing(void **state)
{
    segzstd_executor *ex = NULL;

    (void)state;
    plan.refuse_memory = true;
    assert_int_equal(segzstd_executor_new(&ex, 2, NULL, NULL),
                     SEGZSTD_ERR_NOMEM);
    plan.refuse_memory = false;
    plan.mutex_fault = 1;
    assert_int_equal(segzstd_executor_new(&ex, 2, NULL, NULL),
                     SEGZSTD_ERR_THREAD);
    for (unsigned i = 1; i <= 2; i++) {
        plan.cond = 0;
        plan.cond_fault = i;
        assert_int_equal(segzstd_executor_new(&ex, 2, NULL, NULL),
                         SEGZSTD_ERR_THREAD);
    }
    assert_int_equal(plan.create, 0);
    assert_null(ex);
}

/* Those that were started are stopped and joined again. */
static void test_new__thread_refused__stops_the_others(void **state)
{
    segzstd_executor *ex = NULL;

    (void)state;
    for (unsigned i = 1; i <= 4; i++) {
        plan.create = 0;
        plan.create_fault = i;
        assert_int_equal(segzstd_executor_new(&ex, 4, NULL, NULL),
                         SEGZSTD_ERR_THREAD);
        assert_int_equal(plan.create, i);
        assert_null(ex);
    }
}

static void test_threads__signals__are_left_to_the_host(void **state)
{
    segzstd_executor *ex = start(1);
    struct played job;
    sigset_t set;

    (void)state;
    init_jobs(&job, 1);
    segzstd_executor_submit(ex, &job.job);
    assert_ptr_equal(segzstd_executor_wait(ex), &job.job);
    assert_true(job.signals_blocked);
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    assert_int_equal(sigismember(&set, SIGTERM), 0);
    segzstd_executor_free(ex);
}

/* ---- submit, poll, wait ---- */

static void test_poll_and_wait__nothing_there__are_null(void **state)
{
    segzstd_executor *ex = start(2);

    (void)state;
    assert_null(segzstd_executor_poll(ex));
    assert_null(segzstd_executor_wait(ex));
    segzstd_executor_free(ex);
}

static void test_submit__one_thread__first_in_first_out(void **state)
{
    segzstd_executor *ex = start(1);
    struct played jobs[JOBS];
    struct park_gate gate;

    (void)state;
    gate_init(&gate);
    init_jobs(jobs, JOBS);
    jobs[0].gate = &gate;
    for (int i = 0; i < JOBS; i++)
        segzstd_executor_submit(ex, &jobs[i].job);
    gate_wait(&gate);
    assert_null(segzstd_executor_poll(ex));
    gate_open(&gate);
    for (int i = 0; i < JOBS; i++)
        assert_ptr_equal(segzstd_executor_wait(ex), &jobs[i].job);
    assert_null(segzstd_executor_wait(ex));
    assert_int_equal(ran_count, JOBS);
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(ran[i], i);
    segzstd_executor_free(ex);
    gate_destroy(&gate);
}

/* One that stands still does not hold up the others, and they come back in the
 * order in which they end. */
static void test_wait__two_threads__gives_what_is_finished(void **state)
{
    segzstd_executor *ex = start(2);
    struct played jobs[3];
    struct park_gate gate;

    (void)state;
    gate_init(&gate);
    init_jobs(jobs, 3);
    jobs[0].gate = &gate;
    segzstd_executor_submit(ex, &jobs[0].job);
    gate_wait(&gate);
    segzstd_executor_submit(ex, &jobs[1].job);
    segzstd_executor_submit(ex, &jobs[2].job);
    assert_ptr_equal(segzstd_executor_wait(ex), &jobs[1].job);
    assert_ptr_equal(segzstd_executor_wait(ex), &jobs[2].job);
    assert_null(segzstd_executor_poll(ex));
    gate_open(&gate);
    assert_ptr_equal(segzstd_executor_wait(ex), &jobs[0].job);
    segzstd_executor_free(ex);
    gate_destroy(&gate);
}

static void *wait_for_one(void *arg)
{
    return segzstd_executor_wait(arg);
}

/* Who waits for a job that another gets is not left waiting. */
static void test_wait__two_wait_for_one_job__both_return(void **state)
{
    segzstd_executor *ex = start(1);
    pthread_t waiters[2];
    void *got[2];
    struct played job;
    struct park_gate gate;

    (void)state;
    gate_init(&gate);
    init_jobs(&job, 1);
    job.gate = &gate;
    segzstd_executor_submit(ex, &job.job);
    gate_wait(&gate);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&waiters[i], NULL, wait_for_one, ex),
                         0);
    gate_open(&gate);
    for (int i = 0; i < 2; i++)
        pthread_join(waiters[i], &got[i]);
    assert_true((got[0] == &job.job) != (got[1] == &job.job));
    assert_true(got[0] == NULL || got[1] == NULL);
    segzstd_executor_free(ex);
    gate_destroy(&gate);
}

static void test_free__jobs_queued__runs_them_first(void **state)
{
    segzstd_executor *ex = start(2);
    struct played jobs[JOBS];
    struct park_gate gate;

    (void)state;
    gate_init(&gate);
    init_jobs(jobs, JOBS);
    jobs[0].gate = jobs[1].gate = &gate;
    for (int i = 0; i < JOBS; i++)
        segzstd_executor_submit(ex, &jobs[i].job);
    gate_wait(&gate);
    gate_wait(&gate);
    assert_int_equal(ran_count, 2);
    gate_open(&gate);
    gate_open(&gate);
    segzstd_executor_free(ex);
    assert_int_equal(ran_count, JOBS);
    for (int i = 0; i < JOBS; i++)
        assert_true(jobs[i].job.ran);
    gate_destroy(&gate);
}

struct submitter {
    segzstd_executor *executor;
    struct played *jobs; /* MANY / 2 of them */
    pthread_t thread;
};

static void *submit_all(void *arg)
{
    struct submitter *s = arg;

    for (int i = 0; i < MANY / 2; i++)
        segzstd_executor_submit(s->executor, &s->jobs[i].job);
    return NULL;
}

static void test_submit__many_threads__each_job_runs_and_returns_once(
    void **state)
{
    static struct played jobs[MANY];
    static unsigned returned[MANY];
    segzstd_executor *ex = start(4);
    struct submitter submitters[2];
    unsigned count = 0;

    (void)state;
    init_jobs(jobs, MANY);
    for (int i = 0; i < 2; i++) {
        struct submitter *s = &submitters[i];

        *s = (struct submitter){.executor = ex, .jobs = jobs + i * MANY / 2};
        assert_int_equal(pthread_create(&s->thread, NULL, submit_all, s), 0);
    }
    while (count < MANY) {
        segzstd_job *job = count % 2 == 0 ? segzstd_executor_wait(ex)
                                          : segzstd_executor_poll(ex);

        /* NULL: the submitters have not come so far yet */
        if (job == NULL)
            continue;
        returned[((struct played *)(void *)job)->number]++;
        count++;
    }
    for (int i = 0; i < 2; i++)
        pthread_join(submitters[i].thread, NULL);
    assert_null(segzstd_executor_wait(ex));
    segzstd_executor_free(ex);
    assert_int_equal(ran_count, MANY);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(returned[i], 1);
}

/* ---- notify ---- */

static void count_notice(void *arg)
{
    ++*(unsigned *)arg;
}

static void test_notify__finished_list__only_when_it_was_empty(void **state)
{
    segzstd_executor *ex;
    struct played jobs[5];
    struct park_gate gate;
    unsigned notices = 0;

    (void)state;
    gate_init(&gate);
    init_jobs(jobs, 5);
    assert_int_equal(segzstd_executor_new(&ex, 1, count_notice, &notices), 0);
    jobs[0].gate = jobs[3].gate = jobs[4].gate = &gate;
    for (int i = 0; i < 5; i++)
        segzstd_executor_submit(ex, &jobs[i].job);
    gate_wait(&gate);
    assert_int_equal(notices, 0);
    gate_open(&gate);
    /* the fourth is reached when three are finished, all unfetched */
    gate_wait(&gate);
    assert_int_equal(notices, 1);
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(segzstd_executor_poll(ex), &jobs[i].job);
    gate_open(&gate);
    gate_wait(&gate);
    assert_int_equal(notices, 2);
    gate_open(&gate);
    segzstd_executor_free(ex);
    assert_int_equal(notices, 2);
    gate_destroy(&gate);
}

struct fetcher {
    segzstd_executor *executor;
    segzstd_job *job;
};

static void fetch(void *arg)
{
    struct fetcher *fetcher = arg;

    fetcher->job = segzstd_executor_poll(fetcher->executor);
}

/* The lock is not held while the host is called. */
static void test_notify__calls_the_executor__does_not_lock_up(void **state)
{
    struct fetcher fetcher = {NULL, NULL};
    struct played jobs[2];
    struct park_gate gate;

    (void)state;
    gate_init(&gate);
    init_jobs(jobs, 2);
    assert_int_equal(
        segzstd_executor_new(&fetcher.executor, 1, fetch, &fetcher), 0);
    jobs[0].gate = jobs[1].gate = &gate;
    segzstd_executor_submit(fetcher.executor, &jobs[0].job);
    segzstd_executor_submit(fetcher.executor, &jobs[1].job);
    gate_wait(&gate);
    gate_open(&gate);
    gate_wait(&gate);
    assert_ptr_equal(fetcher.job, &jobs[0].job);
    assert_null(segzstd_executor_poll(fetcher.executor));
    gate_open(&gate);
    segzstd_executor_free(fetcher.executor);
    gate_destroy(&gate);
}

/* ---- one call ---- */

enum { CONTENT = 1 << 20 };

static segzstd_stream_options small_segments(void)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

    options.level = 1;
    options.segment_bytes = 64 << 10;
    options.window_log = 16;
    return options;
}

static void test_bound__any_length__is_more_than_that(void **state)
{
    (void)state;
    assert_true(segzstd_compress_bound(0) >= 9);
    for (size_t len = 1; len < SIZE_MAX / 4; len *= 3)
        assert_true(segzstd_compress_bound(len) > len);
    assert_int_equal(segzstd_compress_bound(SIZE_MAX), 0);
    assert_int_equal(segzstd_compress_bound(SIZE_MAX - SIZE_MAX / 1024), 0);
}

static void expect_fits(const unsigned char *content, size_t len,
                        const segzstd_stream_options *options)
{
    struct oracle_want want = {content, len, NULL, 0, 0, ORACLE_SIZE_PRESENT};
    size_t bound = segzstd_compress_bound(len), written = 0;
    unsigned char *dst = malloc(bound);

    assert_non_null(dst);
    assert_int_equal(
        segzstd_compress(dst, bound, &written, content, len, options, 3), 0);
    expect_no_fault(oracle_check(dst, written, &want));
    free(dst);
}

/* Content that cannot be compressed, cut in as many segments as can be. */
static void test_compress__random_content__fits_into_the_bound(void **state)
{
    static const size_t sizes[] = {0, 1, 17, 1000, 65537, 300001, CONTENT};
    segzstd_stream_options options = small_segments();
    unsigned char *content = data_new(CONTENT, DATA_RANDOM, 1);

    (void)state;
    options.checksum = 1;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (options.window_log = 10; options.window_log <= 20;
             options.window_log += 5)
            expect_fits(content, sizes[i], &options);
        expect_fits(content, sizes[i], NULL);
    }
    free(content);
}

/* What the caller says of the size is not looked at, only what there is. */
static void test_compress__size_in_the_options__is_not_looked_at(void **state)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;
    static const unsigned char content[5000] = {1};

    (void)state;
    options.size = 17;
    options.size_is_certain = 1;
    expect_fits(content, sizeof(content), &options);
}

/* How many threads the call begins. */
static unsigned threads_begun(size_t len, const segzstd_stream_options *options,
                              unsigned threads)
{
    size_t dst_len = segzstd_compress_bound(len), written;
    unsigned char *content = data_new(len, DATA_TEXT, 1);
    unsigned char *dst = malloc(dst_len);
    unsigned before = plan.create;

    assert_non_null(dst);
    assert_int_equal(segzstd_compress(dst, dst_len, &written, content, len,
                                      options, threads),
                     0);
    free(dst);
    free(content);
    return plan.create - before;
}

static void test_compress__threads_automatic__are_as_many_as_cpus(void **state)
{
    const segzstd_stream_options options = small_segments();
    size_t segments = CONTENT / options.segment_bytes + 1;
    segzstd_cache *cache = NULL;
    unsigned workers;

    (void)state;
    assert_int_equal(segzstd_cache_new(&cache, NULL), 0);
    workers = expect_cache_stats(cache).workers;
    if (workers > segments)
        workers = (unsigned)segments;
    assert_int_equal(threads_begun(CONTENT, &options, 0),
                     workers > 1 ? workers : 0);
    segzstd_cache_free(cache);
}

/* No more than can have a part, and none where the caller does it alone. */
static void test_compress__little_content__begins_few_threads(void **state)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;
    const segzstd_stream_options segments = small_segments();

    (void)state;
    options.level = 9;
    assert_int_equal(threads_begun(5, NULL, 64), 0);
    assert_int_equal(threads_begun(5, &segments, 64), 0);
    assert_int_equal(threads_begun(256 << 10, &options, 64), 0);
    assert_int_equal(threads_begun(CONTENT, &options, 64), 5);
    assert_int_equal(threads_begun(CONTENT, &options, 3), 3);
    assert_int_equal(threads_begun(CONTENT, &options, 1), 0);
    assert_int_equal(
        threads_begun(2 * segments.segment_bytes - 1, &segments, 64), 2);
}

/* Also while other jobs are out: they are waited for. */
static void test_compress__destination_too_small__is_told(void **state)
{
    const segzstd_stream_options options = small_segments();
    unsigned char *content = data_new(CONTENT, DATA_RANDOM, 1);
    unsigned char *dst = malloc(2 * CONTENT);
    size_t len, written;

    (void)state;
    assert_non_null(dst);
    assert_int_equal(
        segzstd_compress(dst, 2 * CONTENT, &len, content, CONTENT, &options, 4),
        0);
    for (size_t room = 0; room < len; room += 1 + len / 15) {
        written = SIZE_MAX;
        dst[room] = 0xaa;
        assert_int_equal(segzstd_compress(dst, room, &written, content, CONTENT,
                                          &options, 4),
                         SEGZSTD_ERR_DST_SIZE);
        assert_true(written <= room);
        assert_int_equal(dst[room], 0xaa);
    }
    assert_int_equal(
        segzstd_compress(dst, len - 1, &written, content, CONTENT, &options, 4),
        SEGZSTD_ERR_DST_SIZE);
    assert_int_equal(
        segzstd_compress(dst, len, &written, content, CONTENT, &options, 4), 0);
    assert_int_equal(written, len);
    free(dst);
    free(content);
}

static int compress_text(const segzstd_stream_options *options,
                         unsigned threads)
{
    unsigned char dst[1000];
    size_t written;

    return segzstd_compress(dst, sizeof(dst), &written, "text", 4, options,
                            threads);
}

static void test_compress__anything_refused__is_told(void **state)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

    (void)state;
    options.level = 1000;
    assert_int_equal(compress_text(&options, 1), SEGZSTD_ERR_INVALID);
    options.struct_size = 3;
    assert_int_equal(compress_text(&options, 1), SEGZSTD_ERR_INVALID);
    assert_int_equal(compress_text(NULL, 1025), SEGZSTD_ERR_INVALID);
    plan.refuse_stream = true;
    assert_int_equal(compress_text(NULL, 1), SEGZSTD_ERR_NOMEM);
    plan.refuse_stream = false;
    plan.refuse_push = true;
    assert_int_equal(compress_text(NULL, 1), SEGZSTD_ERR_NOMEM);
    plan.refuse_push = false;
    plan.poll = 0;
    plan.poll_fault = 1;
    assert_int_equal(compress_text(NULL, 1), SEGZSTD_ERR_NOMEM);
    assert_int_equal(compress_text(NULL, 1), 0);
}

static void test_compress__thread_refused__is_told(void **state)
{
    const segzstd_stream_options options = small_segments();
    unsigned char *content = data_new(CONTENT, DATA_TEXT, 1);
    unsigned char *dst = malloc(2 * CONTENT);
    size_t written;

    (void)state;
    assert_non_null(dst);
    plan.create_fault = 2;
    assert_int_equal(segzstd_compress(dst, 2 * CONTENT, &written, content,
                                      CONTENT, &options, 2),
                     SEGZSTD_ERR_THREAD);
    free(dst);
    free(content);
}

/* Whichever job fails, the others are waited for. */
static void test_compress__a_job_fails__is_told(void **state)
{
    const segzstd_stream_options options = small_segments();
    unsigned char *content = data_new(CONTENT, DATA_TEXT, 1);
    unsigned char *dst = malloc(2 * CONTENT);
    size_t written;
    unsigned at;

    (void)state;
    assert_non_null(dst);
    for (at = 1;; at += 3) {
        int rc;

        plan.run = 0;
        plan.run_fault = at;
        rc = segzstd_compress(dst, 2 * CONTENT, &written, content, CONTENT,
                              &options, 4);
        if (plan.run < at) {
            assert_int_equal(rc, 0);
            break;
        }
        assert_int_equal(rc, SEGZSTD_ERR_INTERNAL);
    }
    assert_true(at > CONTENT / (64 << 10));
    free(dst);
    free(content);
}

/* No memory for one more job: those that are out give some back. */
static void test_compress__no_memory_while_jobs_are_out__goes_on(void **state)
{
    const segzstd_stream_options options = small_segments();
    unsigned char *content = data_new(CONTENT, DATA_TEXT, 1);

    (void)state;
    for (unsigned at = 2; at < 6; at += 2) {
        plan.poll = 0;
        plan.poll_fault = at;
        expect_fits(content, CONTENT, &options);
        assert_true(plan.poll > at);
    }
    free(content);
}

#define EXECUTOR_TEST(test) cmocka_unit_test_setup(test, reset)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EXECUTOR_TEST(test_new__bad_arguments__refused),
        EXECUTOR_TEST(test_new__no_memory_or_locks__leaks_nothing),
        EXECUTOR_TEST(test_new__thread_refused__stops_the_others),
        EXECUTOR_TEST(test_threads__signals__are_left_to_the_host),
        EXECUTOR_TEST(test_poll_and_wait__nothing_there__are_null),
        EXECUTOR_TEST(test_submit__one_thread__first_in_first_out),
        EXECUTOR_TEST(test_wait__two_threads__gives_what_is_finished),
        EXECUTOR_TEST(test_wait__two_wait_for_one_job__both_return),
        EXECUTOR_TEST(test_free__jobs_queued__runs_them_first),
        EXECUTOR_TEST(
            test_submit__many_threads__each_job_runs_and_returns_once),
        EXECUTOR_TEST(test_notify__finished_list__only_when_it_was_empty),
        EXECUTOR_TEST(test_notify__calls_the_executor__does_not_lock_up),
        EXECUTOR_TEST(test_bound__any_length__is_more_than_that),
        EXECUTOR_TEST(test_compress__random_content__fits_into_the_bound),
        EXECUTOR_TEST(test_compress__size_in_the_options__is_not_looked_at),
        EXECUTOR_TEST(test_compress__threads_automatic__are_as_many_as_cpus),
        EXECUTOR_TEST(test_compress__destination_too_small__is_told),
        EXECUTOR_TEST(test_compress__little_content__begins_few_threads),
        EXECUTOR_TEST(test_compress__anything_refused__is_told),
        EXECUTOR_TEST(test_compress__thread_refused__is_told),
        EXECUTOR_TEST(test_compress__a_job_fails__is_told),
        EXECUTOR_TEST(test_compress__no_memory_while_jobs_are_out__goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
