
/*
 * Copyright (C) the libsegzstd authors
 *
 * Header fields of requests and responses, read from the lists: nginx's
 * pointers to single fields differ by version and by what it is built with.
 */


#include "ngx_http_zstd_accept.h"


static ngx_int_t ngx_http_zstd_append_vary(ngx_http_request_t *r,
    ngx_table_elt_t *h);


static ngx_str_t  ngx_http_zstd_vary = ngx_string("Accept-Encoding");


void
ngx_http_zstd_weigh(ngx_http_request_t *r, ngx_http_zstd_weights_t *w)
{
    ngx_table_elt_t         *h;
    ngx_http_zstd_fields_t   f;

    ngx_memzero(w, sizeof(ngx_http_zstd_weights_t));

    ngx_http_zstd_fields(&f, &r->headers_in.headers);

    for ( ;; ) {
        h = ngx_http_zstd_next_field(&f, "accept-encoding");
        if (h == NULL) {
            return;
        }

        ngx_http_zstd_parse_accept(w, h->value.data,
                                   h->value.data + h->value.len);
    }
}


ngx_int_t
ngx_http_zstd_add_vary(ngx_http_request_t *r)
{
    u_char                    *p, *last;
    ngx_table_elt_t           *h, *vary;
    ngx_http_zstd_fields_t     f;
#if (NGX_HTTP_GZIP)
    ngx_http_core_loc_conf_t  *clcf;
#endif

    vary = NULL;

    ngx_http_zstd_fields(&f, &r->headers_out.headers);

    for ( ;; ) {
        h = ngx_http_zstd_next_field(&f, "vary");
        if (h == NULL) {
            break;
        }

        p = h->value.data;
        last = p + h->value.len;

        if (ngx_http_zstd_list_has(p, last, "*")
            || ngx_http_zstd_list_has(p, last, "accept-encoding"))
        {
#if (NGX_HTTP_GZIP)
            r->gzip_vary = 0;
#endif
            return NGX_OK;
        }

        vary = h;
    }

#if (NGX_HTTP_GZIP)

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (clcf->gzip_vary) {
        r->gzip_vary = 1;
        return NGX_OK;
    }

#endif

    return ngx_http_zstd_append_vary(r, vary);
}


/* to a field that is there, or as a new one if h is NULL */

static ngx_int_t
ngx_http_zstd_append_vary(ngx_http_request_t *r, ngx_table_elt_t *h)
{
    u_char  *p;
    size_t   len;

    if (h == NULL) {
        h = ngx_list_push(&r->headers_out.headers);
        if (h == NULL) {
            return NGX_ERROR;
        }

        h->hash = 1;
#if (nginx_version >= 1023000)
        h->next = NULL;
#endif
        ngx_str_set(&h->key, "Vary");
        h->lowcase_key = (u_char *) "vary";
        h->value = ngx_http_zstd_vary;

        return NGX_OK;
    }

    if (h->value.len == 0) {
        h->value = ngx_http_zstd_vary;
        return NGX_OK;
    }

    len = h->value.len + sizeof(", ") - 1 + ngx_http_zstd_vary.len;

    p = ngx_pnalloc(r->pool, len + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    /* the zero is for those who read fields as strings */

    ngx_sprintf(p, "%V, %V%Z", &h->value, &ngx_http_zstd_vary);

    h->value.data = p;
    h->value.len = len;

    return NGX_OK;
}


void
ngx_http_zstd_fields(ngx_http_zstd_fields_t *f, ngx_list_t *headers)
{
    f->part = &headers->part;
    f->i = 0;
}


ngx_table_elt_t *
ngx_http_zstd_next_field(ngx_http_zstd_fields_t *f, char *name)
{
    size_t            len;
    ngx_table_elt_t  *h;

    len = ngx_strlen(name);

    while (f->part) {

        while (f->i < f->part->nelts) {
            h = (ngx_table_elt_t *) f->part->elts + f->i++;

            /* a field that was removed has no hash */

            if (h->hash && h->key.len == len
                && ngx_strncasecmp(h->key.data, (u_char *) name, len) == 0)
            {
                return h;
            }
        }

        f->part = f->part->next;
        f->i = 0;
    }

    return NULL;
}
