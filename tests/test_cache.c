/*
 * cache.c is compiled into this test, so that the system can refuse a lock or
 * an affinity mask, and libzstd can seem to be too old.
 */
#if defined(__linux__)
#  define _GNU_SOURCE /* sched_getaffinity() */
#endif

#include "cache.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

static bool refuse_lock, refuse_affinity, zstd_is_old;
static unsigned cpus_allowed; /* by the affinity mask; 0: as they really are */
static long cpus_online;

static int init_lock(pthread_mutex_t *lock, const pthread_mutexattr_t *attr)
{
    return refuse_lock ? -1 : pthread_mutex_init(lock, attr);
}

static int get_affinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
    int rc = refuse_affinity ? -1 : sched_getaffinity(pid, bytes, set);

    if (rc == 0 && cpus_allowed != 0) {
        CPU_ZERO(set);
        for (unsigned i = 0; i < cpus_allowed; i++)
            CPU_SET(3 * i, set);
    }
    return rc;
}

static long get_online(int name)
{
    assert(name == _SC_NPROCESSORS_ONLN);
    (void)name;
    return cpus_online;
}

static bool is_supported(void)
{
    return !zstd_is_old && segzstd__encoder_is_supported();
}

#define pthread_mutex_init init_lock
#define sched_getaffinity get_affinity
#define sysconf get_online
#define segzstd__encoder_is_supported is_supported
#include "cache.c"
#undef pthread_mutex_init

#include "support/data.h"
#include "support/expect.h"

static const struct segzstd__key key_a = {1, 17, 16};
static const struct segzstd__key key_b = {2, 17, 16};

/* ---- fixtures ---- */

struct fixture {
    struct test_alloc alloc;
    struct segzstd_cache *cache;
};

static segzstd_cache_options init_options(struct fixture *f)
{
    segzstd_cache_options options = SEGZSTD_CACHE_OPTIONS_INIT;

    options.allocator = &f->alloc.api;
    options.no_huge_pages = 1;
    options.workers = 2;
    return options;
}

static void make_cache(struct fixture *f, const segzstd_cache_options *options)
{
    assert_int_equal(segzstd_cache_new(&f->cache, options), 0);
}

static int setup_none(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return -1;
    alloc_init(&f->alloc);
    *state = f;
    return 0;
}

/* Two workers and two encoders beside. */
static int setup(void **state)
{
    segzstd_cache_options options;
    struct fixture *f;

    if (setup_none(state) != 0)
        return -1;
    f = *state;
    options = init_options(f);
    return segzstd_cache_new(&f->cache, &options);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    const char *fault;

    alloc_heal(&f->alloc);
    segzstd_cache_free(f->cache);
    fault = alloc_done(&f->alloc);
    if (fault != NULL)
        print_error("%s\n", fault);
    free(f);
    return fault == NULL ? 0 : -1;
}

/* ---- what the tests do with it ---- */

static struct segzstd__slot *acquire(struct fixture *f,
                                     const struct segzstd__key *key)
{
    struct segzstd__claim none = {NULL, 0};
    bool resumed = true;
    struct segzstd__slot *slot =
        segzstd__cache_acquire(f->cache, key, &none, &resumed);

    assert_false(resumed);
    if (slot != NULL)
        assert_non_null(slot->encoder);
    return slot;
}

/* What acquire gives for a claim; *resumed as there. */
static struct segzstd__slot *reclaim_run(struct fixture *f,
                                         const struct segzstd__key *key,
                                         struct segzstd__claim *claim,
                                         bool resumed)
{
    bool got = !resumed;
    struct segzstd__slot *slot =
        segzstd__cache_acquire(f->cache, key, claim, &got);

    assert_int_equal(got, resumed);
    assert_null(claim->slot);
    assert_int_equal(claim->generation, 0);
    return slot;
}

static void *get_block(struct fixture *f, size_t bytes)
{
    size_t rounded = bytes;
    void *block = segzstd__cache_get_block(f->cache, &rounded);

    assert_int_equal(rounded, segzstd__pool_round(bytes));
    if (block != NULL)
        memset(block, 1, rounded);
    return block;
}

static void put_block(struct fixture *f, void *block, size_t bytes)
{
    segzstd__cache_put_block(f->cache, block, segzstd__pool_round(bytes));
}

/* One more block of that size becomes idle. */
static void leave_block(struct fixture *f, size_t bytes)
{
    void *block;

    bytes = segzstd__pool_round(bytes);
    block = segzstd__cache_alloc(f->cache, bytes);
    assert_non_null(block);
    segzstd__cache_put_block(f->cache, block, bytes);
}

static void expect_encoders(struct fixture *f, unsigned running, unsigned held,
                            unsigned idle)
{
    segzstd_cache_stats stats = expect_cache_stats(f->cache);

    assert_int_equal(stats.encoders_running, running);
    assert_int_equal(stats.encoders_held, held);
    assert_int_equal(stats.encoders_idle, idle);
    assert_int_equal(stats.encoders_live, running + held + idle);
    assert_true(stats.encoders_live <= stats.encoders_limit);
    assert_true(stats.encoders_live <= stats.encoders_peak);
    assert_int_equal(stats.bytes, f->cache->mem.used);
}

static void expect_counts(struct fixture *f, uint64_t hits, uint64_t misses,
                          uint64_t steals)
{
    segzstd_cache_stats stats = expect_cache_stats(f->cache);

    assert_int_equal(stats.hits, hits);
    assert_int_equal(stats.misses, misses);
    assert_int_equal(stats.steals, steals);
}

static uint64_t idle_bytes(struct fixture *f)
{
    return expect_cache_stats(f->cache).idle_bytes;
}

/* ---- making one ---- */

static void expect_limits(struct fixture *f, unsigned workers, unsigned kept,
                          unsigned want_workers, unsigned want_limit)
{
    segzstd_cache_options options = init_options(f);
    segzstd_cache_stats stats;

    options.workers = workers;
    options.encoders_kept = kept;
    make_cache(f, &options);
    stats = expect_cache_stats(f->cache);
    assert_int_equal(stats.workers, want_workers);
    assert_int_equal(stats.encoders_limit, want_limit);
    segzstd_cache_free(f->cache);
    f->cache = NULL;
}

static void test_new__workers_and_kept__make_the_limit(void **state)
{
    struct fixture *f = *state;

    expect_limits(f, 3, 0, 3, 6);
    expect_limits(f, 3, 2, 3, 5);
    expect_limits(f, 3, SEGZSTD_NONE, 3, 3);
    expect_limits(f, 1024, 1024, 1024, 2048);
}

static void test_new__workers_automatic__are_the_cpus_allowed(void **state)
{
    struct fixture *f = *state;

    cpus_allowed = 5;
    expect_limits(f, 0, 0, 5, 10);
    cpus_allowed = 0;
    refuse_affinity = true;
    cpus_online = 7;
    expect_limits(f, 0, 1, 7, 8);
    cpus_online = -1;
    expect_limits(f, 0, SEGZSTD_NONE, 1, 1);
    cpus_online = 5000;
    expect_limits(f, 0, SEGZSTD_NONE, 1024, 1024);
    refuse_affinity = false;
    segzstd_cache_new(&f->cache, NULL);
    assert_in_range(expect_cache_stats(f->cache).workers, 1, 1024);
}

static void expect_invalid(struct fixture *f,
                           const segzstd_cache_options *options)
{
    assert_int_equal(segzstd_cache_new(&f->cache, options),
                     SEGZSTD_ERR_INVALID);
    assert_null(f->cache);
    assert_int_equal(f->alloc.calls, 0);
}

