
/*
 * Copyright (C) the libsegzstd authors
 *
 * Where jobs run: on a thread pool, or on the event loop, one in a turn of it.
 *
 * No more jobs run at once than there are CPUs.  The others wait in a queue of
 * the worker.  What is posted to the pool is a runner, which takes jobs out of
 * that queue as long as there are any: the next job neither waits for the loop
 * nor for another thread to wake up, which would often be put on the CPU of the
 * other runner.  Finished jobs go into a list, and a pipe tells the loop.
 *
 * A job that is out blocks its request, so all memory of it is there when the
 * job comes back, whatever happened to the client.
 */


#include "ngx_http_zstd.h"

#if (NGX_THREADS)
#include <ngx_channel.h>
#endif

#if (NGX_LINUX)
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#endif


/*
 * While jobs are out, or responses wait: a worker that is to exit stays, and
 * what waits for memory, or for room in the queue of a pool, tries again.
 */
#define NGX_HTTP_ZSTD_TICK          100

/* how often idle memory is looked at, as long as there is some */
#define NGX_HTTP_ZSTD_TRIM          10000

/* how old the status' copy of the cache's counters may be */
#define NGX_HTTP_ZSTD_STATS_AGE     500

/*
 * After so many refusals of a pool, which nothing of ours runs on, a job is run
 * on the loop rather than wait for ever: content that is read cannot be stored.
 */
#define NGX_HTTP_ZSTD_REFUSED       10

/* what is stored at a time if it cannot be compressed: one block */
#define NGX_HTTP_ZSTD_STORE         (128 * 1024)

/* zstd_memory if it is not set: so much, and so much for each CPU; an encoder
 * of level 19 with the largest window has 83 MiB */
#define NGX_HTTP_ZSTD_MEMORY_AUTO   (128 * 1024 * 1024)

/*
 * The time slice that the loop's thread asks the scheduler for, nanoseconds.
 * With as many threads compressing as there are CPUs its wake-ups had a 99th
 * percentile of 3.2 ms without it, 0.22 ms with it (Linux 6.18, 2 CPUs).
 */
#define NGX_HTTP_ZSTD_SLICE         100000


#if (NGX_THREADS)

typedef struct ngx_http_zstd_runner_s  ngx_http_zstd_runner_t;

struct ngx_http_zstd_runner_s {
    ngx_thread_task_t           task;
    ngx_thread_pool_t          *pool;
    ngx_http_zstd_runner_t     *next;        /* in worker.free */
};

#endif


typedef struct {
    ngx_queue_t                 waiting;     /* of ngx_http_zstd_ctx_t */
    ngx_queue_t                 loop;        /* of tasks, to run on the loop */
    ngx_uint_t                  out;         /* tasks that are out */

    ngx_event_t                 turn;        /* posted: runs one of "loop" */
    ngx_event_t                 wake;        /* posted: serves "waiting" */
    ngx_event_t                 tick;
    ngx_event_t                 trim;
    ngx_connection_t            dummy;       /* for debug logs of timers */

    ngx_msec_t                  copied;      /* the cache's counters */
    ngx_http_zstd_main_conf_t  *zmcf;

#if (NGX_THREADS)
    ngx_thread_mutex_t          mutex;
    ngx_queue_t                 ready;       /* under mutex: tasks to run */
    ngx_queue_t                 done;        /* under mutex: tasks that ran */
    ngx_uint_t                  running;     /* under mutex: runners */
    ngx_uint_t                  limit;       /* of running */
    ngx_fd_t                    notify[2];   /* a pipe; written to when "done"
                                              * becomes non-empty */
    ngx_http_zstd_runner_t     *free;        /* not posted now */
    ngx_cycle_t                *cycle;
    ngx_log_t                  *log;
#endif
} ngx_http_zstd_worker_t;


static ngx_int_t ngx_http_zstd_init_cache(ngx_cycle_t *cycle,
    ngx_http_zstd_main_conf_t *zmcf);
static ngx_int_t ngx_http_zstd_init_dicts(ngx_cycle_t *cycle,
    ngx_http_zstd_main_conf_t *zmcf);
static ngx_uint_t ngx_http_zstd_cpus(void);
static void ngx_http_zstd_ask_slice(ngx_log_t *log);
static void ngx_http_zstd_init_event(ngx_event_t *ev, ngx_log_t *log,
    ngx_event_handler_pt handler);

