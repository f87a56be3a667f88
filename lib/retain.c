/*
 * retain.c - what stays of that which nobody uses.
 */
#include "retain.h"

uint64_t segzstd__retain_limit(const struct segzstd__retain *retain)
{
    switch (retain->policy) {
    case SEGZSTD_RETAIN_BOUNDED:
        return retain->max_bytes;
    case SEGZSTD_RETAIN_NONE:
        return 0;
    default:
        return UINT64_MAX;
    }
}

bool segzstd__retain_is_expired(const struct segzstd__retain *retain,
                                uint64_t stamp_ns, uint64_t now_ns)
{
    return now_ns > stamp_ns && now_ns - stamp_ns > retain->idle_ns;
}
