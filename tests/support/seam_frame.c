#include "support/seam_frame.h"

#include <stdlib.h>

/* Experimental, so without a name in zstd.h: ZSTD_c_forceMaxWindow. */
enum { PARAM_FORCE_MAX_WINDOW = 1000 };

struct joiner {
    struct seam_frame *frame;
    const struct seam_plan *plan;
    struct segzstd__mem *mem;
    ZSTD_CCtx *encoder;
    size_t cap; /* of frame->bytes */
    const unsigned char *content;
    size_t len;
};

static void *must_alloc(size_t size)
{
    void *ptr = malloc(size > 0 ? size : 1);

    if (ptr == NULL)
        abort();
    return ptr;
}

static void append(struct joiner *j, const void *bytes, size_t len)
{
    struct seam_frame *frame = j->frame;

    if (j->cap - frame->len < len) {
        j->cap = 2 * (frame->len + len);
        frame->bytes = realloc(frame->bytes, j->cap);
        if (frame->bytes == NULL)
            abort();
    }
    memcpy(frame->bytes + frame->len, bytes, len);
    frame->len += len;
}

static const char *begin_segment(struct joiner *j, size_t at)
{
    const struct seam_plan *plan = j->plan;
    size_t overlap = min_size(plan->overlap, at);

    ZSTD_CCtx_reset(j->encoder, ZSTD_reset_session_and_parameters);
    for (size_t i = 0; i < plan->params_len; i++)
        ZSTD_CCtx_setParameter(j->encoder,
                               (ZSTD_cParameter)plan->params[i].param,
                               plan->params[i].value);
    if (ZSTD_isError(ZSTD_CCtx_setParameter(j->encoder, ZSTD_c_compressionLevel,
                                            plan->level)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(j->encoder, ZSTD_c_windowLog,
                                            (int)plan->window_log)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(
            j->encoder, (ZSTD_cParameter)PARAM_FORCE_MAX_WINDOW, 1)))
        return "libzstd refused a parameter";
    if (overlap > 0 && ZSTD_isError(ZSTD_CCtx_refPrefix(
                           j->encoder, j->content + at - overlap, overlap)))
        return "libzstd refused the prefix";
    return NULL;
}

/* What the encoder writes for one piece, without the frame header. The caller
 * frees *blocks. */
static const char *compress_piece(struct joiner *j, size_t at, size_t len,
                                  bool is_first, unsigned char **blocks,
                                  size_t *blocks_len)
{
    ZSTD_inBuffer in = {j->content + at, len, 0};
    size_t cap = ZSTD_compressBound(len) + len + 1024;
    unsigned char *bytes = must_alloc(cap);
    ZSTD_outBuffer out = {bytes, cap, 0};
    size_t left = ZSTD_compressStream2(j->encoder, &out, &in, ZSTD_e_flush);
    size_t skip = 0;

    *blocks = bytes;
    if (ZSTD_isError(left))
        return ZSTD_getErrorName(left);
    if (left != 0 || in.pos != len)
        return "libzstd did not flush";
    if (is_first)
        skip = segzstd__frame_header_bytes(bytes, out.pos);
    *blocks_len = out.pos - skip;
    memmove(bytes, bytes + skip, *blocks_len);
    return NULL;
}

static const char *append_rewritten(struct joiner *j,
                                    struct segzstd__seam *seam,
                                    const unsigned char *blocks,
                                    size_t blocks_len, size_t at, size_t len)
{
    size_t cap = segzstd__seam_bound(blocks_len, len);
    unsigned char *dst = must_alloc(cap);
    const char *fault = NULL;
    size_t n;

    if (segzstd__seam_rewrite(seam, j->mem, dst, cap, &n, blocks, blocks_len,
                              j->content + at, len) != 0)
        fault = "the seam refused blocks of libzstd";
    else if (n > cap)
        fault = "the seam wrote more than its bound";
    else
        append(j, dst, n);
    if (!segzstd__seam_is_settled(seam))
        j->frame->unsettled_bytes += len;
    free(dst);
    return fault;
}

static const char *join_piece(struct joiner *j, struct segzstd__seam *seam,
                              size_t at, size_t len, bool is_first)
{
    unsigned char *blocks;
    size_t blocks_len = 0;
    const char *fault =
        compress_piece(j, at, len, is_first, &blocks, &blocks_len);

    if (fault == NULL && segzstd__seam_is_settled(seam))
        append(j, blocks, blocks_len);
    else if (fault == NULL)
        fault = append_rewritten(j, seam, blocks, blocks_len, at, len);
    free(blocks);
    return fault;
}

static const char *join_segment(struct joiner *j, size_t at, size_t len)
{
    struct segzstd__seam seam;
    size_t piece = j->plan->first_piece;
    const char *fault = begin_segment(j, at);
    size_t end = at + len;
    bool is_first = true;

    segzstd__seam_init(&seam);
    while (fault == NULL && at < end) {
        size_t n = end - at;

        if (!segzstd__seam_is_settled(&seam))
            n = min_size(n, piece);
        else if (j->plan->rest_piece > 0)
            n = min_size(n, j->plan->rest_piece);
        fault = join_piece(j, &seam, at, n, is_first);
        is_first = false;
        at += n;
        piece *= 2;
    }
    j->frame->seams++;
    j->frame->settled += segzstd__seam_is_settled(&seam);
    for (int i = 0; i < SEAM_OUTCOMES; i++)
        j->frame->blocks[i] += seam.blocks[i];
    return fault;
}

/* The first segment too goes through a seam: it must do no harm there. */
const char *seam_frame_make(struct seam_frame *frame,
                            const struct seam_plan *plan, ZSTD_CCtx *encoder,
                            struct segzstd__mem *mem, const void *content,
                            size_t len)
{
    struct segzstd__frame_header header = {plan->window_log,
                                           SEGZSTD_SIZE_UNKNOWN, 0, false};
    struct joiner j = {frame, plan, mem, encoder, 0, content, len};
    unsigned char bytes[FRAME_HEADER_BYTES_MAX];
    const char *fault = NULL;
    size_t at;

    memset(frame, 0, sizeof(*frame));
    append(&j, bytes, segzstd__frame_put_header(bytes, &header));
    for (at = 0; fault == NULL && at < len; at += plan->segment)
        fault = join_segment(&j, at, min_size(plan->segment, len - at));
    segzstd__frame_put_block_header(bytes, BLOCK_RAW, 0, true);
    append(&j, bytes, BLOCK_HEADER_BYTES);
    return fault;
}

void seam_frame_free(struct seam_frame *frame)
{
    free(frame->bytes);
}
