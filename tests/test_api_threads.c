/*
 * Threads: workers that stand parked until the test lets them go, owners that
 * share a cache, the executor, and hosts that leave while jobs are running. To
 * be run under ThreadSanitizer too.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "support/env.h"
#include "support/expect.h"
#include "support/park.h"

enum { KIB = 1 << 10, MIB = 1 << 20, SEGMENT = 64 * KIB, SEED = 29 };

static segzstd_stream_options fixed_options(int level, size_t segment_bytes)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

    options.level = level;
    options.segment_bytes = segment_bytes;
    return options;
}

/* ------------------------------------------------------------------------ */
/* A stream whose jobs are run by parked workers                            */

/* What is wrong is noted, not asserted: owners are threads too, and a failing
 * assert must not leave them. */
struct talk {
    segzstd_stream *stream;
    struct park *park;
    struct rng rng;
    const unsigned char *content;
    size_t len;
    size_t pushed;
    size_t push_max;
    unsigned out; /* jobs that are with workers */
    struct oracle_live live;
    const char *fault;
};

static void note(struct talk *t, const char *fault)
{
    if (t->fault == NULL)
        t->fault = fault;
}

static void talk_begin(struct talk *t, segzstd_cache *cache,
                       const segzstd_stream_options *options, struct park *park,
                       const unsigned char *content, size_t len, uint64_t seed)
{
    memset(t, 0, sizeof(*t));
    if (segzstd_stream_new(&t->stream, cache, options) != 0)
        abort();
    t->park = park;
    t->rng = rng_seed(seed);
    t->content = content;
    t->len = len;
    t->push_max = 200 * KIB;
    oracle_live_init(&t->live, content, len);
}

static void talk_end(struct talk *t)
{
    if (t->out != 0 || !segzstd_stream_is_done(t->stream))
        note(t, "the stream is not done");
    if (!t->live.ended || t->live.done != t->len)
        note(t, "the client has not all of the content");
    segzstd_stream_free(t->stream);
    oracle_live_free(&t->live);
}

static void talk_read(struct talk *t)
{
    segzstd_vec vec[3];
    size_t count;

    while ((count = segzstd_stream_peek(t->stream, vec, 3)) > 0) {
        size_t bytes = 0;

        for (size_t i = 0; i < count; i++) {
            const char *fault =
                oracle_live_feed(&t->live, vec[i].base, vec[i].len);

            if (fault != NULL)
                note(t, fault);
            bytes += vec[i].len;
        }
        segzstd_stream_consume(t->stream, bytes);
    }
}

/* Gives all jobs there are to workers, which are let go in any order. */
static void talk_submit(struct talk *t)
{
    unsigned given[PARK_WORKERS_MAX], count = 0;
    segzstd_job *job;

    while (t->out < t->park->count) {
        int rc = segzstd_stream_poll_job(t->stream, &job);

        if (rc != 0)
            note(t, segzstd_strerror(rc));
        if (rc != 0 || job == NULL)
            break;
        if (!park_give(t->park, job, &given[count++]))
            abort();
        t->out++;
    }
    while (count > 0) {
        unsigned i = (unsigned)rng_below(&t->rng, count);

        park_release(t->park, given[i]);
        given[i] = given[--count];
    }
}

static void talk_complete(struct talk *t)
{
    int rc = segzstd_job_complete(park_wait(t->park));

    t->out--;
    if (rc != 0)
        note(t, segzstd_strerror(rc));
}

/* One round: push, give out, take one back, read. False if nothing is left. */
static bool talk_on(struct talk *t)
{
    size_t n = rng_spread(&t->rng, t->push_max), taken = 0;
    segzstd_op op =
        rng_below(&t->rng, 4) == 0 ? SEGZSTD_FLUSH : SEGZSTD_CONTINUE;

    if (t->pushed < t->len) {
        int rc;

        if (n >= t->len - t->pushed) {
            n = t->len - t->pushed;
            op = SEGZSTD_END;
        }
        rc = segzstd_stream_push(t->stream, t->content + t->pushed, n, op,
                                 &taken);
        if (rc != 0)
            note(t, segzstd_strerror(rc));
        t->pushed += taken;
    }
    talk_submit(t);
    if (t->out > 0 && rng_below(&t->rng, 3) != 0)
        talk_complete(t);
    talk_read(t);
    return t->fault == NULL && !segzstd_stream_is_done(t->stream);
}

