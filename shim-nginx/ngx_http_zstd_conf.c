
/*
 * Copyright (C) the libsegzstd authors
 *
 * The directives of the filter module.
 */


#include "ngx_http_zstd.h"


/* zstd_comp_level: every number from -131072 on may be a level, -1 too */
#define NGX_HTTP_ZSTD_LEVEL_UNSET      NGX_MAX_INT32_VALUE

/* "blocked" of a request has 8 bits; more than a few tasks gain nothing */
#define NGX_HTTP_ZSTD_TASKS_MAX        64

/*
 * Work that is predicted to be shorter is done at once, on the event loop.  A
 * hop to a thread and back costs 40 to 50 us of CPU.  Several such works may be
 * due in one turn of the loop: with 500 us, eight of 350 us made others wait
 * for 8 ms.
 */
#define NGX_HTTP_ZSTD_INLINE_US        100


static char *ngx_http_zstd_level(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_zstd_thread_pool(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_zstd_length(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_zstd_bufs(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_zstd_auto_size(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_zstd_auto_num(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_zstd_retention(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_zstd_memory(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_zstd_inline(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_zstd_window(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_zstd_nice(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_zstd_disable(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_zstd_dict_file(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

static ngx_int_t ngx_http_zstd_read_dict(ngx_conf_t *cf,
    ngx_http_zstd_dict_t *dict);
static ngx_int_t ngx_http_zstd_check_dict(ngx_conf_t *cf,
    ngx_http_zstd_dict_t *dict);
static char *ngx_http_zstd_bad_size(ngx_conf_t *cf, ngx_str_t *value,
    ngx_command_t *cmd);
static ngx_int_t ngx_http_zstd_parse_us(ngx_str_t *value);
static ngx_int_t ngx_http_zstd_is(ngx_str_t *value, char *word);
#if (NGX_THREADS)
static ngx_uint_t ngx_http_zstd_has_pool(ngx_array_t *pools,
    ngx_thread_pool_t *pool);
static ngx_int_t ngx_http_zstd_note_pool(ngx_array_t *pools,
    ngx_thread_pool_t *pool);
static char *ngx_http_zstd_merge_pool(ngx_conf_t *cf,
    ngx_http_zstd_main_conf_t *zmcf, ngx_http_zstd_loc_conf_t *conf);
static char *ngx_http_zstd_init_pools(ngx_conf_t *cf);
#endif


static ngx_conf_num_bounds_t  ngx_http_zstd_tasks_bounds = {
    ngx_conf_check_num_bounds, 1, NGX_HTTP_ZSTD_TASKS_MAX
};

static ngx_conf_num_bounds_t  ngx_http_zstd_compressors_bounds = {
    ngx_conf_check_num_bounds, 0, 1024
};

static ngx_conf_enum_t  ngx_http_zstd_http_versions[] = {
    { ngx_string("1.0"), NGX_HTTP_VERSION_10 },
    { ngx_string("1.1"), NGX_HTTP_VERSION_11 },
    { ngx_null_string, 0 }
};

static ngx_conf_bitmask_t  ngx_http_zstd_proxied_mask[] = {
    { ngx_string("off"), NGX_HTTP_GZIP_PROXIED_OFF },
    { ngx_string("expired"), NGX_HTTP_GZIP_PROXIED_EXPIRED },
    { ngx_string("no-cache"), NGX_HTTP_GZIP_PROXIED_NO_CACHE },
    { ngx_string("no-store"), NGX_HTTP_GZIP_PROXIED_NO_STORE },
    { ngx_string("private"), NGX_HTTP_GZIP_PROXIED_PRIVATE },
    { ngx_string("no_last_modified"), NGX_HTTP_GZIP_PROXIED_NO_LM },
    { ngx_string("no_etag"), NGX_HTTP_GZIP_PROXIED_NO_ETAG },
    { ngx_string("auth"), NGX_HTTP_GZIP_PROXIED_AUTH },
    { ngx_string("any"), NGX_HTTP_GZIP_PROXIED_ANY },
    { ngx_null_string, 0 }
};


#define NGX_HTTP_ZSTD_CONF  NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF              \
                            |NGX_HTTP_LOC_CONF


ngx_command_t  ngx_http_zstd_commands[] = {

    /* as in other modules of this name */

    { ngx_string("zstd"),
      NGX_HTTP_ZSTD_CONF|NGX_HTTP_LIF_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_zstd_loc_conf_t, enable),
      NULL },

    { ngx_string("zstd_comp_level"),
      NGX_HTTP_ZSTD_CONF|NGX_CONF_TAKE1,
      ngx_http_zstd_level,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("zstd_types"),
      NGX_HTTP_ZSTD_CONF|NGX_CONF_1MORE,
      ngx_http_types_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_zstd_loc_conf_t, types_keys),
      &ngx_http_html_default_types[0] },

    { ngx_string("zstd_min_length"),
      NGX_HTTP_ZSTD_CONF|NGX_CONF_TAKE1,
      ngx_http_zstd_length,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_zstd_loc_conf_t, min_length),
      NULL },

    { ngx_string("zstd_buffers"),
      NGX_HTTP_ZSTD_CONF|NGX_CONF_TAKE2,
      ngx_http_zstd_bufs,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("zstd_dict_file"),
      NGX_HTTP_ZSTD_CONF|NGX_CONF_TAKE1,
      ngx_http_zstd_dict_file,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    /* threads */

    { ngx_string("zstd_thread_pool"),
      NGX_HTTP_ZSTD_CONF|NGX_CONF_TAKE1,
      ngx_http_zstd_thread_pool,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("zstd_parallel_segment_size"),
      NGX_HTTP_ZSTD_CONF|NGX_CONF_TAKE1,
      ngx_http_zstd_auto_size,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_zstd_loc_conf_t, segment_size),
      NULL },

    { ngx_string("zstd_overlap"),
      NGX_HTTP_ZSTD_CONF|NGX_CONF_TAKE1,
      ngx_http_zstd_auto_size,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_zstd_loc_conf_t, overlap),
      NULL },

    { ngx_string("zstd_parallel_tasks"),
      NGX_HTTP_ZSTD_CONF|NGX_CONF_TAKE1,
      ngx_http_zstd_auto_num,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_zstd_loc_conf_t, tasks),
      &ngx_http_zstd_tasks_bounds },

    { ngx_string("zstd_inline"),
      NGX_HTTP_ZSTD_CONF|NGX_CONF_TAKE1,
      ngx_http_zstd_inline,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    /* of the whole worker */

    { ngx_string("zstd_parallel_compressors"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_zstd_auto_num,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_zstd_main_conf_t, compressors),
      &ngx_http_zstd_compressors_bounds },

    { ngx_string("zstd_retention_policy"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE12,
      ngx_http_zstd_retention,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("zstd_memory"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_zstd_memory,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("zstd_thread_nice"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_zstd_nice,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    /* which responses, and how */

    { ngx_string("zstd_max_length"),
      NGX_HTTP_ZSTD_CONF|NGX_CONF_TAKE1,
      ngx_http_zstd_length,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_zstd_loc_conf_t, max_length),
      NULL },

    { ngx_string("zstd_window_log"),
      NGX_HTTP_ZSTD_CONF|NGX_CONF_TAKE1,
      ngx_http_zstd_window,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("zstd_window_bits"),
      NGX_HTTP_ZSTD_CONF|NGX_CONF_TAKE1,
      ngx_http_zstd_window,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("zstd_bypass"),
      NGX_HTTP_ZSTD_CONF|NGX_CONF_1MORE,
      ngx_http_set_predicate_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_zstd_loc_conf_t, accept)
      + offsetof(ngx_http_zstd_accept_conf_t, bypass),
      NULL },

    { ngx_string("zstd_proxied"),
      NGX_HTTP_ZSTD_CONF|NGX_CONF_1MORE,
      ngx_conf_set_bitmask_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_zstd_loc_conf_t, accept)
      + offsetof(ngx_http_zstd_accept_conf_t, proxied),
      &ngx_http_zstd_proxied_mask },

    { ngx_string("zstd_http_version"),
      NGX_HTTP_ZSTD_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_zstd_loc_conf_t, accept)
      + offsetof(ngx_http_zstd_accept_conf_t, http_version),
      &ngx_http_zstd_http_versions },

    { ngx_string("zstd_disable"),
      NGX_HTTP_ZSTD_CONF|NGX_CONF_1MORE,
      ngx_http_zstd_disable,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("zstd_prefer"),
      NGX_HTTP_ZSTD_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_zstd_loc_conf_t, accept)
      + offsetof(ngx_http_zstd_accept_conf_t, prefer),
      NULL },

    { ngx_string("zstd_vary"),
      NGX_HTTP_ZSTD_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_zstd_loc_conf_t, vary),
      NULL },

    { ngx_string("zstd_status"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1,
      ngx_http_zstd_status,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


void *
ngx_http_zstd_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_zstd_main_conf_t  *zmcf;

    zmcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_zstd_main_conf_t));
    if (zmcf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     zmcf->nice = 0;
     *     zmcf->retain_bytes = 0;
     *     zmcf->shm_zone = NULL;
     *     zmcf->enabled = 0;
     *     zmcf->any_pool = 0;
     */

    zmcf->compressors = NGX_CONF_UNSET_UINT;
    zmcf->retention = NGX_CONF_UNSET_UINT;
    zmcf->memory = NGX_CONF_UNSET;

    if (ngx_array_init(&zmcf->dicts, cf->pool, 1,
                       sizeof(ngx_http_zstd_dict_t *))
        != NGX_OK)
    {
        return NULL;
    }

#if (NGX_THREADS)

    if (ngx_array_init(&zmcf->others_pools, cf->pool, 1,
                       sizeof(ngx_thread_pool_t *))
        != NGX_OK
        || ngx_array_init(&zmcf->pools, cf->pool, 1,
                          sizeof(ngx_thread_pool_t *))
        != NGX_OK)
    {
        return NULL;
    }

#endif

    return zmcf;
}


char *
ngx_http_zstd_init_main_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_zstd_main_conf_t *zmcf = conf;

    ngx_conf_init_uint_value(zmcf->compressors, 0);
    ngx_conf_init_uint_value(zmcf->retention, SEGZSTD_RETAIN_ALL);

    return NGX_CONF_OK;
}


void *
ngx_http_zstd_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_zstd_loc_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_zstd_loc_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     conf->accept.proxied = 0;
     *     conf->bufs.num = 0;
     *     conf->types = { NULL };
     *     conf->types_keys = NULL;
     *     conf->pool = NULL;
     */

    conf->accept.prefer = NGX_CONF_UNSET;
    conf->accept.http_version = NGX_CONF_UNSET_UINT;
#if (NGX_PCRE)
    conf->accept.disable = NGX_CONF_UNSET_PTR;
#endif
    conf->accept.bypass = NGX_CONF_UNSET_PTR;

    conf->enable = NGX_CONF_UNSET;
    conf->vary = NGX_CONF_UNSET;
    conf->level = NGX_HTTP_ZSTD_LEVEL_UNSET;
    conf->min_length = NGX_CONF_UNSET;
    conf->max_length = NGX_CONF_UNSET;
    conf->segment_size = NGX_CONF_UNSET_SIZE;
    conf->overlap = NGX_CONF_UNSET_SIZE;
    conf->tasks = NGX_CONF_UNSET_UINT;
    conf->window_log = NGX_CONF_UNSET_UINT;
    conf->inline_us = NGX_CONF_UNSET;
    conf->dict = NGX_CONF_UNSET_PTR;
    conf->use_pool = NGX_CONF_UNSET;

    return conf;
}


char *
ngx_http_zstd_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_zstd_loc_conf_t  *prev = parent;
    ngx_http_zstd_loc_conf_t  *conf = child;

    uint64_t                    least;
    ngx_http_zstd_main_conf_t  *zmcf;

    ngx_conf_merge_value(conf->enable, prev->enable, 0);
    ngx_conf_merge_value(conf->vary, prev->vary, 1);

    if (conf->level == NGX_HTTP_ZSTD_LEVEL_UNSET) {
        conf->level = (prev->level == NGX_HTTP_ZSTD_LEVEL_UNSET) ? 1
                                                                  : prev->level;
    }

    ngx_conf_merge_bufs_value(conf->bufs, prev->bufs,
                              (128 * 1024) / ngx_pagesize, ngx_pagesize);
    ngx_conf_merge_off_value(conf->min_length, prev->min_length, 20);
    ngx_conf_merge_off_value(conf->max_length, prev->max_length, 0);
    ngx_conf_merge_size_value(conf->segment_size, prev->segment_size, 0);
    ngx_conf_merge_size_value(conf->overlap, prev->overlap, 0);
    ngx_conf_merge_uint_value(conf->tasks, prev->tasks, 0);
    ngx_conf_merge_uint_value(conf->window_log, prev->window_log,
                              NGX_HTTP_ZSTD_WINDOW_LOG_MAX);
    ngx_conf_merge_value(conf->inline_us, prev->inline_us,
                         NGX_HTTP_ZSTD_INLINE_US);
    ngx_conf_merge_ptr_value(conf->dict, prev->dict, NULL);

    ngx_conf_merge_value(conf->accept.prefer, prev->accept.prefer, 1);
    ngx_conf_merge_uint_value(conf->accept.http_version,
                              prev->accept.http_version, NGX_HTTP_VERSION_10);
    ngx_conf_merge_bitmask_value(conf->accept.proxied, prev->accept.proxied,
                              (NGX_CONF_BITMASK_SET|NGX_HTTP_GZIP_PROXIED_ANY));
#if (NGX_PCRE)
    ngx_conf_merge_ptr_value(conf->accept.disable, prev->accept.disable, NULL);
#endif
    ngx_conf_merge_ptr_value(conf->accept.bypass, prev->accept.bypass, NULL);

    if (ngx_http_merge_types(cf, &conf->types_keys, &conf->types,
                             &prev->types_keys, &prev->types,
                             ngx_http_html_default_types)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (conf->max_length && conf->max_length < conf->min_length) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"zstd_max_length\" %O is less than "
                           "\"zstd_min_length\" %O",
                           conf->max_length, conf->min_length);
        return NGX_CONF_ERROR;
    }

    if (conf->use_pool == NGX_CONF_UNSET) {
        conf->use_pool = (prev->use_pool == NGX_CONF_UNSET) ? 1
                                                            : prev->use_pool;
        conf->pool_name = prev->pool_name;
    }

    zmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_zstd_filter_module);

    if (conf->enable) {
        zmcf->enabled = 1;

        least = ngx_http_zstd_least_memory(conf, -1);

        if (zmcf->memory > 0 && (uint64_t) zmcf->memory < least) {
            ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                               "\"zstd_memory\" %O is too little for long "
                               "responses with \"zstd_comp_level\" %i, which "
                               "need %uL: they will not be compressed",
                               zmcf->memory, conf->level, least);
        }
    }

#if (NGX_THREADS)
    return ngx_http_zstd_merge_pool(cf, zmcf, conf);
#else
    return NGX_CONF_OK;
#endif
}


/* of one response: its encoder and 4 MiB of input and output */

uint64_t
ngx_http_zstd_least_memory(ngx_http_zstd_loc_conf_t *conf, off_t length)
{
    uint64_t  size;

    size = (length < 0) ? SEGZSTD_SIZE_UNKNOWN : (uint64_t) length;

    return segzstd_encoder_bytes((int) conf->level, (unsigned) conf->window_log,
                                 size)
           + 4 * 1024 * 1024;
}


#if (NGX_THREADS)

static char *
ngx_http_zstd_merge_pool(ngx_conf_t *cf, ngx_http_zstd_main_conf_t *zmcf,
    ngx_http_zstd_loc_conf_t *conf)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->thread_pool_value) {
        zmcf->any_pool = 1;
    }

    if (clcf->thread_pool
        && ngx_http_zstd_note_pool(&zmcf->others_pools, clcf->thread_pool)
           != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (!conf->enable || !conf->use_pool) {
        return NGX_CONF_OK;
    }

    conf->pool = ngx_thread_pool_add(cf, conf->pool_name.len ? &conf->pool_name
                                                             : NULL);
    if (conf->pool == NULL
        || ngx_http_zstd_note_pool(&zmcf->pools, conf->pool) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    return ngx_http_zstd_init_pools(cf);
}


/*
 * Angie merges locations after it has given the default pool its threads, and
 * has looked for pools that are not declared.
 */

static char *
ngx_http_zstd_init_pools(ngx_conf_t *cf)
{
#if (angie_version >= 1010000)

    ngx_core_module_t    *module;
    extern ngx_module_t   ngx_thread_pool_module;

    module = ngx_thread_pool_module.ctx;

    return module->init_conf(cf->cycle,
                             ngx_get_conf(cf->cycle->conf_ctx,
                                          ngx_thread_pool_module));

#else

    return NGX_CONF_OK;

#endif
}


static ngx_uint_t
ngx_http_zstd_has_pool(ngx_array_t *pools, ngx_thread_pool_t *pool)
{
    ngx_uint_t           i;
    ngx_thread_pool_t  **tp;

    tp = pools->elts;

    for (i = 0; i < pools->nelts; i++) {
        if (tp[i] == pool) {
            return 1;
        }
    }

    return 0;
}


static ngx_int_t
ngx_http_zstd_note_pool(ngx_array_t *pools, ngx_thread_pool_t *pool)
{
    ngx_thread_pool_t  **tp;

    if (ngx_http_zstd_has_pool(pools, pool)) {
        return NGX_OK;
    }

    tp = ngx_array_push(pools);
    if (tp == NULL) {
        return NGX_ERROR;
    }

    *tp = pool;

    return NGX_OK;
}

#endif


ngx_int_t
ngx_http_zstd_check_nice(ngx_conf_t *cf, ngx_http_zstd_main_conf_t *zmcf)
{
#if (NGX_THREADS)

    ngx_uint_t           i;
    ngx_thread_pool_t  **pools, *standard;

    static ngx_str_t  name = ngx_string("default");

    if (zmcf->nice == 0) {
        return NGX_OK;
    }

    pools = zmcf->pools.elts;
    standard = ngx_thread_pool_get(cf->cycle, &name);

    for (i = 0; i < zmcf->pools.nelts; i++) {

        if (pools[i] == standard) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"zstd_thread_nice\" needs a thread pool for "
                               "compression alone, and zstd uses pool "
                               "\"default\" somewhere: declare one with "
                               "\"thread_pool\" and name it in "
                               "\"zstd_thread_pool\"");
            return NGX_ERROR;
        }

        if (ngx_http_zstd_has_pool(&zmcf->others_pools, pools[i])) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"zstd_thread_nice\" cannot lower the threads "
                               "of a pool that \"aio threads\" uses too: they "
                               "could not be raised again to read files");
            return NGX_ERROR;
        }
    }

    if (zmcf->pools.nelts && zmcf->any_pool) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "\"zstd_thread_nice\" lowers threads of pools that "
                           "\"aio threads\" with variables could name too: "
                           "such reads of files would be slow");
    }

