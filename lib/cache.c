/*
 * cache.c - encoders and memory blocks shared by all streams.
 *
 * The lock is held for a few list operations, never while libzstd, the
 * allocator or the host is called: what is to be freed is first taken out of
 * the lists, then freed.
 */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#  define _GNU_SOURCE /* sched_getaffinity() */
#endif

#include "cache.h"

#include <unistd.h>
#if defined(__linux__)
#  include <sched.h>
#endif

#include "options.h"

/* An upper bound for `workers` and for `encoders_kept`. */
#define WORKERS_MAX 1024

/* One minute: longer than the pauses of a site that has traffic at all. */
#define IDLE_NS_DEFAULT 60000000000u

/*
 * Idle blocks beyond this go, oldest first, before a block of another size is
 * allocated. Without it ten thousand streams that outgrow one size after the
 * other leave all of these behind. One extent of the largest kind.
 */
#define POOL_SLACK_BYTES (16 * MIB)

/* After so many jobs that had memory one more worker is tried: what a try costs
 * that fails, a read and a table that is not made, is little beside them. */
#define JOBS_TO_RAISE 8

/* The part of the byte budget that is kept for output. */
#define OUTPUT_SHARE 8

/* What is left for input even if an encoder needs the rest. */
#define INPUT_SHARE 16

static unsigned count_cpus(void)
{
    long n;

#if defined(__linux__)
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return (unsigned)CPU_COUNT(&set);
#endif
    n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > WORKERS_MAX ? WORKERS_MAX : (unsigned)n;
}

/* ---- making and freeing ---- */

static int check_options(const segzstd_cache_options *options)
{
    if (options->workers > WORKERS_MAX)
        return SEGZSTD_ERR_INVALID;
    if (options->encoders_kept > WORKERS_MAX &&
        options->encoders_kept != SEGZSTD_NONE)
        return SEGZSTD_ERR_INVALID;
    if ((unsigned)options->retention > SEGZSTD_RETAIN_NONE)
        return SEGZSTD_ERR_INVALID;
    if (options->allocator != NULL &&
        (options->allocator->alloc == NULL || options->allocator->free == NULL))
        return SEGZSTD_ERR_INVALID;
    return 0;
}

static void init_limits(struct segzstd_cache *cache,
                        const segzstd_cache_options *options)
{
    unsigned kept = options->encoders_kept;

    cache->workers = options->workers != 0 ? options->workers : count_cpus();
    cache->workers_now = cache->workers;
    if (kept == 0)
        kept = cache->workers;
    else if (kept == SEGZSTD_NONE)
        kept = 0;
    cache->encoders_limit = cache->workers + kept;
    cache->retain.policy = options->retention;
    cache->retain.max_bytes = options->retain_bytes;
    cache->retain.idle_ns =
        options->idle_ns != 0 ? options->idle_ns : IDLE_NS_DEFAULT;
    cache->stable_input =
        !options->no_stable_input && segzstd__encoder_has_stable_input();
}

static int init_slots(struct segzstd_cache *cache)
{
    size_t bytes = cache->encoders_limit * sizeof(*cache->slots);

    cache->slots = segzstd__mem_alloc(&cache->mem, bytes);
    if (cache->slots == NULL)
        return SEGZSTD_ERR_NOMEM;
    memset(cache->slots, 0, bytes);
    for (unsigned i = 0; i < cache->encoders_limit; i++)
        list_append(&cache->unused, &cache->slots[i].link);
    return 0;
}

