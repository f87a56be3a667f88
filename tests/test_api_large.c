/*
 * Contents that are far larger than all bounds of a stream: threads must stay
 * busy and memory small from the first byte to the last. And streams that
 * together are larger than the budget.
 */
#include "support/expect.h"

#include <stdlib.h>
#include <string.h>

#define WORKERS 2
#define PATTERN_BYTES EXPECT_MIB

/* The input and output bounds of a stream, the extents and encoders of both
 * workers, and then some. */
#define MEMORY_MAX (160 * EXPECT_MIB)

/* A host with two equal workers: in each round it takes all jobs there are,
 * and each takes the same time. */
struct host {
    segzstd_cache *cache;
    segzstd_stream *stream;
    const unsigned char *pattern;
    unsigned rounds;
    unsigned full_rounds; /* of these, with a job for each worker */
};

static int64_t read_pattern(void *arg, uint64_t offset, void *dst, size_t len)
{
    const struct host *host = arg;
    size_t done = 0;

    while (done < len) {
        size_t at = (size_t)((offset + done) % PATTERN_BYTES);
        size_t n = PATTERN_BYTES - at;

        if (n > len - done)
            n = len - done;
        memcpy((unsigned char *)dst + done, host->pattern + at, n);
        done += n;
    }
    return (int64_t)len;
}

static struct host make_host(const segzstd_stream_options *options,
                             const unsigned char *pattern)
{
    struct host host = {.pattern = pattern};

    host.cache = expect_cache(WORKERS, NULL);
    assert_int_equal(segzstd_stream_new(&host.stream, host.cache, options), 0);
    return host;
}

static void free_host(struct host *host)
{
    segzstd_stream_free(host->stream);
    segzstd_cache_free(host->cache);
}

/* One round; false if there was no job. */
static bool work(struct host *host)
{
    segzstd_job *jobs[DRIVE_JOBS_MAX];
    unsigned count = 0;
    segzstd_vec vec;

    while (segzstd_stream_poll_job(host->stream, &jobs[count]) == 0 &&
           jobs[count] != NULL)
        count++;
    for (unsigned i = 0; i < count; i++)
        segzstd_job_run(jobs[i]);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(segzstd_job_complete(jobs[i]), 0);
    while (segzstd_stream_peek(host->stream, &vec, 1) != 0)
        segzstd_stream_consume(host->stream, vec.len);
    host->rounds++;
    host->full_rounds += count >= WORKERS;
    return count != 0;
}

static void expect_memory_below(struct host *host, size_t most)
{
    segzstd_cache_stats stats = expect_cache_stats(host->cache);

    assert_in_range(stats.bytes_peak, 1, most);
}

/*
 * A cut in the middle of what is left gives the second worker a part whose
 * output has to wait for all of the first one's: it stops at the output bound,
 * and nothing more is cut, so that the first worker goes on alone.
 */
static void run_reader(enum data_kind kind, size_t mib, bool checksum)
{
    uint64_t size = mib * EXPECT_MIB;
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;
    unsigned char *pattern = data_new(PATTERN_BYTES, kind, 1);
    struct host host;

    options.level = 1;
    options.size = size;
    options.size_is_certain = 1;
    options.checksum = checksum;
    host = make_host(&options, pattern);
    assert_int_equal(segzstd_stream_push_reader(host.stream, read_pattern, size,
                                                SEGZSTD_END, NULL, &host),
                     0);
    while (work(&host))
        ;
    assert_true(segzstd_stream_is_done(host.stream));
    expect_memory_below(&host, MEMORY_MAX);
    assert_in_range(host.full_rounds, host.rounds * 3 / 4, host.rounds);
    free_host(&host);
    free(pattern);
}

static void test_reader__random__both_workers_stay_busy(void **state)
{
    (void)state;
    run_reader(DATA_RANDOM, env_pick("MiB of random", 256, 32), false);
}

static void test_reader__text_with_checksum__both_workers_stay_busy(
    void **state)
{
    (void)state;
    run_reader(DATA_TEXT, env_pick("MiB of text", 256, 32), true);
}

/* Output of a few bytes a job is kept until it is its turn, in a chunk for
 * each that has room for a whole job's: it is the room that takes memory. */
static void test_reader__zeros__memory_stays_small(void **state)
{
    (void)state;
    run_reader(DATA_ZEROS, env_pick("MiB of zeros", 1024, 128), true);
}

