/*
 * engine.h - what can be measured: one entry per way to make a zstd frame.
 *
 * All entries are driven by the same loop and write into the same kind of sink,
 * so that a difference between two rows is a difference between two engines.
 */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a frame goes. What a program would hand to write() is counted; it is
 * put together in `dst` only where somebody wants to look at it. */
struct sink {
    unsigned char *dst;
    size_t capacity;
    size_t len;
    bool keep; /* the frame has to be whole in dst afterwards */
};

/* Gives `len` bytes of the frame away. They fit: see sink.capacity. */
void sink_write(struct sink *sink, const void *bytes, size_t len);

/* What every engine of a cell is told. */
struct engine_config {
    int level;
    size_t bytes;         /* of the file that will be compressed */
    size_t overlap_bytes; /* 0: automatic; segzstd only */
    bool no_huge_pages;   /* segzstd only */
};

/* What an engine holds, asked for after its last run. */
struct engine_usage {
    uint64_t encoder_bytes; /* encoders only, without input and output */
    uint64_t peak_bytes;    /* everything that the engine counts, at most */
    uint64_t segments;      /* of the last frame; 0: does not say */
};

/* Of an engine, for its `traits`. */
enum {
    ENGINE_OPTIONAL = 1,    /* the libzstd in use may lack it */
    ENGINE_FRESH = 2,       /* libzstd: a context of its own for each frame */
    ENGINE_SIZE_UNKNOWN = 4 /* is not told how long the content will be */
};

/* For piece_bytes: all in one piece, which is copied. */
#define PIECE_WHOLE ((size_t)-1)

struct engine {
    const char *name;
    const char *about;

    unsigned threads;     /* segzstd, libzstd's own: as said there */
    size_t piece_bytes;   /* input comes in pieces of this, copied; 0: whole */
    size_t segment_bytes; /* segzstd: fixed segments; libzstd: job size */
    unsigned traits;      /* ENGINE_... */

    /* Makes the state that is kept between runs. NULL where it cannot run. */
    void *(*init)(const struct engine *engine,
                  const struct engine_config *config);

    /* Compresses src into one frame. False on any error. */
    bool (*compress)(void *state, const void *src, size_t len,
                     struct sink *sink);

    void (*usage)(const void *state, struct engine_usage *usage);
    void (*fini)(void *state);
};

/* The engines of one part of the benchmark, and what it runs them on unless told
 * otherwise. */
struct engine_table {
    const char *command;          /* the part's name */
    const struct engine *engines; /* the first is what ratios refer to */
    size_t count;
    const int *levels;
    size_t level_count;
    const size_t *sizes; /* of the contents, cut out of files; none: whole */
    size_t size_count;
    bool has_goals; /* goals.c knows the engines */
};

extern const struct engine_table engines_of_files;
extern const struct engine_table engines_of_responses;

/* NULL if there is none of that name (`len` bytes of it). */
const struct engine *engine_find(const struct engine_table *table,
                                 const char *name, size_t len);

/* engine_libzstd.c */
void *oneshot_init(const struct engine *engine,
                   const struct engine_config *config);
void *threaded_init(const struct engine *engine,
                    const struct engine_config *config);
bool oneshot_compress(void *state, const void *src, size_t len,
                      struct sink *sink);
bool pieces_compress(void *state, const void *src, size_t len,
                     struct sink *sink);
void *fresh_init(const struct engine *engine,
                 const struct engine_config *config);
bool fresh_compress(void *state, const void *src, size_t len,
                    struct sink *sink);
void libzstd_usage(const void *state, struct engine_usage *usage);
void libzstd_fini(void *state);

/* engine_segzstd.c */
void *ours_init(const struct engine *engine,
                const struct engine_config *config);
bool ours_compress(void *state, const void *src, size_t len, struct sink *sink);
void ours_usage(const void *state, struct engine_usage *usage);
void ours_fini(void *state);

#endif /* BENCH_ENGINE_H */
