/*
 * by_hand.c - a stream driven by one thread, from stdin to stdout.
 *
 *      by_hand [LEVEL] < FILE > FILE.zst
 *
 * It shows the four steps of every host: push, take and run jobs, complete
 * them, write what is ready. A host with threads hands the job to one of them
 * where this program calls segzstd_job_run(); nothing else changes.
 *
 * It also flushes: whenever its input pauses, all that came so far can be
 * decoded by the one who reads its output. (The zstd command does not show it,
 * since it fills a buffer before it decodes; a streaming decoder does.)
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "segzstd.h"

enum { PIECE_BYTES = 64 * 1024, VECS = 8 };

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "by_hand: %s: %s\n", what, why);
    return -1;
}

/* Step 4: writes all that is ready. segzstd_vec is laid out as iovec. */
static int write_ready(segzstd_stream *stream)
{
    segzstd_vec vec[VECS];
    size_t count;

    while ((count = segzstd_stream_peek(stream, vec, VECS)) > 0) {
        ssize_t n =
            writev(STDOUT_FILENO, (const struct iovec *)vec, (int)count);

        if (n >= 0)
            segzstd_stream_consume(stream, (size_t)n);
        else if (errno != EINTR)
            return fail("stdout", strerror(errno));
    }
    return 0;
}

/* Steps 2 to 4, until the stream has no job to give. Output is looked for even
 * if there was none: ending a frame may take no job. */
static int run_jobs(segzstd_stream *stream)
{
    segzstd_job *job;

    do {
        int err = segzstd_stream_poll_job(stream, &job);

        if (err == 0 && job != NULL) {
            segzstd_job_run(job);
            err = segzstd_job_complete(job);
        }
        if (err != 0)
            return fail("compression", segzstd_strerror(err));
        if (write_ready(stream) != 0)
            return -1;
    } while (job != NULL);
    return 0;
}

/* Step 1, and the others whenever the stream takes no more. */
static int push_all(segzstd_stream *stream, const char *src, size_t len,
                    segzstd_op op)
{
    size_t done = 0, taken;

    do {
        int err =
            segzstd_stream_push(stream, src + done, len - done, op, &taken);

        if (err != 0)
            return fail("push", segzstd_strerror(err));
        done += taken;
        if (run_jobs(stream) != 0)
            return -1;
    } while (done < len);
    return 0;
}

/* What to do with a piece that was read: if no more input is waiting, whoever
 * reads our output should get all that there is. */
static segzstd_op op_after(size_t len)
{
    struct pollfd in = {STDIN_FILENO, POLLIN, 0};

    if (len == 0)
        return SEGZSTD_END;
    return poll(&in, 1, 0) == 0 ? SEGZSTD_FLUSH : SEGZSTD_CONTINUE;
}

static int compress_stdin(segzstd_stream *stream)
{
    static char piece[PIECE_BYTES];
    segzstd_op op = SEGZSTD_CONTINUE;

    while (op != SEGZSTD_END) {
        ssize_t n = read(STDIN_FILENO, piece, sizeof(piece));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail("stdin", strerror(errno));
        op = op_after((size_t)n);
        if (push_all(stream, piece, (size_t)n, op) != 0)
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    segzstd_cache_options cache_options = SEGZSTD_CACHE_OPTIONS_INIT;
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;
    segzstd_cache *cache = NULL;
    segzstd_stream *stream = NULL;
    int err;

    cache_options.workers = 1; /* this thread */
    options.level = argc > 1 ? atoi(argv[1]) : 0;
    options.checksum = 1;

    err = segzstd_cache_new(&cache, &cache_options);
    if (err == 0)
        err = segzstd_stream_new(&stream, cache, &options);
    if (err != 0)
        fail("start", segzstd_strerror(err));
    else
        err = compress_stdin(stream);

    segzstd_stream_free(stream);
    segzstd_cache_free(cache);
    return err == 0 ? 0 : 1;
}
