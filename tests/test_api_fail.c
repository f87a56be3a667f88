/*
 * When things go wrong: no memory at any point, a budget that is too small,
 * jobs that nobody runs, and hosts that leave at any moment. No crash, no leak,
 * no input lost, and a frame that is whole wherever one is promised.
 */
#include <stdlib.h>
#include <string.h>

#include "support/env.h"
#include "support/expect.h"

enum { KIB = 1 << 10, MIB = 1 << 20, SEGMENT = 64 * KIB, SEED = 11 };

static segzstd_stream_options fixed_options(int level, size_t segment_bytes)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

    options.level = level;
    options.segment_bytes = segment_bytes;
    return options;
}

/* ------------------------------------------------------------------------ */
/* Memory that is refused                                                   */

/* What the host does when memory was refused. */
enum answer {
    RETRY,         /* one allocation failed: the next attempt may succeed */
    WAIT_FOR_MORE, /* all fail, until some attempts later there is memory */
    GIVE_UP        /* all fail: free everything at once */
};

enum { ATTEMPTS = 3, STREAMS = 2 };

/* All that a scenario makes. */
struct world {
    struct test_alloc alloc;
    enum answer answer;
    unsigned refusals;
    segzstd_cache *cache;
    segzstd_dict *dict;
    struct drive drives[STREAMS];
    struct drive_source source;
    const unsigned char *content;
    size_t len;
};

static bool answer_refusal(void *arg)
{
    struct world *w = arg;

    w->refusals++;
    if (w->answer == GIVE_UP)
        return false;
    if (w->answer == WAIT_FOR_MORE && w->refusals == ATTEMPTS)
        alloc_heal(&w->alloc);
    return w->refusals < 1000;
}

/* True if the call is to be made again. */
static bool again(struct world *w, int rc)
{
    assert_true(rc == 0 || rc == SEGZSTD_ERR_NOMEM);
    return rc != 0 && answer_refusal(w);
}

static int make_cache(struct world *w, unsigned workers, unsigned kept)
{
    segzstd_cache_options options = SEGZSTD_CACHE_OPTIONS_INIT;
    int rc;

    options.allocator = &w->alloc.api;
    options.workers = workers;
    options.encoders_kept = kept;
    options.no_huge_pages = 1;
    options.no_stable_input = env_plain_input();
    do {
        rc = segzstd_cache_new(&w->cache, &options);
    } while (again(w, rc));
    return rc;
}

static int make_stream(struct world *w, struct drive *d,
                       const segzstd_stream_options *options)
{
    segzstd_stream *stream = NULL;
    int rc;

    do {
        rc = segzstd_stream_new(&stream, w->cache, options);
    } while (again(w, rc));
    if (rc == 0) {
        drive_init(d, stream, SEED);
        d->on_nomem = answer_refusal;
        d->nomem_arg = w;
    }
    return rc;
}

static void unmake(struct world *w)
{
    for (int i = 0; i < STREAMS; i++) {
        struct drive *d = &w->drives[i];

        if (d->stream == NULL)
            continue;
        drive_give_up(d);
        expect_no_fault(d->fault);
        segzstd_stream_free(d->stream);
        assert_int_equal(d->refs_back, d->refs_lent);
        drive_free(d);
    }
    segzstd_dict_free(w->dict);
    segzstd_cache_free(w->cache);
}

/* Ends the frame and has it judged. */
static int end_stream(struct world *w, struct drive *d)
{
    struct oracle_want want = {w->content, (size_t)d->taken, NULL, 0,
                               0,          ORACLE_SIZE_ANY};
    int rc = drive_end(d);

    if (rc != 0)
        return rc;
    if (w->dict != NULL) {
        want.dict = w->content;
        want.dict_len = 1000;
    }
    expect_no_fault(d->fault);
    assert_true(segzstd_stream_is_done(d->stream));
    expect_no_fault(oracle_check(d->out, d->out_len, &want));
    return 0;
}

static int run_copies(struct world *w, size_t segment_bytes, size_t push_bytes)
{
    segzstd_stream_options options = fixed_options(1, segment_bytes);
    struct drive *d = &w->drives[0];
    int rc = make_cache(w, 3, 0);

    options.checksum = 1;
    options.size = w->len; /* small tables: many runs */
    if (rc == 0)
        rc = make_stream(w, d, &options);
    if (rc == 0) {
        d->push_bytes = push_bytes;
        d->order = DRIVE_NEWEST;
        rc = drive_push(d, w->content, w->len, SEGZSTD_CONTINUE);
    }
    return rc == 0 ? end_stream(w, d) : rc;
}

static int run_fixed(struct world *w)
{
    return run_copies(w, SEGMENT, SIZE_MAX);
}

static int run_fixed_in_pieces(struct world *w)
{
    return run_copies(w, SEGMENT, 10000);
}

static int run_adaptive(struct world *w)
{
    return run_copies(w, 0, SIZE_MAX);
}

static int run_adaptive_in_pieces(struct world *w)
{
    return run_copies(w, 0, 10000);
}

