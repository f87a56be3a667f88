/*
 * compressor.c - what the compression of all files shares.
 */
#include "compressor.h"

#include <fcntl.h>

#include "dictionary.h"
#include "message.h"

/* Input from a pipe that may wait, for each thread: enough for a cut to be
 * worth it, while another part is being compressed. */
#define INPUT_BYTES_PER_THREAD ((size_t)4 << 20)
#define INPUT_BYTES_MIN ((size_t)8 << 20)

int compressor_status_of(int error)
{
    switch (error) {
    case SEGZSTD_ERR_NOMEM:
    case SEGZSTD_ERR_THREAD:
        return STATUS_MEMORY;
    case SEGZSTD_ERR_READ:
        return STATUS_READ;
    default:
        return STATUS_LIBZSTD;
    }
}

/* Called by the executor's threads. If the pipe is full the main thread has
 * enough to wake up for. */
static void wake_up(void *arg)
{
    const struct compressor *compressor = arg;

    while (write(compressor->wake[1], "", 1) < 0 && errno == EINTR)
        ;
}

static bool open_wake(struct compressor *compressor)
{
    if (pipe(compressor->wake) != 0)
        return false;
    for (size_t i = 0; i < 2; i++)
        if (fcntl(compressor->wake[i], F_SETFL, O_NONBLOCK) != 0 ||
            fcntl(compressor->wake[i], F_SETFD, FD_CLOEXEC) != 0)
            return false;
    return true;
}

static int fail_init(int error)
{
    message_error("%s", segzstd_strerror(error));
    return compressor_status_of(error);
}

static int start(struct compressor *compressor, unsigned threads)
{
    segzstd_cache_options options = SEGZSTD_CACHE_OPTIONS_INIT;
    segzstd_cache_stats stats = SEGZSTD_CACHE_STATS_INIT;
    int error;

    options.workers = threads;
    error = segzstd_cache_new(&compressor->cache, &options);
    if (error != 0)
        return fail_init(error);
    segzstd_cache_get_stats(compressor->cache, &stats);
    compressor->threads = stats.workers;
    error = segzstd_executor_new(&compressor->executor, compressor->threads,
                                 wake_up, compressor);
    return error == 0 ? STATUS_OK : fail_init(error);
}

static size_t input_bytes(unsigned threads)
{
    size_t most = SIZE_MAX / 16 / INPUT_BYTES_PER_THREAD;
    size_t bytes = (threads < most ? threads : most) * INPUT_BYTES_PER_THREAD;

    return bytes > INPUT_BYTES_MIN ? bytes : INPUT_BYTES_MIN;
}

int compressor_init(struct compressor *compressor,
                    const segzstd_stream_options *options, unsigned threads,
                    const char *dict_path)
{
    int status;

    *compressor = (struct compressor){.options = *options, .wake = {-1, -1}};
    compressor->buffer = malloc(COMPRESSOR_BUFFER_BYTES);
    if (compressor->buffer == NULL || !open_wake(compressor)) {
        message_error("%s", strerror(errno));
        return STATUS_MEMORY;
    }
    status = start(compressor, threads);
    if (status != STATUS_OK)
        return status;
    compressor->options.input_bytes = input_bytes(compressor->threads);
    if (dict_path != NULL)
        status =
            dictionary_load(&compressor->dict, compressor->cache, dict_path);
    compressor->options.dict = compressor->dict;
    return status;
}

void compressor_free(struct compressor *compressor)
{
    segzstd_executor_free(compressor->executor);
    segzstd_dict_free(compressor->dict);
    segzstd_cache_free(compressor->cache);
    for (size_t i = 0; i < 2; i++)
        if (compressor->wake[i] >= 0)
            close(compressor->wake[i]);
    free(compressor->buffer);
}

uint64_t compressor_memory_peak(const struct compressor *compressor)
{
    segzstd_cache_stats stats = SEGZSTD_CACHE_STATS_INIT;

    segzstd_cache_get_stats(compressor->cache, &stats);
    return stats.bytes_peak;
}
