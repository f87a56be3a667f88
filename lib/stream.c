/*
 * stream.c - the owner's side: a stream's life, the output in order, jobs that
 * come back. How content comes in is in push.c, how jobs are made in poll.c.
 */
#include "stream.h"

#include "plan.h"

/* Output that may wait for each job beyond the first. Parts of 8 MiB cost little
 * size, and an incompressible one fits. */
#define OUTPUT_BYTES_PER_JOB (8 * MIB)

/* Jobs that read little after one that had no memory; then more is tried again.
 * They read 1 MiB in all, which is more than a try can cost. */
#define SHORT_JOBS 8

/* ---- new and free ---- */

size_t segzstd__stream_overlap(const struct segzstd_stream *s, uint64_t part,
                               bool regular)
{
    const segzstd_stream_options *o = &s->options;

    if (o->overlap_bytes == SEGZSTD_OVERLAP_NONE)
        return 0;
    if (o->overlap_bytes != 0)
        return min_size(o->overlap_bytes, (size_t)1 << s->window_log);
    return segzstd__plan_overlap(o->level, s->window_log, part, regular);
}

static void init_limits(struct segzstd_stream *s)
{
    const segzstd_stream_options *o = &s->options;
    size_t segment = o->segment_bytes, ahead;

    s->window_log = segzstd__plan_window_log(o->level, o->window_log,
                                             SEGZSTD_SIZE_UNKNOWN, false);
    s->max_jobs_given = o->max_jobs != 0 ? o->max_jobs : s->cache->workers;
    if (s->max_jobs_given > 2 * s->cache->workers)
        s->max_jobs_given = 2 * s->cache->workers; /* more are never out */
    s->max_jobs = s->max_jobs_given;
    s->input_max = o->input_bytes;
    s->extent_max = o->extent_bytes;
    /* What a part makes is kept until all before it is done, so longer parts
     * would only stop at the bound for output, with their threads idle. */
    ahead = s->max_jobs > 1 ? s->max_jobs - 1 : 1;
    s->output_max = o->output_bytes != 0
                        ? o->output_bytes
                        : min_size(ahead, SIZE_MAX / 8 / OUTPUT_BYTES_PER_JOB) *
                              OUTPUT_BYTES_PER_JOB;
    s->part_max = max_size(s->output_max / ahead, BLOCK_BYTES_MAX);
    s->overlap = segzstd__stream_overlap(
        s, segment != 0 ? segment : s->extent_max, true);
    if (segment != 0) {
        /* one for each job, and one to tell that the last is not the end */
        size_t n = max_size(
            2, min_size((size_t)s->max_jobs + 1, SIZE_MAX / 8 / segment));

        s->input_max = max_size(s->input_max, n * segment);
    }
}

static void init_shared(struct segzstd_stream *s)
{
    const segzstd_stream_options *o = &s->options;

    s->shared.cache = s->cache;
    s->shared.level = o->level;
    s->shared.dict = o->dict;
    s->shared.slice_bytes =
        min_size(segzstd__plan_job_bytes(o->level),
                 max_size(s->output_max - s->output_max % BLOCK_BYTES_MAX,
                          BLOCK_BYTES_MAX));
    s->shared.header.checksum = o->checksum != 0;
    if (o->dict != NULL) {
        segzstd__dict_ref(o->dict);
        if (!o->no_dict_id)
            s->shared.header.dict_id = segzstd_dict_id(o->dict);
    }
    atomic_init(&s->shared.canceled, false);
}

/* What the dearest encoder takes with which the stream can go on: of a run over
 * all that an extent has. Priming is done without if there is no memory for it,
 * but with fixed segmentation. */
static uint64_t encoder_need(const struct segzstd_stream *s)
{
    const segzstd_stream_options *o = &s->options;
    size_t extent =
        max_size(max_size(o->read_bytes, s->extent_max), o->segment_bytes);
    unsigned log = segzstd__plan_window_log(o->level, o->window_log, o->size,
                                            o->size_is_certain != 0);
    unsigned run_log = ceil_log2((uint64_t)extent + s->overlap);
    size_t overlap = segzstd__stream_is_fixed(s) ? s->overlap : 0;

    if (run_log <= log)
        return segzstd__plan_encoder_bytes(o->level, run_log, 0,
                                           s->cache->stable_input);
    return segzstd__plan_encoder_bytes(o->level, log, overlap,
                                       s->cache->stable_input);
}