/*
 * The host is always a little ahead, so that the last segment's extent has no
 * other user when more is pushed. It was then moved to a larger one with all
 * that had been compressed before: quadratic, and never given back.
 */
static void test_push__fixed_segments__memory_stays_small(void **state)
{
    static const unsigned char zeros[64 * 1024];
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;
    size_t size = env_pick("MiB of pushes", 256, 32) * EXPECT_MIB, taken = 0;
    struct host host;

    (void)state;
    options.level = 1;
    options.segment_bytes = 4 * EXPECT_MIB;
    host = make_host(&options, zeros);
    for (size_t pushed = 0; pushed < size; pushed += taken) {
        assert_int_equal(segzstd_stream_push(host.stream, zeros, sizeof(zeros),
                                             SEGZSTD_CONTINUE, &taken),
                         0);
        work(&host);
    }
    assert_int_equal(
        segzstd_stream_push(host.stream, NULL, 0, SEGZSTD_END, &taken), 0);
    while (work(&host))
        ;
    assert_true(segzstd_stream_is_done(host.stream));
    expect_memory_below(&host, MEMORY_MAX);
    free_host(&host);
}

/* ---- more streams than memory ---- */

enum { STREAMS_MAX = 40 };

/* How the content comes into the streams of a crowd. */
enum intake { BY_READER, COPIED };

struct crowd {
    struct host host;
    enum intake intake;
    size_t bytes; /* of each stream */
    segzstd_stream *streams[STREAMS_MAX];
    size_t pushed[STREAMS_MAX];
    unsigned count;
};

static void fill(struct crowd *crowd, unsigned i)
{
    while (crowd->pushed[i] < crowd->bytes) {
        size_t at = crowd->pushed[i] % PATTERN_BYTES, taken;
        size_t len = PATTERN_BYTES - at;
        bool last = crowd->pushed[i] + len == crowd->bytes;
        int error = segzstd_stream_push(
            crowd->streams[i], crowd->host.pattern + at, len,
            last ? SEGZSTD_END : SEGZSTD_CONTINUE, &taken);

        assert_true(error == 0 || error == SEGZSTD_ERR_NOMEM);
        crowd->pushed[i] += taken;
        if (taken < len)
            break;
    }
}

/* A job if there is one, and all output. True if the stream came further. */
static bool advance(segzstd_stream *stream)
{
    segzstd_job *job;
    bool moved = false;
    int error = segzstd_stream_poll_job(stream, &job);

    assert_true(error == 0 || error == SEGZSTD_ERR_NOMEM);
    if (job != NULL) {
        segzstd_job_run(job);
        error = segzstd_job_complete(job);
        assert_true(error == 0 || error == SEGZSTD_ERR_NOMEM);
        moved = error == 0;
    }
    segzstd_stream_consume(stream, segzstd_stream_ready_bytes(stream));
    return moved;
}

static void open_crowd(struct crowd *crowd, int level)
{
    segzstd_stream_options so = SEGZSTD_STREAM_OPTIONS_INIT;

    so.level = level;
    so.output_bytes = 256 << 10;
    if (crowd->intake == COPIED)
        so.input_bytes = crowd->bytes;
    for (unsigned i = 0; i < crowd->count; i++) {
        crowd->pushed[i] = 0;
        crowd->streams[i] = expect_stream(crowd->host.cache, &so);
        if (crowd->intake == BY_READER)
            assert_int_equal(segzstd_stream_push_reader(
                                 crowd->streams[i], read_pattern, crowd->bytes,
                                 SEGZSTD_END, NULL, &crowd->host),
                             0);
    }
}

/*
 * All streams, in turns, until each has come to its end. What is read or copied
 * is worth nothing if there is no memory to compress it: where all streams kept
 * it, none of them could ever go on.
 */
static void take_turns(enum intake intake, unsigned count, size_t mib,
                       uint64_t budget, int level)
{
    segzstd_cache_options co = SEGZSTD_CACHE_OPTIONS_INIT;
    unsigned char *pattern = data_new(PATTERN_BYTES, DATA_RANDOM, 1);
    struct crowd crowd = {.host = {.pattern = pattern},
                          .intake = intake,
                          .bytes = mib * EXPECT_MIB,
                          .count = count};
    unsigned open = count, idle_turns = 0;

    co.workers = WORKERS;
    co.byte_budget = budget;
    assert_int_equal(segzstd_cache_new(&crowd.host.cache, &co), 0);
    open_crowd(&crowd, level);
    for (unsigned i = 0; open != 0; i = (i + 1) % count) {
        if (crowd.streams[i] == NULL)
            continue;
        for (unsigned k = 0; intake == COPIED && k < count; k++)
            if (crowd.streams[k] != NULL)
                fill(&crowd, k);
        idle_turns = advance(crowd.streams[i]) ? 0 : idle_turns + 1;
        assert_true(idle_turns <= 4 * open);
        if (!segzstd_stream_is_done(crowd.streams[i]))
            continue;
        segzstd_stream_free(crowd.streams[i]);
        crowd.streams[i] = NULL;
        open--;
    }
    segzstd_cache_free(crowd.host.cache);
    free(pattern);
}

