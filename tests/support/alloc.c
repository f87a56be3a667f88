#include "support/alloc.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* In front of each block; a multiple of malloc()'s alignment long. */
struct alloc_block {
    alignas(max_align_t) struct alloc_block *next; /* in its bucket */
    size_t size;
};

/* Freed blocks are overwritten so far, so that a use of them shows. */
enum { POISON_BYTES = 4096, POISON = 0xdb };

static struct alloc_block **bucket_of(struct test_alloc *a, const void *ptr)
{
    uintptr_t key = (uintptr_t)ptr / alignof(max_align_t);

    return &a->buckets[key % ALLOC_BUCKETS];
}

/* Caller holds the lock. */
static bool is_refused(struct test_alloc *a, size_t size)
{
    uint64_t call = a->calls++;

    if (call >= a->fail_first && call - a->fail_first < a->fail_count)
        return true;
    return a->budget != 0 && a->bytes + size > a->budget;
}

static void *alloc_block(void *opaque, size_t size)
{
    struct test_alloc *a = opaque;
    struct alloc_block *block = NULL;
    void *ptr = NULL;

    pthread_mutex_lock(&a->lock);
    if (size == 0 || is_refused(a, size)) {
        a->failed++;
    } else if ((block = malloc(sizeof(*block) + size)) != NULL) {
        struct alloc_block **bucket;

        ptr = block + 1;
        bucket = bucket_of(a, ptr);
        block->size = size;
        block->next = *bucket;
        *bucket = block;
        a->bytes += size;
        a->blocks++;
        if (a->bytes > a->bytes_peak)
            a->bytes_peak = a->bytes;
    }
    pthread_mutex_unlock(&a->lock);
    return ptr;
}

/* Takes the block out of its bucket; NULL if it is not alive. */
static struct alloc_block *forget(struct test_alloc *a, void *ptr)
{
    struct alloc_block **link = bucket_of(a, ptr);
    struct alloc_block *block;

    while (*link != NULL && (void *)(*link + 1) != ptr)
        link = &(*link)->next;
    block = *link;
    if (block != NULL) {
        *link = block->next;
        a->bytes -= block->size;
        a->blocks--;
    }
    return block;
}

static void free_block(void *opaque, void *ptr)
{
    struct test_alloc *a = opaque;
    struct alloc_block *block;

    pthread_mutex_lock(&a->lock);
    block = forget(a, ptr);
    if (block == NULL)
        a->bad_frees++;
    pthread_mutex_unlock(&a->lock);
    if (block == NULL)
        return;
    memset(ptr, POISON,
           block->size < POISON_BYTES ? block->size : POISON_BYTES);
    free(block);
}

void alloc_init(struct test_alloc *a)
{
    memset(a, 0, sizeof(*a));
    pthread_mutex_init(&a->lock, NULL);
    a->api.alloc = alloc_block;
    a->api.free = free_block;
    a->api.opaque = a;
}

void alloc_fail(struct test_alloc *a, uint64_t first, uint64_t count)
{
    pthread_mutex_lock(&a->lock);
    a->calls = 0;
    a->fail_first = first;
    a->fail_count = count;
    pthread_mutex_unlock(&a->lock);
}

void alloc_heal(struct test_alloc *a)
{
    alloc_fail(a, 0, 0);
}

uint64_t alloc_failed(struct test_alloc *a)
{
    uint64_t failed;

    pthread_mutex_lock(&a->lock);
    failed = a->failed;
    pthread_mutex_unlock(&a->lock);
    return failed;
}

size_t alloc_bytes(struct test_alloc *a)
{
    size_t bytes;

    pthread_mutex_lock(&a->lock);
    bytes = a->bytes;
    pthread_mutex_unlock(&a->lock);
    return bytes;
}

static void drop_all(struct test_alloc *a)
{
    for (size_t i = 0; i < ALLOC_BUCKETS; i++) {
        while (a->buckets[i] != NULL) {
            struct alloc_block *block = a->buckets[i];

            a->buckets[i] = block->next;
            free(block);
        }
    }
}

const char *alloc_done(struct test_alloc *a)
{
    const char *fault = NULL;

    if (a->bad_frees != 0)
        fault = "a block was freed twice, or was never allocated";
    else if (a->blocks != 0)
        fault = "memory leaked";
    drop_all(a);
    pthread_mutex_destroy(&a->lock);
    return fault;
}
