/*
 * executor.c - optional: a small pool of pthreads that runs jobs, and
 * compression of a buffer in one call. The core does not know of it.
 */
#if !defined(_POSIX_C_SOURCE)
#  define _POSIX_C_SOURCE 200809L /* sigset_t */
#endif

#include "common.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "job.h"
#include "plan.h"
#include "stream.h"

#define THREADS_MAX 1024

/* Jobs are chained through segzstd_job.next_queued. */
struct queue {
    struct segzstd_job *head;
    struct segzstd_job *tail;
};

struct segzstd_executor {
    pthread_mutex_t lock; /* covers all that follows but `threads` */
    pthread_cond_t work;  /* `waiting` is not empty, or `stopping` */
    pthread_cond_t done;  /* `finished` is not empty, or nothing is left */
    struct queue waiting;
    struct queue finished;
    unsigned running;
    bool stopping;

    void (*notify)(void *arg); /* never written after new */
    void *notify_arg;
    unsigned thread_count; /* those that were started */
    pthread_t threads[];
};

static void enqueue(struct queue *queue, struct segzstd_job *job)
{
    job->next_queued = NULL;
    if (queue->head == NULL)
        queue->head = job;
    else
        queue->tail->next_queued = job;
    queue->tail = job;
}

static struct segzstd_job *dequeue(struct queue *queue)
{
    struct segzstd_job *job = queue->head;

    if (job != NULL)
        queue->head = job->next_queued;
    return job;
}

/* Caller holds the lock. NULL if the executor stops. */
static struct segzstd_job *wait_for_work(struct segzstd_executor *ex)
{
    while (ex->waiting.head == NULL && !ex->stopping)
        pthread_cond_wait(&ex->work, &ex->lock);
    return dequeue(&ex->waiting);
}

static void *work(void *arg)
{
    struct segzstd_executor *ex = arg;
    struct segzstd_job *job;

    pthread_mutex_lock(&ex->lock);
    while ((job = wait_for_work(ex)) != NULL) {
        bool first;

        ex->running++;
        pthread_mutex_unlock(&ex->lock);
        segzstd_job_run(job);
        pthread_mutex_lock(&ex->lock);
        ex->running--;
        first = ex->finished.head == NULL;
        enqueue(&ex->finished, job);
        pthread_cond_broadcast(&ex->done);
        if (first && ex->notify != NULL) {
            pthread_mutex_unlock(&ex->lock);
            ex->notify(ex->notify_arg);
            pthread_mutex_lock(&ex->lock);
        }
    }
    pthread_mutex_unlock(&ex->lock);
    return NULL;
}

/* Signals are for the host's threads: ours inherit a mask that blocks all. */
static void start_threads(struct segzstd_executor *ex, unsigned threads)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (ex->thread_count < threads &&
           pthread_create(&ex->threads[ex->thread_count], NULL, work, ex) == 0)
        ex->thread_count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool init_sync(struct segzstd_executor *ex)
{
    if (pthread_mutex_init(&ex->lock, NULL) != 0)
        return false;
    if (pthread_cond_init(&ex->work, NULL) == 0) {
        if (pthread_cond_init(&ex->done, NULL) == 0)
            return true;
        pthread_cond_destroy(&ex->work);
    }
    pthread_mutex_destroy(&ex->lock);
    return false;
}

int segzstd_executor_new(segzstd_executor **out, unsigned threads,
                         void (*notify)(void *arg), void *arg)
{
    struct segzstd_executor *ex;

    if (out == NULL || threads == 0 || threads > THREADS_MAX)
        return SEGZSTD_ERR_INVALID;
    ex = calloc(1, sizeof(*ex) + threads * sizeof(ex->threads[0]));
    if (ex == NULL)
        return SEGZSTD_ERR_NOMEM;
    if (!init_sync(ex)) {
        free(ex);
        return SEGZSTD_ERR_THREAD;
    }
    ex->notify = notify;
    ex->notify_arg = arg;
    start_threads(ex, threads);
    if (ex->thread_count < threads) {
        segzstd_executor_free(ex);
        return SEGZSTD_ERR_THREAD;
    }
    *out = ex;
    return 0;
}

void segzstd_executor_submit(segzstd_executor *ex, segzstd_job *job)
{
    pthread_mutex_lock(&ex->lock);
    enqueue(&ex->waiting, job);
    pthread_cond_signal(&ex->work);
    pthread_mutex_unlock(&ex->lock);
}

segzstd_job *segzstd_executor_poll(segzstd_executor *ex)
{
    struct segzstd_job *job;

    pthread_mutex_lock(&ex->lock);
    job = dequeue(&ex->finished);
    pthread_mutex_unlock(&ex->lock);
    return job;
}

segzstd_job *segzstd_executor_wait(segzstd_executor *ex)
{
    struct segzstd_job *job;

    pthread_mutex_lock(&ex->lock);
    while (ex->finished.head == NULL &&
           (ex->waiting.head != NULL || ex->running != 0))
        pthread_cond_wait(&ex->done, &ex->lock);
    job = dequeue(&ex->finished);
    pthread_mutex_unlock(&ex->lock);
    return job;
}

