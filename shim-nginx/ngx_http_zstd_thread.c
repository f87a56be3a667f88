
/*
 * Copyright (C) the libsegzstd authors
 *
 * Jobs on thread pools.
 *
 * No more jobs run at once than there are CPUs.  The others wait in a queue of
 * the worker.  What is posted to the pool is a runner, which takes jobs out of
 * that queue as long as there are any: the next job neither waits for the loop
 * nor for another thread to wake up, which would often be put on the CPU of the
 * other runner.  Finished jobs go into a list, and a pipe tells the loop.
 *
 * A runner that finds no job stays for a while, since the loop mostly has the
 * next one as soon as it has sent what the last one made.  Were it to end, the
 * pool would tell the loop of that.  Woken twice within some microseconds, the
 * loop has just used up its share of the CPU, and the kernel lets it wait until
 * the next tick, up to 4 ms.
 */


#include "ngx_http_zstd.h"


#if (NGX_THREADS)

#include <ngx_channel.h>

#if (NGX_LINUX)
#include <sys/resource.h>
#include <sys/syscall.h>
#endif


/*
 * How long a runner waits for a job, in milliseconds.  The loop's turn takes a
 * tenth of that, and some ms where all CPUs are busy; meanwhile one thread of
 * the pool is not free for others.
 */
#define NGX_HTTP_ZSTD_LINGER  2

/* milliseconds for the last thread to be back in its pool */
#define NGX_HTTP_ZSTD_LAST    10

/* of that time; Darwin cannot choose it */
#if (NGX_DARWIN)
#define NGX_HTTP_ZSTD_CLOCK   CLOCK_REALTIME
#else
#define NGX_HTTP_ZSTD_CLOCK   CLOCK_MONOTONIC
#endif


typedef struct ngx_http_zstd_runner_s  ngx_http_zstd_runner_t;

struct ngx_http_zstd_runner_s {
    ngx_thread_task_t           task;
    ngx_thread_pool_t          *pool;
    ngx_http_zstd_runner_t     *next;        /* in threads.free */
    ngx_queue_t                 queue;       /* in threads.idle */
    ngx_http_zstd_task_t       *job;         /* under mutex: handed over */
    ngx_thread_cond_t           cond;        /* of job */
};


typedef struct {
    ngx_thread_mutex_t          mutex;
    ngx_queue_t                 ready;       /* under mutex: tasks to run */
    ngx_queue_t                 taken;       /* under mutex: tasks that run */
    ngx_queue_t                 done;        /* under mutex: tasks that ran */
    ngx_queue_t                 idle;        /* under mutex: runners without a
                                              * job */
    ngx_uint_t                  running;     /* under mutex: other runners */
    ngx_uint_t                  limit;       /* of running */
    ngx_atomic_t                posted;      /* runners that have not ended */
    ngx_uint_t                  used;        /* there were such */
    ngx_fd_t                    notify[2];   /* a pipe; written to when "done"
                                              * becomes non-empty */
    ngx_http_zstd_runner_t     *free;        /* not posted now */
    ngx_http_zstd_main_conf_t  *zmcf;
    ngx_cycle_t                *cycle;       /* NULL: no pool is used */
    ngx_log_t                  *log;
} ngx_http_zstd_threads_t;


static ngx_uint_t ngx_http_zstd_may_run(ngx_uint_t running);
static ngx_uint_t ngx_http_zstd_needs_runner(void);
static ngx_uint_t ngx_http_zstd_hand_over(void);
static ngx_http_zstd_task_t *ngx_http_zstd_first_task(ngx_thread_pool_t *pool);
static ngx_int_t ngx_http_zstd_post_runner(ngx_thread_pool_t *pool);
static ngx_http_zstd_runner_t *ngx_http_zstd_create_runner(void);
static void ngx_http_zstd_runner_handler(void *data, ngx_log_t *log);
static void ngx_http_zstd_runner_event_handler(ngx_event_t *ev);
static ngx_http_zstd_task_t *ngx_http_zstd_next_task(
    ngx_http_zstd_runner_t *runner, ngx_http_zstd_task_t *done,
    ngx_log_t *log);
static ngx_http_zstd_task_t *ngx_http_zstd_linger(
    ngx_http_zstd_runner_t *runner, ngx_log_t *log);
static void ngx_http_zstd_notify_loop(ngx_log_t *log);
static void ngx_http_zstd_notify_handler(ngx_event_t *ev);
static void ngx_http_zstd_lower_thread(ngx_log_t *log);


static ngx_http_zstd_threads_t  ngx_http_zstd_threads;


