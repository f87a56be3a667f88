/*
 * job.c is compiled into this test, so that the clock, the encoder and what
 * libzstd writes can be other than they are.
 */
#if !defined(_POSIX_C_SOURCE)
#  define _POSIX_C_SOURCE 200809L /* clock_gettime() */
#endif

#include "job.h"

#include <stdlib.h>
#include <time.h>

static unsigned clock_calls;
static bool clock_fails, clock_is_fake;

static int get_time(clockid_t id, struct timespec *t)
{
    if (clock_fails)
        return -1;
    if (!clock_is_fake)
        return clock_gettime(id, t);
    t->tv_sec = clock_calls == 0 ? 5 : 7;
    t->tv_nsec = clock_calls == 0 ? 999999990 : 10;
    clock_calls++;
    return 0;
}

/* What happens at which call of encoder_flush(), counted from 1. */
static struct {
    unsigned calls;
    unsigned fault_at;
    int fault;
    unsigned unfinished_at;
    unsigned cancel_at;
    _Atomic bool *canceled;
} plan;

static int flush_encoder(struct segzstd__encoder *encoder, size_t end,
                         uint8_t *dst, size_t dst_len, size_t *written,
                         bool *done)
{
    int rc;

    plan.calls++;
    if (plan.calls == plan.cancel_at)
        atomic_store(plan.canceled, true);
    if (plan.calls == plan.fault_at) {
        if (plan.fault == SEGZSTD_ERR_ZSTD)
            encoder->zstd_error = "played";
        return plan.fault;
    }
    rc = segzstd__encoder_flush(encoder, end, dst, dst_len, written, done);
    if (plan.calls == plan.unfinished_at)
        *done = false;
    return rc;
}

static bool hide_header;

static size_t header_bytes(const uint8_t *src, size_t len)
{
    return hide_header ? 0 : segzstd__frame_header_bytes(src, len);
}

#define clock_gettime get_time
#define segzstd__encoder_flush flush_encoder
#define segzstd__frame_header_bytes header_bytes
#include "job.c"
#undef clock_gettime

#include "support/data.h"
#include "support/expect.h"
#include "support/frame_walk.h"

enum { CONTENT = 1 << 20, OVERLAP = 50000, DICT = 10000 };

struct fixture {
    struct test_alloc alloc;
    struct segzstd_cache *cache;
    struct segzstd__job_shared shared;
    unsigned char *content;
    unsigned char *frame; /* what jobs made so far */
    size_t len;
};

static void make_cache(struct fixture *f)
{
    alloc_heal(&f->alloc);
    f->cache = expect_cache(2, &f->alloc);
    f->shared.cache = f->cache;
    f->len = 0;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return -1;
    alloc_init(&f->alloc);
    make_cache(f);
    f->shared.level = 3;
    f->shared.slice_bytes = 1 * MIB;
    f->shared.header =
        (struct segzstd__frame_header){17, SEGZSTD_SIZE_UNKNOWN, 0, false};
    f->content = data_new(CONTENT, DATA_MIXTURE, 1);
    f->frame = malloc(2 * CONTENT);
    memset(&plan, 0, sizeof(plan));
    plan.canceled = &f->shared.canceled;
    *state = f;
    return f->frame == NULL ? -1 : 0;
}

static void drop_cache(struct fixture *f)
{
    segzstd_cache_stats stats = expect_cache_stats(f->cache);

    assert_int_equal(stats.encoders_running, 0);
    segzstd_cache_free(f->cache);
    f->cache = NULL;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    const char *fault;

    alloc_heal(&f->alloc);
    clock_fails = clock_is_fake = hide_header = false;
    segzstd_dict_free(f->shared.dict);
    segzstd_cache_free(f->cache);
    fault = alloc_done(&f->alloc);
    if (fault != NULL)
        print_error("%s\n", fault);
    free(f->frame);
    free(f->content);
    free(f);
    return fault == NULL ? 0 : -1;
}

/* ---- jobs ---- */

/* A job for [from, from + len) of the content, in a segment up to `end`. */
static struct segzstd_job make_job(struct fixture *f, size_t from, size_t len,
                                   size_t end)
{
    return (struct segzstd_job){
        .shared = &f->shared,
        .from = from,
        .content = f->content + from,
        .len = len,
        .len_max = end - from,
        .prefix_len = min_size(from, OVERLAP),
        .zstd_error = "",
        .last_of_run = from + len == end,
    };
}

