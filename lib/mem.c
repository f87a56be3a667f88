/*
 * mem.c - allocation behind a byte budget, and encoder tables on huge pages.
 */
#if !defined(_DEFAULT_SOURCE)
#  define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise() */
#endif

#include "mem.h"

#include <stdlib.h>

#if defined(__linux__)
#  include <sys/mman.h>
#endif

/* Size of a huge page on the systems that matter (x86-64, arm64 with 4 KiB
 * pages). */
#define HUGE_PAGE_BYTES (2 * MIB)

/* Tables from this size on are put on huge pages. It is also the most that the
 * last of them may be larger than what it holds. */
#define HUGE_TABLE_BYTES_MIN (1 * MIB)

/*
 * malloc() keeps what was freed below a threshold that glibc raises up to 32 MiB,
 * in an arena for each thread: with a budget of 24 MiB that was used up a process
 * had 30 to 56 MiB. Blocks from this size on are mapped, unless the host has an
 * allocator of its own, so that memory given back is given back to the system.
 * The address sanitizer watches malloc() only.
 */
#define MAPPED_BYTES_MIN (256 * KIB)

#if !defined(__linux__) || defined(__SANITIZE_ADDRESS__)
#  define MAPS_BLOCKS false
#elif defined(__has_feature)
#  if __has_feature(address_sanitizer)
#    define MAPS_BLOCKS false
#  endif
#endif
#if !defined(MAPS_BLOCKS)
#  define MAPS_BLOCKS true
#endif

/* In front of every block of tables. 64 bytes keep the tables on a cache line
 * of their own. */
#define TABLE_HEADER_BYTES 64

struct table_header {
    size_t bytes; /* all of it, header included */
    bool mapped;
};

static_assert(sizeof(struct table_header) <= TABLE_HEADER_BYTES,
              "the header fits in front of the tables");

static void *host_alloc(void *opaque, size_t size)
{
    (void)opaque;
    return malloc(size);
}

static void host_free(void *opaque, void *ptr)
{
    (void)opaque;
    free(ptr);
}

void segzstd__mem_init(struct segzstd__mem *mem, const segzstd_allocator *host,
                       uint64_t budget, bool huge_pages)
{
    if (host != NULL)
        mem->host = *host;
    else
        mem->host = (segzstd_allocator){host_alloc, host_free, NULL};
    mem->budget = budget;
    mem->huge_pages = huge_pages;
    mem->maps = MAPS_BLOCKS && host == NULL;
    atomic_init(&mem->used, 0);
    atomic_init(&mem->used_peak, 0);
    atomic_init(&mem->table_used, 0);
}

static void raise_peak(struct segzstd__mem *mem, uint64_t used)
{
    uint64_t peak = atomic_load_explicit(&mem->used_peak, memory_order_relaxed);

    while (used > peak && !atomic_compare_exchange_weak_explicit(
                              &mem->used_peak, &peak, used,
                              memory_order_relaxed, memory_order_relaxed))
        ;
}

/* Takes `size` from the budget. Returns what is used then, or 0 if the budget is
 * exceeded, and nothing is taken. */
static uint64_t reserve(struct segzstd__mem *mem, size_t size)
{
    uint64_t used = atomic_load_explicit(&mem->used, memory_order_relaxed);

    do {
        if (mem->budget != 0 &&
            (used > mem->budget || size > mem->budget - used))
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(
        &mem->used, &used, used + size, memory_order_relaxed,
        memory_order_relaxed));
    return used + size;
}

bool segzstd__mem_charge(struct segzstd__mem *mem, size_t size)
{
    uint64_t used = reserve(mem, size);

    raise_peak(mem, used);
    return used != 0 || size == 0;
}

void segzstd__mem_uncharge(struct segzstd__mem *mem, size_t size)
{
    atomic_fetch_sub_explicit(&mem->used, size, memory_order_relaxed);
}

bool segzstd__mem_charge_tables(struct segzstd__mem *mem, size_t size)
{
    if (!segzstd__mem_charge(mem, size))
        return false;
    atomic_fetch_add_explicit(&mem->table_used, size, memory_order_relaxed);
    return true;
}

void segzstd__mem_uncharge_tables(struct segzstd__mem *mem, size_t size)
{
    atomic_fetch_sub_explicit(&mem->table_used, size, memory_order_relaxed);
    segzstd__mem_uncharge(mem, size);
}

#if defined(__linux__)

/* NULL if the system refuses. */
static void *map_pages(size_t bytes)
{
    void *ptr = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return ptr == MAP_FAILED ? NULL : ptr;
}

static void unmap_pages(void *ptr, size_t bytes)
{
    munmap(ptr, bytes);
}

#else

static void *map_pages(size_t bytes)
{
    (void)bytes;
    return NULL;
}

