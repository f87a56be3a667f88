/*
 * cache.h - what streams share: encoders under a budget, idle memory blocks, and
 * counters, behind the library's only lock.
 *
 * An encoder is in one of three states. *Running*: a job has it. *Held*: no job
 * has it, but it is paused in the middle of a stream's run, and will go on there
 * unless somebody else needs it more. *Idle*: free for anyone. Held and idle
 * encoders may be taken at any time by any thread; a stream that comes back for
 * a held encoder finds out by a generation number and then primes another one.
 */
#ifndef SEGZSTD_CACHE_H
#define SEGZSTD_CACHE_H

#include <pthread.h>

#include "encoder.h"
#include "list.h"
#include "mem.h"
#include "pool.h"
#include "retain.h"

/* What an encoder's tables are sized by: the largest use since libzstd made them.
 * Smaller ones leave them as they are (but libzstd makes tables smaller that were
 * three times too large for 128 uses in a row). */
struct segzstd__key {
    int level;
    unsigned window_log;
    unsigned size_log; /* of a run's content and prefix */
};

/* The place of one encoder. Slots live as long as the cache, so that a stale
 * handle can be looked at. All fields: cache->lock, but `encoder` belongs to the
 * job while it is running. */
struct segzstd__slot {
    struct segzstd__link link;        /* in idle, held or unused */
    struct segzstd__encoder *encoder; /* NULL if unused */
    struct segzstd__key key;
    uint64_t generation; /* grows whenever a held run is lost */
    uint64_t stamp_ns;   /* when it became idle or held */
    size_t bytes;        /* while idle or held */
};

/* A claim to a held encoder. {NULL, 0} is none. */
struct segzstd__claim {
    struct segzstd__slot *slot;
    uint64_t generation;
};

/* Levels that differ by what their encoders need; the fast ones do not. */
#define LEVEL_SLOTS 23

/* Of the open streams of a level. */
struct segzstd__need {
    unsigned streams;
    uint64_t bytes; /* of the largest encoder since there were none */
};

struct segzstd_cache {
    struct segzstd__mem mem; /* thread-safe in itself */

    /* Never written after segzstd_cache_new(). */
    struct segzstd__retain retain;
    unsigned workers;
    unsigned encoders_limit;
    bool stable_input;
    struct segzstd__slot *slots;

    pthread_mutex_t lock; /* covers all that follows */
    struct segzstd__pool pool;
    struct segzstd__link idle;   /* oldest first */
    struct segzstd__link held;   /* oldest first */
    struct segzstd__link unused; /* slots without encoder */
    uint64_t now_ns;
    uint64_t idle_encoder_bytes;
    unsigned live;
    unsigned running;
    unsigned held_count;
    unsigned idle_count;
    unsigned live_peak;
    unsigned jobs_out;
    unsigned workers_now; /* that there is memory for, as far as is known */
    unsigned jobs_good;   /* since one of them was added or taken away */
    uint64_t streams_open;
    uint64_t encoder_need; /* bytes of the largest that one of them needs */
    struct segzstd__need needs[LEVEL_SLOTS];
    uint64_t hits, misses, steals;
    uint64_t jobs, bytes_in, bytes_out, stored_bytes, splits;
};

/*
 * Memory blocks for extents and chunks. get() rounds *bytes up to what the block
 * really has, and gives idle memory of the cache back before it answers NULL.
 * Any thread.
 */
void *segzstd__cache_get_block(struct segzstd_cache *cache, size_t *bytes);
void segzstd__cache_put_block(struct segzstd_cache *cache, void *block,
                              size_t bytes);

/*
 * True if `bytes` more of input leave enough of the budget for the encoders and
 * for the output that will have to be made of it; gives idle memory back before
 * it says no. Without such a rule input could fill the budget, and no stream
 * could go on.
 */
bool segzstd__cache_has_room(struct segzstd_cache *cache, size_t bytes);

/* The same for the least input with which a stream can go on at all, which may
 * take half of what is kept for output, and encoders that are held. */
bool segzstd__cache_has_least_room(struct segzstd_cache *cache, size_t bytes);

/* Frees one thing: an idle block, else an idle encoder, else a held one. False
 * if there is none. */
bool segzstd__cache_reclaim(struct segzstd_cache *cache);

/* For a job that found no memory, and is `own` of those that are out (1, or 0 if
 * its owner runs it): frees everything idle, and held encoders too, if no other
 * job is out, which may be to go on with one. True if that was anything. */
bool segzstd__cache_reclaim_for_job(struct segzstd_cache *cache, unsigned own);

/* Memory that is not pooled, with the same last effort. */
void *segzstd__cache_alloc(struct segzstd_cache *cache, size_t bytes);
void segzstd__cache_free(struct segzstd_cache *cache, void *ptr, size_t bytes);

/*
 * An encoder for a job to run with, or NULL if there is no memory or the budget
 * is running already. *resumed tells that it is the claimed one, with its run
 * as it was left. The claim is used up. Any thread.
 */
struct segzstd__slot *segzstd__cache_acquire(struct segzstd_cache *cache,
                                             const struct segzstd__key *key,
                                             struct segzstd__claim *claim,
                                             bool *resumed);

/* After a job: holds the encoder's run for whoever has the returned claim. */
struct segzstd__claim segzstd__cache_hold(struct segzstd_cache *cache,
                                          struct segzstd__slot *slot);

/* After a job: the run has ended. */
void segzstd__cache_release(struct segzstd_cache *cache,
                            struct segzstd__slot *slot);

/* After a job that failed: frees the encoder. */
void segzstd__cache_discard(struct segzstd_cache *cache,
                            struct segzstd__slot *slot);

/* Gives up a claim; the encoder is idle then, if it was still held. */
void segzstd__cache_abandon(struct segzstd_cache *cache,
                            struct segzstd__claim *claim);

/*
 * Counts a job as out, unless `per_worker` for each worker are: 1, or 2 for one
 * that may wait for its worker, so that this never waits for the owner. Where
 * the byte budget has no memory for as many jobs as there are workers, it is
 * fewer workers that get some: else those that fail take from those that run.
 */
bool segzstd__cache_job_out(struct segzstd_cache *cache, unsigned per_worker);

/* Takes a job back; `good` if it had the memory that it needed. */
void segzstd__cache_job_back(struct segzstd_cache *cache, bool good);

/* A job that is not out any more, or never was, had no memory: one worker less
 * gets some, but as many as those have that are out. False if none is, so that it
 * is not their number. */
bool segzstd__cache_lower(struct segzstd_cache *cache, unsigned per_worker);

/* Not all encoders that there may be are with workers, or soon will be. */
bool segzstd__cache_has_encoder(struct segzstd_cache *cache);

/* Workers for which no job is out. */
unsigned segzstd__cache_idle_workers(struct segzstd_cache *cache);

/* What a job that comes back adds to the counters. */
struct segzstd__tally {
    uint64_t jobs, bytes_in, bytes_out, stored_bytes, splits;
};

void segzstd__cache_count(struct segzstd_cache *cache,
                          const struct segzstd__tally *tally);

/* A stream of that level is opened or closed, whose encoders need so much. */
void segzstd__cache_open_stream(struct segzstd_cache *cache, int level,
                                uint64_t encoder_bytes);
void segzstd__cache_close_stream(struct segzstd_cache *cache, int level);

#endif /* SEGZSTD_CACHE_H */
