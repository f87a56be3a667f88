/*
 * seam_frame.h - a frame of segments that are compressed one by one with stock
 * libzstd and joined by nothing but the seam.
 */
#ifndef SUPPORT_SEAM_FRAME_H
#define SUPPORT_SEAM_FRAME_H

#include <zstd.h>

#include "seam.h"

/* A parameter of the encoder beyond those below. One that this libzstd does not
 * know, or not with this value, is left out. */
struct seam_param {
    int param; /* ZSTD_cParameter */
    int value;
};

struct seam_plan {
    int level;
    unsigned window_log;
    size_t segment; /* bytes */
    size_t overlap; /* bytes before a segment that its encoder may refer to */
    size_t first_piece; /* each later piece is twice as long, until settled */
    size_t rest_piece;  /* pieces after that; 0: the rest at once */
    const struct seam_param *params;
    size_t params_len;
};

struct seam_frame {
    unsigned char *bytes; /* malloc() */
    size_t len;
    uint64_t seams;
    uint64_t settled;               /* seams that were at their segment's end */
    uint64_t blocks[SEAM_OUTCOMES]; /* of all seams */
    uint64_t unsettled_bytes; /* content of pieces after which it was not */
};

/* Makes the frame with the encoder, one segment after the other, or says what
 * is wrong. *frame must be freed in any case.
 * Aborts if there is no memory, other than what the seam wants from `mem`. */
const char *seam_frame_make(struct seam_frame *frame,
                            const struct seam_plan *plan, ZSTD_CCtx *encoder,
                            struct segzstd__mem *mem, const void *content,
                            size_t len);

void seam_frame_free(struct seam_frame *frame);

#endif /* SUPPORT_SEAM_FRAME_H */