ngx_int_t
ngx_http_zstd_init_threads(ngx_cycle_t *cycle,
    ngx_http_zstd_main_conf_t *zmcf, ngx_uint_t cpus)
{
    ngx_http_zstd_threads_t  *t;

    t = &ngx_http_zstd_threads;

    ngx_queue_init(&t->ready);
    ngx_queue_init(&t->taken);
    ngx_queue_init(&t->done);
    ngx_queue_init(&t->idle);

    t->zmcf = zmcf;
    t->cycle = cycle;
    t->log = cycle->log;
    t->limit = cpus;

    if (ngx_thread_mutex_create(&t->mutex, cycle->log) != NGX_OK) {
        return NGX_ERROR;
    }

    if (pipe(t->notify) == -1) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "zstd: pipe() failed");
        return NGX_ERROR;
    }

    if (ngx_nonblocking(t->notify[0]) == -1
        || ngx_nonblocking(t->notify[1]) == -1)
    {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "zstd: " ngx_nonblocking_n " failed");
        return NGX_ERROR;
    }

    return ngx_add_channel_event(cycle, t->notify[0], NGX_READ_EVENT,
                                 ngx_http_zstd_notify_handler);
}


/*
 * Before nginx waits for its pools.  A worker that is stopped, not shut down,
 * has responses yet, and is killed if it needs more than some 1.5 s.
 */

void
ngx_http_zstd_stop_threads(void)
{
    ngx_queue_t              *q;
    ngx_http_zstd_task_t     *task;
    ngx_http_zstd_threads_t  *t;

    t = &ngx_http_zstd_threads;

    if (t->cycle == NULL) {
        return;
    }

    (void) ngx_thread_mutex_lock(&t->mutex, t->log);

    ngx_queue_init(&t->ready);

    for (q = ngx_queue_head(&t->taken);
         q != ngx_queue_sentinel(&t->taken);
         q = ngx_queue_next(q))
    {
        task = ngx_queue_data(q, ngx_http_zstd_task_t, queue);

        segzstd_stream_cancel(segzstd_job_stream(task->job));
    }

    (void) ngx_thread_mutex_unlock(&t->mutex, t->log);
}


/*
 * Before memory of the worker is freed.  nginx itself waits for a pool to end,
 * but not where its queue is full, as it is at once with "max_queue=0".
 */

void
ngx_http_zstd_exit_threads(void)
{
    if (!ngx_http_zstd_threads.used) {
        return;
    }

    while (ngx_http_zstd_threads.posted) {
        ngx_msleep(1);
    }

    /* a thread goes back to waiting through the pool, which is freed, too */

    ngx_msleep(NGX_HTTP_ZSTD_LAST);
}


/* NGX_BUSY: the pool took no runner, and there is none to wait for */

ngx_int_t
ngx_http_zstd_post(ngx_http_zstd_task_t *task)
{
    ngx_int_t                 rc;
    ngx_uint_t                start;
    ngx_http_zstd_threads_t  *t;

    t = &ngx_http_zstd_threads;

    (void) ngx_thread_mutex_lock(&t->mutex, t->log);

    ngx_queue_insert_tail(&t->ready, &task->queue);

    start = ngx_http_zstd_needs_runner();

    (void) ngx_thread_mutex_unlock(&t->mutex, t->log);

    if (!start || ngx_http_zstd_post_runner(task->pool) == NGX_OK) {
        return NGX_OK;
    }

    rc = NGX_OK;

    (void) ngx_thread_mutex_lock(&t->mutex, t->log);

    if (--t->running == 0) {
        ngx_queue_remove(&task->queue);
        rc = NGX_BUSY;
    }

    (void) ngx_thread_mutex_unlock(&t->mutex, t->log);

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
    ngx_http_zstd_threads_t  *t;

    t = &ngx_http_zstd_threads;

    return running == 0
           || running + ngx_http_zstd_status_others_running(t->zmcf,
                                                         ngx_http_zstd_slot)
              < t->limit;
}


/*
 * Whether a task that is ready needs one more runner, which counts as running
 * from then on; under the mutex.
 */

static ngx_uint_t
ngx_http_zstd_needs_runner(void)
{
    ngx_http_zstd_threads_t  *t;

    t = &ngx_http_zstd_threads;

    if (!ngx_http_zstd_may_run(t->running) || ngx_http_zstd_hand_over()) {
        return 0;
    }

    t->running++;

    return 1;
}


/* to a runner that waits for it; under the mutex */