uint64_t segzstd_encoder_bytes(int level, unsigned window_log, uint64_t size)
{
    segzstd_stream_options given = SEGZSTD_STREAM_OPTIONS_INIT, o;

    given.level = level;
    given.window_log = window_log;
    if (segzstd__options_read_stream(&o, &given, NULL) != 0)
        return 0;
    window_log = segzstd__plan_window_log(o.level, o.window_log, size, true);
    return segzstd__plan_encoder_bytes(o.level, window_log, 0,
                                       segzstd__encoder_has_stable_input());
}

int segzstd_stream_new(segzstd_stream **out, segzstd_cache *cache,
                       const segzstd_stream_options *given)
{
    segzstd_stream_options options;
    int error = segzstd__options_read_stream(&options, given, NULL);
    struct segzstd_stream *s;

    if (error != 0 || out == NULL || cache == NULL)
        return SEGZSTD_ERR_INVALID;
    s = segzstd__cache_alloc(cache, sizeof(*s));
    if (s == NULL)
        return SEGZSTD_ERR_NOMEM;
    memset(s, 0, sizeof(*s));
    s->cache = cache;
    s->options = options;
    s->zstd_error = "";
    s->stats.struct_size = sizeof(s->stats);
    list_init(&s->segments);
    segzstd__xxh64_init(&s->hash);
    init_limits(s);
    init_shared(s);
    segzstd__cache_open_stream(cache, options.level,
                               cache->mem.budget != 0 ? encoder_need(s) : 0);
    *out = s;
    return 0;
}

static void destroy(struct segzstd_stream *s)
{
    struct segzstd_cache *cache = s->cache;
    int level = s->options.level;

    assert(s->jobs_out == 0);
    while (!list_is_empty(&s->segments))
        segzstd__segment_free(segzstd__segment_of(s->segments.next), cache);
    segzstd__extent_unref(s->history, cache);
    segzstd__job_drop(cache, &s->ready);
    segzstd_dict_free(s->options.dict);
    segzstd__cache_free(cache, s, sizeof(*s));
    segzstd__cache_close_stream(cache, level);
}

void segzstd_stream_free(segzstd_stream *s)
{
    if (s == NULL)
        return;
    if (s->jobs_out == 0) {
        destroy(s);
        return;
    }
    segzstd_stream_cancel(s);
    s->orphan = true;
}

static void set_error(struct segzstd_stream *s, int error)
{
    if (s->error == 0)
        s->error = error;
}

void segzstd_stream_cancel(segzstd_stream *s)
{
    atomic_store_explicit(&s->shared.canceled, true, memory_order_relaxed);
    set_error(s, SEGZSTD_ERR_CANCELED);
    segzstd__job_drop(s->cache, &s->ready);
}

/* ---- the frame around the segments ---- */

void segzstd__stream_fix_header(struct segzstd_stream *s)
{
    const segzstd_stream_options *o = &s->options;
    struct segzstd__frame_header *header = &s->shared.header;
    size_t segment = o->segment_bytes;
    bool known = s->ended && !s->wrong_size;
    uint64_t size;
    bool certain;

    if (s->header_fixed)
        return;
    /* With fixed segmentation the frame must not depend on whether the end was
     * known by the time of the first job; that of an only segment waits for
     * it. */
    if (segment != 0 && s->pos_in > segment)
        known = false;
    size = known ? s->pos_in : o->size;
    certain = known || o->size_is_certain;
    header->content_size = certain ? size : SEGZSTD_SIZE_UNKNOWN;
    header->window_log = segzstd__plan_window_log(
        o->level, o->window_log,
        size == SEGZSTD_SIZE_UNKNOWN || segment != 0 ? size
                                                     : max_u64(size, s->pos_in),
        certain);
    s->header_fixed = true;
    s->stats.window_log = header->window_log;
}

static void count_output(struct segzstd_stream *s, uint64_t bytes)
{
    struct segzstd__tally tally = {.bytes_out = bytes};

    s->stats.bytes_out += bytes;
    segzstd__cache_count(s->cache, &tally);
}

