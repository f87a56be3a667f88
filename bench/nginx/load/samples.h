/*
 * samples.h - the times of all answered requests, and their percentiles.
 *
 * With HAVE_HDR they are kept in an HdrHistogram, to three significant digits;
 * otherwise each is kept as it is.
 */
#ifndef LOAD_SAMPLES_H
#define LOAD_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Nanoseconds. All zero: empty. */
struct samples {
    size_t count;
#ifdef HAVE_HDR
    struct hdr_histogram *histogram; /* NULL: empty */
#else
    uint64_t *values;
    size_t capacity;
#endif
};

/* Ends the program without memory. */
void samples_add(struct samples *samples, uint64_t value);
void samples_free(struct samples *samples);

struct summary {
    size_t count;
    double mean;
    uint64_t p50, p90, p99, p999, max;
};

/* Each percentile is the smallest sample that at least so many of all do not
 * exceed. All 0 without samples. */
struct summary samples_summary(struct samples *samples);

/* How the percentiles are made, in a word. */
extern const char samples_method[];

#ifdef HAVE_HDR
/* The whole distribution, in milliseconds, as HdrHistogram's tools read it.
 * False, with errno set, if it could not be written. */
bool samples_print(struct samples *samples, FILE *out);
#endif

#endif /* LOAD_SAMPLES_H */
