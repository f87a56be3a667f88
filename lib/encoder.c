/*
 * encoder.c - libzstd's compressor: prime, feed, flush, reset.
 */

/* For ZSTD_customMem, the type; the function that takes it is a weak reference
 * below, since the shared library need not have it. */
#define ZSTD_STATIC_LINKING_ONLY

#include "encoder.h"

#include <pthread.h>
#include <zstd_errors.h>

#pragma weak ZSTD_createCCtx_advanced

/*
 * Experimental parameters by their numbers in zstd.h, which headers of older
 * versions have no names for. They are part of the ABI of the shared library;
 * ZSTD_cParam_getBounds() tells whether it knows them.
 */
#define PARAM_FORCE_MAX_WINDOW ((ZSTD_cParameter)1000) /* experimentalParam3 */
#define PARAM_STABLE_INPUT ((ZSTD_cParameter)1006)     /* experimentalParam9 */

/*
 * First piece of a run that is looked at by the seam. Offsets are found within
 * the first hundreds of bytes of most content; the pieces double from there, so
 * that content without any costs ten block headers, not thousands.
 */
#define SEAM_PIECE_MIN 256

/* libzstd's frame header is at most this long. */
#define ZSTD_HEADER_BYTES_MAX 18

bool segzstd__encoder_is_supported(void)
{
    return ZSTD_versionNumber() >= 10400;
}

static bool has_param(ZSTD_cParameter param)
{
    return !ZSTD_isError(ZSTD_cParam_getBounds(param).error);
}

bool segzstd__encoder_has_custom_alloc(void)
{
    return ZSTD_createCCtx_advanced != NULL;
}

/*
 * libzstd 1.4.8 knows the parameter and then refuses a buffer that grows, so
 * only a try tells. The output must decode to what went in.
 */
static bool grow_stable_input(ZSTD_CCtx *cctx)
{
    static const char text[] = "stable input, stable input that grows";
    char frame[256], back[sizeof(text)];
    ZSTD_inBuffer in = {text, sizeof(text) / 2, 0};
    ZSTD_outBuffer out = {frame, sizeof(frame), 0};

    if (ZSTD_isError(ZSTD_CCtx_setParameter(cctx, PARAM_STABLE_INPUT, 1)))
        return false;
    if (ZSTD_compressStream2(cctx, &out, &in, ZSTD_e_flush) != 0)
        return false;
    in.size = sizeof(text);
    if (ZSTD_compressStream2(cctx, &out, &in, ZSTD_e_flush) != 0)
        return false;
    if (ZSTD_compressStream2(cctx, &out, &in, ZSTD_e_end) != 0)
        return false;
    return ZSTD_decompress(back, sizeof(back), frame, out.pos) ==
               sizeof(text) &&
           memcmp(back, text, sizeof(text)) == 0;
}

static bool stable_input_works;

static void probe_stable_input(void)
{
    ZSTD_CCtx *cctx;

    if (!has_param(PARAM_STABLE_INPUT))
        return;
    cctx = ZSTD_createCCtx();
    if (cctx == NULL)
        return;
    stable_input_works = grow_stable_input(cctx);
    ZSTD_freeCCtx(cctx);
}

bool segzstd__encoder_has_stable_input(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, probe_stable_input);
    return stable_input_works;
}

static ZSTD_CCtx *create_cctx(struct segzstd__mem *mem)
{
    ZSTD_customMem custom = {segzstd__mem_alloc_tables,
                             segzstd__mem_free_tables, mem};

    return segzstd__encoder_has_custom_alloc()
               ? ZSTD_createCCtx_advanced(custom)
               : ZSTD_createCCtx();
}

struct segzstd__encoder *segzstd__encoder_new(struct segzstd__mem *mem)
{
    struct segzstd__encoder *encoder =
        segzstd__mem_alloc(mem, sizeof(*encoder));

    if (encoder == NULL)
        return NULL;
    memset(encoder, 0, sizeof(*encoder));
    encoder->mem = mem;
    encoder->zstd_error = "";
    encoder->cctx = create_cctx(mem);
    if (encoder->cctx == NULL) {
        segzstd__mem_free(mem, encoder, sizeof(*encoder));
        return NULL;
    }
    return encoder;
}

void segzstd__encoder_free(struct segzstd__encoder *encoder)
{
    struct segzstd__mem *mem = encoder->mem;

    ZSTD_freeCCtx(encoder->cctx);
    segzstd__mem_uncharge_tables(mem, encoder->charged);
    segzstd__mem_free(mem, encoder, sizeof(*encoder));
}

size_t segzstd__encoder_bytes(const struct segzstd__encoder *encoder)
{
    return sizeof(*encoder) + ZSTD_sizeof_CCtx(encoder->cctx);
}

size_t segzstd__encoder_bound(size_t len)
{
    return ZSTD_compressBound(len) + ZSTD_HEADER_BYTES_MAX;
}

/* 0 if `code` is no error. */
static int check(struct segzstd__encoder *encoder, size_t code)
{
    if (!ZSTD_isError(code))
        return 0;
    if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation)
        return SEGZSTD_ERR_NOMEM;
    encoder->zstd_error = ZSTD_getErrorName(code);
    return SEGZSTD_ERR_ZSTD;
}

