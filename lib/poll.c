/*
 * poll.c - which job is next: the first segment that has work, or, for a worker
 * that would be idle, a part of the longest one.
 */
#include "plan.h"
#include "stream.h"

/* ---- choosing a job ---- */

/* What comes of content stays in memory until all before it has been output, and
 * with a checksum the content itself, so work must not run far ahead. */
static bool is_far_ahead(const struct segzstd_stream *s, uint64_t pos)
{
    uint64_t most = ((uint64_t)s->max_jobs + 1) * s->part_max;

    return pos - s->pos_out >= most;
}

/* Too much waits already. The first segment is only held back by what can be
 * read, or nothing would ever be. */
static bool is_held_back(const struct segzstd_stream *s,
                         const struct segzstd__segment *seg)
{
    if (segzstd__stream_is_first(s, seg))
        return s->ready.len >= s->output_max;
    return s->ready.len + s->behind >= s->output_max ||
           is_far_ahead(s, seg->fed);
}

/* Content that is to be compressed now, whole blocks or not. */
static bool is_due(const struct segzstd_stream *s,
                   const struct segzstd__segment *seg)
{
    if (s->pos_flush > seg->fed)
        return true;
    /* With fixed segmentation what follows decides whether it is the last, also
     * if it is closed since it is borrowed or read. */
    return !seg->open &&
           !(segzstd__stream_is_fixed(s) && seg->end == s->pos_in);
}

/* With fixed segmentation, where the next cut is, there yet or not: a multiple
 * of segment_bytes from the start. Content that was stored may lie across. */
static uint64_t next_cut(const struct segzstd_stream *s,
                         const struct segzstd__segment *seg)
{
    size_t segment = s->options.segment_bytes;

    return seg->start + ((seg->fed - seg->start) / segment + 1) * segment;
}

/* Where the content ends that one run may have. */
static uint64_t run_end(const struct segzstd_stream *s,
                        const struct segzstd__segment *seg)
{
    return segzstd__stream_is_fixed(s) ? min_u64(seg->end, next_cut(s, seg))
                                       : seg->end;
}

static bool is_runnable(const struct segzstd_stream *s,
                        const struct segzstd__segment *seg)
{
    if (seg->job_out || seg->end == seg->fed || is_held_back(s, seg))
        return false;
    if (is_due(s, seg))
        return true;
    /* Not at the very end of a segment: what follows decides whether it is the
     * last, and an only segment is compressed in another way. */
    if (segzstd__stream_is_fixed(s))
        return seg->end > next_cut(s, seg);
    return seg->end - seg->fed >= BLOCK_BYTES_MAX;
}

static struct segzstd__segment *find_runnable(const struct segzstd_stream *s)
{
    struct segzstd__link *link;

    for (link = s->segments.next; link != &s->segments; link = link->next)
        if (is_runnable(s, segzstd__segment_of(link)))
            return segzstd__segment_of(link);
    return NULL;
}

/* The segment with the most content that no job has. */
static struct segzstd__segment *find_longest(const struct segzstd_stream *s)
{
    struct segzstd__segment *longest = NULL;
    struct segzstd__link *link;

    for (link = s->segments.next; link != &s->segments; link = link->next) {
        struct segzstd__segment *seg = segzstd__segment_of(link);

        if (longest == NULL ||
            segzstd__segment_waiting(seg) > segzstd__segment_waiting(longest))
            longest = seg;
    }
    return longest;
}

/* A cut in a segment for another encoder. */
struct cut {
    struct segzstd__segment *segment;
    uint64_t pos; /* 0: nowhere */
    size_t overlap;
};

/* The cut that is best for `idle` more encoders. */
static struct cut find_cut(const struct segzstd_stream *s, unsigned idle)
{
    struct cut cut = {find_longest(s), 0, 0};
    uint64_t waiting, keep, out;
    bool late;