static void take_output(struct fixture *f, struct segzstd_job *job)
{
    segzstd_vec vec[64];
    size_t n = segzstd__buf_peek(&job->out, vec, 64);

    for (size_t i = 0; i < n; i++) {
        memcpy(f->frame + f->len, vec[i].base, vec[i].len);
        f->len += vec[i].len;
    }
    segzstd__job_drop(f->cache, &job->out);
    assert_int_equal(job->out.len, 0);
    assert_null(job->out.head);
}

/* Runs the job, which must succeed, and takes its output. */
static void run_job(struct fixture *f, struct segzstd_job *job)
{
    segzstd_job_run(job);
    assert_true(job->ran);
    assert_int_equal(job->error, 0);
    assert_string_equal(job->zstd_error, "");
    take_output(f, job);
}

/* What must be true of a job that failed. */
static void expect_failed(struct fixture *f, struct segzstd_job *job, int error)
{
    assert_true(job->ran);
    assert_int_equal(job->error, error);
    assert_int_equal(job->out.len, 0);
    assert_null(job->out.head);
    assert_null(job->claim.slot);
    assert_int_equal(expect_cache_stats(f->cache).encoders_live, 0);
}

static void expect_frame_of(struct fixture *f, const void *content, size_t len)
{
    struct oracle_want want = {content, len, NULL, 0, 31, ORACLE_SIZE_ANY};

    if (f->shared.dict != NULL) {
        want.dict = f->shared.dict->bytes;
        want.dict_len = f->shared.dict->len;
    }
    expect_no_fault(oracle_check(f->frame, f->len, &want));
}

/* Ends the frame, decodes it, and walks over its sequences: each offset must
 * be within the declared window. */
static void expect_pieces(struct fixture *f, size_t len)
{
    struct frame_walk walk;

    memcpy(f->frame + f->len, "\1\0", 3);
    f->len += 3;
    expect_frame_of(f, f->content, len);
    if (f->shared.dict == NULL && frame_walk(f->frame, f->len, 0, &walk) != 0)
        fail_msg("%s", walk.error);
}

/* ---- whole frames ---- */

static void run_whole_job(struct fixture *f, size_t len, bool checksum)
{
    struct segzstd_job job = make_job(f, 0, len, len);

    f->shared.header.checksum = checksum;
    f->len = 0;
    job.whole = true;
    run_job(f, &job);
    assert_true(job.began);
    assert_int_equal(expect_cache_stats(f->cache).encoders_held, 0);
}

static void test_whole__any_length__is_what_compress2_makes(void **state)
{
    static const size_t sizes[] = {0, 1, 1000, 100000, CONTENT};
    struct fixture *f = *state;
    ZSTD_CCtx *cctx = ZSTD_createCCtx();
    unsigned char *want = malloc(2 * CONTENT);

    assert_non_null(cctx);
    assert_non_null(want);
    ZSTD_CCtx_setParameter(cctx, ZSTD_c_compressionLevel, 3);
    ZSTD_CCtx_setParameter(cctx, ZSTD_c_windowLog, 17);
    for (int i = 0; i < 5; i++) {
        size_t n;

        ZSTD_CCtx_setParameter(cctx, ZSTD_c_checksumFlag, i % 2);
        n = ZSTD_compress2(cctx, want, 2 * CONTENT, f->content, sizes[i]);
        run_whole_job(f, sizes[i], i % 2 != 0);
        assert_int_equal(f->len, n);
        assert_memory_equal(f->frame, want, n);
        expect_frame_of(f, f->content, sizes[i]);
    }
    free(want);
    ZSTD_freeCCtx(cctx);
}

/* A chunk for the worst case is not left with the little that came of it. */
static void test_whole__much_smaller_than_its_bound__is_moved(void **state)
{
    struct fixture *f = *state;
    struct segzstd_job job = make_job(f, 0, CONTENT, CONTENT);

    memset(f->content, 7, CONTENT);
    job.whole = true;
    segzstd_job_run(&job);
    assert_int_equal(job.error, 0);
    assert_int_equal(job.out.head->block_bytes, 4096);
    assert_null(job.out.head->next);
    /* the large one is idle, for the next */
    assert_true(f->cache->pool.bytes > CONTENT);
    take_output(f, &job);
    expect_frame_of(f, f->content, CONTENT);
}

static void test_whole__little_smaller_than_its_bound__stays(void **state)
{
    struct fixture *f = *state;
    struct segzstd_job job = make_job(f, 0, CONTENT, CONTENT);

    data_fill(f->content, CONTENT, DATA_RANDOM, 1);
    job.whole = true;
    segzstd_job_run(&job);
    assert_int_equal(job.error, 0);
    assert_true(job.out.head->block_bytes > CONTENT);
    assert_int_equal(f->cache->pool.bytes, 0);
    take_output(f, &job);
    expect_frame_of(f, f->content, CONTENT);
}

