
/*
 * Copyright (C) the libsegzstd authors
 *
 * What the module tells about itself: variables of a response, counters of all
 * workers in a shared zone, and a page of them as JSON or for Prometheus.
 *
 * Each worker writes a slot of its own, without locks.  Its number is that of
 * the process in the master's table: no two live processes of a master have the
 * same, old and new workers of a reload included, and a worker that is started
 * in place of a killed one gets the slot of the dead one.  What a slot counted
 * is added to the zone's past before it is cleared, so totals never go back
 * while the zone lives.  A binary upgrade begins a new zone.
 */


#include "ngx_http_zstd.h"


/* a piece of the page that is printed at once is shorter than this */
#define NGX_HTTP_ZSTD_PIECE   1024

#define NGX_HTTP_ZSTD_PAGE    16384


/* how the values of several workers make one */

#define NGX_HTTP_ZSTD_COUNTER  0        /* the sum, dead workers included */
#define NGX_HTTP_ZSTD_GAUGE    1        /* the sum of the live ones */
#define NGX_HTTP_ZSTD_HIGHEST  2        /* the highest of the live ones */


typedef struct {
    char                      *name;            /* the key in JSON */
    char                      *series;          /* for Prometheus */
    ngx_uint_t                 kind;
    ngx_uint_t                 nano;            /* nanoseconds, shown as
                                                 * seconds */
    size_t                     offset;          /* in ngx_http_zstd_slot_t */
    size_t                     size;
    char                      *help;
} ngx_http_zstd_metric_t;


#define ngx_http_zstd_field(field)                                            \
    offsetof(ngx_http_zstd_slot_t, field),                                    \
    sizeof(((ngx_http_zstd_slot_t *) 0)->field)


static ngx_http_zstd_metric_t  ngx_http_zstd_metrics[] = {

    { "jobs_running", "jobs_running", NGX_HTTP_ZSTD_GAUGE, 0,
      ngx_http_zstd_field(jobs_running),
      "Jobs that run in threads at this moment" },

    { "jobs_pool", "pool_jobs_total", NGX_HTTP_ZSTD_COUNTER, 0,
      ngx_http_zstd_field(jobs_pool),
      "Jobs run on a thread pool" },

    { "jobs_loop", "loop_jobs_total", NGX_HTTP_ZSTD_COUNTER, 0,
      ngx_http_zstd_field(jobs_loop),
      "Jobs run on the event loop" },

    { "responses", "responses_total", NGX_HTTP_ZSTD_COUNTER, 0,
      ngx_http_zstd_field(responses),
      "Responses whose compression was begun" },

    { "finished", "responses_finished_total", NGX_HTTP_ZSTD_COUNTER, 0,
      ngx_http_zstd_field(finished),
      "Responses compressed to their end" },

    { "failed", "responses_failed_total", NGX_HTTP_ZSTD_COUNTER, 0,
      ngx_http_zstd_field(failed),
      "Responses ended by an error of the content or of the library" },

    { "queue_full", "queue_full_total", NGX_HTTP_ZSTD_COUNTER, 0,
      ngx_http_zstd_field(queue_full),
      "Jobs refused by the full queue of a thread pool" },

    { "no_memory", "memory_limit_reached_total", NGX_HTTP_ZSTD_COUNTER, 0,
      ngx_http_zstd_field(no_memory),
      "Times that zstd_memory was reached" },

    { "bytes_in", "input_bytes_total", NGX_HTTP_ZSTD_COUNTER, 0,
      ngx_http_zstd_field(bytes_in),
      "Content bytes that were compressed or stored" },

    { "bytes_out", "output_bytes_total", NGX_HTTP_ZSTD_COUNTER, 0,
      ngx_http_zstd_field(bytes_out),
      "Bytes that were made of them" },

    { "cpu_seconds", "cpu_seconds_total", NGX_HTTP_ZSTD_COUNTER, 1,
      ngx_http_zstd_field(cpu_ns),
      "CPU time of all jobs" },

    { NULL, NULL, 0, 0, 0, 0, NULL }
};


