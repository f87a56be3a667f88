/*
 * engine_segzstd.c - the library under test, as a host would drive it: one
 * cache and one executor, kept between runs, and a new stream for each run.
 */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>

#include "drive.h"
#include "segzstd.h"

struct ours {
    const struct engine *engine;
    segzstd_cache *cache;
    segzstd_executor *executor; /* NULL: jobs run on this thread */
    segzstd_stream_options options;
    uint64_t encoder_bytes; /* most seen at the end of a run */
    uint64_t segments;      /* of the last run */
};

/* One frame on its way. */
struct run {
    struct ours *self;
    segzstd_stream *stream;
    const unsigned char *src;
    size_t len; /* not yet pushed */
    bool ended; /* all was pushed */
    struct sink *sink;
};

void *ours_init(const struct engine *engine, const struct engine_config *config)
{
    segzstd_cache_options cache_options = SEGZSTD_CACHE_OPTIONS_INIT;
    segzstd_stream_options stream_options = SEGZSTD_STREAM_OPTIONS_INIT;
    struct ours *self = calloc(1, sizeof(*self));

    if (self == NULL)
        return NULL;
    self->engine = engine;
    cache_options.workers = engine->threads > 0 ? engine->threads : 1;
    cache_options.no_huge_pages = config->no_huge_pages;
    stream_options.level = config->level;
    if ((engine->traits & ENGINE_SIZE_UNKNOWN) == 0) {
        stream_options.size = config->bytes;
        stream_options.size_is_certain = 1;
    }
    stream_options.segment_bytes = engine->segment_bytes;
    stream_options.overlap_bytes = config->overlap_bytes;
    self->options = stream_options;
    if (segzstd_cache_new(&self->cache, &cache_options) != 0)
        goto failed;
    if (engine->threads > 0 &&
        segzstd_executor_new(&self->executor, engine->threads, NULL, NULL) !=
            0) {
        goto failed;
    }
    return self;

failed:
    ours_fini(self);
    return NULL;
}

/* Pushes the whole input by reference, or one piece by copying it, if there is
 * room for it. */
static int push(struct run *run)
{
    size_t piece = run->self->engine->piece_bytes;
    size_t taken = 0;
    segzstd_op op;
    int error;

    if (piece == 0) {
        error = segzstd_stream_push_ref(run->stream, run->src, run->len,
                                        SEGZSTD_END, NULL, NULL);
        run->ended = error == 0;
        return error == SEGZSTD_ERR_AGAIN ? 0 : error;
    }
    if (piece > run->len)
        piece = run->len;
    op = piece == run->len ? SEGZSTD_END : SEGZSTD_CONTINUE;
    error = segzstd_stream_push(run->stream, run->src, piece, op, &taken);
    run->src += taken;
    run->len -= taken;
    run->ended = error == 0 && op == SEGZSTD_END && taken == piece;
    return error;
}

/* Gives every job that is to be had to a worker, or runs it here. */
static int start_jobs(struct run *run)
{
    segzstd_executor *executor = run->self->executor;
    segzstd_job *job;
    int error;

    if (executor == NULL)
        return drive_jobs(run->stream);
    while ((error = segzstd_stream_poll_job(run->stream, &job)) == 0 &&
           job != NULL) {
        segzstd_executor_submit(executor, job);
    }
    return error;
}

/* Takes finished jobs back; waits for the first one if there is nothing else to
 * do. */
static int finish_jobs(struct run *run)
{
    segzstd_executor *executor = run->self->executor;
    segzstd_job *job;
    int error = 0;

    if (executor == NULL || segzstd_stream_jobs_out(run->stream) == 0)
        return 0;
    if (run->ended || segzstd_stream_want_input(run->stream) == 0)
        job = segzstd_executor_wait(executor);
    else
        job = segzstd_executor_poll(executor);
    while (job != NULL && error == 0) {
        error = segzstd_job_complete(job);
        job = error == 0 ? segzstd_executor_poll(executor) : NULL;
    }
    return error;
}

/* Nothing is left that could bring this run forward: a fault of the library,
 * that must not look like a slow run. */
static bool is_stuck(const struct run *run)
{
    const segzstd_stream *stream = run->stream;

    return !segzstd_stream_is_done(stream) &&
           !segzstd_stream_want_job(stream) &&
           !segzstd_stream_want_output(stream) &&
           segzstd_stream_jobs_out(stream) == 0 &&
           (run->ended || segzstd_stream_want_input(stream) == 0);
}

static int drive(struct run *run)
{
    int error = 0;

    while (error == 0 && !segzstd_stream_is_done(run->stream)) {
        if (!run->ended)
            error = push(run);
        if (error == 0)
            error = start_jobs(run);
        if (error == 0)
            error = finish_jobs(run);
        drive_output(run->stream, run->sink);
        if (error == 0 && is_stuck(run))
            error = SEGZSTD_ERR_INTERNAL;
    }
    return error;
}

static void note_usage(struct ours *self, const segzstd_stream *stream)
{
    segzstd_cache_stats cache = SEGZSTD_CACHE_STATS_INIT;
    segzstd_stream_stats run = SEGZSTD_STREAM_STATS_INIT;

    if (segzstd_cache_get_stats(self->cache, &cache) == 0 &&
        cache.encoder_bytes > self->encoder_bytes) {
        self->encoder_bytes = cache.encoder_bytes;
    }
    if (segzstd_stream_get_stats(stream, &run) == 0)
        self->segments = run.segments;
}

/* Frees the stream of a run that failed, whose jobs may still be out. */
static void abandon(struct run *run)
{
    segzstd_job *job;

    segzstd_stream_free(run->stream);
    if (run->self->executor == NULL)
        return;
    while ((job = segzstd_executor_wait(run->self->executor)) != NULL)
        segzstd_job_complete(job);
}

bool ours_compress(void *state, const void *src, size_t len, struct sink *sink)
{
    struct ours *self = state;
    struct run run = {self, NULL, src, len, false, sink};
    int error;

    sink->len = 0;
    error = segzstd_stream_new(&run.stream, self->cache, &self->options);
    if (error == 0)
        error = drive(&run);
    if (error != 0) {
        fprintf(stderr, "%s: %s\n", self->engine->name,
                segzstd_strerror(error));
        abandon(&run);
        return false;
    }
    note_usage(self, run.stream);
    segzstd_stream_free(run.stream);
    return true;
}

void ours_usage(const void *state, struct engine_usage *usage)
{
    const struct ours *self = state;
    segzstd_cache_stats stats = SEGZSTD_CACHE_STATS_INIT;

    usage->encoder_bytes = self->encoder_bytes;
    usage->segments = self->segments;
    usage->peak_bytes = 0;
    if (segzstd_cache_get_stats(self->cache, &stats) == 0)
        usage->peak_bytes = stats.bytes_peak;
}

void ours_fini(void *state)
{
    struct ours *self = state;

    if (self == NULL)
        return;
    segzstd_executor_free(self->executor);
    segzstd_cache_free(self->cache);
    free(self);
}