static void unmap_pages(void *ptr, size_t bytes)
{
    (void)ptr;
    (void)bytes;
}

#endif

#if defined(__linux__) && defined(MADV_HUGEPAGE)

/*
 * Maps `bytes` at an address that huge pages can back. The mapping is made one
 * page too long and cut to the aligned part. NULL if the system refuses.
 */
static void *map_huge(size_t bytes)
{
    size_t mapped = bytes + HUGE_PAGE_BYTES;
    uint8_t *raw;
    size_t before;

    if (mapped < bytes)
        return NULL;
    raw = map_pages(mapped);
    if (raw == NULL)
        return NULL;
    before = (HUGE_PAGE_BYTES - ((uintptr_t)raw & (HUGE_PAGE_BYTES - 1))) &
             (HUGE_PAGE_BYTES - 1);
    if (before != 0)
        munmap(raw, before);
    if (before != HUGE_PAGE_BYTES)
        munmap(raw + before + bytes, HUGE_PAGE_BYTES - before);
    if (madvise(raw + before, bytes, MADV_HUGEPAGE) != 0) {
        munmap(raw + before, bytes);
        return NULL;
    }
    return raw + before;
}

#else

static void *map_huge(size_t bytes)
{
    (void)bytes;
    return NULL;
}

#endif

static bool is_mapped(const struct segzstd__mem *mem, size_t size)
{
    return mem->maps && size >= MAPPED_BYTES_MIN;
}

void *segzstd__mem_alloc(struct segzstd__mem *mem, size_t size)
{
    uint64_t used = reserve(mem, size);
    void *ptr;

    assert(size != 0);
    if (used == 0)
        return NULL;
    ptr = is_mapped(mem, size) ? map_pages(size)
                               : mem->host.alloc(mem->host.opaque, size);
    if (ptr == NULL)
        segzstd__mem_uncharge(mem, size);
    else
        raise_peak(mem, used);
    return ptr;
}

void segzstd__mem_free(struct segzstd__mem *mem, void *ptr, size_t size)
{
    if (ptr == NULL)
        return;
    if (is_mapped(mem, size))
        unmap_pages(ptr, size);
    else
        mem->host.free(mem->host.opaque, ptr);
    segzstd__mem_uncharge(mem, size);
}

/* The last page is a huge one if it is half used, else it is small ones, whose
 * size 64 KiB is a multiple of anywhere. */
static size_t round_to_pages(size_t bytes)
{
    size_t unit = bytes % HUGE_PAGE_BYTES >= HUGE_TABLE_BYTES_MIN
                      ? HUGE_PAGE_BYTES
                      : 64 * KIB;

    return (bytes + unit - 1) & ~(unit - 1);
}

static void *alloc_mapped(struct segzstd__mem *mem, size_t bytes)
{
    uint64_t used = reserve(mem, bytes);
    void *ptr;

    if (used == 0)
        return NULL;
    ptr = map_huge(bytes);
    if (ptr == NULL)
        segzstd__mem_uncharge(mem, bytes);
    else
        raise_peak(mem, used);
    return ptr;
}

void *segzstd__mem_alloc_tables(void *opaque, size_t size)
{
    struct segzstd__mem *mem = opaque;
    struct table_header header = {size + TABLE_HEADER_BYTES, false};
    uint8_t *ptr = NULL;

    if (size > SIZE_MAX - HUGE_PAGE_BYTES)
        return NULL;
    if (mem->huge_pages && header.bytes >= HUGE_TABLE_BYTES_MIN) {
        ptr = alloc_mapped(mem, round_to_pages(header.bytes));
        if (ptr != NULL) {
            header.bytes = round_to_pages(header.bytes);
            header.mapped = true;
        }
    }
    if (ptr == NULL)
        ptr = segzstd__mem_alloc(mem, header.bytes);
    if (ptr == NULL)
        return NULL;
    memcpy(ptr, &header, sizeof(header));
    atomic_fetch_add_explicit(&mem->table_used, header.bytes,
                              memory_order_relaxed);
    return ptr + TABLE_HEADER_BYTES;
}

void segzstd__mem_free_tables(void *opaque, void *ptr)
{
    struct segzstd__mem *mem = opaque;
    struct table_header header;
    uint8_t *start;

    if (ptr == NULL)
        return;
    start = (uint8_t *)ptr - TABLE_HEADER_BYTES;
    memcpy(&header, start, sizeof(header));
    atomic_fetch_sub_explicit(&mem->table_used, header.bytes,
                              memory_order_relaxed);
    if (header.mapped) {
        unmap_pages(start, header.bytes);
        segzstd__mem_uncharge(mem, header.bytes);
    } else {
        segzstd__mem_free(mem, start, header.bytes);
    }
}