static void test_new__bad_options__refused(void **state)
{
    struct fixture *f = *state;
    const segzstd_cache_options good = init_options(f);
    segzstd_cache_options options = good;
    segzstd_allocator allocator = f->alloc.api;

    options.struct_size = 3;
    expect_invalid(f, &options);
    options = good;
    options.workers = 1025;
    expect_invalid(f, &options);
    options = good;
    options.encoders_kept = 1025;
    expect_invalid(f, &options);
    options = good;
    options.retention = (segzstd_retention)(SEGZSTD_RETAIN_NONE + 1);
    expect_invalid(f, &options);
    options = good;
    options.allocator = &allocator;
    allocator.alloc = NULL;
    expect_invalid(f, &options);
    allocator = f->alloc.api;
    allocator.free = NULL;
    expect_invalid(f, &options);
    assert_int_equal(segzstd_cache_new(NULL, &good), SEGZSTD_ERR_INVALID);
}

static void test_new__libzstd_too_old__unsupported(void **state)
{
    struct fixture *f = *state;
    const segzstd_cache_options options = init_options(f);

    zstd_is_old = true;
    assert_int_equal(segzstd_cache_new(&f->cache, &options),
                     SEGZSTD_ERR_UNSUPPORTED);
    zstd_is_old = false;
    assert_null(f->cache);
}

static void test_new__memory_budget_or_lock_refused__leaks_nothing(void **state)
{
    struct fixture *f = *state;
    segzstd_cache_options options = init_options(f);
    uint64_t at;

    for (at = 0;; at++) {
        alloc_fail(&f->alloc, at, 1);
        if (segzstd_cache_new(&f->cache, &options) == 0)
            break;
        assert_null(f->cache);
        assert_int_equal(f->alloc.bytes, 0);
    }
    assert_int_equal(at, 2);
    segzstd_cache_free(f->cache);
    f->cache = NULL;

    options.byte_budget = sizeof(struct segzstd_cache);
    assert_int_equal(segzstd_cache_new(&f->cache, &options), SEGZSTD_ERR_NOMEM);
    options.byte_budget = 0;
    refuse_lock = true;
    assert_int_equal(segzstd_cache_new(&f->cache, &options), SEGZSTD_ERR_NOMEM);
    refuse_lock = false;
    assert_null(f->cache);
    assert_int_equal(f->alloc.bytes, 0);
}

static void test_new__stable_input__may_be_forbidden(void **state)
{
    struct fixture *f = *state;
    segzstd_cache_options options = init_options(f);

    make_cache(f, &options);
    assert_int_equal(expect_cache_stats(f->cache).stable_input,
                     segzstd__encoder_has_stable_input());
    assert_int_equal(expect_cache_stats(f->cache).custom_alloc,
                     segzstd__encoder_has_custom_alloc());
    segzstd_cache_free(f->cache);
    options.no_stable_input = 1;
    make_cache(f, &options);
    assert_int_equal(expect_cache_stats(f->cache).stable_input, 0);
}

static void test_new__huge_pages_and_budget__reach_the_memory(void **state)
{
    struct fixture *f = *state;
    segzstd_cache_options options = init_options(f);

    options.byte_budget = 1000000;
    make_cache(f, &options);
    assert_false(f->cache->mem.huge_pages);
    assert_int_equal(f->cache->mem.budget, 1000000);
    segzstd_cache_free(f->cache);
    options.no_huge_pages = 0;
    make_cache(f, &options);
    assert_true(f->cache->mem.huge_pages);
}

static void test_free__null__is_allowed(void **state)
{
    (void)state;
    segzstd_cache_free(NULL);
}

/* ---- encoders ---- */

static void test_acquire__up_to_the_limit__then_null(void **state)
{
    struct fixture *f = *state;
    struct segzstd__slot *slots[4];

    for (unsigned i = 0; i < 4; i++) {
        slots[i] = acquire(f, &key_a);
        assert_non_null(slots[i]);
        for (unsigned k = 0; k < i; k++)
            assert_ptr_not_equal(slots[i], slots[k]);
        expect_encoders(f, i + 1, 0, 0);
    }
    assert_null(acquire(f, &key_a));
    expect_encoders(f, 4, 0, 0);
    for (unsigned i = 0; i < 4; i++)
        segzstd__cache_release(f->cache, slots[i]);
    expect_encoders(f, 0, 0, 4);
    assert_int_equal(expect_cache_stats(f->cache).encoders_peak, 4);
}

static void test_acquire__same_key_idle__is_a_hit_newest_first(void **state)
{
    struct fixture *f = *state;
    struct segzstd__slot *first = acquire(f, &key_a);
    struct segzstd__slot *second = acquire(f, &key_a);
    struct segzstd__slot *other = acquire(f, &key_b);
    struct segzstd__encoder *encoder = second->encoder;

    segzstd__cache_release(f->cache, first);
    segzstd__cache_release(f->cache, second);
    segzstd__cache_release(f->cache, other);
    expect_counts(f, 0, 3, 0);
    assert_ptr_equal(acquire(f, &key_a), second);
    assert_ptr_equal(second->encoder, encoder);
    assert_ptr_equal(acquire(f, &key_a), first);
    expect_counts(f, 2, 3, 0);
    expect_encoders(f, 2, 0, 1);
    segzstd__cache_release(f->cache, first);
    segzstd__cache_release(f->cache, second);
}

static void test_acquire__other_level__takes_a_new_one(void **state)
{
    struct fixture *f = *state;
    struct segzstd__slot *own = acquire(f, &key_a), *slot;

    segzstd__cache_release(f->cache, own);
    slot = acquire(f, &key_b);
    assert_ptr_not_equal(slot, own);
    segzstd__cache_release(f->cache, slot);
    expect_counts(f, 0, 2, 0);
    expect_encoders(f, 0, 0, 2);
}

/* An idle encoder is used for each of the keys, one after the other. */
static void expect_used_for(struct fixture *f, struct segzstd__slot *slot,
                            const struct segzstd__key *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(acquire(f, &keys[i]), slot);
        segzstd__cache_release(f->cache, slot);
    }
}

/* Tables that are large enough need not be made anew, and stay large. */
static void test_acquire__larger_one_idle__is_a_hit(void **state)
{
    static const struct segzstd__key smaller[] = {
        {1, 16, 16}, {1, 17, 15}, {1, 10, 0}};
    struct fixture *f = *state;
    struct segzstd__slot *own = acquire(f, &key_a);

    segzstd__cache_release(f->cache, own);
    expect_used_for(f, own, smaller, 3);
    expect_counts(f, 3, 1, 0);
    assert_ptr_equal(acquire(f, &key_a), own);
    expect_counts(f, 4, 1, 0);
    segzstd__cache_release(f->cache, own);
}

/* Content of many sizes takes as many encoders as are used at once. */
static void test_acquire__smaller_one_idle__is_enlarged(void **state)
{
    static const struct segzstd__key larger[] = {
        {1, 18, 16}, {1, 18, 17}, {1, 20, 20}};
    struct fixture *f = *state;
    struct segzstd__slot *own = acquire(f, &key_a);

    segzstd__cache_release(f->cache, own);
    expect_used_for(f, own, larger, 3);
    expect_counts(f, 0, 4, 0);
    expect_encoders(f, 0, 0, 1);
}

