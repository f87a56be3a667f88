/*
 * segzstd.h - one standard zstd frame from segments that are compressed in
 * parallel on the caller's own threads.
 *
 * Copyright (c) 2026 the libsegzstd authors. BSD-2-Clause, see LICENSE.
 *
 * HOW TO USE IT
 *
 * libsegzstd owns no thread and no socket. A host pushes bytes into a stream,
 * takes jobs out of it, runs every job on whatever thread it likes, gives the
 * job back, and reads the bytes of one zstd frame (RFC 8878) in order.
 *
 *      segzstd_cache_options co = SEGZSTD_CACHE_OPTIONS_INIT;
 *      segzstd_stream_options so = SEGZSTD_STREAM_OPTIONS_INIT;
 *      segzstd_cache *cache;
 *      segzstd_stream *stream;
 *
 *      co.workers = 4;                  // threads that will run jobs
 *      so.level = 9;
 *      segzstd_cache_new(&cache, &co);  // once in a process
 *      segzstd_stream_new(&stream, cache, &so);
 *
 *      // 1. push: takes what fits into the input window
 *      segzstd_stream_push(stream, src, len, SEGZSTD_END, &taken);
 *
 *      // 2. take jobs until there is none; run each anywhere
 *      while (segzstd_stream_poll_job(stream, &job) == 0 && job != NULL)
 *          my_pool_submit(job);         // a worker: segzstd_job_run(job)
 *
 *      // 3. back on the owner's thread, in any order
 *      segzstd_job_complete(job);
 *
 *      // 4. write what is ready, then say how much of it went out
 *      n = segzstd_stream_peek(stream, vec, 8);
 *      segzstd_stream_consume(stream, bytes_written);
 *
 *      // until segzstd_stream_is_done(stream); then
 *      segzstd_stream_free(stream);
 *
 * Look for output after every step, not only after a job: ending a frame may
 * need none. When a call says SEGZSTD_ERR_NOMEM while other streams hold the
 * memory, go on when one of them has moved, or after a while, not at once.
 *
 * Each of the four steps can make room for the others: after a completed job
 * poll again, after consumed output push and poll again.
 *
 * Hosts without a thread pool use the executor near the end of this header,
 * or segzstd_compress(), which compresses a buffer in one call.
 *
 * THREADS
 *
 * - A stream has one owner at a time. Every segzstd_stream_* call, and
 *   segzstd_job_complete(), is made by the owner. Ownership may move to
 *   another thread if that move itself synchronises.
 * - segzstd_stream_poll_job() gives a job to the caller, segzstd_job_complete()
 *   gives it back. In between it is run at most once, on any thread. A job
 *   waits for no other job; a job that is not run is as good as one that could
 *   not get memory: its input stays where it was.
 * - Passing a job to a worker and back must synchronise, as the queue of any
 *   thread pool does. The library adds no synchronisation of its own there.
 * - segzstd_cache_* and segzstd_dict_* calls are safe from any thread, except
 *   the two free calls, which must be the last use of their object.
 * - A cache has one lock, which is never held while libzstd, the allocator or a
 *   callback of the host is running. An executor has one of its own.
 *
 * ERRORS
 *
 * Functions that can fail return an int: 0, or a negative SEGZSTD_ERR_ value.
 * Values above SEGZSTD_ERR_FATAL are *refusals*: the object is as it was before
 * the call, and the call may be made again. Values below it are *fatal* for the
 * stream and sticky: all later calls that could return it do. Output that was
 * ready before a fatal error can still be read. SEGZSTD_ERR_SIZE is returned by
 * pushes and segzstd_stream_error() alone: what was taken is still compressed,
 * and can be read.
 *
 * MEMORY
 *
 * Everything comes from one allocator and is counted against the cache's byte
 * budget: encoders, input, output and the objects themselves. (Where libzstd
 * does not offer custom allocation, encoders are counted by the size that
 * libzstd reports; digested dictionaries always are. Not counted are an executor
 * and, while segzstd_dict_new() looks at a trained dictionary, libzstd's context
 * for that.) An allocation that fails is a refusal, SEGZSTD_ERR_NOMEM, never a
 * crash, and never loses input.
 *
 * WHAT IS NOT PROMISED
 *
 * Output bytes may change between releases of this library and of libzstd, and,
 * with adaptive segmentation, between runs. Compare decoded data.
 * The decoding twin of this interface will use the names segzstd_decoder_*.
 */