/* Moving is for memory's sake; where there is none the chunk just stays. */
static void test_whole__no_memory_to_move__is_as_good(void **state)
{
    struct fixture *f = *state;
    struct segzstd_job job = make_job(f, 0, CONTENT, CONTENT);
    uint64_t allocations;

    memset(f->content, 7, CONTENT);
    alloc_fail(&f->alloc, ALLOC_FOR_EVER, 0);
    run_whole_job(f, CONTENT, false);
    allocations = f->alloc.calls;
    drop_cache(f);
    make_cache(f);
    alloc_fail(&f->alloc, allocations - 1, 1);
    job.whole = true;
    segzstd_job_run(&job);
    assert_int_equal(job.error, 0);
    assert_true(job.out.head->block_bytes > CONTENT);
    take_output(f, &job);
    expect_frame_of(f, f->content, CONTENT);
}

/* ---- pieces ---- */

/* Cuts [0, len) into segments and these into jobs, with `between` called
 * after each job. Returns how many runs were begun. */
static unsigned run_pieces(struct fixture *f, size_t len, size_t segment,
                           size_t piece, void (*between)(struct fixture *f))
{
    struct segzstd__claim claim = {NULL, 0};
    unsigned began = 0;
    size_t from = 0;

    f->len = 0;
    while (from < len) {
        size_t end = min_size(len, from - from % segment + segment);
        struct segzstd_job job =
            make_job(f, from, min_size(piece, end - from), end);

        job.claim = claim;
        run_job(f, &job);
        assert_int_equal(job.claim.slot == NULL, job.last_of_run);
        claim = job.claim;
        began += job.began;
        from += job.len;
        if (between != NULL)
            between(f);
    }
    expect_pieces(f, len);
    return began;
}

static void test_pieces__of_one_run__are_one_frame(void **state)
{
    static const size_t pieces[] = {1000, 131072, 300000, CONTENT};
    struct fixture *f = *state;

    for (int i = 0; i < 4; i++)
        assert_int_equal(run_pieces(f, CONTENT, CONTENT, pieces[i], NULL), 1);
}

static void test_pieces__of_several_runs__are_one_frame(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(run_pieces(f, CONTENT, 100000, 30000, NULL), 11);
    f->shared.header.window_log = 15;
    assert_int_equal(run_pieces(f, CONTENT, 100000, 100000, NULL), 11);
    f->shared.level = 16;
    assert_int_equal(run_pieces(f, CONTENT, 200000, 70000, NULL), 6);
}

static void test_pieces__every_kind_of_content__decode(void **state)
{
    struct fixture *f = *state;

    for (int kind = 0; kind < DATA_KINDS; kind++) {
        data_fill(f->content, 300000, (enum data_kind)kind, 3);
        run_pieces(f, 300000, 70000, 20000, NULL);
    }
}

/* A window that is smaller than a block, and than the overlap. */
static void test_pieces__smallest_window__is_kept_to(void **state)
{
    struct fixture *f = *state;

    for (unsigned log = 10; log <= 16; log += 3) {
        f->shared.header.window_log = log;
        run_pieces(f, 300000, 70000, 20000, NULL);
    }
}

/* Leaves encoders of other levels and sizes, in the middle of a run, for the
 * jobs that follow. */
static void use_encoders(struct fixture *f, int round)
{
    struct segzstd__frame_header header = f->shared.header;
    int level = f->shared.level;

    for (int i = 0; i < 5; i++) {
        struct segzstd_job job =
            make_job(f, (size_t)i * 1000, 5000, (size_t)10000 << round);

        f->shared.level = 1 + (i + round) % 9;
        f->shared.header.window_log = 15 + (unsigned)(i * round) % 4;
        run_job(f, &job);
        segzstd__cache_abandon(f->cache, &job.claim);
    }
    f->shared.level = level;
    f->shared.header = header;
}

/* A run's bytes are those of its content and its parameters, whatever its
 * encoder did before. */
static void test_pieces__encoders_used_before__same_bytes(void **state)
{
    static const int levels[] = {-5, 1, 3, 6, 9, 13, 16};
    struct fixture *f = *state;
    unsigned char *want = malloc(2 * CONTENT);

    assert_non_null(want);
    for (int i = 0; i < 7; i++) {
        size_t len;

        f->shared.level = levels[i];
        drop_cache(f);
        make_cache(f);
        run_pieces(f, 300000, 70000, 70000, NULL);
        memcpy(want, f->frame, f->len);
        len = f->len;
        for (int round = 0; round < 4; round++) {
            use_encoders(f, round);
            run_pieces(f, 300000, 70000, 70000, NULL);
            assert_int_equal(f->len, len);
            assert_memory_equal(f->frame, want, len);
        }
    }
    free(want);
}

