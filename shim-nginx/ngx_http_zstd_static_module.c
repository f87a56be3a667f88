
/*
 * Copyright (C) the libsegzstd authors
 *
 * zstd_static: serves FILE.zst in place of FILE.
 *
 * Three modules, because of where each has to stand.  The first looks for the
 * file in the precontent phase, and has it sent at once if zstd is the client's
 * first choice.  If it is the client's second, the second module sends it in
 * the content phase, after the handlers of other codings have had their chance.
 * The third is a header filter, which says Vary.
 */


#include "ngx_http_zstd_accept.h"


#define NGX_HTTP_ZSTD_STATIC_OFF         0
#define NGX_HTTP_ZSTD_STATIC_ON          1
#define NGX_HTTP_ZSTD_STATIC_ALWAYS      2

/* RFC 9659: what an HTTP client must be able to decode */
#define NGX_HTTP_ZSTD_STATIC_WINDOW_MAX  (8 * 1024 * 1024)

/* magic, descriptor, window, dictionary and content size, at their longest */
#define NGX_HTTP_ZSTD_STATIC_HEADER      18

/* magic and length of a skippable frame */
#define NGX_HTTP_ZSTD_STATIC_SKIP        8

/* each costs a read, and nobody writes more than one or two */
#define NGX_HTTP_ZSTD_STATIC_SKIPS_MAX   8


typedef struct {
    ngx_uint_t             enable;
} ngx_http_zstd_static_conf_t;


/* of a request for which there is a usable file */

typedef struct {
    ngx_str_t              path;
    ngx_open_file_info_t   of;
    unsigned               late:1;    /* to be sent if no other is */
    unsigned               vary:1;    /* the answer depends on the client */
} ngx_http_zstd_static_ctx_t;


static ngx_int_t ngx_http_zstd_static_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_zstd_static_late_handler(ngx_http_request_t *r);
static ngx_flag_t ngx_http_zstd_static_prefer(ngx_http_request_t *r);
static ngx_int_t ngx_http_zstd_static_open(ngx_http_request_t *r,
    ngx_str_t *path, ngx_open_file_info_t *of);
static ngx_int_t ngx_http_zstd_static_check(ngx_http_request_t *r,
    ngx_str_t *path, ngx_open_file_info_t *of);
static ssize_t ngx_http_zstd_static_read(ngx_http_request_t *r,
    ngx_file_t *file, ngx_open_file_info_t *of, u_char *buf, off_t offset);
static ngx_int_t ngx_http_zstd_static_check_frame(ngx_str_t *path, u_char *p,
    size_t n, ngx_log_t *log);
static uint64_t ngx_http_zstd_static_number(u_char *p, size_t n);
static ngx_int_t ngx_http_zstd_static_send(ngx_http_request_t *r);
static ngx_int_t ngx_http_zstd_static_header_filter(ngx_http_request_t *r);
static void *ngx_http_zstd_static_create_conf(ngx_conf_t *cf);
static char *ngx_http_zstd_static_merge_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_zstd_static_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_zstd_static_last_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_zstd_static_vary_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_zstd_static_add_handler(ngx_conf_t *cf,
    ngx_uint_t phase, ngx_http_handler_pt handler);


static ngx_conf_enum_t  ngx_http_zstd_static[] = {
    { ngx_string("off"), NGX_HTTP_ZSTD_STATIC_OFF },
    { ngx_string("on"), NGX_HTTP_ZSTD_STATIC_ON },
    { ngx_string("always"), NGX_HTTP_ZSTD_STATIC_ALWAYS },
    { ngx_null_string, 0 }
};


static ngx_command_t  ngx_http_zstd_static_commands[] = {

    { ngx_string("zstd_static"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_zstd_static_conf_t, enable),
      &ngx_http_zstd_static },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_zstd_static_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_zstd_static_init,             /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_zstd_static_create_conf,      /* create location configuration */
    ngx_http_zstd_static_merge_conf        /* merge location configuration */
};


static ngx_http_module_t  ngx_http_zstd_static_last_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_zstd_static_last_init,        /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


