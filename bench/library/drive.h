/*
 * drive.h - the owner's two chores that all parts of the benchmark share.
 */
#ifndef BENCH_DRIVE_H
#define BENCH_DRIVE_H

#include "engine.h"
#include "segzstd.h"

/* Runs all jobs that the stream has, on the calling thread. Returns 0 or the
 * library's error. */
int drive_jobs(segzstd_stream *stream);

/* Moves all output that is ready to the sink. */
void drive_output(segzstd_stream *stream, struct sink *sink);

#endif /* BENCH_DRIVE_H */
