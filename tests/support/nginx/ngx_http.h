#ifndef NGX_HTTP_H
#define NGX_HTTP_H

typedef struct ngx_http_request_s ngx_http_request_t;

#endif
