#include "segment.h"

#include <stdlib.h>

#include "support/data.h"
#include "support/expect.h"

struct fixture {
    struct test_alloc alloc;
    struct segzstd_cache *cache;
    uint64_t used; /* by the cache alone */
    struct segzstd__link list;
    unsigned released;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return -1;
    alloc_init(&f->alloc);
    f->cache = expect_cache(1, &f->alloc);
    f->used = f->cache->mem.used;
    list_init(&f->list);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    const char *fault;

    alloc_heal(&f->alloc);
    while (!list_is_empty(&f->list))
        segzstd__segment_free(segzstd__segment_of(f->list.next), f->cache);
    segzstd_cache_free(f->cache);
    fault = alloc_done(&f->alloc);
    if (fault != NULL)
        print_error("%s\n", fault);
    free(f);
    return fault == NULL ? 0 : -1;
}

/* A segment in the list, which teardown frees. */
static struct segzstd__segment *add_segment(struct fixture *f, uint64_t pos)
{
    struct segzstd__segment *segment =
        segzstd__segment_new(f->cache, pos, 1000);

    assert_non_null(segment);
    list_append(&f->list, &segment->link);
    return segment;
}

static void release(void *arg)
{
    ++*(unsigned *)arg;
}

static struct segzstd__extent *lend(struct fixture *f, uint64_t pos)
{
    static unsigned char bytes[5000];
    void *block =
        segzstd__cache_alloc(f->cache, sizeof(struct segzstd__extent));

    assert_non_null(block);
    return segzstd__extent_init_borrowed(block, sizeof(struct segzstd__extent),
                                         pos, bytes, sizeof(bytes), release,
                                         &f->released);
}

static struct segzstd__reader *lend_reader(struct fixture *f)
{
    struct segzstd__reader *reader =
        segzstd__cache_alloc(f->cache, sizeof(*reader));

    assert_non_null(reader);
    *reader = (struct segzstd__reader){1, 0, NULL, release, &f->released};
    return reader;
}

/* ---- segments ---- */

static void test_new__at_a_position__is_empty(void **state)
{
    struct fixture *f = *state;
    struct segzstd__segment *segment = add_segment(f, 77);

    assert_int_equal(segment->start, 77);
    assert_int_equal(segment->end, 77);
    assert_int_equal(segment->fed, 77);
    assert_int_equal(segment->taken, 77);
    assert_int_equal(segment->overlap, 1000);
    assert_false(segment->open);
    assert_false(segment->job_out);
    assert_null(segment->extent);
    assert_null(segment->reader);
    assert_null(segment->claim.slot);
    assert_int_equal(segment->out.len, 0);
    assert_int_equal(segzstd__segment_waiting(segment), 0);
    assert_true(segzstd__segment_is_finished(segment));
    segzstd__segment_move(segment, 99);
    assert_int_equal(segment->start, 99);
    assert_int_equal(segment->end, 99);
    assert_int_equal(segment->fed, 99);
    assert_int_equal(segment->taken, 99);
}

static void test_new__no_memory__is_null(void **state)
{
    struct fixture *f = *state;

    alloc_fail(&f->alloc, 0, ALLOC_FOR_EVER);
    assert_null(segzstd__segment_new(f->cache, 0, 0));
    assert_null(segzstd__extent_new(f->cache, 0, 0, 1));
}

static void test_of__link__is_its_segment(void **state)
{
    struct fixture *f = *state;
    struct segzstd__segment *segment = add_segment(f, 0);

    assert_ptr_equal(segzstd__segment_of(&segment->link), segment);
}

static void test_is_finished__open_out_or_unfed__is_not(void **state)
{
    struct fixture *f = *state;
    struct segzstd__segment *segment = add_segment(f, 10);

    segment->end = 20;
    assert_false(segzstd__segment_is_finished(segment));
    assert_int_equal(segzstd__segment_waiting(segment), 10);
    segment->taken = 15;
    assert_int_equal(segzstd__segment_waiting(segment), 5);
    segment->taken = segment->fed = 20;
    assert_true(segzstd__segment_is_finished(segment));
    segment->open = true;
    assert_false(segzstd__segment_is_finished(segment));
    segment->open = false;
    segment->job_out = true;
    assert_false(segzstd__segment_is_finished(segment));
    segment->job_out = false;
}

