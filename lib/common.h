/*
 * common.h - what every file of the library includes first.
 */
#ifndef SEGZSTD_COMMON_H
#define SEGZSTD_COMMON_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "segzstd.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* Largest block of the format: RFC 8878, section 3.1.1.2.3. */
#define BLOCK_BYTES_MAX (128 * KIB)

static inline size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Position of the highest set bit; v is not 0. */
static inline unsigned highest_bit(uint64_t v)
{
    assert(v != 0);
    return 63 - (unsigned)__builtin_clzll(v);
}

/* Smallest n with 2^n >= v; v is not 0. */
static inline unsigned ceil_log2(uint64_t v)
{
    return v <= 1 ? 0 : highest_bit(v - 1) + 1;
}

#endif /* SEGZSTD_COMMON_H */