#endif

    return NGX_OK;
}


static char *
ngx_http_zstd_level(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_zstd_loc_conf_t *zlcf = conf;

    ngx_str_t   *value;
    ngx_int_t    level;
    ngx_uint_t   negative;

    if (zlcf->level != NGX_HTTP_ZSTD_LEVEL_UNSET) {
        return "is duplicate";
    }

    value = cf->args->elts;

    negative = (value[1].len > 1 && value[1].data[0] == '-');

    level = ngx_atoi(value[1].data + negative, value[1].len - negative);

    if (level == NGX_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid level \"%V\" in \"%V\"",
                           &value[1], &cmd->name);
        return NGX_CONF_ERROR;
    }

    if (negative) {
        level = -level;
    }

    if (level == 0
        || level < segzstd_min_level() || level > segzstd_max_level())
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "level \"%V\" in \"%V\" must be from %d to -1 or "
                           "from 1 to %d", &value[1], &cmd->name,
                           segzstd_min_level(), segzstd_max_level());
        return NGX_CONF_ERROR;
    }

    zlcf->level = level;

    return NGX_CONF_OK;
}


static char *
ngx_http_zstd_thread_pool(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_zstd_loc_conf_t *zlcf = conf;

    ngx_str_t  *value;

    if (zlcf->use_pool != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_http_zstd_is(&value[1], "off")) {
        zlcf->use_pool = 0;
        return NGX_CONF_OK;
    }

    zlcf->use_pool = 1;

    if (ngx_http_zstd_is(&value[1], "auto")) {
        return NGX_CONF_OK;
    }

#if (NGX_THREADS)

    zlcf->pool_name = value[1];

    return NGX_CONF_OK;

#else

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "\"%V %V\" needs nginx built with threads",
                       &cmd->name, &value[1]);
    return NGX_CONF_ERROR;

