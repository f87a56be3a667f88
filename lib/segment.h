/*
 * segment.h - a stretch of content that one encoder after another works through,
 * with the output that it made. A stream's segments follow each other without
 * gap, in the order of the content.
 */
#ifndef SEGZSTD_SEGMENT_H
#define SEGZSTD_SEGMENT_H

#include "job.h"

/* All fields are the owner's. */
struct segzstd__segment {
    struct segzstd__link link;
    uint64_t start; /* content positions: [start, end), end grows while open */
    uint64_t end;
    uint64_t fed;   /* all before it is in `out`, or went on from there */
    uint64_t taken; /* end of what the job has that is out; else == fed */
    size_t overlap; /* bytes before a run to prime it with */
    bool open;      /* the next pushed bytes may join it */
    bool job_out;
    bool counted;                   /* among the stream's segments */
    struct segzstd__extent *extent; /* a reference; NULL until a job reads */
    struct segzstd__reader *reader; /* a reference; NULL: bytes are pushed */
    struct segzstd__claim claim;    /* the encoder that it was last with */
    struct segzstd__buf out;        /* not yet moved to the stream */
    struct segzstd_job job;         /* the one that may be out */
};

/* A segment [pos, pos) of the cache's memory; NULL if there is none. */
struct segzstd__segment *segzstd__segment_new(struct segzstd_cache *cache,
                                              uint64_t pos, size_t overlap);

/* Moves an empty segment to another position. */
void segzstd__segment_move(struct segzstd__segment *segment, uint64_t pos);

/* Frees it with all that it holds; no job is out. */
void segzstd__segment_free(struct segzstd__segment *segment,
                           struct segzstd_cache *cache);

/* Drops the references to memory that no job will need. */
void segzstd__segment_drop_input(struct segzstd__segment *segment,
                                 struct segzstd_cache *cache);

/* Nothing is left to do in it, and nothing can join it. */
bool segzstd__segment_is_finished(const struct segzstd__segment *segment);

/* Content that no job has yet. */
uint64_t segzstd__segment_waiting(const struct segzstd__segment *segment);

/*
 * Cuts at `pos`, which lies behind what jobs have: the segment ends there, and
 * the new one, which follows it in the list, has the rest, the same extent and
 * the same reader. Returns the new one, or NULL, and nothing has changed, if
 * there is no memory.
 */
struct segzstd__segment *segzstd__segment_split(
    struct segzstd__segment *segment, struct segzstd_cache *cache,
    uint64_t pos);

/* How much of the overlap before `pos` the extent has. */
size_t segzstd__segment_prefix(const struct segzstd__segment *segment,
                               uint64_t pos);

struct segzstd__segment *segzstd__segment_of(struct segzstd__link *link);

/* An extent for `carry` bytes, which end where the content at `pos` begins, and
 * `content` bytes after it. NULL if there is no memory. */
struct segzstd__extent *segzstd__extent_new(struct segzstd_cache *cache,
                                            uint64_t pos, size_t carry,
                                            size_t content);
struct segzstd__extent *segzstd__extent_ref(struct segzstd__extent *extent);
void segzstd__extent_unref(struct segzstd__extent *extent,
                           struct segzstd_cache *cache);
void segzstd__reader_unref(struct segzstd__reader *reader,
                           struct segzstd_cache *cache);

#endif /* SEGZSTD_SEGMENT_H */