static void lose_encoders(struct fixture *f)
{
    while (segzstd__cache_reclaim(f->cache))
        ;
}

/* As if another stream took the encoder each time. */
static void test_pieces__encoder_lost_in_between__another_is_primed(
    void **state)
{
    struct fixture *f = *state;

    assert_int_equal(run_pieces(f, 400000, 400000, 50000, lose_encoders), 8);
}

static void test_pieces__slices__are_as_good_as_one_piece(void **state)
{
    struct fixture *f = *state;
    size_t len;

    run_pieces(f, 400000, 400000, 400000, NULL);
    len = f->len;
    f->shared.slice_bytes = 128 * KIB;
    run_pieces(f, 400000, 400000, 400000, NULL);
    assert_in_range(f->len, len, len + 100);
}

/* All header fields of the stream, in place of libzstd's. */
static void test_pieces__frame_header__is_the_streams(void **state)
{
    struct fixture *f = *state;
    struct oracle_header header;
    struct segzstd_job job = make_job(f, 0, 1000, CONTENT);

    f->shared.header =
        (struct segzstd__frame_header){20, (uint64_t)5 << 40, 0xabcdef01, true};
    run_job(f, &job);
    assert_true(oracle_read_header(f->frame, f->len, &header));
    assert_int_equal(header.window, 1 << 20);
    assert_int_equal(header.content_size, (uint64_t)5 << 40);
    assert_int_equal(header.dict_id, 0xabcdef01);
    assert_true(header.checksum);
    segzstd__cache_abandon(f->cache, &job.claim);
}

/* Ten thousand event streams may have one chunk each. */
static void test_pieces__little_content__has_a_small_chunk(void **state)
{
    static const size_t sizes[] = {1, 100, 2000};
    struct fixture *f = *state;

    for (size_t from = 0; from <= 100000; from += 100000)
        for (int i = 0; i < 3; i++) {
            struct segzstd_job job = make_job(f, from, sizes[i], 200000);

            segzstd_job_run(&job);
            assert_int_equal(job.error, 0);
            assert_int_equal(job.out.head->block_bytes, 4096);
            assert_null(job.out.head->next);
            segzstd__job_drop(f->cache, &job.out);
            segzstd__cache_abandon(f->cache, &job.claim);
        }
}

/* Much content has chunks that a socket takes at once. */
static void test_pieces__much_content__has_chunks_of_64_kib(void **state)
{
    struct fixture *f = *state;
    struct segzstd_job job = make_job(f, 0, 500000, 500000);
    struct segzstd__chunk *chunk;

    data_fill(f->content, CONTENT, DATA_RANDOM, 1);
    segzstd_job_run(&job);
    assert_int_equal(job.error, 0);
    for (chunk = job.out.head; chunk != NULL; chunk = chunk->next)
        assert_in_range(chunk->block_bytes, 48 * KIB, 96 * KIB);
    assert_true(job.out.len > 500000);
    take_output(f, &job);
    expect_pieces(f, 500000);
}

/* Once the decoder's state is known, blocks are not looked at. */
static void test_pieces__past_the_seam__is_settled(void **state)
{
    struct fixture *f = *state;
    struct segzstd_job job = make_job(f, 100000, 50000, 200000);

    data_fill(f->content, CONTENT, DATA_TEXT, 1);
    run_job(f, &job);
    assert_false(job.claim.slot->encoder->seam_active);
    assert_true(segzstd__seam_is_settled(&job.claim.slot->encoder->seam));
    segzstd__cache_abandon(f->cache, &job.claim);
}

/* A short rest of large content is not a small file, for which libzstd would
 * take a dearer match finder. */
static void test_pieces__short_rest__is_pledged_as_large(void **state)
{
    struct fixture *f = *state;
    struct segzstd_job job = make_job(f, 200000, 1000, 201000);

    job.last_of_run = false;
    job.prefix_len = 30000;
    run_job(f, &job);
    assert_int_equal(job.claim.slot->key.size_log, 15);
    segzstd__cache_abandon(f->cache, &job.claim);
    job = make_job(f, 200000, 1000, 201000);
    job.last_of_run = false;
    job.prefix_len = 100000;
    run_job(f, &job);
    assert_int_equal(job.claim.slot->key.size_log, 19);
    segzstd__cache_abandon(f->cache, &job.claim);
}

