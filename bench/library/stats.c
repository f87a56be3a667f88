/*
 * stats.c - see stats.h. Medians, since one disturbed round must not count;
 * quartiles, since they show how disturbed the rest was.
 */
#include "stats.h"

#include <stdlib.h>
#include <string.h>

bool series_add(struct series *series, double value)
{
    if (series->count == series->capacity) {
        size_t capacity = series->capacity == 0 ? 16 : 2 * series->capacity;
        double *values =
            realloc(series->values, capacity * sizeof(*series->values));

        if (values == NULL)
            return false;
        series->values = values;
        series->capacity = capacity;
    }
    series->values[series->count++] = value;
    return true;
}

void series_free(struct series *series)
{
    free(series->values);
    *series = (struct series){0};
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The value at `part` (0 to 1) of the way through, between neighbours. */
static double quantile(const double *sorted, size_t count, double part)
{
    double position = part * (double)(count - 1);
    size_t below = (size_t)position;
    double rest = position - (double)below;

    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + rest * (sorted[below + 1] - sorted[below]);
}

struct spread series_spread(const struct series *series)
{
    struct spread spread = {0, 0, 0};
    double *sorted;

    if (series->count == 0)
        return spread;
    sorted = malloc(series->count * sizeof(*sorted));
    if (sorted == NULL)
        return spread;
    memcpy(sorted, series->values, series->count * sizeof(*sorted));
    qsort(sorted, series->count, sizeof(*sorted), compare);
    spread.median = quantile(sorted, series->count, 0.5);
    spread.q1 = quantile(sorted, series->count, 0.25);
    spread.q3 = quantile(sorted, series->count, 0.75);
    free(sorted);
    return spread;
}

double series_median(const struct series *series)
{
    return series_spread(series).median;
}

double series_median_ratio(const struct series *a, const struct series *base)
{
    struct series ratios = {0};
    size_t count = a->count < base->count ? a->count : base->count;
    double median;

    for (size_t i = 0; i < count; i++) {
        if (!series_add(&ratios, ratio(a->values[i], base->values[i])))
            break;
    }
    median = series_median(&ratios);
    series_free(&ratios);
    return median;
}

double spread_part(const struct spread *spread)
{
    return ratio((spread->q3 - spread->q1) / 2, spread->median);
}

double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}