/* What was in a slot before says nothing of the encoder that is made there. */
static void test_acquire__where_a_larger_one_was__is_not_large(void **state)
{
    static const struct segzstd__key large = {1, 20, 20};
    struct fixture *f = *state;
    struct segzstd__slot *slots[4];

    for (int i = 0; i < 4; i++)
        slots[i] = acquire(f, &large);
    for (int i = 0; i < 4; i++)
        segzstd__cache_discard(f->cache, slots[i]);
    for (int i = 0; i < 4; i++) {
        assert_ptr_equal(acquire(f, &key_a), slots[i]);
        assert_int_equal(slots[i]->key.window_log, key_a.window_log);
        assert_int_equal(slots[i]->key.size_log, key_a.size_log);
    }
    for (int i = 0; i < 4; i++)
        segzstd__cache_release(f->cache, slots[i]);
}

static void test_acquire__several_idle__same_then_larger_then_newest(
    void **state)
{
    static const struct segzstd__key large = {1, 19, 19}, middle = {1, 18, 18};
    struct fixture *f = *state;
    struct segzstd__slot *a = acquire(f, &key_a), *b = acquire(f, &large);
    struct segzstd__slot *c = acquire(f, &key_a);

    segzstd__cache_release(f->cache, b);
    segzstd__cache_release(f->cache, a);
    segzstd__cache_release(f->cache, c);
    assert_ptr_equal(acquire(f, &key_a), c);
    segzstd__cache_release(f->cache, c);
    assert_ptr_equal(acquire(f, &middle), b);
    assert_ptr_equal(acquire(f, &middle), c);
    assert_ptr_equal(acquire(f, &key_a), a);
    expect_counts(f, 3, 4, 0);
    segzstd__cache_release(f->cache, a);
    segzstd__cache_release(f->cache, b);
    segzstd__cache_release(f->cache, c);
}

/* First what costs nobody anything: a new encoder while there may be more,
 * then the oldest idle one, then the oldest that another stream holds. */
static void test_acquire__no_fitting_encoder__takes_in_this_order(void **state)
{
    struct fixture *f = *state;
    struct segzstd__slot *a = acquire(f, &key_a), *b = acquire(f, &key_a);
    struct segzstd__slot *c = acquire(f, &key_a), *d;
    struct segzstd__claim claims[2];

    claims[0] = segzstd__cache_hold(f->cache, c);
    claims[1] = segzstd__cache_hold(f->cache, a);
    segzstd__cache_release(f->cache, b);
    d = acquire(f, &key_b);
    assert_true(d != a && d != b && d != c);
    segzstd__cache_release(f->cache, d);
    expect_encoders(f, 0, 2, 2);

    assert_ptr_equal(acquire(f, &key_b), d);
    assert_ptr_equal(acquire(f, &key_b), b);
    expect_counts(f, 1, 5, 0);
    assert_ptr_equal(acquire(f, &key_b), c);
    expect_counts(f, 1, 6, 1);
    assert_ptr_equal(acquire(f, &key_b), a);
    expect_counts(f, 1, 7, 2);
    assert_null(acquire(f, &key_b));
    expect_encoders(f, 4, 0, 0);
    for (int i = 0; i < 2; i++)
        assert_null(reclaim_run(f, &key_a, &claims[i], false));
    segzstd__cache_release(f->cache, a);
    segzstd__cache_release(f->cache, b);
    segzstd__cache_release(f->cache, c);
    segzstd__cache_release(f->cache, d);
}

/* A new key goes with the encoder from the next acquire on. */
static void test_acquire__taken_for_another_key__fits_that_one_then(
    void **state)
{
    struct fixture *f = *state;
    struct segzstd__slot *slots[4];

    for (int i = 0; i < 4; i++)
        slots[i] = acquire(f, &key_a);
    for (int i = 0; i < 4; i++)
        segzstd__cache_release(f->cache, slots[i]);
    assert_ptr_equal(acquire(f, &key_b), slots[0]);
    segzstd__cache_release(f->cache, slots[0]);
    assert_ptr_equal(acquire(f, &key_b), slots[0]);
    assert_ptr_equal(acquire(f, &key_a), slots[3]);
    segzstd__cache_release(f->cache, slots[0]);
    segzstd__cache_release(f->cache, slots[3]);
}

/* A run that goes on has the tables that it began with, whatever is left of its
 * content. */
static void test_acquire__resumed__keeps_its_key(void **state)
{
    struct fixture *f = *state;
    struct segzstd__slot *slot = acquire(f, &key_a);
    struct segzstd__claim claim = segzstd__cache_hold(f->cache, slot);

    assert_ptr_equal(reclaim_run(f, &key_b, &claim, true), slot);
    segzstd__cache_release(f->cache, slot);
    assert_ptr_equal(acquire(f, &key_a), slot);
    segzstd__cache_release(f->cache, slot);
}

static void test_hold__claimed_again__goes_on_where_it_was(void **state)
{
    struct fixture *f = *state;
    struct segzstd__slot *slot = acquire(f, &key_a);
    struct segzstd__encoder *encoder = slot->encoder;
    struct segzstd__claim claim = segzstd__cache_hold(f->cache, slot);

    expect_encoders(f, 0, 1, 0);
    assert_ptr_equal(reclaim_run(f, &key_a, &claim, true), slot);
    assert_ptr_equal(slot->encoder, encoder);
    expect_encoders(f, 1, 0, 0);
    expect_counts(f, 1, 1, 0);
    segzstd__cache_release(f->cache, slot);
}

/* A copy of a claim that was used must not take the encoder away from the run
 * that is going on, nor from the next one. */
static void test_claim__used_before__holds_no_more(void **state)
{
    struct fixture *f = *state;
    struct segzstd__slot *slot = acquire(f, &key_a), *other;
    struct segzstd__claim claim = segzstd__cache_hold(f->cache, slot);
    struct segzstd__claim copy = claim, next;

    assert_ptr_equal(reclaim_run(f, &key_a, &claim, true), slot);
    other = reclaim_run(
        f, &key_a, &(struct segzstd__claim){copy.slot, copy.generation}, false);
    assert_ptr_not_equal(other, slot);
    next = segzstd__cache_hold(f->cache, slot);
    segzstd__cache_abandon(f->cache, &copy);
    assert_null(copy.slot);
    expect_encoders(f, 1, 1, 0);
    assert_ptr_equal(reclaim_run(f, &key_a, &next, true), slot);
    segzstd__cache_release(f->cache, slot);
    segzstd__cache_release(f->cache, other);
}

static void test_abandon__held__is_idle_for_anyone(void **state)
{
    struct fixture *f = *state;
    struct segzstd__slot *slot = acquire(f, &key_a);
    struct segzstd__claim claim = segzstd__cache_hold(f->cache, slot);
    struct segzstd__claim copy = claim;

    assert_int_equal(idle_bytes(f), 0);
    segzstd__cache_abandon(f->cache, &claim);
    assert_null(claim.slot);
    expect_encoders(f, 0, 0, 1);
    assert_int_equal(idle_bytes(f), segzstd__encoder_bytes(slot->encoder));
    segzstd__cache_abandon(f->cache, &claim);
    segzstd__cache_abandon(f->cache, &copy);
    expect_encoders(f, 0, 0, 1);
    assert_ptr_equal(acquire(f, &key_a), slot);
    segzstd__cache_release(f->cache, slot);
}