/* The key is that of the tables: level, window, and all that can come. */
static void test_pieces__held_encoder__has_the_jobs_key(void **state)
{
    struct fixture *f = *state;
    struct segzstd_job job = make_job(f, 100000, 1000, 300000);

    run_job(f, &job);
    assert_int_equal(job.claim.slot->key.level, 3);
    assert_int_equal(job.claim.slot->key.window_log, 17);
    assert_int_equal(job.claim.slot->key.size_log, 18);
    segzstd__cache_abandon(f->cache, &job.claim);
}

/* ---- dictionaries ---- */

static void use_dict(struct fixture *f)
{
    assert_int_equal(
        segzstd_dict_new(&f->shared.dict, f->cache, f->content, DICT), 0);
    f->content[0] ^= 1; /* so that the content itself does not begin so */
}

static void test_dict__whole_and_first_run__refer_to_it(void **state)
{
    struct fixture *f = *state;
    size_t without;

    run_whole_job(f, 5000, false);
    without = f->len;
    use_dict(f);
    run_whole_job(f, 5000, false);
    assert_true(f->len < without / 2);
    expect_frame_of(f, f->content, 5000);
    run_pieces(f, 100000, 50000, 10000, NULL);
    run_pieces(f, 100000, 100000, 10000, lose_encoders);
}

static void test_dict__no_memory_to_digest_it__refused(void **state)
{
    struct fixture *f = *state;

    use_dict(f);
    for (int whole = 0; whole < 2; whole++) {
        struct segzstd_job job = make_job(f, 0, 5000, 5000);

        job.whole = whole != 0;
        /* enough for an encoder and a chunk, not for tables of a dictionary */
        f->cache->mem.budget = f->cache->mem.used + 60000;
        segzstd_job_run(&job);
        expect_failed(f, &job, SEGZSTD_ERR_NOMEM);
        assert_null(f->shared.dict->digests);
        f->cache->mem.budget = 0;
    }
    run_whole_job(f, 5000, false);
    expect_frame_of(f, f->content, 5000);
}

/* ---- readers ---- */

struct source {
    struct fixture *fixture;
    size_t end; /* nothing can be read from there on */
    int64_t at_end;
    unsigned reads;
    bool cancel;
};

static int64_t read_source(void *arg, uint64_t offset, void *dst, size_t len)
{
    struct source *source = arg;

    source->reads++;
    if (source->cancel)
        atomic_store(&source->fixture->shared.canceled, true);
    if (offset >= source->end)
        return source->at_end;
    len = min_size(len, min_size(1000, source->end - (size_t)offset));
    memcpy(dst, source->fixture->content + offset, len);
    return (int64_t)len;
}

/* Jobs read their content, and the second also what comes before it. */
static void test_reader__prefix_and_content__are_read_by_the_job(void **state)
{
    struct fixture *f = *state;
    struct source source = {f, CONTENT, 0, 0, false};
    const struct segzstd__reader reader = {1, 0, read_source, NULL, &source};
    unsigned char *place = calloc(1, CONTENT);
    struct segzstd_job job = make_job(f, 0, 100000, 100000);

    assert_non_null(place);
    job.content = place;
    job.reader = &reader;
    job.read_len = 100000;
    run_job(f, &job);
    assert_int_equal(source.reads, 100);
    memset(place, 0, 100000);
    job = make_job(f, 100000, 100000, 200000);
    job.content = place + OVERLAP;
    job.reader = &reader;
    job.read_back = OVERLAP;
    job.read_len = OVERLAP + 100000;
    run_job(f, &job);
    assert_memory_equal(place, f->content + 100000 - OVERLAP, OVERLAP + 100000);
    expect_pieces(f, 200000);

    /* bytes that are there already are not read again */
    job = make_job(f, 0, 100000, 100000);
    job.reader = &reader;
    source.reads = 0;
    run_job(f, &job);
    assert_int_equal(source.reads, 0);
    free(place);
}

static void test_reader__fails_or_ends_early__takes_no_encoder(void **state)
{
    static const int64_t ends[] = {0, -1};
    struct fixture *f = *state;

    for (int i = 0; i < 2; i++) {
        struct source source = {f, 50000, ends[i], 0, false};
        const struct segzstd__reader reader = {1, 0, read_source, NULL,
                                               &source};
        unsigned char *place = calloc(1, 100000);
        struct segzstd_job job = make_job(f, 0, 100000, 100000);

        job.content = place;
        job.reader = &reader;
        job.read_len = 100000;
        segzstd_job_run(&job);
        expect_failed(f, &job, SEGZSTD_ERR_READ);
        assert_int_equal(expect_cache_stats(f->cache).misses, 0);
        free(place);
    }
}