#ifndef SEGZSTD_H
#define SEGZSTD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SEGZSTD_VERSION_MAJOR 0
#define SEGZSTD_VERSION_MINOR 1
#define SEGZSTD_VERSION_PATCH 0

#ifndef SEGZSTD_API
#  if defined(__GNUC__)
#    define SEGZSTD_API __attribute__((visibility("default")))
#  else
#    define SEGZSTD_API
#  endif
#endif

/* Version of the library in use, "0.1.0". Static memory. */
SEGZSTD_API const char *segzstd_version(void);

/* Version of the libzstd in use, "1.5.4". Static memory. */
SEGZSTD_API const char *segzstd_zstd_version(void);

/* ------------------------------------------------------------------------ */
/* Errors                                                                   */
/* ------------------------------------------------------------------------ */

enum {
    SEGZSTD_OK = 0,

    /* Refusals: nothing has changed. */
    SEGZSTD_ERR_INVALID = -1,     /* an argument or option is out of range */
    SEGZSTD_ERR_STATE = -2,       /* not allowed now, e.g. push after end */
    SEGZSTD_ERR_AGAIN = -3,       /* no room now; try when work progressed */
    SEGZSTD_ERR_NOMEM = -4,       /* allocator or byte budget said no */
    SEGZSTD_ERR_UNSUPPORTED = -5, /* the libzstd in use cannot do this */
    SEGZSTD_ERR_THREAD = -6,      /* a thread could not be started */
    SEGZSTD_ERR_DST_SIZE = -7,    /* destination buffer too small */

    /* All values below this line are fatal for the stream. */
    SEGZSTD_ERR_FATAL = -100,
    SEGZSTD_ERR_ZSTD = -101,     /* see segzstd_stream_zstd_error() */
    SEGZSTD_ERR_SIZE = -102,     /* content is not of the certain size */
    SEGZSTD_ERR_READ = -103,     /* a reader failed or ended early */
    SEGZSTD_ERR_CANCELED = -104, /* segzstd_stream_cancel() was called */
    SEGZSTD_ERR_INTERNAL = -105  /* the encoder broke the format; a bug */
};

/* An English sentence without full stop for any error value. Static memory;
 * never NULL. */
SEGZSTD_API const char *segzstd_strerror(int error);

/* Non-zero if `error` is fatal for a stream. */
SEGZSTD_API int segzstd_is_fatal(int error);

/* ------------------------------------------------------------------------ */
/* Allocator                                                                */
/* ------------------------------------------------------------------------ */

/*
 * The host's allocator. Both functions are called from any thread, at the same
 * time, never under a lock of the library. `alloc` returns memory aligned as
 * malloc()'s, or NULL; `size` is never 0. `free` is never given NULL. `opaque`
 * is passed through. The struct is copied.
 */
typedef struct segzstd_allocator {
    void *(*alloc)(void *opaque, size_t size);
    void (*free)(void *opaque, void *ptr);
    void *opaque;
} segzstd_allocator;

/* ------------------------------------------------------------------------ */
/* Cache                                                                    */
/* ------------------------------------------------------------------------ */

typedef struct segzstd_cache segzstd_cache;
typedef struct segzstd_stream segzstd_stream;
typedef struct segzstd_job segzstd_job;
typedef struct segzstd_dict segzstd_dict;

/* What the cache keeps of that which nobody uses. */
typedef enum segzstd_retention {
    SEGZSTD_RETAIN_ALL = 0,     /* everything that others may use, until
                                 * trimmed by age */
    SEGZSTD_RETAIN_BOUNDED = 1, /* at most retain_bytes */
    SEGZSTD_RETAIN_NONE = 2     /* nothing */
} segzstd_retention;

/* For a count option: really none, where 0 means automatic. */
#define SEGZSTD_NONE ((unsigned)-1)

/*
 * Options of a cache. Initialise with SEGZSTD_CACHE_OPTIONS_INIT; every field
 * left 0 has its default. New fields are added at the end only; a caller built
 * against an older header passes a smaller struct_size and gets the defaults. A
 * larger one, of a newer header, is taken as long as what is not known here is
 * 0. This holds for all structs with a struct_size; in statistics that are not
 * known here become 0.
 */