#endif
}


static char *
ngx_http_zstd_length(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char  *p = conf;

    off_t      *field;
    ngx_str_t  *value;

    field = (off_t *) (p + cmd->offset);

    if (*field != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    value = cf->args->elts;

    *field = ngx_parse_offset(&value[1]);

    if (*field == (off_t) NGX_ERROR) {
        return ngx_http_zstd_bad_size(cf, &value[1], cmd);
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_zstd_bufs(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_zstd_loc_conf_t *zlcf = conf;

    ssize_t     size;
    ngx_int_t   num;
    ngx_str_t  *value;

    if (zlcf->bufs.num) {
        return "is duplicate";
    }

    value = cf->args->elts;

    num = ngx_atoi(value[1].data, value[1].len);

    if (num == NGX_ERROR || num == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid number \"%V\" in \"%V\"",
                           &value[1], &cmd->name);
        return NGX_CONF_ERROR;
    }

    size = ngx_parse_size(&value[2]);

    if (size == NGX_ERROR || size == 0
        || (size_t) size > NGX_MAX_SIZE_T_VALUE / (size_t) num)
    {
        return ngx_http_zstd_bad_size(cf, &value[2], cmd);
    }

    zlcf->bufs.num = num;
    zlcf->bufs.size = (size_t) size;

    return NGX_CONF_OK;
}


static char *
ngx_http_zstd_bad_size(ngx_conf_t *cf, ngx_str_t *value, ngx_command_t *cmd)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid size \"%V\" in \"%V\"",
                       value, &cmd->name);

    return NGX_CONF_ERROR;
}