int segzstd_cache_new(segzstd_cache **out, const segzstd_cache_options *given)
{
    segzstd_cache_options options;
    struct segzstd__mem mem;
    struct segzstd_cache *cache;
    int error = segzstd__options_read_cache(&options, given);

    if (error == 0)
        error = check_options(&options);
    if (error != 0 || out == NULL)
        return SEGZSTD_ERR_INVALID;
    if (!segzstd__encoder_is_supported())
        return SEGZSTD_ERR_UNSUPPORTED;
    segzstd__mem_init(&mem, options.allocator, options.byte_budget,
                      !options.no_huge_pages);
    cache = segzstd__mem_alloc(&mem, sizeof(*cache));
    if (cache == NULL)
        return SEGZSTD_ERR_NOMEM;
    memset(cache, 0, sizeof(*cache));
    cache->mem = mem;
    init_limits(cache, &options);
    segzstd__pool_init(&cache->pool);
    list_init(&cache->idle);
    list_init(&cache->held);
    list_init(&cache->unused);
    error = init_slots(cache);
    if (error == 0 && pthread_mutex_init(&cache->lock, NULL) != 0) {
        segzstd__mem_free(&mem, cache->slots,
                          cache->encoders_limit * sizeof(*cache->slots));
        error = SEGZSTD_ERR_NOMEM;
    }
    if (error != 0) {
        segzstd__mem_free(&mem, cache, sizeof(*cache));
        return error;
    }
    *out = cache;
    return 0;
}

void segzstd_cache_free(segzstd_cache *cache)
{
    struct segzstd__mem mem;

    if (cache == NULL)
        return;
    assert(cache->streams_open == 0 && cache->running == 0);
    while (segzstd__cache_reclaim(cache))
        ;
    pthread_mutex_destroy(&cache->lock);
    mem = cache->mem;
    segzstd__mem_free(&mem, cache->slots,
                      cache->encoders_limit * sizeof(*cache->slots));
    segzstd__mem_free(&mem, cache, sizeof(*cache));
}

/* ---- slots; the caller holds cache->lock ---- */

static bool keys_equal(const struct segzstd__key *a,
                       const struct segzstd__key *b)
{
    return a->level == b->level && a->window_log == b->window_log &&
           a->size_log == b->size_log;
}

static struct segzstd__slot *slot_of(struct segzstd__link *link)
{
    return LINK_OWNER(link, struct segzstd__slot, link);
}

/* The oldest of a list; NULL if it is empty. */
static struct segzstd__slot *first_of(struct segzstd__link *list)
{
    return list_is_empty(list) ? NULL : slot_of(list->next);
}

static struct segzstd__slot *leave_idle(struct segzstd_cache *cache,
                                        struct segzstd__slot *slot)
{
    list_remove(&slot->link);
    cache->idle_count--;
    cache->idle_encoder_bytes -= slot->bytes;
    return slot;
}

static void enter_idle(struct segzstd_cache *cache, struct segzstd__slot *slot)
{
    slot->stamp_ns = cache->now_ns;
    list_append(&cache->idle, &slot->link);
    cache->idle_count++;
    cache->idle_encoder_bytes += slot->bytes;
}

/* The run that was held is lost for its stream. */
static struct segzstd__slot *leave_held(struct segzstd_cache *cache,
                                        struct segzstd__slot *slot)
{
    list_remove(&slot->link);
    cache->held_count--;
    slot->generation++;
    return slot;
}

/* Takes an encoder out of `live`; the caller frees it without the lock. */
static struct segzstd__encoder *vacate(struct segzstd_cache *cache,
                                       struct segzstd__slot *slot)
{
    struct segzstd__encoder *encoder = slot->encoder;

    slot->encoder = NULL;
    cache->live--;
    list_append(&cache->unused, &slot->link);
    return encoder;
}

/* Its tables are large enough. */
static bool key_covers(const struct segzstd__key *have,
                       const struct segzstd__key *want)
{
    return have->level == want->level && have->window_log >= want->window_log &&
           have->size_log >= want->size_log;
}

/*
 * Idle encoder of the key's level: one with the same key, else one that is
 * larger, else one that is smaller, which libzstd will enlarge. Of each kind the
 * one used last, whose tables are most likely to be in the CPU's cache. So
 * content of many sizes, and the parts of what was cut, take no more encoders
 * than are used at once.
 */
