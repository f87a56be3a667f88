/*
 * measure.h - what a stretch of work cost this process, and what it holds.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdint.h>

/* Readings of the process at one moment, or the difference of two. */
struct reading {
    double wall_ns;
    double cpu_ns; /* of all threads, user and system */
    double faults; /* page faults, with and without reading */
};

struct reading measure_now(void);

/* What was spent since `start`. */
struct reading measure_since(const struct reading *start);

/* Resident memory of the process in bytes: now, and the most that ever was.
 * 0 where the system does not say. */
uint64_t measure_rss(void);
uint64_t measure_rss_peak(void);

#endif /* BENCH_MEASURE_H */
