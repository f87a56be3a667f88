/*
 * compress.h - one input to one frame, on the threads of an executor.
 */
#ifndef SEGZSTD_TOOL_COMPRESS_H
#define SEGZSTD_TOOL_COMPRESS_H

#include "compressor.h"
#include "input.h"
#include "output.h"
#include "progress.h"

/* What became of a file. */
struct outcome {
    segzstd_stream_stats stats;
    uint64_t wall_ns;
};

/* Writes the frame of `input` to `output`. Returns a status, after a message;
 * *outcome is filled if that is STATUS_OK. */
int compress_run(struct compressor *compressor, const struct input *input,
                 struct output *output, struct progress *progress,
                 struct outcome *outcome);

#endif /* SEGZSTD_TOOL_COMPRESS_H */