/* Returns how often the content was cut for an idle worker. */
static uint64_t run_with_workers(unsigned workers,
                                 const segzstd_stream_options *options,
                                 size_t len, size_t push_max)
{
    uint64_t splits;
    segzstd_cache *cache = expect_cache(workers, NULL);
    unsigned char *content = data_new(len, DATA_MIXTURE, workers);
    struct park park;
    struct talk t;

    park_start(&park, workers);
    talk_begin(&t, cache, options, &park, content, len, workers);
    t.push_max = push_max;
    while (talk_on(&t))
        continue;
    while (t.out > 0)
        talk_complete(&t);
    talk_end(&t);
    park_stop(&park);
    expect_no_fault(t.fault);
    assert_true(expect_cache_stats(cache).encoders_peak <= 2 * workers);
    assert_int_equal(expect_cache_stats(cache).encoders_running, 0);
    splits = expect_cache_stats(cache).splits;
    free(content);
    segzstd_cache_free(cache);
    return splits;
}

static void test_workers__1_to_16__decode(void **state)
{
    static const unsigned counts[] = {1, 2, 3, 4, 6, 8, 12, 16};
    segzstd_stream_options fixed = fixed_options(1, SEGMENT);
    segzstd_stream_options adaptive = fixed_options(1, 0);
    size_t len = env_pick("content", 3 * MIB, 700 * KIB);

    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        run_with_workers(counts[i], &fixed, len, 200 * KIB);
        run_with_workers(counts[i], &adaptive, len, 200 * KIB);
    }
}

/* Several read the content of one extent, while the owner adds to it. */
static void test_workers__cut_for_when_idle__decode(void **state)
{
    static const unsigned counts[] = {2, 3, 5, 16};
    segzstd_stream_options options = fixed_options(5, 0);
    size_t len = env_pick("content", 8 * MIB, 4 * MIB);
    uint64_t splits = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        splits += run_with_workers(counts[i], &options, len, 3 * MIB);
    assert_true(splits >= sizeof(counts) / sizeof(counts[0]));
}

/* All have their job before any is let go, so that all go to the cache at the
 * same time; they come back in the order that the test chooses. */
