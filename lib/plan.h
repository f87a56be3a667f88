/*
 * plan.h - where to cut, how much overlap, how long a job: pure functions of
 * numbers. Every table here is a measurement; see bench/README.md.
 */
#ifndef SEGZSTD_PLAN_H
#define SEGZSTD_PLAN_H

#include "common.h"

/* The least content of an encoder of its own, at any level. */
#define PART_BYTES_MIN (256 * KIB)

/* The window that libzstd takes for a level when the size is unknown. */
unsigned segzstd__plan_level_window_log(int level);

/*
 * The window that the frame declares: the level's, at most `cap`, and no larger
 * than the content needs where its size is known or (with room for a hint that
 * is too low) guessed.
 */
unsigned segzstd__plan_window_log(int level, unsigned cap, uint64_t size,
                                  bool certain);

/*
 * Overlap before a segment of about `part_bytes`, when it is to be chosen:
 * `regular` if every segment of the content will have it, else for one cut made
 * for an idle worker. At most the window.
 */
size_t segzstd__plan_overlap(int level, unsigned window_log,
                             uint64_t part_bytes, bool regular);

/* Bytes of an encoder's tables with such a window, at most, if it is primed with
 * `overlap`; `stable_input` if it needs no copy of what it looks at. */
uint64_t segzstd__plan_encoder_bytes(int level, unsigned window_log,
                                     size_t overlap, bool stable_input);

/* Content bytes of one job: some milliseconds of work, whole blocks. */
size_t segzstd__plan_job_bytes(int level);

/* Content of the first job of a stream: little, so that its first bytes leave
 * early. */
size_t segzstd__plan_first_bytes(int level);

/* The whole content, if it is not longer, is best compressed in one call: it is
 * not worth a cut, and no other thread of it waits. At most one job. */
size_t segzstd__plan_whole_bytes(int level);

/* Nanoseconds of work that `bytes` of content are expected to be. */
uint64_t segzstd__plan_work_ns(int level, uint64_t bytes);

/*
 * How to share `waiting` bytes of a segment between its own encoder and that of
 * `idle` workers (at least 1): how many bytes its own keeps, or 0 if they are
 * too few to be worth a cut. `late` if the content has been cut before and the
 * segment is the tail of what was shared then.
 */
uint64_t segzstd__plan_keep(int level, size_t overlap, uint64_t waiting,
                            unsigned idle, bool late);

/*
 * Content bytes for which the next extent of copied input should have room:
 * what is still expected where that is known (`left`, else SIZE_UNKNOWN), else
 * a few times what came in since the encoder was last taken away (`run_bytes`).
 * At most `max`.
 */
size_t segzstd__plan_extent_bytes(uint64_t left, uint64_t run_bytes,
                                  size_t max);

#endif /* SEGZSTD_PLAN_H */
