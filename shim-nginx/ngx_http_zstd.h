
/*
 * Copyright (C) the libsegzstd authors
 *
 * What the files of the filter module share.
 */


#ifndef _NGX_HTTP_ZSTD_H_INCLUDED_
#define _NGX_HTTP_ZSTD_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#if (NGX_THREADS)
#include <ngx_thread_pool.h>
#endif

#include <segzstd.h>

#include "ngx_http_zstd_accept.h"


/* RFC 9659: what an HTTP client must be able to decode */
#define NGX_HTTP_ZSTD_WINDOW_LOG_MAX  23

/* bounds of the input that one response may hold */
#define NGX_HTTP_ZSTD_INPUT_MIN       (256 * 1024)
#define NGX_HTTP_ZSTD_INPUT_MAX       (1024 * 1024)

/* and of what of it, compressed or not, one encoder may look at */
#define NGX_HTTP_ZSTD_EXTENT_MAX      (16 * 1024 * 1024)

/* content of a file that a job holds, to the bound of the input: cuts for two
 * threads are few then */
#define NGX_HTTP_ZSTD_READ_RATIO      8


/*
 * "0" of a directive whose "auto" is 0.  What the library has for it equals
 * NGX_CONF_UNSET_*.
 */
#define NGX_HTTP_ZSTD_NONE            ((ngx_uint_t) -2)


/* why a response was not compressed: $zstd_reason; 0 if it was */

typedef enum {
    NGX_HTTP_ZSTD_COMPRESSED = 0,
    NGX_HTTP_ZSTD_OFF,               /* "off": zstd is off here */
    NGX_HTTP_ZSTD_STATUS,            /* "status" */
    NGX_HTTP_ZSTD_NO_BODY,           /* "no_body": HEAD, 304 and the like */
    NGX_HTTP_ZSTD_ENCODED,           /* "encoded": has a Content-Encoding */
    NGX_HTTP_ZSTD_TYPE,              /* "type" */
    NGX_HTTP_ZSTD_LENGTH,            /* "length": too short or too long */
    NGX_HTTP_ZSTD_NO_TRANSFORM,      /* "no_transform" */
    NGX_HTTP_ZSTD_BYPASS,            /* "bypass" */
    NGX_HTTP_ZSTD_VERSION,           /* "version": of HTTP */
    NGX_HTTP_ZSTD_PROXIED,           /* "proxied" */
    NGX_HTTP_ZSTD_DISABLE,           /* "disable": zstd_disable matched */
    NGX_HTTP_ZSTD_ACCEPT,            /* "accept": the client does not want it */
    NGX_HTTP_ZSTD_PREFERENCE,        /* "preference": another coding first */
    NGX_HTTP_ZSTD_MEMORY             /* "memory": zstd_memory reached */
} ngx_http_zstd_reason_e;

#define NGX_HTTP_ZSTD_REASONS  (NGX_HTTP_ZSTD_MEMORY + 1)


/*
 * Counters of a worker, in shared memory: written by that worker's event loop
 * only, read by anybody.  Reset when the worker starts.
 */

typedef struct {
    ngx_atomic_t               pid;             /* 0: slot was never used */
    ngx_atomic_t               jobs_running;    /* in threads, at this moment;
                                                 * the one field that threads
                                                 * write, by ngx_atomic_fetch_
                                                 * add() */
    ngx_atomic_t               jobs_pool;       /* run on a thread pool */
    ngx_atomic_t               jobs_loop;       /* run on the event loop */
    ngx_atomic_t               responses;       /* compressed, begun */
    ngx_atomic_t               finished;        /* of these, to their end */
    ngx_atomic_t               failed;          /* of these, ended by an error
                                                 * of the content or library */
    ngx_atomic_t               queue_full;      /* jobs that a pool refused */
    ngx_atomic_t               no_memory;       /* times zstd_memory was hit */
    volatile uint64_t          bytes_in;        /* compressed or stored; an
                                                 * ngx_atomic_t may have 32
                                                 * bits */
    volatile uint64_t          bytes_out;
    volatile uint64_t          cpu_ns;          /* of all jobs */
    ngx_atomic_t               reasons[NGX_HTTP_ZSTD_REASONS];
                                                /* responses not compressed */
    segzstd_cache_stats        cache;           /* a copy, at most 1 s old
                                                 * while jobs are done */
} ngx_http_zstd_slot_t;


