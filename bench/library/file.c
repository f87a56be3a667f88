/*
 * file.c - see file.h.
 */
#include "file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

static unsigned char *read_whole(FILE *stream, size_t *len)
{
    unsigned char *bytes;
    long end;

    if (fseek(stream, 0, SEEK_END) != 0 || (end = ftell(stream)) < 0 ||
        fseek(stream, 0, SEEK_SET) != 0) {
        return NULL;
    }
    *len = (size_t)end;
    bytes = malloc(*len + 1);
    if (bytes != NULL && fread(bytes, 1, *len, stream) != *len) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

bool file_load(struct file *file, const char *path)
{
    const char *slash = strrchr(path, '/');
    FILE *stream = fopen(path, "rb");

    file->name = slash != NULL ? slash + 1 : path;
    file->bytes = NULL;
    if (stream != NULL) {
        file->bytes = read_whole(stream, &file->len);
        fclose(stream);
    }
    if (file->bytes == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    return true;
}

void file_free(struct file *file)
{
    free(file->bytes);
    file->bytes = NULL;
}

/* A second frame, or garbage, after the first one is an error too. */
static const char *frame_fault(const void *frame, size_t frame_len,
                               const void *bytes, size_t len,
                               unsigned char *decoded)
{
    size_t first = ZSTD_findFrameCompressedSize(frame, frame_len);
    size_t written;

    if (ZSTD_isError(first))
        return ZSTD_getErrorName(first);
    if (first != frame_len)
        return "more than one frame";
    written = ZSTD_decompress(decoded, len + 1, frame, frame_len);
    if (ZSTD_isError(written))
        return ZSTD_getErrorName(written);
    if (written != len || memcmp(decoded, bytes, len) != 0)
        return "decoded content differs";
    return NULL;
}

bool frame_decodes_to(const void *frame, size_t frame_len, const void *bytes,
                      size_t len)
{
    unsigned char *decoded = malloc(len + 1);
    const char *fault = "no memory to decode it";

    if (decoded != NULL)
        fault = frame_fault(frame, frame_len, bytes, len, decoded);
    free(decoded);
    if (fault != NULL)
        fprintf(stderr, "bad frame of %zu bytes: %s\n", frame_len, fault);
    return fault == NULL;
}