/* Borrowed ranges, then a reader, then a copy. */
static int run_borrowed(struct world *w, size_t segment_bytes)
{
    segzstd_stream_options options = fixed_options(1, segment_bytes);
    struct drive *d = &w->drives[0];
    size_t third = w->len / 3;
    int rc = make_cache(w, 2, 0);

    options.size = w->len;
    w->source = (struct drive_source){w->content + third, third, 0, 0, NULL};
    if (rc == 0)
        rc = make_stream(w, d, &options);
    if (rc == 0) {
        d->push_bytes = 40000;
        rc = drive_push_ref(d, w->content, third, SEGZSTD_CONTINUE);
    }
    if (rc == 0)
        rc = drive_push_source(d, &w->source, third, SEGZSTD_FLUSH);
    if (rc == 0)
        rc = drive_push(d, w->content + 2 * third, w->len - 2 * third,
                        SEGZSTD_CONTINUE);
    return rc == 0 ? end_stream(w, d) : rc;
}

static int run_borrowed_fixed(struct world *w)
{
    return run_borrowed(w, SEGMENT);
}

static int run_borrowed_adaptive(struct world *w)
{
    return run_borrowed(w, 0);
}

/* All of it is in one reader. */
static int run_reader(struct world *w, const segzstd_stream_options *options,
                      segzstd_op op)
{
    struct drive *d = &w->drives[0];
    int rc = make_cache(w, 3, 0);

    w->source = (struct drive_source){w->content, w->len, 0, 0, NULL};
    if (rc == 0)
        rc = make_stream(w, d, options);
    if (rc == 0) {
        d->order = DRIVE_NEWEST;
        rc = drive_push_source(d, &w->source, w->len, op);
    }
    return rc == 0 ? end_stream(w, d) : rc;
}

static int run_reader_fixed(struct world *w)
{
    segzstd_stream_options options = fixed_options(1, SEGMENT);

    options.size = w->len;
    return run_reader(w, &options, SEGZSTD_END);
}

/* One call of libzstd may do. */
static int run_reader_whole(struct world *w)
{
    segzstd_stream_options options = fixed_options(1, 0);

    options.size = w->len;
    return run_reader(w, &options, SEGZSTD_END);
}

/* More than an extent holds, and no encoder waits for a worker. */
static int run_reader_in_parts(struct world *w)
{
    segzstd_stream_options options = fixed_options(1, 0);

    options.size = w->len;
    options.read_bytes = 128 * KIB;
    options.max_jobs = 1;
    return run_reader(w, &options, SEGZSTD_CONTINUE);
}

/* Parts for idle workers. */
static int run_reader_split(struct world *w)
{
    segzstd_stream_options options = fixed_options(5, 0);
    int rc;

    options.size = w->len;
    rc = run_reader(w, &options, SEGZSTD_END);
    if (rc == 0 && alloc_failed(&w->alloc) == 0)
        assert_true(expect_stream_stats(w->drives[0].stream).splits > 0);
    return rc;
}

/* Two streams that take the one encoder from each other at every flush. */
static int run_flushes(struct world *w)
{
    segzstd_stream_options options = fixed_options(1, 0);
    size_t at = 0, turn = 3000;
    int rc = make_cache(w, 1, SEGZSTD_NONE);

    options.size = w->len;
    for (int i = 0; rc == 0 && i < STREAMS; i++) {
        options.level = 1 + 2 * i;
        rc = make_stream(w, &w->drives[i], &options);
    }
    for (; rc == 0 && at < 4 * turn; at += turn) {
        for (int i = 0; rc == 0 && i < STREAMS; i++) {
            rc =
                drive_push(&w->drives[i], w->content + at, turn, SEGZSTD_FLUSH);
            if (rc == 0)
                rc = drive_rest(&w->drives[i]);
        }
    }
    for (int i = 0; rc == 0 && i < STREAMS; i++)
        rc = end_stream(w, &w->drives[i]);
    return rc;
}

static int run_dictionary(struct world *w)
{
    segzstd_stream_options options = fixed_options(3, SEGMENT);
    int rc = make_cache(w, 2, 0);

    options.size = w->len;
    if (rc == 0) {
        do {
            rc = segzstd_dict_new(&w->dict, w->cache, w->content, 1000);
        } while (again(w, rc));
    }
    options.dict = w->dict;
    if (rc == 0)
        rc = make_stream(w, &w->drives[0], &options);
    if (rc == 0)
        rc = drive_push(&w->drives[0], w->content, w->len, SEGZSTD_CONTINUE);
    return rc == 0 ? end_stream(w, &w->drives[0]) : rc;
}

/* Stores a part, in between compressed ones. */
static int run_store(struct world *w)
{
    segzstd_stream_options options = fixed_options(1, 0);
    struct drive *d = &w->drives[0];
    size_t half = w->len / 2, taken;
    int rc = make_cache(w, 1, 0);

    options.size = w->len;
    if (rc == 0)
        rc = make_stream(w, d, &options);
    if (rc == 0)
        rc = drive_push(d, w->content, half, SEGZSTD_FLUSH);
    if (rc == 0)
        rc = drive_rest(d);
    while (rc == 0 && d->taken < w->len) {
        do {
            rc = segzstd_stream_push(d->stream, w->content + d->taken,
                                     w->len - (size_t)d->taken,
                                     SEGZSTD_CONTINUE, &taken);
            d->taken += taken;
        } while (again(w, rc));
        while (rc == 0 && segzstd_stream_want_job(d->stream)) {
            do {
                rc = segzstd_stream_store(d->stream, 50000, &taken);
            } while (again(w, rc));
            drive_read(d);
        }
    }
    return rc == 0 ? end_stream(w, d) : rc;
}