    if (cut.segment == NULL || idle == 0 || segzstd__stream_is_fixed(s) ||
        s->ready.len + s->behind >= s->output_max)
        return cut;
    waiting = segzstd__segment_waiting(cut.segment);
    late = s->stats.splits != 0 && cut.segment->fed != cut.segment->start;
    cut.overlap = segzstd__stream_overlap(
        s, min_u64(waiting / (idle + 1), s->part_max), false);
    keep =
        segzstd__plan_keep(s->options.level, cut.overlap, waiting, idle, late);
    /* the job that is out counts, if there is one */
    out = cut.segment->taken - cut.segment->fed;
    if (out + BLOCK_BYTES_MAX > s->part_max)
        keep = min_u64(keep, BLOCK_BYTES_MAX);
    else
        keep = min_u64(keep, s->part_max - out);
    if (keep != 0 && !is_far_ahead(s, cut.segment->taken + keep))
        cut.pos = cut.segment->taken + keep;
    return cut;
}

/* Cuts for a worker that is idle. *seg is NULL if that is not worth it. */
static int split_for_idle(struct segzstd_stream *s,
                          struct segzstd__segment **seg)
{
    unsigned idle = segzstd__cache_idle_workers(s->cache);
    struct segzstd__tally tally = {.splits = 1};
    struct cut cut;

    if (idle > s->max_jobs - s->jobs_out)
        idle = s->max_jobs - s->jobs_out;
    cut = find_cut(s, idle);
    *seg = NULL;
    if (cut.pos == 0)
        return 0;
    *seg = segzstd__segment_split(cut.segment, s->cache, cut.pos);
    if (*seg == NULL)
        return SEGZSTD_ERR_NOMEM;
    (*seg)->overlap = cut.overlap;
    s->stats.splits++;
    segzstd__cache_count(s->cache, &tally);
    return 0;
}

/* ---- making a job ---- */

/* The whole content is there, and one call of libzstd is right for it. */
static bool fits_one_call(const struct segzstd_stream *s,
                          const struct segzstd__segment *seg)
{
    size_t most = segzstd__stream_is_fixed(s)
                      ? s->options.segment_bytes
                      : segzstd__plan_whole_bytes(s->options.level);

    if (s->short_jobs != 0 && !segzstd__stream_is_fixed(s))
        most = min_size(most, BLOCK_BYTES_MAX);
    return s->ended && !s->wrong_size && seg->fed == 0 &&
           seg->end == s->pos_in && seg->end <= most;
}

/* Where the next job of the segment ends. With fixed segmentation a job is all
 * of what is left to the next cut. */
static uint64_t job_end(const struct segzstd_stream *s,
                        const struct segzstd__segment *seg)
{
    uint64_t bytes = run_end(s, seg) - seg->fed;
    uint64_t blocks = seg->open ? bytes - bytes % BLOCK_BYTES_MAX : bytes;
    size_t most = s->shared.slice_bytes;

    if (segzstd__stream_is_fixed(s))
        return seg->fed + bytes;
    if (seg->fed == 0)
        most = segzstd__plan_first_bytes(s->options.level);
    /* all that a job makes is in memory at its end */
    if (s->short_jobs != 0)
        most = min_size(most, BLOCK_BYTES_MAX);
    /* a short rest joins the last job */
    if (!seg->open && bytes <= most + most / 8)
        return seg->fed + bytes;
    if (s->pos_flush > seg->fed + blocks)
        blocks = s->pos_flush - seg->fed;
    return seg->fed + min_u64(blocks, most);
}

/* What an extent for a reader holds when there is no memory for more. */
#define LEAST_READ_BYTES BLOCK_BYTES_MAX

/*
 * An extent for a segment of a reader at `fed`, with `carry` bytes before it:
 * as far as the content goes or an extent may. NULL if there is no memory.
 */
static struct segzstd__extent *read_extent(struct segzstd_stream *s,
                                           const struct segzstd__segment *seg,
                                           size_t carry)
{
    size_t most = max_size(s->options.read_bytes, s->options.segment_bytes);
    size_t content = (size_t)min_u64(run_end(s, seg) - seg->fed, most);
    struct segzstd__extent *extent = NULL;

    if (s->short_jobs == 0 &&
        segzstd__cache_has_room(s->cache, carry + content))
        extent = segzstd__extent_new(s->cache, seg->fed, carry, content);
    content = min_size(content, LEAST_READ_BYTES);
    if (extent == NULL &&
        segzstd__cache_has_least_room(s->cache, carry + content))
        extent = segzstd__extent_new(s->cache, seg->fed, carry, content);
    return extent;
}

