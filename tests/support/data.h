/*
 * data.h - content for tests: the same bytes for the same kind and seed.
 */
#ifndef SUPPORT_DATA_H
#define SUPPORT_DATA_H

#include <stddef.h>
#include <stdint.h>

/* A small generator of pseudo-random numbers; any seed will do. */
struct rng {
    uint64_t state;
};

struct rng rng_seed(uint64_t seed);
uint64_t rng_next(struct rng *rng);

/* 0 to n - 1; n is not 0. */
size_t rng_below(struct rng *rng, size_t n);

/* 1 to `max`, each order of magnitude as likely as any other. */
size_t rng_spread(struct rng *rng, size_t max);

enum data_kind {
    DATA_TEXT,
    DATA_JSON,
    DATA_RANDOM,
    DATA_ZEROS,
    DATA_PERIOD4, /* four bytes, over and over */
    DATA_PERIOD8,
    DATA_RUNS,       /* runs of one byte, 1 to some thousand long */
    DATA_EXECUTABLE, /* like machine code with its tables and strings */
    DATA_MIXTURE,    /* pieces of all of these */
    DATA_COMPRESSED, /* zstd frames of text, one after the other */
    DATA_KINDS
};

const char *data_name(enum data_kind kind);

void data_fill(void *dst, size_t len, enum data_kind kind, uint64_t seed);

/* The same in memory from malloc(), at least one byte. Aborts if there is
 * none. The caller frees it. */
unsigned char *data_new(size_t len, enum data_kind kind, uint64_t seed);

/* Bytes offset to offset + len - 1 of an endless text, for sources that are
 * too large for memory. */
void data_fill_at(void *dst, uint64_t offset, size_t len);

#endif /* SUPPORT_DATA_H */