/* Appends the last block, and the header if there was no content, from memory
 * that the stream has in itself. */
static void end_frame(struct segzstd_stream *s)
{
    struct segzstd__chunk *chunk =
        segzstd__chunk_init(s->trailer, sizeof(s->trailer));
    uint8_t *p = chunk->data;

    chunk->block_bytes = 0; /* nobody's to give back */
    if (s->pos_in == 0) {
        segzstd__stream_fix_header(s);
        p += segzstd__frame_put_header(p, &s->shared.header);
    }
    segzstd__frame_put_block_header(p, BLOCK_RAW, 0, true);
    p += BLOCK_HEADER_BYTES;
    if (s->shared.header.checksum) {
        store_le(p, segzstd__xxh64_digest(&s->hash) & UINT32_MAX,
                 CHECKSUM_BYTES);
        p += CHECKSUM_BYTES;
    }
    segzstd__buf_add_chunk(&s->ready, chunk);
    segzstd__buf_produced(&s->ready, (size_t)(p - chunk->data));
    count_output(s, (uint64_t)(p - chunk->data));
    s->frame_done = true;
}

/* ---- output in order ---- */

static void hash_content(struct segzstd_stream *s,
                         const struct segzstd__segment *seg)
{
    /* libzstd has done it where it made the whole frame */
    if (s->shared.header.checksum && !s->frame_done && seg->fed > s->pos_out)
        segzstd__xxh64_update(&s->hash,
                              segzstd__extent_at(seg->extent, s->pos_out),
                              (size_t)(seg->fed - s->pos_out));
}

/* The last segment goes, but more content may come: keeps the last bytes for
 * priming. Without memory there is just no history. */
static void keep_history(struct segzstd_stream *s,
                         const struct segzstd__segment *seg)
{
    struct segzstd__extent *from = seg->extent;
    size_t keep;

    if (s->ended || s->wrong_size || from == NULL ||
        segzstd__extent_end(from) != s->pos_in)
        return;
    keep = min_size(min_size(s->options.history_bytes, s->overlap), from->len);
    if (segzstd__stream_is_fixed(s))
        keep = min_size(s->overlap, from->len);
    if (keep == 0)
        return;
    /* a history of 2^n fits a memory block of that size if it gives a little */
    if (!segzstd__stream_is_fixed(s) && segzstd__pool_round(keep) == keep)
        keep -= EXTENT_HEADER_BYTES;
    segzstd__extent_unref(s->history, s->cache);
    s->history = segzstd__extent_new(s->cache, s->pos_in, keep, 0);
    if (s->history != NULL)
        segzstd__extent_write(s->history, from->base + from->len - keep, keep);
}

static bool is_only(const struct segzstd_stream *s,
                    const struct segzstd__segment *seg)
{
    return seg->link.next == &s->segments && seg->link.prev == &s->segments;
}

void segzstd__stream_drop_read(struct segzstd_stream *s,
                               struct segzstd__segment *seg)
{
    /* a checksum is made from what was read */
    bool hashed = !s->shared.header.checksum || s->pos_out == seg->fed;

    if (seg->reader == NULL || seg->extent == NULL || !hashed)
        return;
    segzstd__cache_abandon(s->cache, &seg->claim);
    segzstd__extent_unref(seg->extent, s->cache);
    seg->extent = NULL;
}

void segzstd__stream_run_short(struct segzstd_stream *s,
                               struct segzstd__segment *seg)
{
    if (!segzstd__cache_lower(s->cache, segzstd__stream_per_worker(s)))
        s->short_jobs = SHORT_JOBS;
    /* What it has can be read again, by when there is more memory. */
    segzstd__stream_drop_read(s, seg);
}

void segzstd_stream_set_max_jobs(segzstd_stream *s, unsigned max_jobs)
{
    s->max_jobs = s->max_jobs_given;
    if (max_jobs != 0 && max_jobs < s->max_jobs_given)
        s->max_jobs = max_jobs;
}

void segzstd_stream_rest(segzstd_stream *s)
{
    struct segzstd__segment *tail = segzstd__stream_tail(s);
    struct segzstd__link *link;

    if (s->jobs_out != 0 || tail == NULL)
        return;
    for (link = s->segments.next; link != &s->segments; link = link->next)
        segzstd__stream_drop_read(s, segzstd__segment_of(link));
    if (tail->fed == s->pos_in) {
        tail->open = false;
        segzstd__stream_advance(s);
    }
}

