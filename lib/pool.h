/*
 * pool.h - idle memory blocks by size class, for extents and output chunks. The
 * pool has no lock: the cache's covers it.
 */
#ifndef SEGZSTD_POOL_H
#define SEGZSTD_POOL_H

#include "list.h"

/*
 * Classes are 2^k and 1.5 * 2^k bytes: a block is at most half larger than what
 * was asked for. From 4 KiB (an output chunk of a small response) to 48 MiB (an
 * extent of the largest kind, see plan.h); larger blocks are not pooled.
 */
#define POOL_MIN_LOG 12
#define POOL_CLASSES 28

/* Lies in the first bytes of an idle block. */
struct segzstd__idle_block {
    struct segzstd__link in_class; /* newest first */
    struct segzstd__link in_age;   /* oldest first */
    size_t bytes;
    uint64_t stamp_ns; /* of the cache's clock, when it became idle */
};

struct segzstd__pool {
    struct segzstd__link classes[POOL_CLASSES];
    struct segzstd__link age;
    uint64_t bytes; /* of all idle blocks */
};

void segzstd__pool_init(struct segzstd__pool *pool);

/* What a block for `bytes` bytes really has: the size of its class, or `bytes`
 * above the largest. */
size_t segzstd__pool_round(size_t bytes);

/* True if blocks of this (rounded) size are kept. */
bool segzstd__pool_holds(size_t bytes);

/* Takes an idle block of that (rounded) size; NULL if there is none. */
void *segzstd__pool_take(struct segzstd__pool *pool, size_t bytes);

/* Puts an idle block of that (rounded) size in. */
void segzstd__pool_put(struct segzstd__pool *pool, void *block, size_t bytes,
                       uint64_t stamp_ns);

/* The block that has been idle longest; NULL if there is none. */
struct segzstd__idle_block *segzstd__pool_oldest(
    const struct segzstd__pool *pool);

void segzstd__pool_remove(struct segzstd__pool *pool,
                          struct segzstd__idle_block *block);

#endif /* SEGZSTD_POOL_H */