static struct segzstd__slot *find_idle(struct segzstd_cache *cache,
                                       const struct segzstd__key *key)
{
    struct segzstd__slot *larger = NULL, *smaller = NULL;
    struct segzstd__link *link;

    for (link = cache->idle.prev; link != &cache->idle; link = link->prev) {
        struct segzstd__slot *slot = slot_of(link);

        if (keys_equal(&slot->key, key))
            return slot;
        if (slot->key.level != key->level)
            continue;
        if (key_covers(&slot->key, key)) {
            if (larger == NULL)
                larger = slot;
        } else if (smaller == NULL) {
            smaller = slot;
        }
    }
    return larger != NULL ? larger : smaller;
}

static bool claim_holds(const struct segzstd__claim *claim)
{
    return claim->slot != NULL && claim->slot->generation == claim->generation;
}

/* The encoder to run next, or a slot to make one in, or NULL. */
static struct segzstd__slot *choose_slot(struct segzstd_cache *cache,
                                         const struct segzstd__key *key)
{
    struct segzstd__slot *slot = find_idle(cache, key);

    if (slot != NULL && key_covers(&slot->key, key))
        cache->hits++;
    else
        cache->misses++;
    if (slot != NULL)
        return leave_idle(cache, slot);
    slot = first_of(&cache->unused);
    if (slot != NULL) {
        list_remove(&slot->link);
        cache->live++;
        if (cache->live > cache->live_peak)
            cache->live_peak = cache->live;
        return slot;
    }
    slot = first_of(&cache->idle);
    if (slot != NULL)
        return leave_idle(cache, slot);
    slot = first_of(&cache->held);
    if (slot != NULL) {
        cache->steals++;
        return leave_held(cache, slot);
    }
    return NULL;
}

/* ---- giving memory back ---- */

enum reclaim_what {
    RECLAIM_OUTGROWN, /* blocks of sizes that nobody asks for now */
    RECLAIM_BLOCKS,   /* all idle blocks */
    RECLAIM_EXPIRED,  /* idle for too long */
    RECLAIM_EXCESS,   /* beyond the retention limit */
    RECLAIM_IDLE,     /* all that is idle */
    RECLAIM_ALL       /* held encoders too */
};

/* One thing to be freed; both NULL if there is none. */
struct victim {
    struct segzstd__encoder *encoder;
    void *block;
    size_t block_bytes;
};

static bool may_go(const struct segzstd_cache *cache, enum reclaim_what what,
                   uint64_t stamp_ns)
{
    if (what == RECLAIM_OUTGROWN)
        return cache->pool.bytes > POOL_SLACK_BYTES;
    if (what == RECLAIM_EXPIRED)
        return segzstd__retain_is_expired(&cache->retain, stamp_ns,
                                          cache->now_ns);
    if (what == RECLAIM_EXCESS)
        return cache->pool.bytes + cache->idle_encoder_bytes >
               segzstd__retain_limit(&cache->retain);
    return true;
}

/* Caller holds cache->lock. Blocks go before encoders, which are dearer to
 * make; each kind oldest first. */
static struct victim take_victim(struct segzstd_cache *cache,
                                 enum reclaim_what what)
{
    struct victim victim = {NULL, NULL, 0};
    struct segzstd__idle_block *block = segzstd__pool_oldest(&cache->pool);
    struct segzstd__slot *slot;

    if (block != NULL && may_go(cache, what, block->stamp_ns)) {
        segzstd__pool_remove(&cache->pool, block);
        victim.block = block;
        victim.block_bytes = block->bytes;
        return victim;
    }
    if (what == RECLAIM_OUTGROWN || what == RECLAIM_BLOCKS)
        return victim;
    slot = first_of(&cache->idle);
    if (slot != NULL && may_go(cache, what, slot->stamp_ns)) {
        victim.encoder = vacate(cache, leave_idle(cache, slot));
        return victim;
    }
    slot = first_of(&cache->held);
    if (slot != NULL && (what == RECLAIM_EXPIRED || what == RECLAIM_ALL) &&
        may_go(cache, what, slot->stamp_ns))
        victim.encoder = vacate(cache, leave_held(cache, slot));
    return victim;
}