static ngx_uint_t ngx_http_zstd_is_full(segzstd_cache_stats *stats);
static ngx_int_t ngx_http_zstd_run_inline(ngx_http_zstd_ctx_t *ctx);
static ngx_int_t ngx_http_zstd_short(ngx_http_zstd_ctx_t *ctx);
static ngx_int_t ngx_http_zstd_store(ngx_http_zstd_ctx_t *ctx);
static void ngx_http_zstd_enter_queue(ngx_http_zstd_ctx_t *ctx);
static void ngx_http_zstd_count_cache(void);

static ngx_int_t ngx_http_zstd_submit(ngx_http_zstd_ctx_t *ctx,
    segzstd_job *job);
static ngx_http_zstd_task_t *ngx_http_zstd_get_task(ngx_http_zstd_ctx_t *ctx);
static void ngx_http_zstd_done(ngx_http_zstd_task_t *task);
static void ngx_http_zstd_resume(ngx_http_zstd_ctx_t *ctx);
static void ngx_http_zstd_end_request(ngx_http_request_t *r);
static void ngx_http_zstd_turn_handler(ngx_event_t *ev);
static void ngx_http_zstd_wake_handler(ngx_event_t *ev);
static void ngx_http_zstd_tick_handler(ngx_event_t *ev);
static void ngx_http_zstd_trim_handler(ngx_event_t *ev);

#if (NGX_THREADS)
static ngx_int_t ngx_http_zstd_init_threads(ngx_cycle_t *cycle);
static ngx_int_t ngx_http_zstd_post(ngx_http_zstd_task_t *task);
static ngx_uint_t ngx_http_zstd_may_run(ngx_uint_t running);
static void ngx_http_zstd_post_ready(void);
static ngx_int_t ngx_http_zstd_post_runner(ngx_thread_pool_t *pool);
static void ngx_http_zstd_runner_handler(void *data, ngx_log_t *log);
static void ngx_http_zstd_runner_event_handler(ngx_event_t *ev);
static ngx_http_zstd_task_t *ngx_http_zstd_next_task(ngx_thread_pool_t *pool,
    ngx_http_zstd_task_t *done, ngx_log_t *log);
static void ngx_http_zstd_notify_handler(ngx_event_t *ev);
static void ngx_http_zstd_lower_thread(ngx_log_t *log);
#endif


segzstd_cache         *ngx_http_zstd_cache;
ngx_http_zstd_slot_t  *ngx_http_zstd_slot;

static ngx_http_zstd_worker_t  ngx_http_zstd_worker;


