/*
 * samples_hdr.c - see samples.h. Samples in a HdrHistogram.
 */
#include "samples.h"

#ifdef HAVE_HDR

#  include <errno.h>
#  include <hdr/hdr_histogram.h>
#  include <stdlib.h>
#  include <string.h>

/* In steps of 1 ns, so that there are three digits from 1 us on. The longest
 * wait is an hour's run and an hour's timeout. */
#  define LEAST_NS 1
#  define MOST_NS (3 * 3600 * INT64_C(1000000000))
#  define DIGITS 3

/* Lines for each halving of the distance to 100 %. */
#  define TICKS 5

const char samples_method[] = "hdrhistogram";

static struct hdr_histogram *create(void)
{
    struct hdr_histogram *histogram = NULL;

    if (hdr_init(LEAST_NS, MOST_NS, DIGITS, &histogram) != 0) {
        fputs("segzstd_load: no memory for a histogram\n", stderr);
        exit(1);
    }
    return histogram;
}

void samples_add(struct samples *samples, uint64_t value)
{
    if (samples->histogram == NULL)
        samples->histogram = create();
    if (value > MOST_NS)
        value = MOST_NS;
    hdr_record_value(samples->histogram, (int64_t)value);
    samples->count++;
}

void samples_free(struct samples *samples)
{
    if (samples->histogram != NULL)
        hdr_close(samples->histogram);
    memset(samples, 0, sizeof(*samples));
}

static uint64_t percentile(const struct samples *samples, double percent)
{
    return (uint64_t)hdr_value_at_percentile(samples->histogram, percent);
}

struct summary samples_summary(struct samples *samples)
{
    struct summary summary = {0};

    if (samples->count == 0)
        return summary;
    summary.count = samples->count;
    summary.mean = hdr_mean(samples->histogram);
    summary.p50 = percentile(samples, 50);
    summary.p90 = percentile(samples, 90);
    summary.p99 = percentile(samples, 99);
    summary.p999 = percentile(samples, 99.9);
    summary.max = (uint64_t)hdr_max(samples->histogram);
    return summary;
}

bool samples_print(struct samples *samples, FILE *out)
{
    int error;

    if (samples->histogram == NULL)
        samples->histogram = create();
    error = hdr_percentiles_print(samples->histogram, out, TICKS, 1e6, CLASSIC);
    errno = error;
    return error == 0;
}

#endif /* HAVE_HDR */
