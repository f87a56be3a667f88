/*
 * samples.c - see samples.h. A growing list of all samples.
 */
#include "samples.h"

#ifndef HAVE_HDR

#  include <stdlib.h>
#  include <string.h>

const char samples_method[] = "exact";

void samples_add(struct samples *samples, uint64_t value)
{
    if (samples->count == samples->capacity) {
        size_t capacity = samples->capacity ? 2 * samples->capacity : 4096;
        uint64_t *values = realloc(samples->values, capacity * sizeof(*values));
        if (values == NULL) {
            fputs("segzstd_load: no memory for samples\n", stderr);
            exit(1);
        }
        samples->values = values;
        samples->capacity = capacity;
    }
    samples->values[samples->count++] = value;
}

void samples_free(struct samples *samples)
{
    free(samples->values);
    memset(samples, 0, sizeof(*samples));
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* In sorted samples; part in thousandths. */
static uint64_t percentile(const struct samples *samples, size_t thousandths)
{
    size_t rank = (samples->count * thousandths + 999) / 1000;

    return samples->values[rank > 0 ? rank - 1 : 0];
}

struct summary samples_summary(struct samples *samples)
{
    struct summary summary = {0};
    double sum = 0;

    if (samples->count == 0)
        return summary;
    qsort(samples->values, samples->count, sizeof(*samples->values), compare);
    for (size_t i = 0; i < samples->count; i++)
        sum += (double)samples->values[i];
    summary.count = samples->count;
    summary.mean = sum / (double)samples->count;
    summary.p50 = percentile(samples, 500);
    summary.p90 = percentile(samples, 900);
    summary.p99 = percentile(samples, 990);
    summary.p999 = percentile(samples, 999);
    summary.max = samples->values[samples->count - 1];
    return summary;
}

#endif /* !HAVE_HDR */