/* SIZE or "auto", which is 0 */

static char *
ngx_http_zstd_auto_size(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char  *p = conf;

    off_t                     size;
    size_t                   *field;
    ngx_str_t                *value;
    const char               *name;
    segzstd_stream_options    options = SEGZSTD_STREAM_OPTIONS_INIT;

    field = (size_t *) (p + cmd->offset);

    if (*field != NGX_CONF_UNSET_SIZE) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_http_zstd_is(&value[1], "auto")) {
        *field = 0;
        return NGX_CONF_OK;
    }

    size = ngx_parse_offset(&value[1]);

    if (size == (off_t) NGX_ERROR) {
        return ngx_http_zstd_bad_size(cf, &value[1], cmd);
    }

    *field = (size_t) size;

    if (cmd->offset == offsetof(ngx_http_zstd_loc_conf_t, overlap)) {

        options.overlap_bytes = *field;

        if (size == 0) {
            *field = NGX_HTTP_ZSTD_NONE;
        }

    } else {

        if (size == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "size \"%V\" in \"%V\" must not be zero, use "
                               "\"auto\"", &value[1], &cmd->name);
            return NGX_CONF_ERROR;
        }

        options.segment_bytes = *field;
    }

    if (segzstd_stream_options_check(&options, &name) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "size \"%V\" in \"%V\" is out of range",
                           &value[1], &cmd->name);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* a number within cmd->post's bounds, or "auto", which is 0 */

