/*
 * engine_libzstd.c - libzstd's own ways, with a context that is reused, or with a
 * new one for each frame.
 */
#include "engine.h"

#include <stdlib.h>
#include <zstd.h>

/* RFC 9659: the window that a browser accepts, and segzstd's default. */
#define WINDOW_LOG_HTTP 23

/* Levels up to this one stay within that window by themselves, so the window is
 * left to libzstd there. A window that is set would not shrink with the input
 * where its size is unknown. */
#define LEVEL_OF_HTTP_WINDOW 19

struct libzstd {
    const struct engine *engine;
    int level;
    ZSTD_CCtx *cctx;   /* NULL between frames if each has its own */
    size_t peak_bytes; /* of the context, looked at after each run */
};

static bool set(ZSTD_CCtx *cctx, ZSTD_cParameter parameter, int value)
{
    return !ZSTD_isError(ZSTD_CCtx_setParameter(cctx, parameter, value));
}

static bool configure(ZSTD_CCtx *cctx, const struct engine *engine, int level)
{
    if (!set(cctx, ZSTD_c_compressionLevel, level))
        return false;
    if (level > LEVEL_OF_HTTP_WINDOW &&
        !set(cctx, ZSTD_c_windowLog, WINDOW_LOG_HTTP)) {
        return false;
    }
    if (engine->threads == 0)
        return true;
    return set(cctx, ZSTD_c_nbWorkers, (int)engine->threads) &&
           set(cctx, ZSTD_c_jobSize, (int)engine->segment_bytes);
}

static bool make_context(struct libzstd *self)
{
    self->cctx = ZSTD_createCCtx();
    return self->cctx != NULL &&
           configure(self->cctx, self->engine, self->level);
}

void *fresh_init(const struct engine *engine,
                 const struct engine_config *config)
{
    struct libzstd *self = calloc(1, sizeof(*self));

    if (self == NULL)
        return NULL;
    self->engine = engine;
    self->level = config->level;
    return self;
}

void *oneshot_init(const struct engine *engine,
                   const struct engine_config *config)
{
    struct libzstd *self = fresh_init(engine, config);

    if (self != NULL && !make_context(self)) {
        libzstd_fini(self);
        return NULL;
    }
    return self;
}

/* NULL where libzstd was built without threads. */
void *threaded_init(const struct engine *engine,
                    const struct engine_config *config)
{
    ZSTD_bounds bounds = ZSTD_cParam_getBounds(ZSTD_c_nbWorkers);

    if (ZSTD_isError(bounds.error) || bounds.upperBound < (int)engine->threads)
        return NULL;
    return oneshot_init(engine, config);
}

static void note_size(struct libzstd *self)
{
    size_t bytes = ZSTD_sizeof_CCtx(self->cctx);

    if (bytes > self->peak_bytes)
        self->peak_bytes = bytes;
}

bool oneshot_compress(void *state, const void *src, size_t len,
                      struct sink *sink)
{
    struct libzstd *self = state;
    size_t written =
        ZSTD_compress2(self->cctx, sink->dst, sink->capacity, src, len);

    note_size(self);
    if (ZSTD_isError(written))
        return false;
    sink->len = written;
    return true;
}

/* Feeds one piece. False on an error, or if the output does not fit. */
static bool feed(ZSTD_CCtx *cctx, ZSTD_outBuffer *out, const void *piece,
                 size_t len, bool last)
{
    ZSTD_inBuffer in = {piece, len, 0};
    ZSTD_EndDirective op = last ? ZSTD_e_end : ZSTD_e_continue;
    size_t left;

    do {
        left = ZSTD_compressStream2(cctx, out, &in, op);
        if (ZSTD_isError(left))
            return false;
        if (out->pos == out->size && (in.pos < in.size || (last && left > 0)))
            return false;
    } while (in.pos < in.size || (last && left > 0));
    return true;
}

bool pieces_compress(void *state, const void *src, size_t len,
                     struct sink *sink)
{
    struct libzstd *self = state;
    size_t most = self->engine->piece_bytes;
    ZSTD_outBuffer out = {sink->dst, sink->capacity, 0};
    const unsigned char *next = src;
    bool last;

    ZSTD_CCtx_reset(self->cctx, ZSTD_reset_session_only);
    if ((self->engine->traits & ENGINE_SIZE_UNKNOWN) == 0 &&
        ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(self->cctx, len))) {
        return false;
    }
    do {
        size_t piece = len < most ? len : most;

        last = piece == len;
        if (!feed(self->cctx, &out, next, piece, last))
            return false;
        next += piece;
        len -= piece;
    } while (!last);
    note_size(self);
    sink->len = out.pos;
    return true;
}

bool fresh_compress(void *state, const void *src, size_t len, struct sink *sink)
{
    struct libzstd *self = state;
    bool good = make_context(self);

    if (good && self->engine->piece_bytes != 0)
        good = pieces_compress(self, src, len, sink);
    else if (good)
        good = oneshot_compress(self, src, len, sink);
    ZSTD_freeCCtx(self->cctx);
    self->cctx = NULL;
    return good;
}

void libzstd_usage(const void *state, struct engine_usage *usage)
{
    const struct libzstd *self = state;

    usage->encoder_bytes = self->peak_bytes;
    usage->peak_bytes = self->peak_bytes;
    usage->segments = 0;
}

void libzstd_fini(void *state)
{
    struct libzstd *self = state;

    if (self == NULL)
        return;
    ZSTD_freeCCtx(self->cctx);
    free(self);
}