struct scenario {
    const char *name;
    int (*run)(struct world *w);
    size_t len; /* of the content; 0: as most have */
};

static const struct scenario scenarios[] = {
    {"fixed", run_fixed, 0},
    {"fixed in pieces", run_fixed_in_pieces, 0},
    {"adaptive", run_adaptive, 0},
    {"adaptive in pieces", run_adaptive_in_pieces, 0},
    {"borrowed, fixed", run_borrowed_fixed, 0},
    {"borrowed, adaptive", run_borrowed_adaptive, 0},
    {"reader, fixed", run_reader_fixed, 0},
    {"reader, whole", run_reader_whole, 0},
    {"reader, in parts", run_reader_in_parts, 0},
    {"reader, split", run_reader_split, 700 * KIB},
    {"flushes", run_flushes, 0},
    {"dictionary", run_dictionary, 0},
    {"store", run_store, 0},
};

enum { SCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]) };

/* Runs it with the first-th allocation failing, or all from there on. True if
 * any was made to fail. */
static bool run_failing(const struct scenario *scenario,
                        const unsigned char *content, size_t len,
                        enum answer answer, uint64_t first)
{
    static struct world w; /* too large for the stack */
    bool hit;
    int rc;

    memset(&w, 0, sizeof(w));
    w.answer = answer;
    w.content = content;
    w.len = len;
    alloc_init(&w.alloc);
    alloc_fail(&w.alloc, first, answer == RETRY ? 1 : ALLOC_FOR_EVER);
    rc = scenario->run(&w);
    if (answer == GIVE_UP)
        assert_true(rc == 0 || rc == SEGZSTD_ERR_NOMEM);
    else
        assert_int_equal(rc, 0);
    unmake(&w);
    hit = alloc_failed(&w.alloc) > 0;
    expect_no_fault(alloc_done(&w.alloc));
    return hit;
}

static void fail_each_in_turn(enum answer answer)
{
    size_t step = env_pick("each so many-th allocation", 1, 11);
    unsigned char *content = data_new(700 * KIB, DATA_JSON, SEED);

    for (int i = 0; i < SCENARIOS; i++) {
        size_t len = scenarios[i].len != 0 ? scenarios[i].len : 250 * KIB;
        uint64_t n = 0;

        while (run_failing(&scenarios[i], content, len, answer, n))
            n += step;
        print_message("%s: %llu allocations\n", scenarios[i].name,
                      (unsigned long long)n);
        assert_true(n > 5);
    }
    free(content);
}

static void test_memory__each_allocation_fails_once__all_finish(void **state)
{
    (void)state;
    fail_each_in_turn(RETRY);
}

static void test_memory__all_fail_for_a_while__all_finish(void **state)
{
    (void)state;
    fail_each_in_turn(WAIT_FOR_MORE);
}

static void test_memory__all_fail_for_ever__all_is_freed(void **state)
{
    (void)state;
    fail_each_in_turn(GIVE_UP);
}

static void test_push__no_memory_half_way__says_what_was_taken(void **state)
{
    segzstd_stream_options options = fixed_options(1, 0);
    unsigned char *content = data_new(3 * MIB, DATA_TEXT, SEED);
    static struct test_alloc alloc;
    segzstd_cache *cache;
    size_t taken = 0;
    struct drive d;
    int rc;

    (void)state;
    alloc_init(&alloc);
    cache = expect_cache(2, &alloc);
    drive_init(&d, expect_stream(cache, &options), SEED);
    alloc.budget = MIB;
    rc = segzstd_stream_push(d.stream, content, 3 * MIB, SEGZSTD_END, &taken);
    assert_int_equal(rc, SEGZSTD_ERR_NOMEM);
    assert_true(taken > 0 && taken < MIB);
    d.taken = taken;
    alloc.budget = 0;
    assert_int_equal(
        drive_push(&d, content + taken, 3 * MIB - taken, SEGZSTD_END), 0);
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, content, 3 * MIB);
    segzstd_stream_free(d.stream);
    drive_free(&d);
    segzstd_cache_free(cache);
    expect_no_fault(alloc_done(&alloc));
    free(content);
}

/* ------------------------------------------------------------------------ */
/* The byte budget                                                          */

static bool refuse_in_the_end(void *arg)
{
    unsigned *attempts = arg;

    return ++*attempts < 20;
}

/* True if the stream could be finished within the budget. */
static bool run_in_budget(uint64_t budget, const unsigned char *content,
                          size_t len, size_t segment_bytes, bool by_reader)
{
    struct drive_source source = {content, len, 0, 0, NULL};
    segzstd_cache_options co = SEGZSTD_CACHE_OPTIONS_INIT;
    segzstd_stream_options so = fixed_options(3, segment_bytes);
    static struct test_alloc alloc;
    segzstd_cache *cache = NULL;
    segzstd_stream *stream = NULL;
    unsigned attempts = 0;
    int rc;

    alloc_init(&alloc);
    co.allocator = &alloc.api;
    co.byte_budget = budget;
    co.workers = 2;
    co.no_huge_pages = 1;
    co.no_stable_input = env_plain_input();
    rc = segzstd_cache_new(&cache, &co);
    if (rc == 0)
        rc = segzstd_stream_new(&stream, cache, &so);
    if (rc == 0) {
        struct drive d;

        drive_init(&d, stream, SEED);
        d.on_nomem = refuse_in_the_end;
        d.nomem_arg = &attempts;
        rc = by_reader ? drive_push_source(&d, &source, len, SEGZSTD_END)
                       : drive_push(&d, content, len, SEGZSTD_CONTINUE);
        if (rc == 0)
            rc = drive_end(&d);
        if (rc == 0)
            expect_frame(&d, content, len);
        drive_give_up(&d);
        drive_free(&d);
        segzstd_stream_free(stream);
    }
    assert_true(rc == 0 || rc == SEGZSTD_ERR_NOMEM);
    if (cache != NULL)
        assert_true(expect_cache_stats(cache).bytes_peak <= budget);
    segzstd_cache_free(cache);
    assert_true(alloc.bytes_peak <= budget);
    expect_no_fault(alloc_done(&alloc));
    return rc == 0;
}

