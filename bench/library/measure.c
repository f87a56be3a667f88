/*
 * measure.c - see measure.h.
 */
#define _GNU_SOURCE 1

#include "measure.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double clock_ns(clockid_t clock)
{
    struct timespec now = {0, 0};

    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

struct reading measure_now(void)
{
    struct reading reading;
    struct rusage usage;

    memset(&usage, 0, sizeof(usage));
    getrusage(RUSAGE_SELF, &usage);
    reading.faults = (double)usage.ru_minflt + (double)usage.ru_majflt;
    reading.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    reading.wall_ns = clock_ns(CLOCK_MONOTONIC);
    return reading;
}

struct reading measure_since(const struct reading *start)
{
    double wall_ns = clock_ns(CLOCK_MONOTONIC);
    struct reading now = measure_now();

    now.wall_ns = wall_ns - start->wall_ns;
    now.cpu_ns -= start->cpu_ns;
    now.faults -= start->faults;
    return now;
}

/* A line "name:  123 kB" of /proc/self/status, in bytes. */
static uint64_t status_bytes(const char *name)
{
    FILE *status = fopen("/proc/self/status", "r");
    unsigned long long kib = 0;
    char line[256];

    if (status == NULL)
        return 0;
    while (fgets(line, sizeof(line), status) != NULL) {
        size_t len = strlen(name);

        if (strncmp(line, name, len) == 0 && line[len] == ':' &&
            sscanf(line + len + 1, "%llu", &kib) == 1) {
            break;
        }
    }
    fclose(status);
    return (uint64_t)kib * 1024;
}

uint64_t measure_rss(void)
{
    return status_bytes("VmRSS");
}

uint64_t measure_rss_peak(void)
{
    return status_bytes("VmHWM");
}
