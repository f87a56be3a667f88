/*
 * pool.c - idle memory blocks by size class.
 */
#include "pool.h"

/* Class 2i holds blocks of 2^(12+i) bytes, class 2i+1 half as much more. */
static size_t class_bytes(unsigned index)
{
    size_t base = (size_t)1 << (POOL_MIN_LOG + index / 2);

    return index % 2 == 0 ? base : base + base / 2;
}

/* The smallest class that has `bytes`; POOL_CLASSES if none has. */
static unsigned class_of(size_t bytes)
{
    unsigned index;

    if (bytes <= class_bytes(0))
        return 0;
    if (bytes > class_bytes(POOL_CLASSES - 1))
        return POOL_CLASSES;
    index = 2 * (highest_bit(bytes - 1) - POOL_MIN_LOG);
    return bytes <= class_bytes(index + 1) ? index + 1 : index + 2;
}

void segzstd__pool_init(struct segzstd__pool *pool)
{
    for (unsigned i = 0; i < POOL_CLASSES; i++)
        list_init(&pool->classes[i]);
    list_init(&pool->age);
    pool->bytes = 0;
}

size_t segzstd__pool_round(size_t bytes)
{
    unsigned index = class_of(bytes);

    return index < POOL_CLASSES ? class_bytes(index) : bytes;
}

bool segzstd__pool_holds(size_t bytes)
{
    return class_of(bytes) < POOL_CLASSES;
}

void *segzstd__pool_take(struct segzstd__pool *pool, size_t bytes)
{
    unsigned index = class_of(bytes);
    struct segzstd__idle_block *block;

    if (index == POOL_CLASSES || list_is_empty(&pool->classes[index]))
        return NULL;
    block = LINK_OWNER(pool->classes[index].next, struct segzstd__idle_block,
                       in_class);
    segzstd__pool_remove(pool, block);
    return block;
}

void segzstd__pool_put(struct segzstd__pool *pool, void *mem, size_t bytes,
                       uint64_t stamp_ns)
{
    struct segzstd__idle_block *block = mem;

    assert(segzstd__pool_holds(bytes) && segzstd__pool_round(bytes) == bytes);
    block->bytes = bytes;
    block->stamp_ns = stamp_ns;
    list_insert_after(&pool->classes[class_of(bytes)], &block->in_class);
    list_append(&pool->age, &block->in_age);
    pool->bytes += bytes;
}

struct segzstd__idle_block *segzstd__pool_oldest(
    const struct segzstd__pool *pool)
{
    if (list_is_empty(&pool->age))
        return NULL;
    return LINK_OWNER(pool->age.next, struct segzstd__idle_block, in_age);
}

void segzstd__pool_remove(struct segzstd__pool *pool,
                          struct segzstd__idle_block *block)
{
    list_remove(&block->in_class);
    list_remove(&block->in_age);
    pool->bytes -= block->bytes;
}