ngx_int_t
ngx_http_zstd_init_worker(ngx_cycle_t *cycle, ngx_http_zstd_main_conf_t *zmcf)
{
    ngx_http_zstd_worker_t  *w;

    w = &ngx_http_zstd_worker;

    ngx_memzero(w, sizeof(ngx_http_zstd_worker_t));

    ngx_queue_init(&w->waiting);
    ngx_queue_init(&w->loop);

    w->dummy.fd = (ngx_socket_t) -1;
    w->zmcf = zmcf;

    ngx_http_zstd_init_event(&w->turn, cycle->log, ngx_http_zstd_turn_handler);
    ngx_http_zstd_init_event(&w->wake, cycle->log, ngx_http_zstd_wake_handler);
    ngx_http_zstd_init_event(&w->tick, cycle->log, ngx_http_zstd_tick_handler);
    ngx_http_zstd_init_event(&w->trim, cycle->log, ngx_http_zstd_trim_handler);

    w->trim.cancelable = 1;

    ngx_http_zstd_slot = ngx_http_zstd_status_slot(cycle, zmcf);

#if (NGX_THREADS)

    if (zmcf->pools.nelts) {

        if (ngx_http_zstd_init_threads(cycle) != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_http_zstd_ask_slice(cycle->log);
    }

#endif

    if (ngx_http_zstd_init_cache(cycle, zmcf) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_zstd_init_dicts(cycle, zmcf);
}


static void
ngx_http_zstd_init_event(ngx_event_t *ev, ngx_log_t *log,
    ngx_event_handler_pt handler)
{
    ev->handler = handler;
    ev->data = &ngx_http_zstd_worker.dummy;
    ev->log = log;
}


static ngx_int_t
ngx_http_zstd_init_cache(ngx_cycle_t *cycle, ngx_http_zstd_main_conf_t *zmcf)
{
    int                     rc;
    segzstd_cache_options   options = SEGZSTD_CACHE_OPTIONS_INIT;

    options.workers = 1;

#if (NGX_THREADS)
    if (zmcf->pools.nelts) {
        options.workers = (unsigned) ngx_http_zstd_worker.limit;
    }
#endif

    options.encoders_kept = (unsigned) zmcf->compressors;
    options.retention = (segzstd_retention) zmcf->retention;
    options.retain_bytes = (uint64_t) zmcf->retain_bytes;

    if (zmcf->memory == NGX_CONF_UNSET) {
        zmcf->memory = (off_t) NGX_HTTP_ZSTD_MEMORY_AUTO
                       * (options.workers + 1);
    }

    options.byte_budget = (uint64_t) zmcf->memory;

    rc = segzstd_cache_new(&ngx_http_zstd_cache, &options);

    if (rc != 0) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "zstd: cannot make the encoder cache: %s",
                      segzstd_strerror(rc));
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_zstd_init_dicts(ngx_cycle_t *cycle, ngx_http_zstd_main_conf_t *zmcf)
{
    int                     rc;
    ngx_uint_t              i;
    ngx_http_zstd_dict_t  **dict;

    dict = zmcf->dicts.elts;

    for (i = 0; i < zmcf->dicts.nelts; i++) {

        rc = segzstd_dict_new(&dict[i]->dict, ngx_http_zstd_cache,
                              dict[i]->bytes.data, dict[i]->bytes.len);

        if (rc != 0) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                          "zstd: cannot use dictionary \"%V\": %s",
                          &dict[i]->file, segzstd_strerror(rc));
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


void
ngx_http_zstd_exit_worker(ngx_http_zstd_main_conf_t *zmcf)
{
    ngx_uint_t              i;
    segzstd_cache_stats     stats = SEGZSTD_CACHE_STATS_INIT;
    ngx_http_zstd_dict_t  **dict;

    if (ngx_http_zstd_cache == NULL) {
        return;
    }

    (void) segzstd_cache_get_stats(ngx_http_zstd_cache, &stats);

    /* requests that were open end with the process */

    if (stats.streams_open) {
        return;
    }

    dict = zmcf->dicts.elts;

    for (i = 0; i < zmcf->dicts.nelts; i++) {
        segzstd_dict_free(dict[i]->dict);
    }

    segzstd_cache_free(ngx_http_zstd_cache);
    ngx_http_zstd_cache = NULL;

}


/* that this worker may use */

static ngx_uint_t
ngx_http_zstd_cpus(void)
{
#if (NGX_LINUX)
    cpu_set_t  set;

    if (sched_getaffinity(0, sizeof(cpu_set_t), &set) == 0) {
        return ngx_max(CPU_COUNT(&set), 1);
    }
#endif

    return ngx_ncpu > 0 ? ngx_ncpu : 1;
}


/* a refusal is no error: older kernels know of no slice */

static void
ngx_http_zstd_ask_slice(ngx_log_t *log)
{
#if (NGX_LINUX && defined SYS_sched_setattr && defined SYS_sched_getattr)

    struct {
        uint32_t  size;
        uint32_t  policy;
        uint64_t  flags;
        int32_t   nice;
        uint32_t  priority;
        uint64_t  runtime;
        uint64_t  deadline;
        uint64_t  period;
    } attr;

    ngx_memzero(&attr, sizeof(attr));

    if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) == -1
        || attr.policy != SCHED_OTHER)
    {
        return;
    }

    attr.size = sizeof(attr);
    attr.runtime = NGX_HTTP_ZSTD_SLICE;

    if (syscall(SYS_sched_setattr, 0, &attr, 0) == -1) {
        ngx_log_error(NGX_LOG_INFO, log, ngx_errno,
                      "zstd: the event loop got no short time slice");
    }

#endif
}


ngx_uint_t
ngx_http_zstd_has_memory(ngx_http_zstd_loc_conf_t *conf, off_t length)
{
    uint64_t             memory;
    segzstd_cache_stats  stats = SEGZSTD_CACHE_STATS_INIT;

    memory = (uint64_t) ngx_http_zstd_worker.zmcf->memory;

    if (memory && ngx_http_zstd_least_memory(conf, length) > memory) {
        return 0;
    }

    (void) segzstd_cache_get_stats(ngx_http_zstd_cache, &stats);

    return !ngx_http_zstd_is_full(&stats);
}


/* the last quarter is for encoders and for what was begun */

static ngx_uint_t
ngx_http_zstd_is_full(segzstd_cache_stats *stats)
{
    uint64_t  memory;

    memory = (uint64_t) ngx_http_zstd_worker.zmcf->memory;

    return memory && stats->bytes - stats->idle_bytes > memory - memory / 4;
}


size_t
ngx_http_zstd_input_bytes(void)
{
    uint64_t             share;
    segzstd_cache_stats  stats = SEGZSTD_CACHE_STATS_INIT;

    (void) segzstd_cache_get_stats(ngx_http_zstd_cache, &stats);

    share = (uint64_t) ngx_http_zstd_worker.zmcf->memory;

    if (share == 0) {
        share = 2 * NGX_HTTP_ZSTD_MEMORY_AUTO;
    }

    share /= 8 * (stats.streams_open + 1);

    if (ngx_http_zstd_is_full(&stats)) {
        share = 0;
    }

    share = ngx_min(share, NGX_HTTP_ZSTD_INPUT_MAX);

    return (size_t) ngx_max(share, NGX_HTTP_ZSTD_INPUT_MIN);
}


ngx_int_t
ngx_http_zstd_work(ngx_http_zstd_ctx_t *ctx)
{
    int           rc;
    ngx_int_t     n;
    segzstd_job  *job = NULL;

    ngx_http_zstd_leave_queue(ctx);

    if (ctx->no_input || ctx->no_job) {
        ngx_http_zstd_enter_queue(ctx);
    }

    if (ctx->no_job) {
        return NGX_OK;
    }

    for ( ;; ) {

        n = ngx_http_zstd_run_inline(ctx);

        if (n == NGX_OK) {
            continue;
        }

        if (n == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (ngx_http_zstd_is_slow(ctx)) {
            return NGX_OK;
        }

        rc = (n == NGX_AGAIN) ? SEGZSTD_ERR_NOMEM
                              : segzstd_stream_poll_job(ctx->stream, &job);

        if (rc == SEGZSTD_ERR_NOMEM) {

            if (ngx_http_zstd_short(ctx) != NGX_OK) {
                return NGX_ERROR;
            }

            if (ctx->no_job) {
                return NGX_OK;
            }

            continue;
        }

        if (rc != 0) {
            return NGX_ERROR;
        }

        if (job == NULL) {

            if (segzstd_stream_want_job(ctx->stream)) {
                ngx_http_zstd_enter_queue(ctx);
            }

            return NGX_OK;
        }

        n = ngx_http_zstd_submit(ctx, job);

        if (n == NGX_OK) {
            continue;
        }

        /* not run, so its content waits as before */

        (void) segzstd_job_complete(job);

        if (n == NGX_ERROR) {
            return NGX_ERROR;
        }

        ngx_http_zstd_slot->queue_full++;

        n = ngx_http_zstd_store(ctx);

        if (n == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (n == NGX_DECLINED) {
            ctx->refused++;
            ngx_http_zstd_enter_queue(ctx);
            return NGX_OK;
        }
    }
}


/*
 * There was no memory for a job.  What has come so far is stored; what jobs
 * read by themselves waits until somebody has given memory back.
 */

static ngx_int_t
ngx_http_zstd_short(ngx_http_zstd_ctx_t *ctx)
{
    ngx_int_t  rc;

    ngx_http_zstd_slot->no_memory++;

    rc = ngx_http_zstd_store(ctx);

    if (rc == NGX_DECLINED) {
        ctx->no_job = 1;
        ngx_http_zstd_enter_queue(ctx);
        return NGX_OK;
    }

    return rc;
}


/*
 * NGX_OK: a job was run; NGX_DECLINED: there is none for the loop; NGX_AGAIN:
 * there was no memory for it.
 */

static ngx_int_t
ngx_http_zstd_run_inline(ngx_http_zstd_ctx_t *ctx)
{
    int           rc;
    segzstd_job  *job;

    if (ctx->conf->inline_us == 0) {
        return NGX_DECLINED;
    }

    rc = segzstd_stream_poll_inline(ctx->stream,
                                    (uint64_t) ctx->conf->inline_us * 1000,
                                    &job);

    if (rc == 0 && job == NULL) {
        return NGX_DECLINED;
    }

    if (rc == 0) {
        segzstd_job_run(job);
        rc = segzstd_job_complete(job);

        ngx_http_zstd_slot->jobs_loop++;
        ngx_http_zstd_count_cache();
    }

    if (rc == SEGZSTD_ERR_NOMEM) {
        return NGX_AGAIN;
    }

    return rc == 0 ? NGX_OK : NGX_ERROR;
}


/* rather than wait: what has come so far goes into the frame as it is */

static ngx_int_t
ngx_http_zstd_store(ngx_http_zstd_ctx_t *ctx)
{
    int     rc;
    size_t  stored;

    rc = segzstd_stream_store(ctx->stream, NGX_HTTP_ZSTD_STORE, &stored);

    if (rc != 0 && rc != SEGZSTD_ERR_NOMEM) {
        return NGX_ERROR;
    }

    return stored ? NGX_OK : NGX_DECLINED;
}


static void
ngx_http_zstd_enter_queue(ngx_http_zstd_ctx_t *ctx)
{
    ngx_http_zstd_worker_t  *w;

    w = &ngx_http_zstd_worker;

    if (!ctx->queued) {
        ctx->queued = 1;
        ngx_queue_insert_tail(&w->waiting, &ctx->waiting);
    }

    if (!w->tick.timer_set) {
        ngx_add_timer(&w->tick, NGX_HTTP_ZSTD_TICK);
    }
}


void
ngx_http_zstd_leave_queue(ngx_http_zstd_ctx_t *ctx)
{
    if (ctx->queued) {
        ctx->queued = 0;
        ngx_queue_remove(&ctx->waiting);
    }
}


static ngx_int_t
ngx_http_zstd_submit(ngx_http_zstd_ctx_t *ctx, segzstd_job *job)
{
    ngx_http_zstd_task_t    *task;
    ngx_http_zstd_worker_t  *w;

    w = &ngx_http_zstd_worker;

    task = ngx_http_zstd_get_task(ctx);
    if (task == NULL) {
        return NGX_ERROR;
    }

    task->job = job;
    task->ctx = ctx;

#if (NGX_THREADS)

    if (ctx->conf->pool && ctx->refused < NGX_HTTP_ZSTD_REFUSED) {

        task->pool = ctx->conf->pool;

        if (ngx_http_zstd_post(task) != NGX_OK) {
            task->next = ctx->free_tasks;
            ctx->free_tasks = task;
            return NGX_BUSY;
        }

        ctx->pool = 1;
        ctx->refused = 0;

        goto submitted;
    }

#endif

    ngx_queue_insert_tail(&w->loop, &task->queue);

    if (!w->turn.posted) {
        ngx_post_event(&w->turn, &ngx_posted_next_events);
    }

#if (NGX_THREADS)

submitted:

#endif

    if (ctx->tasks++ == 0) {
        ctx->request->main->blocked++;
    }

    w->out++;

    if (!w->tick.timer_set) {
        ngx_add_timer(&w->tick, NGX_HTTP_ZSTD_TICK);
    }

    return NGX_OK;
}


static ngx_http_zstd_task_t *
ngx_http_zstd_get_task(ngx_http_zstd_ctx_t *ctx)
{
    ngx_http_zstd_task_t  *task;

    task = ctx->free_tasks;

    if (task) {
        ctx->free_tasks = task->next;
        ngx_memzero(task, sizeof(ngx_http_zstd_task_t));
        return task;
    }

    return ngx_pcalloc(ctx->request->pool, sizeof(ngx_http_zstd_task_t));
}


/* a job is back on the loop */

static void
ngx_http_zstd_done(ngx_http_zstd_task_t *task)
{
    int                      rc;
    ngx_http_zstd_ctx_t     *ctx;
    ngx_http_zstd_worker_t  *w;

    w = &ngx_http_zstd_worker;
    ctx = task->ctx;

    rc = segzstd_job_complete(task->job);

    task->next = ctx->free_tasks;
    ctx->free_tasks = task;

    if (--ctx->tasks == 0) {
        ctx->request->main->blocked--;
    }

    if (--w->out == 0 && ngx_queue_empty(&w->waiting) && w->tick.timer_set) {
        ngx_del_timer(&w->tick);
    }

    if (!ngx_queue_empty(&w->waiting) && !w->wake.posted) {
        ngx_post_event(&w->wake, &ngx_posted_events);
    }

    ngx_http_zstd_count_cache();

    if (rc == SEGZSTD_ERR_NOMEM) {
        rc = (ngx_http_zstd_short(ctx) == NGX_OK)
             ? 0 : segzstd_stream_error(ctx->stream);
    }

    if (rc != 0) {
        ctx->error = rc;
    }

    ngx_http_zstd_resume(ctx);
}


/* goes on with a response, from the top of the loop */

static void
ngx_http_zstd_resume(ngx_http_zstd_ctx_t *ctx)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r, *active;

    r = ctx->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, c->log, 0,
                   "http zstd resume: \"%V?%V\" t:%d",
                   &r->uri, &r->args, (int) ctx->terminated);

    if (ctx->terminated) {

        /* the request waits for its jobs only */

        if (ctx->tasks == 0) {
            ngx_http_zstd_end_request(r);
        }

        return;
    }

    active = c->data;

    if (ngx_http_zstd_drive(ctx) == NGX_ERROR) {
        ngx_http_zstd_end_request(active);
        return;
    }

    /* whoever makes the content, or ends the request */

    active->write_event_handler(active);

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_zstd_end_request(ngx_http_request_t *r)
{
    ngx_connection_t  *c;

    c = r->connection;

    /* its handler, an upstream perhaps, gives its own reference up meanwhile */

    r->main->count++;

    ngx_http_finalize_request(r, NGX_ERROR);
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_zstd_turn_handler(ngx_event_t *ev)
{
    ngx_queue_t             *q;
    ngx_http_zstd_task_t    *task;
    ngx_http_zstd_worker_t  *w;

    w = &ngx_http_zstd_worker;

    if (ngx_queue_empty(&w->loop)) {
        return;
    }

    q = ngx_queue_head(&w->loop);
    ngx_queue_remove(q);

    task = ngx_queue_data(q, ngx_http_zstd_task_t, queue);

    segzstd_job_run(task->job);

    ngx_http_zstd_slot->jobs_loop++;

    if (!ngx_queue_empty(&w->loop)) {
        ngx_post_event(&w->turn, &ngx_posted_next_events);
    }

    ngx_http_zstd_done(task);
}


/* in the order of their waiting, as long as there are jobs to be had */

static void
ngx_http_zstd_wake_handler(ngx_event_t *ev)
{
    ngx_uint_t               n, tasks;
    ngx_queue_t             *q;
    ngx_http_zstd_ctx_t     *ctx;
    ngx_http_zstd_worker_t  *w;

    w = &ngx_http_zstd_worker;

    n = 0;

    for (q = ngx_queue_head(&w->waiting);
         q != ngx_queue_sentinel(&w->waiting);
         q = ngx_queue_next(q))
    {
        n++;
    }

    while (n-- && !ngx_queue_empty(&w->waiting)) {

        q = ngx_queue_head(&w->waiting);
        ctx = ngx_queue_data(q, ngx_http_zstd_ctx_t, waiting);

        tasks = ctx->tasks;

        ctx->no_input = 0;
        ctx->no_job = 0;

        ngx_http_zstd_resume(ctx);

        /* may be freed now, but then it is not in the queue */

        if (ngx_queue_empty(&w->waiting)
            || ngx_queue_last(&w->waiting) != q)
        {
            continue;
        }

        if (ctx->tasks == tasks && !ctx->no_input && !ctx->no_job) {

            /* there are no more jobs to be had: stays the first */

            ngx_queue_remove(q);
            ngx_queue_insert_head(&w->waiting, q);
            break;
        }
    }
}


static void
ngx_http_zstd_tick_handler(ngx_event_t *ev)
{
    ngx_http_zstd_worker_t  *w;

    w = &ngx_http_zstd_worker;

#if (NGX_THREADS)
    ngx_http_zstd_post_ready();
#endif

    if (!ngx_queue_empty(&w->waiting)) {
        ngx_http_zstd_wake_handler(&w->wake);
    }

    ngx_http_zstd_count_cache();

    if ((w->out || !ngx_queue_empty(&w->waiting)) && !ev->timer_set) {
        ngx_add_timer(ev, NGX_HTTP_ZSTD_TICK);
    }
}


static void
ngx_http_zstd_trim_handler(ngx_event_t *ev)
{
    segzstd_cache_stats  stats = SEGZSTD_CACHE_STATS_INIT;

    (void) segzstd_cache_trim(ngx_http_zstd_cache,
                              (uint64_t) ngx_current_msec * 1000000);

    ngx_http_zstd_worker.copied = 0;
    ngx_http_zstd_count_cache();

    (void) segzstd_cache_get_stats(ngx_http_zstd_cache, &stats);

    if (stats.idle_bytes && !ev->timer_set) {
        ngx_add_timer(ev, NGX_HTTP_ZSTD_TRIM);
    }
}


/* for the status, after a job */

static void
ngx_http_zstd_count_cache(void)
{
    segzstd_cache_stats      stats = SEGZSTD_CACHE_STATS_INIT;
    ngx_http_zstd_worker_t  *w;

    w = &ngx_http_zstd_worker;

    if (w->copied
        && ngx_current_msec - w->copied < NGX_HTTP_ZSTD_STATS_AGE)
    {
        return;
    }

    w->copied = ngx_current_msec;

    (void) segzstd_cache_get_stats(ngx_http_zstd_cache, &stats);

    ngx_http_zstd_slot->cache = stats;

    if (!w->trim.timer_set) {
        ngx_add_timer(&w->trim, NGX_HTTP_ZSTD_TRIM);
    }
}


#if (NGX_THREADS)

static ngx_int_t
ngx_http_zstd_init_threads(ngx_cycle_t *cycle)
{
    ngx_http_zstd_worker_t  *w;

    w = &ngx_http_zstd_worker;

    ngx_queue_init(&w->ready);
    ngx_queue_init(&w->done);

    w->cycle = cycle;
    w->log = cycle->log;
    w->limit = ngx_http_zstd_cpus();

    if (ngx_thread_mutex_create(&w->mutex, cycle->log) != NGX_OK) {
        return NGX_ERROR;
    }

    if (pipe(w->notify) == -1) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "zstd: pipe() failed");
        return NGX_ERROR;
    }

    if (ngx_nonblocking(w->notify[0]) == -1
        || ngx_nonblocking(w->notify[1]) == -1)
    {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "zstd: " ngx_nonblocking_n " failed");
        return NGX_ERROR;
    }

    return ngx_add_channel_event(cycle, w->notify[0], NGX_READ_EVENT,
                                 ngx_http_zstd_notify_handler);
}


