/*
 * fuzz_shim_accept.c - arbitrary Accept-Encoding lines. Weights are within
 * their range, and what is chosen agrees with them; a sanitizer sees reads
 * beyond a line. Lines end with a newline, which no field can contain.
 */
#include <stdlib.h>
#include <string.h>

#include "ngx_http_zstd_accept.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds)
        abort();
}

static void check_weights(ngx_http_zstd_weights_t *w)
{
    ngx_int_t preferred = ngx_http_zstd_choose(w, 1);
    ngx_int_t modest = ngx_http_zstd_choose(w, 0);

    check(w->zstd <= 1000 && w->others <= 1000 && w->identity <= 1000);
    check((w->zstd == 0 || w->zstd < w->identity) ==
          (preferred == NGX_DECLINED));
    check((preferred == NGX_DECLINED) == (modest == NGX_DECLINED));
    if (preferred == NGX_OK)
        check(w->zstd >= w->others);
    if (modest == NGX_OK)
        check(w->zstd > w->others);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char name[] = "accept-encoding";
    ngx_http_zstd_weights_t w;
    size_t len;

    memset(&w, 0, sizeof(w));
    for (; size > 0; data += len, size -= len) {
        const uint8_t *end = memchr(data, '\n', size);
        u_char *line;

        len = end != NULL ? (size_t)(end - data) : size;
        line = malloc(len > 0 ? len : 1);
        check(line != NULL);
        memcpy(line, data, len);
        ngx_http_zstd_parse_accept(&w, line, line + len);
        check_weights(&w);
        check(ngx_http_zstd_list_has(line, line + len, name) <= 1);
        free(line);
        if (end != NULL)
            len++;
    }
    return 0;
}