/* a dictionary; the same file is read once */

typedef struct {
    ngx_str_t                  file;
    ngx_str_t                  bytes;
    segzstd_dict              *dict;            /* of this worker */
} ngx_http_zstd_dict_t;


typedef struct {
    ngx_http_zstd_accept_conf_t  accept;        /* the first */

    ngx_flag_t                 enable;
    ngx_flag_t                 vary;

    ngx_int_t                  level;
    ngx_bufs_t                 bufs;            /* most output that waits */
    off_t                      min_length;
    off_t                      max_length;      /* 0: no limit */
    size_t                     segment_size;    /* 0: adaptive */
    size_t                     overlap;         /* 0: auto; or NONE, above */
    ngx_uint_t                 tasks;           /* 0: auto */
    ngx_uint_t                 window_log;
    ngx_int_t                  inline_us;       /* microseconds */

    ngx_hash_t                 types;
    ngx_array_t               *types_keys;

    ngx_http_zstd_dict_t      *dict;            /* NULL: none */

    ngx_flag_t                 use_pool;
    ngx_str_t                  pool_name;       /* empty: the default one */
#if (NGX_THREADS)
    ngx_thread_pool_t         *pool;            /* NULL: on the loop */
#endif
} ngx_http_zstd_loc_conf_t;


#if (NGX_THREADS)
#define ngx_http_zstd_uses_pool(conf)  ((conf)->pool != NULL)
#else
#define ngx_http_zstd_uses_pool(conf)  0
#endif


typedef struct {
    ngx_uint_t                 compressors;     /* kept warm; 0: auto; or
                                                 * NONE, above */
    ngx_uint_t                 retention;       /* segzstd_retention */
    off_t                      retain_bytes;
    off_t                      memory;          /* of a worker; 0: no bound;
                                                 * NGX_CONF_UNSET: auto, until
                                                 * the worker has begun */
    ngx_int_t                  nice;            /* 0: leave it */

    ngx_array_t                dicts;           /* of ngx_http_zstd_dict_t * */
    ngx_shm_zone_t            *shm_zone;        /* of the status */
    ngx_uint_t                 enabled;         /* "zstd on" somewhere */
#if (NGX_THREADS)
    ngx_array_t                others_pools;    /* of ngx_thread_pool_t *: used
                                                 * by "aio threads" too */
    ngx_array_t                pools;           /* those that we use */
    ngx_uint_t                 any_pool;        /* "aio threads" has one with
                                                 * variables */
#endif
} ngx_http_zstd_main_conf_t;


/* file buffers that a job reads, until the library needs them no more */

typedef struct {
    ngx_fd_t                   fd;
    off_t                      offset;
    ngx_str_t                  name;
    ngx_chain_t               *bufs;
    struct ngx_http_zstd_ctx_s  *ctx;
} ngx_http_zstd_file_t;


typedef struct ngx_http_zstd_task_s  ngx_http_zstd_task_t;


/* one response; all of it is the event loop's, in memory of the request */

