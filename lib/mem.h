/*
 * mem.h - the one way to memory: the host's allocator behind a byte budget.
 */
#ifndef SEGZSTD_MEM_H
#define SEGZSTD_MEM_H

#include "common.h"

struct segzstd__mem {
    segzstd_allocator host;
    uint64_t budget;             /* 0: none */
    bool huge_pages;             /* see segzstd__mem_alloc_tables() */
    bool maps;                   /* large blocks are mapped, not allocated */
    _Atomic uint64_t used;       /* all threads, see segzstd__mem_charge() */
    _Atomic uint64_t used_peak;  /* all threads */
    _Atomic uint64_t table_used; /* of `used`, what encoders hold */
};

/* `host` may be NULL for malloc() and free(). */
void segzstd__mem_init(struct segzstd__mem *mem, const segzstd_allocator *host,
                       uint64_t budget, bool huge_pages);

/* Any thread. NULL if the budget or the host says no. size is not 0. */
void *segzstd__mem_alloc(struct segzstd__mem *mem, size_t size);

/* `size` is what was asked for. NULL is allowed. Any thread. */
void segzstd__mem_free(struct segzstd__mem *mem, void *ptr, size_t size);

/* Counts memory that somebody else allocates. False, and nothing counted, if
 * that is beyond the budget. */
bool segzstd__mem_charge(struct segzstd__mem *mem, size_t size);
void segzstd__mem_uncharge(struct segzstd__mem *mem, size_t size);

/* The same for encoder tables. */
bool segzstd__mem_charge_tables(struct segzstd__mem *mem, size_t size);
void segzstd__mem_uncharge_tables(struct segzstd__mem *mem, size_t size);

/*
 * For encoder tables, with libzstd's signature for custom allocation: `opaque`
 * is the segzstd__mem. The size is kept in front of the block, since libzstd
 * does not give it back.
 */
void *segzstd__mem_alloc_tables(void *opaque, size_t size);
void segzstd__mem_free_tables(void *opaque, void *ptr);

#endif /* SEGZSTD_MEM_H */
