/*
 * job.c - running a job: fetch the bytes, get an encoder, write blocks.
 *
 * Whatever fails for want of memory leaves no trace but the error: the job's
 * output is dropped and its input is still there, so the stream can offer the
 * same piece again. An encoder that was on the way is lost by that, and the next
 * one is primed anew.
 */
#if !defined(_POSIX_C_SOURCE)
#  define _POSIX_C_SOURCE 200809L /* clock_gettime() */
#endif

#include "job.h"

#include <time.h>

/*
 * Output chunks. 64 KiB hold what one or two blocks make, and are what a socket
 * takes at once; a larger chunk is only memory that waits. Small pieces get a
 * small chunk, since ten thousand event streams may have one each.
 */
#define CHUNK_BYTES (64 * KIB)

/* Less than this at the end of a chunk is not worth another call of libzstd. */
#define CHUNK_ROOM_MIN 512

static uint64_t thread_cpu_ns(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int segzstd__job_ensure_room(struct segzstd_cache *cache,
                             struct segzstd__buf *buf, size_t bytes,
                             size_t chunk_bytes)
{
    size_t block_bytes = max_size(bytes, chunk_bytes) +
                         sizeof(struct segzstd__chunk) + FRAME_HEADER_ROOM;
    void *block;

    if (segzstd__buf_room(buf) >= bytes)
        return 0;
    block = segzstd__cache_get_block(cache, &block_bytes);
    if (block == NULL)
        return SEGZSTD_ERR_NOMEM;
    segzstd__buf_add_chunk(buf, segzstd__chunk_init(block, block_bytes));
    return 0;
}

void segzstd__job_drop(struct segzstd_cache *cache, struct segzstd__buf *buf)
{
    struct segzstd__chunk *chunk;

    while ((chunk = segzstd__buf_pop(buf)) != NULL)
        if (chunk->block_bytes != 0)
            segzstd__cache_put_block(cache, chunk, chunk->block_bytes);
}

/* A chunk for `len` bytes of content: what they need at worst, if that is
 * little. The overhead of the chunk itself stays within the class. */
static size_t chunk_bytes_for(size_t len)
{
    size_t bytes = min_size(segzstd__encoder_bound(len), CHUNK_BYTES);

    return bytes - min_size(bytes / 2,
                            sizeof(struct segzstd__chunk) + FRAME_HEADER_ROOM);
}

static bool is_canceled(const struct segzstd_job *job)
{
    return atomic_load_explicit(&job->shared->canceled, memory_order_relaxed);
}

static int read_input(const struct segzstd_job *job)
{
    uint64_t pos = job->from - job->read_back;

    if (job->reader == NULL || job->read_len == 0)
        return 0;
    return segzstd__reader_fill(job->reader, pos, job->content - job->read_back,
                                job->read_len, &job->shared->canceled);
}

/* ---- a piece of a run ---- */

/*
 * libzstd takes a small pledge (with its prefix 256 KiB or less) as a small file
 * and, at some levels, for a dearer match finder. A short rest of large content
 * is none. What trickles has a short prefix and keeps small tables.
 */
#define PLEDGE_MIN (256 * KIB + 1)
#define PREFIX_OF_LARGE (64 * KIB)

static size_t pledge_of(const struct segzstd_job *job)
{
    return job->prefix_len > PREFIX_OF_LARGE
               ? max_size(job->len_max, PLEDGE_MIN)
               : job->len_max;
}

static int begin_run(struct segzstd_job *job, struct segzstd__encoder *encoder)
{
    struct segzstd__job_shared *shared = job->shared;
    bool first = job->from == 0;
    struct segzstd__run run = {
        .level = shared->level,
        .window_log = shared->header.window_log,
        .base = job->content,
        .len_max = pledge_of(job),
        .prefix = job->content - job->prefix_len,
        .prefix_len = job->prefix_len,
        .stable_input = shared->cache->stable_input,
        .at_frame_start = first,
    };

    job->began = true;
    if (first && shared->dict != NULL) {
        int error =
            segzstd__dict_digest(shared->dict, shared->level, &run.cdict);

        if (error != 0)
            return error;
    }
    return segzstd__encoder_begin(encoder, &run);
}

/* Replaces libzstd's frame header at the head of the output by the stream's. */
static int put_frame_header(struct segzstd_job *job)
{
    uint8_t header[FRAME_HEADER_BYTES_MAX];
    size_t theirs, ours;

    theirs = segzstd__frame_header_bytes(
        job->out.head->data + job->out.head->begin, job->out.len);
    if (theirs == 0)
        return SEGZSTD_ERR_INTERNAL;
    ours = segzstd__frame_put_header(header, &job->shared->header);
    segzstd__buf_replace_head(&job->out, theirs, header, ours);
    return 0;
}

/* Compresses up to `end` bytes behind the run's base; blocks go out as they
 * are. */
static int pass_through(struct segzstd_job *job,
                        struct segzstd__encoder *encoder, size_t end)
{
    struct segzstd_cache *cache = job->shared->cache;
    size_t chunk_bytes = chunk_bytes_for(end - encoder->input.pos);
    bool done = false;

    while (!done) {
        size_t written = 0;
        int error = segzstd__job_ensure_room(cache, &job->out, CHUNK_ROOM_MIN,
                                             chunk_bytes);

        if (error == 0 && encoder->header_pending)
            segzstd__buf_reserve(&job->out, FRAME_HEADER_ROOM);
        if (error == 0)
            error = segzstd__encoder_flush(
                encoder, end, segzstd__buf_tail(&job->out),
                segzstd__buf_room(&job->out), &written, &done);
        if (error != 0)
            return error;
        segzstd__buf_produced(&job->out, written);
        if (encoder->header_pending) {
            encoder->header_pending = false;
            error = put_frame_header(job);
            if (error != 0)
                return error;
        }
        if (is_canceled(job))
            return SEGZSTD_ERR_CANCELED;
    }
    return 0;
}

/* Compresses `len` bytes into `scratch` and writes the blocks as the real
 * decoder's state needs them. */
static int rewrite_piece(struct segzstd_job *job,
                         struct segzstd__encoder *encoder, size_t len,
                         uint8_t *scratch, size_t scratch_len)
{
    struct segzstd_cache *cache = job->shared->cache;
    const uint8_t *content =
        (const uint8_t *)encoder->input.src + encoder->input.pos;
    size_t written, skip = 0, out_len = 0, bound;
    bool done;
    int error;

    error = segzstd__encoder_flush(encoder, encoder->input.pos + len, scratch,
                                   scratch_len, &written, &done);
    if (error != 0)
        return error;
    if (encoder->header_pending)
        skip = segzstd__frame_header_bytes(scratch, written);
    if (!done || (encoder->header_pending && skip == 0))
        return SEGZSTD_ERR_INTERNAL;
    encoder->header_pending = false;
    bound = segzstd__seam_bound(written - skip, len);
    error = segzstd__job_ensure_room(cache, &job->out, bound,
                                     chunk_bytes_for(job->len));
    if (error == 0)
        error = segzstd__seam_rewrite(
            &encoder->seam, &cache->mem, segzstd__buf_tail(&job->out),
            segzstd__buf_room(&job->out), &out_len, scratch + skip,
            written - skip, content, len);
    if (error == 0)
        segzstd__buf_produced(&job->out, out_len);
    return error;
}

/* The first pieces of a run behind a cut. Stops when the decoder's state and
 * the encoder's belief agree, or at `end`. */
static int cross_seam(struct segzstd_job *job, struct segzstd__encoder *encoder,
                      size_t end)
{
    struct segzstd_cache *cache = job->shared->cache;

    while (encoder->seam_active && encoder->input.pos < end) {
        size_t len = min_size(encoder->seam_piece, end - encoder->input.pos);
        size_t scratch_len = segzstd__encoder_bound(len);
        void *scratch = segzstd__cache_get_block(cache, &scratch_len);
        int error;

        if (scratch == NULL)
            return SEGZSTD_ERR_NOMEM;
        error = rewrite_piece(job, encoder, len, scratch, scratch_len);
        segzstd__cache_put_block(cache, scratch, scratch_len);
        if (error != 0)
            return error;
        encoder->seam_piece =
            min_size(2 * encoder->seam_piece, BLOCK_BYTES_MAX);
        encoder->seam_active = !segzstd__seam_is_settled(&encoder->seam);
        if (is_canceled(job))
            return SEGZSTD_ERR_CANCELED;
    }
    return 0;
}

static int run_piece(struct segzstd_job *job, struct segzstd__encoder *encoder,
                     bool resumed)
{
    int error = resumed ? 0 : begin_run(job, encoder);
    size_t pos, end;

    if (error != 0)
        return error;
    assert((const uint8_t *)encoder->input.src + encoder->input.pos ==
           job->content);
    pos = encoder->input.pos;
    end = pos + job->len;
    while (error == 0 && pos < end) {
        pos = min_size(end, pos + job->shared->slice_bytes);
        error = cross_seam(job, encoder, pos);
        if (error == 0 && encoder->input.pos < pos)
            error = pass_through(job, encoder, pos);
    }
    return error;
}

/* ---- a whole frame ---- */

/* Moves the output into a chunk of its own size, if that saves much. */
static void shrink_output(struct segzstd_job *job)
{
    struct segzstd_cache *cache = job->shared->cache;
    struct segzstd__buf small = {NULL, NULL, 0};
    struct segzstd__chunk *chunk = job->out.head;

    if (chunk->block_bytes <= CHUNK_BYTES || job->out.len > chunk->cap / 2)
        return;
    if (segzstd__job_ensure_room(cache, &small, job->out.len, 0) != 0)
        return;
    memcpy(segzstd__buf_tail(&small), chunk->data, job->out.len);
    segzstd__buf_produced(&small, job->out.len);
    segzstd__job_drop(cache, &job->out);
    job->out = small;
}

static int run_whole(struct segzstd_job *job, struct segzstd__encoder *encoder)
{
    struct segzstd__job_shared *shared = job->shared;
    struct segzstd__whole whole = {
        .level = shared->level,
        .window_log = (int)shared->header.window_log,
        .checksum = shared->header.checksum,
        .dict_id = shared->header.dict_id != 0,
    };
    size_t bound = segzstd__encoder_bound(job->len);
    size_t written = 0;
    int error = segzstd__job_ensure_room(shared->cache, &job->out, bound, 0);

    job->began = true;
    if (error == 0 && shared->dict != NULL)
        error = segzstd__dict_digest(shared->dict, shared->level, &whole.cdict);
    if (error == 0)
        error = segzstd__encoder_whole(
            encoder, &whole, segzstd__buf_tail(&job->out),
            segzstd__buf_room(&job->out), &written, job->content, job->len);
    if (error != 0)
        return error;
    segzstd__buf_produced(&job->out, written);
    shrink_output(job);
    return 0;
}

/* ---- the job ---- */

static struct segzstd__key key_of(const struct segzstd_job *job)
{
    uint64_t size = (uint64_t)job->prefix_len + pledge_of(job);

    return (struct segzstd__key){
        .level = job->shared->level,
        .window_log = job->shared->header.window_log,
        .size_log = size == 0 ? 0 : ceil_log2(size),
    };
}

static int attempt(struct segzstd_job *job)
{
    struct segzstd_cache *cache = job->shared->cache;
    struct segzstd__key key = key_of(job);
    struct segzstd__slot *slot;
    bool resumed;
    int error;

    slot = segzstd__cache_acquire(cache, &key, &job->claim, &resumed);
    if (slot == NULL)
        return SEGZSTD_ERR_NOMEM;
    if (job->whole)
        error = run_whole(job, slot->encoder);
    else
        error = run_piece(job, slot->encoder, resumed);
    if (error != 0) {
        job->zstd_error = slot->encoder->zstd_error;
        segzstd__cache_discard(cache, slot);
        segzstd__job_drop(cache, &job->out);
    } else if (job->whole || job->last_of_run) {
        segzstd__cache_release(cache, slot);
    } else {
        job->claim = segzstd__cache_hold(cache, slot);
    }
    return error;
}

void segzstd_job_run(segzstd_job *job)
{
    uint64_t start = thread_cpu_ns();

    assert(!job->ran);
    job->ran = true;
    job->error = is_canceled(job) ? SEGZSTD_ERR_CANCELED : read_input(job);
    if (job->error == 0)
        job->error = attempt(job);
    /* Idle memory of others may be what is missing. */
    if (job->error == SEGZSTD_ERR_NOMEM &&
        segzstd__cache_reclaim_for_job(job->shared->cache,
                                       job->is_inline ? 0 : 1))
        job->error = attempt(job);
    job->cpu_ns = thread_cpu_ns() - start;
}

segzstd_stream *segzstd_job_stream(const segzstd_job *job)
{
    return job->stream;
}