static bool reclaim_one(struct segzstd_cache *cache, enum reclaim_what what)
{
    struct victim victim;

    pthread_mutex_lock(&cache->lock);
    victim = take_victim(cache, what);
    pthread_mutex_unlock(&cache->lock);
    if (victim.encoder != NULL)
        segzstd__encoder_free(victim.encoder);
    else if (victim.block != NULL)
        segzstd__mem_free(&cache->mem, victim.block, victim.block_bytes);
    else
        return false;
    return true;
}

static bool reclaim(struct segzstd_cache *cache, enum reclaim_what what)
{
    bool any = false;

    while (reclaim_one(cache, what))
        any = true;
    return any;
}

bool segzstd__cache_reclaim(struct segzstd_cache *cache)
{
    return reclaim_one(cache, RECLAIM_ALL);
}

bool segzstd__cache_reclaim_for_job(struct segzstd_cache *cache, unsigned own)
{
    bool alone;

    pthread_mutex_lock(&cache->lock);
    alone = cache->jobs_out == own;
    pthread_mutex_unlock(&cache->lock);
    return reclaim(cache, alone ? RECLAIM_ALL : RECLAIM_IDLE);
}

uint64_t segzstd_cache_trim(segzstd_cache *cache, uint64_t now_ns)
{
    uint64_t before = atomic_load(&cache->mem.used);
    uint64_t after;

    pthread_mutex_lock(&cache->lock);
    cache->now_ns = now_ns;
    pthread_mutex_unlock(&cache->lock);
    reclaim(cache, RECLAIM_EXPIRED);
    after = atomic_load(&cache->mem.used);
    return before > after ? before - after : 0;
}

/* ---- memory ---- */

void *segzstd__cache_alloc(struct segzstd_cache *cache, size_t bytes)
{
    void *ptr;

    do {
        ptr = segzstd__mem_alloc(&cache->mem, bytes);
    } while (ptr == NULL && segzstd__cache_reclaim(cache));
    return ptr;
}

void segzstd__cache_free(struct segzstd_cache *cache, void *ptr, size_t bytes)
{
    segzstd__mem_free(&cache->mem, ptr, bytes);
}

/*
 * What input may have of `most` bytes: all but one encoder of the largest that is
 * needed, so that there can be a job. To keep one for each worker makes extents
 * shorter, and so more runs: six readers at level 9 with memory for two made 99
 * encoders for 124 jobs, instead of 62 for 115. Where one cannot be had at all,
 * half of the budget is kept.
 */
static uint64_t input_most(const struct segzstd_cache *cache, uint64_t need,
                           uint64_t most)
{
    uint64_t budget = cache->mem.budget;
    bool fits = need + budget / INPUT_SHARE <= most;

    return most - (fits ? need : budget / 2);
}

static uint64_t read_encoder_need(struct segzstd_cache *cache)
{
    uint64_t need;

    pthread_mutex_lock(&cache->lock);
    need = cache->encoder_need;
    pthread_mutex_unlock(&cache->lock);
    return need;
}

/*
 * What is idle goes for input, but encoders only as long as input leaves what is
 * kept for one: there would be nothing to make it of when it is needed again.
 */
static bool has_room(struct segzstd_cache *cache, size_t bytes, unsigned share,
                     enum reclaim_what what)
{
    uint64_t budget = cache->mem.budget;
    uint64_t most = budget - budget / share, most_input;
    bool fits;

    if (budget == 0)
        return true;
    most_input = input_most(cache, read_encoder_need(cache), most);
    do {
        uint64_t used = atomic_load(&cache->mem.used);
        uint64_t encoders = atomic_load(&cache->mem.table_used);

        /* not read at one instant */
        fits = used < encoders || used - encoders + bytes <= most_input;
        if (fits && used + bytes <= most)
            return true;
    } while (reclaim_one(cache, fits ? what : RECLAIM_BLOCKS));
    return false;
}

