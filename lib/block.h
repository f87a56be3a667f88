/*
 * block.h - what is inside the blocks of a frame (RFC 8878, section 3.1.1):
 * block header, literals section header, sequences section.
 *
 * Literals are not decoded. Nothing here reads or writes outside of what it is
 * given, whatever the bytes are. Functions that return bool return false for
 * bytes that break the format.
 */
#ifndef SEGZSTD_BLOCK_H
#define SEGZSTD_BLOCK_H

#include "common.h"
#include "frame.h"
#include "fse.h"

#define OFFSETS_COUNT 3 /* repeat offsets that a decoder keeps */
#define TABLES_COUNT 3  /* tables that code sequences */

/* Most sequences of a block: a match has at least 3 bytes. */
#define SEQUENCES_MAX (BLOCK_BYTES_MAX / 3)

struct segzstd__block_header {
    enum segzstd__block_type type;
    bool last;
    size_t content; /* bytes after the header that belong to the block */
    size_t decoded; /* raw and RLE: bytes it decodes to */
};

/* Reads the header at src; false also if the content does not lie within
 * src[0..len), or is beyond BLOCK_BYTES_MAX. */
bool segzstd__block_read_header(struct segzstd__block_header *header,
                                const uint8_t *src, size_t len);

enum literals_type {
    LITERALS_RAW,
    LITERALS_RLE,
    LITERALS_COMPRESSED, /* brings a Huffman table */
    LITERALS_TREELESS    /* uses the one before */
};

struct segzstd__literals {
    enum literals_type type;
    size_t section; /* bytes of the whole section, its header included */
    size_t decoded; /* bytes it decodes to, at most BLOCK_BYTES_MAX */
};

/* Reads the header; the section lies within src[0..len). */
bool segzstd__block_read_literals(struct segzstd__literals *literals,
                                  const uint8_t *src, size_t len);

/* The order of tables in a sequences section. */
enum table_kind { TABLE_LITERALS, TABLE_OFFSETS, TABLE_MATCHES };

enum table_mode { TABLE_PREDEFINED, TABLE_RLE, TABLE_FSE, TABLE_REPEAT };

/* Part of a decoder's state. All zero is a fresh frame. */
struct segzstd__tables {
    struct segzstd__fse_table table[TABLES_COUNT];
    bool exists[TABLES_COUNT];     /* there is one to be repeated */
    bool predefined[TABLES_COUNT]; /* it is the one of the format */
};

void segzstd__table_build_predefined(struct segzstd__fse_table *table,
                                     enum table_kind kind);

/* The head of a sequences section: everything before the bit stream. With no
 * sequences there is only the count. */
struct segzstd__sequences_head {
    size_t count;                       /* sequences */
    size_t count_bytes;                 /* length of the field of that count */
    enum table_mode mode[TABLES_COUNT]; /* by enum table_kind */
    size_t at[TABLES_COUNT];            /* offset of the description in src */
    size_t bytes[TABLES_COUNT];         /* its length: 0 unless RLE or FSE */
    size_t head_bytes;                  /* where the bit stream begins */
};

/*
 * Reads the head at src[0..len), the sequences section to the block's end, and
 * brings tables up to date. False also if more than SEQUENCES_MAX sequences are
 * announced, or one without sequences is followed by more bytes. After false,
 * tables may be half changed, but are safe to use.
 */
bool segzstd__sequences_read_head(struct segzstd__sequences_head *head,
                                  struct segzstd__tables *tables,
                                  const uint8_t *src, size_t len);

struct segzstd__sequence {
    uint32_t literals;     /* length */
    uint32_t match;        /* length */
    uint32_t offset_value; /* 1 to 3 are repeat codes, see resolve below */
    uint16_t literals_state;
    uint16_t match_state;
};

/* Decodes the sequences one by one. Borrows the tables and the bytes. */
struct segzstd__sequences_reader {
    const struct segzstd__tables *tables;
    struct segzstd__bit_reader bits;
    size_t left; /* sequences not yet read */
    unsigned state[TABLES_COUNT];
};

/* src[0..len) is the bit stream of `count` sequences, count > 0. */
bool segzstd__sequences_reader_init(struct segzstd__sequences_reader *reader,
                                    const struct segzstd__tables *tables,
                                    size_t count, const uint8_t *src,
                                    size_t len);

/* The next sequence; reader->left is not 0. False if the bits are too few, or,
 * after the last sequence, too many. */
bool segzstd__sequences_read(struct segzstd__sequences_reader *reader,
                             struct segzstd__sequence *sequence);

/*
 * Writes the bit stream of sequence[0..count), count > 0, at dst[0..cap).
 * Literals and match lengths keep the states that they were read with, from the
 * same tables; offsets are coded anew with `offsets`. False if that does not fit
 * or `offsets` lacks a code. *len is the length in bytes.
 */
bool segzstd__sequences_write(const struct segzstd__tables *tables,
                              const struct segzstd__fse_table *offsets,
                              const struct segzstd__sequence *sequence,
                              size_t count, uint8_t *dst, size_t cap,
                              size_t *len);

/*
 * The match offset that an offset value stands for with these repeat offsets,
 * which are brought up to date. An entry of 0 is one that is not known. Returns
 * 0 if the value leads to such an entry, or to an offset of 0.
 */
uint32_t segzstd__offset_resolve(uint32_t offset[OFFSETS_COUNT],
                                 uint32_t offset_value, uint32_t literals);

#endif /* SEGZSTD_BLOCK_H */