typedef struct segzstd_cache_options {
    size_t struct_size;

    /* NULL: malloc() and free(). */
    const segzstd_allocator *allocator;

    /* How many threads the host will run jobs on. So many jobs are out at once
     * over all streams: a stream that was begun goes on before another begins,
     * which would need an encoder of its own. With fixed segmentation, where a
     * job is a whole segment, twice as many: one to run and one to follow it
     * without a pause. Content is split only while fewer jobs than workers are
     * out. More threads than that find no encoder. 0: number of CPUs this
     * process may use. At most 1024. */
    unsigned workers;

    /* Encoders kept warm beyond those that are running. Encoders alive never
     * exceed workers + encoders_kept. 0: as many as workers. SEGZSTD_NONE: none.
     * At most 1024. */
    unsigned encoders_kept;

    /* Upper bound, in bytes, of all memory of the cache and its streams. When
     * it is reached idle memory is released first, then calls are refused with
     * SEGZSTD_ERR_NOMEM. Of copied input so much is taken that an eighth is left
     * for output and enough for one encoder, so that some stream can always go
     * on, if the budget is at least 16/13 of segzstd_encoder_bytes() and 4 MiB.
     * With less, or where fixed segments need more, all streams may wait until
     * the host calls segzstd_stream_store() or gives one up. While jobs are
     * refused memory, fewer are given out than there are workers. 0: no bound.
     * Without an allocator of the host, blocks of 256 KiB and more are mapped,
     * so that what is released goes back to the system. */
    uint64_t byte_budget;

    segzstd_retention retention;
    uint64_t retain_bytes; /* for SEGZSTD_RETAIN_BOUNDED */

    /* segzstd_cache_trim() releases what has been idle for longer than this,
     * in nanoseconds of the caller's clock. 0: 60 s. */
    uint64_t idle_ns;

    /* 1: never ask for 2 MiB pages for encoder tables. By default memory of
     * 1 MiB and more for an encoder is mapped by the library itself, outside
     * `allocator` but counted, and advised as MADV_HUGEPAGE; where the system
     * refuses, the allocator is used. */
    int no_huge_pages;

    /* 1: never use libzstd's stable input buffer, even where a probe at
     * start-up shows that it works. Slower; for tests and old libzstd. */
    int no_stable_input;
} segzstd_cache_options;

#define SEGZSTD_CACHE_OPTIONS_INIT                                             \
  {                                                                            \
    sizeof(segzstd_cache_options), NULL, 0, 0, 0, SEGZSTD_RETAIN_ALL, 0, 0, 0, \
        0                                                                      \
  }

/*
 * Makes a cache; `options` may be NULL for defaults. A process needs one.
 * On success *cache is the caller's, to be freed by segzstd_cache_free().
 * Returns 0, SEGZSTD_ERR_INVALID, SEGZSTD_ERR_NOMEM, or SEGZSTD_ERR_UNSUPPORTED
 * where libzstd is older than 1.4.0.
 */
SEGZSTD_API int segzstd_cache_new(segzstd_cache **cache,
                                  const segzstd_cache_options *options);

/* Frees the cache. All its streams and dictionaries must have been freed.
 * NULL is allowed. */
SEGZSTD_API void segzstd_cache_free(segzstd_cache *cache);

/*
 * Releases idle memory that was last used more than idle_ns before `now_ns`,
 * and takes `now_ns` as the time stamp of what becomes idle from now on. Any
 * clock that does not go back will do; a host calls it once after
 * segzstd_cache_new(), since before the time is 0, and then every few seconds.
 * The library never looks at a wall clock itself.
 * Returns the number of bytes released.
 */
SEGZSTD_API uint64_t segzstd_cache_trim(segzstd_cache *cache, uint64_t now_ns);

