
/*
 * Copyright (C) the libsegzstd authors
 *
 * What a request and its response must be like to be compressed, apart from
 * what the client accepts.
 */


#ifndef _NGX_HTTP_ZSTD_REQUEST_H_INCLUDED_
#define _NGX_HTTP_ZSTD_REQUEST_H_INCLUDED_


#include "ngx_http_zstd.h"


/*
 * A reason of ngx_http_zstd_reason_e not to compress, one of BYPASS, VERSION,
 * PROXIED, DISABLE and NO_TRANSFORM, or 0.
 */
ngx_uint_t ngx_http_zstd_conditions(ngx_http_request_t *r,
    ngx_http_zstd_accept_conf_t *conf);


#endif /* _NGX_HTTP_ZSTD_REQUEST_H_INCLUDED_ */