static void test_budget__of_any_size__is_never_exceeded(void **state)
{
    size_t len = 600 * KIB;
    unsigned char *content = data_new(len, DATA_JSON, SEED);

    (void)state;
    for (int i = 0; i < 4; i++) {
        size_t segment = i % 2 == 0 ? 0 : SEGMENT;
        bool by_reader = i >= 2;
        uint64_t budget = 1;
        bool finished = false;

        while (budget < (uint64_t)64 * MIB) {
            finished = run_in_budget(budget, content, len, segment, by_reader);
            budget += budget / 4 + 1;
        }
        assert_false(run_in_budget(1000, content, len, segment, by_reader));
        assert_true(finished);
    }
    free(content);
}

/* One stream at the level, alone on the cache; returns the peak. */
static uint64_t use_level(segzstd_cache *cache, int level,
                          const unsigned char *content, size_t len)
{
    segzstd_stream_options options = fixed_options(level, 0);
    struct drive d;

    options.size = len;
    drive_init(&d, expect_stream(cache, &options), SEED);
    assert_int_equal(drive_push(&d, content, len, SEGZSTD_END), 0);
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, content, len);
    segzstd_stream_free(d.stream);
    drive_free(&d);
    return expect_cache_stats(cache).bytes_peak;
}

/* What is kept for reuse must never be the reason for a refusal. */
static void test_budget__reached__idle_memory_goes_first(void **state)
{
    static const int levels[] = {1, 5, 9, 12, 3};
    size_t len = 400 * KIB;
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    segzstd_cache_options options = SEGZSTD_CACHE_OPTIONS_INIT;
    segzstd_cache *cache;
    uint64_t most = 0;

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        uint64_t peak;

        cache = expect_cache(1, NULL);
        peak = use_level(cache, levels[i], content, len);
        most = peak > most ? peak : most;
        segzstd_cache_free(cache);
    }
    options.workers = 1;
    options.byte_budget = most + 64 * KIB;
    assert_int_equal(segzstd_cache_new(&cache, &options), 0);
    for (size_t i = 0; i < 25; i++)
        assert_true(use_level(cache, levels[i % 5], content, len) <=
                    options.byte_budget);
    segzstd_cache_free(cache);
    free(content);
}

/* What a host does when there is no memory: it stores what waits. Returns how
 * many bytes were stored. */
static uint64_t push_or_store(struct drive *d, const unsigned char *content,
                              size_t len)
{
    uint64_t total = 0;

    while (!segzstd_stream_is_done(d->stream)) {
        uint64_t taken_before = d->taken, total_before = total;
        size_t taken = 0, stored = 0;
        int rc = 0;

        if (!d->ended) {
            rc = segzstd_stream_push(d->stream, content + d->taken,
                                     len - (size_t)d->taken, SEGZSTD_END,
                                     &taken);
            d->taken += taken;
            d->ended = rc == 0 && d->taken == len;
        }
        if (rc == 0)
            rc = drive_take(d);
        if (rc == 0 && d->job_count > 0)
            rc = drive_run_one(d);
        assert_true(rc == 0 || rc == SEGZSTD_ERR_NOMEM);
        /* it needs memory for output while the input is still there */
        if (rc != 0) {
            rc = segzstd_stream_store(d->stream, SIZE_MAX, &stored);
            assert_true(rc == 0 || (rc == SEGZSTD_ERR_NOMEM && stored > 0));
        }
        total += stored;
        drive_read(d);
        assert_true(d->taken > taken_before || total > total_before);
    }
    return total;
}

/* The response goes on, at the cost of its size. */
static void test_budget__too_small_for_an_encoder__store_ends_it(void **state)
{
    segzstd_cache_options co = SEGZSTD_CACHE_OPTIONS_INIT;
    segzstd_stream_options so = fixed_options(12, 0);
    size_t len = 2 * MIB;
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    segzstd_cache *cache = NULL;
    struct drive d;

    (void)state;
    co.byte_budget = MIB / 2; /* also for the short rest at the end */
    co.workers = 1;
    assert_int_equal(segzstd_cache_new(&cache, &co), 0);
    drive_init(&d, expect_stream(cache, &so), SEED);
    assert_int_equal(push_or_store(&d, content, len), len);
    expect_frame(&d, content, len);
    assert_int_equal(expect_stream_stats(d.stream).bytes_stored, len);
    assert_int_equal(expect_cache_stats(cache).stored_bytes, len);
    assert_int_equal(expect_cache_stats(cache).encoders_live, 0);
    segzstd_stream_free(d.stream);
    drive_free(&d);
    segzstd_cache_free(cache);
    free(content);
}

enum { CROWD = 6 };

