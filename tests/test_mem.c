/*
 * mem.c is compiled into this test, so that the system can refuse huge pages,
 * and so that mappings can be counted.
 */
#define _DEFAULT_SOURCE

#include <pthread.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

/* What is mapped: one range at a time, which loses bytes at its ends only. */
static char *mapped_at;
static size_t mapped_bytes;
static bool bad_munmap;
static bool refuse_mmap, refuse_madvise;

static void *count_mmap(void *at, size_t bytes, int prot, int flags, int fd,
                        off_t offset)
{
    void *ptr =
        refuse_mmap ? MAP_FAILED : mmap(at, bytes, prot, flags, fd, offset);

    if (ptr != MAP_FAILED) {
        mapped_at = ptr;
        mapped_bytes = bytes;
    }
    return ptr;
}

static int count_munmap(void *ptr, size_t bytes)
{
    if (bytes > mapped_bytes ||
        (ptr != mapped_at && (char *)ptr + bytes != mapped_at + mapped_bytes)) {
        bad_munmap = true;
        return -1;
    }
    if (ptr == mapped_at)
        mapped_at += bytes;
    mapped_bytes -= bytes;
    return munmap(ptr, bytes);
}

static int count_madvise(void *ptr, size_t bytes, int advice)
{
    /* where the system knows no huge pages, the library's path is the same */
    madvise(ptr, bytes, advice);
    return refuse_madvise ? -1 : 0;
}

#define mmap count_mmap
#define munmap count_munmap
#define madvise count_madvise
#include "mem.c"
#undef mmap
#undef munmap
#undef madvise

#include "support/data.h"
#include "support/expect.h"

/* ---- the budget ---- */

static void test_charge__beyond_the_budget__counts_nothing(void **state)
{
    struct segzstd__mem mem;

    (void)state;
    segzstd__mem_init(&mem, NULL, 1000, false);
    assert_true(segzstd__mem_charge(&mem, 600));
    assert_false(segzstd__mem_charge(&mem, 401));
    assert_int_equal(mem.used, 600);
    assert_true(segzstd__mem_charge(&mem, 400));
    assert_int_equal(mem.used, 1000);
    assert_false(segzstd__mem_charge(&mem, 1));
    segzstd__mem_uncharge(&mem, 1000);
    assert_int_equal(mem.used, 0);
    assert_int_equal(mem.used_peak, 1000);
}

static void test_charge__no_budget__all_is_allowed(void **state)
{
    struct segzstd__mem mem;

    (void)state;
    segzstd__mem_init(&mem, NULL, 0, false);
    assert_true(segzstd__mem_charge(&mem, SIZE_MAX / 2));
    assert_true(segzstd__mem_charge(&mem, SIZE_MAX / 2));
    assert_int_equal(mem.used, SIZE_MAX - 1);
    assert_int_equal(mem.used_peak, SIZE_MAX - 1);
}

static void test_charge_tables__counted_or_refused__in_both_counts(void **state)
{
    struct segzstd__mem mem;

    (void)state;
    segzstd__mem_init(&mem, NULL, 1000, false);
    assert_true(segzstd__mem_charge(&mem, 100));
    assert_true(segzstd__mem_charge_tables(&mem, 300));
    assert_false(segzstd__mem_charge_tables(&mem, 601));
    assert_int_equal(mem.used, 400);
    assert_int_equal(mem.table_used, 300);
    segzstd__mem_uncharge_tables(&mem, 300);
    assert_int_equal(mem.used, 100);
    assert_int_equal(mem.table_used, 0);
}

/* ---- blocks ---- */

static void test_alloc__malloc__is_counted_until_freed(void **state)
{
    struct segzstd__mem mem;
    void *ptr;

    (void)state;
    segzstd__mem_init(&mem, NULL, 1000, false);
    ptr = segzstd__mem_alloc(&mem, 1000);
    assert_non_null(ptr);
    memset(ptr, 1, 1000);
    assert_int_equal(mem.used, 1000);
    assert_null(segzstd__mem_alloc(&mem, 1));
    segzstd__mem_free(&mem, ptr, 1000);
    assert_int_equal(mem.used, 0);
    segzstd__mem_free(&mem, NULL, 12345);
    assert_int_equal(mem.used, 0);
}