/* NGX_BUSY: the pool took no runner, and there is none to wait for */

static ngx_int_t
ngx_http_zstd_post(ngx_http_zstd_task_t *task)
{
    ngx_int_t                rc;
    ngx_uint_t               start;
    ngx_http_zstd_worker_t  *w;

    w = &ngx_http_zstd_worker;

    (void) ngx_thread_mutex_lock(&w->mutex, w->log);

    ngx_queue_insert_tail(&w->ready, &task->queue);

    start = ngx_http_zstd_may_run(w->running);

    if (start) {
        w->running++;
    }

    (void) ngx_thread_mutex_unlock(&w->mutex, w->log);

    if (!start || ngx_http_zstd_post_runner(task->pool) == NGX_OK) {
        return NGX_OK;
    }

    rc = NGX_OK;

    (void) ngx_thread_mutex_lock(&w->mutex, w->log);

    if (--w->running == 0) {
        ngx_queue_remove(&task->queue);
        rc = NGX_BUSY;
    }

    (void) ngx_thread_mutex_unlock(&w->mutex, w->log);

    if (rc == NGX_OK) {
        ngx_http_zstd_slot->queue_full++;
    }

    return rc;
}


/*
 * Whether there is a CPU for one more beside so many runners; under the mutex,
 * by any thread.  One of this worker may always run.
 */

