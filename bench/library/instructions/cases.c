/*
 * cases.c - see cases.h.
 */
#include "cases.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "../file.h"
#include "content.h"

#define VEC_MAX 16
#define JOBS_MAX 16
#define DICT_BYTES 8192

/* A prime, so that streams differ. */
#define OFFSET_STEP 7919

/* A stream and the frame that comes out of it. */
struct lane {
    const unsigned char *content;
    segzstd_stream *stream;
    unsigned char *frame;
    size_t capacity;
    size_t len;
};

struct counted_run {
    const struct counted_case *counted;
    segzstd_cache *cache;
    segzstd_dict *dict;
    segzstd_stream_options options;
    unsigned char *content;
    struct lane *lanes;
    size_t lane_count;
    bool keep;
};

static bool has(const struct counted_run *run, unsigned trait)
{
    return (run->counted->traits & trait) != 0;
}

static bool make_lanes(struct counted_run *run)
{
    size_t bytes = run->counted->bytes;
    size_t count = run->counted->streams > 0 ? run->counted->streams : 1;
    size_t all = bytes + DICT_BYTES + count * OFFSET_STEP;
    /* Flushes make blocks smaller than libzstd's bound counts on. */
    size_t capacity = 2 * ZSTD_compressBound(bytes) + 65536;

    run->content = malloc(all);
    run->lanes = calloc(count, sizeof(*run->lanes));
    if (run->content == NULL || run->lanes == NULL)
        return false;
    run->lane_count = count;
    content_fill(run->content, all);
    for (size_t i = 0; i < count; i++) {
        struct lane *lane = &run->lanes[i];

        lane->content = run->content + DICT_BYTES + i * OFFSET_STEP;
        lane->capacity = capacity;
        lane->frame = malloc(capacity);
        if (lane->frame == NULL)
            return false;
    }
    return true;
}

static bool make_cache(struct counted_run *run)
{
    const struct counted_case *counted = run->counted;
    segzstd_cache_options options = SEGZSTD_CACHE_OPTIONS_INIT;

    options.workers = counted->workers > 0 ? counted->workers : 1;
    options.encoders_kept = counted->spare > 0 ? counted->spare : SEGZSTD_NONE;
    options.no_huge_pages = 1; /* what the system grants would show */
    if (segzstd_cache_new(&run->cache, &options) != 0)
        return false;
    return !has(run, CASE_DICT) ||
           segzstd_dict_new(&run->dict, run->cache, run->content, DICT_BYTES) ==
               0;
}

struct counted_run *case_open(const struct counted_case *counted)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;
    struct counted_run *run = calloc(1, sizeof(*run));

    if (run == NULL)
        return NULL;
    run->counted = counted;
    if (!make_lanes(run) || !make_cache(run)) {
        case_close(run);
        return NULL;
    }
    options.level = counted->level;
    options.segment_bytes = counted->segment_bytes;
    options.size = counted->bytes;
    options.size_is_certain = 1;
    options.checksum = has(run, CASE_CHECKSUM);
    options.dict = run->dict;
    run->options = options;
    return run;
}

void case_close(struct counted_run *run)
{
    for (size_t i = 0; i < run->lane_count; i++) {
        segzstd_stream_free(run->lanes[i].stream);
        free(run->lanes[i].frame);
    }
    segzstd_dict_free(run->dict);
    segzstd_cache_free(run->cache);
    free(run->lanes);
    free(run->content);
    free(run);
}

/* The source of CASE_READER; `arg` is its first byte, and it has enough. */
static int64_t read_content(void *arg, uint64_t offset, void *dst, size_t len)
{
    memcpy(dst, (const unsigned char *)arg + offset, len);
    return (int64_t)len;
}

static int push(const struct counted_run *run, struct lane *lane,
                const unsigned char *src, size_t len, segzstd_op op)
{
    size_t taken = 0;
    int error;

    if (has(run, CASE_READER)) {
        return segzstd_stream_push_reader(lane->stream, read_content, len, op,
                                          NULL, (void *)(uintptr_t)src);
    }
    if (has(run, CASE_BORROW)) {
        return segzstd_stream_push_ref(lane->stream, src, len, op, NULL, NULL);
    }
    error = segzstd_stream_push(lane->stream, src, len, op, &taken);
    return error == 0 && taken != len ? SEGZSTD_ERR_INTERNAL : error;
}

/* Takes all jobs that are to be had before it runs the first, as a host with
 * threads would. *count is how many there were. */
static int run_jobs(struct lane *lane, size_t *count)
{
    segzstd_job *jobs[JOBS_MAX];
    int error = 0;

    for (*count = 0; *count < JOBS_MAX; (*count)++) {
        error = segzstd_stream_poll_job(lane->stream, &jobs[*count]);
        if (error != 0 || jobs[*count] == NULL)
            break;
    }
    for (size_t i = 0; i < *count; i++)
        segzstd_job_run(jobs[i]);
    for (size_t i = 0; i < *count; i++) {
        int completed = segzstd_job_complete(jobs[i]);

        if (error == 0)
            error = completed;
    }
    return error;
}