static char *
ngx_http_zstd_auto_num(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char  *p = conf;

    ngx_int_t               n;
    ngx_str_t              *value;
    ngx_uint_t             *field;
    ngx_conf_num_bounds_t  *bounds;

    field = (ngx_uint_t *) (p + cmd->offset);

    if (*field != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_http_zstd_is(&value[1], "auto")) {
        *field = 0;
        return NGX_CONF_OK;
    }

    n = ngx_atoi(value[1].data, value[1].len);

    bounds = cmd->post;

    if (n == NGX_ERROR || n < bounds->low || n > bounds->high) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "value \"%V\" in \"%V\" must be \"auto\" or a "
                           "number from %i to %i", &value[1], &cmd->name,
                           bounds->low, bounds->high);
        return NGX_CONF_ERROR;
    }

    *field = (n == 0) ? NGX_HTTP_ZSTD_NONE : (ngx_uint_t) n;

    return NGX_CONF_OK;
}


static char *
ngx_http_zstd_retention(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_zstd_main_conf_t *zmcf = conf;

    ngx_str_t  *value;

    if (zmcf->retention != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (cf->args->nelts == 3) {

        if (!ngx_http_zstd_is(&value[1], "bounded")) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid value \"%V %V\" in \"%V\"",
                               &value[1], &value[2], &cmd->name);
            return NGX_CONF_ERROR;
        }

        zmcf->retention = SEGZSTD_RETAIN_BOUNDED;
        zmcf->retain_bytes = ngx_parse_offset(&value[2]);

        if (zmcf->retain_bytes == (off_t) NGX_ERROR) {
            return ngx_http_zstd_bad_size(cf, &value[2], cmd);
        }

        return NGX_CONF_OK;
    }

    if (ngx_http_zstd_is(&value[1], "keep_all")) {
        zmcf->retention = SEGZSTD_RETAIN_ALL;

    } else if (ngx_http_zstd_is(&value[1], "release_all")) {
        zmcf->retention = SEGZSTD_RETAIN_NONE;

    } else {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "value \"%V\" in \"%V\" must be \"keep_all\", "
                           "\"bounded SIZE\" or \"release_all\"",
                           &value[1], &cmd->name);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_zstd_memory(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_zstd_main_conf_t *zmcf = conf;

    off_t       size;
    ngx_str_t  *value;

    if (zmcf->memory != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_http_zstd_is(&value[1], "off")) {
        zmcf->memory = 0;
        return NGX_CONF_OK;
    }

    size = ngx_parse_offset(&value[1]);

    if (size == (off_t) NGX_ERROR) {
        return ngx_http_zstd_bad_size(cf, &value[1], cmd);
    }

    /* an encoder of a fast level, its input and its output */

    if (size < 8 * 1024 * 1024) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "size \"%V\" in \"%V\" must be at least 8m",
                           &value[1], &cmd->name);
        return NGX_CONF_ERROR;
    }

    zmcf->memory = size;

    return NGX_CONF_OK;
}