static ngx_uint_t
ngx_http_zstd_may_run(ngx_uint_t running)
{
    ngx_http_zstd_worker_t  *w;

    w = &ngx_http_zstd_worker;

    return running == 0
           || running + ngx_http_zstd_status_others_running(w->zmcf,
                                                         ngx_http_zstd_slot)
              < w->limit;
}


/* for jobs that a pool had refused, or that wait for another pool */

static void
ngx_http_zstd_post_ready(void)
{
    ngx_queue_t             *q;
    ngx_http_zstd_task_t    *task;
    ngx_http_zstd_worker_t  *w;

    w = &ngx_http_zstd_worker;

    if (w->cycle == NULL) {
        return;
    }

    task = NULL;

    (void) ngx_thread_mutex_lock(&w->mutex, w->log);

    if (!ngx_queue_empty(&w->ready) && ngx_http_zstd_may_run(w->running)) {
        q = ngx_queue_head(&w->ready);
        task = ngx_queue_data(q, ngx_http_zstd_task_t, queue);
        w->running++;
    }

    (void) ngx_thread_mutex_unlock(&w->mutex, w->log);

    if (task == NULL || ngx_http_zstd_post_runner(task->pool) == NGX_OK) {
        return;
    }

    (void) ngx_thread_mutex_lock(&w->mutex, w->log);

    w->running--;

    (void) ngx_thread_mutex_unlock(&w->mutex, w->log);
}


