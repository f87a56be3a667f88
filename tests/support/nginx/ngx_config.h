/*
 * As much of NGINX as shim-nginx/ngx_http_zstd_accept.c needs, so that it can
 * be tested without NGINX.
 */
#ifndef NGX_CONFIG_H
#define NGX_CONFIG_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned char u_char;
typedef intptr_t ngx_int_t;
typedef uintptr_t ngx_uint_t;
typedef intptr_t ngx_flag_t;
typedef struct ngx_array_s ngx_array_t;

#define NGX_OK 0
#define NGX_AGAIN -2
#define NGX_DECLINED -5

#endif
