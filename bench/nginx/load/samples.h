/*
 * samples.h - the times of all answered requests, and exact percentiles.
 */
#ifndef LOAD_SAMPLES_H
#define LOAD_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

/* A growing list of nanoseconds. All zero: empty. */
struct samples {
    uint64_t *values;
    size_t count;
    size_t capacity;
};

/* Ends the program without memory. */
void samples_add(struct samples *samples, uint64_t value);
void samples_free(struct samples *samples);

struct summary {
    size_t count;
    double mean;
    uint64_t p50, p90, p99, p999, max;
};

/* Each percentile is one of the samples: the smallest that at least so many of
 * all do not exceed. Sorts the list; all 0 of an empty one. */
struct summary samples_summary(struct samples *samples);

#endif /* LOAD_SAMPLES_H */
