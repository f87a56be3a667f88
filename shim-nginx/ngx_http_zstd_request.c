
/*
 * Copyright (C) the libsegzstd authors
 *
 * zstd_http_version, zstd_bypass, zstd_disable, zstd_proxied and
 * Cache-Control: no-transform.
 */


#include "ngx_http_zstd_request.h"


static ngx_uint_t ngx_http_zstd_proxied(ngx_http_request_t *r,
    ngx_uint_t proxied);
static ngx_uint_t ngx_http_zstd_proxied_expired(ngx_http_request_t *r);
static ngx_uint_t ngx_http_zstd_has_cache_control(ngx_http_request_t *r,
    char *name);


ngx_uint_t
ngx_http_zstd_conditions(ngx_http_request_t *r,
    ngx_http_zstd_accept_conf_t *conf)
{
    ngx_http_zstd_fields_t  f;

    if (r->http_version < conf->http_version) {
        return NGX_HTTP_ZSTD_VERSION;
    }

    if (ngx_http_zstd_has_cache_control(r, "no-transform")) {
        return NGX_HTTP_ZSTD_NO_TRANSFORM;
    }

    ngx_http_zstd_fields(&f, &r->headers_in.headers);

    if (ngx_http_zstd_next_field(&f, "via")
        && !ngx_http_zstd_proxied(r, conf->proxied))
    {
        return NGX_HTTP_ZSTD_PROXIED;
    }

#if (NGX_PCRE)

    if (conf->disable && r->headers_in.user_agent
        && ngx_regex_exec_array(conf->disable,
                                &r->headers_in.user_agent->value,
                                r->connection->log)
           != NGX_DECLINED)
    {
        return NGX_HTTP_ZSTD_DISABLE;
    }

#endif

    /* declined as well if there is no memory for a value */

    if (ngx_http_test_predicates(r, conf->bypass) != NGX_OK) {
        return NGX_HTTP_ZSTD_BYPASS;
    }

    return 0;
}


/* 1 if the response may be compressed although a proxy asked for it */

static ngx_uint_t
ngx_http_zstd_proxied(ngx_http_request_t *r, ngx_uint_t proxied)
{
    if (proxied & NGX_HTTP_GZIP_PROXIED_OFF) {
        return 0;
    }

    if (proxied & NGX_HTTP_GZIP_PROXIED_ANY) {
        return 1;
    }

    if ((proxied & NGX_HTTP_GZIP_PROXIED_AUTH) && r->headers_in.authorization) {
        return 1;
    }

    if (r->headers_out.expires) {
        return (proxied & NGX_HTTP_GZIP_PROXIED_EXPIRED)
               && ngx_http_zstd_proxied_expired(r);
    }

    if (ngx_http_zstd_has_cache_control(r, NULL)) {

        if ((proxied & NGX_HTTP_GZIP_PROXIED_NO_CACHE)
            && ngx_http_zstd_has_cache_control(r, "no-cache"))
        {
            return 1;
        }

        if ((proxied & NGX_HTTP_GZIP_PROXIED_NO_STORE)
            && ngx_http_zstd_has_cache_control(r, "no-store"))
        {
            return 1;
        }

        return (proxied & NGX_HTTP_GZIP_PROXIED_PRIVATE)
               && ngx_http_zstd_has_cache_control(r, "private");
    }

    if ((proxied & NGX_HTTP_GZIP_PROXIED_NO_LM)
        && (r->headers_out.last_modified
            || r->headers_out.last_modified_time != -1))
    {
        return 0;
    }

    if ((proxied & NGX_HTTP_GZIP_PROXIED_NO_ETAG) && r->headers_out.etag) {
        return 0;
    }

    return 1;
}


static ngx_uint_t
ngx_http_zstd_proxied_expired(ngx_http_request_t *r)
{
    time_t            date, expires;
    ngx_table_elt_t  *h;

    h = r->headers_out.expires;

    expires = ngx_parse_http_time(h->value.data, h->value.len);
    if (expires == NGX_ERROR) {
        return 0;
    }

    date = ngx_time();

    /* an upstream without Date may have been given an empty one */

    h = r->headers_out.date;

    if (h && h->value.len) {
        date = ngx_parse_http_time(h->value.data, h->value.len);
        if (date == NGX_ERROR) {
            return 0;
        }
    }

    return expires < date;
}


/* whether Cache-Control has the directive; with NULL: whether it is there */

static ngx_uint_t
ngx_http_zstd_has_cache_control(ngx_http_request_t *r, char *name)
{
    ngx_table_elt_t         *h;
    ngx_http_zstd_fields_t   f;

    ngx_http_zstd_fields(&f, &r->headers_out.headers);

    for ( ;; ) {
        h = ngx_http_zstd_next_field(&f, "cache-control");
        if (h == NULL) {
            return 0;
        }

        if (name == NULL
            || ngx_http_zstd_list_has(h->value.data,
                                      h->value.data + h->value.len, name))
        {
            return 1;
        }
    }
}