/* Streams that read by themselves, and one host thread: takes a job of each that
 * has one, then runs and completes them all. Returns how often memory was
 * refused. */
static unsigned run_crowd(segzstd_cache *cache, const unsigned char *content,
                          size_t len)
{
    segzstd_stream_options options = fixed_options(9, 0);
    struct drive_source source = {.content = content, .len = len};
    struct drive_source sources[CROWD];
    struct drive crowd[CROWD];
    unsigned refused = 0, done = 0;

    options.size = len;
    for (size_t i = 0; i < CROWD; i++) {
        drive_init(&crowd[i], expect_stream(cache, &options), i);
        crowd[i].jobs_held = 1;
        sources[i] = source;
        sources[i].drive = &crowd[i];
        assert_int_equal(
            drive_push_source(&crowd[i], &sources[i], len, SEGZSTD_END), 0);
    }
    while (done < CROWD) {
        done = 0;
        for (size_t i = 0; i < CROWD; i++)
            refused += drive_take(&crowd[i]) == SEGZSTD_ERR_NOMEM;
        for (size_t i = 0; i < CROWD; i++) {
            while (crowd[i].job_count > 0)
                refused += drive_run_one(&crowd[i]) == SEGZSTD_ERR_NOMEM;
            drive_read(&crowd[i]);
            done += segzstd_stream_is_done(crowd[i].stream) != 0;
        }
        assert_true(refused < 10000);
    }
    for (size_t i = 0; i < CROWD; i++) {
        expect_frame(&crowd[i], content, len);
        segzstd_stream_free(crowd[i].stream);
        drive_free(&crowd[i]);
    }
    return refused;
}

/* Four workers, and memory for fewer: then fewer work, and what is refused, or
 * made anew since it was taken away, is less than what is done. */
static void test_budget__less_than_the_workers_need__is_seldom_reached(
    void **state)
{
    segzstd_cache_options options = SEGZSTD_CACHE_OPTIONS_INIT;
    size_t len = env_pick("content", 8 * MIB, 3 * MIB);
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    segzstd_cache *cache = expect_cache(1, NULL);
    uint64_t one = use_level(cache, 9, content, len);
    segzstd_cache_stats stats;
    unsigned refused;

    (void)state;
    segzstd_cache_free(cache);
    options.workers = 4;
    options.byte_budget = 2 * one;
    assert_int_equal(segzstd_cache_new(&cache, &options), 0);
    refused = run_crowd(cache, content, len);
    stats = expect_cache_stats(cache);
    print_message("%llu jobs, %u refused, %llu encoders made\n",
                  (unsigned long long)stats.jobs, refused,
                  (unsigned long long)stats.misses);
    assert_true(stats.bytes_peak <= 2 * one);
    assert_true(refused > 0);
    assert_true(refused * 6 <= stats.jobs);
    assert_true(stats.misses * 4 < stats.jobs * 3);
    segzstd_cache_free(cache);
    free(content);
}

/* There is room for the content, if not for the extent that it might need. */
static void test_budget__half_free__takes_what_fits(void **state)
{
    segzstd_cache_options co = SEGZSTD_CACHE_OPTIONS_INIT;
    size_t len = 500 * KIB, taken = 0;
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    segzstd_cache *cache = NULL;
    segzstd_stream *stream;

    (void)state;
    co.byte_budget = 2 * MIB;
    co.workers = 1;
    assert_int_equal(segzstd_cache_new(&cache, &co), 0);
    stream = expect_stream(cache, NULL);
    assert_int_equal(
        segzstd_stream_push(stream, content, len, SEGZSTD_CONTINUE, &taken), 0);
    assert_int_equal(taken, len);
    segzstd_stream_free(stream);
    segzstd_cache_free(cache);
    free(content);
}

/* ------------------------------------------------------------------------ */
/* Store                                                                    */

static void test_store__between_compressed_parts__decodes(void **state)
{
    size_t len = env_pick("content", 900 * KIB, 300 * KIB);
    segzstd_cache *cache = expect_cache(3, NULL);

    (void)state;
    for (int kind = 0; kind < DATA_KINDS; kind++) {
        unsigned char *content = data_new(len, (enum data_kind)kind, SEED);

        for (size_t segment = 0; segment <= SEGMENT; segment += SEGMENT) {
            segzstd_stream_options options = fixed_options(4, segment);
            uint64_t total = 0;
            struct drive d;

            options.checksum = 1;
            drive_init(&d, expect_stream(cache, &options), SEED);
            d.order = DRIVE_ANY;
            while (d.taken < len) {
                size_t left = len - (size_t)d.taken, stored;
                size_t n = rng_spread(&d.rng, 200 * KIB);

                n = n < left ? n : left;
                assert_int_equal(drive_push(&d, content + d.taken, n,
                                            rng_below(&d.rng, 3) == 0
                                                ? SEGZSTD_FLUSH
                                                : SEGZSTD_CONTINUE),
                                 0);
                if (rng_below(&d.rng, 2) == 0) {
                    n = rng_spread(&d.rng, 300 * KIB);
                    assert_int_equal(segzstd_stream_store(d.stream, n, &stored),
                                     0);
                    assert_true(stored <= n);
                    total += stored;
                }
                if (d.job_count > 0)
                    assert_int_equal(drive_run_one(&d), 0);
            }
            assert_int_equal(drive_end(&d), 0);
            expect_frame(&d, content, len);
            assert_int_equal(expect_stream_stats(d.stream).bytes_stored, total);
            segzstd_stream_free(d.stream);
            drive_free(&d);
        }
        free(content);
    }
    segzstd_cache_free(cache);
}

