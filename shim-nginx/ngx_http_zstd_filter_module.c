
/*
 * Copyright (C) the libsegzstd authors
 *
 * The filters: which responses are compressed, and how their buffers become the
 * content of a stream and its output becomes buffers.
 *
 * Four modules, because of where each has to stand among the filters: the first
 * decides after all that change the content, and before brotli and gzip; the
 * last takes what these have left; the body filter is in their place.  The top
 * one runs before all others.
 */


#include "ngx_http_zstd.h"
#include "ngx_http_zstd_request.h"


/* pieces of output that are passed on at once */
#define NGX_HTTP_ZSTD_VECS         64

/*
 * Of a file, what is shorter and not the whole content is read by the loop:
 * what a job reads begins a new segment.
 */
#define NGX_HTTP_ZSTD_READER_MIN   (256 * 1024)

#define NGX_HTTP_ZSTD_READ_SIZE    32768

/*
 * Input that may wait at first, enough for two threads, and what each byte of
 * output that the client has taken allows beyond.
 */
#define NGX_HTTP_ZSTD_INPUT_FIRST  (512 * 1024)
#define NGX_HTTP_ZSTD_INPUT_RATIO  16


static void ngx_http_zstd_foresee(ngx_http_request_t *r);
static ngx_int_t ngx_http_zstd_top_header_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_zstd_first_header_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_zstd_last_header_filter(ngx_http_request_t *r);
static void ngx_http_zstd_ask_memory(ngx_http_request_t *r);
static void ngx_http_zstd_keep_files(ngx_http_zstd_ctx_t *ctx);
static ngx_uint_t ngx_http_zstd_decide(ngx_http_request_t *r,
    ngx_http_zstd_loc_conf_t *conf);
static ngx_uint_t ngx_http_zstd_test(ngx_http_request_t *r,
    ngx_http_zstd_loc_conf_t *conf);
static ngx_int_t ngx_http_zstd_start(ngx_http_request_t *r,
    ngx_http_zstd_loc_conf_t *conf);
static segzstd_stream *ngx_http_zstd_stream(ngx_http_zstd_ctx_t *ctx);
static void ngx_http_zstd_set_reason(ngx_http_request_t *r, ngx_uint_t reason);

static ngx_int_t ngx_http_zstd_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static ngx_uint_t ngx_http_zstd_has_enough(ngx_http_zstd_ctx_t *ctx);
static ngx_int_t ngx_http_zstd_push(ngx_http_zstd_ctx_t *ctx);
static ngx_int_t ngx_http_zstd_push_memory(ngx_http_zstd_ctx_t *ctx,
    ngx_buf_t *b);
static ngx_int_t ngx_http_zstd_push_file(ngx_http_zstd_ctx_t *ctx);
static ngx_int_t ngx_http_zstd_push_reader(ngx_http_zstd_ctx_t *ctx,
    ngx_chain_t *last, size_t size);
static ngx_int_t ngx_http_zstd_push_read(ngx_http_zstd_ctx_t *ctx,
    ngx_buf_t *b);
static segzstd_op ngx_http_zstd_op(ngx_buf_t *b);
static ngx_int_t ngx_http_zstd_pushed(ngx_http_zstd_ctx_t *ctx, int rc,
    size_t left);
static void ngx_http_zstd_op_done(ngx_http_zstd_ctx_t *ctx, segzstd_op op);
static int64_t ngx_http_zstd_read(void *arg, uint64_t offset, void *dst,
    size_t len);
static void ngx_http_zstd_release_file(void *arg);
static ngx_int_t ngx_http_zstd_collect(ngx_http_zstd_ctx_t *ctx,
    ngx_chain_t **out);
static ngx_chain_t *ngx_http_zstd_get_buf(ngx_http_zstd_ctx_t *ctx);
static void ngx_http_zstd_recycle(ngx_http_zstd_ctx_t *ctx, ngx_chain_t *out);
static ngx_uint_t ngx_http_zstd_has_first(ngx_http_zstd_ctx_t *ctx);
static ngx_uint_t ngx_http_zstd_is_busy(ngx_http_zstd_ctx_t *ctx);
static void ngx_http_zstd_failed(ngx_http_zstd_ctx_t *ctx);
static void ngx_http_zstd_give_up(ngx_http_zstd_ctx_t *ctx);
static void ngx_http_zstd_cancel(ngx_http_zstd_ctx_t *ctx);
static void ngx_http_zstd_free_stream(ngx_http_zstd_ctx_t *ctx);
static void ngx_http_zstd_terminate(void *data);
static void ngx_http_zstd_cleanup(void *data);

static ngx_int_t ngx_http_zstd_preconfiguration(ngx_conf_t *cf);
static ngx_int_t ngx_http_zstd_filter_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_zstd_first_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_zstd_last_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_zstd_top_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_zstd_init_process(ngx_cycle_t *cycle);
static void ngx_http_zstd_exit_process(ngx_cycle_t *cycle);
static void ngx_http_zstd_stop_process(ngx_cycle_t *cycle);


static ngx_http_module_t  ngx_http_zstd_filter_module_ctx = {
    ngx_http_zstd_preconfiguration,        /* preconfiguration */
    ngx_http_zstd_filter_init,             /* postconfiguration */

    ngx_http_zstd_create_main_conf,        /* create main configuration */
    ngx_http_zstd_init_main_conf,          /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_zstd_create_loc_conf,         /* create location configuration */
    ngx_http_zstd_merge_loc_conf           /* merge location configuration */
};