static ngx_int_t
ngx_http_zstd_post_runner(ngx_thread_pool_t *pool)
{
    ngx_http_zstd_runner_t  *runner;
    ngx_http_zstd_worker_t  *w;

    w = &ngx_http_zstd_worker;

    runner = w->free;

    if (runner) {
        w->free = runner->next;

    } else {
        runner = ngx_pcalloc(w->cycle->pool, sizeof(ngx_http_zstd_runner_t));
        if (runner == NULL) {
            return NGX_ERROR;
        }

        runner->task.ctx = runner;
        runner->task.handler = ngx_http_zstd_runner_handler;
        runner->task.event.handler = ngx_http_zstd_runner_event_handler;
        runner->task.event.data = runner;
        runner->task.event.log = w->log;
    }

    runner->pool = pool;

    if (ngx_thread_task_post(pool, &runner->task) == NGX_OK) {
        return NGX_OK;
    }

    runner->next = w->free;
    w->free = runner;

    return NGX_ERROR;
}


/* on a thread of the pool */

static void
ngx_http_zstd_runner_handler(void *data, ngx_log_t *log)
{
    ngx_http_zstd_runner_t *runner = data;

    ngx_http_zstd_task_t  *task;

    if (ngx_http_zstd_worker.zmcf->nice) {
        ngx_http_zstd_lower_thread(log);
    }

    task = ngx_http_zstd_next_task(runner->pool, NULL, log);

    while (task) {
        (void) ngx_atomic_fetch_add(&ngx_http_zstd_slot->jobs_running, 1);

        segzstd_job_run(task->job);

        (void) ngx_atomic_fetch_add(&ngx_http_zstd_slot->jobs_running, -1);

        task = ngx_http_zstd_next_task(runner->pool, task, log);
    }
}


