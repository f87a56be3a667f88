/*
 * alloc.h - an allocator that counts, fails on demand, and knows each block
 * that is alive, so that leaks and wrong frees are seen. Any thread.
 */
#ifndef SUPPORT_ALLOC_H
#define SUPPORT_ALLOC_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "segzstd.h"

enum { ALLOC_BUCKETS = 1 << 14 };

struct alloc_block;

struct test_alloc {
    segzstd_allocator api; /* to be given to a cache */

    pthread_mutex_t lock; /* guards all below */
    struct alloc_block *buckets[ALLOC_BUCKETS];
    uint64_t calls;      /* of alloc, since alloc_fail() or alloc_init() */
    uint64_t fail_first; /* the first of these calls that fails */
    uint64_t fail_count; /* how many fail from there on */
    uint64_t failed;     /* how many did */
    size_t budget;       /* bytes alive never exceed it; 0: no bound */
    size_t bytes;        /* alive */
    size_t bytes_peak;
    size_t blocks; /* alive */
    unsigned bad_frees;
};

#define ALLOC_FOR_EVER UINT64_MAX

void alloc_init(struct test_alloc *a);

/* Lets `count` calls fail from the `first`-th from now on, counted from 0. */
void alloc_fail(struct test_alloc *a, uint64_t first, uint64_t count);

/* No more failures. */
void alloc_heal(struct test_alloc *a);

/* How many calls failed since alloc_init(). */
uint64_t alloc_failed(struct test_alloc *a);

/* Bytes alive now. */
size_t alloc_bytes(struct test_alloc *a);

/* When all should be freed: what is wrong, or NULL. Frees what leaked. */
const char *alloc_done(struct test_alloc *a);

#endif /* SUPPORT_ALLOC_H */