static void test_prefix__near_the_extents_start__is_what_there_is(void **state)
{
    struct fixture *f = *state;
    struct segzstd__segment *segment = add_segment(f, 5300);

    segment->extent = lend(f, 5000);
    assert_int_equal(segzstd__segment_prefix(segment, 5000), 0);
    assert_int_equal(segzstd__segment_prefix(segment, 5300), 300);
    assert_int_equal(segzstd__segment_prefix(segment, 6000), 1000);
    assert_int_equal(segzstd__segment_prefix(segment, 9000), 1000);
}

/* Everything that a segment may have when it is freed. */
static void test_free__with_all_it_can_hold__gives_all_back(void **state)
{
    struct fixture *f = *state;
    struct segzstd__segment *segment = add_segment(f, 0);
    const struct segzstd__key key = {1, 17, 10};
    bool resumed;
    struct segzstd__slot *slot =
        segzstd__cache_acquire(f->cache, &key, &segment->claim, &resumed);

    segment->claim = segzstd__cache_hold(f->cache, slot);
    assert_int_equal(
        segzstd__job_ensure_room(f->cache, &segment->out, 100, 100), 0);
    segment->extent = lend(f, 0);
    segment->reader = lend_reader(f);
    segzstd__segment_free(segment, f->cache);
    assert_true(list_is_empty(&f->list));
    assert_int_equal(f->released, 2);
    /* the encoder is idle rather than held, the chunk is in the pool */
    assert_int_equal(expect_cache_stats(f->cache).encoders_idle, 1);
    assert_int_equal(f->cache->pool.bytes, 4096);
    while (segzstd__cache_reclaim(f->cache))
        ;
    assert_int_equal(f->cache->mem.used, f->used);
}

/* One that was made for nothing. */
static void test_free__in_no_list__is_allowed(void **state)
{
    struct fixture *f = *state;
    struct segzstd__segment *segment = segzstd__segment_new(f->cache, 0, 1000);

    assert_non_null(segment);
    segzstd__segment_free(segment, f->cache);
    assert_int_equal(f->cache->mem.used, f->used);
}

static void test_drop_input__keeps_the_output(void **state)
{
    struct fixture *f = *state;
    struct segzstd__segment *segment = add_segment(f, 0);

    assert_int_equal(
        segzstd__job_ensure_room(f->cache, &segment->out, 100, 100), 0);
    segzstd__buf_produced(&segment->out, 3);
    segment->extent = lend(f, 0);
    segment->reader = lend_reader(f);
    segzstd__segment_drop_input(segment, f->cache);
    assert_int_equal(f->released, 2);
    assert_null(segment->extent);
    assert_null(segment->reader);
    assert_int_equal(segment->out.len, 3);
    segzstd__segment_drop_input(segment, f->cache);
    assert_int_equal(f->released, 2);
}

/* ---- splitting ---- */

static void test_split__copied_bytes__share_the_extent(void **state)
{
    struct fixture *f = *state;
    struct segzstd__segment *first = add_segment(f, 1000), *rest;
    struct segzstd__segment *third = add_segment(f, 5000);

    first->extent = lend(f, 0);
    first->end = 5000;
    first->fed = 1500;
    first->taken = 2000;
    first->open = true;
    rest = segzstd__segment_split(first, f->cache, 3000);
    assert_non_null(rest);
    assert_ptr_equal(first->link.next, &rest->link);
    assert_ptr_equal(rest->link.next, &third->link);
    assert_int_equal(first->start, 1000);
    assert_int_equal(first->end, 3000);
    assert_int_equal(first->fed, 1500);
    assert_int_equal(first->taken, 2000);
    assert_false(first->open);
    assert_int_equal(rest->start, 3000);
    assert_int_equal(rest->end, 5000);
    assert_int_equal(rest->fed, 3000);
    assert_int_equal(rest->taken, 3000);
    assert_int_equal(rest->overlap, first->overlap);
    assert_true(rest->open);
    assert_ptr_equal(rest->extent, first->extent);
    assert_int_equal(first->extent->refs, 2);
    segzstd__segment_free(first, f->cache);
    assert_int_equal(f->released, 0);
    segzstd__segment_free(rest, f->cache);
    assert_int_equal(f->released, 1);
}