static ngx_http_module_t  ngx_http_zstd_static_vary_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_zstd_static_vary_init,        /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_zstd_static_module = {
    NGX_MODULE_V1,
    &ngx_http_zstd_static_module_ctx,      /* module context */
    ngx_http_zstd_static_commands,         /* module directives */
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


ngx_module_t  ngx_http_zstd_static_last_module = {
    NGX_MODULE_V1,
    &ngx_http_zstd_static_last_module_ctx, /* module context */
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


ngx_module_t  ngx_http_zstd_static_vary_module = {
    NGX_MODULE_V1,
    &ngx_http_zstd_static_vary_module_ctx, /* module context */
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


static ngx_http_output_header_filter_pt  ngx_http_next_header_filter;

static ngx_module_t  *ngx_http_zstd_static_filter;    /* NULL: not loaded */


/* bytes of fields in a frame's header, by two bits of its descriptor */

static size_t  ngx_http_zstd_static_dict_sizes[] = { 0, 1, 2, 4 };
static size_t  ngx_http_zstd_static_content_sizes[] = { 0, 2, 4, 8 };


/*
 * Runs after try_files.  A location with a handler of its own (proxy_pass and
 * the like) serves no files.
 */

static ngx_int_t
ngx_http_zstd_static_handler(ngx_http_request_t *r)
{
    ngx_int_t                     rc, choice;
    ngx_str_t                     path;
    ngx_open_file_info_t          of;
    ngx_http_zstd_weights_t       weights;
    ngx_http_zstd_static_ctx_t   *ctx;
    ngx_http_zstd_static_conf_t  *zscf;

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))
        || r != r->main
        || r->content_handler
        || r->uri.data[r->uri.len - 1] == '/')
    {
        return NGX_DECLINED;
    }

    zscf = ngx_http_get_module_loc_conf(r, ngx_http_zstd_static_module);

    if (zscf->enable == NGX_HTTP_ZSTD_STATIC_OFF) {
        return NGX_DECLINED;
    }

    rc = ngx_http_zstd_static_open(r, &path, &of);

    if (rc == NGX_OK) {
        rc = ngx_http_zstd_static_check(r, &path, &of);
    }

    if (rc != NGX_OK) {
        return rc;
    }

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_zstd_static_ctx_t));
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->path = path;
    ctx->of = of;

    choice = NGX_OK;

    if (zscf->enable == NGX_HTTP_ZSTD_STATIC_ON) {
        ctx->vary = 1;

        ngx_http_zstd_weigh(r, &weights);
        choice = ngx_http_zstd_choose(&weights,
                                      ngx_http_zstd_static_prefer(r));
    }

    if (choice == NGX_OK) {
        r->content_handler = ngx_http_zstd_static_send;

    } else if (choice == NGX_AGAIN) {
        ctx->late = 1;
    }

    ngx_http_set_ctx(r, ctx, ngx_http_zstd_static_module);

    return NGX_DECLINED;
}


/* of the filter module, where it is loaded */

static ngx_flag_t
ngx_http_zstd_static_prefer(ngx_http_request_t *r)
{
    ngx_http_zstd_accept_conf_t  *accept;

    if (ngx_http_zstd_static_filter == NULL) {
        return 1;
    }

    accept = r->loc_conf[ngx_http_zstd_static_filter->ctx_index];

    return accept->prefer;
}


static ngx_int_t
ngx_http_zstd_static_late_handler(ngx_http_request_t *r)
{
    ngx_http_zstd_static_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_zstd_static_module);

    if (ctx == NULL || !ctx->late) {
        return NGX_DECLINED;
    }

    return ngx_http_zstd_static_send(r);
}


/* NGX_OK, NGX_DECLINED if there is no such file, or a status */

static ngx_int_t
ngx_http_zstd_static_open(ngx_http_request_t *r, ngx_str_t *path,
    ngx_open_file_info_t *of)
{
    u_char                    *p;
    size_t                     root;
    ngx_uint_t                 level;
    ngx_http_core_loc_conf_t  *clcf;

    p = ngx_http_map_uri_to_path(r, path, &root, sizeof(".zst") - 1);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = ngx_cpymem(p, ".zst", sizeof(".zst"));

    path->len = p - 1 - path->data;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "zstd static filename: \"%V\"", path);

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    ngx_memzero(of, sizeof(ngx_open_file_info_t));

    of->read_ahead = clcf->read_ahead;
    of->directio = clcf->directio;
    of->valid = clcf->open_file_cache_valid;
    of->min_uses = clcf->open_file_cache_min_uses;
    of->errors = clcf->open_file_cache_errors;
    of->events = clcf->open_file_cache_events;

    if (ngx_http_set_disable_symlinks(r, clcf, path, of) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_open_cached_file(clcf->open_file_cache, path, of, r->pool)
        == NGX_OK)
    {
        return NGX_OK;
    }

    switch (of->err) {

    case 0:
        return NGX_HTTP_INTERNAL_SERVER_ERROR;

    case NGX_ENOENT:
    case NGX_ENOTDIR:
    case NGX_ENAMETOOLONG:
        return NGX_DECLINED;

    case NGX_EACCES:
#if (NGX_HAVE_OPENAT)
    case NGX_EMLINK:
    case NGX_ELOOP:
#endif
        level = NGX_LOG_ERR;
        break;

    default:
        level = NGX_LOG_CRIT;
        break;
    }

    ngx_log_error(level, r->connection->log, of->err,
                  "%s \"%V\" failed", of->failed, path);

    return NGX_DECLINED;
}


