
/*
 * Copyright (C) the libsegzstd authors
 *
 * What a worker process has once: the cache of encoders, dictionaries, and the
 * memory that responses share.
 */


#include "ngx_http_zstd.h"

#if (NGX_LINUX)
#include <sched.h>
#include <sys/syscall.h>
#endif


/* how often idle memory is looked at, as long as there is some */
#define NGX_HTTP_ZSTD_TRIM          10000

/* how old the status' copy of the cache's counters may be */
#define NGX_HTTP_ZSTD_STATS_AGE     500

/* zstd_memory if it is not set: so much, and so much for each CPU; an encoder
 * of level 19 with the largest window has 83 MiB */
#define NGX_HTTP_ZSTD_MEMORY_AUTO   (128 * 1024 * 1024)

/*
 * The time slice that the loop's thread asks the scheduler for, nanoseconds.
 * With as many threads compressing as there are CPUs its wake-ups had a 99th
 * percentile of 3.2 ms without it, 0.22 ms with it (Linux 6.18, 2 CPUs).
 */
#define NGX_HTTP_ZSTD_SLICE         100000


static ngx_int_t ngx_http_zstd_init_cache(ngx_cycle_t *cycle,
    ngx_uint_t cpus);
static ngx_int_t ngx_http_zstd_init_dicts(ngx_cycle_t *cycle);
#if (NGX_THREADS)
static ngx_uint_t ngx_http_zstd_cpus(void);
static void ngx_http_zstd_ask_slice(ngx_log_t *log);
#endif
static ngx_uint_t ngx_http_zstd_is_full(segzstd_cache_stats *stats);
static uint64_t ngx_http_zstd_memory(void);
static void ngx_http_zstd_trim_handler(ngx_event_t *ev);


segzstd_cache         *ngx_http_zstd_cache;
ngx_http_zstd_slot_t  *ngx_http_zstd_slot;

static ngx_http_zstd_main_conf_t  *ngx_http_zstd_conf;
static ngx_msec_t                  ngx_http_zstd_copied;
static ngx_event_t                 ngx_http_zstd_trim_event;