static ngx_http_zstd_metric_t  ngx_http_zstd_cache_metrics[] = {

    { "bytes", "cache_bytes", NGX_HTTP_ZSTD_GAUGE, 0,
      ngx_http_zstd_field(cache.bytes),
      "Memory allocated for compression" },

    { "bytes_peak", "cache_peak_bytes", NGX_HTTP_ZSTD_HIGHEST, 0,
      ngx_http_zstd_field(cache.bytes_peak),
      "The most memory that a worker ever had allocated for compression" },

    { "idle_bytes", "cache_idle_bytes", NGX_HTTP_ZSTD_GAUGE, 0,
      ngx_http_zstd_field(cache.idle_bytes),
      "Memory kept for reuse only" },

    { "encoder_bytes", "cache_encoder_bytes", NGX_HTTP_ZSTD_GAUGE, 0,
      ngx_http_zstd_field(cache.encoder_bytes),
      "Memory in encoders" },

    { "stream_bytes", "cache_stream_bytes", NGX_HTTP_ZSTD_GAUGE, 0,
      ngx_http_zstd_field(cache.stream_bytes),
      "Memory in input and output of responses" },

    { "workers", "cache_threads", NGX_HTTP_ZSTD_GAUGE, 0,
      ngx_http_zstd_field(cache.workers),
      "Threads that the library counts on to run jobs" },

    { "encoders_limit", "cache_encoders_limit", NGX_HTTP_ZSTD_GAUGE, 0,
      ngx_http_zstd_field(cache.encoders_limit),
      "The most encoders that may exist" },

    { "encoders_live", "cache_encoders", NGX_HTTP_ZSTD_GAUGE, 0,
      ngx_http_zstd_field(cache.encoders_live),
      "Encoders that exist" },

    { "encoders_running", "cache_encoders_running", NGX_HTTP_ZSTD_GAUGE, 0,
      ngx_http_zstd_field(cache.encoders_running),
      "Encoders in use by a job that runs" },

    { "encoders_held", "cache_encoders_held", NGX_HTTP_ZSTD_GAUGE, 0,
      ngx_http_zstd_field(cache.encoders_held),
      "Encoders kept for a response between two of its jobs" },

    { "encoders_idle", "cache_encoders_idle", NGX_HTTP_ZSTD_GAUGE, 0,
      ngx_http_zstd_field(cache.encoders_idle),
      "Encoders free for any response" },

    { "encoders_peak", "cache_encoders_peak", NGX_HTTP_ZSTD_HIGHEST, 0,
      ngx_http_zstd_field(cache.encoders_peak),
      "The most encoders that a worker ever had" },

    { "jobs_out", "cache_jobs_out", NGX_HTTP_ZSTD_GAUGE, 0,
      ngx_http_zstd_field(cache.jobs_out),
      "Jobs taken from the library and not yet given back" },

    { "streams_open", "cache_streams", NGX_HTTP_ZSTD_GAUGE, 0,
      ngx_http_zstd_field(cache.streams_open),
      "Responses that are being compressed" },

    { "hits", "cache_hits_total", NGX_HTTP_ZSTD_COUNTER, 0,
      ngx_http_zstd_field(cache.hits),
      "Times that an encoder was there and ready" },

    { "misses", "cache_misses_total", NGX_HTTP_ZSTD_COUNTER, 0,
      ngx_http_zstd_field(cache.misses),
      "Times that an encoder had to be made or rebuilt" },

    { "steals", "cache_steals_total", NGX_HTTP_ZSTD_COUNTER, 0,
      ngx_http_zstd_field(cache.steals),
      "Times that an encoder was taken from another response" },

    { "jobs", "cache_jobs_total", NGX_HTTP_ZSTD_COUNTER, 0,
      ngx_http_zstd_field(cache.jobs),
      "Jobs given back to the library" },

    { "bytes_in", "cache_input_bytes_total", NGX_HTTP_ZSTD_COUNTER, 0,
      ngx_http_zstd_field(cache.bytes_in),
      "Content bytes compressed or stored by the library" },

    { "bytes_out", "cache_output_bytes_total", NGX_HTTP_ZSTD_COUNTER, 0,
      ngx_http_zstd_field(cache.bytes_out),
      "Compressed bytes produced by the library" },

    { "stored_bytes", "cache_stored_bytes_total", NGX_HTTP_ZSTD_COUNTER, 0,
      ngx_http_zstd_field(cache.stored_bytes),
      "Content bytes stored without compression because of overload" },

    { "splits", "cache_splits_total", NGX_HTTP_ZSTD_COUNTER, 0,
      ngx_http_zstd_field(cache.splits),
      "Cuts made for a thread that was idle" },

    { NULL, NULL, 0, 0, 0, 0, NULL }
};


/* of ngx_http_zstd_reason_e */

static ngx_str_t  ngx_http_zstd_reasons[] = {
    ngx_null_string,                            /* compressed */
    ngx_string("off"),
    ngx_string("status"),
    ngx_string("no_body"),
    ngx_string("encoded"),
    ngx_string("type"),
    ngx_string("length"),
    ngx_string("no_transform"),
    ngx_string("bypass"),
    ngx_string("version"),
    ngx_string("proxied"),
    ngx_string("disable"),
    ngx_string("accept"),
    ngx_string("preference"),
    ngx_string("memory")
};

_Static_assert(sizeof(ngx_http_zstd_reasons) / sizeof(ngx_str_t)
               == NGX_HTTP_ZSTD_MEMORY + 1, "a word for each reason");


#define NGX_HTTP_ZSTD_NMETRICS                                                \
    (sizeof(ngx_http_zstd_metrics) / sizeof(ngx_http_zstd_metric_t) - 1)

#define NGX_HTTP_ZSTD_NCACHE                                                  \
    (sizeof(ngx_http_zstd_cache_metrics) / sizeof(ngx_http_zstd_metric_t) - 1)

#define NGX_HTTP_ZSTD_NREASONS                                                \
    (sizeof(ngx_http_zstd_reasons) / sizeof(ngx_str_t))

/* the first of them that is counted: where zstd is off, nothing is */
#define NGX_HTTP_ZSTD_FIRST    NGX_HTTP_ZSTD_STATUS


/* the values of one worker, or of all, in the order of the tables */

typedef struct {
    uint64_t                   metrics[NGX_HTTP_ZSTD_NMETRICS];
    uint64_t                   cache[NGX_HTTP_ZSTD_NCACHE];
    uint64_t                   reasons[NGX_HTTP_ZSTD_NREASONS];
} ngx_http_zstd_values_t;


typedef struct {
    ngx_http_zstd_slot_t       slot;
    ngx_atomic_t               gone;            /* pid of a worker that was
                                                 * found dead */
    ngx_atomic_t               looked;          /* the second when its process
                                                 * was last looked for */
    u_char                     gap[NGX_CPU_CACHE_LINE];
                                                /* workers share no line */
} ngx_http_zstd_entry_t;


/* what the zone holds; written under the mutex of its slab pool, except slots
 * by their workers, and the fields "gone" and "looked" by anybody */