/* gives a task back to the loop; NULL: the runner has to end */

static ngx_http_zstd_task_t *
ngx_http_zstd_next_task(ngx_thread_pool_t *pool, ngx_http_zstd_task_t *done,
    ngx_log_t *log)
{
    ngx_uint_t               notify;
    ngx_queue_t             *q;
    ngx_http_zstd_task_t    *next;
    ngx_http_zstd_worker_t  *w;

    w = &ngx_http_zstd_worker;
    notify = 0;
    next = NULL;

    (void) ngx_thread_mutex_lock(&w->mutex, log);

    if (done) {
        notify = ngx_queue_empty(&w->done);
        ngx_queue_insert_tail(&w->done, &done->queue);
    }

    if (ngx_http_zstd_may_run(w->running - 1)) {

        for (q = ngx_queue_head(&w->ready);
             q != ngx_queue_sentinel(&w->ready);
             q = ngx_queue_next(q))
        {
            next = ngx_queue_data(q, ngx_http_zstd_task_t, queue);

            if (next->pool == pool) {
                ngx_queue_remove(q);
                break;
            }

            next = NULL;
        }
    }

    if (next == NULL) {
        w->running--;
    }

    (void) ngx_thread_mutex_unlock(&w->mutex, log);

    /* a full pipe is as good as a byte more */

    if (notify && write(w->notify[1], "", 1) == -1 && ngx_errno != NGX_EAGAIN) {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno, "zstd: write() failed");
    }

    return next;
}