void segzstd_executor_free(segzstd_executor *ex)
{
    if (ex == NULL)
        return;
    pthread_mutex_lock(&ex->lock);
    ex->stopping = true;
    pthread_cond_broadcast(&ex->work);
    pthread_mutex_unlock(&ex->lock);
    for (unsigned i = 0; i < ex->thread_count; i++)
        pthread_join(ex->threads[i], NULL);
    pthread_cond_destroy(&ex->done);
    pthread_cond_destroy(&ex->work);
    pthread_mutex_destroy(&ex->lock);
    free(ex);
}

/* ---- one call ---- */

size_t segzstd_compress_bound(size_t len)
{
    /* At worst all is raw blocks. With the smallest window a block is 1 KiB and
     * costs 3 bytes; a segment is at least 64 KiB, and the ten pieces that its
     * seam may take cost 3 bytes each. 1/256 is above the sum of both, and
     * 1 KiB above what header, checksum and a short content take. */
    size_t extra = len / 256 + 1 * KIB;

    return len > SIZE_MAX - extra ? 0 : len + extra;
}

/* Where the frame goes. */
struct destination {
    uint8_t *dst;
    size_t room;
    size_t written;
};

static int take_output(segzstd_stream *stream, struct destination *to)
{
    segzstd_vec vec[16];
    size_t n;

    while ((n = segzstd_stream_peek(stream, vec, 16)) != 0) {
        for (size_t i = 0; i < n; i++) {
            if (vec[i].len > to->room - to->written)
                return SEGZSTD_ERR_DST_SIZE;
            memcpy(to->dst + to->written, vec[i].base, vec[i].len);
            to->written += vec[i].len;
            segzstd_stream_consume(stream, vec[i].len);
        }
    }
    return 0;
}

/* Runs one job, on this thread. */
static int work_alone(segzstd_stream *stream)
{
    segzstd_job *job;
    int error = segzstd_stream_poll_job(stream, &job);

    if (error != 0 || job == NULL)
        return error;
    segzstd_job_run(job);
    return segzstd_job_complete(job);
}

/* Submits all jobs there are, and takes one back. On an error some may be out. */
static int work_on(segzstd_stream *stream, segzstd_executor *ex)
{
    segzstd_job *job;
    int error;

    while ((error = segzstd_stream_poll_job(stream, &job)) == 0 && job != NULL)
        segzstd_executor_submit(ex, job);
    if (error == SEGZSTD_ERR_NOMEM && segzstd_stream_jobs_out(stream) != 0)
        error = 0; /* others may give some back */
    if (error == 0 && (job = segzstd_executor_wait(ex)) != NULL)
        error = segzstd_job_complete(job);
    return error;
}

/* Drives the stream to its end; without an executor on this thread. */
static int drive(segzstd_stream *stream, segzstd_executor *ex,
                 struct destination *to)
{
    int error = 0;

    while (error == 0 && !segzstd_stream_is_done(stream)) {
        error = ex == NULL ? work_alone(stream) : work_on(stream, ex);
        if (error == 0)
            error = take_output(stream, to);
    }
    return error;
}

static int compress_on(segzstd_cache *cache, segzstd_executor *ex,
                       const segzstd_stream_options *options, const void *src,
                       size_t len, struct destination *to)
{
    segzstd_stream *stream;
    segzstd_job *job;
    int error = segzstd_stream_new(&stream, cache, options);

    if (error != 0)
        return error;
    error = segzstd_stream_push_ref(stream, src, len, SEGZSTD_END, NULL, NULL);
    if (error == 0)
        error = drive(stream, ex, to);
    if (segzstd_stream_jobs_out(stream) != 0)
        segzstd_stream_cancel(stream);
    while (segzstd_stream_jobs_out(stream) != 0 &&
           (job = segzstd_executor_wait(ex)) != NULL)
        segzstd_job_complete(job);
    segzstd_stream_free(stream);
    return error;
}

/* So many jobs of the content may be out at once, or fewer. */
static uint64_t most_jobs(const segzstd_stream_options *options, size_t len)
{
    size_t part = options->segment_bytes;

    if (part == 0)
        part = len <= segzstd__plan_whole_bytes(options->level)
                   ? SIZE_MAX
                   : PART_BYTES_MIN;
    return len / part + 1;
}

int segzstd_compress(void *dst, size_t dst_len, size_t *written,
                     const void *src, size_t len,
                     const segzstd_stream_options *given, unsigned threads)
{
    segzstd_cache_options cache_options = SEGZSTD_CACHE_OPTIONS_INIT;
    segzstd_stream_options options;
    struct destination to = {dst, dst_len, 0};
    segzstd_executor *ex = NULL;
    segzstd_cache *cache;
    segzstd_cache_stats stats = SEGZSTD_CACHE_STATS_INIT;
    int error = segzstd__options_copy_stream(&options, given);

    if (error != 0)
        return error;
    options.size = len;
    options.size_is_certain = 1;
    error = segzstd_stream_options_check(&options, NULL);
    if (error != 0)
        return error;
    cache_options.workers = threads;
    error = segzstd_cache_new(&cache, &cache_options);
    if (error != 0)
        return error;
    segzstd_cache_get_stats(cache, &stats);
    threads = (unsigned)min_u64(stats.workers, most_jobs(&options, len));
    if (threads > 1)
        error = segzstd_executor_new(&ex, threads, NULL, NULL);
    if (error == 0)
        error = compress_on(cache, ex, &options, src, len, &to);
    segzstd_executor_free(ex);
    segzstd_cache_free(cache);
    *written = to.written;
    return error;
}