static void test_discard__running__is_freed_and_its_place_is_too(void **state)
{
    struct fixture *f = *state;
    struct segzstd__slot *slots[4];
    uint64_t before;

    for (int i = 0; i < 4; i++)
        slots[i] = acquire(f, &key_a);
    before = f->cache->mem.used;
    segzstd__cache_discard(f->cache, slots[1]);
    assert_null(slots[1]->encoder);
    assert_true(f->cache->mem.used < before);
    expect_encoders(f, 3, 0, 0);
    assert_ptr_equal(acquire(f, &key_b), slots[1]);
    assert_int_equal(f->cache->mem.used, before);
    for (int i = 0; i < 4; i++)
        segzstd__cache_discard(f->cache, slots[i]);
    expect_encoders(f, 0, 0, 0);
}

static void test_acquire__no_memory__is_null_and_counts_nothing(void **state)
{
    struct fixture *f = *state;
    struct segzstd__slot *slot;
    uint64_t at;

    for (at = 0;; at++) {
        uint64_t before = f->cache->mem.used;

        alloc_fail(&f->alloc, at, ALLOC_FOR_EVER);
        slot = acquire(f, &key_a);
        if (slot != NULL)
            break;
        expect_encoders(f, 0, 0, 0);
        assert_int_equal(f->cache->mem.used, before);
    }
    /* the encoder; and its context, if libzstd takes our allocator */
    assert_int_equal(at, 1 + segzstd__encoder_has_custom_alloc());
    segzstd__cache_release(f->cache, slot);
}

/* Also when it is the claim's slot that was lost to memory. */
static void test_acquire__no_memory__uses_the_claim_up(void **state)
{
    struct fixture *f = *state;
    struct segzstd__claim claim =
        segzstd__cache_hold(f->cache, acquire(f, &key_a));

    assert_true(segzstd__cache_reclaim(f->cache));
    alloc_fail(&f->alloc, 0, ALLOC_FOR_EVER);
    assert_null(reclaim_run(f, &key_a, &claim, false));
    expect_encoders(f, 0, 0, 0);
}

/* Memory that is idle is given up before an encoder is refused, and no more of
 * it than has to be. */
static void test_acquire__no_memory_but_idle_blocks__frees_one(void **state)
{
    struct fixture *f = *state;
    struct segzstd__slot *slot;
    uint64_t before;

    leave_block(f, 100000);
    before = idle_bytes(f);
    leave_block(f, 4096);
    alloc_fail(&f->alloc, 0, 1);
    slot = acquire(f, &key_a);
    assert_non_null(slot);
    assert_int_equal(idle_bytes(f), 4096);
    assert_true(before > 4096);
    segzstd__cache_release(f->cache, slot);
}

/* ---- giving memory back ---- */

static void test_reclaim__blocks__then_idle_encoders__then_held(void **state)
{
    struct fixture *f = *state;
    struct segzstd__slot *running = acquire(f, &key_a);
    struct segzstd__slot *held = acquire(f, &key_a);
    struct segzstd__slot *idle = acquire(f, &key_a);
    struct segzstd__claim claim = segzstd__cache_hold(f->cache, held);

    segzstd__cache_release(f->cache, idle);
    leave_block(f, 4096);
    leave_block(f, 8192);
    for (int blocks = 2; blocks-- > 0;) {
        assert_true(segzstd__cache_reclaim(f->cache));
        expect_encoders(f, 1, 1, 1);
        assert_int_equal(f->cache->pool.bytes, blocks * 8192);
    }
    assert_true(segzstd__cache_reclaim(f->cache));
    expect_encoders(f, 1, 1, 0);
    assert_int_equal(idle_bytes(f), 0);
    assert_true(segzstd__cache_reclaim(f->cache));
    expect_encoders(f, 1, 0, 0);
    assert_false(segzstd__cache_reclaim(f->cache));
    held = reclaim_run(f, &key_a, &claim, false);
    segzstd__cache_discard(f->cache, held);
    segzstd__cache_discard(f->cache, running);
}

/* A stream whose job is back, but not its next one out, goes on with its held
 * encoder as soon as it can. */
static void test_reclaim_for_job__others_out__leaves_held_encoders(void **state)
{
    struct fixture *f = *state;
    struct segzstd__claim claim =
        segzstd__cache_hold(f->cache, acquire(f, &key_a));

    segzstd__cache_release(f->cache, acquire(f, &key_a));
    leave_block(f, 4096);
    assert_true(segzstd__cache_job_out(f->cache, 1));
    assert_true(segzstd__cache_job_out(f->cache, 1));
    assert_true(segzstd__cache_reclaim_for_job(f->cache, 1));
    expect_encoders(f, 0, 1, 0);
    assert_int_equal(idle_bytes(f), 0);
    assert_false(segzstd__cache_reclaim_for_job(f->cache, 1));
    segzstd__cache_job_back(f->cache, true);
    assert_false(segzstd__cache_reclaim_for_job(f->cache, 0));
    expect_encoders(f, 0, 1, 0);
    assert_true(segzstd__cache_reclaim_for_job(f->cache, 1));
    expect_encoders(f, 0, 0, 0);
    segzstd__cache_job_back(f->cache, true);
    segzstd__cache_discard(f->cache, reclaim_run(f, &key_a, &claim, false));
}

/* Blocks are cheap to make again, so they go before encoders. */
static void test_victims__by_kind__blocks_before_encoders_oldest_first(
    void **state)
{
    struct fixture *f = *state;
    struct segzstd__slot *a = acquire(f, &key_a), *b = acquire(f, &key_a);
    struct segzstd__encoder *encoder_a = a->encoder, *encoder_b = b->encoder;
    struct victim victim;

    segzstd__cache_release(f->cache, b);
    leave_block(f, 8192);
    leave_block(f, 4096);
    segzstd__cache_release(f->cache, a);

    victim = take_victim(f->cache, RECLAIM_IDLE);
    assert_int_equal(victim.block_bytes, 8192);
    assert_null(victim.encoder);
    segzstd__mem_free(&f->cache->mem, victim.block, 8192);
    victim = take_victim(f->cache, RECLAIM_IDLE);
    assert_int_equal(victim.block_bytes, 4096);
    segzstd__mem_free(&f->cache->mem, victim.block, 4096);
    victim = take_victim(f->cache, RECLAIM_IDLE);
    assert_ptr_equal(victim.encoder, encoder_b);
    segzstd__encoder_free(victim.encoder);
    victim = take_victim(f->cache, RECLAIM_IDLE);
    assert_ptr_equal(victim.encoder, encoder_a);
    segzstd__encoder_free(victim.encoder);
    victim = take_victim(f->cache, RECLAIM_ALL);
    assert_null(victim.encoder);
    assert_null(victim.block);
    expect_encoders(f, 0, 0, 0);
}

static void test_trim__by_age__idle_and_held_and_blocks(void **state)
{
    struct fixture *f = *state;
    segzstd_cache_options options = init_options(f);
    struct segzstd__slot *held, *idle;
    struct segzstd__claim claim;
    uint64_t before, released;

    segzstd_cache_free(f->cache);
    options.idle_ns = 10;
    make_cache(f, &options);
    assert_int_equal(segzstd_cache_trim(f->cache, 100), 0);
    held = acquire(f, &key_a);
    idle = acquire(f, &key_a);
    leave_block(f, 4096);
    assert_int_equal(segzstd_cache_trim(f->cache, 103), 0);
    segzstd__cache_release(f->cache, idle);
    assert_int_equal(segzstd_cache_trim(f->cache, 106), 0);
    claim = segzstd__cache_hold(f->cache, held);

    /* 10 ns after each of the three: nothing; one more: that one */
    assert_int_equal(segzstd_cache_trim(f->cache, 110), 0);
    assert_int_equal(segzstd_cache_trim(f->cache, 111), 4096);
    assert_int_equal(segzstd_cache_trim(f->cache, 113), 0);
    before = f->cache->mem.used;
    released = segzstd_cache_trim(f->cache, 114);
    assert_int_equal(released, before - f->cache->mem.used);
    assert_int_not_equal(released, 0);
    expect_encoders(f, 0, 1, 0);
    assert_int_equal(segzstd_cache_trim(f->cache, 116), 0);
    assert_int_not_equal(segzstd_cache_trim(f->cache, 117), 0);
    expect_encoders(f, 0, 0, 0);
    held = reclaim_run(f, &key_a, &claim, false);
    assert_non_null(held);
    segzstd__cache_release(f->cache, held);
}