static void
ngx_http_zstd_runner_event_handler(ngx_event_t *ev)
{
    ngx_http_zstd_runner_t *runner = ev->data;

    ngx_http_zstd_worker_t  *w;

    w = &ngx_http_zstd_worker;

    runner->next = w->free;
    w->free = runner;

    ngx_http_zstd_post_ready();
}


/* jobs are back */

static void
ngx_http_zstd_notify_handler(ngx_event_t *ev)
{
    u_char                   buf[64];
    ngx_queue_t              done, *q;
    ngx_http_zstd_task_t    *task;
    ngx_http_zstd_worker_t  *w;

    w = &ngx_http_zstd_worker;

    while (read(w->notify[0], buf, sizeof(buf)) == sizeof(buf)) { /* void */ }

    ngx_queue_init(&done);

    (void) ngx_thread_mutex_lock(&w->mutex, w->log);

    if (!ngx_queue_empty(&w->done)) {
        ngx_queue_add(&done, &w->done);
        ngx_queue_init(&w->done);
    }

    (void) ngx_thread_mutex_unlock(&w->mutex, w->log);

    while (!ngx_queue_empty(&done)) {
        q = ngx_queue_head(&done);
        ngx_queue_remove(q);

        task = ngx_queue_data(q, ngx_http_zstd_task_t, queue);

        ngx_http_zstd_slot->jobs_pool++;

        ngx_http_zstd_done(task);
    }

    ngx_http_zstd_post_ready();
}


/* once in the life of a thread; it cannot come back */

static void
ngx_http_zstd_lower_thread(ngx_log_t *log)
{
#if (NGX_LINUX)

    static __thread ngx_uint_t  lowered;

    if (lowered) {
        return;
    }

    lowered = 1;

    if (setpriority(PRIO_PROCESS, (id_t) syscall(SYS_gettid),
                    (int) ngx_http_zstd_worker.zmcf->nice)
        == -1)
    {
        ngx_log_error(NGX_LOG_ERR, log, ngx_errno,
                      "zstd: setpriority() failed");
    }

#endif
}

#endif