static void take_output(const struct counted_run *run, struct lane *lane)
{
    segzstd_vec vec[VEC_MAX];
    size_t pieces;

    while ((pieces = segzstd_stream_peek(lane->stream, vec, VEC_MAX)) > 0) {
        size_t bytes = 0;

        for (size_t i = 0; i < pieces; i++) {
            if (run->keep && vec[i].len <= lane->capacity - lane->len)
                memcpy(lane->frame + lane->len, vec[i].base, vec[i].len);
            lane->len += vec[i].len;
            bytes += vec[i].len;
        }
        segzstd_stream_consume(lane->stream, bytes);
    }
}

static int drive(const struct counted_run *run, struct lane *lane)
{
    size_t jobs;
    int error;

    do {
        error = run_jobs(lane, &jobs);
        take_output(run, lane);
    } while (error == 0 && jobs > 0);
    return error;
}

static int give(const struct counted_run *run, struct lane *lane, size_t offset)
{
    const struct counted_case *counted = run->counted;
    size_t left = counted->bytes - offset;
    size_t len = counted->piece_bytes;
    segzstd_op op = has(run, CASE_FLUSH) ? SEGZSTD_FLUSH : SEGZSTD_CONTINUE;
    int error;

    if (len == 0 || len >= left) {
        len = left;
        op = SEGZSTD_END;
    }
    error = push(run, lane, lane->content + offset, len, op);
    if (error == 0 && has(run, CASE_STORE))
        error = segzstd_stream_store(lane->stream, len, NULL);
    if (error == 0)
        error = drive(run, lane);
    if (has(run, CASE_REST))
        segzstd_stream_rest(lane->stream);
    return error;
}

static int open_stream(struct counted_run *run, struct lane *lane)
{
    lane->len = 0;
    return segzstd_stream_new(&lane->stream, run->cache, &run->options);
}

static int close_stream(struct lane *lane)
{
    bool done = segzstd_stream_is_done(lane->stream) != 0;

    segzstd_stream_free(lane->stream);
    lane->stream = NULL;
    return done ? 0 : SEGZSTD_ERR_INTERNAL;
}

static int run_lanes(struct counted_run *run)
{
    size_t bytes = run->counted->bytes;
    size_t step =
        run->counted->piece_bytes > 0 ? run->counted->piece_bytes : bytes;
    int error = 0;

    for (size_t i = 0; error == 0 && i < run->lane_count; i++)
        error = open_stream(run, &run->lanes[i]);
    for (size_t at = 0; error == 0 && at < bytes; at += step) {
        for (size_t i = 0; error == 0 && i < run->lane_count; i++)
            error = give(run, &run->lanes[i], at);
    }
    for (size_t i = 0; error == 0 && i < run->lane_count; i++)
        error = close_stream(&run->lanes[i]);
    return error;
}

bool case_run(struct counted_run *run, bool keep)
{
    int error;

    run->keep = keep;
    error = run_lanes(run);
    if (error != 0) {
        fprintf(stderr, "%s: %s\n", run->counted->name,
                segzstd_strerror(error));
    }
    return error == 0;
}

/* frame_decodes_to() knows no dictionary. */
static bool decodes_with_dict(const struct counted_run *run,
                              const struct lane *lane)
{
    size_t bytes = run->counted->bytes;
    unsigned char *decoded = malloc(bytes);
    ZSTD_DCtx *dctx = ZSTD_createDCtx();
    bool good =
        decoded != NULL && dctx != NULL &&
        ZSTD_decompress_usingDict(dctx, decoded, bytes, lane->frame, lane->len,
                                  run->content, DICT_BYTES) == bytes &&
        memcmp(decoded, lane->content, bytes) == 0;

    ZSTD_freeDCtx(dctx);
    free(decoded);
    return good;
}

static bool is_right(const struct counted_run *run, const struct lane *lane)
{
    if (lane->len > lane->capacity)
        return false;
    if (has(run, CASE_DICT))
        return decodes_with_dict(run, lane);
    return frame_decodes_to(lane->frame, lane->len, lane->content,
                            run->counted->bytes);
}

/* Whether content was cut where a second worker was there for it. */
static bool is_cut(const struct counted_run *run)
{
    segzstd_cache_stats stats = SEGZSTD_CACHE_STATS_INIT;

    if (run->counted->workers < 2)
        return true;
    return segzstd_cache_get_stats(run->cache, &stats) == 0 && stats.splits > 0;
}

bool case_is_right(struct counted_run *run)
{
    if (!is_cut(run)) {
        fprintf(stderr, "%s: was not cut\n", run->counted->name);
        return false;
    }
    for (size_t i = 0; i < run->lane_count; i++) {
        if (!is_right(run, &run->lanes[i])) {
            fprintf(stderr, "%s: stream %zu made no good frame\n",
                    run->counted->name, i);
            return false;
        }
    }
    return true;
}

bool case_run_counted(struct counted_run *run)
{
    bool good = true;

    for (unsigned i = 0; good && i < run->counted->times; i++)
        good = case_run(run, false);
    return good;
}