/* Gives a segment of a reader its extent. All of it is still to be read, what
 * comes before `fed` too. */
static int make_read_extent(struct segzstd_stream *s,
                            struct segzstd__segment *seg)
{
    uint64_t before = seg->fed - seg->reader->pos;
    size_t carry = s->short_jobs != 0 ? min_size(seg->overlap, LEAST_READ_BYTES)
                                      : seg->overlap;

    seg->extent = read_extent(s, seg, (size_t)min_u64(carry, before));
    return seg->extent == NULL ? SEGZSTD_ERR_NOMEM : 0;
}

/* The extent of a reader's segment is full: goes on in a new segment, with the
 * last bytes of this one in front. */
static int roll_read_extent(struct segzstd_stream *s,
                            struct segzstd__segment **seg)
{
    struct segzstd__segment *old = *seg, *rest;
    size_t carry = min_size(s->overlap, old->extent->len);
    struct segzstd__extent *extent = read_extent(s, old, carry);

    if (extent == NULL)
        return SEGZSTD_ERR_NOMEM;
    rest = segzstd__segment_split(old, s->cache, old->fed);
    if (rest == NULL) {
        segzstd__extent_unref(extent, s->cache);
        return SEGZSTD_ERR_NOMEM;
    }
    if (carry != 0)
        segzstd__extent_write(
            extent, old->extent->base + old->extent->len - carry, carry);
    rest->extent = extent;
    *seg = rest;
    segzstd__stream_settle(s, old);
    segzstd__stream_advance(s);
    return 0;
}

/* Cuts what does not belong to the next job's segment, and finds memory for
 * what a job will read. May replace *seg by the segment that follows it. */
static int prepare(struct segzstd_stream *s, struct segzstd__segment **seg)
{
    uint64_t end = run_end(s, *seg);
    bool cut = end < (*seg)->end;
    int error = 0;

    /* flushed where it ends: what is pushed next must not join it */
    if (segzstd__stream_is_fixed(s) && (*seg)->open && end == next_cut(s, *seg))
        cut = true;
    if (cut && segzstd__segment_split(*seg, s->cache, end) == NULL)
        return SEGZSTD_ERR_NOMEM;
    if ((*seg)->reader == NULL)
        return 0;
    if ((*seg)->extent == NULL)
        error = make_read_extent(s, *seg);
    else if ((*seg)->fed == segzstd__extent_cap_end((*seg)->extent))
        error = roll_read_extent(s, seg);
    return error;
}

/*
 * To prime with much for a short rest costs more than the rest itself: 1 MiB for
 * 32 KiB, which an extent had no room for, made a response of unknown length a
 * quarter dearer at level 19.
 */
#define PRIME_RATIO 4
#define PRIME_LEAST (64 * KIB)

static size_t prefix_of(const struct segzstd_stream *s,
                        const struct segzstd__segment *seg,
                        const struct segzstd_job *job)
{
    size_t prefix = segzstd__segment_prefix(seg, seg->fed);

    /* behind a full window it may take tables that are twice as large */
    if (s->short_jobs != 0 && !segzstd__stream_is_fixed(s))
        return 0;
    if (segzstd__stream_is_fixed(s) || !job->last_of_run ||
        job->from != seg->start)
        return prefix;
    return min_size(prefix, max_size(PRIME_LEAST, PRIME_RATIO * job->len));
}

static void fill_job(struct segzstd_stream *s, struct segzstd__segment *seg)
{
    struct segzstd_job *job = &seg->job;
    struct segzstd__extent *extent = seg->extent;
    uint64_t end, have = segzstd__extent_end(extent);
    uint64_t cap_end = segzstd__extent_cap_end(extent);

    segzstd__stream_fix_header(s);
    memset(job, 0, sizeof(*job));
    job->stream = s;
    job->shared = &s->shared;
    job->zstd_error = "";
    /* where memory was short the extent may be, too */
    job->whole = fits_one_call(s, seg) && seg->end <= cap_end;
    end = job->whole ? seg->end : min_u64(job_end(s, seg), cap_end);
    assert(end > seg->fed && end <= cap_end);
    job->from = seg->fed;
    job->content = segzstd__extent_at(extent, seg->fed);
    job->len = (size_t)(end - seg->fed);
    job->len_max =
        (size_t)((seg->open ? cap_end : min_u64(seg->end, cap_end)) - seg->fed);
    job->last_of_run = !seg->open && end == seg->end;
    job->prefix_len = prefix_of(s, seg, job);
    job->claim = seg->claim;
    seg->claim = (struct segzstd__claim){NULL, 0};
    if (seg->reader != NULL && end > have) {
        job->reader = seg->reader;
        job->read_back = have < seg->fed ? (size_t)(seg->fed - have) : 0;
        job->read_len = (size_t)(end - have);
        assert(have <= seg->fed);
    }
    seg->taken = end;
    seg->job_out = true;
}