static void test_alloc__over_budget__does_not_ask_the_host(void **state)
{
    static struct test_alloc host;
    struct segzstd__mem mem;
    void *ptr;

    (void)state;
    alloc_init(&host);
    segzstd__mem_init(&mem, &host.api, 100, false);
    assert_null(segzstd__mem_alloc(&mem, 101));
    assert_int_equal(host.calls, 0);
    ptr = segzstd__mem_alloc(&mem, 100);
    assert_non_null(ptr);
    assert_int_equal(host.bytes, 100);
    segzstd__mem_free(&mem, ptr, 100);
    expect_no_fault(alloc_done(&host));
}

static void test_alloc__host_refuses__nothing_is_counted(void **state)
{
    static struct test_alloc host;
    struct segzstd__mem mem;

    (void)state;
    alloc_init(&host);
    segzstd__mem_init(&mem, &host.api, 0, false);
    alloc_fail(&host, 0, ALLOC_FOR_EVER);
    assert_null(segzstd__mem_alloc(&mem, 100));
    assert_null(segzstd__mem_alloc_tables(&mem, 100));
    assert_int_equal(mem.used, 0);
    assert_int_equal(mem.table_used, 0);
    expect_no_fault(alloc_done(&host));
}

/* ---- tables ---- */

enum { ASKED_HUGE = 5 * 1000 * 1000 };

/* Every byte can be written and is kept. */
static void expect_usable(unsigned char *ptr, size_t size)
{
    assert_int_equal((uintptr_t)ptr % alignof(max_align_t), 0);
    for (size_t i = 0; i < size; i += 1021)
        ptr[i] = (unsigned char)(i >> 4);
    ptr[size - 1] = 77;
    for (size_t i = 0; i + 1 < size; i += 1021)
        assert_int_equal(ptr[i], (unsigned char)(i >> 4));
    assert_int_equal(ptr[size - 1], 77);
}

static void expect_tables(struct segzstd__mem *mem, size_t size, bool mapped)
{
    struct test_alloc *host = mem->host.opaque;
    size_t least = size + TABLE_HEADER_BYTES;
    void *ptr = segzstd__mem_alloc_tables(mem, size);

    assert_non_null(ptr);
    assert_int_equal(mem->used, mem->table_used);
    if (mapped) {
        assert_int_equal(host->bytes, 0);
        assert_int_equal(mem->used, mapped_bytes);
        assert_ptr_equal((char *)ptr - TABLE_HEADER_BYTES, mapped_at);
        assert_true(mem->used >= least);
        assert_true(mem->used - least <= HUGE_TABLE_BYTES_MIN);
        assert_int_equal(((uintptr_t)ptr - TABLE_HEADER_BYTES) % (2 * MIB), 0);
    } else {
        assert_int_equal(mapped_bytes, 0);
        assert_int_equal(host->bytes, least);
        assert_int_equal(mem->used, least);
    }
    assert_true(mem->used_peak >= mem->used);
    expect_usable(ptr, size);
    segzstd__mem_free_tables(mem, ptr);
    assert_int_equal(mem->used, 0);
    assert_int_equal(mem->table_used, 0);
    assert_int_equal(mapped_bytes, 0);
    assert_false(bad_munmap);
    assert_int_equal(host->bytes, 0);
}

static void test_tables__size_and_option__decide_where_they_lie(void **state)
{
    static struct test_alloc host;
    struct segzstd__mem mem;

    (void)state;
    alloc_init(&host);
    segzstd__mem_init(&mem, &host.api, 0, true);
    expect_tables(&mem, 1, false);
    expect_tables(&mem, 1000, false);
    expect_tables(&mem, HUGE_TABLE_BYTES_MIN - TABLE_HEADER_BYTES - 1, false);
    expect_tables(&mem, HUGE_TABLE_BYTES_MIN - TABLE_HEADER_BYTES, true);
    for (size_t size = 2 * MIB; size <= 6 * MIB; size += 500 * 1000)
        expect_tables(&mem, size, true);
    expect_tables(&mem, ASKED_HUGE, true);
    segzstd__mem_init(&mem, &host.api, 0, false);
    expect_tables(&mem, ASKED_HUGE, false);
    segzstd__mem_free_tables(&mem, NULL);
    expect_no_fault(alloc_done(&host));
}