void segzstd__stream_advance(struct segzstd_stream *s)
{
    while (!list_is_empty(&s->segments)) {
        struct segzstd__segment *seg = segzstd__segment_of(s->segments.next);

        segzstd__buf_append(&s->ready, &seg->out);
        hash_content(s, seg);
        s->pos_out = seg->fed;
        if (!segzstd__segment_is_finished(seg))
            break;
        if (is_only(s, seg))
            keep_history(s, seg);
        segzstd__segment_free(seg, s->cache);
        if (!list_is_empty(&s->segments))
            s->behind -= segzstd__segment_of(s->segments.next)->out.len;
    }
    if (s->ended && !s->wrong_size && !s->frame_done && s->error == 0 &&
        list_is_empty(&s->segments))
        end_frame(s);
}

/*
 * A job's output comes in a chunk for what it might have been. What is much
 * shorter is copied behind what is there already, or a stream that waits to be
 * read would hold far more memory than it has bytes.
 */
#define JOIN_BYTES_MAX (16 * KIB)

static void join_output(struct segzstd_stream *s, struct segzstd__buf *dst,
                        struct segzstd__buf *out)
{
    if (out->len > JOIN_BYTES_MAX || out->len > segzstd__buf_room(dst)) {
        segzstd__buf_append(dst, out);
        return;
    }
    segzstd__buf_copy(dst, out);
    segzstd__job_drop(s->cache, out);
}

/* Though it is compressed: for the checksum, until it is its turn, or as history
 * of what is yet to be pushed. What waited for segments before it without being
 * needed could be just the memory that these wait for. */
static bool needs_input(const struct segzstd_stream *s,
                        const struct segzstd__segment *seg)
{
    return s->shared.header.checksum ||
           (!s->ended && seg->link.next == &s->segments);
}

void segzstd__stream_settle(struct segzstd_stream *s,
                            struct segzstd__segment *seg)
{
    if (!segzstd__segment_is_finished(seg))
        return;
    segzstd__cache_abandon(s->cache, &seg->claim);
    if (!needs_input(s, seg))
        segzstd__segment_drop_input(seg, s->cache);
}

void segzstd__stream_took_output(struct segzstd_stream *s,
                                 struct segzstd__segment *seg,
                                 struct segzstd__buf *out)
{
    count_output(s, out->len);
    if (segzstd__stream_is_first(s, seg)) {
        join_output(s, &s->ready, out);
    } else {
        s->behind += out->len;
        join_output(s, &seg->out, out);
    }
    segzstd__stream_settle(s, seg);
    segzstd__stream_advance(s);
}

/* ---- taking a job back ---- */

static void count_job(struct segzstd_stream *s, struct segzstd__segment *seg)
{
    const struct segzstd_job *job = &seg->job;
    struct segzstd__tally tally = {.jobs = 1};

    s->stats.jobs++;
    s->stats.cpu_ns += job->cpu_ns;
    if (job->ran && job->error == 0) {
        tally.bytes_in = job->len;
        s->stats.segments += !seg->counted;
        s->stats.encoders += job->began;
        seg->counted = true;
    }
    segzstd__cache_count(s->cache, &tally);
}

/* The job's content is compressed. */
static void accept(struct segzstd_stream *s, struct segzstd__segment *seg)
{
    struct segzstd_job *job = &seg->job;
    struct segzstd__extent *extent = seg->extent;

    if (job->began && seg->fed != seg->start)
        s->run_pos = seg->fed; /* somebody else took the encoder */
    if (seg->reader == NULL && !extent->borrowed)
        s->waiting -= job->len;
    if (seg->reader != NULL)
        extent->len = max_size(extent->len, (size_t)(seg->taken - extent->pos));
    seg->fed = seg->taken;
    seg->claim = job->claim;
    s->stats.bytes_done += job->len;
    if (s->short_jobs != 0)
        s->short_jobs--;
    if (job->whole)
        s->frame_done = true;
    segzstd__stream_took_output(s, seg, &job->out);
}