static ngx_uint_t
ngx_http_zstd_hand_over(void)
{
    ngx_queue_t              *q;
    ngx_http_zstd_task_t     *task;
    ngx_http_zstd_runner_t   *runner;
    ngx_http_zstd_threads_t  *t;

    t = &ngx_http_zstd_threads;

    for (q = ngx_queue_head(&t->idle);
         q != ngx_queue_sentinel(&t->idle);
         q = ngx_queue_next(q))
    {
        runner = ngx_queue_data(q, ngx_http_zstd_runner_t, queue);

        task = ngx_http_zstd_first_task(runner->pool);

        if (task == NULL) {
            continue;
        }

        ngx_queue_remove(q);
        t->running++;

        runner->job = task;
        (void) ngx_thread_cond_signal(&runner->cond, t->log);

        return 1;
    }

    return 0;
}


/* the first that waits for the pool; under the mutex */

static ngx_http_zstd_task_t *
ngx_http_zstd_first_task(ngx_thread_pool_t *pool)
{
    ngx_queue_t              *q;
    ngx_http_zstd_task_t     *task;
    ngx_http_zstd_threads_t  *t;

    t = &ngx_http_zstd_threads;

    for (q = ngx_queue_head(&t->ready);
         q != ngx_queue_sentinel(&t->ready);
         q = ngx_queue_next(q))
    {
        task = ngx_queue_data(q, ngx_http_zstd_task_t, queue);

        if (task->pool == pool) {
            ngx_queue_remove(q);
            ngx_queue_insert_tail(&t->taken, q);
            return task;
        }
    }

    return NULL;
}


/* for jobs that a pool had refused, or that wait for another pool */

void
ngx_http_zstd_post_ready(void)
{
    ngx_queue_t              *q;
    ngx_http_zstd_task_t     *task;
    ngx_http_zstd_threads_t  *t;

    t = &ngx_http_zstd_threads;

    if (t->cycle == NULL) {
        return;
    }

    task = NULL;

    (void) ngx_thread_mutex_lock(&t->mutex, t->log);

    if (!ngx_queue_empty(&t->ready) && ngx_http_zstd_needs_runner()) {
        q = ngx_queue_head(&t->ready);
        task = ngx_queue_data(q, ngx_http_zstd_task_t, queue);
    }

    (void) ngx_thread_mutex_unlock(&t->mutex, t->log);

    if (task == NULL || ngx_http_zstd_post_runner(task->pool) == NGX_OK) {
        return;
    }

    (void) ngx_thread_mutex_lock(&t->mutex, t->log);

    t->running--;

    (void) ngx_thread_mutex_unlock(&t->mutex, t->log);
}


static ngx_int_t
ngx_http_zstd_post_runner(ngx_thread_pool_t *pool)
{
    ngx_http_zstd_runner_t   *runner;
    ngx_http_zstd_threads_t  *t;

    t = &ngx_http_zstd_threads;

    runner = t->free;

    if (runner) {
        t->free = runner->next;

    } else {
        runner = ngx_http_zstd_create_runner();
        if (runner == NULL) {
            return NGX_ERROR;
        }
    }

    runner->pool = pool;

    t->used = 1;

    (void) ngx_atomic_fetch_add(&t->posted, 1);

    if (ngx_thread_task_post(pool, &runner->task) == NGX_OK) {
        return NGX_OK;
    }

    (void) ngx_atomic_fetch_add(&t->posted, -1);

    runner->next = t->free;
    t->free = runner;

    return NGX_ERROR;
}


static ngx_http_zstd_runner_t *
ngx_http_zstd_create_runner(void)
{
    int                       err;
    pthread_condattr_t        attr;
    ngx_http_zstd_runner_t   *runner;
    ngx_http_zstd_threads_t  *t;

    t = &ngx_http_zstd_threads;

    /* until the process ends, as a thread that ends last looks at its task */

    runner = ngx_calloc(sizeof(ngx_http_zstd_runner_t), t->log);
    if (runner == NULL) {
        return NULL;
    }

    err = pthread_condattr_init(&attr);
    if (err) {
        ngx_log_error(NGX_LOG_ALERT, t->log, err,
                      "zstd: pthread_condattr_init() failed");
        ngx_free(runner);
        return NULL;
    }

#if !(NGX_DARWIN)
    (void) pthread_condattr_setclock(&attr, NGX_HTTP_ZSTD_CLOCK);
#endif

    err = pthread_cond_init(&runner->cond, &attr);

    (void) pthread_condattr_destroy(&attr);

    if (err) {
        ngx_log_error(NGX_LOG_ALERT, t->log, err,
                      "zstd: pthread_cond_init() failed");
        ngx_free(runner);
        return NULL;
    }

    runner->task.ctx = runner;
    runner->task.handler = ngx_http_zstd_runner_handler;
    runner->task.event.handler = ngx_http_zstd_runner_event_handler;
    runner->task.event.data = runner;
    runner->task.event.log = t->log;

    return runner;
}