/* ---- cancel ---- */

static void test_cancel__before_the_run__does_nothing(void **state)
{
    struct fixture *f = *state;
    struct source source = {f, CONTENT, 0, 0, false};
    const struct segzstd__reader reader = {1, 0, read_source, NULL, &source};
    struct segzstd_job job = make_job(f, 0, 100000, 100000);

    atomic_store(&f->shared.canceled, true);
    job.reader = &reader;
    job.read_len = 100000;
    segzstd_job_run(&job);
    expect_failed(f, &job, SEGZSTD_ERR_CANCELED);
    assert_int_equal(source.reads, 0);
    assert_int_equal(plan.calls, 0);
}

/* At the next slice of content, behind a seam and without one. */
static void test_cancel__while_it_runs__ends_early(void **state)
{
    struct fixture *f = *state;

    f->shared.slice_bytes = 128 * KIB;
    for (size_t from = 0; from <= 100000; from += 100000)
        for (unsigned at = 1; at <= 3; at++) {
            struct segzstd_job job = make_job(f, from, 800000, 900000);

            memset(&plan, 0, sizeof(plan));
            plan.canceled = &f->shared.canceled;
            plan.cancel_at = at;
            segzstd_job_run(&job);
            assert_int_equal(plan.calls, at);
            expect_failed(f, &job, SEGZSTD_ERR_CANCELED);
            atomic_store(&f->shared.canceled, false);
        }
}

/* ---- errors ---- */

static void test_run__encoder_fails__is_told_and_not_used_again(void **state)
{
    struct fixture *f = *state;

    for (size_t from = 0; from <= 100000; from += 100000) {
        struct segzstd_job job = make_job(f, from, 10000, 900000);

        run_job(f, &job);
        segzstd__cache_abandon(f->cache, &job.claim);
        job = make_job(f, from, 10000, 900000);
        memset(&plan, 0, sizeof(plan));
        plan.fault_at = 1;
        plan.fault = SEGZSTD_ERR_ZSTD;
        segzstd_job_run(&job);
        expect_failed(f, &job, SEGZSTD_ERR_ZSTD);
        assert_string_equal(job.zstd_error, "played");
    }
}

/* Parameters that libzstd refuses: the error has its name. */
static void test_run__libzstd_refuses__has_its_name(void **state)
{
    struct fixture *f = *state;

    f->shared.header.window_log = 9;
    for (int whole = 0; whole < 2; whole++) {
        struct segzstd_job job = make_job(f, 0, 10000, 10000);

        job.whole = whole != 0;
        segzstd_job_run(&job);
        expect_failed(f, &job, SEGZSTD_ERR_ZSTD);
        assert_string_equal(job.zstd_error, "Parameter is out of bound");
    }
}

/* libzstd writes no frame header where one is expected, or says that it has
 * not flushed all though there was room. */
static void test_run__output_is_not_what_it_must_be__internal(void **state)
{
    struct fixture *f = *state;

    for (size_t from = 0; from <= 100000; from += 100000) {
        struct segzstd_job job = make_job(f, from, 10000, 900000);

        hide_header = true;
        segzstd_job_run(&job);
        expect_failed(f, &job, SEGZSTD_ERR_INTERNAL);
        hide_header = false;
    }
    struct segzstd_job job = make_job(f, 100000, 10000, 900000);

    memset(&plan, 0, sizeof(plan));
    plan.unfinished_at = 1;
    segzstd_job_run(&job);
    expect_failed(f, &job, SEGZSTD_ERR_INTERNAL);
}

/* ---- memory ---- */

static void test_run__all_encoders_run__is_refused(void **state)
{
    struct fixture *f = *state;
    const struct segzstd__key key = {3, 17, 10};
    struct segzstd__slot *slots[4];
    struct segzstd_job job = make_job(f, 0, 10000, 10000);

    for (int i = 0; i < 4; i++) {
        struct segzstd__claim none = {NULL, 0};
        bool resumed;

        slots[i] = segzstd__cache_acquire(f->cache, &key, &none, &resumed);
    }
    segzstd_job_run(&job);
    assert_int_equal(job.error, SEGZSTD_ERR_NOMEM);
    assert_null(job.out.head);
    for (int i = 0; i < 4; i++)
        segzstd__cache_release(f->cache, slots[i]);
    job = make_job(f, 0, 10000, 10000);
    run_job(f, &job);
    expect_pieces(f, 10000);
}

