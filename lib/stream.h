/*
 * stream.h - the owner's side of a stream. Everything here is the owner's.
 */
#ifndef SEGZSTD_STREAM_H
#define SEGZSTD_STREAM_H

#include "options.h"
#include "segment.h"

/* Most that the end of a frame takes: the header too, if there is no content. */
#define TRAILER_BYTES                                                          \
  (FRAME_HEADER_BYTES_MAX + BLOCK_HEADER_BYTES + CHECKSUM_BYTES)

struct segzstd_stream {
    struct segzstd_cache *cache;
    struct segzstd__job_shared shared; /* jobs read it */
    segzstd_stream_options options;    /* completed */
    unsigned window_log;               /* at most that of the header */
    size_t overlap;    /* before a cut, unless it is made for an idle worker */
    size_t input_max;  /* copied bytes that may wait */
    size_t extent_max; /* content bytes of one extent of copied input */
    size_t output_max; /* bytes that may wait to be read */
    size_t part_max;   /* content between two cuts for idle workers */
    unsigned max_jobs; /* out at once; may be lowered */
    unsigned max_jobs_given;

    struct segzstd__link segments;   /* first content first */
    struct segzstd__extent *history; /* last bytes, where no segment has them */
    uint64_t pos_in;                 /* content taken */
    uint64_t pos_out;   /* content whose blocks are in `ready` or consumed */
    uint64_t pos_flush; /* all before it is to be compressed now */
    uint64_t run_pos;   /* content position of the last lost encoder, or 0 */
    uint64_t waiting;   /* copied bytes not yet compressed */
    bool ended;
    bool wrong_size; /* content is not of the certain size: no end of frame */
    bool header_fixed;
    bool frame_done; /* the last block is in `ready` or consumed */

    struct segzstd__buf ready; /* what peek shows */
    uint64_t behind;           /* output bytes of segments after the first */
    struct segzstd__xxh64 hash;
    /* the chunk with the end of the frame, so that ending needs no memory */
    _Alignas(struct segzstd__chunk)
        uint8_t trailer[sizeof(struct segzstd__chunk) + TRAILER_BYTES];

    int error; /* fatal, or 0 */
    const char *zstd_error;
    unsigned jobs_out;
    bool orphan; /* freed by the host while jobs were out */
    /* Jobs that are to be short, read small extents and prime with nothing yet,
     * since memory was short for one that was alone. */
    unsigned short_jobs;
    segzstd_stream_stats stats;
};

/* The last segment, or NULL. */
struct segzstd__segment *segzstd__stream_tail(struct segzstd_stream *stream);

/* Decides what the frame header says. Before the first job and first block. */
void segzstd__stream_fix_header(struct segzstd_stream *stream);

/* The overlap before a part of about that many bytes, see plan.h. */
size_t segzstd__stream_overlap(const struct segzstd_stream *stream,
                               uint64_t part, bool regular);

/* Output of a segment has come, and the segment's `fed` is up to date. May free
 * the segment. */
void segzstd__stream_took_output(struct segzstd_stream *stream,
                                 struct segzstd__segment *segment,
                                 struct segzstd__buf *out);

/* If a segment is finished: gives back what it needed for more jobs. */
void segzstd__stream_settle(struct segzstd_stream *stream,
                            struct segzstd__segment *segment);

/* Drops what jobs of a reader's segment have read, if that can be read again,
 * and its encoder, which needs it. No job of it is out. */
void segzstd__stream_drop_read(struct segzstd_stream *stream,
                               struct segzstd__segment *segment);

/* A job of the segment could not get memory, and is not out. If it was the only
 * one, those that follow are to need less. */
void segzstd__stream_run_short(struct segzstd_stream *stream,
                               struct segzstd__segment *segment);

/* Moves output of segments that are next to `ready`, frees those that are
 * finished, and ends the frame if that is due. */
void segzstd__stream_advance(struct segzstd_stream *stream);

/* Cut positions are multiples of segment_bytes from a segment's start. */
static inline bool segzstd__stream_is_fixed(const struct segzstd_stream *stream)
{
    return stream->options.segment_bytes != 0;
}

/*
 * Jobs that may be out for each worker. A segment that goes on in another job
 * holds its encoder meanwhile, so jobs that wait for a worker would take as many
 * encoders as run, and push each other's tables out of the CPU's caches. A
 * segment that is one job holds none, and may wait for its worker, so that this
 * need not wait for the owner.
 */
static inline unsigned segzstd__stream_per_worker(
    const struct segzstd_stream *stream)
{
    return segzstd__stream_is_fixed(stream) ? 2 : 1;
}

/* What the segment makes can be read at once. */
static inline bool segzstd__stream_is_first(
    const struct segzstd_stream *stream, const struct segzstd__segment *segment)
{
    return segment->link.prev == &stream->segments;
}

#endif /* SEGZSTD_STREAM_H */