/*
 * NGX_OK if a browser can decode the file as far as its first frame's header
 * tells, otherwise NGX_DECLINED and a line in the log.
 */

static ngx_int_t
ngx_http_zstd_static_check(ngx_http_request_t *r, ngx_str_t *path,
    ngx_open_file_info_t *of)
{
    off_t        offset;
    u_char       buf[NGX_HTTP_ZSTD_STATIC_HEADER];
    ssize_t      n;
    ngx_log_t   *log;
    ngx_file_t   file;
    ngx_uint_t   skips;

    log = r->connection->log;

    if (of->is_dir) {
        ngx_log_debug1(NGX_LOG_DEBUG_HTTP, log, 0,
                       "zstd static: \"%V\" is a directory", path);
        return NGX_DECLINED;
    }

#if !(NGX_WIN32)

    if (!of->is_file) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "\"%V\" is not a regular file", path);
        return NGX_DECLINED;
    }

#endif

    ngx_memzero(&file, sizeof(ngx_file_t));

    file.fd = of->fd;
    file.name = *path;
    file.log = log;

    offset = 0;

    for (skips = 0; skips <= NGX_HTTP_ZSTD_STATIC_SKIPS_MAX; skips++) {

        n = ngx_http_zstd_static_read(r, &file, of, buf, offset);

        if (n == NGX_ERROR) {
            return NGX_DECLINED;
        }

        if (n < NGX_HTTP_ZSTD_STATIC_SKIP
            || (ngx_http_zstd_static_number(buf, 4) & 0xfffffff0)
               != 0x184d2a50)
        {
            return ngx_http_zstd_static_check_frame(path, buf, n, log);
        }

        offset += NGX_HTTP_ZSTD_STATIC_SKIP
                  + (off_t) ngx_http_zstd_static_number(&buf[4], 4);
    }

    ngx_log_error(NGX_LOG_ERR, log, 0,
                  "\"%V\" is not served: begins with more than %d "
                  "skippable frames", path, NGX_HTTP_ZSTD_STATIC_SKIPS_MAX);

    return NGX_DECLINED;
}


/* up to NGX_HTTP_ZSTD_STATIC_HEADER bytes */

static ssize_t
ngx_http_zstd_static_read(ngx_http_request_t *r, ngx_file_t *file,
    ngx_open_file_info_t *of, u_char *buf, off_t offset)
{
    off_t                      start;
    u_char                    *p;
    size_t                     align;
    ssize_t                    n;
    ngx_http_core_loc_conf_t  *clcf;

    if (!of->is_directio) {
        return ngx_read_file(file, buf, NGX_HTTP_ZSTD_STATIC_HEADER, offset);
    }

    /* the kernel wants place, size and buffer aligned */

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    align = ngx_max((size_t) clcf->directio_alignment, 512);
    start = offset - offset % (off_t) align;

    p = ngx_pmemalign(r->pool, 2 * align, align);
    if (p == NULL) {
        return NGX_ERROR;
    }

    n = ngx_read_file(file, p, 2 * align, start);

    if (n != NGX_ERROR) {
        n -= (ssize_t) (offset - start);
        n = ngx_min(ngx_max(n, 0), NGX_HTTP_ZSTD_STATIC_HEADER);

        ngx_memcpy(buf, p + (offset - start), n);
    }

    ngx_pfree(r->pool, p);

    return n;
}


static ngx_int_t
ngx_http_zstd_static_check_frame(ngx_str_t *path, u_char *p, size_t n,
    ngx_log_t *log)
{
    u_char       desc;
    size_t       dict_size, content_size, header;
    uint64_t     window, dict;
    ngx_uint_t   single;

    if (n < 4 || ngx_http_zstd_static_number(p, 4) != 0xfd2fb528) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "\"%V\" is not served: not a zstd file", path);
        return NGX_DECLINED;
    }

    /* RFC 8878, section 3.1.1.1 */

    desc = (n > 4) ? p[4] : 0;
    single = (desc >> 5) & 1;

    dict_size = ngx_http_zstd_static_dict_sizes[desc & 3];
    content_size = ngx_http_zstd_static_content_sizes[desc >> 6];

    if (single && content_size == 0) {
        content_size = 1;
    }

    header = 5 + !single + dict_size + content_size;

    if (n < header) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "\"%V\" is not served: the frame's header is cut",
                      path);
        return NGX_DECLINED;
    }

    if (desc & 0x08) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "\"%V\" is not served: reserved bit in the frame's "
                      "header", path);
        return NGX_DECLINED;
    }

    dict = ngx_http_zstd_static_number(p + 5 + !single, dict_size);

    if (dict) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "\"%V\" is not served: needs dictionary %uL",
                      path, dict);
        return NGX_DECLINED;
    }

    if (single) {
        /* a size of two bytes is 256 more, and small in any case */

        window = ngx_http_zstd_static_number(p + 5 + dict_size, content_size);

    } else {
        window = (uint64_t) 1 << (10 + (p[5] >> 3));
        window += (window >> 3) * (p[5] & 7);
    }

    if (window > NGX_HTTP_ZSTD_STATIC_WINDOW_MAX) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "\"%V\" is not served: needs a window of %uL bytes, "
                      "more than the %d that browsers accept",
                      path, window, NGX_HTTP_ZSTD_STATIC_WINDOW_MAX);
        return NGX_DECLINED;
    }

    return NGX_OK;
}


