/*
 * fuzz_stream.c - random operations on two streams of one cache: pushes of all
 * kinds and sizes, flushes, jobs taken, run, returned and completed in any
 * order, or at once by their owner, output read in bits, input stored, streams
 * at rest, trims, memory that is refused, and hosts that leave.
 *
 * Whatever happens: what was flushed can be decoded, a stream without a fatal
 * error can be ended and decodes to what it took, and nothing leaks.
 *
 * The fuzzer's bytes are options, and then one byte for each operation with its
 * arguments behind it. The content is not taken from them: fuzz_roundtrip.c is
 * for that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/alloc.h"
#include "support/drive.h"

enum {
    KIB = 1 << 10,
    POOL = 4096 * KIB,
    CONTENT_MAX = 512 * KIB,
    LARGE_MAX = 3072 * KIB, /* enough to be cut for an idle worker */
    ACTORS = 2,
    SOURCES = 8,
    OPERATIONS_MAX = 400
};

struct bytes {
    const uint8_t *at;
    const uint8_t *end;
    unsigned shift; /* of sizes; not 0: content is cut for idle workers */
};

/* A stream, and what is known of it. */
struct actor {
    struct drive d;
    struct oracle_live live;
    const unsigned char *content;
    size_t len;
    uint64_t flushed; /* all before it must be decodable after work */
    bool alive;       /* not yet freed */
    bool certain;     /* may fail with SEGZSTD_ERR_SIZE */
    bool failing;     /* may fail with SEGZSTD_ERR_READ */
    struct drive_source sources[SOURCES];
    unsigned source_count;
};

struct world {
    struct test_alloc alloc;
    segzstd_cache *cache;
    struct actor actors[ACTORS];
    uint64_t now;
    bool budget; /* the cache itself may say no for ever */
};

static void fail(const char *fault)
{
    fprintf(stderr, "fuzz_stream: %s\n", fault);
    abort();
}

static void check(const char *fault)
{
    if (fault != NULL)
        fail(fault);
}