/* 60 s are the default, and what is running is never old. */
static void test_trim__default_age__is_a_minute(void **state)
{
    const uint64_t second = 1000000000;
    struct fixture *f = *state;
    struct segzstd__slot *slot = acquire(f, &key_a);

    leave_block(f, 4096);
    assert_int_equal(segzstd_cache_trim(f->cache, 60 * second), 0);
    assert_int_equal(segzstd_cache_trim(f->cache, 60 * second + 1), 4096);
    assert_int_equal(segzstd_cache_trim(f->cache, UINT64_MAX), 0);
    expect_encoders(f, 1, 0, 0);
    segzstd__cache_release(f->cache, slot);
}

static void use_retention(struct fixture *f, segzstd_retention retention,
                          uint64_t bytes)
{
    segzstd_cache_options options = init_options(f);

    options.retention = retention;
    options.retain_bytes = bytes;
    make_cache(f, &options);
}

static void test_retention__all__keeps_everything(void **state)
{
    struct fixture *f = *state;

    use_retention(f, SEGZSTD_RETAIN_ALL, 0);
    for (int i = 0; i < 10; i++)
        leave_block(f, 1000000);
    assert_int_equal(idle_bytes(f), 10 * MIB);
    segzstd__cache_release(f->cache, acquire(f, &key_a));
    assert_true(idle_bytes(f) > 10 * MIB);
}

static void test_retention__bounded__frees_the_oldest_beyond(void **state)
{
    struct fixture *f = *state;
    struct segzstd__slot *a, *b;

    use_retention(f, SEGZSTD_RETAIN_BOUNDED, 16384);
    leave_block(f, 8192);
    leave_block(f, 4096);
    leave_block(f, 4096);
    assert_int_equal(idle_bytes(f), 16384);
    leave_block(f, 4096);
    assert_int_equal(idle_bytes(f), 3 * 4096);
    assert_null(segzstd__pool_take(&f->cache->pool, 8192));

    /* an encoder counts too; what must go for it are the blocks */
    a = acquire(f, &key_a);
    b = acquire(f, &key_a);
    segzstd__cache_release(f->cache, a);
    expect_encoders(f, 1, 0, 1);
    assert_true(idle_bytes(f) <= 16384);
    f->cache->retain.max_bytes = segzstd__encoder_bytes(a->encoder);
    segzstd__cache_release(f->cache, b);
    expect_encoders(f, 0, 0, 1);
    assert_null(a->encoder);
    assert_non_null(b->encoder);
}

static void test_retention__none__keeps_nothing_idle(void **state)
{
    struct fixture *f = *state;
    struct segzstd__slot *slot;
    struct segzstd__claim claim;

    use_retention(f, SEGZSTD_RETAIN_NONE, 0);
    leave_block(f, 8192);
    assert_int_equal(idle_bytes(f), 0);
    segzstd__cache_release(f->cache, acquire(f, &key_a));
    expect_encoders(f, 0, 0, 0);

    /* what is held is somebody's, until it is given up */
    slot = acquire(f, &key_a);
    claim = segzstd__cache_hold(f->cache, slot);
    leave_block(f, 8192);
    expect_encoders(f, 0, 1, 0);
    segzstd__cache_abandon(f->cache, &claim);
    expect_encoders(f, 0, 0, 0);
}

/* ---- blocks ---- */

static void test_get_block__idle_of_the_class__is_used_again(void **state)
{
    struct fixture *f = *state;
    void *first = get_block(f, 5000), *second = get_block(f, 5000);

    put_block(f, first, 5000);
    put_block(f, second, 5000);
    assert_int_equal(idle_bytes(f), 2 * 6144);
    assert_ptr_equal(get_block(f, 6144), second);
    assert_ptr_equal(get_block(f, 4097), first);
    assert_int_equal(idle_bytes(f), 0);
    put_block(f, first, 5000);
    put_block(f, second, 5000);
}

/* Streams that outgrow one size after the other must not leave blocks of all of
 * them behind. */
static void test_get_block__much_of_other_sizes_idle__frees_the_oldest(
    void **state)
{
    struct fixture *f = *state;
    void *block;

    leave_block(f, 1 * MIB);
    leave_block(f, 4 * MIB);
    leave_block(f, POOL_SLACK_BYTES - 4 * MIB);
    assert_int_equal(idle_bytes(f), POOL_SLACK_BYTES + 1 * MIB);
    block = get_block(f, 4 * MIB);
    put_block(f, block, 4 * MIB);
    assert_int_equal(idle_bytes(f), POOL_SLACK_BYTES + 1 * MIB);
    block = get_block(f, 4096);
    assert_int_equal(idle_bytes(f), POOL_SLACK_BYTES);
    assert_null(segzstd__pool_take(&f->cache->pool, 1 * MIB));
    put_block(f, block, 4096);
    put_block(f, get_block(f, 6144), 6144);
    assert_true(idle_bytes(f) <= POOL_SLACK_BYTES);
}

static void test_put_block__larger_than_any_class__is_freed(void **state)
{
    struct fixture *f = *state;
    uint64_t before = f->cache->mem.used;
    size_t bytes = 48 * MIB + 1;
    void *block = segzstd__cache_get_block(f->cache, &bytes);

    assert_non_null(block);
    assert_int_equal(bytes, 48 * MIB + 1);
    segzstd__cache_put_block(f->cache, block, bytes);
    assert_int_equal(idle_bytes(f), 0);
    assert_int_equal(f->cache->mem.used, before);
}

/* Idle memory of other classes, and at last encoders that are held, are given
 * up for the budget's sake; what is in use is not. */
static void test_get_block__budget_used_up__reclaims_then_null(void **state)
{
    struct fixture *f = *state;
    struct segzstd__claim claim =
        segzstd__cache_hold(f->cache, acquire(f, &key_a));
    void *first, *second;

    for (int i = 0; i < 5; i++)
        leave_block(f, 4096);
    f->cache->mem.budget = f->cache->mem.used + 8192;
    first = get_block(f, 24576);
    assert_non_null(first);
    assert_int_equal(idle_bytes(f), 4096);
    expect_encoders(f, 0, 1, 0);
    second = get_block(f, 8192);
    assert_non_null(second);
    expect_encoders(f, 0, 0, 0);
    assert_null(get_block(f, 65536));
    assert_true(f->cache->mem.used_peak <= f->cache->mem.budget);
    put_block(f, first, 24576);
    put_block(f, second, 8192);
    segzstd__cache_abandon(f->cache, &claim);
    expect_encoders(f, 0, 0, 0);
}

/* Input may take seven eighths of the budget. Idle memory is given up before it
 * is refused more. */