typedef struct ngx_http_zstd_ctx_s {
    ngx_http_request_t        *request;
    ngx_http_zstd_loc_conf_t  *conf;
    segzstd_stream            *stream;          /* NULL: not compressed, or
                                                 * all is done */
    ngx_chain_t               *in;              /* not yet pushed */
    ngx_chain_t               *busy;            /* lent to the next filter */
    ngx_chain_t               *free;
    size_t                     lent;            /* bytes of "busy" */
    size_t                     input_max;       /* of the stream's options */
    uint64_t                   sent;            /* bytes of output */
    off_t                      length;          /* of the content; -1: unknown
                                                 */

    ngx_queue_t                waiting;         /* for a job, or for memory */
    ngx_queue_t                working;         /* if there are tasks */
    ngx_msec_t                 turn;            /* its begin; 0: it has none */
    ngx_http_zstd_task_t      *free_tasks;
    ngx_uint_t                 tasks;           /* that are out */
    ngx_uint_t                 refused;         /* jobs, by a full pool, since
                                                 * it took one */

    ngx_uint_t                 reason;          /* ngx_http_zstd_reason_e */
    segzstd_stream_stats       stats;           /* as they were counted */
    int                        error;           /* fatal, of the stream */

    unsigned                   queued:1;        /* in the queue of waiting */
    unsigned                   flush:1;         /* flush is to be passed on */
    unsigned                   ended:1;         /* the last buffer was pushed */
    unsigned                   broken:1;        /* no end of frame to come */
    unsigned                   no_input:1;      /* no memory for more of it */
    unsigned                   no_job:1;        /* no memory for a job */
    unsigned                   begun:1;         /* had a job */
    unsigned                   gives_way:1;     /* to a shorter one */
    unsigned                   failed:1;
    unsigned                   last:1;          /* last_buf was passed on */
    unsigned                   terminated:1;    /* the request is to be freed */
    unsigned                   pool:1;          /* a job ran on a pool */
} ngx_http_zstd_ctx_t;


/* a job that is out, on a thread pool or in the queue of the loop */

struct ngx_http_zstd_task_s {
#if (NGX_THREADS)
    ngx_thread_pool_t         *pool;
#endif
    ngx_queue_t                queue;
    segzstd_job               *job;
    ngx_http_zstd_ctx_t       *ctx;
    ngx_http_zstd_task_t      *next;            /* in ctx->free_tasks */
};


/* the numbers of one response, for variables; see ngx_http_zstd_stats() */

typedef struct {
    ngx_uint_t                 reason;          /* ngx_http_zstd_reason_e */
    uint64_t                   bytes_in;
    uint64_t                   bytes_out;
    uint64_t                   segments;
    uint64_t                   cpu_ns;
    unsigned                   done:1;          /* the frame is complete */
    unsigned                   pool:1;          /* a job ran on a pool */
} ngx_http_zstd_stats_t;


/*
 * Of this response so far.  NGX_DECLINED if the filter has not seen its header
 * (yet).
 */
ngx_int_t ngx_http_zstd_stats(ngx_http_request_t *r,
    ngx_http_zstd_stats_t *stats);


/* ngx_http_zstd_status.c */

/* called once in preconfiguration: $zstd_ratio and the other variables */
ngx_int_t ngx_http_zstd_add_variables(ngx_conf_t *cf);

/* called once in postconfiguration, if zstd is on somewhere or there is a
 * zstd_status: makes the shared zone with a slot for each worker */
ngx_int_t ngx_http_zstd_status_zone(ngx_conf_t *cf,
    ngx_http_zstd_main_conf_t *zmcf);

/* called once in init_process: the slot of this worker, cleared; never NULL
 * (private memory if there is no zone) */
ngx_http_zstd_slot_t *ngx_http_zstd_status_slot(ngx_cycle_t *cycle,
    ngx_http_zstd_main_conf_t *zmcf);

/* jobs running in the threads of the other workers */
ngx_uint_t ngx_http_zstd_status_others_running(
    ngx_http_zstd_main_conf_t *zmcf, ngx_http_zstd_slot_t *mine);

/* the directive "zstd_status [json|prometheus]" */
char *ngx_http_zstd_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);


/* ngx_http_zstd_worker.c */

/* once for each worker; the cache is NULL until then */
ngx_int_t ngx_http_zstd_init_worker(ngx_cycle_t *cycle,
    ngx_http_zstd_main_conf_t *zmcf);
