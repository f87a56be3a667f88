/*
 * seam.h - the borders between segments inside one frame.
 *
 * Every segment has its own encoder, which believes that the decoder is in the
 * state of a fresh frame: repeat offsets 1, 4 and 8, no tables. The decoder is
 * in fact in the state that the segment before left. A seam follows both, the
 * decoder that the encoder believes in (E) and the real one (D, of which
 * nothing is known at first), through the first blocks of the segment:
 *
 * - A block is copied verbatim if all that it reads of the state is the same in
 *   E and D.
 * - Otherwise its sequences are written again with their offsets spelled out
 *   where D does not have them. Literals and lengths stay as they are.
 * - Where that is not possible, or not smaller than the content, the block
 *   becomes a raw block.
 *
 * After three offsets that are spelled out, and one set of tables, E and D are
 * the same: the seam is settled, and the rest of the segment needs no rewriting.
 */
#ifndef SEGZSTD_SEAM_H
#define SEGZSTD_SEAM_H

#include "block.h"
#include "common.h"
#include "mem.h"

/* What the real decoder gets of a compressed block. */
enum seam_outcome { SEAM_COPIED, SEAM_REWRITTEN, SEAM_STORED, SEAM_OUTCOMES };

/* About 6 KiB. Owns nothing: no call is needed to get rid of it. */
struct segzstd__seam {
    uint32_t e_offset[OFFSETS_COUNT]; /* repeat offsets of E */
    uint32_t d_offset[OFFSETS_COUNT]; /* the same of D; 0: not known */
    struct segzstd__tables tables;    /* of E */
    bool shared[TABLES_COUNT];        /* D's table is the same as E's */
    bool e_huffman;                   /* E has a Huffman table, and D's is */
    bool shared_huffman;              /* the same */

    uint64_t blocks[SEAM_OUTCOMES]; /* compressed ones that were looked at */
};

/* Start of a segment whose encoder believes the frame is fresh while the real
 * decoder is in an unknown state. */
void segzstd__seam_init(struct segzstd__seam *seam);

/* True when both states agree for whatever may follow: blocks may be passed
 * through without being looked at. Stays true. */
bool segzstd__seam_is_settled(const struct segzstd__seam *seam);

/* Largest output of a rewrite of blocks that decode to content_len bytes and
 * are src_len long. */
size_t segzstd__seam_bound(size_t src_len, size_t content_len);

/*
 * Rewrites whole blocks src[0..src_len), which decode to exactly
 * content[0..content_len), into dst. They are what the encoder wrote for this
 * piece of content after its frame header; none is the last of the frame. Calls
 * go through the segment in order, with pieces of any size. dst_cap is at least
 * segzstd__seam_bound(src_len, content_len), and dst overlaps nothing.
 *
 * Literals are not decoded, so that a Huffman code is taken as valid.
 *
 * Returns 0, SEGZSTD_ERR_NOMEM (scratch memory, which is given back before the
 * return, is needed only if a block must be written again), or
 * SEGZSTD_ERR_INTERNAL when the blocks are not valid. After an error the seam is
 * as before the call, and dst and *dst_len mean nothing.
 */
int segzstd__seam_rewrite(struct segzstd__seam *seam, struct segzstd__mem *mem,
                          void *dst, size_t dst_cap, size_t *dst_len,
                          const void *src, size_t src_len, const void *content,
                          size_t content_len);

#endif /* SEGZSTD_SEAM_H */