static void test_has_room__for_input__leaves_an_eighth(void **state)
{
    struct fixture *f = *state;
    void *used;
    size_t left;

    assert_true(segzstd__cache_has_room(f->cache, SIZE_MAX));
    f->cache->mem.budget = 800000;
    used = get_block(f, 131072);
    leave_block(f, 65536);
    left = 700000 - (size_t)f->cache->mem.used;
    assert_true(segzstd__cache_has_room(f->cache, left));
    assert_int_equal(idle_bytes(f), 65536);
    assert_true(segzstd__cache_has_room(f->cache, left + 1));
    assert_int_equal(idle_bytes(f), 0);
    left += 65536;
    assert_true(segzstd__cache_has_room(f->cache, left));
    assert_false(segzstd__cache_has_room(f->cache, left + 1));
    assert_true(segzstd__cache_has_least_room(f->cache, left + 50000));
    assert_false(segzstd__cache_has_least_room(f->cache, left + 50001));
    put_block(f, used, 131072);
}

/* And what one encoder needs of the largest that an open stream has, if that is
 * not all. An idle encoder is not given up for more. */
static void test_has_room__streams_open__leaves_an_encoder(void **state)
{
    struct fixture *f = *state;
    size_t base = (size_t)f->cache->mem.used;

    assert_true(expect_cache_stats(f->cache).input_room == UINT64_MAX);
    f->cache->mem.budget = 800000;
    assert_int_equal(expect_cache_stats(f->cache).input_room, 700000 - base);
    segzstd__cache_open_stream(f->cache, 9, 100000);
    segzstd__cache_open_stream(f->cache, 19, 400000);
    segzstd__cache_open_stream(f->cache, 19, 300000);
    leave_block(f, 8192);
    assert_int_equal(expect_cache_stats(f->cache).input_room, 300000 - base);
    assert_true(segzstd__cache_has_room(f->cache, 300000 - base));
    assert_false(segzstd__cache_has_room(f->cache, 300001 - base));
    assert_true(segzstd__cache_has_least_room(f->cache, 350000 - base));
    assert_false(segzstd__cache_has_least_room(f->cache, 350001 - base));
    segzstd__cache_close_stream(f->cache, 19);
    assert_false(segzstd__cache_has_room(f->cache, 300001 - base));
    segzstd__cache_close_stream(f->cache, 19);
    assert_true(segzstd__cache_has_room(f->cache, 600000 - base));
    assert_false(segzstd__cache_has_room(f->cache, 600001 - base));
    segzstd__cache_close_stream(f->cache, 9);
    assert_true(segzstd__cache_has_room(f->cache, 700000 - base));

    /* more than there can be: half is kept */
    segzstd__cache_open_stream(f->cache, 22, 700000);
    assert_true(segzstd__cache_has_room(f->cache, 300000 - base));
    assert_false(segzstd__cache_has_room(f->cache, 300001 - base));
    assert_int_equal(expect_cache_stats(f->cache).input_room, 300000 - base);
    segzstd__cache_close_stream(f->cache, 22);
    /* what runs cannot be given up for it */
    segzstd__mem_charge_tables(&f->cache->mem, 650000 - base);
    assert_int_equal(expect_cache_stats(f->cache).input_room, 50000);
    segzstd__mem_charge_tables(&f->cache->mem, 60000);
    assert_int_equal(expect_cache_stats(f->cache).input_room, 0);
    segzstd__mem_uncharge_tables(&f->cache->mem, 710000 - base);
}

/* An idle encoder goes for input, a held one only for the least; and none goes
 * for input that would leave nothing to make it of. */
static void test_has_room__encoder_in_the_way__goes_if_that_helps(void **state)
{
    struct fixture *f = *state;
    const struct segzstd__key key = {3, 17, 17};
    struct segzstd__claim claim = {NULL, 0};
    struct segzstd__slot *slot;
    size_t rest, bytes;
    bool resumed;

    for (unsigned held = 0; held < 2; held++) {
        slot = segzstd__cache_acquire(f->cache, &key, &claim, &resumed);
        assert_non_null(slot);
        claim = segzstd__cache_hold(f->cache, slot);
        if (!held)
            segzstd__cache_abandon(f->cache, &claim);
        bytes = (size_t)f->cache->mem.table_used;
        rest = (size_t)f->cache->mem.used - bytes;
        f->cache->mem.budget = 16 * (bytes + rest);
        segzstd__cache_open_stream(f->cache, 3, 2 * bytes);
        assert_false(segzstd__cache_has_room(f->cache, 14 * (bytes + rest)));
        expect_encoders(f, 0, held, 1 - held);
        segzstd__cache_close_stream(f->cache, 3);
        assert_int_equal(
            segzstd__cache_has_room(f->cache, 14 * (bytes + rest) - rest),
            !held);
        expect_encoders(f, 0, held, 0);
        assert_true(segzstd__cache_has_least_room(f->cache,
                                                  15 * (bytes + rest) - rest));
        expect_encoders(f, 0, 0, 0);
        f->cache->mem.budget = 0;
    }
    segzstd__cache_abandon(f->cache, &claim);
}

static void test_alloc__host_refuses_once__idle_memory_is_given_up(void **state)
{
    struct fixture *f = *state;
    void *ptr;

    leave_block(f, 4096);
    alloc_fail(&f->alloc, 0, 1);
    ptr = segzstd__cache_alloc(f->cache, 100);
    assert_non_null(ptr);
    assert_int_equal(idle_bytes(f), 0);
    segzstd__cache_free(f->cache, ptr, 100);
    alloc_fail(&f->alloc, 0, 1);
    assert_null(segzstd__cache_alloc(f->cache, 100));
}

/* ---- counters ---- */

static void test_job_out__so_many_for_each_worker__then_no_more(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(segzstd__cache_idle_workers(f->cache), 2);
    for (unsigned i = 0; i < 4; i++) {
        if (i == 2)
            assert_false(segzstd__cache_job_out(f->cache, 1));
        assert_true(segzstd__cache_job_out(f->cache, i < 2 ? 1 : 2));
        assert_int_equal(segzstd__cache_idle_workers(f->cache),
                         i < 1 ? 1 - i : 0);
        assert_int_equal(expect_cache_stats(f->cache).jobs_out, i + 1);
    }
    assert_false(segzstd__cache_job_out(f->cache, 2));
    segzstd__cache_job_back(f->cache, true);
    assert_true(segzstd__cache_job_out(f->cache, 2));
    for (unsigned i = 0; i < 4; i++)
        segzstd__cache_job_back(f->cache, true);
    assert_int_equal(segzstd__cache_idle_workers(f->cache), 2);
}

/* A job that had no memory, not being the only one, makes fewer of them, but as
 * many as had some; every eight that had let one more try. */
static void test_job_out__no_memory_for_so_many__are_fewer(void **state)
{
    struct fixture *f = *state;

    for (unsigned per_worker = 1; per_worker <= 2; per_worker++) {
        f->cache->workers_now = 8;
        f->cache->workers = 8;
        for (unsigned i = 0; i < 8 * per_worker; i++)
            assert_true(segzstd__cache_job_out(f->cache, per_worker));
        for (unsigned i = 0; i < 3 * per_worker; i++) {
            segzstd__cache_job_back(f->cache, false);
            assert_true(segzstd__cache_lower(f->cache, per_worker));
        }
        for (unsigned i = 0; i < 100; i++)
            assert_true(segzstd__cache_lower(f->cache, per_worker));
        assert_int_equal(f->cache->workers_now, 5);
        assert_false(segzstd__cache_job_out(f->cache, per_worker));
        for (unsigned i = 0; i < 5 * per_worker; i++)
            segzstd__cache_job_back(f->cache, false);
        assert_false(segzstd__cache_lower(f->cache, per_worker));
        assert_int_equal(f->cache->workers_now, 5);
    }
    f->cache->workers = 2;
    f->cache->workers_now = 1;
    for (unsigned good = 0; good < 8; good++) {
        assert_int_equal(segzstd__cache_idle_workers(f->cache), 1);
        assert_true(segzstd__cache_job_out(f->cache, 1));
        assert_false(segzstd__cache_job_out(f->cache, 1));
        segzstd__cache_job_back(f->cache, true);
    }
    assert_int_equal(segzstd__cache_idle_workers(f->cache), 2);
}

