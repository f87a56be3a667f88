/*
 * job.h - one piece of work for one thread. A running job touches itself, the
 * bytes of its content, and the cache; nothing else of its stream.
 */
#ifndef SEGZSTD_JOB_H
#define SEGZSTD_JOB_H

#include "buf.h"
#include "cache.h"
#include "dict.h"
#include "frame.h"
#include "input.h"

/* What all jobs of a stream share. Never written while a job is out, except
 * `canceled`. */
struct segzstd__job_shared {
    struct segzstd_cache *cache;
    struct segzstd_dict *dict; /* NULL: none */
    int level;
    size_t slice_bytes; /* content between two looks at `canceled` */
    struct segzstd__frame_header header;
    _Atomic bool canceled; /* owner writes, workers read */
};

struct segzstd_job {
    /* The owner writes these before the job is given out. */
    struct segzstd_stream *stream; /* for segzstd_job_stream() only */
    struct segzstd__job_shared *shared;
    bool whole;        /* all of the frame, as ZSTD_compress2() makes it */
    bool last_of_run;  /* nothing will follow: do not hold the encoder */
    bool is_inline;    /* the owner runs it: not among the workers' jobs */
    uint64_t from;     /* content position of the first byte */
    uint8_t *content;  /* where that byte lies */
    size_t len;        /* content bytes of this job */
    size_t len_max;    /* content bytes that may ever follow `content` there */
    size_t prefix_len; /* bytes right before `content` to prime with */
    const struct segzstd__reader *reader; /* NULL: all bytes are there */
    size_t read_back; /* first byte to be read, before `content` */
    size_t read_len;  /* bytes to be read, from there on */

    /* The owner writes it before, the worker in run, the owner reads it after
     * complete. */
    struct segzstd__claim claim;

    /* The worker writes these in run, the owner reads them after complete. */
    bool ran;
    bool began; /* a run was begun, rather than gone on with */
    int error;  /* 0, SEGZSTD_ERR_NOMEM or fatal */
    const char *zstd_error;
    struct segzstd__buf out;
    uint64_t cpu_ns;

    struct segzstd_job *next_queued; /* whoever has the job, e.g. executor.c */
};

/* Room for a frame header in front of the first run's output. libzstd writes
 * six bytes there (no size, no dictionary id), which ours replaces. */
#define FRAME_HEADER_ROOM (FRAME_HEADER_BYTES_MAX - 6)

/* Makes sure that the last chunk of buf has room for `bytes`, adding a chunk of
 * at least `chunk_bytes` if it has not. Returns 0 or SEGZSTD_ERR_NOMEM. */
int segzstd__job_ensure_room(struct segzstd_cache *cache,
                             struct segzstd__buf *buf, size_t bytes,
                             size_t chunk_bytes);

/* Gives all chunks back. */
void segzstd__job_drop(struct segzstd_cache *cache, struct segzstd__buf *buf);

#endif /* SEGZSTD_JOB_H */