static unsigned take(struct bytes *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

/* Of any order of magnitude up to 256 KiB, or, where all is large, 4 MiB. */
static size_t take_size(struct bytes *in)
{
    unsigned a = take(in), b = take(in);

    return (((size_t)1 << a % 18) + (b << a % 11)) << in->shift;
}

/* 128 KiB to 3 MiB, or the default. */
static size_t take_extent(struct bytes *in)
{
    unsigned n = take(in);

    return n % 2 == 0 ? 0 : (size_t)(1 + n / 2 % 24) << 17;
}

static const unsigned char *content_of(unsigned kind, unsigned offset)
{
    static unsigned char *pools[DATA_KINDS];

    kind %= DATA_KINDS;
    if (pools[kind] == NULL)
        pools[kind] = data_new(POOL, (enum data_kind)kind, kind);
    return pools[kind] + offset * 911;
}

/* ------------------------------------------------------------------------ */
/* Beginning                                                                */

static void begin_world(struct world *w, struct bytes *in)
{
    segzstd_cache_options options = SEGZSTD_CACHE_OPTIONS_INIT;
    unsigned flags = take(in), counts = take(in);

    memset(w, 0, sizeof(*w));
    alloc_init(&w->alloc);
    options.allocator = &w->alloc.api;
    options.no_huge_pages = 1;
    options.workers = 1 + counts % 4;
    in->shift = counts & 128 ? 4 : 0;
    options.encoders_kept = counts / 4 % 4 == 0 ? SEGZSTD_NONE : counts / 4 % 4;
    options.no_stable_input = flags & 1;
    options.retention = (segzstd_retention)(flags / 2 % 3);
    options.retain_bytes = (uint64_t)flags << 16;
    if (flags & 64) {
        options.byte_budget = (uint64_t)(1 + take(in)) << 15;
        w->budget = true;
    }
    if (segzstd_cache_new(&w->cache, &options) != 0)
        w->cache = NULL;
}

static segzstd_stream_options take_options(struct bytes *in, struct actor *a)
{
    static const int levels[] = {1, 2,  3,  4,  5,  6,  7,
                                 9, -1, -5, 12, 13, 16, 19};
    static const size_t segments[] = {0, 0, 64 * KIB, 65537, 100 * KIB};
    static const size_t overlaps[] = {0, SEGZSTD_OVERLAP_NONE, 1, 5000};
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;
    unsigned flags = take(in), sizes = take(in);

    options.level = levels[take(in) % 14];
    a->len = options.level > 9 ? 90 * KIB : CONTENT_MAX;
    if (in->shift != 0)
        a->len = options.level > 9 ? 700 * KIB : LARGE_MAX;
    options.segment_bytes = segments[sizes % 5];
    options.overlap_bytes = overlaps[sizes / 5 % 4];
    options.history_bytes = overlaps[sizes / 20 % 4];
    options.checksum = flags & 1;
    if (flags & 2)
        options.input_bytes = 128 * KIB;
    if (flags & 4)
        options.output_bytes = 64 * KIB;
    options.max_jobs = flags / 8 % 4;
    if (flags & 32)
        options.window_log = 10 + take(in) % 12;
    options.size = a->len; /* keeps the tables small */
    if (flags & 64)
        options.size = take_size(in);
    options.size_is_certain = a->certain = (flags & 128) != 0;
    if (in->shift != 0) {
        options.extent_bytes = take_extent(in);
        options.read_bytes = take_extent(in);
    }
    return options;
}

static void begin_actor(struct world *w, struct actor *a, struct bytes *in)
{
    segzstd_stream_options options = take_options(in, a);
    segzstd_stream *stream;
    unsigned kind = take(in);
    int rc;

    a->content = content_of(kind, take(in));
    rc = segzstd_stream_new(&stream, w->cache, &options);
    if (rc != 0) {
        if (rc != SEGZSTD_ERR_NOMEM || !w->budget)
            fail("stream_new failed");
        return;
    }
    a->alive = true;
    drive_init(&a->d, stream, kind);
    oracle_live_init(&a->live, a->content, a->len);
    a->d.live = &a->live;
}

/* ------------------------------------------------------------------------ */
/* Operations                                                               */

static bool is_expected(const struct actor *a, int rc)
{
    return rc == 0 || rc == SEGZSTD_ERR_NOMEM || rc == SEGZSTD_ERR_CANCELED ||
           rc == SEGZSTD_ERR_AGAIN || (rc == SEGZSTD_ERR_SIZE && a->certain) ||
           (rc == SEGZSTD_ERR_READ && a->failing) ||
           (rc == SEGZSTD_ERR_STATE && a->d.ended);
}

static void expect(const struct actor *a, int rc)
{
    if (!is_expected(a, rc))
        fail(segzstd_strerror(rc));
}

static void push(struct actor *a, struct bytes *in, unsigned how)
{
    size_t left = a->len - (size_t)a->d.taken, n = take_size(in), taken;
    const unsigned char *src = a->content + a->d.taken;
    segzstd_op op = (segzstd_op)(how % 3);
    bool room = segzstd_stream_want_input(a->d.stream) > 0;
    int rc;

    n = n < left ? n : left;
    if (a->d.ended) {
        rc = segzstd_stream_push(a->d.stream, src, n, op, &taken);
        if (rc == 0 || taken != 0)
            fail("a push after end was taken");
    } else if (how / 3 % 4 == 0 && room) {
        rc = drive_push_ref(&a->d, src, n, op);
    } else if (how / 3 % 4 == 1 && room && a->source_count < SOURCES) {
        struct drive_source *source = &a->sources[a->source_count++];
        unsigned mode = take(in);

        *source = (struct drive_source){src, n, mode % 64 * 1000, 0, NULL};
        if (mode >= 240) {
            source->fail_from = 1 + n / 2;
            a->failing = true;
        }
        rc = drive_push_source(&a->d, source, n, op);
    } else {
        rc = drive_push_once(&a->d, src, n, op, &taken);
        if (rc == 0 && taken < n)
            op = SEGZSTD_CONTINUE;
    }
    expect(a, rc);
    if (rc == 0 && op != SEGZSTD_CONTINUE)
        a->flushed = a->d.taken;
}

static void read_some(struct actor *a, size_t bytes)
{
    a->d.read_bytes = bytes;
    drive_read(&a->d);
    a->d.read_bytes = 0;
    if (segzstd_stream_is_flushed(a->d.stream) &&
        segzstd_stream_ready_bytes(a->d.stream) == 0 &&
        segzstd_stream_error(a->d.stream) == 0 && a->live.done < a->flushed)
        fail("flushed and read, but not decodable");
}

static void store(struct actor *a, size_t bytes)
{
    size_t stored = 0;
    int rc = segzstd_stream_store(a->d.stream, bytes, &stored);

    expect(a, rc);
    if (stored > bytes)
        fail("more was stored than asked for");
}

/* With jobs out; they may be run, or not, after that. */
static void leave(struct actor *a, unsigned how)
{
    if (how & 1)
        segzstd_stream_cancel(a->d.stream);
    segzstd_stream_free(a->d.stream);
    while (a->d.job_count > 0) {
        segzstd_job *job = a->d.jobs[--a->d.job_count];

        if (how & 2)
            segzstd_job_run(job);
        segzstd_job_complete(job);
    }
    if (a->d.refs_back != a->d.refs_lent)
        fail("what was lent did not come back");
    check(a->d.fault);
    oracle_live_free(&a->live);
    drive_free(&a->d);
    a->alive = false;
}

/* As hosts do it that have a thread of their own: at once. */
static void run_inline(struct actor *a)
{
    segzstd_job *job;
    int rc = segzstd_stream_poll_inline(a->d.stream, UINT64_MAX, &job);

    expect(a, rc);
    if (rc != 0 && job != NULL)
        fail("an error, and a job");
    if (job == NULL)
        return;
    a->d.jobs[a->d.job_count++] = job;
    a->d.order = DRIVE_NEWEST;
    expect(a, drive_run_one(&a->d));
}

static void disturb(struct world *w, struct bytes *in, unsigned how)
{
    unsigned n = take(in);

    if (how == 0) {
        w->now += (uint64_t)n << 32;
        segzstd_cache_trim(w->cache, w->now);
    } else if (how == 1) {
        alloc_fail(&w->alloc, n % 16, 1 + n / 16);
    } else {
        alloc_heal(&w->alloc);
    }
}

static void act(struct world *w, struct bytes *in)
{
    unsigned op = take(in);
    struct actor *a = &w->actors[op & 1];

    if (!a->alive)
        return;
    op >>= 1;
    a->d.order = (enum drive_order)(op % 3);
    switch (op / 8) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        push(a, in, op);
        break;
    case 5:
    case 6:
        a->d.jobs_held = a->d.job_count + 1 + op % 3;
        expect(a, drive_take(&a->d));
        break;
    case 7:
    case 8:
    case 9:
        if (a->d.job_count > 0)
            expect(a, drive_run_one(&a->d));
        break;
    case 10:
        if (a->d.job_count > 0)
            expect(a, drive_return_one(&a->d));
        break;
    case 11:
    case 12:
        read_some(a, take_size(in));
        break;
    case 13:
        store(a, take_size(in));
        break;
    case 14:
        if (op % 8 < 6)
            segzstd_stream_rest(a->d.stream);
        else
            leave(a, take(in));
        break;
    default:
        if (in->shift != 0 && op % 8 < 3)
            run_inline(a);
        else if (in->shift != 0 && op % 8 < 5)
            segzstd_stream_set_max_jobs(a->d.stream, take(in) % 5);
        else
            disturb(w, in, op % 3);
        break;
    }
    if (a->alive)
        check(a->d.fault);
}

