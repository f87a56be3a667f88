/*
 * engine.c - the table of engines.
 */
#include "engine.h"

#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* What a proxy gets from a socket, and hands to a filter, at a time. */
#define PIECE_BYTES (32 * KIB)

#define LIBZSTD(init, compress) init, compress, libzstd_usage, libzstd_fini
#define OURS false, ours_init, ours_compress, ours_usage, ours_fini

const struct engine engines[] = {
    {"oneshot", "ZSTD_compress2, context reused", 0, 0, 0, false,
     LIBZSTD(oneshot_init, oneshot_compress)},
    {"stream", "ZSTD_compressStream2 in 32 KiB pieces, size unknown", 0,
     PIECE_BYTES, 0, false, LIBZSTD(oneshot_init, pieces_compress)},
    {"zstdmt-2", "libzstd's nbWorkers=2, its own job size", 2, 0, 0, true,
     LIBZSTD(threaded_init, oneshot_compress)},
    {"zstdmt-2-1m", "libzstd's nbWorkers=2, jobs of 1 MiB", 2, 0, MIB, true,
     LIBZSTD(threaded_init, oneshot_compress)},
    {"adaptive-0", "segzstd, jobs run on the owner's thread", 0, 0, 0, OURS},
    {"adaptive-1", "segzstd, one worker, so never an idle one", 1, 0, 0, OURS},
    {"adaptive-2", "segzstd, 2 workers", 2, 0, 0, OURS},
    {"adaptive-4", "segzstd, 4 workers", 4, 0, 0, OURS},
    {"copy-1", "adaptive-1, pushed in 32 KiB pieces that are copied", 1,
     PIECE_BYTES, 0, OURS},
    {"copy-2", "adaptive-2, pushed in 32 KiB pieces that are copied", 2,
     PIECE_BYTES, 0, OURS},
    {"fixed-0", "segzstd, segments of 1 MiB, on the owner's thread", 0, 0, MIB,
     OURS},
    {"fixed-1", "segzstd, segments of 1 MiB, one worker", 1, 0, MIB, OURS},
    {"fixed-2", "segzstd, segments of 1 MiB, 2 workers", 2, 0, MIB, OURS},
    {"fixed-4", "segzstd, segments of 1 MiB, 4 workers", 4, 0, MIB, OURS},
};
const size_t engine_count = sizeof(engines) / sizeof(engines[0]);

const struct engine *engine_find(const char *name, size_t len)
{
    for (size_t i = 0; i < engine_count; i++) {
        if (strlen(engines[i].name) == len &&
            memcmp(engines[i].name, name, len) == 0) {
            return &engines[i];
        }
    }
    return NULL;
}

void sink_write(struct sink *sink, const void *bytes, size_t len)
{
    if (sink->keep && len <= sink->capacity - sink->len)
        memcpy(sink->dst + sink->len, bytes, len);
    sink->len += len;
}