int segzstd_job_complete(segzstd_job *job)
{
    struct segzstd_stream *s = job->stream;
    struct segzstd__segment *seg =
        LINK_OWNER(job, struct segzstd__segment, job);
    int error = job->error;

    assert(seg->job_out);
    seg->job_out = false;
    s->jobs_out--;
    if (!job->is_inline)
        segzstd__cache_job_back(s->cache, job->ran && job->error == 0);
    count_job(s, seg);
    if (segzstd_is_fatal(error)) {
        if (s->error == 0)
            s->zstd_error = job->zstd_error;
        set_error(s, error);
    }
    if (job->ran && error == 0 && s->error == 0) {
        accept(s, seg);
    } else {
        segzstd__job_drop(s->cache, &job->out);
        seg->claim = job->claim;
        seg->taken = seg->fed;
        if (error == SEGZSTD_ERR_NOMEM)
            segzstd__stream_run_short(s, seg);
    }
    if (s->orphan && s->jobs_out == 0) {
        destroy(s);
        return SEGZSTD_ERR_CANCELED;
    }
    return s->error != 0 ? s->error : error;
}

/* ---- reading the output ---- */

size_t segzstd_stream_peek(const segzstd_stream *s, segzstd_vec *vec,
                           size_t max)
{
    return segzstd__buf_peek(&s->ready, vec, max);
}

void segzstd_stream_consume(segzstd_stream *s, size_t bytes)
{
    struct segzstd__chunk *chunk;

    bytes = min_size(bytes, s->ready.len);
    while ((chunk = segzstd__buf_consume(&s->ready, &bytes)) != NULL)
        if (chunk->block_bytes != 0)
            segzstd__cache_put_block(s->cache, chunk, chunk->block_bytes);
}

/* ---- questions ---- */

size_t segzstd_stream_ready_bytes(const segzstd_stream *s)
{
    return s->ready.len;
}

int segzstd_stream_want_output(const segzstd_stream *s)
{
    return s->ready.len != 0;
}

int segzstd_stream_is_flushed(const segzstd_stream *s)
{
    return s->pos_out >= s->pos_flush && (!s->ended || s->frame_done);
}

int segzstd_stream_is_done(const segzstd_stream *s)
{
    return s->frame_done && s->ready.len == 0 &&
           s->error != SEGZSTD_ERR_CANCELED;
}

unsigned segzstd_stream_jobs_out(const segzstd_stream *s)
{
    return s->jobs_out;
}

int segzstd_stream_error(const segzstd_stream *s)
{
    if (s->error == 0 && s->wrong_size)
        return SEGZSTD_ERR_SIZE;
    return s->error;
}

const char *segzstd_stream_zstd_error(const segzstd_stream *s)
{
    return s->zstd_error;
}

void *segzstd_stream_user(const segzstd_stream *s)
{
    return s->options.user;
}

static uint64_t buf_memory(const struct segzstd__buf *buf)
{
    uint64_t bytes = 0;

    for (const struct segzstd__chunk *c = buf->head; c != NULL; c = c->next)
        bytes += c->block_bytes;
    return bytes;
}

/* Extents that several segments share stand next to each other. */
static uint64_t count_memory(const struct segzstd_stream *s)
{
    uint64_t bytes = sizeof(*s) + buf_memory(&s->ready);
    const struct segzstd__extent *last = s->history;
    struct segzstd__link *link;

    if (last != NULL)
        bytes += last->block_bytes;
    for (link = s->segments.next; link != &s->segments; link = link->next) {
        const struct segzstd__segment *seg = segzstd__segment_of(link);

        bytes += sizeof(*seg) + buf_memory(&seg->out);
        if (seg->extent != NULL && seg->extent != last)
            bytes += seg->extent->block_bytes;
        last = seg->extent;
    }
    return bytes;
}

int segzstd_stream_get_stats(const segzstd_stream *s, segzstd_stream_stats *out)
{
    segzstd_stream_stats stats = s->stats;

    if (out->struct_size < sizeof(out->struct_size))
        return SEGZSTD_ERR_INVALID;
    stats.bytes_in = s->pos_in;
    stats.memory = count_memory(s);
    segzstd__options_write(out, &stats, sizeof(stats));
    return 0;
}