bool segzstd__cache_has_room(struct segzstd_cache *cache, size_t bytes)
{
    return has_room(cache, bytes, OUTPUT_SHARE, RECLAIM_IDLE);
}

bool segzstd__cache_has_least_room(struct segzstd_cache *cache, size_t bytes)
{
    return has_room(cache, bytes, 2 * OUTPUT_SHARE, RECLAIM_ALL);
}

void *segzstd__cache_get_block(struct segzstd_cache *cache, size_t *bytes)
{
    void *block;

    *bytes = segzstd__pool_round(*bytes);
    pthread_mutex_lock(&cache->lock);
    block = segzstd__pool_take(&cache->pool, *bytes);
    pthread_mutex_unlock(&cache->lock);
    if (block != NULL)
        return block;
    reclaim(cache, RECLAIM_OUTGROWN);
    return segzstd__cache_alloc(cache, *bytes);
}

void segzstd__cache_put_block(struct segzstd_cache *cache, void *block,
                              size_t bytes)
{
    if (!segzstd__pool_holds(bytes) ||
        cache->retain.policy == SEGZSTD_RETAIN_NONE) {
        segzstd__mem_free(&cache->mem, block, bytes);
        return;
    }
    pthread_mutex_lock(&cache->lock);
    segzstd__pool_put(&cache->pool, block, bytes, cache->now_ns);
    pthread_mutex_unlock(&cache->lock);
    if (cache->retain.policy == SEGZSTD_RETAIN_BOUNDED)
        reclaim(cache, RECLAIM_EXCESS);
}

/* ---- encoders ---- */

/* A slot without encoder gets one; if there is no memory, it goes back. */
static struct segzstd__slot *fill_slot(struct segzstd_cache *cache,
                                       struct segzstd__slot *slot)
{
    if (slot->encoder != NULL)
        return slot;
    do {
        slot->encoder = segzstd__encoder_new(&cache->mem);
    } while (slot->encoder == NULL && segzstd__cache_reclaim(cache));
    if (slot->encoder != NULL)
        return slot;
    pthread_mutex_lock(&cache->lock);
    cache->running--;
    vacate(cache, slot);
    pthread_mutex_unlock(&cache->lock);
    return NULL;
}

struct segzstd__slot *segzstd__cache_acquire(struct segzstd_cache *cache,
                                             const struct segzstd__key *key,
                                             struct segzstd__claim *claim,
                                             bool *resumed)
{
    struct segzstd__slot *slot;

    pthread_mutex_lock(&cache->lock);
    *resumed = claim_holds(claim);
    if (*resumed) {
        slot = leave_held(cache, claim->slot);
        cache->hits++;
    } else {
        slot = choose_slot(cache, key);
    }
    if (slot != NULL)
        cache->running++;
    /* A run that goes on has the tables that it began with. A slot without an
     * encoder still has the key of its last one. */
    if (slot != NULL && !*resumed &&
        (slot->encoder == NULL || !key_covers(&slot->key, key)))
        slot->key = *key;
    pthread_mutex_unlock(&cache->lock);
    *claim = (struct segzstd__claim){NULL, 0};
    return slot == NULL ? NULL : fill_slot(cache, slot);
}

struct segzstd__claim segzstd__cache_hold(struct segzstd_cache *cache,
                                          struct segzstd__slot *slot)
{
    struct segzstd__claim claim = {slot, 0};
    size_t bytes = segzstd__encoder_bytes(slot->encoder);

    pthread_mutex_lock(&cache->lock);
    slot->bytes = bytes;
    slot->stamp_ns = cache->now_ns;
    claim.generation = slot->generation;
    list_append(&cache->held, &slot->link);
    cache->held_count++;
    cache->running--;
    pthread_mutex_unlock(&cache->lock);
    return claim;
}