static void test_tables__system_refuses_pages__come_from_the_host(void **state)
{
    static struct test_alloc host;
    struct segzstd__mem mem;

    (void)state;
    alloc_init(&host);
    segzstd__mem_init(&mem, &host.api, 0, true);
    refuse_mmap = true;
    expect_tables(&mem, ASKED_HUGE, false);
    refuse_mmap = false;
    refuse_madvise = true;
    expect_tables(&mem, ASKED_HUGE, false);
    refuse_madvise = false;
    expect_no_fault(alloc_done(&host));
}

/* The mapping is rounded up to whole pages, which may be what is too much. */
static void test_tables__budget_below_whole_pages__come_from_the_host(
    void **state)
{
    static struct test_alloc host;
    struct segzstd__mem mem;

    (void)state;
    alloc_init(&host);
    segzstd__mem_init(&mem, &host.api, ASKED_HUGE + TABLE_HEADER_BYTES, true);
    expect_tables(&mem, ASKED_HUGE, false);
    segzstd__mem_init(&mem, &host.api, ASKED_HUGE, true);
    assert_null(segzstd__mem_alloc_tables(&mem, ASKED_HUGE));
    assert_int_equal(mem.used, 0);
    assert_int_equal(mem.table_used, 0);
    assert_int_equal(mapped_bytes, 0);
    expect_no_fault(alloc_done(&host));
}

/* Sizes whose sum with the header or the page rounding wraps around. */
static void test_tables__size_near_the_end_of_size_t__is_refused(void **state)
{
    static struct test_alloc host;
    struct segzstd__mem mem;

    (void)state;
    alloc_init(&host);
    segzstd__mem_init(&mem, &host.api, 0, true);
    alloc_fail(&host, 0, ALLOC_FOR_EVER);
    assert_null(segzstd__mem_alloc_tables(&mem, SIZE_MAX));
    assert_null(segzstd__mem_alloc_tables(&mem, SIZE_MAX - 2 * MIB + 1));
    assert_int_equal(host.calls, 0);
    assert_null(segzstd__mem_alloc_tables(&mem, SIZE_MAX - 2 * MIB));
    assert_null(map_huge(SIZE_MAX - 64 * KIB + 1));
    assert_int_equal(mem.used, 0);
    assert_int_equal(mapped_bytes, 0);
    expect_no_fault(alloc_done(&host));
}

/* ---- large blocks ---- */

static void expect_block(struct segzstd__mem *mem, size_t size, bool mapped)
{
    void *ptr = segzstd__mem_alloc(mem, size);

    assert_non_null(ptr);
    assert_int_equal(mem->used, size);
    assert_int_equal(mapped_bytes, mapped ? size : 0);
    if (mapped)
        assert_ptr_equal(ptr, mapped_at);
    expect_usable(ptr, size);
    segzstd__mem_free(mem, ptr, size);
    assert_int_equal(mem->used, 0);
    assert_int_equal(mapped_bytes, 0);
    assert_false(bad_munmap);
}

/* malloc() would keep much of what is given back. */
static void test_block__size_and_allocator__decide_where_it_lies(void **state)
{
    static struct test_alloc host;
    struct segzstd__mem mem;

    (void)state;
    segzstd__mem_init(&mem, NULL, 0, false);
    expect_block(&mem, MAPPED_BYTES_MIN - 1, false);
    expect_block(&mem, MAPPED_BYTES_MIN, MAPS_BLOCKS);
    expect_block(&mem, 3 * MIB + 1, MAPS_BLOCKS);
    alloc_init(&host);
    segzstd__mem_init(&mem, &host.api, 0, false);
    expect_block(&mem, 3 * MIB, false);
    expect_no_fault(alloc_done(&host));
}

static void test_block__system_refuses_pages__is_refused(void **state)
{
    struct segzstd__mem mem;

    (void)state;
    segzstd__mem_init(&mem, NULL, 0, false);
    mem.maps = true;
    refuse_mmap = true;
    assert_null(segzstd__mem_alloc(&mem, MAPPED_BYTES_MIN));
    refuse_mmap = false;
    assert_int_equal(mem.used, 0);
    assert_int_equal(mem.used_peak, 0);
}

/* ---- the peak ---- */

/* bytes_peak is "the most that ever was": memory that was asked for and
 * refused by the host never was. */
static void test_peak__host_refuses__is_not_raised(void **state)
{
    static struct test_alloc host;
    struct segzstd__mem mem;

    (void)state;
    alloc_init(&host);
    segzstd__mem_init(&mem, &host.api, 0, true);
    alloc_fail(&host, 0, ALLOC_FOR_EVER);
    refuse_mmap = true;
    assert_null(segzstd__mem_alloc(&mem, 1 * MIB));
    assert_null(segzstd__mem_alloc_tables(&mem, ASKED_HUGE));
    refuse_mmap = false;
    assert_int_equal(mem.used_peak, 0);
    expect_no_fault(alloc_done(&host));
}

