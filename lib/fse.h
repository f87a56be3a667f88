/*
 * fse.h - finite state entropy coding (RFC 8878, section 4.1): decode tables,
 * their descriptions, and the bit streams that are read from the end.
 *
 * Nothing here reads or writes outside of what it is given, whatever the bytes
 * are. Functions that return bool return false for bytes that break the format.
 */
#ifndef SEGZSTD_FSE_H
#define SEGZSTD_FSE_H

#include "common.h"

/* Largest table and alphabet of those that code sequences: literals lengths
 * and match lengths have 2^9 states, match lengths have codes 0 to 52. */
#define FSE_LOG_MAX 9
#define FSE_SYMBOLS_MAX 53

/* One state: the symbol it stands for, and the next state, which is `base` plus
 * the next `bits` bits of the stream. */
struct segzstd__fse_entry {
    uint16_t base;
    uint8_t symbol;
    uint8_t bits;
};

struct segzstd__fse_table {
    struct segzstd__fse_entry entry[1 << FSE_LOG_MAX]; /* 2^log are in use */
    uint8_t log;
};

/* How many of the 2^log states each symbol has; -1 is the format's "less than
 * one", a single state that reads log bits. The sum, with 1 for -1, is 2^log. */
struct segzstd__fse_counts {
    int16_t count[FSE_SYMBOLS_MAX];
    uint8_t symbols; /* entries of count in use */
    uint8_t log;
};

/*
 * Reads a table description from src[0..len). *used is its length in bytes.
 * False if it does not end within src, if it is inconsistent, or if it goes
 * beyond the symbol or accuracy allowed here.
 */
bool segzstd__fse_read_counts(struct segzstd__fse_counts *counts,
                              const uint8_t *src, size_t len,
                              unsigned symbol_max, unsigned log_max,
                              size_t *used);

/* counts is consistent: from segzstd__fse_read_counts() or a constant. */
void segzstd__fse_build(struct segzstd__fse_table *table,
                        const struct segzstd__fse_counts *counts);

/* A table of one state that reads no bits. */
void segzstd__fse_build_rle(struct segzstd__fse_table *table, uint8_t symbol);

/*
 * For encoding, which goes from the last symbol to the first. The table is the
 * decoder's: a state precedes `next` if its range [base, base + 2^bits) holds
 * it. Of each symbol that the table has, exactly one state does.
 * Both return false if the table does not have the symbol.
 */
bool segzstd__fse_last_state(const struct segzstd__fse_table *table,
                             unsigned symbol, unsigned *state);
bool segzstd__fse_previous_state(const struct segzstd__fse_table *table,
                                 unsigned symbol, unsigned next,
                                 unsigned *state);

/* A bit stream read backwards. Borrows the bytes. */
struct segzstd__bit_reader {
    const uint8_t *src;
    size_t len;
    size_t left;  /* bits not yet read */
    bool overrun; /* more was asked for than there was */
};

/* False if there is no final bit flag in the last byte. */
bool segzstd__bit_reader_init(struct segzstd__bit_reader *reader,
                              const uint8_t *src, size_t len);

/* The next n bits, n <= 32. 0 at and after an overrun. */
uint32_t segzstd__bit_read(struct segzstd__bit_reader *reader, unsigned n);

/* A bit stream to be read backwards, so the last value written is read first.
 * Borrows the room. */
struct segzstd__bit_writer {
    uint8_t *dst;
    size_t cap;
    size_t len;      /* bytes written */
    uint64_t held;   /* bits not yet in dst, lowest first */
    unsigned n_held; /* < 8 between calls */
    bool overrun;    /* dst was too small; nothing was written beyond it */
};

void segzstd__bit_writer_init(struct segzstd__bit_writer *writer, uint8_t *dst,
                              size_t cap);

/* n <= 32, value < 2^n. */
void segzstd__bit_write(struct segzstd__bit_writer *writer, uint32_t value,
                        unsigned n);

/* Adds the final bit flag. False if the stream did not fit; otherwise *len is
 * its length in bytes. */
bool segzstd__bit_writer_end(struct segzstd__bit_writer *writer, size_t *len);

#endif /* SEGZSTD_FSE_H */