/* n bytes, the lowest first */

static uint64_t
ngx_http_zstd_static_number(u_char *p, size_t n)
{
    uint64_t  number;

    number = 0;

    while (n--) {
        number = (number << 8) | p[n];
    }

    return number;
}


/* what the context of the request says */

static ngx_int_t
ngx_http_zstd_static_send(ngx_http_request_t *r)
{
    ngx_int_t                    rc;
    ngx_buf_t                   *b;
    ngx_chain_t                  out;
    ngx_table_elt_t             *h;
    ngx_http_zstd_static_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_zstd_static_module);

    r->root_tested = !r->error_page;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    r->connection->log->action = "sending response to client";

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = ctx->of.size;
    r->headers_out.last_modified_time = ctx->of.mtime;

    if (ngx_http_set_etag(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_set_content_type(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    h->hash = 1;
#if (nginx_version >= 1023000)
    h->next = NULL;
#endif
    ngx_str_set(&h->key, "Content-Encoding");
    ngx_str_set(&h->value, "zstd");
    r->headers_out.content_encoding = h;

    r->allow_ranges = 1;

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b->file = ngx_pcalloc(r->pool, sizeof(ngx_file_t));
    if (b->file == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_send_header(r);

    if (rc > NGX_OK) {

        /* an error page comes instead: a range was wrong, for example */

        h->hash = 0;
        r->headers_out.content_encoding = NULL;
        r->allow_ranges = 0;

        ngx_http_clear_etag(r);
    }

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    b->file_pos = 0;
    b->file_last = ctx->of.size;

    b->in_file = 1;
    b->last_buf = 1;
    b->last_in_chain = 1;

    b->file->fd = ctx->of.fd;
    b->file->name = ctx->path;
    b->file->log = r->connection->log;
    b->file->directio = ctx->of.is_directio;

    out.buf = b;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}


static ngx_int_t
ngx_http_zstd_static_header_filter(ngx_http_request_t *r)
{
    ngx_http_zstd_static_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_zstd_static_module);

    if (ctx && ctx->vary && ngx_http_zstd_add_vary(r) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_next_header_filter(r);
}


static void *
ngx_http_zstd_static_create_conf(ngx_conf_t *cf)
{
    ngx_http_zstd_static_conf_t  *conf;

    conf = ngx_palloc(cf->pool, sizeof(ngx_http_zstd_static_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->enable = NGX_CONF_UNSET_UINT;

    return conf;
}


static char *
ngx_http_zstd_static_merge_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_zstd_static_conf_t *prev = parent;
    ngx_http_zstd_static_conf_t *conf = child;

    ngx_conf_merge_uint_value(conf->enable, prev->enable,
                              NGX_HTTP_ZSTD_STATIC_OFF);

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_zstd_static_init(ngx_conf_t *cf)
{
    ngx_uint_t     i;
    ngx_module_t  *m;

    ngx_http_zstd_static_filter = NULL;

    for (i = 0; cf->cycle->modules[i]; i++) {
        m = cf->cycle->modules[i];

        if (ngx_strcmp(m->name, "ngx_http_zstd_filter_module") == 0) {
            ngx_http_zstd_static_filter = m;
        }
    }

    return ngx_http_zstd_static_add_handler(cf, NGX_HTTP_PRECONTENT_PHASE,
                                            ngx_http_zstd_static_handler);
}


static ngx_int_t
ngx_http_zstd_static_last_init(ngx_conf_t *cf)
{
    return ngx_http_zstd_static_add_handler(cf, NGX_HTTP_CONTENT_PHASE,
                                            ngx_http_zstd_static_late_handler);
}


static ngx_int_t
ngx_http_zstd_static_vary_init(ngx_conf_t *cf)
{
    ngx_http_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_zstd_static_header_filter;

    return NGX_OK;
}


static ngx_int_t
ngx_http_zstd_static_add_handler(ngx_conf_t *cf, ngx_uint_t phase,
    ngx_http_handler_pt handler)
{
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[phase].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = handler;

    return NGX_OK;
}
