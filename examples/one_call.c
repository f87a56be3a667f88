/*
 * one_call.c - a buffer in, one zstd frame out, on all CPUs.
 *
 *      one_call FILE [LEVEL] > FILE.zst
 *
 * The shortest way to use the library: no cache, no stream, no job in sight.
 * It needs the whole content and the whole frame in memory. Programs that
 * compress often keep a cache and use streams instead, see by_hand.c.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "segzstd.h"

/* Reads all of `file` into memory that the caller frees. NULL on failure. */
static unsigned char *read_all(FILE *file, size_t *len)
{
    size_t room = (size_t)1 << 20, used = 0, n;
    unsigned char *bytes = malloc(room);

    while (bytes != NULL &&
           (n = fread(bytes + used, 1, room - used, file)) > 0) {
        used += n;
        if (used == room) {
            unsigned char *more = realloc(bytes, room *= 2);

            if (more == NULL)
                free(bytes);
            bytes = more;
        }
    }
    if (bytes != NULL && ferror(file)) {
        free(bytes);
        bytes = NULL;
    }
    *len = used;
    return bytes;
}

static bool compress_to(FILE *out, const unsigned char *src, size_t len,
                        int level)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;
    size_t bound = segzstd_compress_bound(len), written = 0;
    unsigned char *dst = bound > 0 ? malloc(bound) : NULL;
    int err = SEGZSTD_ERR_NOMEM;
    bool ok;

    options.level = level;
    options.checksum = 1;
    if (dst != NULL)
        err = segzstd_compress(dst, bound, &written, src, len, &options, 0);
    if (err != 0)
        fprintf(stderr, "one_call: %s\n", segzstd_strerror(err));
    ok =
        err == 0 && fwrite(dst, 1, written, out) == written && fflush(out) == 0;
    free(dst);
    return ok;
}

int main(int argc, char **argv)
{
    unsigned char *src;
    size_t len = 0;
    FILE *file;
    bool ok;

    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: one_call FILE [LEVEL] > FILE.zst\n");
        return 2;
    }
    file = fopen(argv[1], "rb");
    src = file != NULL ? read_all(file, &len) : NULL;
    if (src == NULL)
        perror(argv[1]);
    ok = src != NULL &&
         compress_to(stdout, src, len, argc > 2 ? atoi(argv[2]) : 0);
    free(src);
    if (file != NULL)
        fclose(file);
    return ok ? 0 : 1;
}