void segzstd__cache_release(struct segzstd_cache *cache,
                            struct segzstd__slot *slot)
{
    size_t bytes = segzstd__encoder_bytes(slot->encoder);

    pthread_mutex_lock(&cache->lock);
    slot->bytes = bytes;
    enter_idle(cache, slot);
    cache->running--;
    pthread_mutex_unlock(&cache->lock);
    if (cache->retain.policy != SEGZSTD_RETAIN_ALL)
        reclaim(cache, RECLAIM_EXCESS);
}

void segzstd__cache_discard(struct segzstd_cache *cache,
                            struct segzstd__slot *slot)
{
    struct segzstd__encoder *encoder;

    pthread_mutex_lock(&cache->lock);
    encoder = vacate(cache, slot);
    cache->running--;
    pthread_mutex_unlock(&cache->lock);
    segzstd__encoder_free(encoder);
}

void segzstd__cache_abandon(struct segzstd_cache *cache,
                            struct segzstd__claim *claim)
{
    if (claim->slot == NULL)
        return;
    pthread_mutex_lock(&cache->lock);
    if (claim_holds(claim))
        enter_idle(cache, leave_held(cache, claim->slot));
    pthread_mutex_unlock(&cache->lock);
    *claim = (struct segzstd__claim){NULL, 0};
    if (cache->retain.policy != SEGZSTD_RETAIN_ALL)
        reclaim(cache, RECLAIM_EXCESS);
}

/* ---- counters ---- */

bool segzstd__cache_job_out(struct segzstd_cache *cache, unsigned per_worker)
{
    bool ok;

    pthread_mutex_lock(&cache->lock);
    ok = cache->jobs_out < per_worker * cache->workers_now;
    if (ok)
        cache->jobs_out++;
    pthread_mutex_unlock(&cache->lock);
    return ok;
}

void segzstd__cache_job_back(struct segzstd_cache *cache, bool good)
{
    pthread_mutex_lock(&cache->lock);
    cache->jobs_out--;
    if (good && cache->workers_now < cache->workers &&
        ++cache->jobs_good == JOBS_TO_RAISE) {
        cache->jobs_good = 0;
        cache->workers_now++;
    }
    pthread_mutex_unlock(&cache->lock);
}

bool segzstd__cache_lower(struct segzstd_cache *cache, unsigned per_worker)
{
    unsigned others;

    pthread_mutex_lock(&cache->lock);
    others = cache->jobs_out;
    if (others != 0 && per_worker * (cache->workers_now - 1) >= others) {
        cache->workers_now--;
        cache->jobs_good = 0;
    }
    pthread_mutex_unlock(&cache->lock);
    return others != 0;
}

bool segzstd__cache_has_encoder(struct segzstd_cache *cache)
{
    unsigned out;

    if (cache->workers < cache->encoders_limit)
        return true;
    pthread_mutex_lock(&cache->lock);
    out = cache->jobs_out;
    pthread_mutex_unlock(&cache->lock);
    return out < cache->workers;
}

unsigned segzstd__cache_idle_workers(struct segzstd_cache *cache)
{
    unsigned out, workers;

    pthread_mutex_lock(&cache->lock);
    out = cache->jobs_out;
    workers = cache->workers_now;
    pthread_mutex_unlock(&cache->lock);
    return out < workers ? workers - out : 0;
}

void segzstd__cache_count(struct segzstd_cache *cache,
                          const struct segzstd__tally *tally)
{
    pthread_mutex_lock(&cache->lock);
    cache->jobs += tally->jobs;
    cache->bytes_in += tally->bytes_in;
    cache->bytes_out += tally->bytes_out;
    cache->stored_bytes += tally->stored_bytes;
    cache->splits += tally->splits;
    pthread_mutex_unlock(&cache->lock);
}

static unsigned level_slot(int level)
{
    return (unsigned)min_size(level < 0 ? 0 : (size_t)level, LEVEL_SLOTS - 1);
}