void ngx_http_zstd_exit_worker(ngx_http_zstd_main_conf_t *zmcf);

void ngx_http_zstd_init_event(ngx_event_t *ev, ngx_log_t *log,
    ngx_event_handler_pt handler);

/*
 * A response of that length, -1 if it is not known, fits into zstd_memory, and
 * what is taken already leaves room for one more.
 */
ngx_uint_t ngx_http_zstd_has_memory(ngx_http_zstd_loc_conf_t *conf,
    off_t length);

/*
 * How much input of one more response may wait, a share of the memory; and how
 * much of its content may be held in one piece, if asked for.
 */
size_t ngx_http_zstd_input_bytes(size_t *extent);

/*
 * Whether responses whose clients do not read should give back what they hold
 * of their content.  To have it again costs time and size, so not while all
 * together hold little.
 */
ngx_uint_t ngx_http_zstd_is_tight(void);

/* copies the cache's counters for the status, from time to time */
void ngx_http_zstd_count_cache(void);

extern segzstd_cache         *ngx_http_zstd_cache;
extern ngx_http_zstd_slot_t  *ngx_http_zstd_slot;


/* ngx_http_zstd_task.c */

void ngx_http_zstd_init_tasks(ngx_cycle_t *cycle);

/*
 * Takes all the work that the stream has, and runs it, has it run, or puts the
 * response into the queue of those that wait.  NGX_ERROR: the stream failed.
 */
ngx_int_t ngx_http_zstd_work(ngx_http_zstd_ctx_t *ctx);

/* the response waits for nothing any more */
void ngx_http_zstd_leave_queue(ngx_http_zstd_ctx_t *ctx);

/* a job was run, and is back on the loop */
void ngx_http_zstd_done(ngx_http_zstd_task_t *task);


#if (NGX_THREADS)

/* ngx_http_zstd_thread.c */

ngx_int_t ngx_http_zstd_init_threads(ngx_cycle_t *cycle,
    ngx_http_zstd_main_conf_t *zmcf, ngx_uint_t cpus);
void ngx_http_zstd_stop_threads(void);
void ngx_http_zstd_exit_threads(void);

/* has the task's job run; NGX_BUSY: the pool takes none, and none is running */
ngx_int_t ngx_http_zstd_post(ngx_http_zstd_task_t *task);

/* tries again what a pool had refused */
void ngx_http_zstd_post_ready(void);

#endif


/* ngx_http_zstd_filter_module.c */

/* passes on what is ready, takes what fits; NGX_ERROR: the response failed */
ngx_int_t ngx_http_zstd_drive(ngx_http_zstd_ctx_t *ctx);

/* adds what has come of a response to the counters */
void ngx_http_zstd_count(ngx_http_zstd_ctx_t *ctx);

/* the client does not read as fast as its response is made */
ngx_uint_t ngx_http_zstd_is_slow(ngx_http_zstd_ctx_t *ctx);


/* ngx_http_zstd_conf.c */

extern ngx_command_t  ngx_http_zstd_commands[];

void *ngx_http_zstd_create_main_conf(ngx_conf_t *cf);
char *ngx_http_zstd_init_main_conf(ngx_conf_t *cf, void *conf);
void *ngx_http_zstd_create_loc_conf(ngx_conf_t *cf);
char *ngx_http_zstd_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child);

/* once all locations are merged: all pools, and their users, are known */
ngx_int_t ngx_http_zstd_check_nice(ngx_conf_t *cf,
    ngx_http_zstd_main_conf_t *zmcf);

/* bytes that a response of that length needs, at least; -1: any length */
uint64_t ngx_http_zstd_least_memory(ngx_http_zstd_loc_conf_t *conf,
    off_t length);


extern ngx_module_t  ngx_http_zstd_filter_module;


#endif /* _NGX_HTTP_ZSTD_H_INCLUDED_ */
