/*
 * engine.c - the tables of engines.
 */
#include "engine.h"

#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* What a proxy gets from a socket, and hands to a filter, at a time. */
#define PIECE_BYTES (32 * KIB)

#define LIBZSTD(init, compress) init, compress, libzstd_usage, libzstd_fini
#define OURS_WITH(traits)                                                      \
  traits, ours_init, ours_compress, ours_usage, ours_fini
#define OURS OURS_WITH(0)

static const struct engine for_files[] = {
    {"oneshot", "ZSTD_compress2, context reused", 0, 0, 0, 0,
     LIBZSTD(oneshot_init, oneshot_compress)},
    {"stream", "ZSTD_compressStream2 in 32 KiB pieces, size unknown", 0,
     PIECE_BYTES, 0, ENGINE_SIZE_UNKNOWN,
     LIBZSTD(oneshot_init, pieces_compress)},
    {"zstdmt-2", "libzstd's nbWorkers=2, its own job size", 2, 0, 0,
     ENGINE_OPTIONAL, LIBZSTD(threaded_init, oneshot_compress)},
    {"zstdmt-2-1m", "libzstd's nbWorkers=2, jobs of 1 MiB", 2, 0, MIB,
     ENGINE_OPTIONAL, LIBZSTD(threaded_init, oneshot_compress)},
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

/* One frame for each response, as a filter of a server makes it. */
static const struct engine for_responses[] = {
    {"reused", "ZSTD_compress2, one context for all responses", 0, 0, 0, 0,
     LIBZSTD(oneshot_init, oneshot_compress)},
    {"fresh", "ZSTD_compress2, a new context for each response", 0, 0, 0,
     ENGINE_FRESH, LIBZSTD(fresh_init, fresh_compress)},
    {"segzstd", "a new stream for each response, pushed whole", 0, PIECE_WHOLE,
     0, OURS},
    {"reused-32k", "ZSTD_compressStream2 in 32 KiB pieces, one context", 0,
     PIECE_BYTES, 0, 0, LIBZSTD(oneshot_init, pieces_compress)},
    {"fresh-32k", "the same, a new context for each response", 0, PIECE_BYTES,
     0, ENGINE_FRESH, LIBZSTD(fresh_init, fresh_compress)},
    {"segzstd-32k", "a new stream, pushed in 32 KiB pieces", 0, PIECE_BYTES, 0,
     OURS},
    {"reused-32k-u", "reused-32k, size unknown", 0, PIECE_BYTES, 0,
     ENGINE_SIZE_UNKNOWN, LIBZSTD(oneshot_init, pieces_compress)},
    {"fresh-32k-u", "fresh-32k, size unknown", 0, PIECE_BYTES, 0,
     ENGINE_FRESH | ENGINE_SIZE_UNKNOWN, LIBZSTD(fresh_init, fresh_compress)},
    {"segzstd-32k-u", "segzstd-32k, size unknown", 0, PIECE_BYTES, 0,
     OURS_WITH(ENGINE_SIZE_UNKNOWN)},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const int file_levels[] = {1, 3, 6, 9, 12, 15, 19};
static const int response_levels[] = {1, 3, 9, 19};
static const size_t response_sizes[] = {2000, 20000, 100000, 1000000};

const struct engine_table engines_of_files = {
    .command = "engines",
    .engines = for_files,
    .count = COUNT(for_files),
    .levels = file_levels,
    .level_count = COUNT(file_levels),
    .has_goals = true,
};

const struct engine_table engines_of_responses = {
    .command = "responses",
    .engines = for_responses,
    .count = COUNT(for_responses),
    .levels = response_levels,
    .level_count = COUNT(response_levels),
    .sizes = response_sizes,
    .size_count = COUNT(response_sizes),
};

const struct engine *engine_find(const struct engine_table *table,
                                 const char *name, size_t len)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct engine *engine = &table->engines[i];

        if (strlen(engine->name) == len && memcmp(engine->name, name, len) == 0)
            return engine;
    }
    return NULL;
}

void sink_write(struct sink *sink, const void *bytes, size_t len)
{
    if (sink->keep && len <= sink->capacity - sink->len)
        memcpy(sink->dst + sink->len, bytes, len);
    sink->len += len;
}