static void test_store__a_job_is_out__stores_what_follows_it(void **state)
{
    segzstd_stream_options options = fixed_options(1, SEGMENT);
    size_t len = 4 * SEGMENT, taken, stored = 0;
    segzstd_cache *cache = expect_cache(3, NULL);
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    struct drive d;

    (void)state;
    options.max_jobs = 1;
    drive_init(&d, expect_stream(cache, &options), SEED);
    assert_int_equal(
        segzstd_stream_push(d.stream, content, len, SEGZSTD_FLUSH, &taken), 0);
    d.taken = taken;
    assert_int_equal(drive_take(&d), 0);
    assert_int_equal(d.job_count, 1);
    assert_int_equal(segzstd_stream_store(d.stream, SIZE_MAX, &stored), 0);
    assert_int_equal(stored, 3 * SEGMENT);
    assert_true(segzstd_stream_ready_bytes(d.stream) < 32); /* the header */
    assert_false(segzstd_stream_is_flushed(d.stream));
    assert_int_equal(drive_run_one(&d), 0);
    assert_true(segzstd_stream_is_flushed(d.stream));
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, content, len);
    segzstd_stream_free(d.stream);
    drive_free(&d);
    segzstd_cache_free(cache);
    free(content);
}

static void test_store__with_a_limit__stores_no_more(void **state)
{
    static const size_t limits[] = {0, 1, 1000, 128 * KIB, 200 * KIB};
    size_t len = 500 * KIB;
    segzstd_cache *cache = expect_cache(1, NULL);
    unsigned char *content = data_new(len, DATA_JSON, SEED);

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        size_t taken, stored = 1;
        struct drive d;

        drive_init(&d, expect_stream(cache, NULL), SEED);
        assert_int_equal(segzstd_stream_push(d.stream, content, len,
                                             SEGZSTD_CONTINUE, &taken),
                         0);
        d.taken = taken;
        assert_int_equal(segzstd_stream_store(d.stream, limits[i], &stored), 0);
        assert_int_equal(stored, limits[i]);
        assert_int_equal(segzstd_stream_store(d.stream, limits[i], NULL), 0);
        assert_int_equal(expect_stream_stats(d.stream).bytes_stored,
                         2 * limits[i]);
        assert_int_equal(drive_end(&d), 0);
        expect_frame(&d, content, len);
        segzstd_stream_free(d.stream);
        drive_free(&d);
    }
    free(content);
    segzstd_cache_free(cache);
}

/* Stored content may end anywhere between two of the cuts that fixed segments
 * would have. */
static void test_store__around_fixed_cuts__compressing_goes_on(void **state)
{
    size_t len = 5 * SEGMENT + 100;
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(len, DATA_JSON, SEED);

    (void)state;
    for (size_t n = SEGMENT; n <= 3 * SEGMENT; n += SEGMENT / 2) {
        for (size_t limit = n - 1; limit <= n + 1; limit++) {
            segzstd_stream_options options = fixed_options(1, SEGMENT);
            size_t taken, stored = 0;
            struct drive d;

            options.checksum = 1;
            drive_init(&d, expect_stream(cache, &options), limit);
            d.jobs_held = limit % 2;
            assert_int_equal(segzstd_stream_push(d.stream, content, len - 10,
                                                 SEGZSTD_CONTINUE, &taken),
                             0);
            d.taken = taken;
            assert_int_equal(segzstd_stream_store(d.stream, limit, &stored), 0);
            assert_int_equal(stored, limit);
            assert_int_equal(drive_rest(&d), 0);
            assert_int_equal(
                drive_push(&d, content + len - 10, 10, SEGZSTD_END), 0);
            assert_int_equal(drive_end(&d), 0);
            expect_frame(&d, content, len);
            segzstd_stream_free(d.stream);
            drive_free(&d);
        }
    }
    free(content);
    segzstd_cache_free(cache);
}

static void test_store__input_of_a_reader__is_left_alone(void **state)
{
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(300 * KIB, DATA_JSON, SEED);
    struct drive_source source = {content, 200 * KIB, 0, 0, NULL};
    size_t stored = 9;
    struct drive d;

    (void)state;
    drive_init(&d, expect_stream(cache, NULL), SEED);
    source.drive = &d;
    assert_int_equal(segzstd_stream_push_reader(d.stream, drive_read_source,
                                                200 * KIB, SEGZSTD_CONTINUE,
                                                drive_release_source, &source),
                     0);
    d.taken = 200 * KIB;
    d.refs_lent = 1;
    assert_int_equal(segzstd_stream_store(d.stream, SIZE_MAX, &stored), 0);
    assert_int_equal(stored, 0);
    assert_true(segzstd_stream_want_job(d.stream));
    assert_int_equal(
        drive_push(&d, content + 200 * KIB, 100 * KIB, SEGZSTD_END), 0);
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, content, 300 * KIB);
    segzstd_stream_free(d.stream);
    drive_free(&d);
    free(content);
    segzstd_cache_free(cache);
}