static char *
ngx_http_zstd_inline(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_zstd_loc_conf_t *zlcf = conf;

    ngx_str_t  *value;

    if (zlcf->inline_us != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    value = cf->args->elts;

    zlcf->inline_us = ngx_http_zstd_parse_us(&value[1]);

    if (zlcf->inline_us == NGX_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid time \"%V\" in \"%V\", it must be a number "
                           "of \"us\" or \"ms\", up to one second",
                           &value[1], &cmd->name);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* microseconds; a number alone is seconds, as elsewhere, so only 0 and 1 */

static ngx_int_t
ngx_http_zstd_parse_us(ngx_str_t *value)
{
    size_t     len;
    ngx_int_t  n, scale;

    len = value->len;
    scale = 1000000;

    if (len > 2 && value->data[len - 1] == 's') {

        if (value->data[len - 2] == 'u') {
            scale = 1;
            len -= 2;

        } else if (value->data[len - 2] == 'm') {
            scale = 1000;
            len -= 2;
        }
    }

    if (scale == 1000000 && len > 1 && value->data[len - 1] == 's') {
        len--;
    }

    n = ngx_atoi(value->data, len);

    if (n == NGX_ERROR || n > 1000000 / scale) {
        return NGX_ERROR;
    }

    return n * scale;
}


static char *
ngx_http_zstd_window(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_zstd_loc_conf_t *zlcf = conf;

    ngx_int_t   n;
    ngx_str_t  *value;

    if (zlcf->window_log != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    n = ngx_atoi(value[1].data, value[1].len);

    if (n == NGX_ERROR || n < 10 || n > NGX_HTTP_ZSTD_WINDOW_LOG_MAX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "value \"%V\" in \"%V\" must be from 10 to %d, "
                           "which is 8 MiB, the most that HTTP clients need "
                           "to accept", &value[1], &cmd->name,
                           NGX_HTTP_ZSTD_WINDOW_LOG_MAX);
        return NGX_CONF_ERROR;
    }

    zlcf->window_log = n;

    return NGX_CONF_OK;
}


static char *
ngx_http_zstd_nice(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_zstd_main_conf_t *zmcf = conf;

    ngx_int_t   n;
    ngx_str_t  *value;

    if (zmcf->nice) {
        return "is duplicate";
    }

    value = cf->args->elts;

    n = ngx_atoi(value[1].data, value[1].len);

    if (n == NGX_ERROR || n < 1 || n > 19) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "value \"%V\" in \"%V\" must be from 1 to 19",
                           &value[1], &cmd->name);
        return NGX_CONF_ERROR;
    }

#if (NGX_THREADS)

    zmcf->nice = n;

    return NGX_CONF_OK;

#else

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "\"%V\" needs nginx built with threads", &cmd->name);
    return NGX_CONF_ERROR;

