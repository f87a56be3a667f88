/*
 * stats.h - medians and their spread: pure functions of numbers.
 */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stdbool.h>
#include <stddef.h>

/* A growing list of numbers. All zero: empty. */
struct series {
    double *values;
    size_t count;
    size_t capacity;
};

/* False without memory. */
bool series_add(struct series *series, double value);
void series_free(struct series *series);

/* Median and quartiles; all 0 of an empty list. */
struct spread {
    double median;
    double q1;
    double q3;
};

struct spread series_spread(const struct series *series);

double series_median(const struct series *series);

/* Median of a[i] / base[i] over the indices that both have. 0 if none. */
double series_median_ratio(const struct series *a, const struct series *base);

/* Half the distance of the quartiles, as a part of the median: the plus or
 * minus of a table. */
double spread_part(const struct spread *spread);

/* a / b, or 0 if b is 0. */
double ratio(double a, double b);

#endif /* BENCH_STATS_H */
