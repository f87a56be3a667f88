
/*
 * Copyright (C) the libsegzstd authors
 *
 * The jobs of responses: taking them, having them run, and what follows when
 * they are back.  On the event loop one is run in a turn of it.
 *
 * A job that is out blocks its request, so all memory of it is there when the
 * job comes back, whatever happened to the client.
 */


#include "ngx_http_zstd.h"


/*
 * While jobs are out, or responses wait: a worker that is to exit stays, and
 * what waits for memory, or for room in the queue of a pool, tries again.
 */
#define NGX_HTTP_ZSTD_TICK          100

/*
 * After so many refusals of a pool, which nothing of ours runs on, a job is run
 * on the loop rather than wait for ever: content that is read cannot be stored.
 */
#define NGX_HTTP_ZSTD_REFUSED       10

/*
 * A response goes on until it is done, before another begins: that takes the
 * fewest encoders, and ends the first ones soonest.  After so many
 * milliseconds it gives way to a much shorter one that had no job yet, if
 * there is one.  Turn and turn about of equal ones would not do: each needs an
 * encoder of its own, or primed anew, a second at slow levels, and all end
 * late.
 */
#define NGX_HTTP_ZSTD_TURN          2000

/* what is stored at a time if it cannot be compressed: one block */
#define NGX_HTTP_ZSTD_STORE         (128 * 1024)


typedef struct {
    ngx_queue_t   waiting;     /* of ngx_http_zstd_ctx_t */
    ngx_queue_t   working;     /* of those that have tasks out */
    ngx_queue_t   loop;        /* of tasks, to run on the loop */
    ngx_uint_t    out;         /* tasks that are out */

    ngx_event_t   turn;        /* posted: runs one of "loop" */
    ngx_event_t   wake;        /* posted: serves "waiting" */
    ngx_event_t   tick;
} ngx_http_zstd_tasks_t;


static ngx_int_t ngx_http_zstd_run_inline(ngx_http_zstd_ctx_t *ctx);
static ngx_int_t ngx_http_zstd_short(ngx_http_zstd_ctx_t *ctx);
static ngx_int_t ngx_http_zstd_store(ngx_http_zstd_ctx_t *ctx);
static void ngx_http_zstd_enter_queue(ngx_http_zstd_ctx_t *ctx);

static ngx_int_t ngx_http_zstd_submit(ngx_http_zstd_ctx_t *ctx,
    segzstd_job *job);
static ngx_http_zstd_task_t *ngx_http_zstd_get_task(ngx_http_zstd_ctx_t *ctx);
static ngx_http_zstd_ctx_t *ngx_http_zstd_shorter(ngx_http_zstd_ctx_t *ctx);
static void ngx_http_zstd_resume(ngx_http_zstd_ctx_t *ctx);
static void ngx_http_zstd_end_request(ngx_http_request_t *r);
static void ngx_http_zstd_turn_handler(ngx_event_t *ev);
static void ngx_http_zstd_wake_handler(ngx_event_t *ev);
static void ngx_http_zstd_tick_handler(ngx_event_t *ev);
static void ngx_http_zstd_keep(ngx_http_zstd_ctx_t *ctx);


static ngx_http_zstd_tasks_t  ngx_http_zstd_tasks;


void
ngx_http_zstd_init_tasks(ngx_cycle_t *cycle)
{
    ngx_http_zstd_tasks_t  *t;

    t = &ngx_http_zstd_tasks;

    ngx_memzero(t, sizeof(ngx_http_zstd_tasks_t));

    ngx_queue_init(&t->waiting);
    ngx_queue_init(&t->working);
    ngx_queue_init(&t->loop);

    ngx_http_zstd_init_event(&t->turn, cycle->log, ngx_http_zstd_turn_handler);
    ngx_http_zstd_init_event(&t->wake, cycle->log, ngx_http_zstd_wake_handler);
    ngx_http_zstd_init_event(&t->tick, cycle->log, ngx_http_zstd_tick_handler);
}