#endif
}


static char *
ngx_http_zstd_disable(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
#if (NGX_PCRE)
    ngx_http_zstd_loc_conf_t *zlcf = conf;

    u_char                errstr[NGX_MAX_CONF_ERRSTR];
    ngx_str_t            *value;
    ngx_uint_t            i;
    ngx_regex_elt_t      *re;
    ngx_regex_compile_t   rc;

    if (zlcf->accept.disable == NGX_CONF_UNSET_PTR) {
        zlcf->accept.disable = ngx_array_create(cf->pool, 2,
                                                sizeof(ngx_regex_elt_t));
        if (zlcf->accept.disable == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    value = cf->args->elts;

    ngx_memzero(&rc, sizeof(ngx_regex_compile_t));

    rc.pool = cf->pool;
    rc.err.len = NGX_MAX_CONF_ERRSTR;
    rc.err.data = errstr;

    for (i = 1; i < cf->args->nelts; i++) {

        re = ngx_array_push(zlcf->accept.disable);
        if (re == NULL) {
            return NGX_CONF_ERROR;
        }

        rc.pattern = value[i];
        rc.options = NGX_REGEX_CASELESS;

        if (ngx_regex_compile(&rc) != NGX_OK) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%V", &rc.err);
            return NGX_CONF_ERROR;
        }

        re->regex = rc.regex;
        re->name = value[i].data;
    }

    return NGX_CONF_OK;

#else

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "\"%V\" needs nginx built with the PCRE library",
                       &cmd->name);
    return NGX_CONF_ERROR;

#endif
}