/* Lent memory that was stored is given back. */
static void test_store__of_everything__needs_no_encoder(void **state)
{
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(300 * KIB, DATA_JSON, SEED);
    segzstd_cache_stats stats;
    size_t stored = 9;
    struct drive d;

    (void)state;
    drive_init(&d, expect_stream(cache, NULL), SEED);
    assert_int_equal(segzstd_stream_store(d.stream, SIZE_MAX, &stored), 0);
    assert_int_equal(stored, 0);
    assert_int_equal(drive_push_ref(&d, content, 300 * KIB, SEGZSTD_END), 0);
    drive_give_up(&d);
    assert_int_equal(segzstd_stream_store(d.stream, SIZE_MAX, &stored), 0);
    assert_int_equal(stored, 300 * KIB);
    drive_read(&d);
    expect_frame(&d, content, 300 * KIB);
    stats = expect_cache_stats(cache);
    assert_int_equal(stats.encoders_peak, 0);
    segzstd_stream_free(d.stream);
    drive_free(&d);
    free(content);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */
/* Jobs that are not run                                                    */

static void test_complete__job_not_run__input_waits_again(void **state)
{
    size_t len = 700 * KIB;
    segzstd_cache *cache = expect_cache(3, NULL);
    unsigned char *content = data_new(len, DATA_JSON, SEED);

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        segzstd_stream_options options =
            fixed_options(2, i % 2 == 0 ? 0 : SEGMENT);
        struct drive_source source = {content, len, 0, 0, NULL};
        struct drive d;

        drive_init(&d, expect_stream(cache, &options), SEED);
        d.order = DRIVE_ANY;
        if (i < 2)
            assert_int_equal(drive_push_ref(&d, content, len, SEGZSTD_END), 0);
        else
            assert_int_equal(drive_push_source(&d, &source, len, SEGZSTD_END),
                             0);
        for (int k = 0; k < 60; k++) {
            assert_int_equal(drive_take(&d), 0);
            if (d.job_count == 0)
                break;
            if (rng_below(&d.rng, 4) == 0)
                assert_int_equal(drive_run_one(&d), 0);
            else
                assert_int_equal(drive_return_one(&d), 0);
            drive_read(&d);
        }
        assert_int_equal(segzstd_stream_error(d.stream), 0);
        assert_int_equal(drive_end(&d), 0);
        expect_frame(&d, content, len);
        segzstd_stream_free(d.stream);
        drive_free(&d);
    }
    free(content);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */
/* Leaving                                                                  */

/* What happened to a job when its stream is left, and after that. */
enum fate { RUN_BEFORE, RUN_AFTER, NEVER_RUN, COMPLETED_BEFORE, FATES };

enum leave { FREE, CANCEL, CANCEL_AND_FREE, LEAVES };

enum { JOBS = 3 };

static void leave_stream(segzstd_stream *stream, enum leave leave)
{
    size_t taken, stored;
    segzstd_job *job;

    if (leave == FREE) {
        segzstd_stream_free(stream);
        return;
    }
    segzstd_stream_cancel(stream);
    assert_int_equal(segzstd_stream_error(stream), SEGZSTD_ERR_CANCELED);
    assert_int_equal(segzstd_stream_ready_bytes(stream), 0);
    assert_int_equal(segzstd_stream_want_input(stream), 0);
    assert_false(segzstd_stream_want_job(stream));
    assert_false(segzstd_stream_is_done(stream));
    assert_int_equal(segzstd_stream_poll_job(stream, &job),
                     SEGZSTD_ERR_CANCELED);
    assert_int_equal(segzstd_stream_push(stream, "x", 1, SEGZSTD_FLUSH, &taken),
                     SEGZSTD_ERR_CANCELED);
    assert_int_equal(segzstd_stream_store(stream, 1, &stored),
                     SEGZSTD_ERR_CANCELED);
    segzstd_stream_cancel(stream);
    if (leave == CANCEL_AND_FREE)
        segzstd_stream_free(stream);
}

/* Polls up to three jobs, leaves the stream with each in its state, completes what
 * is left in some order. */
static void leave_with_fates(const enum fate *fates, enum leave leave,
                             size_t segment_bytes, bool newest_first,
                             const unsigned char *content, size_t len)
{
    segzstd_stream_options options = fixed_options(1, segment_bytes);
    struct drive_source source = {content, len, 0, 0, NULL};
    segzstd_job *jobs[JOBS] = {NULL};
    static struct test_alloc alloc;
    segzstd_cache *cache;
    struct drive d;

    alloc_init(&alloc);
    cache = expect_cache(JOBS, &alloc);
    options.size = len;
    drive_init(&d, expect_stream(cache, &options), SEED);
    source.drive = &d;
    assert_int_equal(segzstd_stream_push_reader(d.stream, drive_read_source,
                                                len, SEGZSTD_FLUSH,
                                                drive_release_source, &source),
                     0);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(segzstd_stream_poll_job(d.stream, &jobs[i]), 0);
        /* Where to cut, and how often, is the library's own affair. */
        assert_true(jobs[i] != NULL || (segment_bytes == 0 && i > 1));
    }
    for (int i = 0; i < JOBS; i++) {
        if (jobs[i] == NULL)
            continue;
        if (fates[i] == RUN_BEFORE || fates[i] == COMPLETED_BEFORE)
            segzstd_job_run(jobs[i]);
        if (fates[i] == COMPLETED_BEFORE) {
            assert_int_equal(segzstd_job_complete(jobs[i]), 0);
            jobs[i] = NULL;
        }
    }
    leave_stream(d.stream, leave);
    for (int i = 0; i < JOBS; i++) {
        int k = newest_first ? JOBS - 1 - i : i;

        if (jobs[k] == NULL)
            continue;
        if (fates[k] == RUN_AFTER)
            segzstd_job_run(jobs[k]);
        assert_int_equal(segzstd_job_complete(jobs[k]), SEGZSTD_ERR_CANCELED);
    }
    if (leave == CANCEL) {
        assert_int_equal(segzstd_stream_jobs_out(d.stream), 0);
        segzstd_stream_free(d.stream);
    }
    assert_int_equal(d.refs_back, 1);
    assert_int_equal(expect_cache_stats(cache).streams_open, 0);
    assert_int_equal(expect_cache_stats(cache).jobs_out, 0);
    assert_int_equal(expect_cache_stats(cache).encoders_running, 0);
    segzstd_cache_free(cache);
    expect_no_fault(alloc_done(&alloc));
}

