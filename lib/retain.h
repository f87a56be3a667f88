/*
 * retain.h - the retention policy, as pure functions of numbers.
 */
#ifndef SEGZSTD_RETAIN_H
#define SEGZSTD_RETAIN_H

#include "common.h"

struct segzstd__retain {
    segzstd_retention policy;
    uint64_t max_bytes; /* for SEGZSTD_RETAIN_BOUNDED */
    uint64_t idle_ns;
};

/* The most idle bytes that may stay. */
uint64_t segzstd__retain_limit(const struct segzstd__retain *retain);

/* True if what became idle at `stamp_ns` is too old at `now_ns`. */
bool segzstd__retain_is_expired(const struct segzstd__retain *retain,
                                uint64_t stamp_ns, uint64_t now_ns);

#endif /* SEGZSTD_RETAIN_H */