ngx_int_t
ngx_http_zstd_init_worker(ngx_cycle_t *cycle, ngx_http_zstd_main_conf_t *zmcf)
{
    ngx_uint_t  cpus;

    cpus = 1;

    ngx_http_zstd_conf = zmcf;
    ngx_http_zstd_slot = ngx_http_zstd_status_slot(cycle, zmcf);

    ngx_http_zstd_init_event(&ngx_http_zstd_trim_event, cycle->log,
                             ngx_http_zstd_trim_handler);

    ngx_http_zstd_trim_event.cancelable = 1;

    ngx_http_zstd_init_tasks(cycle);

#if (NGX_THREADS)

    if (zmcf->pools.nelts) {
        cpus = ngx_http_zstd_cpus();

        if (ngx_http_zstd_init_threads(cycle, zmcf, cpus) != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_http_zstd_ask_slice(cycle->log);
    }

#endif

    if (ngx_http_zstd_init_cache(cycle, cpus) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_zstd_init_dicts(cycle);
}


/* nothing of a connection, but debug logs of timers show one */

void
ngx_http_zstd_init_event(ngx_event_t *ev, ngx_log_t *log,
    ngx_event_handler_pt handler)
{
    static ngx_connection_t  dummy;

    dummy.fd = (ngx_socket_t) -1;

    ngx_memzero(ev, sizeof(ngx_event_t));

    ev->handler = handler;
    ev->data = &dummy;
    ev->log = log;
}


static ngx_int_t
ngx_http_zstd_init_cache(ngx_cycle_t *cycle, ngx_uint_t cpus)
{
    int                         rc;
    segzstd_cache_options       options = SEGZSTD_CACHE_OPTIONS_INIT;
    ngx_http_zstd_main_conf_t  *zmcf;

    zmcf = ngx_http_zstd_conf;

    options.workers = (unsigned) cpus;
    options.encoders_kept = (zmcf->compressors == NGX_HTTP_ZSTD_NONE)
                            ? SEGZSTD_NONE : (unsigned) zmcf->compressors;
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

    /* the time that ages are counted from */

    (void) segzstd_cache_trim(ngx_http_zstd_cache,
                              (uint64_t) ngx_current_msec * 1000000);

    return NGX_OK;
}


static ngx_int_t
ngx_http_zstd_init_dicts(ngx_cycle_t *cycle)
{
    int                     rc;
    ngx_uint_t              i;
    ngx_http_zstd_dict_t  **dict;

    dict = ngx_http_zstd_conf->dicts.elts;

    for (i = 0; i < ngx_http_zstd_conf->dicts.nelts; i++) {

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

#if (NGX_THREADS)
    ngx_http_zstd_exit_threads();
#endif

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


#if (NGX_THREADS)

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

#endif


ngx_uint_t
ngx_http_zstd_has_memory(ngx_http_zstd_loc_conf_t *conf, off_t length)
{
    uint64_t             memory;
    segzstd_cache_stats  stats = SEGZSTD_CACHE_STATS_INIT;

    memory = (uint64_t) ngx_http_zstd_conf->memory;

    if (memory && ngx_http_zstd_least_memory(conf, length) > memory) {
        return 0;
    }

    (void) segzstd_cache_get_stats(ngx_http_zstd_cache, &stats);

    return !ngx_http_zstd_is_full(&stats);
}


/* the last eighth that input may have is for what was begun */

static ngx_uint_t
ngx_http_zstd_is_full(segzstd_cache_stats *stats)
{
    uint64_t  memory;

    memory = (uint64_t) ngx_http_zstd_conf->memory;

    return memory && stats->input_room < memory / 8;
}


/* what may be planned with where there is no bound */

static uint64_t
ngx_http_zstd_memory(void)
{
    uint64_t  memory;

    memory = (uint64_t) ngx_http_zstd_conf->memory;

    return memory ? memory : 2 * NGX_HTTP_ZSTD_MEMORY_AUTO;
}


/*
 * An eighth of the memory, divided by all responses.  While these are few, one
 * may hold more than what waits, so that one encoder sees more of the content.
 */

size_t
ngx_http_zstd_input_bytes(size_t *extent)
{
    uint64_t             share, waiting;
    segzstd_cache_stats  stats = SEGZSTD_CACHE_STATS_INIT;

    (void) segzstd_cache_get_stats(ngx_http_zstd_cache, &stats);

    share = ngx_http_zstd_memory() / (8 * (stats.streams_open + 1));

    if (ngx_http_zstd_is_full(&stats)) {
        share = 0;
    }

    share = ngx_max(share, NGX_HTTP_ZSTD_INPUT_MIN);

    waiting = ngx_min(share, NGX_HTTP_ZSTD_INPUT_MAX);

    if (extent) {
        share = ngx_min(share, NGX_HTTP_ZSTD_EXTENT_MAX);
        *extent = (size_t) ngx_max(share, 2 * waiting);
    }

    return (size_t) waiting;
}


ngx_uint_t
ngx_http_zstd_is_tight(void)
{
    segzstd_cache_stats  stats = SEGZSTD_CACHE_STATS_INIT;

    (void) segzstd_cache_get_stats(ngx_http_zstd_cache, &stats);

    return stats.stream_bytes > ngx_http_zstd_memory() / 16;
}


/* for the status, after a job */

void
ngx_http_zstd_count_cache(void)
{
    segzstd_cache_stats  stats = SEGZSTD_CACHE_STATS_INIT;

    if (ngx_http_zstd_copied
        && ngx_current_msec - ngx_http_zstd_copied < NGX_HTTP_ZSTD_STATS_AGE)
    {
        return;
    }

    ngx_http_zstd_copied = ngx_current_msec;

    (void) segzstd_cache_get_stats(ngx_http_zstd_cache, &stats);

    ngx_http_zstd_slot->cache = stats;

    if (!ngx_http_zstd_trim_event.timer_set) {
        ngx_add_timer(&ngx_http_zstd_trim_event, NGX_HTTP_ZSTD_TRIM);
    }
}


static void
ngx_http_zstd_trim_handler(ngx_event_t *ev)
{
    segzstd_cache_stats  stats = SEGZSTD_CACHE_STATS_INIT;

    (void) segzstd_cache_trim(ngx_http_zstd_cache,
                              (uint64_t) ngx_current_msec * 1000000);

    ngx_http_zstd_copied = 0;
    ngx_http_zstd_count_cache();

    (void) segzstd_cache_get_stats(ngx_http_zstd_cache, &stats);

    if (stats.idle_bytes && !ev->timer_set) {
        ngx_add_timer(ev, NGX_HTTP_ZSTD_TRIM);
    }
}