static void test_leave__jobs_in_any_state__all_is_freed(void **state)
{
    size_t len = 3 * MIB;
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    int step = (int)env_pick("each so many-th case", 1, 5);

    (void)state;
    for (int n = 0; n < FATES * FATES * FATES; n += step) {
        enum fate fates[JOBS] = {(enum fate)(n % FATES),
                                 (enum fate)(n / FATES % FATES),
                                 (enum fate)(n / FATES / FATES)};

        for (int leave = FREE; leave < LEAVES; leave++) {
            leave_with_fates(fates, (enum leave)leave, SEGMENT, n % 2 == 0,
                             content, len);
            leave_with_fates(fates, (enum leave)leave, 0, n % 2 == 0, content,
                             len);
        }
    }
    free(content);
}

/* A stream is left after each step of its life, with what it then holds. */
static void test_leave__after_any_step__all_is_freed(void **state)
{
    size_t len = 400 * KIB;
    size_t steps = env_pick("steps", 120, 20);
    unsigned char *content = data_new(len, DATA_JSON, SEED);

    (void)state;
    for (size_t n = 0; n < steps; n++) {
        segzstd_stream_options options =
            fixed_options(1, n % 2 == 0 ? 0 : SEGMENT);
        static struct test_alloc alloc;
        segzstd_cache *cache;
        struct drive d;

        alloc_init(&alloc);
        cache = expect_cache(2, &alloc);
        drive_init(&d, expect_stream(cache, &options), n);
        d.push_bytes = 0;
        d.order = DRIVE_ANY;
        for (size_t i = 0; i < n && d.taken < len; i++) {
            size_t piece = rng_spread(&d.rng, 30000);
            size_t left = len - (size_t)d.taken;

            piece = piece < left ? piece : left;
            if (i % 3 == 0)
                assert_int_equal(drive_push_ref(&d, content + d.taken, piece,
                                                SEGZSTD_CONTINUE),
                                 0);
            else
                assert_int_equal(drive_push(&d, content + d.taken, piece,
                                            (segzstd_op)(i % 5 == 0)),
                                 0);
        }
        expect_no_fault(d.fault);
        if (n % 3 == 0)
            segzstd_stream_cancel(d.stream);
        segzstd_stream_free(d.stream);
        while (d.job_count > 0) {
            segzstd_job *job = d.jobs[--d.job_count];

            if (n % 4 == 0)
                segzstd_job_run(job);
            assert_int_equal(segzstd_job_complete(job), SEGZSTD_ERR_CANCELED);
        }
        assert_int_equal(d.refs_back, d.refs_lent);
        drive_free(&d);
        segzstd_cache_free(cache);
        expect_no_fault(alloc_done(&alloc));
    }
    free(content);
}

static void test_leave__nothing__is_allowed(void **state)
{
    (void)state;
    segzstd_stream_free(NULL);
    segzstd_cache_free(NULL);
    segzstd_dict_free(NULL);
    segzstd_executor_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory__each_allocation_fails_once__all_finish),
        cmocka_unit_test(test_memory__all_fail_for_a_while__all_finish),
        cmocka_unit_test(test_memory__all_fail_for_ever__all_is_freed),
        cmocka_unit_test(test_push__no_memory_half_way__says_what_was_taken),
        cmocka_unit_test(test_budget__of_any_size__is_never_exceeded),
        cmocka_unit_test(test_budget__reached__idle_memory_goes_first),
        cmocka_unit_test(test_budget__too_small_for_an_encoder__store_ends_it),
        cmocka_unit_test(
            test_budget__less_than_the_workers_need__is_seldom_reached),
        cmocka_unit_test(test_budget__half_free__takes_what_fits),
        cmocka_unit_test(test_store__between_compressed_parts__decodes),
        cmocka_unit_test(test_store__a_job_is_out__stores_what_follows_it),
        cmocka_unit_test(test_store__with_a_limit__stores_no_more),
        cmocka_unit_test(test_store__around_fixed_cuts__compressing_goes_on),
        cmocka_unit_test(test_store__input_of_a_reader__is_left_alone),
        cmocka_unit_test(test_store__of_everything__needs_no_encoder),
        cmocka_unit_test(test_complete__job_not_run__input_waits_again),
        cmocka_unit_test(test_leave__jobs_in_any_state__all_is_freed),
        cmocka_unit_test(test_leave__after_any_step__all_is_freed),
        cmocka_unit_test(test_leave__nothing__is_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