/* A snapshot of the cache's counters. */
typedef struct segzstd_cache_stats {
    size_t struct_size;
    uint64_t bytes;            /* allocated now, over all */
    uint64_t bytes_peak;       /* the most that ever was */
    uint64_t idle_bytes;       /* of `bytes`, kept for reuse only */
    uint64_t encoder_bytes;    /* of `bytes`, in encoders */
    unsigned workers;          /* as configured or found */
    unsigned encoders_limit;   /* workers + encoders kept */
    unsigned encoders_live;    /* running + held + idle */
    unsigned encoders_running; /* inside segzstd_job_run() */
    unsigned encoders_held;    /* kept for a stream between two jobs */
    unsigned encoders_idle;    /* free for anyone */
    unsigned encoders_peak;    /* the most ever live */
    unsigned jobs_out;         /* polled and not yet completed */
    uint64_t streams_open;
    uint64_t hits;         /* an encoder was there and ready */
    uint64_t misses;       /* an encoder had to be made or rebuilt */
    uint64_t steals;       /* an encoder was taken from another stream */
    uint64_t jobs;         /* jobs completed */
    uint64_t bytes_in;     /* content bytes compressed or stored */
    uint64_t bytes_out;    /* frame bytes produced */
    uint64_t stored_bytes; /* content bytes written as raw blocks by store */
    uint64_t splits;       /* adaptive cuts made for an idle worker */
    int stable_input;      /* 1: the stable input buffer is in use */
    int custom_alloc;      /* 1: libzstd takes the cache's allocator */
    uint64_t stream_bytes; /* of `bytes`, what is neither idle nor in encoders:
                            * input, output and history of streams */
    uint64_t input_room;   /* input that the byte budget still allows, beside
                            * the streams that are open; UINT64_MAX without
                            * one. A host opens no more streams when it is
                            * little: those that are open need it. */
} segzstd_cache_stats;

