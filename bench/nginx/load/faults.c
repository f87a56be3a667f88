/*
 * faults.c - see faults.h.
 */
#include "faults.h"

#include <stdio.h>

const char *fault_name(enum fault fault)
{
    static const char *const names[FAULTS] = {
        "connect", "closed", "http", "status", "encoding", "length", "timeout",
    };

    return names[fault];
}

void faults_add(struct faults *faults, enum fault fault, const char *format,
                va_list list)
{
    if (faults->total == 0)
        vsnprintf(faults->first, sizeof(faults->first), format, list);
    faults->counts[fault]++;
    faults->total++;
}
