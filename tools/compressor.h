/*
 * compressor.h - what the compression of all files shares: the library's cache,
 * the threads, the dictionary.
 */
#ifndef SEGZSTD_TOOL_COMPRESSOR_H
#define SEGZSTD_TOOL_COMPRESSOR_H

#include "posix.h"

/* A pipe of Linux holds 64 KiB, or up to 1 MiB where its owner asked for it. */
#define COMPRESSOR_BUFFER_BYTES ((size_t)1 << 20)

struct compressor {
    segzstd_cache *cache;
    segzstd_executor *executor;
    segzstd_dict *dict; /* NULL: none */
    segzstd_stream_options options;
    unsigned threads;
    int wake[2];     /* a pipe: a thread writes when it has finished a job */
    uint8_t *buffer; /* COMPRESSOR_BUFFER_BYTES, for a pipe's input */
};

/*
 * Starts `threads` threads (0: as many as CPUs). `options` is copied;
 * `dict_path` may be NULL. Returns a status, after a message. To be freed in
 * either case.
 */
int compressor_init(struct compressor *compressor,
                    const segzstd_stream_options *options, unsigned threads,
                    const char *dict_path);
void compressor_free(struct compressor *compressor);

/* The most bytes that the library held at any time so far. */
uint64_t compressor_memory_peak(const struct compressor *compressor);

/* The status for an error of the library. */
int compressor_status_of(int error);

#endif /* SEGZSTD_TOOL_COMPRESSOR_H */