ngx_module_t  ngx_http_zstd_filter_module = {
    NGX_MODULE_V1,
    &ngx_http_zstd_filter_module_ctx,      /* module context */
    ngx_http_zstd_commands,                /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_http_zstd_init_process,            /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_zstd_exit_process,            /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_http_module_t  ngx_http_zstd_first_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_zstd_first_init,              /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_zstd_first_module = {
    NGX_MODULE_V1,
    &ngx_http_zstd_first_module_ctx,       /* module context */
    NULL,                                  /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_http_module_t  ngx_http_zstd_last_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_zstd_last_init,               /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_zstd_last_module = {
    NGX_MODULE_V1,
    &ngx_http_zstd_last_module_ctx,        /* module context */
    NULL,                                  /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_http_module_t  ngx_http_zstd_top_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_zstd_top_init,                /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_zstd_top_module = {
    NGX_MODULE_V1,
    &ngx_http_zstd_top_module_ctx,         /* module context */
    NULL,                                  /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


/* stands before the module of thread pools, so that it is told of the end of a
 * worker before nginx waits for these */

static ngx_core_module_t  ngx_http_zstd_stop_module_ctx = {
    ngx_string("zstd_stop"),
    NULL,
    NULL
};


ngx_module_t  ngx_http_zstd_stop_module = {
    NGX_MODULE_V1,
    &ngx_http_zstd_stop_module_ctx,        /* module context */
    NULL,                                  /* module directives */
    NGX_CORE_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_zstd_stop_process,            /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


/* contexts of responses that are not compressed: their reason, and no more */

static ngx_http_zstd_ctx_t  ngx_http_zstd_reasons[NGX_HTTP_ZSTD_REASONS];

static ngx_http_output_header_filter_pt  ngx_http_zstd_top_next;
static ngx_http_output_header_filter_pt  ngx_http_zstd_first_next;
static ngx_http_output_header_filter_pt  ngx_http_zstd_last_next;
static ngx_http_output_body_filter_pt    ngx_http_next_body_filter;


/*
 * A response that nginx may make a 304 of is to have the Vary and the ETag of
 * what it stands for: RFC 9110, 15.4.5.  Nothing but its headers is left of it
 * when its turn comes, so this runs before.
 */

static void
ngx_http_zstd_foresee(ngx_http_request_t *r)
{
    ngx_uint_t                 reason;
    ngx_http_zstd_loc_conf_t  *conf;

    conf = ngx_http_get_module_loc_conf(r, ngx_http_zstd_filter_module);

    if (!conf->enable || ngx_http_zstd_cache == NULL) {
        return;
    }

    reason = ngx_http_zstd_decide(r, conf);

    if (reason == NGX_HTTP_ZSTD_PREFERENCE) {
        reason = NGX_HTTP_ZSTD_COMPRESSED;
    }

    if (reason == NGX_HTTP_ZSTD_COMPRESSED || reason >= NGX_HTTP_ZSTD_BYPASS) {
        ngx_http_set_ctx(r, &ngx_http_zstd_reasons[reason],
                         ngx_http_zstd_filter_module);
    }
}


/*
 * With TLS nginx asks for all content in memory, since it cannot send a file.
 * What is compressed is not sent as a file, so jobs may read it; but another
 * filter may ask for memory too.  So what nginx has asked for is taken back
 * before any other filter runs, and asked for again if it is not compressed:
 * by the last filter, or here, if another one has begun the response anew.
 */

static ngx_int_t
ngx_http_zstd_top_header_filter(ngx_http_request_t *r)
{
    if (r == r->main && r->headers_out.status == NGX_HTTP_OK
        && (r->headers_in.if_none_match || r->headers_in.if_modified_since))
    {
        ngx_http_zstd_foresee(r);
    }

#if (NGX_HTTP_SSL)

    ngx_connection_t          *c;
    ngx_http_zstd_loc_conf_t  *conf;

    c = r->connection;
    conf = ngx_http_get_module_loc_conf(r, ngx_http_zstd_filter_module);

    if (r == r->main && c->ssl
#if (nginx_version >= 1021004)
        && !c->ssl->sendfile
#endif
        )
    {
        if (conf->enable && ngx_http_zstd_cache) {
            r->main_filter_need_in_memory = 0;

            ngx_http_set_ctx(r, c->ssl, ngx_http_zstd_top_module);

        } else {
            r->main_filter_need_in_memory = 1;
        }
    }

#endif

    return ngx_http_zstd_top_next(r);
}


static ngx_int_t
ngx_http_zstd_first_header_filter(ngx_http_request_t *r)
{
    ngx_uint_t                 reason;
    ngx_http_zstd_ctx_t       *ctx;
    ngx_http_zstd_loc_conf_t  *conf;

    conf = ngx_http_get_module_loc_conf(r, ngx_http_zstd_filter_module);

    if (r != r->main || !conf->enable || ngx_http_zstd_cache == NULL) {
        return ngx_http_zstd_first_next(r);
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_zstd_filter_module);

    if (ctx && r->headers_out.status == NGX_HTTP_NOT_MODIFIED) {
        ngx_http_zstd_slot->reasons[NGX_HTTP_ZSTD_NO_BODY]++;

        if (ctx->reason == NGX_HTTP_ZSTD_COMPRESSED) {
            ngx_http_weak_etag(r);
        }

        return ngx_http_zstd_first_next(r);
    }

    reason = ngx_http_zstd_decide(r, conf);

    if (reason) {
        ngx_http_zstd_set_reason(r, reason);

    } else if (ngx_http_zstd_start(r, conf) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_zstd_first_next(r);
}


static ngx_int_t
ngx_http_zstd_last_header_filter(ngx_http_request_t *r)
{
    ngx_http_zstd_ctx_t       *ctx;
    ngx_http_zstd_loc_conf_t  *conf;

    ctx = (r == r->main)
          ? ngx_http_get_module_ctx(r, ngx_http_zstd_filter_module) : NULL;

    if (ctx == NULL) {
        ngx_http_zstd_ask_memory(r);
        return ngx_http_zstd_last_next(r);
    }

    conf = ngx_http_get_module_loc_conf(r, ngx_http_zstd_filter_module);

    if (ctx->reason == NGX_HTTP_ZSTD_PREFERENCE) {

        if (r->headers_out.content_encoding) {
            ngx_http_zstd_slot->reasons[NGX_HTTP_ZSTD_PREFERENCE]++;

        } else if (ngx_http_zstd_start(r, conf) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_zstd_filter_module);

    if (ctx->stream == NULL) {
        ngx_http_zstd_ask_memory(r);

    } else {
        ngx_http_zstd_keep_files(ctx);
    }

    /* all reasons from this one on depend on the request */

    if (conf->vary
        && (ctx->reason == NGX_HTTP_ZSTD_COMPRESSED
            || ctx->reason >= NGX_HTTP_ZSTD_BYPASS)
        && ngx_http_zstd_add_vary(r) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_zstd_last_next(r);
}


/* again, see ngx_http_zstd_top_header_filter() */

static void
ngx_http_zstd_ask_memory(ngx_http_request_t *r)
{
    if (ngx_http_get_module_ctx(r, ngx_http_zstd_top_module)) {
        r->main_filter_need_in_memory = 1;
    }
}


/*
 * Without "sendfile" nginx would read a file on the loop.  What is compressed
 * is not sent as a file, so jobs may read it.  What an upstream sends is not
 * asked for, as it may be in memory and in a file by turns.
 */

static void
ngx_http_zstd_keep_files(ngx_http_zstd_ctx_t *ctx)
{
#if (NGX_THREADS)

    ngx_http_request_t  *r;

    r = ctx->request;

    if (ctx->conf->pool == NULL) {
        return;
    }

    if (r->upstream
#if (NGX_HTTP_CACHE)
        && !r->cached
#endif
        )
    {
        return;
    }

    r->connection->sendfile = 1;

#endif
}


/*
 * A reason not to compress the response, or 0; PREFERENCE: not if another
 * coding wants it.
 */

static ngx_uint_t
ngx_http_zstd_decide(ngx_http_request_t *r, ngx_http_zstd_loc_conf_t *conf)
{
    ngx_uint_t               reason;
    ngx_http_zstd_weights_t  weights;

    reason = ngx_http_zstd_test(r, conf);

    if (reason) {
        return reason;
    }

    ngx_http_zstd_weigh(r, &weights);

    switch (ngx_http_zstd_choose(&weights, conf->accept.prefer)) {

    case NGX_OK:
        return NGX_HTTP_ZSTD_COMPRESSED;

    case NGX_AGAIN:
        return NGX_HTTP_ZSTD_PREFERENCE;

    default:
        return NGX_HTTP_ZSTD_ACCEPT;
    }
}


/* a reason not to compress the response, whatever the client accepts, or 0 */

static ngx_uint_t
ngx_http_zstd_test(ngx_http_request_t *r, ngx_http_zstd_loc_conf_t *conf)
{
    off_t       length;
    ngx_uint_t  status;

    status = r->headers_out.status;

    if (r->header_only
        || status == NGX_HTTP_NO_CONTENT || status == 205
        || status == NGX_HTTP_NOT_MODIFIED)
    {
        return NGX_HTTP_ZSTD_NO_BODY;
    }

    if ((status < NGX_HTTP_OK || status >= NGX_HTTP_SPECIAL_RESPONSE
         || status == NGX_HTTP_PARTIAL_CONTENT)
        && status != NGX_HTTP_FORBIDDEN
        && status != NGX_HTTP_NOT_FOUND)
    {
        return NGX_HTTP_ZSTD_STATUS;
    }

    /* the body begins in the middle, and the range filter makes a 206 of it */

    if (r->headers_out.content_offset) {
        return NGX_HTTP_ZSTD_STATUS;
    }

    if (r->headers_out.content_encoding
        && r->headers_out.content_encoding->value.len)
    {
        return NGX_HTTP_ZSTD_ENCODED;
    }

    length = r->headers_out.content_length_n;

    if (length != -1
        && (length < conf->min_length
            || (conf->max_length && length > conf->max_length)))
    {
        return NGX_HTTP_ZSTD_LENGTH;
    }

    if (ngx_http_test_content_type(r, &conf->types) == NULL) {
        return NGX_HTTP_ZSTD_TYPE;
    }

    return ngx_http_zstd_conditions(r, &conf->accept);
}


/* of the preference for another coding the last filter decides, and counts */

static void
ngx_http_zstd_set_reason(ngx_http_request_t *r, ngx_uint_t reason)
{
    ngx_http_set_ctx(r, &ngx_http_zstd_reasons[reason],
                     ngx_http_zstd_filter_module);

    if (reason != NGX_HTTP_ZSTD_PREFERENCE) {
        ngx_http_zstd_slot->reasons[reason]++;
    }
}


static ngx_int_t
ngx_http_zstd_start(ngx_http_request_t *r, ngx_http_zstd_loc_conf_t *conf)
{
    ngx_table_elt_t      *h;
    ngx_http_cleanup_t   *cln;
    ngx_pool_cleanup_t   *pool_cln;
    ngx_http_zstd_ctx_t  *ctx;

    if (!ngx_http_zstd_has_memory(conf, r->headers_out.content_length_n)) {
        ngx_http_zstd_set_reason(r, NGX_HTTP_ZSTD_MEMORY);
        return NGX_OK;
    }

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_zstd_ctx_t));
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    ctx->request = r;
    ctx->conf = conf;
    ctx->length = r->headers_out.content_length_n;
    ctx->stats.struct_size = sizeof(segzstd_stream_stats);

    if (r->method == NGX_HTTP_HEAD) {
        ngx_http_zstd_slot->reasons[NGX_HTTP_ZSTD_NO_BODY]++;

    } else {
        pool_cln = ngx_pool_cleanup_add(r->pool, 0);
        if (pool_cln == NULL) {
            return NGX_ERROR;
        }

        cln = ngx_http_cleanup_add(r, 0);
        if (cln == NULL) {
            return NGX_ERROR;
        }

        ctx->stream = ngx_http_zstd_stream(ctx);

        if (ctx->stream == NULL) {
            ngx_http_zstd_set_reason(r, NGX_HTTP_ZSTD_MEMORY);
            return NGX_OK;
        }

        pool_cln->handler = ngx_http_zstd_cleanup;
        pool_cln->data = ctx;

        cln->handler = ngx_http_zstd_terminate;
        cln->data = ctx;

        ngx_http_zstd_slot->responses++;
    }

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->hash = 1;
    ngx_str_set(&h->key, "Content-Encoding");
    ngx_str_set(&h->value, "zstd");
    r->headers_out.content_encoding = h;

    ngx_http_set_ctx(r, ctx, ngx_http_zstd_filter_module);

    ngx_http_clear_content_length(r);
    ngx_http_clear_accept_ranges(r);
    ngx_http_weak_etag(r);

    return NGX_OK;
}


static segzstd_stream *
ngx_http_zstd_stream(ngx_http_zstd_ctx_t *ctx)
{
    int                        rc;
    segzstd_stream            *stream;
    ngx_http_request_t        *r;
    ngx_http_zstd_loc_conf_t  *conf;
    segzstd_stream_options     options = SEGZSTD_STREAM_OPTIONS_INIT;

    r = ctx->request;
    conf = ctx->conf;

    /* segments of a fixed size are cut anyway */

    ctx->input_max = ngx_http_zstd_input_bytes(conf->segment_size
                                               ? NULL
                                               : &options.extent_bytes);

    options.level = (int) conf->level;
    options.window_log = (unsigned) conf->window_log;
    options.segment_bytes = conf->segment_size;
    options.overlap_bytes = (conf->overlap == NGX_HTTP_ZSTD_NONE)
                            ? SEGZSTD_OVERLAP_NONE : conf->overlap;
    options.max_jobs = ngx_http_zstd_uses_pool(conf) ? (unsigned) conf->tasks
                                                     : 1;
    options.input_bytes = ctx->input_max;
    options.read_bytes = NGX_HTTP_ZSTD_READ_RATIO * ctx->input_max;

    /* whoever changes the body has cleared it by now */

    if (r->headers_out.content_length_n >= 0) {
        options.size = (uint64_t) r->headers_out.content_length_n;
        options.size_is_certain = 1;
    }

    if (conf->dict) {
        options.dict = conf->dict->dict;

        /* raw content has no id: a wrong one must not go unnoticed */

        options.checksum = (segzstd_dict_id(conf->dict->dict) == 0);
    }

    rc = segzstd_stream_new(&stream, ngx_http_zstd_cache, &options);

    if (rc == 0) {
        return stream;
    }

    if (rc != SEGZSTD_ERR_NOMEM) {
        ngx_log_error(NGX_LOG_ALERT, r->connection->log, 0,
                      "zstd: segzstd_stream_new() failed: %s",
                      segzstd_strerror(rc));
    }

    return NULL;
}


static ngx_int_t
ngx_http_zstd_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_http_zstd_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_zstd_filter_module);

    if (ctx == NULL || r->header_only
        || (ctx->stream == NULL && !ctx->failed))
    {
        return ngx_http_next_body_filter(r, in);
    }

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "http zstd filter: in:%p tasks:%ui", in, ctx->tasks);

    if (in && ngx_chain_add_copy(r->pool, &ctx->in, in) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_zstd_drive(ctx);
}


ngx_int_t
ngx_http_zstd_drive(ngx_http_zstd_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_uint_t           flush;
    ngx_chain_t         *out;
    ngx_http_request_t  *r;

    r = ctx->request;

    if (ctx->failed) {
        return NGX_ERROR;
    }

    if (ctx->stream == NULL) {
        return NGX_OK;
    }

    /* the next filter may have room now for what it has */

    flush = (ctx->busy != NULL);

    for ( ;; ) {

        if (ctx->error
            || ngx_http_zstd_push(ctx) != NGX_OK
            || (!ngx_http_zstd_has_first(ctx)
                && ngx_http_zstd_work(ctx) != NGX_OK)
            || ngx_http_zstd_collect(ctx, &out) != NGX_OK)
        {
            goto failed;
        }

        if (ngx_http_zstd_is_busy(ctx)) {
            r->connection->buffered |= NGX_HTTP_GZIP_BUFFERED;

        } else {
            r->connection->buffered &= ~NGX_HTTP_GZIP_BUFFERED;
        }

        if (out == NULL && !flush) {
            break;
        }

        rc = ngx_http_next_body_filter(r, out);

        ngx_http_zstd_recycle(ctx, out);

        if (rc == NGX_ERROR) {
            ngx_http_zstd_give_up(ctx);
            return NGX_ERROR;
        }

        if (ctx->last && ctx->busy == NULL) {
            ngx_http_zstd_slot->finished++;
            ngx_http_zstd_free_stream(ctx);

            return rc;
        }

        flush = 0;
    }

    if (ctx->broken && !ngx_http_zstd_is_busy(ctx) && ctx->busy == NULL) {
        goto failed;
    }

    /* a client that does not read need not hold what can be had again */

    if (ctx->busy && ctx->tasks == 0 && ngx_http_zstd_is_tight()) {
        segzstd_stream_rest(ctx->stream);
    }

    return (ctx->busy || ngx_http_zstd_is_busy(ctx)) ? NGX_AGAIN : NGX_OK;

failed:

    ngx_http_zstd_failed(ctx);

    return NGX_ERROR;
}


/*
 * The first output goes before more work: a thread that is woken for a job may
 * get the CPU of the loop, which would then send after that job.  Not if
 * another has one already: then two of them finish sooner.
 */

static ngx_uint_t
ngx_http_zstd_has_first(ngx_http_zstd_ctx_t *ctx)
{
    return ctx->sent == 0 && ctx->lent == 0 && ctx->tasks == 0
           && segzstd_stream_ready_bytes(ctx->stream) != 0;
}


/* work that is not done yet, apart from what the next filter has */

static ngx_uint_t
ngx_http_zstd_is_busy(ngx_http_zstd_ctx_t *ctx)
{
    if (ctx->last) {
        return 0;
    }

    return ctx->in || ctx->tasks || ctx->queued
           || segzstd_stream_want_job(ctx->stream)
           || segzstd_stream_ready_bytes(ctx->stream) > ctx->lent;
}


/* then no more is taken, or compressed */

ngx_uint_t
ngx_http_zstd_is_slow(ngx_http_zstd_ctx_t *ctx)
{
    ngx_bufs_t  *bufs;

    bufs = &ctx->conf->bufs;

    return segzstd_stream_ready_bytes(ctx->stream) >= bufs->num * bufs->size;
}


/*
 * Input that waits is at most this response's share of the memory, and not
 * much more than what its client has proved to take.
 */

static ngx_uint_t
ngx_http_zstd_has_enough(ngx_http_zstd_ctx_t *ctx)
{
    size_t    waiting;
    uint64_t  most;

    if (ctx->conf->segment_size) {
        return 0;
    }

    waiting = ctx->input_max - segzstd_stream_want_input(ctx->stream);

    if (waiting < NGX_HTTP_ZSTD_INPUT_MIN) {
        return 0;
    }

    most = NGX_HTTP_ZSTD_INPUT_FIRST + NGX_HTTP_ZSTD_INPUT_RATIO * ctx->sent;

    return waiting >= most || waiting >= ngx_http_zstd_input_bytes(NULL);
}


static ngx_int_t
ngx_http_zstd_push(ngx_http_zstd_ctx_t *ctx)
{
    ngx_int_t     rc;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    while (ctx->in && !ctx->ended && !ctx->broken && !ctx->no_input) {

        if (ngx_http_zstd_is_slow(ctx) || ngx_http_zstd_has_enough(ctx)) {
            return NGX_OK;
        }

        cl = ctx->in;
        b = cl->buf;

        if (b->in_file && !ngx_buf_in_memory(b)) {
            rc = ngx_http_zstd_push_file(ctx);

        } else {
            rc = ngx_http_zstd_push_memory(ctx, b);

            if (rc == NGX_OK) {
                ctx->in = cl->next;
                ngx_free_chain(ctx->request->pool, cl);
            }
        }

        if (rc == NGX_AGAIN) {
            return NGX_OK;
        }

        if (rc != NGX_OK) {
            return rc;
        }
    }

    /* what comes after the end, or after an error of its length, is dropped */

    while (ctx->in && (ctx->ended || ctx->broken)) {
        cl = ctx->in;
        ctx->in = cl->next;

        cl->buf->pos = cl->buf->last;
        cl->buf->file_pos = cl->buf->file_last;

        ngx_free_chain(ctx->request->pool, cl);
    }

    return NGX_OK;
}


/* NGX_OK: the buffer was taken; NGX_AGAIN: not all of it */

static ngx_int_t
ngx_http_zstd_push_memory(ngx_http_zstd_ctx_t *ctx, ngx_buf_t *b)
{
    int         rc;
    size_t      size, taken;
    ngx_int_t   n;
    segzstd_op  op;

    op = ngx_http_zstd_op(b);
    size = ngx_buf_in_memory(b) ? (size_t) (b->last - b->pos) : 0;

    if (size == 0 && op == SEGZSTD_CONTINUE) {
        return NGX_OK;
    }

    rc = segzstd_stream_push(ctx->stream, size ? b->pos : NULL, size, op,
                             &taken);

    if (size) {
        b->pos += taken;
    }

    n = ngx_http_zstd_pushed(ctx, rc, size - taken);

    if (n != NGX_OK || ctx->broken) {
        return n;
    }

    if (taken < size) {
        return NGX_AGAIN;
    }

    ngx_http_zstd_op_done(ctx, op);

    return NGX_OK;
}


/* one or more buffers of one file that follow each other there */

static ngx_int_t
ngx_http_zstd_push_file(ngx_http_zstd_ctx_t *ctx)
{
    off_t                  end;
    size_t                 size;
    ngx_fd_t               fd;
    ngx_buf_t             *b;
    segzstd_op             op;
    ngx_chain_t           *cl, *last;
    segzstd_stream_stats   stats = SEGZSTD_STREAM_STATS_INIT;

    cl = ctx->in;
    last = cl;
    size = 0;
    op = SEGZSTD_CONTINUE;
    fd = cl->buf->file->fd;
    end = cl->buf->file_pos;

    for ( /* void */ ; cl && op == SEGZSTD_CONTINUE; cl = cl->next) {

        b = cl->buf;

        if (!b->in_file || ngx_buf_in_memory(b)
            || b->file->fd != fd || b->file_pos != end)
        {
            break;
        }

        size += (size_t) (b->file_last - b->file_pos);
        end = b->file_last;
        op = ngx_http_zstd_op(b);
        last = cl;
    }

    (void) segzstd_stream_get_stats(ctx->stream, &stats);

    if (size
        && (size >= NGX_HTTP_ZSTD_READER_MIN
            || (stats.bytes_in == 0 && op == SEGZSTD_END)))
    {
        return ngx_http_zstd_push_reader(ctx, last, size);
    }

    return ngx_http_zstd_push_read(ctx, ctx->in->buf);
}


/* the jobs read it, and the buffers are held until they have */

static ngx_int_t
ngx_http_zstd_push_reader(ngx_http_zstd_ctx_t *ctx, ngx_chain_t *last,
    size_t size)
{
    int                    rc;
    ngx_int_t              n;
    segzstd_op             op;
    ngx_chain_t           *rest;
    ngx_http_zstd_file_t  *file;

    file = ngx_palloc(ctx->request->pool, sizeof(ngx_http_zstd_file_t));
    if (file == NULL) {
        return NGX_ERROR;
    }

    op = ngx_http_zstd_op(last->buf);
    rest = last->next;
    last->next = NULL;

    file->fd = ctx->in->buf->file->fd;
    file->offset = ctx->in->buf->file_pos;
    file->name = ctx->in->buf->file->name;
    file->bufs = ctx->in;
    file->ctx = ctx;

    rc = segzstd_stream_push_reader(ctx->stream, ngx_http_zstd_read, size, op,
                                    ngx_http_zstd_release_file, file);

    if (rc != 0) {
        last->next = rest;
        ngx_pfree(ctx->request->pool, file);
    }

    n = ngx_http_zstd_pushed(ctx, rc, size);

    if (n != NGX_OK || ctx->broken) {
        return n;
    }

    ctx->in = rest;

    ngx_http_zstd_op_done(ctx, op);

    return NGX_OK;
}


/* a short piece of a file */

static ngx_int_t
ngx_http_zstd_push_read(ngx_http_zstd_ctx_t *ctx, ngx_buf_t *b)
{
    int            rc;
    size_t         taken, size;
    ssize_t        n;
    ngx_int_t      rv;
    segzstd_op     op;
    ngx_chain_t   *cl;
    static u_char  data[NGX_HTTP_ZSTD_READ_SIZE];

    for ( ;; ) {

        size = (size_t) ngx_min(b->file_last - b->file_pos,
                                (off_t) sizeof(data));
        n = 0;

        if (size) {
            n = ngx_read_file(b->file, data, size, b->file_pos);

            if (n == NGX_ERROR) {
                return NGX_ERROR;
            }

            if (n == 0) {
                ngx_log_error(NGX_LOG_CRIT, ctx->request->connection->log, 0,
                              "zstd: file \"%V\" ended early at %O",
                              &b->file->name, b->file_pos);
                return NGX_ERROR;
            }
        }

        op = (b->file_pos + n == b->file_last) ? ngx_http_zstd_op(b)
                                               : SEGZSTD_CONTINUE;

        rc = segzstd_stream_push(ctx->stream, data, (size_t) n, op, &taken);

        b->file_pos += taken;

        rv = ngx_http_zstd_pushed(ctx, rc, (size_t) n - taken);

        if (rv != NGX_OK || ctx->broken) {
            return rv;
        }

        if (taken < (size_t) n) {
            return NGX_AGAIN;
        }

        if (b->file_pos == b->file_last) {
            break;
        }
    }

    ngx_http_zstd_op_done(ctx, op);

    cl = ctx->in;
    ctx->in = cl->next;
    ngx_free_chain(ctx->request->pool, cl);

    return NGX_OK;
}


static segzstd_op
ngx_http_zstd_op(ngx_buf_t *b)
{
    if (b->last_buf) {
        return SEGZSTD_END;
    }

    return b->flush ? SEGZSTD_FLUSH : SEGZSTD_CONTINUE;
}


/*
 * What a push has said, which has left so many bytes; NGX_AGAIN: nothing, or
 * not all, was taken.
 */

static ngx_int_t
ngx_http_zstd_pushed(ngx_http_zstd_ctx_t *ctx, int rc, size_t left)
{
    size_t                taken;
    segzstd_stream_stats  stats = SEGZSTD_STREAM_STATS_INIT;

    switch (rc) {

    case 0:
        return NGX_OK;

    case SEGZSTD_ERR_AGAIN:
        return NGX_AGAIN;

    case SEGZSTD_ERR_NOMEM:
        ngx_http_zstd_slot->no_memory++;
        ctx->no_input = 1;

        /* what is there is not to wait for more */

        (void) segzstd_stream_push(ctx->stream, NULL, 0, SEGZSTD_FLUSH,
                                   &taken);
        return NGX_AGAIN;

    case SEGZSTD_ERR_SIZE:

        /* all that was taken is delivered, but the frame is not ended */

        ctx->broken = 1;
        ctx->flush = 1;

        (void) segzstd_stream_get_stats(ctx->stream, &stats);

        ngx_log_error(NGX_LOG_ERR, ctx->request->connection->log, 0,
                      "zstd: the response is %s than its Content-Length",
                      (off_t) (stats.bytes_in + left) > ctx->length
                      ? "longer" : "shorter");

        return NGX_OK;

    default:
        ctx->error = rc;
        return NGX_ERROR;
    }
}


static void
ngx_http_zstd_op_done(ngx_http_zstd_ctx_t *ctx, segzstd_op op)
{
    if (op == SEGZSTD_FLUSH) {
        ctx->flush = 1;
    }

    if (op == SEGZSTD_END) {
        ctx->ended = 1;
    }
}


/* by a job, on any thread, where the log of a connection cannot be used */

static int64_t
ngx_http_zstd_read(void *arg, uint64_t offset, void *dst, size_t len)
{
    ngx_http_zstd_file_t *file = arg;

    off_t    pos;
    ssize_t  n;

    pos = file->offset + (off_t) offset;

    do {
        n = pread(file->fd, dst, len, pos);
    } while (n == -1 && ngx_errno == NGX_EINTR);

    if (n == -1) {
        ngx_log_error(NGX_LOG_CRIT, ngx_cycle->log, ngx_errno,
                      "zstd: pread() \"%V\" failed", &file->name);

    } else if (n == 0) {
        ngx_log_error(NGX_LOG_CRIT, ngx_cycle->log, 0,
                      "zstd: file \"%V\" ended early at %O", &file->name, pos);
    }

    return n;
}


static void
ngx_http_zstd_release_file(void *arg)
{
    ngx_http_zstd_file_t *file = arg;

    ngx_pool_t   *pool;
    ngx_chain_t  *cl;

    pool = file->ctx->request->pool;    /* NULL while it is destroyed */

    while (file->bufs) {
        cl = file->bufs;
        file->bufs = cl->next;

        cl->buf->file_pos = cl->buf->file_last;

        if (pool) {
            ngx_free_chain(pool, cl);
        }
    }
}


/* what is ready and not yet passed on, as a chain; NULL if there is nothing */

static ngx_int_t
ngx_http_zstd_collect(ngx_http_zstd_ctx_t *ctx, ngx_chain_t **out)
{
    u_char        *base;
    size_t         i, n, len, skip;
    ngx_buf_t     *b;
    ngx_uint_t     all;
    ngx_chain_t   *cl, **ll;
    segzstd_vec    vec[NGX_HTTP_ZSTD_VECS];

    *out = NULL;

    if (ctx->last) {
        return NGX_OK;
    }

    ll = out;
    b = NULL;
    skip = ctx->lent;

    n = segzstd_stream_peek(ctx->stream, vec, NGX_HTTP_ZSTD_VECS);

    for (i = 0; i < n; i++) {

        if (skip >= vec[i].len) {
            skip -= vec[i].len;
            continue;
        }

        base = (u_char *) vec[i].base + skip;
        len = vec[i].len - skip;
        skip = 0;

        cl = ngx_http_zstd_get_buf(ctx);
        if (cl == NULL) {
            return NGX_ERROR;
        }

        b = cl->buf;

        b->memory = 1;
        b->start = base;
        b->pos = base;
        b->last = base + len;
        b->end = b->last;

        ctx->lent += len;

        *ll = cl;
        ll = &cl->next;
    }

    all = segzstd_stream_is_flushed(ctx->stream)
          && segzstd_stream_ready_bytes(ctx->stream) == ctx->lent;

    if (b == NULL && !(all && (ctx->flush || ctx->ended))) {
        return NGX_OK;
    }

    if (b == NULL) {

        /* nothing new, but what was passed on is to leave now */

        cl = ngx_http_zstd_get_buf(ctx);
        if (cl == NULL) {
            return NGX_ERROR;
        }

        b = cl->buf;
        *ll = cl;
    }

    if (all && ctx->ended) {
        b->last_buf = 1;
        b->last_in_chain = 1;
        ctx->last = 1;

    } else if (ctx->flush) {
        b->flush = 1;
    }

    if (all) {
        ctx->flush = 0;
    }

    return NGX_OK;
}


static ngx_chain_t *
ngx_http_zstd_get_buf(ngx_http_zstd_ctx_t *ctx)
{
    ngx_chain_t  *cl;

    cl = ngx_chain_get_free_buf(ctx->request->pool, &ctx->free);
    if (cl == NULL) {
        return NULL;
    }

    ngx_memzero(cl->buf, sizeof(ngx_buf_t));

    cl->buf->tag = (ngx_buf_tag_t) &ngx_http_zstd_filter_module;

    return cl;
}


/*
 * What the next filter has sent is given back to the stream.  A buffer without
 * bytes may wait there still, behind a limit of the rate, so it is not used
 * again.
 */

static void
ngx_http_zstd_recycle(ngx_http_zstd_ctx_t *ctx, ngx_chain_t *out)
{
    size_t         len;
    ngx_chain_t   *cl, **ll;

    for (ll = &ctx->busy; *ll; ll = &(*ll)->next) { /* void */ }

    *ll = out;

    while (ctx->busy && ngx_buf_size(ctx->busy->buf) == 0) {

        cl = ctx->busy;
        ctx->busy = cl->next;

        len = (size_t) (cl->buf->end - cl->buf->start);

        segzstd_stream_consume(ctx->stream, len);
        ctx->lent -= len;
        ctx->sent += len;

        ctx->no_input = 0;
        ctx->no_job = 0;

        if (len == 0) {
            ngx_free_chain(ctx->request->pool, cl);
            continue;
        }

        cl->next = ctx->free;
        ctx->free = cl;
    }
}


static void
ngx_http_zstd_failed(ngx_http_zstd_ctx_t *ctx)
{
    int         rc;
    ngx_uint_t  level;

    rc = ctx->error ? ctx->error : segzstd_stream_error(ctx->stream);

    if (!ctx->broken && rc != 0 && rc != SEGZSTD_ERR_CANCELED) {

        level = (rc == SEGZSTD_ERR_READ) ? NGX_LOG_CRIT : NGX_LOG_ERR;

        ngx_log_error(level, ctx->request->connection->log, 0, "zstd: %s%s%s",
                      segzstd_strerror(rc), rc == SEGZSTD_ERR_ZSTD ? ": " : "",
                      rc == SEGZSTD_ERR_ZSTD
                      ? segzstd_stream_zstd_error(ctx->stream) : "");
    }

    ngx_http_zstd_slot->failed++;

    ngx_http_zstd_give_up(ctx);
}


/* nothing more is made, though nginx may go on with what it stores */

static void
ngx_http_zstd_give_up(ngx_http_zstd_ctx_t *ctx)
{
    ctx->failed = 1;
    ctx->request->connection->buffered &= ~NGX_HTTP_GZIP_BUFFERED;

    ngx_http_zstd_cancel(ctx);
}


/* jobs that are out are told to be quick, and no more are asked for */

static void
ngx_http_zstd_cancel(ngx_http_zstd_ctx_t *ctx)
{
    ngx_http_zstd_leave_queue(ctx);

    if (ctx->tasks) {
        segzstd_stream_cancel(ctx->stream);
    }
}


static void
ngx_http_zstd_free_stream(ngx_http_zstd_ctx_t *ctx)
{
    if (ctx->stream == NULL) {
        return;
    }

    ngx_http_zstd_leave_queue(ctx);

    ngx_http_zstd_count(ctx);

    segzstd_stream_free(ctx->stream);
    ctx->stream = NULL;
}


/* what has come of it since it was counted last; the stream is there */

void
ngx_http_zstd_count(ngx_http_zstd_ctx_t *ctx)
{
    segzstd_stream_stats  *stats, before;

    stats = &ctx->stats;
    before = *stats;

    (void) segzstd_stream_get_stats(ctx->stream, stats);

    ngx_http_zstd_slot->bytes_in += stats->bytes_done - before.bytes_done;
    ngx_http_zstd_slot->bytes_out += stats->bytes_out - before.bytes_out;
    ngx_http_zstd_slot->cpu_ns += stats->cpu_ns - before.cpu_ns;
}


/* the request is to end, maybe long before its jobs do */

static void
ngx_http_zstd_terminate(void *data)
{
    ngx_http_zstd_ctx_t *ctx = data;

    ctx->terminated = 1;

    if (ctx->stream) {
        ngx_http_zstd_cancel(ctx);
    }
}


/* no job is out, or the request would be blocked still */

static void
ngx_http_zstd_cleanup(void *data)
{
    ngx_http_zstd_ctx_t *ctx = data;

    ngx_http_zstd_free_stream(ctx);
}


ngx_int_t
ngx_http_zstd_stats(ngx_http_request_t *r, ngx_http_zstd_stats_t *stats)
{
    ngx_http_zstd_ctx_t       *ctx;
    ngx_http_zstd_loc_conf_t  *conf;

    r = r->main;

    ngx_memzero(stats, sizeof(ngx_http_zstd_stats_t));

    ctx = ngx_http_get_module_ctx(r, ngx_http_zstd_filter_module);

    if (ctx == NULL) {
        conf = ngx_http_get_module_loc_conf(r, ngx_http_zstd_filter_module);

        if (r->header_sent && !conf->enable) {
            stats->reason = NGX_HTTP_ZSTD_OFF;
            return NGX_OK;
        }

        return NGX_DECLINED;
    }

    if (ctx->stream) {
        ngx_http_zstd_count(ctx);
    }

    stats->reason = ctx->reason;

    if (r->headers_out.status == NGX_HTTP_NOT_MODIFIED
        || (ctx->reason == NGX_HTTP_ZSTD_COMPRESSED
            && r->method == NGX_HTTP_HEAD))
    {
        stats->reason = NGX_HTTP_ZSTD_NO_BODY;
    }

    /* of a file all is taken at once, and compressed as the client reads */
    stats->bytes_in = ctx->stats.bytes_done;
    stats->bytes_out = ctx->stats.bytes_out;
    stats->segments = ctx->stats.segments;
    stats->cpu_ns = ctx->stats.cpu_ns;
    stats->done = ctx->last;
    stats->pool = ctx->pool;

    return NGX_OK;
}


static ngx_int_t
ngx_http_zstd_preconfiguration(ngx_conf_t *cf)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_ZSTD_REASONS; i++) {
        ngx_http_zstd_reasons[i].reason = i;
    }

    return ngx_http_zstd_add_variables(cf);
}


static ngx_int_t
ngx_http_zstd_filter_init(ngx_conf_t *cf)
{
    ngx_http_zstd_main_conf_t  *zmcf;

    zmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_zstd_filter_module);

    ngx_http_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_zstd_body_filter;

    if (ngx_http_zstd_check_nice(cf, zmcf) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_zstd_status_zone(cf, zmcf);
}


static ngx_int_t
ngx_http_zstd_first_init(ngx_conf_t *cf)
{
    ngx_http_zstd_first_next = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_zstd_first_header_filter;

    return NGX_OK;
}


static ngx_int_t
ngx_http_zstd_last_init(ngx_conf_t *cf)
{
    ngx_http_zstd_last_next = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_zstd_last_header_filter;

    return NGX_OK;
}


static ngx_int_t
ngx_http_zstd_top_init(ngx_conf_t *cf)
{
    ngx_http_zstd_top_next = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_zstd_top_header_filter;

    return NGX_OK;
}


static ngx_int_t
ngx_http_zstd_init_process(ngx_cycle_t *cycle)
{
    ngx_http_zstd_main_conf_t  *zmcf;

    zmcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_zstd_filter_module);

    if (zmcf == NULL || !zmcf->enabled
        || (ngx_process != NGX_PROCESS_WORKER
            && ngx_process != NGX_PROCESS_SINGLE))
    {
        return NGX_OK;
    }

    return ngx_http_zstd_init_worker(cycle, zmcf);
}


static void
ngx_http_zstd_exit_process(ngx_cycle_t *cycle)
{
    ngx_http_zstd_main_conf_t  *zmcf;

    zmcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_zstd_filter_module);

    if (zmcf) {
        ngx_http_zstd_exit_worker(zmcf);
    }
}


static void
ngx_http_zstd_stop_process(ngx_cycle_t *cycle)
{
#if (NGX_THREADS)
    ngx_http_zstd_stop_threads();
#endif
}
