/*
 * block_make.h - blocks made by hand, with every mode of the format that an
 * encoder may use but seldom does. Written apart from the library's own reader;
 * stock libzstd's decoder is the judge of both.
 */
#ifndef SUPPORT_BLOCK_MAKE_H
#define SUPPORT_BLOCK_MAKE_H

#include "block.h"
#include "support/data.h"

struct make_sequence {
    uint32_t literals;
    uint32_t match;
    uint32_t offset_value; /* 1 to 3: repeat codes; else the offset plus 3 */
};

struct make_block {
    enum literals_type literals_type;
    unsigned literals_format;        /* Size_Format, 0 to 3 */
    const unsigned char *literals;   /* coded ones: each byte is 0 or 1 */
    size_t literals_len;             /* RLE: literals[0] that often */
    unsigned count_bytes;            /* of the count field; 0: the shortest */
    const struct make_sequence *seq; /* borrowed */
    size_t count;
    enum table_mode mode[TABLES_COUNT]; /* by enum table_kind */
};

/* The state of the decoder that the blocks are made for. All zero, with
 * maker_init(), is a fresh frame. */
struct maker {
    struct segzstd__tables tables;
    bool huffman;
    uint32_t offset[OFFSETS_COUNT];
    size_t position; /* content bytes so far */
};

void maker_init(struct maker *maker);

/*
 * Writes the block at dst, its header included and not marked as last, and
 * returns its length. 0, and nothing else changed, if a table cannot have the
 * codes that are needed, or the block would be too large for the format.
 */
size_t maker_put(struct maker *maker, const struct make_block *block,
                 unsigned char *dst, size_t cap);

/* A valid block of at most `content_max` bytes of content, of any type and with
 * any modes. content_max is at least 1; dst has MAKE_BYTES_MAX bytes. Returns
 * its length. */
#define MAKE_BYTES_MAX ((size_t)1 << 18)

size_t maker_put_random(struct maker *maker, struct rng *rng,
                        size_t content_max, unsigned char *dst);

/* Any distribution: -1, 0 and positive counts, also in long runs. */
void make_random_counts(struct segzstd__fse_counts *counts, struct rng *rng,
                        unsigned symbol_max, unsigned log);

/* The description of a table, as in RFC 8878, section 4.1.1. cap is enough
 * with 2 bytes for each symbol, and 8. Returns its length. */
size_t make_description(const struct segzstd__fse_counts *counts,
                        unsigned char *dst, size_t cap);

#endif /* SUPPORT_BLOCK_MAKE_H */