/* ---- threads ---- */

enum { THREADS = 8, ROUNDS = 10000, BUDGET = 10000 };

struct charger {
    struct segzstd__mem *mem;
    uint64_t seed;
    pthread_t thread;
    bool over; /* the budget was seen exceeded */
    _Atomic bool stop;
};

static void *charge_often(void *arg)
{
    struct charger *c = arg;
    struct rng rng = rng_seed(c->seed);

    for (size_t i = 0; i < ROUNDS; i++) {
        size_t size = 1 + rng_below(&rng, BUDGET / 4);
        void *ptr = segzstd__mem_alloc(c->mem, size);
        void *tables = segzstd__mem_alloc_tables(c->mem, size);

        c->over = c->over || c->mem->used_peak > BUDGET;
        segzstd__mem_free(c->mem, ptr, size);
        segzstd__mem_free_tables(c->mem, tables);
    }
    return NULL;
}

static void test_mem__many_threads__budget_holds_and_nothing_stays(void **state)
{
    struct charger chargers[THREADS];
    struct segzstd__mem mem;

    (void)state;
    segzstd__mem_init(&mem, NULL, BUDGET, false);
    for (size_t i = 0; i < THREADS; i++) {
        struct charger *c = &chargers[i];

        *c = (struct charger){.mem = &mem, .seed = i};
        assert_int_equal(pthread_create(&c->thread, NULL, charge_often, c), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(chargers[i].thread, NULL);
        assert_false(chargers[i].over);
    }
    assert_int_equal(mem.used, 0);
    assert_int_equal(mem.table_used, 0);
    assert_true(mem.used_peak > BUDGET / 4 && mem.used_peak <= BUDGET);
}

static void *charge_too_much(void *arg)
{
    struct charger *c = arg;

    while (!atomic_load(&c->stop))
        if (segzstd__mem_charge(c->mem, BUDGET + 1))
            c->over = true;
    return NULL;
}

/* What is refused is not counted for a moment, which could be when somebody else
 * asks for what there is. */
static void test_mem__others_ask_for_too_much__what_fits_is_given(void **state)
{
    struct segzstd__mem mem;
    struct charger other = {.mem = &mem};
    unsigned refused = 0;

    (void)state;
    segzstd__mem_init(&mem, NULL, BUDGET, false);
    assert_int_equal(
        pthread_create(&other.thread, NULL, charge_too_much, &other), 0);
    for (size_t i = 0; i < 100 * ROUNDS; i++) {
        if (segzstd__mem_charge(&mem, BUDGET))
            segzstd__mem_uncharge(&mem, BUDGET);
        else
            refused++;
    }
    atomic_store(&other.stop, true);
    pthread_join(other.thread, NULL);
    assert_false(other.over);
    assert_int_equal(refused, 0);
    assert_int_equal(mem.used_peak, BUDGET);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_charge__beyond_the_budget__counts_nothing),
        cmocka_unit_test(test_charge__no_budget__all_is_allowed),
        cmocka_unit_test(
            test_charge_tables__counted_or_refused__in_both_counts),
        cmocka_unit_test(test_alloc__malloc__is_counted_until_freed),
        cmocka_unit_test(test_alloc__over_budget__does_not_ask_the_host),
        cmocka_unit_test(test_alloc__host_refuses__nothing_is_counted),
        cmocka_unit_test(test_tables__size_and_option__decide_where_they_lie),
        cmocka_unit_test(test_tables__system_refuses_pages__come_from_the_host),
        cmocka_unit_test(
            test_tables__budget_below_whole_pages__come_from_the_host),
        cmocka_unit_test(test_tables__size_near_the_end_of_size_t__is_refused),
        cmocka_unit_test(test_block__size_and_allocator__decide_where_it_lies),
        cmocka_unit_test(test_block__system_refuses_pages__is_refused),
        cmocka_unit_test(test_peak__host_refuses__is_not_raised),
        cmocka_unit_test(
            test_mem__many_threads__budget_holds_and_nothing_stays),
        cmocka_unit_test(test_mem__others_ask_for_too_much__what_fits_is_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