typedef struct {
    ngx_atomic_t               nentries;        /* used since ever; only they
                                                 * have been cleared */
    ngx_http_zstd_values_t     past;            /* counters of former owners
                                                 * of the slots */
    ngx_http_zstd_entry_t      entries[NGX_MAX_PROCESSES];
} ngx_http_zstd_shared_t;


typedef struct {
    ngx_uint_t                 number;
    ngx_pid_t                  pid;
    ngx_http_zstd_values_t     values;
} ngx_http_zstd_worker_t;


/* what a page shows */

typedef struct {
    ngx_http_zstd_main_conf_t  *conf;
    ngx_http_zstd_values_t     all;
    ngx_http_zstd_worker_t    *workers;
    ngx_uint_t                 nworkers;
} ngx_http_zstd_report_t;


/* a page that is being printed */

typedef struct {
    ngx_pool_t                *pool;
    ngx_chain_t               *out;
    ngx_chain_t              **last;
    ngx_buf_t                 *buf;
    off_t                      size;            /* -1: no memory */
} ngx_http_zstd_page_t;


static ngx_int_t ngx_http_zstd_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_zstd_variable_text(ngx_http_request_t *r,
    ngx_http_zstd_stats_t *stats, ngx_http_variable_value_t *v,
    uintptr_t data);
static u_char *ngx_http_zstd_ratio(u_char *p, uint64_t in, uint64_t out);
static ngx_int_t ngx_http_zstd_forget_later(ngx_http_request_t *r,
    ngx_http_variable_value_t *v);
static void ngx_http_zstd_forget(void *data);

static ngx_int_t ngx_http_zstd_status_init_zone(ngx_shm_zone_t *shm_zone,
    void *data);
static ngx_uint_t ngx_http_zstd_status_alive(ngx_http_zstd_entry_t *entry,
    time_t now);
static void ngx_http_zstd_status_read(ngx_http_zstd_slot_t *slot,
    ngx_http_zstd_values_t *values);
static uint64_t ngx_http_zstd_status_read_field(ngx_http_zstd_slot_t *slot,
    ngx_http_zstd_metric_t *metric);
static void ngx_http_zstd_status_add(ngx_http_zstd_values_t *sum,
    ngx_http_zstd_values_t *values, ngx_uint_t alive);
static void ngx_http_zstd_status_add_table(ngx_http_zstd_metric_t *metric,
    uint64_t *sum, uint64_t *values, ngx_uint_t alive);

static ngx_int_t ngx_http_zstd_status_json_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_zstd_status_prometheus_handler(
    ngx_http_request_t *r);
static ngx_int_t ngx_http_zstd_status_send(ngx_http_request_t *r,
    ngx_str_t *type, size_t type_len,
    void (*print)(ngx_http_zstd_page_t *page, ngx_http_zstd_report_t *report));
static ngx_int_t ngx_http_zstd_status_no_store(ngx_http_request_t *r);
static ngx_int_t ngx_http_zstd_status_report(ngx_http_request_t *r,
    ngx_http_zstd_report_t *report);

static void ngx_http_zstd_print_json(ngx_http_zstd_page_t *page,
    ngx_http_zstd_report_t *report);
static void ngx_http_zstd_print_json_values(ngx_http_zstd_page_t *page,
    ngx_http_zstd_values_t *values, char *indent);
static void ngx_http_zstd_print_json_table(ngx_http_zstd_page_t *page,
    ngx_http_zstd_metric_t *metric, uint64_t *values, char *indent);
static void ngx_http_zstd_print_prometheus(ngx_http_zstd_page_t *page,
    ngx_http_zstd_report_t *report);
static void ngx_http_zstd_print_prometheus_table(ngx_http_zstd_page_t *page,
    ngx_http_zstd_report_t *report, ngx_http_zstd_metric_t *metric,
    size_t offset);
static void ngx_http_zstd_print_prometheus_reasons(ngx_http_zstd_page_t *page,
    ngx_http_zstd_report_t *report);
static void ngx_http_zstd_print_value(ngx_http_zstd_page_t *page,
    ngx_http_zstd_metric_t *metric, uint64_t value);
static char *ngx_http_zstd_status_threads(ngx_http_zstd_main_conf_t *zmcf);
static void ngx_cdecl ngx_http_zstd_print(ngx_http_zstd_page_t *page,
    const char *fmt, ...);


#define NGX_HTTP_ZSTD_VAR_RATIO      0
#define NGX_HTTP_ZSTD_VAR_BYTES_IN   1
#define NGX_HTTP_ZSTD_VAR_BYTES_OUT  2
#define NGX_HTTP_ZSTD_VAR_SEGMENTS   3
#define NGX_HTTP_ZSTD_VAR_THREADS    4
#define NGX_HTTP_ZSTD_VAR_CPU_TIME   5
#define NGX_HTTP_ZSTD_VAR_REASON     6