/* on a thread of the pool */

static void
ngx_http_zstd_runner_handler(void *data, ngx_log_t *log)
{
    ngx_http_zstd_runner_t *runner = data;

    ngx_http_zstd_task_t  *task;

    if (ngx_http_zstd_threads.zmcf->nice) {
        ngx_http_zstd_lower_thread(log);
    }

    task = ngx_http_zstd_next_task(runner, NULL, log);

    while (task) {
        (void) ngx_atomic_fetch_add(&ngx_http_zstd_slot->jobs_running, 1);

        segzstd_job_run(task->job);

        (void) ngx_atomic_fetch_add(&ngx_http_zstd_slot->jobs_running, -1);

        task = ngx_http_zstd_next_task(runner, task, log);
    }

    (void) ngx_atomic_fetch_add(&ngx_http_zstd_threads.posted, -1);
}


/* gives a task back to the loop; NULL: the runner has to end */

static ngx_http_zstd_task_t *
ngx_http_zstd_next_task(ngx_http_zstd_runner_t *runner,
    ngx_http_zstd_task_t *done, ngx_log_t *log)
{
    ngx_uint_t                notify;
    ngx_http_zstd_task_t     *next;
    ngx_http_zstd_threads_t  *t;

    t = &ngx_http_zstd_threads;
    notify = 0;
    next = NULL;

    (void) ngx_thread_mutex_lock(&t->mutex, log);

    if (done) {
        ngx_queue_remove(&done->queue);
        notify = ngx_queue_empty(&t->done);
        ngx_queue_insert_tail(&t->done, &done->queue);
    }

    if (ngx_http_zstd_may_run(t->running - 1)) {
        next = ngx_http_zstd_first_task(runner->pool);
    }

    if (next == NULL) {
        t->running--;

        runner->job = NULL;
        ngx_queue_insert_head(&t->idle, &runner->queue);
    }

    (void) ngx_thread_mutex_unlock(&t->mutex, log);

    if (notify) {
        ngx_http_zstd_notify_loop(log);
    }

    return next ? next : ngx_http_zstd_linger(runner, log);
}


static ngx_http_zstd_task_t *
ngx_http_zstd_linger(ngx_http_zstd_runner_t *runner, ngx_log_t *log)
{
    int                       err;
    struct timespec           until;
    ngx_http_zstd_threads_t  *t;

    t = &ngx_http_zstd_threads;

    (void) clock_gettime(NGX_HTTP_ZSTD_CLOCK, &until);

    until.tv_nsec += NGX_HTTP_ZSTD_LINGER * 1000000;

    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }

    (void) ngx_thread_mutex_lock(&t->mutex, log);

    for (err = 0; runner->job == NULL && err == 0; /* void */ ) {
        err = pthread_cond_timedwait(&runner->cond, &t->mutex, &until);
    }

    if (runner->job == NULL) {
        ngx_queue_remove(&runner->queue);
    }

    (void) ngx_thread_mutex_unlock(&t->mutex, log);

    return runner->job;
}


/* a full pipe is as good as a byte more */

static void
ngx_http_zstd_notify_loop(ngx_log_t *log)
{
    if (write(ngx_http_zstd_threads.notify[1], "", 1) == -1
        && ngx_errno != NGX_EAGAIN)
    {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno, "zstd: write() failed");
    }
}


static void
ngx_http_zstd_runner_event_handler(ngx_event_t *ev)
{
    ngx_http_zstd_runner_t *runner = ev->data;

    ngx_http_zstd_threads_t  *t;

    t = &ngx_http_zstd_threads;

    runner->next = t->free;
    t->free = runner;

    ngx_http_zstd_post_ready();
}


/* jobs are back */

static void
ngx_http_zstd_notify_handler(ngx_event_t *ev)
{
    u_char                    buf[64];
    ngx_queue_t               done, *q;
    ngx_http_zstd_task_t     *task;
    ngx_http_zstd_threads_t  *t;

    t = &ngx_http_zstd_threads;

    while (read(t->notify[0], buf, sizeof(buf)) == sizeof(buf)) { /* void */ }

    ngx_queue_init(&done);

    (void) ngx_thread_mutex_lock(&t->mutex, t->log);

    if (!ngx_queue_empty(&t->done)) {
        ngx_queue_add(&done, &t->done);
        ngx_queue_init(&t->done);
    }

    (void) ngx_thread_mutex_unlock(&t->mutex, t->log);

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
                    (int) ngx_http_zstd_threads.zmcf->nice)
        == -1)
    {
        ngx_log_error(NGX_LOG_ERR, log, ngx_errno,
                      "zstd: setpriority() failed");
    }

#endif
}

#endif