/* The first segment, and a job of the second: what is tried with less and less
 * memory. `whole`: a job of another kind. */
static struct segzstd_job prepare(struct fixture *f, bool whole)
{
    struct segzstd_job first = make_job(f, 0, 60000, 60000), job;

    if (whole) {
        job = make_job(f, 0, 100000, 100000);
        job.whole = true;
        return job;
    }
    run_job(f, &first);
    lose_encoders(f);
    return make_job(f, 60000, 40000, 100000);
}

static void expect_all(struct fixture *f, bool whole)
{
    if (whole)
        expect_frame_of(f, f->content, 100000);
    else
        expect_pieces(f, 100000);
}

/* Whichever allocation fails, with all that come after it: the job leaves
 * nothing but the error, and the same job made again succeeds. */
static void test_memory__refused_from_some_point_on__a_new_job_succeeds(
    void **state)
{
    struct fixture *f = *state;

    for (int whole = 0; whole < 2; whole++)
        for (uint64_t at = 0;; at++) {
            struct segzstd_job job, again;

            drop_cache(f);
            make_cache(f);
            again = job = prepare(f, whole != 0);
            alloc_fail(&f->alloc, at, ALLOC_FOR_EVER);
            segzstd_job_run(&job);
            if (job.error == 0) {
                assert_true(at > 2);
                take_output(f, &job);
                expect_all(f, whole != 0);
                break;
            }
            expect_failed(f, &job, SEGZSTD_ERR_NOMEM);
            alloc_heal(&f->alloc);
            run_job(f, &again);
            expect_all(f, whole != 0);
        }
}

/* Whichever allocation fails, once: idle memory of others is given up for it,
 * and the job succeeds at the second attempt. */
static void test_memory__refused_once_while_some_is_idle__job_succeeds(
    void **state)
{
    struct fixture *f = *state;

    for (int whole = 0; whole < 2; whole++)
        for (uint64_t at = 0;; at++) {
            size_t bytes = 2 * MIB;
            uint64_t before = alloc_failed(&f->alloc);
            struct segzstd_job job;

            drop_cache(f);
            make_cache(f);
            job = prepare(f, whole != 0);
            segzstd__cache_put_block(
                f->cache, segzstd__cache_get_block(f->cache, &bytes), bytes);
            alloc_fail(&f->alloc, at, 1);
            run_job(f, &job);
            expect_all(f, whole != 0);
            if (alloc_failed(&f->alloc) == before)
                break;
            assert_true(f->cache->pool.bytes < bytes);
        }
}

/* A run that was going on is lost with its encoder, and begun anew where it
 * was. */
static void test_memory__refused_within_a_run__goes_on_from_there(void **state)
{
    struct fixture *f = *state;
    struct segzstd_job job = make_job(f, 0, 50000, 100000);
    struct segzstd__claim claim;

    run_job(f, &job);
    claim = job.claim;
    job = make_job(f, 50000, 50000, 100000);
    job.claim = claim;
    memset(&plan, 0, sizeof(plan));
    plan.fault_at = 1;
    plan.fault = SEGZSTD_ERR_NOMEM;
    run_job(f, &job);
    assert_true(job.began);
    assert_true(plan.calls > 1);
    expect_pieces(f, 100000);
}

/* ---- the rest ---- */

static void test_run__cpu_time__is_that_of_the_thread(void **state)
{
    struct fixture *f = *state;
    struct segzstd_job job = make_job(f, 0, 10000, 10000);

    clock_calls = 0;
    clock_is_fake = true;
    run_job(f, &job);
    assert_int_equal(job.cpu_ns, 1000000020);
    clock_is_fake = false;
    clock_fails = true;
    job = make_job(f, 0, 10000, 10000);
    run_job(f, &job);
    assert_int_equal(job.cpu_ns, 0);
    clock_fails = false;
    job = make_job(f, 0, CONTENT, CONTENT);
    run_job(f, &job);
    assert_in_range(job.cpu_ns, 1, 600 * (uint64_t)1000000000);
}

static void test_job_stream__is_the_one_it_was_made_for(void **state)
{
    struct segzstd_stream *stream = (void *)0x1000;
    struct segzstd_job job = {.stream = stream};

    (void)state;
    assert_ptr_equal(segzstd_job_stream(&job), stream);
}