static void test_workers__let_go_at_once__keep_input_order(void **state)
{
    enum { WORKERS = 16 };
    size_t rounds = env_pick("rounds", 20, 2);
    size_t len = WORKERS * SEGMENT;
    segzstd_stream_options options = fixed_options(1, SEGMENT);
    segzstd_cache *cache = expect_cache(WORKERS, NULL);
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    struct park park;

    (void)state;
    park_start(&park, WORKERS);
    for (size_t round = 0; round < rounds; round++) {
        segzstd_job *jobs[WORKERS];
        struct drive d;
        size_t taken;

        drive_init(&d, expect_stream(cache, &options), round);
        assert_int_equal(
            segzstd_stream_push(d.stream, content, len, SEGZSTD_END, &taken),
            0);
        assert_int_equal(taken, len);
        for (unsigned i = 0; i < WORKERS; i++) {
            segzstd_job *job;
            unsigned worker;

            assert_int_equal(segzstd_stream_poll_job(d.stream, &job), 0);
            assert_non_null(job);
            assert_true(park_give(&park, job, &worker));
        }
        assert_int_equal(expect_cache_stats(cache).jobs_out, WORKERS);
        for (unsigned i = 0; i < WORKERS; i++)
            park_release(&park, i);
        for (unsigned i = 0; i < WORKERS; i++)
            jobs[i] = park_wait(&park);
        for (size_t left = WORKERS; left > 0; left--) {
            size_t i = rng_below(&d.rng, left);

            assert_int_equal(segzstd_job_complete(jobs[i]), 0);
            jobs[i] = jobs[left - 1];
        }
        d.taken = len;
        d.ended = true;
        drive_read(&d);
        expect_frame(&d, content, len);
        segzstd_stream_free(d.stream);
        drive_free(&d);
    }
    park_stop(&park);
    free(content);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */
/* Several owners                                                           */

enum { OWNERS = 4, OWN_WORKERS = 2, OWN_STREAMS = 4 };

struct owner {
    pthread_t thread;
    segzstd_cache *cache;
    segzstd_dict *dict; /* borrowed; NULL: none */
    const unsigned char *content;
    size_t len;
    uint64_t seed;
    const char *fault;
};

/* Its streams in turn; each flushes, so that others take their encoders. */
static void *own_streams(void *arg)
{
    struct owner *o = arg;
    struct talk talks[OWN_STREAMS];
    struct park park;
    bool any = true;

    park_start(&park, OWN_WORKERS);
    for (unsigned i = 0; i < OWN_STREAMS; i++) {
        segzstd_stream_options options =
            fixed_options((int)(1 + (o->seed + i) % 5), i % 2 * SEGMENT);

        options.dict = o->dict;
        talk_begin(&talks[i], o->cache, &options, &park, o->content, o->len,
                   o->seed * OWN_STREAMS + i);
        if (o->dict != NULL)
            ZSTD_DCtx_loadDictionary(talks[i].live.decoder, o->content, 5000);
    }
    while (any) {
        any = false;
        for (unsigned i = 0; i < OWN_STREAMS; i++) {
            bool more = talk_on(&talks[i]);

            while (talks[i].out > 0)
                talk_complete(&talks[i]);
            any = any || more;
        }
    }
    for (unsigned i = 0; i < OWN_STREAMS; i++) {
        talk_end(&talks[i]);
        if (talks[i].fault != NULL)
            o->fault = talks[i].fault;
    }
    park_stop(&park);
    return NULL;
}

/* Looks at the cache, and trims it, while others use it. */
struct watcher {
    pthread_t thread;
    segzstd_cache *cache;
    atomic_bool stop;
    unsigned limit;
    const char *fault;
};

static void *watch_cache(void *arg)
{
    struct watcher *w = arg;
    uint64_t now = 1;

    while (!atomic_load(&w->stop)) {
        segzstd_cache_stats stats = SEGZSTD_CACHE_STATS_INIT;

        segzstd_cache_get_stats(w->cache, &stats);
        if (stats.encoders_live > w->limit || stats.encoders_peak > w->limit)
            w->fault = "more encoders than the limit";
        if (stats.encoders_running + stats.encoders_held +
                stats.encoders_idle !=
            stats.encoders_live)
            w->fault = "the encoders do not add up";
        if (stats.jobs_out > 2 * stats.workers)
            w->fault = "more jobs out than two for each worker";
        now += (uint64_t)1 << 36;
        segzstd_cache_trim(w->cache, now);
    }
    return NULL;
}

/* The cache has a worker for each that is there, so that no owner has to wait
 * for another one's jobs; but it has fewer encoders than there are streams. */
static void run_owners(segzstd_retention retention, bool with_dict)
{
    size_t len = env_pick("content", 1 * MIB, 150 * KIB);
    segzstd_cache_options options = SEGZSTD_CACHE_OPTIONS_INIT;
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    struct owner owners[OWNERS];
    struct watcher watcher;
    segzstd_dict *dict = NULL;
    segzstd_cache *cache;

    options.workers = OWNERS * OWN_WORKERS;
    options.encoders_kept = 1;
    options.retention = retention;
    options.no_stable_input = env_plain_input();
    assert_int_equal(segzstd_cache_new(&cache, &options), 0);
    if (with_dict)
        assert_int_equal(segzstd_dict_new(&dict, cache, content, 5000), 0);
    watcher.cache = cache;
    watcher.limit = options.workers + 1;
    watcher.fault = NULL;
    atomic_init(&watcher.stop, false);
    pthread_create(&watcher.thread, NULL, watch_cache, &watcher);
    for (unsigned i = 0; i < OWNERS; i++) {
        owners[i] = (struct owner){0};
        owners[i].cache = cache;
        owners[i].dict = dict;
        owners[i].content = content;
        owners[i].len = len;
        owners[i].seed = i;
        pthread_create(&owners[i].thread, NULL, own_streams, &owners[i]);
    }
    for (unsigned i = 0; i < OWNERS; i++)
        pthread_join(owners[i].thread, NULL);
    atomic_store(&watcher.stop, true);
    pthread_join(watcher.thread, NULL);
    for (unsigned i = 0; i < OWNERS; i++)
        expect_no_fault(owners[i].fault);
    expect_no_fault(watcher.fault);
    assert_int_equal(expect_cache_stats(cache).bytes_in,
                     OWNERS * OWN_STREAMS * len);
    assert_int_equal(expect_cache_stats(cache).streams_open, 0);
    segzstd_dict_free(dict);
    segzstd_cache_free(cache);
    free(content);
}

static void test_owners__share_a_cache__all_decode(void **state)
{
    (void)state;
    run_owners(SEGZSTD_RETAIN_ALL, false);
    run_owners(SEGZSTD_RETAIN_BOUNDED, false);
    run_owners(SEGZSTD_RETAIN_NONE, false);
}

/* Whoever comes first digests it for all. */
static void test_owners__share_a_dictionary__all_decode(void **state)
{
    (void)state;
    run_owners(SEGZSTD_RETAIN_ALL, true);
}

struct handover {
    struct drive d;
    const unsigned char *content;
    size_t len;
};

static void *push_half(void *arg)
{
    struct handover *h = arg;

    drive_push(&h->d, h->content, h->len / 2, SEGZSTD_FLUSH);
    return NULL;
}

static void *push_rest(void *arg)
{
    struct handover *h = arg;

    drive_push(&h->d, h->content + h->d.taken, h->len - (size_t)h->d.taken,
               SEGZSTD_END);
    return NULL;
}

/* Ownership moves with pthread_create() and pthread_join(). */
static void test_owner__changes_in_mid_stream__decodes(void **state)
{
    segzstd_cache *cache = expect_cache(3, NULL);
    unsigned char *content = data_new(MIB, DATA_JSON, SEED);
    struct handover h;
    pthread_t thread;

    (void)state;
    drive_init(&h.d, expect_stream(cache, NULL), SEED);
    h.d.push_bytes = 50 * KIB;
    h.content = content;
    h.len = MIB;
    pthread_create(&thread, NULL, push_half, &h);
    pthread_join(thread, NULL);
    if (h.d.job_count > 0)
        assert_int_equal(drive_run_one(&h.d), 0);
    pthread_create(&thread, NULL, push_rest, &h);
    pthread_join(thread, NULL);
    assert_int_equal(drive_end(&h.d), 0);
    expect_frame(&h.d, content, MIB);
    segzstd_stream_free(h.d.stream);
    drive_free(&h.d);
    free(content);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */
/* Executor                                                                 */

static void count_up(void *arg)
{
    atomic_fetch_add((atomic_uint *)arg, 1);
}

static void test_executor__any_number_of_threads__decodes(void **state)
{
    static const unsigned counts[] = {1, 2, 4, 8, 16};
    size_t len = env_pick("content", 4 * MIB, 500 * KIB);
    unsigned char *content = data_new(len, DATA_MIXTURE, SEED);

    (void)state;
    for (size_t i = 0; i < 10; i++) {
        segzstd_stream_options options =
            fixed_options(1, i % 2 == 0 ? 0 : SEGMENT);
        segzstd_cache *cache = expect_cache(counts[i / 2], NULL);
        atomic_uint notified = 0;
        struct drive d;

        drive_init(&d, expect_stream(cache, &options), SEED);
        assert_int_equal(segzstd_executor_new(&d.executor, counts[i / 2],
                                              count_up, &notified),
                         0);
        assert_null(segzstd_executor_poll(d.executor));
        assert_null(segzstd_executor_wait(d.executor));
        d.push_bytes = 0;
        assert_int_equal(drive_push(&d, content, len, SEGZSTD_END), 0);
        assert_int_equal(drive_end(&d), 0);
        expect_frame(&d, content, len);
        assert_null(segzstd_executor_poll(d.executor));
        assert_null(segzstd_executor_wait(d.executor));
        assert_true(atomic_load(&notified) > 0);
        segzstd_executor_free(d.executor);
        segzstd_stream_free(d.stream);
        drive_free(&d);
        segzstd_cache_free(cache);
    }
    free(content);
}

static void post(void *arg)
{
    sem_post(arg);
}

/* An owner that sleeps until it is notified, and then takes all there is, must
 * never sleep for ever. */
static void test_executor__owner_waits_for_notify__is_woken(void **state)
{
    size_t len = env_pick("content", 3 * MIB, 500 * KIB);
    segzstd_stream_options options = fixed_options(1, SEGMENT);
    segzstd_cache *cache = expect_cache(4, NULL);
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    segzstd_executor *executor;
    segzstd_job *job;
    struct talk t;
    sem_t woken;

    (void)state;
    sem_init(&woken, 0, 0);
    talk_begin(&t, cache, &options, NULL, content, len, SEED);
    assert_int_equal(segzstd_executor_new(&executor, 4, post, &woken), 0);
    while (!segzstd_stream_is_done(t.stream)) {
        size_t taken = 0;

        if (t.pushed < len)
            assert_int_equal(segzstd_stream_push(t.stream, content + t.pushed,
                                                 len - t.pushed, SEGZSTD_END,
                                                 &taken),
                             0);
        t.pushed += taken;
        while (segzstd_stream_poll_job(t.stream, &job) == 0 && job != NULL)
            segzstd_executor_submit(executor, job);
        if (segzstd_stream_jobs_out(t.stream) > 0) {
            while (sem_wait(&woken) != 0)
                continue;
            while ((job = segzstd_executor_poll(executor)) != NULL)
                assert_int_equal(segzstd_job_complete(job), 0);
        }
        talk_read(&t);
    }
    segzstd_executor_free(executor);
    talk_end(&t);
    expect_no_fault(t.fault);
    sem_destroy(&woken);
    free(content);
    segzstd_cache_free(cache);
}

static int64_t count_reads(void *arg, uint64_t offset, void *dst, size_t len)
{
    atomic_fetch_add((atomic_uint *)arg, 1);
    memset(dst, (int)(offset >> 16) & 0xff, len);
    return (int64_t)len;
}

/* What is queued is run to its end before the threads stop. */
static void test_executor_free__jobs_queued__runs_them(void **state)
{
    enum { JOBS = 6 };
    segzstd_stream_options options = fixed_options(1, SEGMENT);
    segzstd_cache *cache = expect_cache(JOBS, NULL);
    segzstd_stream *stream = expect_stream(cache, &options);
    segzstd_executor *executor;
    segzstd_job *jobs[JOBS];
    atomic_uint reads = 0;

    (void)state;
    assert_int_equal(segzstd_executor_new(&executor, 1, NULL, NULL), 0);
    assert_int_equal(segzstd_stream_push_reader(stream, count_reads,
                                                JOBS * SEGMENT, SEGZSTD_END,
                                                NULL, &reads),
                     0);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(segzstd_stream_poll_job(stream, &jobs[i]), 0);
        assert_non_null(jobs[i]);
        segzstd_executor_submit(executor, jobs[i]);
    }
    segzstd_executor_free(executor);
    assert_true(atomic_load(&reads) >= JOBS);
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(segzstd_job_complete(jobs[i]), 0);
    assert_true(segzstd_stream_is_flushed(stream));
    segzstd_stream_free(stream);
    segzstd_cache_free(cache);
}

static void test_executor_new__wrong_count__is_refused(void **state)
{
    segzstd_executor *executor = NULL;

    (void)state;
    assert_int_equal(segzstd_executor_new(&executor, 0, NULL, NULL),
                     SEGZSTD_ERR_INVALID);
    assert_int_equal(segzstd_executor_new(&executor, 1025, NULL, NULL),
                     SEGZSTD_ERR_INVALID);
    assert_null(executor);
}

/* ------------------------------------------------------------------------ */
/* Leaving while jobs run                                                   */

/* A reader that stops at a gate when it is called first in a job. */
struct gated_source {
    struct park_gate gate;
    atomic_uint reads;
    unsigned released;
};

enum { READ_MAX = 4 * KIB };

static int64_t read_gated(void *arg, uint64_t offset, void *dst, size_t len)
{
    struct gated_source *source = arg;

    atomic_fetch_add(&source->reads, 1);
    if (offset % MIB == 0)
        gate_pass(&source->gate);
    if (len > READ_MAX)
        len = READ_MAX;
    if (len > MIB - offset % MIB)
        len = MIB - (size_t)(offset % MIB);
    data_fill_at(dst, offset, len);
    return (int64_t)len;
}

static void release_gated(void *arg)
{
    ((struct gated_source *)arg)->released++;
}

enum leave { FREE, CANCEL };

/* All workers are inside their jobs when the host leaves. */
static void leave_while_running(enum leave leave, unsigned workers)
{
    segzstd_stream_options options = fixed_options(1, MIB);
    static struct test_alloc alloc;
    struct gated_source source = {.released = 0};
    segzstd_stream *stream;
    segzstd_cache *cache;
    struct park park;

    alloc_init(&alloc);
    gate_init(&source.gate);
    park_start(&park, workers);
    cache = expect_cache(workers, &alloc);
    options.overlap_bytes = SEGZSTD_OVERLAP_NONE;
    stream = expect_stream(cache, &options);
    assert_int_equal(
        segzstd_stream_push_reader(stream, read_gated, (uint64_t)workers * MIB,
                                   SEGZSTD_END, release_gated, &source),
        0);
    for (unsigned i = 0; i < workers; i++) {
        segzstd_job *job;
        unsigned worker;

        assert_int_equal(segzstd_stream_poll_job(stream, &job), 0);
        assert_non_null(job);
        assert_true(park_give(&park, job, &worker));
        park_release(&park, worker);
    }
    for (unsigned i = 0; i < workers; i++)
        gate_wait(&source.gate);
    if (leave == FREE)
        segzstd_stream_free(stream);
    else
        segzstd_stream_cancel(stream);
    for (unsigned i = 0; i < workers; i++)
        gate_open(&source.gate);
    for (unsigned i = 0; i < workers; i++)
        assert_int_equal(segzstd_job_complete(park_wait(&park)),
                         SEGZSTD_ERR_CANCELED);
    if (leave == CANCEL)
        segzstd_stream_free(stream);
    /* Jobs ended early: they did not read to their segments' ends. */
    assert_true(atomic_load(&source.reads) <
                workers * (unsigned)(MIB / READ_MAX));
    assert_int_equal(source.released, 1);
    segzstd_cache_free(cache);
    park_stop(&park);
    gate_destroy(&source.gate);
    expect_no_fault(alloc_done(&alloc));
}

static void test_leave__jobs_running__end_early_and_all_is_freed(void **state)
{
    (void)state;
    for (unsigned workers = 1; workers <= 16; workers *= 2) {
        leave_while_running(FREE, workers);
        leave_while_running(CANCEL, workers);
    }
}

/* The owner goes on with other work while a job stands still inside. */
static void test_owner__a_job_runs__can_push_store_and_read(void **state)
{
    segzstd_stream_options options = fixed_options(1, MIB);
    struct gated_source source = {.released = 0};
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(2 * MIB, DATA_JSON, SEED);
    size_t stored = 0, taken;
    struct park park;
    unsigned worker;
    struct drive d;

    (void)state;
    data_fill_at(content, 0, MIB);
    gate_init(&source.gate);
    park_start(&park, 1);
    options.max_jobs = 1;
    drive_init(&d, expect_stream(cache, &options), SEED);
    assert_int_equal(segzstd_stream_push_reader(d.stream, read_gated, MIB,
                                                SEGZSTD_CONTINUE, release_gated,
                                                &source),
                     0);
    assert_int_equal(segzstd_stream_push(d.stream, content + MIB, 1000,
                                         SEGZSTD_CONTINUE, &taken),
                     0);
    assert_int_equal(drive_take(&d), 0);
    assert_int_equal(d.job_count, 1);
    assert_true(park_give(&park, d.jobs[0], &worker));
    park_release(&park, worker);
    gate_wait(&source.gate);
    assert_int_equal(segzstd_stream_push(d.stream, content + MIB + 1000,
                                         MIB - 1000, SEGZSTD_FLUSH, &taken),
                     0);
    assert_int_equal(taken, MIB - 1000);
    assert_int_equal(segzstd_stream_store(d.stream, SIZE_MAX, &stored), 0);
    assert_int_equal(stored, MIB);
    assert_false(segzstd_stream_is_flushed(d.stream));
    drive_read(&d);
    gate_open(&source.gate);
    assert_int_equal(segzstd_job_complete(park_wait(&park)), 0);
    d.job_count = 0;
    d.taken = 2 * MIB;
    assert_true(segzstd_stream_is_flushed(d.stream));
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, content, 2 * MIB);
    assert_int_equal(source.released, 1);
    segzstd_stream_free(d.stream);
    drive_free(&d);
    park_stop(&park);
    gate_destroy(&source.gate);
    free(content);
    segzstd_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers__1_to_16__decode),
        cmocka_unit_test(test_workers__cut_for_when_idle__decode),
        cmocka_unit_test(test_workers__let_go_at_once__keep_input_order),
        cmocka_unit_test(test_owners__share_a_cache__all_decode),
        cmocka_unit_test(test_owners__share_a_dictionary__all_decode),
        cmocka_unit_test(test_owner__changes_in_mid_stream__decodes),
        cmocka_unit_test(test_executor__any_number_of_threads__decodes),
        cmocka_unit_test(test_executor__owner_waits_for_notify__is_woken),
        cmocka_unit_test(test_executor_free__jobs_queued__runs_them),
        cmocka_unit_test(test_executor_new__wrong_count__is_refused),
        cmocka_unit_test(test_leave__jobs_running__end_early_and_all_is_freed),
        cmocka_unit_test(test_owner__a_job_runs__can_push_store_and_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