static void test_counters__added__are_in_the_statistics(void **state)
{
    struct fixture *f = *state;
    const struct segzstd__tally tally = {1, 20, 300, 4000, 50000};
    segzstd_cache_stats stats;

    segzstd__cache_count(f->cache, &tally);
    segzstd__cache_count(f->cache, &tally);
    segzstd__cache_open_stream(f->cache, 3, 0);
    segzstd__cache_open_stream(f->cache, 3, 0);
    segzstd__cache_close_stream(f->cache, 3);
    stats = expect_cache_stats(f->cache);
    assert_int_equal(stats.struct_size, sizeof(stats));
    assert_int_equal(stats.jobs, 2);
    assert_int_equal(stats.bytes_in, 40);
    assert_int_equal(stats.bytes_out, 600);
    assert_int_equal(stats.stored_bytes, 8000);
    assert_int_equal(stats.splits, 100000);
    assert_int_equal(stats.streams_open, 1);
    segzstd__cache_close_stream(f->cache, 3);
    assert_int_equal(expect_cache_stats(f->cache).streams_open, 0);
}

static void test_get_stats__memory__is_by_kind(void **state)
{
    struct fixture *f = *state;
    segzstd_cache_stats before = expect_cache_stats(f->cache), after;
    struct segzstd__slot *slot = acquire(f, &key_a);

    leave_block(f, 8192);
    after = expect_cache_stats(f->cache);
    assert_int_equal(before.bytes,
                     f->alloc.bytes - (after.bytes - before.bytes));
    assert_int_equal(after.bytes, f->alloc.bytes);
    assert_int_equal(after.idle_bytes, 8192);
    if (segzstd__encoder_has_custom_alloc())
        assert_int_equal(after.encoder_bytes,
                         after.bytes - before.bytes - 8192 -
                             sizeof(struct segzstd__encoder));
    assert_int_equal(after.stream_bytes,
                     after.bytes - after.encoder_bytes - 8192);
    /* idle encoders are not counted twice */
    segzstd__cache_release(f->cache, slot);
    assert_int_equal(expect_cache_stats(f->cache).stream_bytes,
                     after.stream_bytes);
    assert_ptr_equal(acquire(f, &key_a), slot);
    segzstd__cache_reclaim(f->cache);
    segzstd__cache_discard(f->cache, slot);
    assert_int_equal(expect_cache_stats(f->cache).bytes, before.bytes);
    assert_true(expect_cache_stats(f->cache).bytes_peak >= after.bytes);
}

static void test_get_stats__size_of_an_older_caller__is_respected(void **state)
{
    struct fixture *f = *state;
    segzstd_cache_stats stats;

    memset(&stats, 0xaa, sizeof(stats));
    stats.struct_size = sizeof(size_t) - 1;
    assert_int_equal(segzstd_cache_get_stats(f->cache, &stats),
                     SEGZSTD_ERR_INVALID);
    stats.struct_size = offsetof(segzstd_cache_stats, bytes_peak);
    assert_int_equal(segzstd_cache_get_stats(f->cache, &stats), 0);
    assert_int_equal(stats.bytes, f->cache->mem.used);
    assert_true(stats.bytes_peak == 0xaaaaaaaaaaaaaaaau);
}

/* ---- threads ---- */

enum { THREADS = 8, ROUNDS = 10000, CLAIMS = 3 };

/* One that uses the cache as jobs and owners do, all at random. */
struct user {
    struct segzstd_cache *cache;
    struct rng rng;
    pthread_t thread;
    struct segzstd__claim claims[CLAIMS];
    uint64_t resumed, refused;
    const char *fault;
};

/* What everybody sees at any moment. */
static void look(struct user *u)
{
    segzstd_cache_stats stats = SEGZSTD_CACHE_STATS_INIT;

    segzstd_cache_get_stats(u->cache, &stats);
    if (stats.encoders_live > stats.encoders_limit)
        u->fault = "more encoders than the limit";
    if (stats.encoders_live !=
        stats.encoders_running + stats.encoders_held + stats.encoders_idle)
        u->fault = "encoders in no state, or in two";
    if (stats.jobs_out > 2 * stats.workers)
        u->fault = "too many jobs out";
}

/* Nobody else may touch what is running: the thread sanitizer sees it. */
static void scribble(struct segzstd__encoder *encoder, struct user *u)
{
    encoder->seam_piece++;
    encoder->input.src = u;
}

static void run_encoder(struct user *u)
{
    struct segzstd__key key = {1, 17, (unsigned)rng_below(&u->rng, 3)};
    struct segzstd__claim *claim = &u->claims[rng_below(&u->rng, CLAIMS)];
    bool resumed;
    struct segzstd__slot *slot =
        segzstd__cache_acquire(u->cache, &key, claim, &resumed);

    if (slot == NULL) {
        u->refused++;
        return;
    }
    if (resumed && slot->encoder->input.src != u)
        u->fault = "a held encoder was used by somebody else";
    u->resumed += resumed;
    scribble(slot->encoder, u);
    switch (rng_below(&u->rng, 8)) {
    case 0:
        segzstd__cache_discard(u->cache, slot);
        break;
    case 1:
    case 2:
        segzstd__cache_release(u->cache, slot);
        break;
    default:
        *claim = segzstd__cache_hold(u->cache, slot);
    }
}

static void use_block(struct user *u)
{
    size_t bytes = rng_spread(&u->rng, 20000);
    void *block = segzstd__cache_get_block(u->cache, &bytes);

    if (block == NULL)
        return;
    memset(block, 1, 64);
    segzstd__cache_put_block(u->cache, block, bytes);
}

static void use_counters(struct user *u)
{
    const struct segzstd__tally tally = {1, 1, 1, 1, 1};

    segzstd__cache_open_stream(u->cache, 9, 1000);
    if (segzstd__cache_job_out(u->cache, 2)) {
        segzstd__cache_idle_workers(u->cache);
        segzstd__cache_job_back(u->cache, true);
    }
    segzstd__cache_count(u->cache, &tally);
    segzstd__cache_close_stream(u->cache, 9);
}

static void *use_cache(void *arg)
{
    struct user *u = arg;

    for (size_t i = 0; i < ROUNDS; i++) {
        switch (rng_below(&u->rng, 20)) {
        case 0:
            segzstd_cache_trim(u->cache, i * THREADS);
            break;
        case 1:
            segzstd__cache_abandon(u->cache,
                                   &u->claims[rng_below(&u->rng, CLAIMS)]);
            break;
        case 2:
        case 3:
            use_counters(u);
            break;
        case 4:
            look(u);
            break;
        case 5:
            if (i % 10 == 0)
                segzstd__cache_reclaim(u->cache);
            break;
        default:
            if (i % 3 == 0)
                use_block(u);
            else
                run_encoder(u);
        }
    }
    for (size_t i = 0; i < CLAIMS; i++)
        segzstd__cache_abandon(u->cache, &u->claims[i]);
    return NULL;
}

