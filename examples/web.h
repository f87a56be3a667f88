/*
 * web.h - what both example servers need of HTTP and of files.
 *
 * Header only, so that each server stays one file to be copied, with this one.
 */
#ifndef EXAMPLES_WEB_H
#define EXAMPLES_WEB_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "segzstd.h"

/* ------------------------------------------------------------------------ */
/* Negotiation                                                              */
/* ------------------------------------------------------------------------ */

/* One member of Accept-Encoding: "zstd", and not with a weight of 0. */
static inline bool web_is_zstd(const char *item)
{
    item += strspn(item, " \t");
    if (strncasecmp(item, "zstd", 4) != 0)
        return false;
    item += 4;
    item += strspn(item, " \t");
    if (*item == ',' || *item == '\0')
        return true;
    if (*item++ != ';')
        return false;
    item += strspn(item, " \t");
    return strncasecmp(item, "q=", 2) == 0 && strtod(item + 2, NULL) > 0;
}

/* Does the value of an Accept-Encoding header, or NULL, allow zstd? */
static inline bool web_accepts_zstd(const char *header)
{
    while (header != NULL) {
        if (web_is_zstd(header))
            return true;
        header = strchr(header, ',');
        if (header != NULL)
            header++;
    }
    return false;
}

/* ------------------------------------------------------------------------ */
/* Files                                                                    */
/* ------------------------------------------------------------------------ */

static inline bool web_has_parent_segment(const char *path)
{
    const char *p;

    for (p = path; (p = strstr(p, "..")) != NULL; p += 2) {
        if ((p == path || p[-1] == '/') && (p[2] == '/' || p[2] == '\0'))
            return true;
    }
    return false;
}

/*
 * Opens a regular file below the directory `root_fd`; `path` is the decoded
 * path of the URL. Returns the file descriptor, which the caller closes, and
 * its size; -1 if there is no such file. Symbolic links are followed: who may
 * make them in the served directory may publish what they point to.
 */
static inline int web_open(int root_fd, const char *path, uint64_t *size)
{
    struct stat st;
    int fd;

    if (path == NULL || *path != '/' || web_has_parent_segment(path))
        return -1;
    path += strspn(path, "/"); /* else openat() would leave root_fd */

    /* O_NONBLOCK: do not wait for the writer of a named pipe. */
    fd = openat(root_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return -1;
    }
    *size = (uint64_t)st.st_size;
    return fd;
}

static inline const char *web_type(const char *path)
{
    static const char *const types[][2] = {
        {".html", "text/html"},       {".css", "text/css"},
        {".js", "text/javascript"},   {".json", "application/json"},
        {".txt", "text/plain"},       {".svg", "image/svg+xml"},
        {".wasm", "application/wasm"}};
    const char *dot = strrchr(path, '.');
    size_t i;

    for (i = 0; dot != NULL && i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(dot, types[i][0]) == 0)
            return types[i][1];
    }
    return "application/octet-stream";
}

/* ------------------------------------------------------------------------ */
/* A file as the source of a stream                                         */
/* ------------------------------------------------------------------------ */

static inline void *web_fd_arg(int fd)
{
    return (void *)(intptr_t)fd;
}

/* A segzstd_read. Jobs call it, several at once and each on its own thread;
 * pread() does not move the file's position, so they do not meet. */
static inline int64_t web_read(void *arg, uint64_t offset, void *dst,
                               size_t len)
{
    ssize_t n;

    do
        n = pread((int)(intptr_t)arg, dst, len, (off_t)offset);
    while (n < 0 && errno == EINTR);
    return n;
}

/* A segzstd_release: the stream needs the file no more. */
static inline void web_close(void *arg)
{
    close((int)(intptr_t)arg);
}

/* The memory that a large file takes while it is being sent grows with this,
 * not with the file. Much less would cost ratio. */
#define WEB_INPUT_BYTES ((size_t)4 << 20)

/* 0 stands for libzstd's default. */
static inline bool web_is_level(int level)
{
    return level >= segzstd_min_level() && level <= segzstd_max_level();
}

/*
 * Makes a stream that will give the zstd frame of the whole file. Nothing is
 * read yet: each job reads its own part. Takes fd over, also on failure.
 */
static inline int web_stream_file(segzstd_stream **stream, segzstd_cache *cache,
                                  segzstd_stream_options options, int fd,
                                  uint64_t size)
{
    int err;

    *stream = NULL;
    options.size = size;
    options.size_is_certain = 1;
    options.input_bytes = WEB_INPUT_BYTES;
    err = segzstd_stream_new(stream, cache, &options);
    if (err == 0)
        err = segzstd_stream_push_reader(*stream, web_read, size, SEGZSTD_END,
                                         web_close, web_fd_arg(fd));
    if (err != 0) {
        segzstd_stream_free(*stream);
        *stream = NULL;
        close(fd);
    }
    return err;
}

/* ------------------------------------------------------------------------ */
/* Status page                                                              */
/* ------------------------------------------------------------------------ */

/* Room for the text of web_status(). */
#define WEB_STATUS_BYTES 512

/* Some of the cache's counters as lines of text. */
static inline void web_status(segzstd_cache *cache, char *text, size_t len)
{
    segzstd_cache_stats stats = SEGZSTD_CACHE_STATS_INIT;

    segzstd_cache_get_stats(cache, &stats);
    snprintf(text, len,
             "streams_open %" PRIu64 "\njobs_out %u\njobs %" PRIu64 "\n"
             "encoders_live %u\nencoders_limit %u\nbytes %" PRIu64 "\n"
             "bytes_in %" PRIu64 "\nbytes_out %" PRIu64 "\n",
             stats.streams_open, stats.jobs_out, stats.jobs,
             stats.encoders_live, stats.encoders_limit, stats.bytes,
             stats.bytes_in, stats.bytes_out);
}

#endif /* EXAMPLES_WEB_H */
