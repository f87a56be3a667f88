/*
 * compress.c - one input to one frame, on the threads of an executor.
 *
 * The main thread reads what is no regular file, gives out jobs, takes them
 * back and writes. A regular file is read by the jobs themselves. The main
 * thread sleeps only in poll(), until a job is finished, a pipe has input, or
 * the progress line is due.
 */
#include "compress.h"

#include <poll.h>

#include "message.h"

#define VECTORS 16

/* One file on its way. */
struct run {
    struct compressor *compressor;
    const struct input *input;
    struct output *output;
    struct progress *progress;
    segzstd_stream *stream;

    /* Of the compressor's buffer, what the stream has not yet taken. */
    size_t waiting_begin, waiting_end;
    bool is_ended; /* all input was pushed */

    /* Memory was short: from then on one job at a time is out, and it is final
     * when even that one gets no memory. */
    bool is_short;
    bool is_alone; /* the job that is out was given out so */

    bool moved;      /* something was done in this turn */
    int input_errno; /* of a read on this thread, else 0 */

    /* Of a read in a job; 0 if none failed. Any thread. */
    _Atomic int reader_errno;
};

/* The library's segzstd_read, on any thread, for a regular file. */
static int64_t read_range(void *arg, uint64_t offset, void *dst, size_t len)
{
    struct run *run = arg;
    off_t at = (off_t)(run->input->begin + offset);
    ssize_t got;

    do {
        got = pread(run->input->fd, dst, len, at);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        run->reader_errno = errno;
    return got;
}

static bool is_readable(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    return poll(&poll_fd, 1, 0) == 1;
}

/* Fills the empty buffer with at most `max` bytes, if there are any now. At the
 * end of the input it sets *at_end. */
static int read_pipe(struct run *run, size_t max, bool *at_end)
{
    struct compressor *compressor = run->compressor;
    ssize_t got;

    if (!is_readable(run->input->fd))
        return 0;
    got = read(run->input->fd, compressor->buffer,
               max < COMPRESSOR_BUFFER_BYTES ? max : COMPRESSOR_BUFFER_BYTES);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (got < 0) {
        run->input_errno = errno;
        return SEGZSTD_ERR_READ;
    }
    *at_end = got == 0;
    run->waiting_begin = 0;
    run->waiting_end = (size_t)got;
    return 0;
}

static int push_end(struct run *run)
{
    size_t taken;
    int error = segzstd_stream_push(run->stream, NULL, 0, SEGZSTD_END, &taken);

    run->is_ended = run->moved = error == 0;
    return error;
}

static int push_waiting(struct run *run)
{
    size_t taken = 0;
    int error = segzstd_stream_push(
        run->stream, run->compressor->buffer + run->waiting_begin,
        run->waiting_end - run->waiting_begin, SEGZSTD_CONTINUE, &taken);

    run->waiting_begin += taken;
    run->moved |= taken != 0;
    return error;
}

static int push_input(struct run *run)
{
    size_t room = segzstd_stream_want_input(run->stream);
    bool at_end = false;
    int error = 0;

    if (run->is_ended)
        return 0;
    if (run->waiting_begin == run->waiting_end && room != 0)
        error = read_pipe(run, room, &at_end);
    if (error == 0 && at_end)
        error = push_end(run);
    else if (error == 0 && run->waiting_begin < run->waiting_end)
        error = push_waiting(run);
    return error;
}

static void submit_job(struct run *run, segzstd_job *job)
{
    segzstd_executor_submit(run->compressor->executor, job);
    run->is_alone = run->is_short;
    run->moved = true;
}

static bool may_submit(const struct run *run)
{
    return !run->is_short || segzstd_stream_jobs_out(run->stream) == 0;
}

static int submit_jobs(struct run *run)
{
    while (may_submit(run)) {
        segzstd_job *job;
        int error = segzstd_stream_poll_job(run->stream, &job);

        if (error == SEGZSTD_ERR_NOMEM &&
            segzstd_stream_jobs_out(run->stream) != 0)
            run->is_short = true;
        else if (error != 0 || job == NULL)
            return error;
        else
            submit_job(run, job);
    }
    return 0;
}

static int complete_jobs(struct run *run)
{
    segzstd_job *job;
    char drain[64];

    while (read(run->compressor->wake[0], drain, sizeof(drain)) > 0)
        ;
    while ((job = segzstd_executor_poll(run->compressor->executor)) != NULL) {
        int error = segzstd_job_complete(job);

        run->moved = true;
        if (error == SEGZSTD_ERR_NOMEM && !run->is_alone)
            run->is_short = true;
        else if (error != 0)
            return error;
    }
    return 0;
}

/* False if the output takes no more, ever. */
static bool write_ready(struct run *run)
{
    segzstd_vec vec[VECTORS];
    size_t count;

    while ((count = segzstd_stream_peek(run->stream, vec, VECTORS)) != 0) {
        int64_t written = output_write(run->output, vec, count);

        if (written < 0)
            return false;
        segzstd_stream_consume(run->stream, (size_t)written);
        run->moved = true;
    }
    return true;
}

static void show_progress(struct run *run, uint64_t now_ns)
{
    segzstd_stream_stats stats = SEGZSTD_STREAM_STATS_INIT;
    const struct input *input = run->input;

    segzstd_stream_get_stats(run->stream, &stats);
    progress_update(run->progress, now_ns,
                    input->is_regular ? input->size : SEGZSTD_SIZE_UNKNOWN,
                    stats.bytes_done, stats.bytes_out);
}

static bool wants_pipe(const struct run *run)
{
    return !run->is_ended && run->waiting_begin == run->waiting_end &&
           segzstd_stream_want_input(run->stream) != 0;
}

/* Until a job is finished, the pipe has input, or the progress line is due. */
static void wait_for_work(struct run *run)
{
    struct pollfd poll_fds[2] = {
        {.fd = run->compressor->wake[0], .events = POLLIN},
        {.fd = wants_pipe(run) ? run->input->fd : -1, .events = POLLIN}};
    uint64_t now_ns = progress_now_ns();

    if (run->progress->enabled)
        show_progress(run, now_ns);
    if (!run->moved)
        poll(poll_fds, 2, progress_due_ms(run->progress, now_ns));
}

static int take_turn(struct run *run)
{
    int error = complete_jobs(run);

    if (error == 0)
        error = push_input(run);
    if (error == SEGZSTD_ERR_NOMEM && segzstd_stream_jobs_out(run->stream) != 0)
        error = 0; /* what is out will give some back */
    if (error == 0)
        error = submit_jobs(run);
    return error;
}

/* What went wrong with the input or in the library. */
static int report(const struct run *run, int error)
{
    const char *name = run->input->name;
    int read_errno =
        run->input_errno != 0 ? run->input_errno : run->reader_errno;

    if (error == SEGZSTD_ERR_READ && read_errno != 0)
        message_error("%s: read error: %s", name, strerror(read_errno));
    else if (error == SEGZSTD_ERR_READ)
        message_error("%s: became shorter while it was read", name);
    else if (error == SEGZSTD_ERR_ZSTD)
        message_error("%s: %s: %s", name, segzstd_strerror(error),
                      segzstd_stream_zstd_error(run->stream));
    else
        message_error("%s: %s", name, segzstd_strerror(error));
    return compressor_status_of(error);
}

/* Whoever closed the pipe does not want to hear about it. */
static int report_write(const struct output *output)
{
    if (output->write_errno != EPIPE)
        message_error("%s: write error: %s", output->name,
                      strerror(output->write_errno));
    return STATUS_WRITE;
}

static int loop(struct run *run)
{
    while (!segzstd_stream_is_done(run->stream)) {
        int error;
        bool is_written;

        run->moved = false;
        error = take_turn(run);
        is_written = write_ready(run);
        if (error == 0 && is_written) {
            wait_for_work(run);
            continue;
        }
        progress_end(run->progress);
        return is_written ? report(run, error) : report_write(run->output);
    }
    progress_end(run->progress);
    return STATUS_OK;
}

/* Takes all jobs back, so that the stream can be freed. */
static void abandon(struct run *run)
{
    segzstd_job *job;

    segzstd_stream_cancel(run->stream);
    while (segzstd_stream_jobs_out(run->stream) != 0 &&
           (job = segzstd_executor_wait(run->compressor->executor)) != NULL)
        segzstd_job_complete(job);
}

static int open_stream(struct run *run)
{
    segzstd_stream_options options = run->compressor->options;
    const struct input *input = run->input;
    int error;

    if (input->is_regular) {
        options.size = input->size;
        options.size_is_certain = 1;
        options.input_bytes = 0; /* no pipe has to be kept going */
    }
    error = segzstd_stream_new(&run->stream, run->compressor->cache, &options);
    if (error != 0 || !input->is_regular)
        return error;
    run->is_ended = true;
    return segzstd_stream_push_reader(run->stream, read_range, input->size,
                                      SEGZSTD_END, NULL, run);
}

int compress_run(struct compressor *compressor, const struct input *input,
                 struct output *output, struct progress *progress,
                 struct outcome *outcome)
{
    struct run run = {.compressor = compressor,
                      .input = input,
                      .output = output,
                      .progress = progress};
    uint64_t begin_ns = progress_now_ns();
    int error = open_stream(&run), status;

    status = error == 0 ? loop(&run) : report(&run, error);
    if (status == STATUS_OK) {
        outcome->stats = (segzstd_stream_stats)SEGZSTD_STREAM_STATS_INIT;
        segzstd_stream_get_stats(run.stream, &outcome->stats);
        outcome->wall_ns = progress_now_ns() - begin_ns;
    } else if (run.stream != NULL) {
        abandon(&run);
    }
    segzstd_stream_free(run.stream);
    return status;
}