static ngx_http_variable_t  ngx_http_zstd_vars[] = {

    { ngx_string("zstd_ratio"), NULL, ngx_http_zstd_variable,
      NGX_HTTP_ZSTD_VAR_RATIO, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("zstd_bytes_in"), NULL, ngx_http_zstd_variable,
      NGX_HTTP_ZSTD_VAR_BYTES_IN, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("zstd_bytes_out"), NULL, ngx_http_zstd_variable,
      NGX_HTTP_ZSTD_VAR_BYTES_OUT, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("zstd_segments"), NULL, ngx_http_zstd_variable,
      NGX_HTTP_ZSTD_VAR_SEGMENTS, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("zstd_threads"), NULL, ngx_http_zstd_variable,
      NGX_HTTP_ZSTD_VAR_THREADS, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("zstd_cpu_time"), NULL, ngx_http_zstd_variable,
      NGX_HTTP_ZSTD_VAR_CPU_TIME, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("zstd_reason"), NULL, ngx_http_zstd_variable,
      NGX_HTTP_ZSTD_VAR_REASON, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


/* of workers without a zone, and of processes that serve nobody */
static ngx_http_zstd_slot_t  ngx_http_zstd_private_slot;


ngx_int_t
ngx_http_zstd_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_zstd_vars; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_zstd_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_int_t              rc;
    ngx_http_zstd_stats_t  stats;

    /* only main responses are compressed, so these numbers are the main's */

    rc = ngx_http_zstd_stats(r->main, &stats);

    if (rc == NGX_OK) {
        rc = ngx_http_zstd_variable_text(r, &stats, v, data);
        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (stats.reason != NGX_HTTP_ZSTD_COMPRESSED || stats.done) {
            return NGX_OK;
        }

    } else {
        v->not_found = 1;
    }

    /* the value may become another one */

    return ngx_http_zstd_forget_later(r, v);
}


static ngx_int_t
ngx_http_zstd_variable_text(ngx_http_request_t *r,
    ngx_http_zstd_stats_t *stats, ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char     *p;
    ngx_str_t  *reason;

    v->not_found = 1;

    if ((data == NGX_HTTP_ZSTD_VAR_REASON)
        == (stats->reason == NGX_HTTP_ZSTD_COMPRESSED))
    {
        return NGX_OK;
    }

    if (data == NGX_HTTP_ZSTD_VAR_RATIO && stats->bytes_out == 0) {
        return NGX_OK;
    }

    /* the longest are a ratio and a time: two integers and a point */

    p = ngx_pnalloc(r->pool, 2 * NGX_INT64_LEN + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    v->data = p;

    switch (data) {

    case NGX_HTTP_ZSTD_VAR_RATIO:
        p = ngx_http_zstd_ratio(p, stats->bytes_in, stats->bytes_out);
        break;

    case NGX_HTTP_ZSTD_VAR_BYTES_IN:
        p = ngx_sprintf(p, "%uL", stats->bytes_in);
        break;

    case NGX_HTTP_ZSTD_VAR_BYTES_OUT:
        p = ngx_sprintf(p, "%uL", stats->bytes_out);
        break;

    case NGX_HTTP_ZSTD_VAR_SEGMENTS:
        p = ngx_sprintf(p, "%uL", stats->segments);
        break;

    case NGX_HTTP_ZSTD_VAR_THREADS:
        p = ngx_sprintf(p, "%s", stats->pool ? "pool" : "loop");
        break;

    case NGX_HTTP_ZSTD_VAR_CPU_TIME:

        /* seconds; a small response takes but a few microseconds of them */

        p = ngx_sprintf(p, "%uL.%06uL", stats->cpu_ns / 1000000000,
                        stats->cpu_ns / 1000 % 1000000);
        break;

    default: /* NGX_HTTP_ZSTD_VAR_REASON */
        reason = &ngx_http_zstd_reasons[stats->reason];
        p = ngx_cpymem(p, reason->data, reason->len);
        break;
    }

    v->len = p - v->data;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}


/* in / out with two decimals, rounded; out is not 0 */

static u_char *
ngx_http_zstd_ratio(u_char *p, uint64_t in, uint64_t out)
{
    uint64_t  whole, rest;

    whole = in / out;
    rest = in % out;

    /* as rest < out, thousandths fit when out does */

    while (out > UINT64_MAX / 1000) {
        rest >>= 1;
        out >>= 1;
    }

    rest = (rest * 1000 / out + 5) / 10;

    if (rest > 99) {
        rest -= 100;
        whole++;
    }

    return ngx_sprintf(p, "%uL.%02uL", whole, rest);
}


/*
 * Values are kept for the request once they are asked for, and a log takes what
 * is kept.  Cleanups of a request run before it is logged, so a value that was
 * asked for too early, by add_header for example, is not the one in the log.
 */

static ngx_int_t
ngx_http_zstd_forget_later(ngx_http_request_t *r, ngx_http_variable_value_t *v)
{
    ngx_http_cleanup_t  *cln;

    cln = ngx_http_cleanup_add(r, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_zstd_forget;
    cln->data = v;

    return NGX_OK;
}


static void
ngx_http_zstd_forget(void *data)
{
    ngx_http_variable_value_t  *v = data;

    v->valid = 0;
    v->not_found = 0;
}


ngx_int_t
ngx_http_zstd_status_zone(ngx_conf_t *cf, ngx_http_zstd_main_conf_t *zmcf)
{
    size_t  size, pages;

    static ngx_str_t  name = ngx_string("ngx_http_zstd_filter_module");

    if (zmcf->shm_zone) {
        return NGX_OK;
    }

    /* pages for us, and what the slab pool needs to keep account of them */

    size = ngx_align(sizeof(ngx_http_zstd_shared_t), ngx_pagesize);
    pages = size / ngx_pagesize;
    size += 8 * ngx_pagesize + ngx_align(pages * 64, ngx_pagesize);

    zmcf->shm_zone = ngx_shared_memory_add(cf, &name, size,
                                           &ngx_http_zstd_filter_module);
    if (zmcf->shm_zone == NULL) {
        return NGX_ERROR;
    }

    zmcf->shm_zone->init = ngx_http_zstd_status_init_zone;

    return NGX_OK;
}


static ngx_int_t
ngx_http_zstd_status_init_zone(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_slab_pool_t         *shpool;
    ngx_http_zstd_shared_t  *shared;

    if (data) {

        /* a reload: the workers that are still there write on */

        shm_zone->data = data;
        return NGX_OK;
    }

    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    if (shm_zone->shm.exists) {
        shm_zone->data = shpool->data;
        return NGX_OK;
    }

    /* entries are cleared, and so take memory, at their first use */

    shared = ngx_slab_alloc(shpool, sizeof(ngx_http_zstd_shared_t));
    if (shared == NULL) {
        return NGX_ERROR;
    }

    shared->nentries = 0;
    ngx_memzero(&shared->past, sizeof(ngx_http_zstd_values_t));

    shpool->data = shared;
    shm_zone->data = shared;

    return NGX_OK;
}


ngx_http_zstd_slot_t *
ngx_http_zstd_status_slot(ngx_cycle_t *cycle, ngx_http_zstd_main_conf_t *zmcf)
{
    ngx_uint_t               number;
    ngx_slab_pool_t         *shpool;
    ngx_http_zstd_entry_t   *entry;
    ngx_http_zstd_shared_t  *shared;
    ngx_http_zstd_values_t   values;

    if (zmcf->shm_zone == NULL || ngx_process == NGX_PROCESS_HELPER) {
        ngx_memzero(&ngx_http_zstd_private_slot, sizeof(ngx_http_zstd_slot_t));
        ngx_http_zstd_private_slot.pid = ngx_pid;

        return &ngx_http_zstd_private_slot;
    }

    shared = zmcf->shm_zone->data;
    shpool = (ngx_slab_pool_t *) zmcf->shm_zone->shm.addr;
    number = (ngx_uint_t) ngx_process_slot;

    ngx_shmtx_lock(&shpool->mutex);

    while (shared->nentries <= number) {
        ngx_memzero(&shared->entries[shared->nentries],
                    sizeof(ngx_http_zstd_entry_t));
        ngx_memory_barrier();

        shared->nentries++;
    }

    entry = &shared->entries[number];

    if (entry->slot.pid) {

        /* of a process that is no more, or else it would have the number */

        ngx_http_zstd_status_read(&entry->slot, &values);
        ngx_http_zstd_status_add(&shared->past, &values, 0);
    }

    ngx_memzero(entry, sizeof(ngx_http_zstd_entry_t));
    ngx_memory_barrier();

    entry->slot.pid = ngx_pid;

    ngx_shmtx_unlock(&shpool->mutex);

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, cycle->log, 0,
                   "http zstd status slot: %ui", number);

    return &entry->slot;
}


ngx_uint_t
ngx_http_zstd_status_others_running(ngx_http_zstd_main_conf_t *zmcf,
    ngx_http_zstd_slot_t *mine)
{
    time_t                   now;
    ngx_uint_t               i, n, running;
    ngx_http_zstd_entry_t   *entry;
    ngx_http_zstd_shared_t  *shared;

    if (zmcf->shm_zone == NULL) {
        return 0;
    }

    n = 0;
    now = ngx_time();
    shared = zmcf->shm_zone->data;

    for (i = 0; i < shared->nentries; i++) {
        entry = &shared->entries[i];
        running = entry->slot.jobs_running;

        if (running == 0 || &entry->slot == mine) {
            continue;
        }

        if (ngx_http_zstd_status_alive(entry, now)) {
            n += running;
        }
    }

    return n;
}


/*
 * A worker that was killed with jobs running leaves their number behind, and
 * if it was an old one, nobody takes over its slot.  So its process is looked
 * for, at most once in a second; always if now is 0.  Any thread.
 */

static ngx_uint_t
ngx_http_zstd_status_alive(ngx_http_zstd_entry_t *entry, time_t now)
{
    ngx_atomic_uint_t  pid;

    pid = entry->slot.pid;

    if (pid == 0 || pid == entry->gone) {
        return 0;
    }

    if (pid == (ngx_atomic_uint_t) ngx_pid
        || (now && entry->looked == (ngx_atomic_uint_t) now))
    {
        return 1;
    }

    entry->looked = (ngx_atomic_uint_t) now;

    if (kill((ngx_pid_t) pid, 0) == -1 && ngx_errno == NGX_ESRCH) {

        /* if the slot has a new owner by now, this is not its pid */

        entry->gone = pid;
        return 0;
    }

    return 1;
}


static void
ngx_http_zstd_status_read(ngx_http_zstd_slot_t *slot,
    ngx_http_zstd_values_t *values)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_ZSTD_NMETRICS; i++) {
        values->metrics[i] =
              ngx_http_zstd_status_read_field(slot, &ngx_http_zstd_metrics[i]);
    }

    for (i = 0; i < NGX_HTTP_ZSTD_NCACHE; i++) {
        values->cache[i] =
              ngx_http_zstd_status_read_field(slot,
                                              &ngx_http_zstd_cache_metrics[i]);
    }

    for (i = 0; i < NGX_HTTP_ZSTD_NREASONS; i++) {
        values->reasons[i] = slot->reasons[i];
    }
}