static int make_job(struct segzstd_stream *s, struct segzstd__segment *seg,
                    segzstd_job **out)
{
    int error = prepare(s, &seg);

    if (error != 0)
        return error;
    fill_job(s, seg);
    s->jobs_out++;
    if (s->jobs_out > s->stats.jobs_peak)
        s->stats.jobs_peak = s->jobs_out;
    *out = &seg->job;
    return 0;
}

/* A job of the segment, if the cache lets one more out. */
static int give_job(struct segzstd_stream *s, struct segzstd__segment *seg,
                    segzstd_job **out)
{
    int error;

    if (!segzstd__cache_job_out(s->cache, segzstd__stream_per_worker(s)))
        return 0;
    error = make_job(s, seg, out);
    if (error != 0) {
        segzstd__cache_job_back(s->cache, false);
        segzstd__stream_run_short(s, seg);
    }
    return error;
}

/* Content before the segment that no job has. */
static bool is_waiting_before(const struct segzstd_stream *s,
                              const struct segzstd__segment *seg)
{
    struct segzstd__link *link;

    for (link = s->segments.next; link != &seg->link; link = link->next)
        if (segzstd__segment_waiting(segzstd__segment_of(link)) != 0)
            return true;
    return false;
}

/* All that waits is due, and one job of this segment does it. */
static bool is_all_that_waits(const struct segzstd_stream *s,
                              const struct segzstd__segment *seg)
{
    if ((seg->reader != NULL && !fits_one_call(s, seg)) ||
        is_waiting_before(s, seg))
        return false;
    return seg->end == s->pos_in && (s->ended || s->pos_flush == s->pos_in) &&
           (fits_one_call(s, seg) || job_end(s, seg) == seg->end);
}

int segzstd_stream_poll_inline(segzstd_stream *s, uint64_t most_ns,
                               segzstd_job **job)
{
    struct segzstd__segment *seg;
    uint64_t bytes;
    int error;

    *job = NULL;
    if (s->error != 0)
        return s->error;
    if (s->jobs_out >= s->max_jobs)
        return 0;
    seg = find_runnable(s);
    if (seg == NULL || !is_all_that_waits(s, seg) ||
        !segzstd__cache_has_encoder(s->cache))
        return 0;
    bytes = seg->end - seg->fed;
    /* priming is faster than compressing */
    if (seg->claim.slot == NULL && seg->extent != NULL)
        bytes += segzstd__segment_prefix(seg, seg->fed) / 2;
    if (segzstd__plan_work_ns(s->options.level, bytes) > most_ns)
        return 0;
    error = make_job(s, seg, job);
    if (error != 0)
        segzstd__stream_run_short(s, seg);
    else
        (*job)->is_inline = true;
    return error;
}

int segzstd_stream_poll_job(segzstd_stream *s, segzstd_job **job)
{
    struct segzstd__segment *seg;
    int error = 0;

    *job = NULL;
    if (s->error != 0)
        return s->error;
    if (s->jobs_out >= s->max_jobs)
        return 0;
    seg = find_runnable(s);
    if (seg == NULL)
        error = split_for_idle(s, &seg);
    return seg == NULL ? error : give_job(s, seg, job);
}

int segzstd_stream_want_job(const segzstd_stream *s)
{
    if (s->error != 0 || s->jobs_out >= s->max_jobs)
        return 0;
    return find_runnable(s) != NULL || find_cut(s, 1).pos != 0;
}