static char *
ngx_http_zstd_dict_file(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_zstd_loc_conf_t *zlcf = conf;

    ngx_str_t                   *value, file;
    ngx_uint_t                   i;
    ngx_http_zstd_dict_t       **dicts, *dict;
    ngx_http_zstd_main_conf_t   *zmcf;

    if (zlcf->dict != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_http_zstd_is(&value[1], "off")) {
        zlcf->dict = NULL;
        return NGX_CONF_OK;
    }

    file = value[1];

    if (ngx_conf_full_name(cf->cycle, &file, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    zmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_zstd_filter_module);
    dicts = zmcf->dicts.elts;

    for (i = 0; i < zmcf->dicts.nelts; i++) {
        if (dicts[i]->file.len == file.len
            && ngx_strncmp(dicts[i]->file.data, file.data, file.len) == 0)
        {
            zlcf->dict = dicts[i];
            return NGX_CONF_OK;
        }
    }

    dict = ngx_pcalloc(cf->pool, sizeof(ngx_http_zstd_dict_t));
    if (dict == NULL) {
        return NGX_CONF_ERROR;
    }

    dict->file = file;

    if (ngx_http_zstd_read_dict(cf, dict) != NGX_OK
        || ngx_http_zstd_check_dict(cf, dict) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    dicts = ngx_array_push(&zmcf->dicts);
    if (dicts == NULL) {
        return NGX_CONF_ERROR;
    }

    *dicts = dict;
    zlcf->dict = dict;

    ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                       "responses with \"%V\" can be decoded only by clients "
                       "that have this dictionary", &cmd->name);

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_zstd_read_dict(ngx_conf_t *cf, ngx_http_zstd_dict_t *dict)
{
    ssize_t          n;
    ngx_int_t        rc;
    ngx_file_t       file;
    ngx_file_info_t  fi;

    ngx_memzero(&file, sizeof(ngx_file_t));

    file.name = dict->file;
    file.log = cf->log;

    file.fd = ngx_open_file(dict->file.data, NGX_FILE_RDONLY, NGX_FILE_OPEN,
                            0);
    if (file.fd == NGX_INVALID_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_open_file_n " \"%V\" failed", &dict->file);
        return NGX_ERROR;
    }

    rc = NGX_ERROR;

    if (ngx_fd_info(file.fd, &fi) == NGX_FILE_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_fd_info_n " \"%V\" failed", &dict->file);
        goto done;
    }

    if (!ngx_is_file(&fi)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "dictionary \"%V\" is not a file", &dict->file);
        goto done;
    }

    dict->bytes.len = (size_t) ngx_file_size(&fi);
    dict->bytes.data = ngx_pnalloc(cf->pool, dict->bytes.len + 1);
    if (dict->bytes.data == NULL) {
        goto done;
    }

    n = ngx_read_file(&file, dict->bytes.data, dict->bytes.len, 0);

    if (n == NGX_ERROR || (size_t) n != dict->bytes.len) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "dictionary \"%V\" could not be read", &dict->file);
        goto done;
    }

    rc = NGX_OK;

done:

    if (ngx_close_file(file.fd) == NGX_FILE_ERROR) {
        ngx_conf_log_error(NGX_LOG_ALERT, cf, ngx_errno,
                           ngx_close_file_n " \"%V\" failed", &dict->file);
    }

    return rc;
}


static ngx_int_t
ngx_http_zstd_check_dict(ngx_conf_t *cf, ngx_http_zstd_dict_t *dict)
{
    int             rc;
    segzstd_dict   *made;
    segzstd_cache  *cache;

    rc = segzstd_cache_new(&cache, NULL);

    if (rc == 0) {
        rc = segzstd_dict_new(&made, cache, dict->bytes.data,
                              dict->bytes.len);

        if (rc == 0) {
            segzstd_dict_free(made);
        }

        segzstd_cache_free(cache);
    }

    if (rc != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "file \"%V\" of %uz bytes is not a dictionary: %s",
                           &dict->file, dict->bytes.len, segzstd_strerror(rc));
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_zstd_is(ngx_str_t *value, char *word)
{
    return value->len == ngx_strlen(word)
           && ngx_strncmp(value->data, word, value->len) == 0;
}