/* The memory that the first part's jobs read into is not the second's. */
static void test_split__reader__shares_it_without_extent(void **state)
{
    struct fixture *f = *state;
    struct segzstd__segment *first = add_segment(f, 0), *rest;

    first->extent = lend(f, 0);
    first->reader = lend_reader(f);
    first->end = 5000;
    rest = segzstd__segment_split(first, f->cache, 0);
    assert_non_null(rest);
    assert_ptr_equal(rest->reader, first->reader);
    assert_int_equal(first->reader->refs, 2);
    assert_null(rest->extent);
    assert_int_equal(first->extent->refs, 1);
    segzstd__segment_free(rest, f->cache);
    assert_int_equal(f->released, 0);
    segzstd__segment_free(first, f->cache);
    assert_int_equal(f->released, 2);
}

static void test_split__no_memory__changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct segzstd__segment *first = add_segment(f, 0);

    first->extent = lend(f, 0);
    first->end = 5000;
    first->open = true;
    alloc_fail(&f->alloc, 0, ALLOC_FOR_EVER);
    assert_null(segzstd__segment_split(first, f->cache, 3000));
    assert_int_equal(first->end, 5000);
    assert_true(first->open);
    assert_int_equal(first->extent->refs, 1);
    assert_ptr_equal(first->link.next, &f->list);
}

/* ---- references ---- */

static void test_extent_new__carry__lies_before_the_position(void **state)
{
    struct fixture *f = *state;
    struct segzstd__extent *extent =
        segzstd__extent_new(f->cache, 10000, 300, 20000);

    assert_non_null(extent);
    assert_int_equal(extent->pos, 9700);
    assert_int_equal(extent->len, 0);
    assert_true(segzstd__extent_cap_end(extent) >= 30000);
    assert_ptr_equal(segzstd__extent_ref(extent), extent);
    assert_int_equal(extent->refs, 2);
    segzstd__extent_unref(extent, f->cache);
    assert_int_equal(f->cache->pool.bytes, 0);
    segzstd__extent_unref(extent, f->cache);
    assert_int_equal(f->cache->pool.bytes, 24576);
}

static void test_unref__null__is_allowed(void **state)
{
    struct fixture *f = *state;

    assert_null(segzstd__extent_ref(NULL));
    segzstd__extent_unref(NULL, f->cache);
    segzstd__reader_unref(NULL, f->cache);
    assert_int_equal(f->cache->mem.used, f->used);
}

static void test_unref__no_release_function__just_frees(void **state)
{
    struct fixture *f = *state;
    struct segzstd__extent *extent = lend(f, 0);
    struct segzstd__reader *reader = lend_reader(f);

    extent->release = NULL;
    reader->release = NULL;
    segzstd__extent_unref(extent, f->cache);
    segzstd__reader_unref(reader, f->cache);
    assert_int_equal(f->released, 0);
    assert_int_equal(f->cache->mem.used, f->used);
}

#define WITH_CACHE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CACHE(test_new__at_a_position__is_empty),
        WITH_CACHE(test_new__no_memory__is_null),
        WITH_CACHE(test_of__link__is_its_segment),
        WITH_CACHE(test_is_finished__open_out_or_unfed__is_not),
        WITH_CACHE(test_prefix__near_the_extents_start__is_what_there_is),
        WITH_CACHE(test_free__with_all_it_can_hold__gives_all_back),
        WITH_CACHE(test_free__in_no_list__is_allowed),
        WITH_CACHE(test_drop_input__keeps_the_output),
        WITH_CACHE(test_split__copied_bytes__share_the_extent),
        WITH_CACHE(test_split__reader__shares_it_without_extent),
        WITH_CACHE(test_split__no_memory__changes_nothing),
        WITH_CACHE(test_extent_new__carry__lies_before_the_position),
        WITH_CACHE(test_unref__null__is_allowed),
        WITH_CACHE(test_unref__no_release_function__just_frees),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