struct turns {
    unsigned count;
    size_t mib; /* of each stream */
    unsigned budget_mib;
    int level;
};

/* The first of them in the short form. */
static void take_all_turns(enum intake intake, const struct turns *turns,
                           size_t count)
{
    size_t n = env_pick("crowds of streams", count, 1);

    for (size_t i = 0; i < n; i++)
        take_turns(intake, turns[i].count, turns[i].mib,
                   turns[i].budget_mib * EXPECT_MIB, turns[i].level);
}

static void test_budget__many_readers__all_come_to_their_end(void **state)
{
    static const struct turns turns[] = {
        {3, 4, 16, 9}, /* less than two encoders */
        {3, 20, 16, 9},  {1, 20, 16, 3},   {40, 2, 4, 1},
        {10, 20, 64, 3}, {20, 20, 128, 3},
    };

    (void)state;
    take_all_turns(BY_READER, turns, 6);
}

static void test_budget__much_copied__all_come_to_their_end(void **state)
{
    static const struct turns turns[] = {
        {6, 3, 18, 9},
        {20, 10, 64, 3},
        /* less than a block for each stream, and than what a job could make */
        {40, 2, 4, 1},
        {10, 10, 48, 9},
        {10, 6, 80, 12},
        {4, 12, 112, 19},
        /* for an encoder, but not for one that is primed */
        {1, 24, 176, 22},
    };

    (void)state;
    take_all_turns(COPIED, turns, 7);
}

/* The segment's extent is most of the budget, and when all in it has been
 * compressed it must not be what the next one waits for. */
static void test_budget__less_than_a_segment__flushes_come_through(void **state)
{
    segzstd_cache_options co = SEGZSTD_CACHE_OPTIONS_INIT;
    segzstd_stream_options so = SEGZSTD_STREAM_OPTIONS_INIT;
    unsigned char *pattern = data_new(PATTERN_BYTES, DATA_TEXT, 1);
    size_t pushed = 0, size = 24 * EXPECT_MIB;
    struct host host = {.pattern = pattern};
    unsigned idle_turns = 0;

    (void)state;
    co.workers = WORKERS;
    co.byte_budget = 8 * EXPECT_MIB;
    so.level = 1;
    so.segment_bytes = 16 * EXPECT_MIB;
    so.input_bytes = EXPECT_MIB;
    assert_int_equal(segzstd_cache_new(&host.cache, &co), 0);
    host.stream = expect_stream(host.cache, &so);
    while (pushed < size) {
        size_t at = pushed % PATTERN_BYTES, taken, none;
        size_t len = PATTERN_BYTES - at < 65536 ? PATTERN_BYTES - at : 65536;
        int error = segzstd_stream_push(host.stream, pattern + at, len,
                                        SEGZSTD_FLUSH, &taken);

        pushed += taken;
        assert_true(error == 0 || error == SEGZSTD_ERR_NOMEM);
        if (error != 0)
            assert_int_equal(
                segzstd_stream_push(host.stream, NULL, 0, SEGZSTD_FLUSH, &none),
                0);
        idle_turns = advance(host.stream) || taken != 0 ? 0 : idle_turns + 1;
        assert_true(idle_turns < 10);
    }
    free_host(&host);
    free(pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reader__random__both_workers_stay_busy),
        cmocka_unit_test(
            test_reader__text_with_checksum__both_workers_stay_busy),
        cmocka_unit_test(test_reader__zeros__memory_stays_small),
        cmocka_unit_test(test_push__fixed_segments__memory_stays_small),
        cmocka_unit_test(test_budget__many_readers__all_come_to_their_end),
        cmocka_unit_test(test_budget__much_copied__all_come_to_their_end),
        cmocka_unit_test(
            test_budget__less_than_a_segment__flushes_come_through),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