/* Caller holds cache->lock. */
static void find_encoder_need(struct segzstd_cache *cache)
{
    cache->encoder_need = 0;
    for (unsigned i = 0; i < LEVEL_SLOTS; i++)
        cache->encoder_need =
            max_u64(cache->encoder_need, cache->needs[i].bytes);
}

void segzstd__cache_open_stream(struct segzstd_cache *cache, int level,
                                uint64_t encoder_bytes)
{
    struct segzstd__need *need = &cache->needs[level_slot(level)];

    pthread_mutex_lock(&cache->lock);
    cache->streams_open++;
    need->streams++;
    need->bytes = max_u64(need->bytes, encoder_bytes);
    cache->encoder_need = max_u64(cache->encoder_need, encoder_bytes);
    pthread_mutex_unlock(&cache->lock);
}

void segzstd__cache_close_stream(struct segzstd_cache *cache, int level)
{
    struct segzstd__need *need = &cache->needs[level_slot(level)];

    pthread_mutex_lock(&cache->lock);
    cache->streams_open--;
    if (--need->streams == 0) {
        need->bytes = 0;
        if (cache->mem.budget != 0)
            find_encoder_need(cache);
    }
    pthread_mutex_unlock(&cache->lock);
}

/* Caller holds cache->lock. */
static void copy_counters(const struct segzstd_cache *cache,
                          segzstd_cache_stats *stats)
{
    stats->idle_bytes = cache->pool.bytes + cache->idle_encoder_bytes;
    stats->encoders_live = cache->live;
    stats->encoders_running = cache->running;
    stats->encoders_held = cache->held_count;
    stats->encoders_idle = cache->idle_count;
    stats->encoders_peak = cache->live_peak;
    stats->jobs_out = cache->jobs_out;
    stats->streams_open = cache->streams_open;
    stats->hits = cache->hits;
    stats->misses = cache->misses;
    stats->steals = cache->steals;
    stats->jobs = cache->jobs;
    stats->bytes_in = cache->bytes_in;
    stats->bytes_out = cache->bytes_out;
    stats->stored_bytes = cache->stored_bytes;
    stats->splits = cache->splits;
}

static uint64_t sub_or_0(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* What has_room() would say, once all that is idle has gone. */
static uint64_t input_room(const struct segzstd_cache *cache, uint64_t need,
                           const segzstd_cache_stats *stats)
{
    uint64_t budget = cache->mem.budget;
    uint64_t most = budget - budget / OUTPUT_SHARE;

    if (budget == 0)
        return UINT64_MAX;
    return min_u64(sub_or_0(input_most(cache, need, most), stats->stream_bytes),
                   sub_or_0(most, sub_or_0(stats->bytes, stats->idle_bytes)));
}

int segzstd_cache_get_stats(segzstd_cache *cache, segzstd_cache_stats *out)
{
    segzstd_cache_stats stats = SEGZSTD_CACHE_STATS_INIT;
    uint64_t others, need;

    if (out->struct_size < sizeof(out->struct_size))
        return SEGZSTD_ERR_INVALID;
    pthread_mutex_lock(&cache->lock);
    copy_counters(cache, &stats);
    others = cache->pool.bytes;
    need = cache->encoder_need;
    pthread_mutex_unlock(&cache->lock);
    stats.bytes = atomic_load(&cache->mem.used);
    stats.bytes_peak = atomic_load(&cache->mem.used_peak);
    stats.encoder_bytes = atomic_load(&cache->mem.table_used);
    others += stats.encoder_bytes;
    /* not read at one instant */
    stats.stream_bytes = sub_or_0(stats.bytes, others);
    stats.input_room = input_room(cache, need, &stats);
    stats.workers = cache->workers;
    stats.encoders_limit = cache->encoders_limit;
    stats.stable_input = cache->stable_input;
    stats.custom_alloc = segzstd__encoder_has_custom_alloc();
    segzstd__options_write(out, &stats, sizeof(stats));
    return 0;
}
