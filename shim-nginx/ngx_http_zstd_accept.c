
/*
 * Copyright (C) the libsegzstd authors
 *
 * Accept-Encoding: what the client gives each coding, and who is to take the
 * response.  No function here needs a request, so that the tests need no
 * nginx.
 */


#include "ngx_http_zstd_accept.h"


typedef struct {
    char        *name;      /* in lower case */
    ngx_uint_t   coding;
} ngx_http_zstd_coding_name_t;


static u_char *ngx_http_zstd_skip_spaces(u_char *p, u_char *last);
static u_char *ngx_http_zstd_skip_element(u_char *p, u_char *last);
static ngx_uint_t ngx_http_zstd_is(u_char *p, u_char *last, char *name);
static void ngx_http_zstd_parse_element(ngx_http_zstd_weights_t *w, u_char *p,
    u_char *last);
static u_char *ngx_http_zstd_parse_weight(u_char *p, u_char *last,
    ngx_uint_t *weight);
static ngx_uint_t ngx_http_zstd_weight(ngx_http_zstd_weights_t *w,
    ngx_uint_t coding);


static ngx_http_zstd_coding_name_t  ngx_http_zstd_coding_names[] = {
    { "zstd", NGX_HTTP_ZSTD_CODING_ZSTD },
    { "br", NGX_HTTP_ZSTD_CODING_BR },
    { "gzip", NGX_HTTP_ZSTD_CODING_GZIP },
    { "x-gzip", NGX_HTTP_ZSTD_CODING_GZIP },
    { "identity", NGX_HTTP_ZSTD_CODING_IDENTITY },
    { "*", NGX_HTTP_ZSTD_CODING_ANY },
    { NULL, 0 }
};


void
ngx_http_zstd_parse_accept(ngx_http_zstd_weights_t *w, u_char *p, u_char *last)
{
    u_char      *end;
    ngx_uint_t   br, gzip;

    while (p < last) {
        end = ngx_http_zstd_skip_element(p, last);

        ngx_http_zstd_parse_element(w, p, end);

        p = end + (end < last);
    }

    br = ngx_http_zstd_weight(w, NGX_HTTP_ZSTD_CODING_BR);
    gzip = ngx_http_zstd_weight(w, NGX_HTTP_ZSTD_CODING_GZIP);

    w->zstd = ngx_http_zstd_weight(w, NGX_HTTP_ZSTD_CODING_ZSTD);
    w->others = (br > gzip) ? br : gzip;

    w->identity = w->named[NGX_HTTP_ZSTD_CODING_IDENTITY];

    if (w->identity) {
        w->identity--;
    }
}


ngx_int_t
ngx_http_zstd_choose(ngx_http_zstd_weights_t *w, ngx_flag_t prefer)
{
    if (w->zstd == 0 || w->zstd < w->identity) {
        return NGX_DECLINED;
    }

    if (w->zstd < w->others) {
        return NGX_AGAIN;
    }

    if (w->zstd == w->others && !prefer) {
        return NGX_AGAIN;
    }

    return NGX_OK;
}


ngx_uint_t
ngx_http_zstd_list_has(u_char *p, u_char *last, char *name)
{
    u_char  *end, *token;

    while (p < last) {
        end = ngx_http_zstd_skip_element(p, last);

        token = ngx_http_zstd_skip_spaces(p, end);

        for (p = token; p < end; p++) {
            if (*p == ' ' || *p == '\t' || *p == ';' || *p == '=') {
                break;
            }
        }

        if (ngx_http_zstd_is(token, p, name)) {
            return 1;
        }

        p = end + (end < last);
    }

    return 0;
}


static u_char *
ngx_http_zstd_skip_spaces(u_char *p, u_char *last)
{
    while (p < last && (*p == ' ' || *p == '\t')) {
        p++;
    }

    return p;
}


/* to the comma after an element; commas in quoted strings are not one */

static u_char *
ngx_http_zstd_skip_element(u_char *p, u_char *last)
{
    ngx_uint_t  quoted;

    quoted = 0;

    for ( /* void */ ; p < last; p++) {

        if (*p == '"') {
            quoted = !quoted;

        } else if (*p == ',' && !quoted) {
            break;

        } else if (*p == '\\' && quoted && p + 1 < last) {
            p++;
        }
    }

    return p;
}


static ngx_uint_t
ngx_http_zstd_is(u_char *p, u_char *last, char *name)
{
    u_char  c;

    for ( /* void */ ; p < last; p++, name++) {

        c = *p;

        if (c >= 'A' && c <= 'Z') {
            c |= 0x20;
        }

        /* the end of the name equals nothing, as c may be a zero too */

        if (*name == '\0' || c != (u_char) *name) {
            return 0;
        }
    }

    return *name == '\0';
}


static void
ngx_http_zstd_parse_element(ngx_http_zstd_weights_t *w, u_char *p,
    u_char *last)
{
    u_char                       *token, *end;
    ngx_uint_t                    weight, *named;
    ngx_http_zstd_coding_name_t  *coding;

    p = ngx_http_zstd_skip_spaces(p, last);

    token = p;

    while (p < last && *p != ' ' && *p != '\t' && *p != ';') {
        p++;
    }

    end = p;

    weight = 1000;

    p = ngx_http_zstd_skip_spaces(p, last);

    if (p < last) {
        p = ngx_http_zstd_parse_weight(p, last, &weight);

        if (p == NULL) {
            return;
        }
    }

    for (coding = ngx_http_zstd_coding_names; coding->name; coding++) {

        if (!ngx_http_zstd_is(token, end, coding->name)) {
            continue;
        }

        named = &w->named[coding->coding];

        if (*named == 0 || *named > weight + 1) {
            *named = weight + 1;
        }

        return;
    }
}


/* OWS ";" OWS "q=" qvalue, to the end; NULL if it is anything else */

static u_char *
ngx_http_zstd_parse_weight(u_char *p, u_char *last, ngx_uint_t *weight)
{
    ngx_uint_t  q, scale;

    if (*p++ != ';') {
        return NULL;
    }

    p = ngx_http_zstd_skip_spaces(p, last);

    if (last - p < 3 || (p[0] | 0x20) != 'q' || p[1] != '='
        || (p[2] != '0' && p[2] != '1'))
    {
        return NULL;
    }

    q = (p[2] == '1') ? 1000 : 0;

    p += 3;

    if (p < last && *p == '.') {
        p++;

        for (scale = 100; scale && p < last; scale /= 10) {
            if (*p < '0' || *p > '9') {
                break;
            }

            q += (ngx_uint_t) (*p++ - '0') * scale;
        }
    }

    p = ngx_http_zstd_skip_spaces(p, last);

    if (p != last || q > 1000) {
        return NULL;
    }

    *weight = q;

    return p;
}


static ngx_uint_t
ngx_http_zstd_weight(ngx_http_zstd_weights_t *w, ngx_uint_t coding)
{
    if (w->named[coding] == 0) {
        coding = NGX_HTTP_ZSTD_CODING_ANY;
    }

    return w->named[coding] ? w->named[coding] - 1 : 0;
}