static void hammer(struct fixture *f, const segzstd_cache_options *options)
{
    struct user users[THREADS];
    uint64_t resumed = 0;

    make_cache(f, options);
    for (size_t i = 0; i < THREADS; i++) {
        struct user *u = &users[i];

        *u = (struct user){.cache = f->cache};
        u->rng = rng_seed(i);
        assert_int_equal(pthread_create(&u->thread, NULL, use_cache, u), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(users[i].thread, NULL);
        expect_no_fault(users[i].fault);
        resumed += users[i].resumed;
    }
    assert_true(resumed > 0);
    assert_int_equal(expect_cache_stats(f->cache).encoders_running, 0);
    assert_int_equal(expect_cache_stats(f->cache).encoders_held, 0);
    assert_int_equal(expect_cache_stats(f->cache).streams_open, 0);
    assert_int_equal(expect_cache_stats(f->cache).jobs_out, 0);
    while (segzstd__cache_reclaim(f->cache))
        ;
    expect_encoders(f, 0, 0, 0);
    segzstd_cache_free(f->cache);
    f->cache = NULL;
    assert_int_equal(f->alloc.bytes, 0);
}

static void test_cache__many_threads__limits_hold_and_nothing_is_lost(
    void **state)
{
    struct fixture *f = *state;
    segzstd_cache_options options = init_options(f);

    options.workers = 4;
    options.idle_ns = 1000;
    hammer(f, &options);
    options.byte_budget = 120000;
    options.encoders_kept = SEGZSTD_NONE;
    hammer(f, &options);
    options.byte_budget = 0;
    options.retention = SEGZSTD_RETAIN_BOUNDED;
    options.retain_bytes = 30000;
    hammer(f, &options);
}

/* An allocator that looks whether it is called under the cache's lock. */
struct watcher {
    struct segzstd_cache *cache; /* NULL: there is none yet, or no more */
    unsigned calls, locked;
};

static void watch(struct watcher *w)
{
    w->calls++;
    if (w->cache == NULL)
        return;
    if (pthread_mutex_trylock(&w->cache->lock) == 0)
        pthread_mutex_unlock(&w->cache->lock);
    else
        w->locked++;
}

static void *watched_alloc(void *opaque, size_t size)
{
    watch(opaque);
    return malloc(size);
}

static void watched_free(void *opaque, void *ptr)
{
    watch(opaque);
    free(ptr);
}

/* The host may take its time, or look at the cache's statistics. */
static void test_cache__any_call__allocator_is_called_without_the_lock(
    void **state)
{
    struct watcher w = {NULL, 0, 0};
    segzstd_allocator allocator = {watched_alloc, watched_free, &w};
    segzstd_cache_options options = SEGZSTD_CACHE_OPTIONS_INIT;

    (void)state;
    options.allocator = &allocator;
    options.workers = 4;
    options.idle_ns = 1000;
    for (unsigned i = 0; i < 4; i++) {
        struct user u = {.rng = rng_seed(i)};
        struct segzstd_cache *cache;

        options.retention = (segzstd_retention)(i % 3);
        options.retain_bytes = 30000;
        options.byte_budget = i == 3 ? 120000 : 0;
        assert_int_equal(segzstd_cache_new(&cache, &options), 0);
        w.cache = u.cache = cache;
        use_cache(&u);
        expect_no_fault(u.fault);
        while (segzstd__cache_reclaim(cache))
            ;
        w.cache = NULL;
        segzstd_cache_free(cache);
    }
    assert_true(w.calls > 1000);
    assert_int_equal(w.locked, 0);
}

#define BARE(test) cmocka_unit_test_setup_teardown(test, setup_none, teardown)
#define WITH_CACHE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BARE(test_new__workers_and_kept__make_the_limit),
        BARE(test_new__workers_automatic__are_the_cpus_allowed),
        BARE(test_new__bad_options__refused),
        BARE(test_new__libzstd_too_old__unsupported),
        BARE(test_new__memory_budget_or_lock_refused__leaks_nothing),
        BARE(test_new__stable_input__may_be_forbidden),
        BARE(test_new__huge_pages_and_budget__reach_the_memory),
        BARE(test_free__null__is_allowed),
        WITH_CACHE(test_acquire__up_to_the_limit__then_null),
        WITH_CACHE(test_acquire__same_key_idle__is_a_hit_newest_first),
        WITH_CACHE(test_acquire__other_level__takes_a_new_one),
        WITH_CACHE(test_acquire__larger_one_idle__is_a_hit),
        WITH_CACHE(test_acquire__smaller_one_idle__is_enlarged),
        WITH_CACHE(test_acquire__where_a_larger_one_was__is_not_large),
        WITH_CACHE(test_acquire__several_idle__same_then_larger_then_newest),
        WITH_CACHE(test_acquire__no_fitting_encoder__takes_in_this_order),
        WITH_CACHE(test_acquire__taken_for_another_key__fits_that_one_then),
        WITH_CACHE(test_acquire__resumed__keeps_its_key),
        WITH_CACHE(test_hold__claimed_again__goes_on_where_it_was),
        WITH_CACHE(test_claim__used_before__holds_no_more),
        WITH_CACHE(test_abandon__held__is_idle_for_anyone),
        WITH_CACHE(test_discard__running__is_freed_and_its_place_is_too),
        WITH_CACHE(test_acquire__no_memory__is_null_and_counts_nothing),
        WITH_CACHE(test_acquire__no_memory__uses_the_claim_up),
        WITH_CACHE(test_acquire__no_memory_but_idle_blocks__frees_one),
        WITH_CACHE(test_reclaim__blocks__then_idle_encoders__then_held),
        WITH_CACHE(test_reclaim_for_job__others_out__leaves_held_encoders),
        WITH_CACHE(test_victims__by_kind__blocks_before_encoders_oldest_first),
        WITH_CACHE(test_trim__by_age__idle_and_held_and_blocks),
        WITH_CACHE(test_trim__default_age__is_a_minute),
        BARE(test_retention__all__keeps_everything),
        BARE(test_retention__bounded__frees_the_oldest_beyond),
        BARE(test_retention__none__keeps_nothing_idle),
        WITH_CACHE(test_get_block__idle_of_the_class__is_used_again),
        WITH_CACHE(test_get_block__much_of_other_sizes_idle__frees_the_oldest),
        WITH_CACHE(test_put_block__larger_than_any_class__is_freed),
        WITH_CACHE(test_get_block__budget_used_up__reclaims_then_null),
        WITH_CACHE(test_has_room__for_input__leaves_an_eighth),
        WITH_CACHE(test_has_room__streams_open__leaves_an_encoder),
        WITH_CACHE(test_has_room__encoder_in_the_way__goes_if_that_helps),
        WITH_CACHE(test_alloc__host_refuses_once__idle_memory_is_given_up),
        WITH_CACHE(test_job_out__so_many_for_each_worker__then_no_more),
        WITH_CACHE(test_job_out__no_memory_for_so_many__are_fewer),
        WITH_CACHE(test_counters__added__are_in_the_statistics),
        WITH_CACHE(test_get_stats__memory__is_by_kind),
        WITH_CACHE(test_get_stats__size_of_an_older_caller__is_respected),
        BARE(test_cache__any_call__allocator_is_called_without_the_lock),
        BARE(test_cache__many_threads__limits_hold_and_nothing_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