ngx_int_t
ngx_http_zstd_work(ngx_http_zstd_ctx_t *ctx)
{
    int           rc;
    ngx_int_t     n;
    segzstd_job  *job = NULL;

    ngx_http_zstd_leave_queue(ctx);

    if (ctx->no_input || ctx->no_job || ctx->gives_way) {
        ngx_http_zstd_enter_queue(ctx);
    }

    if (ctx->no_job || ctx->gives_way) {
        return NGX_OK;
    }

    /* a client that is slower than one thread gets no more of them */

    segzstd_stream_set_max_jobs(ctx->stream, ctx->busy ? 1 : 0);

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
        ngx_http_zstd_count(ctx);
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
    ngx_http_zstd_tasks_t  *t;

    t = &ngx_http_zstd_tasks;

    if (!ctx->queued) {
        ctx->queued = 1;
        ngx_queue_insert_tail(&t->waiting, &ctx->waiting);
    }

    if (!t->tick.timer_set) {
        ngx_add_timer(&t->tick, NGX_HTTP_ZSTD_TICK);
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
    ngx_http_zstd_task_t   *task;
    ngx_http_zstd_tasks_t  *t;

    t = &ngx_http_zstd_tasks;

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

    ngx_queue_insert_tail(&t->loop, &task->queue);

    if (!t->turn.posted) {
        ngx_post_event(&t->turn, &ngx_posted_next_events);
    }

#if (NGX_THREADS)

submitted:

#endif

    if (ctx->turn == 0) {
        ctx->turn = ngx_current_msec;
        ctx->begun = 1;
    }

    if (ctx->tasks++ == 0) {
        ctx->request->main->blocked++;
        ngx_queue_insert_tail(&t->working, &ctx->working);
    }

    t->out++;

    if (!t->tick.timer_set) {
        ngx_add_timer(&t->tick, NGX_HTTP_ZSTD_TICK);
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

void
ngx_http_zstd_done(ngx_http_zstd_task_t *task)
{
    int                     rc;
    ngx_http_zstd_ctx_t    *ctx, *other;
    ngx_http_zstd_tasks_t  *t;

    t = &ngx_http_zstd_tasks;
    ctx = task->ctx;

    rc = segzstd_job_complete(task->job);

    task->next = ctx->free_tasks;
    ctx->free_tasks = task;

    if (--ctx->tasks == 0) {
        ctx->request->main->blocked--;
        ngx_queue_remove(&ctx->working);
    }

    if (--t->out == 0 && ngx_queue_empty(&t->waiting) && t->tick.timer_set) {
        ngx_del_timer(&t->tick);
    }

    /* a job without memory gives none back: the others wait for one that has */

    if (rc != SEGZSTD_ERR_NOMEM && !ngx_queue_empty(&t->waiting)
        && !t->wake.posted)
    {
        ngx_post_event(&t->wake, &ngx_posted_events);
    }

    if (ctx->tasks == 0 && !ngx_queue_empty(&t->waiting)
        && ngx_current_msec - ctx->turn >= NGX_HTTP_ZSTD_TURN)
    {
        other = ngx_http_zstd_shorter(ctx);

        if (other) {
            ctx->turn = 0;
            ctx->gives_way = 1;

            ngx_queue_remove(&other->waiting);
            ngx_queue_insert_head(&t->waiting, &other->waiting);
        }
    }

    ngx_http_zstd_count(ctx);
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


/*
 * The first that waits for a job, had none, and is at most half of what is left
 * of this one, as far as is known.
 */

static ngx_http_zstd_ctx_t *
ngx_http_zstd_shorter(ngx_http_zstd_ctx_t *ctx)
{
    off_t                   left;
    ngx_queue_t            *q;
    ngx_http_zstd_ctx_t    *other;
    segzstd_stream_stats    stats = SEGZSTD_STREAM_STATS_INIT;
    ngx_http_zstd_tasks_t  *t;

    t = &ngx_http_zstd_tasks;
    left = ctx->length;

    if (left != -1 && segzstd_stream_get_stats(ctx->stream, &stats) == 0) {
        left -= (off_t) stats.bytes_done;
    }

    for (q = ngx_queue_head(&t->waiting);
         q != ngx_queue_sentinel(&t->waiting);
         q = ngx_queue_next(q))
    {
        other = ngx_queue_data(q, ngx_http_zstd_ctx_t, waiting);

        if (!other->begun && !other->no_input && !other->no_job
            && (ctx->length == -1 || other->length <= left / 2))
        {
            return other;
        }
    }

    return NULL;
}


/* goes on with a response, from the top of the loop */

static void
ngx_http_zstd_resume(ngx_http_zstd_ctx_t *ctx)
{
    ngx_connection_t     *c;
    ngx_http_request_t   *r, *active;
    ngx_http_upstream_t  *u;

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
    u = active->upstream;

    if (ngx_http_zstd_drive(ctx) == NGX_ERROR
        && !(u && (u->cacheable || u->store)))
    {
        ngx_http_zstd_end_request(active);
        return;
    }

    /* whoever makes the content, stores it perhaps, or ends the request */

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
    ngx_queue_t            *q;
    ngx_http_zstd_task_t   *task;
    ngx_http_zstd_tasks_t  *t;

    t = &ngx_http_zstd_tasks;

    if (ngx_queue_empty(&t->loop)) {
        return;
    }

    q = ngx_queue_head(&t->loop);
    ngx_queue_remove(q);

    task = ngx_queue_data(q, ngx_http_zstd_task_t, queue);

    segzstd_job_run(task->job);

    ngx_http_zstd_slot->jobs_loop++;

    if (!ngx_queue_empty(&t->loop)) {
        ngx_post_event(&t->turn, &ngx_posted_next_events);
    }

    ngx_http_zstd_done(task);
}


/* in the order of their waiting, as long as there are jobs to be had */

static void
ngx_http_zstd_wake_handler(ngx_event_t *ev)
{
    ngx_uint_t              n, tasks;
    ngx_queue_t            *q;
    ngx_http_zstd_ctx_t    *ctx;
    ngx_http_zstd_tasks_t  *t;

    t = &ngx_http_zstd_tasks;

    n = 0;

    for (q = ngx_queue_head(&t->waiting);
         q != ngx_queue_sentinel(&t->waiting);
         q = ngx_queue_next(q))
    {
        n++;
    }

    while (n-- && !ngx_queue_empty(&t->waiting)) {

        q = ngx_queue_head(&t->waiting);
        ctx = ngx_queue_data(q, ngx_http_zstd_ctx_t, waiting);

        tasks = ctx->tasks;

        ctx->no_input = 0;
        ctx->no_job = 0;
        ctx->gives_way = 0;

        ngx_http_zstd_resume(ctx);

        /* may be freed now, but then it is not in the queue */

        if (ngx_queue_empty(&t->waiting)
            || ngx_queue_last(&t->waiting) != q)
        {
            continue;
        }

        if (ctx->tasks == tasks && !ctx->no_input && !ctx->no_job) {

            /* there are no more jobs to be had: stays the first */

            ngx_queue_remove(q);
            ngx_queue_insert_head(&t->waiting, q);
            break;
        }
    }
}


static void
ngx_http_zstd_tick_handler(ngx_event_t *ev)
{
    ngx_queue_t            *q;
    ngx_http_zstd_tasks_t  *t;

    t = &ngx_http_zstd_tasks;

#if (NGX_THREADS)
    ngx_http_zstd_post_ready();
#endif

    if (!ngx_queue_empty(&t->waiting)) {
        ngx_http_zstd_wake_handler(&t->wake);
    }

    for (q = ngx_queue_head(&t->waiting);
         q != ngx_queue_sentinel(&t->waiting);
         q = ngx_queue_next(q))
    {
        ngx_http_zstd_keep(ngx_queue_data(q, ngx_http_zstd_ctx_t, waiting));
    }

    for (q = ngx_queue_head(&t->working);
         q != ngx_queue_sentinel(&t->working);
         q = ngx_queue_next(q))
    {
        ngx_http_zstd_keep(ngx_queue_data(q, ngx_http_zstd_ctx_t, working));
    }

    ngx_http_zstd_count_cache();

    if ((t->out || !ngx_queue_empty(&t->waiting)) && !ev->timer_set) {
        ngx_add_timer(ev, NGX_HTTP_ZSTD_TICK);
    }
}


/*
 * The time in which a client has to take something begins anew as long as there
 * is nothing for it to take.
 */

static void
ngx_http_zstd_keep(ngx_http_zstd_ctx_t *ctx)
{
    ngx_event_t               *wev;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = ctx->request;
    wev = r->connection->write;

    if (ctx->busy || ctx->terminated || wev->delayed || !wev->timer_set) {
        return;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    ngx_add_timer(wev, clcf->send_timeout);
}
