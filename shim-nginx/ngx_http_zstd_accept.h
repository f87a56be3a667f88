
/*
 * Copyright (C) the libsegzstd authors
 *
 * What the client accepts, and what the answer's headers say of it.  Used by
 * the filter module and by the static module; needs nothing of the library.
 */


#ifndef _NGX_HTTP_ZSTD_ACCEPT_H_INCLUDED_
#define _NGX_HTTP_ZSTD_ACCEPT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


#define NGX_HTTP_ZSTD_CODING_ZSTD      0
#define NGX_HTTP_ZSTD_CODING_BR        1
#define NGX_HTTP_ZSTD_CODING_GZIP      2    /* and x-gzip */
#define NGX_HTTP_ZSTD_CODING_IDENTITY  3
#define NGX_HTTP_ZSTD_CODING_ANY       4    /* "*" */
#define NGX_HTTP_ZSTD_CODINGS          5


/* weights of RFC 9110, section 12.5.3, in thousandths; 0: not acceptable */

typedef struct {
    ngx_uint_t   zstd;
    ngx_uint_t   others;      /* the highest of br, gzip and x-gzip */
    ngx_uint_t   identity;    /* 0 as well if it is not named, nor excluded */

    /* of the parser: weights as named, plus one; 0: not named (yet) */
    ngx_uint_t   named[NGX_HTTP_ZSTD_CODINGS];
} ngx_http_zstd_weights_t;


/*
 * What the filter's location configuration begins with.  The static module,
 * which may be loaded without it, finds it there.
 */

typedef struct {
    ngx_flag_t                 prefer;          /* zstd wins equal weights */
    ngx_uint_t                 http_version;    /* lowest, NGX_HTTP_VERSION_* */
    ngx_uint_t                 proxied;         /* bits of gzip_proxied */
#if (NGX_PCRE)
    ngx_array_t               *disable;         /* of ngx_regex_elt_t */
#endif
    ngx_array_t               *bypass;          /* ngx_http_complex_value_t */
} ngx_http_zstd_accept_conf_t;


/* the fields of a name in a list of headers, one after the other */

typedef struct {
    ngx_list_part_t  *part;
    ngx_uint_t        i;
} ngx_http_zstd_fields_t;


/* ngx_http_zstd_accept.c: pure functions */

/*
 * Reads a list of codings; w is to be zeroed by the caller, and may be given
 * several lines one after the other.  An element that does not follow the
 * grammar (a weight included) is ignored; of a coding that is named several
 * times the lowest weight counts; "*" stands for all codings that are not
 * named, but for identity.
 */
void ngx_http_zstd_parse_accept(ngx_http_zstd_weights_t *w, u_char *p,
    u_char *last);

/*
 * NGX_OK: zstd is to be used, at once; NGX_AGAIN: only if no other coding
 * wants the response; NGX_DECLINED: never.
 */
ngx_int_t ngx_http_zstd_choose(ngx_http_zstd_weights_t *w, ngx_flag_t prefer);

/* 1 if an element of a list begins with the token; name is in lower case */
ngx_uint_t ngx_http_zstd_list_has(u_char *p, u_char *last, char *name);


/* ngx_http_zstd_headers.c */

/* of all Accept-Encoding lines of the request */
void ngx_http_zstd_weigh(ngx_http_request_t *r, ngx_http_zstd_weights_t *w);

/*
 * Adds Accept-Encoding to Vary, once, merged with what is there.  Where
 * gzip_vary is on it is left to nginx to add it; so to be called in a header
 * filter that runs after gzip's and brotli's, and not in a handler.
 */
ngx_int_t ngx_http_zstd_add_vary(ngx_http_request_t *r);

void ngx_http_zstd_fields(ngx_http_zstd_fields_t *f, ngx_list_t *headers);

/* the next of that name, in lower case; NULL if there is none */
ngx_table_elt_t *ngx_http_zstd_next_field(ngx_http_zstd_fields_t *f,
    char *name);


#endif /* _NGX_HTTP_ZSTD_ACCEPT_H_INCLUDED_ */