static uint64_t
ngx_http_zstd_status_read_field(ngx_http_zstd_slot_t *slot,
    ngx_http_zstd_metric_t *metric)
{
    u_char  *p;

    p = (u_char *) slot + metric->offset;

    if (metric->size == sizeof(uint64_t)) {
        return *(volatile uint64_t *) p;
    }

    return *(volatile uint32_t *) p;
}


/* of values of a dead worker, only what counts up is added */

static void
ngx_http_zstd_status_add(ngx_http_zstd_values_t *sum,
    ngx_http_zstd_values_t *values, ngx_uint_t alive)
{
    ngx_uint_t  i;

    ngx_http_zstd_status_add_table(ngx_http_zstd_metrics, sum->metrics,
                                   values->metrics, alive);

    ngx_http_zstd_status_add_table(ngx_http_zstd_cache_metrics, sum->cache,
                                   values->cache, alive);

    for (i = 0; i < NGX_HTTP_ZSTD_NREASONS; i++) {
        sum->reasons[i] += values->reasons[i];
    }
}


static void
ngx_http_zstd_status_add_table(ngx_http_zstd_metric_t *metric, uint64_t *sum,
    uint64_t *values, ngx_uint_t alive)
{
    for ( /* void */ ; metric->name; metric++, sum++, values++) {

        if (metric->kind == NGX_HTTP_ZSTD_COUNTER) {
            *sum += *values;
            continue;
        }

        if (!alive) {
            continue;
        }

        if (metric->kind == NGX_HTTP_ZSTD_GAUGE) {
            *sum += *values;

        } else {
            *sum = ngx_max(*sum, *values);
        }
    }
}