#define SEGZSTD_CACHE_STATS_INIT                                               \
  {                                                                            \
    sizeof(segzstd_cache_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                           \
  }

/* Fills *stats, whose struct_size must be set. Cheap enough for a status page.
 * Returns 0 or SEGZSTD_ERR_INVALID. */
SEGZSTD_API int segzstd_cache_get_stats(segzstd_cache *cache,
                                        segzstd_cache_stats *stats);

/* ------------------------------------------------------------------------ */
/* Dictionary                                                               */
/* ------------------------------------------------------------------------ */

/*
 * Makes a dictionary from `len` (8 to 2^30) bytes, which are copied. Bytes
 * that begin with zstd's dictionary magic are a trained dictionary and must be
 * whole; anything else is raw content. Digested once per level, at first use,
 * and shared by all streams that use it. Freed when the last of them is.
 * Returns 0, SEGZSTD_ERR_INVALID (length, or a broken trained dictionary) or
 * SEGZSTD_ERR_NOMEM.
 */
SEGZSTD_API int segzstd_dict_new(segzstd_dict **dict, segzstd_cache *cache,
                                 const void *bytes, size_t len);

/* Gives up the caller's reference. NULL is allowed. */
SEGZSTD_API void segzstd_dict_free(segzstd_dict *dict);

/* The id in a trained dictionary's header; 0 for raw content. */
SEGZSTD_API uint32_t segzstd_dict_id(const segzstd_dict *dict);

/* ------------------------------------------------------------------------ */
/* Stream                                                                   */
/* ------------------------------------------------------------------------ */

/* What follows the pushed bytes. */
typedef enum segzstd_op {
    SEGZSTD_CONTINUE = 0, /* more; compress when it is worth it */
    SEGZSTD_FLUSH = 1,    /* make all so far decodable as soon as possible */
    SEGZSTD_END = 2       /* nothing; end the frame */
} segzstd_op;

#define SEGZSTD_SIZE_UNKNOWN ((uint64_t)-1)

/* For overlap_bytes and history_bytes: none, where 0 means automatic. */
#define SEGZSTD_OVERLAP_NONE ((size_t)-1)

/* Declared window above which browsers refuse a frame (RFC 9659): 8 MiB. */
#define SEGZSTD_WINDOW_LOG_HTTP 23

/*
 * Options of a stream. Initialise with SEGZSTD_STREAM_OPTIONS_INIT; every other
 * field left 0 has its default. The struct grows at the end only.
 */
typedef struct segzstd_stream_options {
    size_t struct_size;

    /* libzstd's compression level, from segzstd_min_level() to
     * segzstd_max_level(). 0: libzstd's default, 3. */
    int level;

    /* Largest window that the frame may declare, as a power of two: 10 to 31
     * (30 on 32-bit systems). 0: 23, which is what HTTP allows. The window is
     * smaller where the level or the size asks for less. */
    unsigned window_log;

    /* Size of the content in bytes, or SEGZSTD_SIZE_UNKNOWN (the macro's value).
     * Tables are sized by it. With size_is_certain it also goes into the frame
     * header, and content of any other size is SEGZSTD_ERR_SIZE: at the push
     * that exceeds it (refused bytes are not taken), or at end. */
    uint64_t size;
    int size_is_certain;

    /* 1: a content checksum (XXH64) ends the frame. */
    int checksum;

    /* Fixed segmentation: cut every segment_bytes, 64 KiB to 1 GiB; one job is
     * one segment, and without a flush the frame depends only on the content,
     * the options and libzstd's version. But memory pushed by reference, and a
     * reader's range, may be cut at their ends too, and so may content where
     * memory was refused. 0: adaptive, cut only for a worker that is idle. */
    size_t segment_bytes;

    /* How many bytes before a cut the next encoder is shown, at most the window.
     * 0: chosen by level and window. SEGZSTD_OVERLAP_NONE: none. */
    size_t overlap_bytes;

    /* How many jobs of this stream may be out at once. 0: as many as the cache
     * has workers. */
    unsigned max_jobs;

    /* Most input, in bytes, that waits to be compressed; push takes no more.
     * 0: 8 MiB; at least 128 KiB. With fixed segmentation at least one
     * segment for each worker is allowed for. Memory that was pushed by
     * reference and ranges of a reader do not count, since they are not the
     * stream's; but what a job reads is held in memory for a while, see
     * read_bytes. */
    size_t input_bytes;

    /* Most output, in bytes, that waits to be read; no new job is given out
     * above it. Divided by the jobs beyond the first it is also the most content
     * between two cuts that are made for idle workers, and so the memory that
     * parallel work on a long content may take. 0: 8 MiB for each job beyond
     * the first, and at least for one. At least 64 KiB. */
    size_t output_bytes;

    /* How many of its last bytes a stream keeps at rest, for the encoder that
     * goes on: after segzstd_stream_rest(), or where memory is taken for new
     * content after its encoder was lost. 0: 32 KiB. SEGZSTD_OVERLAP_NONE:
     * none. */
    size_t history_bytes;

    /* Borrowed for the life of the stream (a reference is taken). NULL: none. */
    segzstd_dict *dict;

    /* 1: do not write the dictionary's id into the frame header. */
    int no_dict_id;

    /* The host's own, see segzstd_stream_user(). */
    void *user;

    /* Most content, in bytes, of a range of a reader that is held in memory for
     * each job of the stream; a longer range is compressed in segments of that
     * length, at least one of segment_bytes. 0: twice input_bytes; at least
     * 128 KiB. */
    size_t read_bytes;

    /* Most copied content, in bytes, that one piece of memory holds, with what
     * was compressed already: at its end another encoder has to begin, with
     * the overlap alone. More gives smaller output of long contents (level 9,
     * 9 MB of JavaScript: 2 MiB cost 1.8 % of the size). Content of a size that
     * was told is given room at once, other content in steps. 0: twice
     * input_bytes; at least 128 KiB. */
    size_t extent_bytes;
} segzstd_stream_options;

#define SEGZSTD_STREAM_OPTIONS_INIT                                            \
  {                                                                            \
    sizeof(segzstd_stream_options), 0, 0, SEGZSTD_SIZE_UNKNOWN, 0, 0, 0, 0, 0, \
        0, 0, 0, NULL, 0, NULL, 0, 0                                           \
  }

/* The levels that the libzstd in use has. */
SEGZSTD_API int segzstd_min_level(void);
SEGZSTD_API int segzstd_max_level(void);

/*
 * What an encoder takes of the byte budget, in bytes, at most: options of a
 * stream (window_log 0 is its default) and size of the content, which may be
 * SEGZSTD_SIZE_UNKNOWN. Primed at a cut it may take what it takes with a window
 * twice as large; where there is no memory for that, a stream without fixed
 * segmentation does without. As measured with libzstd 1.4.8 to 1.5.7. 0 if the
 * level or the window is out of range.
 */
SEGZSTD_API uint64_t segzstd_encoder_bytes(int level, unsigned window_log,
                                           uint64_t size);

/*
 * Checks options without making anything. Returns 0, or SEGZSTD_ERR_INVALID
 * and then, if `field` is not NULL, sets *field to the name of the first field
 * at fault (static memory), for an error message.
 */
SEGZSTD_API int segzstd_stream_options_check(
    const segzstd_stream_options *options, const char **field);

/*
 * Makes a stream on `cache`, which must outlive it; `options` may be NULL.
 * Makes no encoder: an open stream that is at rest costs little.
 * Returns 0, SEGZSTD_ERR_INVALID or SEGZSTD_ERR_NOMEM.
 */
SEGZSTD_API int segzstd_stream_new(segzstd_stream **stream,
                                   segzstd_cache *cache,
                                   const segzstd_stream_options *options);

/*
 * Frees the stream and all that it holds; borrowed memory and readers are
 * released. With jobs out it is cancelled instead, and freed by the
 * segzstd_job_complete() of the last of them. NULL is allowed.
 */
SEGZSTD_API void segzstd_stream_free(segzstd_stream *stream);

/* options.user. */
SEGZSTD_API void *segzstd_stream_user(const segzstd_stream *stream);

/*
 * Copies up to `len` bytes into the stream. *taken is how many were taken: all,
 * or fewer when the input window is full or no memory is to be had; push the
 * rest later. `op` takes effect when all were. `src` may be NULL if len is 0.
 * Returns 0 (also when fewer were taken for a full window), SEGZSTD_ERR_NOMEM
 * (*taken bytes were taken before that; without fixed segmentation all that
 * waits is then compressed as if flushed), SEGZSTD_ERR_STATE after end,
 * SEGZSTD_ERR_INVALID, or the stream's fatal error; SEGZSTD_ERR_SIZE if
 * the content differs from a certain size: then the frame cannot be ended,
 * but all that was taken can still be compressed and read.
 */
SEGZSTD_API int segzstd_stream_push(segzstd_stream *stream, const void *src,
                                    size_t len, segzstd_op op, size_t *taken);

/* Called on the owner's thread, once, when the stream needs the memory or the
 * reader no more: at once, during complete, push or store, or when it is freed.
 * It must not call into the stream. */
typedef void (*segzstd_release)(void *arg);

/*
 * Takes all `len` bytes by reference. They must stay as they are until
 * `release` (may be NULL) is called with `arg`. Ranges of 1 MiB and more, and a
 * range that is the whole content, are compressed where they lie, which begins
 * a new segment there; shorter ones are copied and released at once.
 * Returns as segzstd_stream_push(), all or nothing: SEGZSTD_ERR_AGAIN if the
 * window is full. On an error `release` is not called.
 */
SEGZSTD_API int segzstd_stream_push_ref(segzstd_stream *stream, const void *src,
                                        size_t len, segzstd_op op,
                                        segzstd_release release, void *arg);

/*
 * Fills dst with up to `len` bytes of the source, from `offset` on, and returns
 * how many; 0 at its end, negative on failure. Called by jobs on their threads,
 * several at once, so it works like pread(). len is never 0.
 */
typedef int64_t (*segzstd_read)(void *arg, uint64_t offset, void *dst,
                                size_t len);

/*
 * Takes `len` bytes that the jobs will read by themselves, with `read`, at
 * offsets 0 to len - 1. A source that fails or ends early makes the stream
 * fail with SEGZSTD_ERR_READ. A reader always begins a new segment.
 * Returns as segzstd_stream_push_ref().
 */
SEGZSTD_API int segzstd_stream_push_reader(segzstd_stream *stream,
                                           segzstd_read read, uint64_t len,
                                           segzstd_op op,
                                           segzstd_release release, void *arg);

/*
 * Takes a job, if there is one: *job is NULL if not, which is no error.
 * Call it until it gives none: after push, complete and consume, and, when
 * segzstd_stream_want_job() holds but no job is given since all workers are
 * busy with other streams, after a job of any stream was completed.
 * The job must be given back with segzstd_job_complete(), run or not.
 * Returns 0, SEGZSTD_ERR_NOMEM or the stream's fatal error.
 */
SEGZSTD_API int segzstd_stream_poll_job(segzstd_stream *stream,
                                        segzstd_job **job);

/*
 * Takes a job that the owner will run at once, on its own thread, since handing
 * it to a worker would cost more than it saves: only one that does all that
 * waits to be compressed, where that was flushed or ended and its predicted
 * work is at most `most_ns`, nanoseconds of a CPU of 2 to 3 GHz. What a reader
 * gives only if it is the whole content. The job does not count among those of
 * the workers, so it need not wait for one to be free, and no cut is made for
 * it. *job is NULL if there is none such; then ask segzstd_stream_poll_job().
 * Returns as that.
 */
SEGZSTD_API int segzstd_stream_poll_inline(segzstd_stream *stream,
                                           uint64_t most_ns, segzstd_job **job);

/*
 * Does the job's work, on the calling thread. Any thread; no stream call may
 * be needed for it to end. Errors are reported by segzstd_job_complete().
 */
SEGZSTD_API void segzstd_job_run(segzstd_job *job);

/* The stream of a job that is out. The owner may call it; so may a worker, for
 * segzstd_stream_user() only. */
SEGZSTD_API segzstd_stream *segzstd_job_stream(const segzstd_job *job);

/*
 * Gives a job back; the pointer is dead after it. Jobs may be completed in any
 * order. Returns 0; SEGZSTD_ERR_NOMEM if the job could not get memory: its
 * input waits again, poll later, store, or cancel; or the stream's fatal
 * error. A job that was not run is no error; its input waits again.
 */
SEGZSTD_API int segzstd_job_complete(segzstd_job *job);

/* A piece of output. Laid out as POSIX's struct iovec. */
typedef struct segzstd_vec {
    const void *base;
    size_t len;
} segzstd_vec;

/*
 * Shows the output that is ready, in order, as up to `max` pieces, and returns
 * their number, 0 if there is none. The bytes stay where they are until they
 * are consumed or the stream is freed; other calls do not move them.
 */
SEGZSTD_API size_t segzstd_stream_peek(const segzstd_stream *stream,
                                       segzstd_vec *vec, size_t max);

/* Drops the first `bytes` of the output, or all that is ready if it is less. */
SEGZSTD_API void segzstd_stream_consume(segzstd_stream *stream, size_t bytes);

/* Bytes ready to be read. */
SEGZSTD_API size_t segzstd_stream_ready_bytes(const segzstd_stream *stream);

/* How many bytes push would take now; 0 after end or an error. */
SEGZSTD_API size_t segzstd_stream_want_input(const segzstd_stream *stream);

/* Non-zero: there is a job to be had, now or as soon as a worker is free. */
SEGZSTD_API int segzstd_stream_want_job(const segzstd_stream *stream);

/* Non-zero: output is ready. */
SEGZSTD_API int segzstd_stream_want_output(const segzstd_stream *stream);

/* Non-zero: the last flush (or end) is wholly readable or read. */
SEGZSTD_API int segzstd_stream_is_flushed(const segzstd_stream *stream);

/* Non-zero: the whole frame was consumed. */
SEGZSTD_API int segzstd_stream_is_done(const segzstd_stream *stream);

/* Jobs that are out. */
SEGZSTD_API unsigned segzstd_stream_jobs_out(const segzstd_stream *stream);

/*
 * For overload: writes input that waits, and that no job has, as raw blocks, at
 * once, on this thread; it costs a copy and no encoder. At most `max_bytes` of
 * it. Input of a reader is left alone.
 * *stored (may be NULL) is how many content bytes were stored, also where
 * memory for more of them was not to be had.
 * Returns 0, SEGZSTD_ERR_NOMEM or the stream's fatal error.
 */
SEGZSTD_API int segzstd_stream_store(segzstd_stream *stream, size_t max_bytes,
                                     size_t *stored);

/*
 * Changes how many jobs of the stream may be out at once; 0: as at its
 * creation, which also is the most. Jobs that are out stay out. With 1, an
 * adaptive stream makes no further cuts: right as long as whoever reads its
 * output is slower than one worker, since every cut costs size. Never fails.
 */
SEGZSTD_API void segzstd_stream_set_max_jobs(segzstd_stream *stream,
                                             unsigned max_jobs);

/*
 * For a stream that will be at rest for a while: an event stream between two
 * events, or a client that does not read. Of content that was compressed it
 * keeps no more than history_bytes, and nothing that a reader can read again;
 * its encoder goes to whoever needs one. What comes next primes another. Does
 * nothing while jobs are out. Never fails.
 */
SEGZSTD_API void segzstd_stream_rest(segzstd_stream *stream);

/* Stops the stream: jobs that are out end early, no more are given, output is
 * dropped, and calls return SEGZSTD_ERR_CANCELED, or the fatal error that came
 * before. */
SEGZSTD_API void segzstd_stream_cancel(segzstd_stream *stream);

/* The fatal error of the stream, or 0. */
SEGZSTD_API int segzstd_stream_error(const segzstd_stream *stream);

/* libzstd's name of the error behind SEGZSTD_ERR_ZSTD; "" if there was none.
 * Static memory. */
SEGZSTD_API const char *segzstd_stream_zstd_error(const segzstd_stream *stream);

typedef struct segzstd_stream_stats {
    size_t struct_size;
    uint64_t bytes_in;     /* content bytes taken */
    uint64_t bytes_done;   /* of these, compressed or stored */
    uint64_t bytes_out;    /* frame bytes produced so far */
    uint64_t bytes_stored; /* content bytes stored by segzstd_stream_store() */
    uint64_t segments;     /* parts of the content that jobs began so far */
    uint64_t splits;       /* cuts made for an idle worker */
    uint64_t jobs;         /* jobs completed */
    uint64_t encoders;   /* encoders begun for them: more, if some were lost */
    uint64_t cpu_ns;     /* CPU time of its jobs, nanoseconds */
    uint64_t memory;     /* bytes held now, without encoders */
    unsigned window_log; /* of the frame's header, as ceiling; 0 before it */
    unsigned jobs_peak;  /* the most jobs out at once */
} segzstd_stream_stats;

#define SEGZSTD_STREAM_STATS_INIT                                              \
  {                                                                            \
    sizeof(segzstd_stream_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0           \
  }

/* Fills *stats, whose struct_size must be set. 0 or SEGZSTD_ERR_INVALID. */
SEGZSTD_API int segzstd_stream_get_stats(const segzstd_stream *stream,
                                         segzstd_stream_stats *stats);

/* ------------------------------------------------------------------------ */
/* Executor: for hosts that want no pool of their own (optional)            */
/* ------------------------------------------------------------------------ */

typedef struct segzstd_executor segzstd_executor;

/*
 * Starts `threads` (1 to 1024) pthreads that run jobs. All signals are blocked
 * in them. `notify` (may be NULL) is called with `arg` by a worker whenever the
 * list of finished jobs becomes non-empty; it should do no more than wake the
 * owner (write to an eventfd or pipe).
 * Returns 0, SEGZSTD_ERR_INVALID, SEGZSTD_ERR_NOMEM or SEGZSTD_ERR_THREAD.
 */
SEGZSTD_API int segzstd_executor_new(segzstd_executor **executor,
                                     unsigned threads,
                                     void (*notify)(void *arg), void *arg);

/* Queues a job. Never fails, never blocks for long. Any thread. */
SEGZSTD_API void segzstd_executor_submit(segzstd_executor *executor,
                                         segzstd_job *job);

/* A finished job, to be given to segzstd_job_complete(), or NULL if there is
 * none now. Any thread. */
SEGZSTD_API segzstd_job *segzstd_executor_poll(segzstd_executor *executor);

/* The same, but waits for one. NULL only if no job is queued or running. */
SEGZSTD_API segzstd_job *segzstd_executor_wait(segzstd_executor *executor);

/* Runs what is queued to its end, stops the threads and frees the executor.
 * Jobs that were finished and not fetched are the caller's loss, so fetch them
 * first. NULL is allowed. */
SEGZSTD_API void segzstd_executor_free(segzstd_executor *executor);

/* ------------------------------------------------------------------------ */
/* One call                                                                 */
/* ------------------------------------------------------------------------ */

/* The size of dst for which segzstd_compress() of `len` bytes cannot fail with
 * SEGZSTD_ERR_DST_SIZE. 0 if that is beyond size_t. */
SEGZSTD_API size_t segzstd_compress_bound(size_t len);

/*
 * Compresses `len` bytes at src into one frame at dst, on `threads` threads (0:
 * as many as CPUs) while the calling one waits; on that alone if one is enough.
 * `options` may be NULL; its size fields are not looked at. The frame declares
 * the content size.
 * *written is the size of the frame if 0 is returned.
 * Returns 0, SEGZSTD_ERR_DST_SIZE, or any error of a stream.
 */
SEGZSTD_API int segzstd_compress(void *dst, size_t dst_len, size_t *written,
                                 const void *src, size_t len,
                                 const segzstd_stream_options *options,
                                 unsigned threads);

#ifdef __cplusplus
}
#endif

#endif /* SEGZSTD_H */