static void test_ensure_room__enough_or_not__adds_a_chunk(void **state)
{
    struct fixture *f = *state;
    struct segzstd__buf buf = {NULL, NULL, 0};
    struct segzstd__chunk *chunk;

    assert_int_equal(segzstd__job_ensure_room(f->cache, &buf, 100, 5000), 0);
    chunk = buf.head;
    assert_int_equal(chunk->block_bytes, 6144);
    assert_true(segzstd__buf_room(&buf) >= 5000 + FRAME_HEADER_ROOM);
    assert_int_equal(segzstd__job_ensure_room(f->cache, &buf, 5000, 0), 0);
    assert_ptr_equal(buf.tail, chunk);
    assert_int_equal(segzstd__job_ensure_room(f->cache, &buf, 7000, 10), 0);
    assert_ptr_not_equal(buf.tail, chunk);
    assert_true(segzstd__buf_room(&buf) >= 7000 + FRAME_HEADER_ROOM);
    alloc_fail(&f->alloc, 0, ALLOC_FOR_EVER);
    assert_int_equal(segzstd__job_ensure_room(f->cache, &buf, 70000, 10),
                     SEGZSTD_ERR_NOMEM);
    segzstd__job_drop(f->cache, &buf);
    assert_int_equal(f->cache->pool.bytes, 6144 + 8192);
}

/* The chunk with the end of a frame lies in the stream. */
static void test_drop__chunk_of_somebody_else__is_not_given_back(void **state)
{
    struct fixture *f = *state;
    _Alignas(struct segzstd__chunk) uint8_t place[100];
    struct segzstd__buf buf = {NULL, NULL, 0};

    segzstd__buf_add_chunk(&buf, segzstd__chunk_init(place, sizeof(place)));
    buf.head->block_bytes = 0;
    segzstd__job_drop(f->cache, &buf);
    assert_null(buf.head);
    assert_int_equal(f->cache->pool.bytes, 0);
}

#define WITH_CACHE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CACHE(test_whole__any_length__is_what_compress2_makes),
        WITH_CACHE(test_whole__much_smaller_than_its_bound__is_moved),
        WITH_CACHE(test_whole__little_smaller_than_its_bound__stays),
        WITH_CACHE(test_whole__no_memory_to_move__is_as_good),
        WITH_CACHE(test_pieces__of_one_run__are_one_frame),
        WITH_CACHE(test_pieces__of_several_runs__are_one_frame),
        WITH_CACHE(test_pieces__every_kind_of_content__decode),
        WITH_CACHE(test_pieces__smallest_window__is_kept_to),
        WITH_CACHE(test_pieces__encoders_used_before__same_bytes),
        WITH_CACHE(test_pieces__encoder_lost_in_between__another_is_primed),
        WITH_CACHE(test_pieces__slices__are_as_good_as_one_piece),
        WITH_CACHE(test_pieces__frame_header__is_the_streams),
        WITH_CACHE(test_pieces__little_content__has_a_small_chunk),
        WITH_CACHE(test_pieces__much_content__has_chunks_of_64_kib),
        WITH_CACHE(test_pieces__past_the_seam__is_settled),
        WITH_CACHE(test_pieces__short_rest__is_pledged_as_large),
        WITH_CACHE(test_pieces__held_encoder__has_the_jobs_key),
        WITH_CACHE(test_dict__whole_and_first_run__refer_to_it),
        WITH_CACHE(test_dict__no_memory_to_digest_it__refused),
        WITH_CACHE(test_reader__prefix_and_content__are_read_by_the_job),
        WITH_CACHE(test_reader__fails_or_ends_early__takes_no_encoder),
        WITH_CACHE(test_cancel__before_the_run__does_nothing),
        WITH_CACHE(test_cancel__while_it_runs__ends_early),
        WITH_CACHE(test_run__encoder_fails__is_told_and_not_used_again),
        WITH_CACHE(test_run__libzstd_refuses__has_its_name),
        WITH_CACHE(test_run__output_is_not_what_it_must_be__internal),
        WITH_CACHE(test_run__all_encoders_run__is_refused),
        WITH_CACHE(test_memory__refused_from_some_point_on__a_new_job_succeeds),
        WITH_CACHE(test_memory__refused_once_while_some_is_idle__job_succeeds),
        WITH_CACHE(test_memory__refused_within_a_run__goes_on_from_there),
        WITH_CACHE(test_run__cpu_time__is_that_of_the_thread),
        WITH_CACHE(test_job_stream__is_the_one_it_was_made_for),
        WITH_CACHE(test_ensure_room__enough_or_not__adds_a_chunk),
        WITH_CACHE(test_drop__chunk_of_somebody_else__is_not_given_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