/* Without our allocator libzstd's memory is counted after the fact. */
static int charge_tables(struct segzstd__encoder *encoder)
{
    size_t bytes;

    if (segzstd__encoder_has_custom_alloc())
        return 0;
    bytes = ZSTD_sizeof_CCtx(encoder->cctx);
    segzstd__mem_uncharge_tables(encoder->mem, encoder->charged);
    encoder->charged = bytes;
    if (segzstd__mem_charge_tables(encoder->mem, bytes))
        return 0;
    encoder->charged = 0;
    return SEGZSTD_ERR_NOMEM;
}

static int set_param(struct segzstd__encoder *encoder, ZSTD_cParameter param,
                     int value, int present)
{
    if (encoder->params_valid && value == present)
        return 0;
    return check(encoder, ZSTD_CCtx_setParameter(encoder->cctx, param, value));
}

static int set_params(struct segzstd__encoder *encoder,
                      const struct segzstd__encoder_params *want)
{
    const struct segzstd__encoder_params *have = &encoder->params;
    int error;

    ZSTD_CCtx_reset(encoder->cctx, ZSTD_reset_session_only);
    error =
        set_param(encoder, ZSTD_c_compressionLevel, want->level, have->level);
    if (error == 0)
        error = set_param(encoder, ZSTD_c_windowLog, want->window_log,
                          have->window_log);
    if (error == 0)
        error = set_param(encoder, ZSTD_c_contentSizeFlag,
                          want->content_size_flag, have->content_size_flag);
    if (error == 0)
        error = set_param(encoder, ZSTD_c_checksumFlag, want->checksum_flag,
                          have->checksum_flag);
    if (error == 0)
        error = set_param(encoder, ZSTD_c_dictIDFlag, want->dict_id_flag,
                          have->dict_id_flag);
    if (error == 0 && has_param(PARAM_STABLE_INPUT))
        error = set_param(encoder, PARAM_STABLE_INPUT, want->stable_input,
                          have->stable_input);
    if (error == 0)
        error = set_param(encoder, PARAM_FORCE_MAX_WINDOW,
                          want->force_max_window, have->force_max_window);
    encoder->params = *want;
    encoder->params_valid = error == 0;
    return error;
}

int segzstd__encoder_begin(struct segzstd__encoder *encoder,
                           const struct segzstd__run *run)
{
    ZSTD_CCtx *cctx = encoder->cctx;
    struct segzstd__encoder_params want = {
        .level = run->level,
        .window_log = (int)run->window_log,
        .stable_input = run->stable_input,
        /* Else libzstd lets offsets reach through all of the prefix even where
         * it lies farther back than the declared window. */
        .force_max_window = run->prefix_len != 0,
    };
    int error = set_params(encoder, &want);

    /* A pledge sizes tables and picks the row of the level's parameters. The
     * frame of a run is never ended, so that less content is no error. */
    if (error == 0)
        error = check(encoder, ZSTD_CCtx_setPledgedSrcSize(cctx, run->len_max));
    if (error == 0 && run->cdict != NULL)
        error = check(encoder, ZSTD_CCtx_refCDict(cctx, run->cdict));
    else if (error == 0)
        error = check(encoder,
                      ZSTD_CCtx_refPrefix(cctx, run->prefix, run->prefix_len));
    encoder->input = (ZSTD_inBuffer){run->base, 0, 0};
    encoder->header_pending = true;
    encoder->seam_active = !run->at_frame_start;
    encoder->seam_piece = SEAM_PIECE_MIN;
    if (encoder->seam_active)
        segzstd__seam_init(&encoder->seam);
    return error;
}

int segzstd__encoder_flush(struct segzstd__encoder *encoder, size_t end,
                           uint8_t *dst, size_t dst_len, size_t *written,
                           bool *done)
{
    ZSTD_outBuffer out = {dst, dst_len, 0};
    bool first = encoder->header_pending && encoder->input.pos == 0;
    size_t left;
    int error;

    assert(end >= encoder->input.size);
    encoder->input.size = end;
    left = ZSTD_compressStream2(encoder->cctx, &out, &encoder->input,
                                ZSTD_e_flush);
    error = check(encoder, left);
    if (error == 0 && first)
        error = charge_tables(encoder);
    if (error != 0)
        return error;
    *written = out.pos;
    *done = left == 0 && encoder->input.pos == end;
    return 0;
}

int segzstd__encoder_whole(struct segzstd__encoder *encoder,
                           const struct segzstd__whole *whole, uint8_t *dst,
                           size_t dst_len, size_t *written, const uint8_t *src,
                           size_t len)
{
    struct segzstd__encoder_params want = {
        .level = whole->level,
        .window_log = whole->window_log,
        .content_size_flag = 1,
        .checksum_flag = whole->checksum,
        .dict_id_flag = whole->dict_id,
    };
    int error = set_params(encoder, &want);

    if (error == 0)
        error = check(encoder, ZSTD_CCtx_refCDict(encoder->cctx, whole->cdict));
    if (error != 0)
        return error;
    *written = ZSTD_compress2(encoder->cctx, dst, dst_len, src, len);
    error = check(encoder, *written);
    return error != 0 ? error : charge_tables(encoder);
}