char *
ngx_http_zstd_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                  *value;
    ngx_http_handler_pt         handler;
    ngx_http_core_loc_conf_t   *clcf;
    ngx_http_zstd_main_conf_t  *zmcf;

    value = cf->args->elts;

    if (cf->args->nelts == 1 || ngx_strcmp(value[1].data, "json") == 0) {
        handler = ngx_http_zstd_status_json_handler;

    } else if (ngx_strcmp(value[1].data, "prometheus") == 0) {
        handler = ngx_http_zstd_status_prometheus_handler;

    } else {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" in \"%V\" directive, "
                           "it must be \"json\" or \"prometheus\"",
                           &value[1], &cmd->name);
        return NGX_CONF_ERROR;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->handler == ngx_http_zstd_status_json_handler
        || clcf->handler == ngx_http_zstd_status_prometheus_handler)
    {
        return "is duplicate";
    }

    clcf->handler = handler;

    zmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_zstd_filter_module);

    if (ngx_http_zstd_status_zone(cf, zmcf) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_zstd_status_json_handler(ngx_http_request_t *r)
{
    static ngx_str_t  type = ngx_string("application/json");

    return ngx_http_zstd_status_send(r, &type, type.len,
                                     ngx_http_zstd_print_json);
}


static ngx_int_t
ngx_http_zstd_status_prometheus_handler(ngx_http_request_t *r)
{
    static ngx_str_t  type = ngx_string("text/plain; version=0.0.4");

    return ngx_http_zstd_status_send(r, &type, sizeof("text/plain") - 1,
                                     ngx_http_zstd_print_prometheus);
}


static ngx_int_t
ngx_http_zstd_status_send(ngx_http_request_t *r, ngx_str_t *type,
    size_t type_len,
    void (*print)(ngx_http_zstd_page_t *page, ngx_http_zstd_report_t *report))
{
    ngx_int_t               rc;
    ngx_http_zstd_page_t    page;
    ngx_http_zstd_report_t  report;

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        return NGX_HTTP_NOT_ALLOWED;
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_zstd_status_report(r, &report) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memzero(&page, sizeof(ngx_http_zstd_page_t));

    page.pool = r->pool;
    page.last = &page.out;

    print(&page, &report);

    if (page.size == -1 || ngx_http_zstd_status_no_store(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    page.buf->last_buf = (r == r->main) ? 1 : 0;
    page.buf->last_in_chain = 1;

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = page.size;
    r->headers_out.content_type = *type;
    r->headers_out.content_type_len = type_len;
    r->headers_out.content_type_lowcase = NULL;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    return ngx_http_output_filter(r, page.out);
}


static ngx_int_t
ngx_http_zstd_status_no_store(ngx_http_request_t *r)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    h->hash = 1;
#if (nginx_version >= 1023000)
    h->next = NULL;
#endif
    ngx_str_set(&h->key, "Cache-Control");
    ngx_str_set(&h->value, "no-store");

    return NGX_OK;
}


static ngx_int_t
ngx_http_zstd_status_report(ngx_http_request_t *r,
    ngx_http_zstd_report_t *report)
{
    ngx_uint_t                  i, n, alive;
    ngx_slab_pool_t            *shpool;
    ngx_http_zstd_entry_t      *entry;
    ngx_http_zstd_shared_t     *shared;
    ngx_http_zstd_values_t      values;
    ngx_http_zstd_worker_t     *worker;
    ngx_http_zstd_main_conf_t  *zmcf;

    zmcf = ngx_http_get_module_main_conf(r, ngx_http_zstd_filter_module);

    shared = zmcf->shm_zone->data;
    shpool = (ngx_slab_pool_t *) zmcf->shm_zone->shm.addr;

    /* what the others show may be a second old, but not what we show */

    if (ngx_http_zstd_cache) {
        ngx_http_zstd_slot->cache.struct_size = sizeof(segzstd_cache_stats);
        (void) segzstd_cache_get_stats(ngx_http_zstd_cache,
                                       &ngx_http_zstd_slot->cache);
    }

    /* an entry that is added from here on has nothing to show yet */

    n = shared->nentries;

    report->conf = zmcf;
    report->nworkers = 0;
    report->workers = ngx_palloc(r->pool, n * sizeof(ngx_http_zstd_worker_t));
    if (report->workers == NULL) {
        return NGX_ERROR;
    }

    ngx_shmtx_lock(&shpool->mutex);

    report->all = shared->past;

    for (i = 0; i < n; i++) {
        entry = &shared->entries[i];
        alive = ngx_http_zstd_status_alive(entry, 0);

        ngx_http_zstd_status_read(&entry->slot, &values);
        ngx_http_zstd_status_add(&report->all, &values, alive);

        if (alive) {
            worker = &report->workers[report->nworkers++];
            worker->number = i;
            worker->pid = (ngx_pid_t) entry->slot.pid;
            worker->values = values;
        }
    }

    ngx_shmtx_unlock(&shpool->mutex);

    return NGX_OK;
}


static void
ngx_http_zstd_print_json(ngx_http_zstd_page_t *page,
    ngx_http_zstd_report_t *report)
{
    ngx_uint_t               i;
    ngx_http_zstd_worker_t  *worker;

    ngx_http_zstd_print(page,
                        "{\n"
                        "  \"version\": \"%s\",\n"
                        "  \"libzstd\": \"%s\",\n"
                        "  \"threads\": \"%s\",\n"
                        "  \"memory_limit\": ",
                        segzstd_version(), segzstd_zstd_version(),
                        ngx_http_zstd_status_threads(report->conf));

    if (report->conf->memory == NGX_CONF_UNSET) {
        ngx_http_zstd_print(page, "null");

    } else {
        ngx_http_zstd_print(page, "%O", report->conf->memory);
    }

    ngx_http_zstd_print(page, ",\n  \"all\": {\n");

    ngx_http_zstd_print_json_values(page, &report->all, "    ");

    ngx_http_zstd_print(page, "  },\n  \"workers\": [");

    for (i = 0; i < report->nworkers; i++) {
        worker = &report->workers[i];

        ngx_http_zstd_print(page,
                            "%s\n"
                            "    {\n"
                            "      \"worker\": %ui,\n"
                            "      \"pid\": %P,\n",
                            i ? "," : "", worker->number, worker->pid);

        ngx_http_zstd_print_json_values(page, &worker->values, "      ");

        ngx_http_zstd_print(page, "    }");
    }

    ngx_http_zstd_print(page, "\n  ]\n}\n");
}


static void
ngx_http_zstd_print_json_values(ngx_http_zstd_page_t *page,
    ngx_http_zstd_values_t *values, char *indent)
{
    ngx_uint_t  i;

    ngx_http_zstd_print_json_table(page, ngx_http_zstd_metrics,
                                   values->metrics, indent);

    ngx_http_zstd_print(page, ",\n%s\"not_compressed\": {", indent);

    for (i = NGX_HTTP_ZSTD_FIRST; i < NGX_HTTP_ZSTD_NREASONS; i++) {
        ngx_http_zstd_print(page, "%s\n%s  \"%V\": %uL",
                            i > NGX_HTTP_ZSTD_FIRST ? "," : "",
                            indent, &ngx_http_zstd_reasons[i],
                            values->reasons[i]);
    }

    ngx_http_zstd_print(page, "\n%s},\n%s\"cache\": {\n", indent, indent);

    ngx_http_zstd_print_json_table(page, ngx_http_zstd_cache_metrics,
                                   values->cache, indent);

    ngx_http_zstd_print(page, "\n%s}\n", indent);
}


static void
ngx_http_zstd_print_json_table(ngx_http_zstd_page_t *page,
    ngx_http_zstd_metric_t *metric, uint64_t *values, char *indent)
{
    char  *comma, *deeper;

    comma = "";
    deeper = (metric == ngx_http_zstd_cache_metrics) ? "  " : "";

    for ( /* void */ ; metric->name; metric++, values++) {
        ngx_http_zstd_print(page, "%s%s%s\"%s\": ", comma, indent, deeper,
                            metric->name);
        ngx_http_zstd_print_value(page, metric, *values);

        comma = ",\n";
    }
}


/*
 * The text exposition format, version 0.0.4.  Sums have names of their own, so
 * that a query over the series of the workers does not count things twice.
 */

static void
ngx_http_zstd_print_prometheus(ngx_http_zstd_page_t *page,
    ngx_http_zstd_report_t *report)
{
    ngx_uint_t               i;
    ngx_http_zstd_worker_t  *worker;

    ngx_http_zstd_print(page,
                        "# HELP nginx_zstd_info Versions, and where jobs"
                        " are run.\n"
                        "# TYPE nginx_zstd_info gauge\n"
                        "nginx_zstd_info{version=\"%s\",libzstd=\"%s\","
                        "threads=\"%s\"} 1\n",
                        segzstd_version(), segzstd_zstd_version(),
                        ngx_http_zstd_status_threads(report->conf));

    if (report->conf->memory != NGX_CONF_UNSET) {
        ngx_http_zstd_print(page,
                            "# HELP nginx_zstd_memory_limit_bytes Memory that"
                            " a worker may allocate for compression; 0 if"
                            " there is no limit.\n"
                            "# TYPE nginx_zstd_memory_limit_bytes gauge\n"
                            "nginx_zstd_memory_limit_bytes %O\n",
                            report->conf->memory);
    }

    ngx_http_zstd_print(page,
                        "# HELP nginx_zstd_workers Worker processes that"
                        " can compress.\n"
                        "# TYPE nginx_zstd_workers gauge\n"
                        "nginx_zstd_workers %ui\n",
                        report->nworkers);

    if (report->nworkers) {
        ngx_http_zstd_print(page,
                            "# HELP nginx_zstd_worker_info The process of a"
                            " worker.\n"
                            "# TYPE nginx_zstd_worker_info gauge\n");
    }

    for (i = 0; i < report->nworkers; i++) {
        worker = &report->workers[i];

        ngx_http_zstd_print(page,
                            "nginx_zstd_worker_info"
                            "{worker=\"%ui\",pid=\"%P\"} 1\n",
                            worker->number, worker->pid);
    }

    ngx_http_zstd_print_prometheus_table(page, report, ngx_http_zstd_metrics,
                                    offsetof(ngx_http_zstd_values_t, metrics));

    ngx_http_zstd_print_prometheus_reasons(page, report);

    ngx_http_zstd_print_prometheus_table(page, report,
                                      ngx_http_zstd_cache_metrics,
                                      offsetof(ngx_http_zstd_values_t, cache));
}


/* offset: of the first value in ngx_http_zstd_values_t */

static void
ngx_http_zstd_print_prometheus_table(ngx_http_zstd_page_t *page,
    ngx_http_zstd_report_t *report, ngx_http_zstd_metric_t *metric,
    size_t offset)
{
    char                    *type;
    uint64_t                *value;
    ngx_uint_t               i;
    ngx_http_zstd_worker_t  *worker;

    for ( /* void */ ; metric->name; metric++, offset += sizeof(uint64_t)) {

        type = (metric->kind == NGX_HTTP_ZSTD_COUNTER) ? "counter" : "gauge";
        value = (uint64_t *) ((u_char *) &report->all + offset);

        ngx_http_zstd_print(page,
                            "# HELP nginx_zstd_%s %s.\n"
                            "# TYPE nginx_zstd_%s %s\n"
                            "nginx_zstd_%s ",
                            metric->series, metric->help,
                            metric->series, type, metric->series);
        ngx_http_zstd_print_value(page, metric, *value);
        ngx_http_zstd_print(page, "\n");

        if (report->nworkers == 0) {
            continue;
        }

        ngx_http_zstd_print(page,
                            "# HELP nginx_zstd_worker_%s %s, of a worker.\n"
                            "# TYPE nginx_zstd_worker_%s %s\n",
                            metric->series, metric->help,
                            metric->series, type);

        for (i = 0; i < report->nworkers; i++) {
            worker = &report->workers[i];
            value = (uint64_t *) ((u_char *) &worker->values + offset);

            ngx_http_zstd_print(page,
                                "nginx_zstd_worker_%s{worker=\"%ui\"} ",
                                metric->series, worker->number);
            ngx_http_zstd_print_value(page, metric, *value);
            ngx_http_zstd_print(page, "\n");
        }
    }
}


static void
ngx_http_zstd_print_prometheus_reasons(ngx_http_zstd_page_t *page,
    ngx_http_zstd_report_t *report)
{
    ngx_uint_t               i, k;
    ngx_http_zstd_worker_t  *worker;

    ngx_http_zstd_print(page,
                        "# HELP nginx_zstd_not_compressed_total Responses that"
                        " were not compressed, by the first reason found.\n"
                        "# TYPE nginx_zstd_not_compressed_total counter\n");

    for (k = NGX_HTTP_ZSTD_FIRST; k < NGX_HTTP_ZSTD_NREASONS; k++) {
        ngx_http_zstd_print(page,
                            "nginx_zstd_not_compressed_total"
                            "{reason=\"%V\"} %uL\n",
                            &ngx_http_zstd_reasons[k], report->all.reasons[k]);
    }

    if (report->nworkers == 0) {
        return;
    }

    ngx_http_zstd_print(page,
                        "# HELP nginx_zstd_worker_not_compressed_total"
                        " Responses that were not compressed, by the first"
                        " reason found, of a worker.\n"
                        "# TYPE nginx_zstd_worker_not_compressed_total"
                        " counter\n");

    for (i = 0; i < report->nworkers; i++) {
        worker = &report->workers[i];

        for (k = NGX_HTTP_ZSTD_FIRST; k < NGX_HTTP_ZSTD_NREASONS; k++) {
            ngx_http_zstd_print(page,
                                "nginx_zstd_worker_not_compressed_total"
                                "{worker=\"%ui\",reason=\"%V\"} %uL\n",
                                worker->number, &ngx_http_zstd_reasons[k],
                                worker->values.reasons[k]);
        }
    }
}


static void
ngx_http_zstd_print_value(ngx_http_zstd_page_t *page,
    ngx_http_zstd_metric_t *metric, uint64_t value)
{
    if (metric->nano) {
        ngx_http_zstd_print(page, "%uL.%09uL", value / 1000000000,
                            value % 1000000000);
        return;
    }

    ngx_http_zstd_print(page, "%uL", value);
}


static char *
ngx_http_zstd_status_threads(ngx_http_zstd_main_conf_t *zmcf)
{
#if (NGX_THREADS)
    if (zmcf->pools.nelts) {
        return "pool";
    }
#endif

    return "loop";
}


static void ngx_cdecl
ngx_http_zstd_print(ngx_http_zstd_page_t *page, const char *fmt, ...)
{
    u_char       *p;
    va_list       args;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    if (page->size == -1) {
        return;
    }

    b = page->buf;

    if (b == NULL || b->end - b->last < NGX_HTTP_ZSTD_PIECE) {

        b = ngx_create_temp_buf(page->pool, NGX_HTTP_ZSTD_PAGE);
        cl = ngx_alloc_chain_link(page->pool);

        if (b == NULL || cl == NULL) {
            page->size = -1;
            return;
        }

        cl->buf = b;
        cl->next = NULL;

        *page->last = cl;
        page->last = &cl->next;
        page->buf = b;
    }

    va_start(args, fmt);
    p = ngx_vslprintf(b->last, b->end, fmt, args);
    va_end(args);

    page->size += p - b->last;
    b->last = p;
}