/* ------------------------------------------------------------------------ */
/* The end                                                                  */

static void judge(struct actor *a)
{
    struct oracle_want want = {a->content, (size_t)a->d.taken, NULL, 0,
                               0,          ORACLE_SIZE_ANY};

    check(a->d.fault);
    if (!segzstd_stream_is_done(a->d.stream) || !a->live.ended ||
        a->live.done != a->d.taken)
        fail("the frame is not complete");
    check(oracle_check_once(a->d.out, a->d.out_len, &want));
}

static void end_actor(struct world *w, struct actor *a)
{
    int rc, error;

    a->d.order = DRIVE_ANY;
    a->d.jobs_held = 0;
    rc = drive_rest(&a->d);
    error = segzstd_stream_error(a->d.stream);
    if (rc == 0 && error == SEGZSTD_ERR_SIZE && a->live.done != a->d.taken)
        fail("not all that was taken can be decoded");
    if (rc == 0 && error == 0)
        rc = drive_end(&a->d);
    expect(a, rc);
    if (rc == SEGZSTD_ERR_NOMEM && !w->budget)
        fail("no memory, though there is");
    if (rc == 0 && error == 0)
        judge(a);
    leave(a, 2);
}

/* So that other streams' jobs do not keep the workers. */
static void finish_jobs(struct world *w)
{
    for (int i = 0; i < ACTORS; i++) {
        struct actor *a = &w->actors[i];

        while (a->alive && a->d.job_count > 0)
            expect(a, drive_run_one(&a->d));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct world w;
    struct bytes in = {data, data + len, 0};

    begin_world(&w, &in);
    if (w.cache != NULL) {
        for (int i = 0; i < ACTORS; i++)
            begin_actor(&w, &w.actors[i], &in);
        for (int i = 0; i < OPERATIONS_MAX && in.at < in.end; i++)
            act(&w, &in);
        alloc_heal(&w.alloc);
        finish_jobs(&w);
        for (int i = 0; i < ACTORS; i++) {
            if (w.actors[i].alive)
                end_actor(&w, &w.actors[i]);
        }
        segzstd_cache_free(w.cache);
    }
    check(alloc_done(&w.alloc));
    return 0;
}
