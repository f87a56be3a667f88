#include "support/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/frame_walk.h"

enum { STEP_MAX = 1 << 16, WINDOW_LOG_DEFAULT = 23 };

static uint64_t read_le(const unsigned char *at, size_t len)
{
    uint64_t value = 0;

    while (len-- > 0)
        value = value << 8 | at[len];
    return value;
}

/* RFC 8878, section 3.1.1.1. */
bool oracle_read_header(const void *frame, size_t len,
                        struct oracle_header *header)
{
    static const size_t dict_id_lens[] = {0, 1, 2, 4};
    const unsigned char *bytes = frame;
    size_t at = 5, dict_id_len, size_len;
    unsigned descriptor;
    bool single;

    if (len < 5 || read_le(bytes, 4) != 0xfd2fb528u)
        return false;
    descriptor = bytes[4];
    single = (descriptor >> 5 & 1) != 0;
    dict_id_len = dict_id_lens[descriptor & 3];
    size_len = (size_t)1 << (descriptor >> 6);
    if (size_len == 1 && !single)
        size_len = 0;
    header->header_len = at + !single + dict_id_len + size_len;
    if (len < header->header_len)
        return false;
    if (!single) {
        uint64_t base = (uint64_t)1 << (10 + (bytes[at] >> 3));

        header->window = base + base / 8 * (bytes[at] & 7);
        at++;
    }
    header->dict_id = (uint32_t)read_le(bytes + at, dict_id_len);
    at += dict_id_len;
    header->content_size = ORACLE_NO_SIZE;
    if (size_len > 0)
        header->content_size =
            read_le(bytes + at, size_len) + (size_len == 2 ? 256 : 0);
    if (single)
        header->window = header->content_size;
    header->checksum = (descriptor >> 2 & 1) != 0;
    return true;
}

static unsigned window_log_of(const struct oracle_want *want)
{
    return want->window_log != 0 ? want->window_log : WINDOW_LOG_DEFAULT;
}

static const char *check_header(const void *frame, size_t frame_len,
                                const struct oracle_want *want)
{
    struct oracle_header header;
    bool declared;

    if (!oracle_read_header(frame, frame_len, &header))
        return "no frame header";
    if (header.window > (uint64_t)1 << window_log_of(want))
        return "the declared window is above the cap";
    declared = header.content_size != ORACLE_NO_SIZE;
    if (declared && header.content_size != want->len)
        return "the declared content size is wrong";
    if (declared && want->size == ORACLE_SIZE_ABSENT)
        return "a content size is declared that was not certain";
    if (!declared && want->size == ORACLE_SIZE_PRESENT)
        return "the content size is not declared";
    return NULL;
}

static const char *decode_at_once(const void *frame, size_t frame_len,
                                  const struct oracle_want *want)
{
    ZSTD_DCtx *decoder = ZSTD_createDCtx();
    unsigned char *dst = malloc(want->len > 0 ? want->len : 1);
    const char *fault = NULL;
    size_t got;

    if (decoder == NULL || dst == NULL)
        abort();
    got = ZSTD_decompress_usingDict(decoder, dst, want->len, frame, frame_len,
                                    want->dict, want->dict_len);
    if (ZSTD_isError(got))
        fault = "one-shot decoding failed";
    else if (got != want->len)
        fault = "one-shot decoding gave another length";
    else if (got > 0 && memcmp(dst, want->content, got) != 0)
        fault = "one-shot decoding gave other bytes";
    free(dst);
    ZSTD_freeDCtx(decoder);
    return fault;
}

static ZSTD_DCtx *new_decoder(unsigned window_log, const void *dict,
                              size_t dict_len)
{
    ZSTD_DCtx *decoder = ZSTD_createDCtx();

    if (decoder == NULL)
        abort();
    ZSTD_DCtx_setParameter(decoder, ZSTD_d_windowLogMax, (int)window_log);
    if (dict != NULL)
        ZSTD_DCtx_loadDictionary(decoder, dict, dict_len);
    return decoder;
}

/* One call of the decoder; compares what comes out. */
static const char *decode_step(struct oracle_live *live, ZSTD_inBuffer *in,
                               size_t out_step)
{
    unsigned char buf[STEP_MAX];
    ZSTD_outBuffer out = {buf, out_step, 0};
    size_t in_before = in->pos;
    size_t rc = ZSTD_decompressStream(live->decoder, &out, in);

    if (ZSTD_isError(rc))
        return "streaming decoding failed";
    if (out.pos > live->len - live->done)
        return "streaming decoding gave too many bytes";
    if (memcmp(buf, live->content + live->done, out.pos) != 0)
        return "streaming decoding gave other bytes";
    live->done += out.pos;
    live->ended = rc == 0;
    if (out.pos == 0 && in->pos == in_before && in->pos < in->size)
        return "streaming decoding stands still";
    return NULL;
}

static const char *feed_in_steps(struct oracle_live *live, const void *bytes,
                                 size_t len, size_t in_step, size_t out_step)
{
    ZSTD_inBuffer in = {bytes, 0, 0};

    for (;;) {
        size_t before = live->done;
        const char *fault;

        if (live->ended && in.pos < len)
            return "bytes follow the frame";
        if (in.pos == in.size && in.size < len)
            in.size += in_step < len - in.size ? in_step : len - in.size;
        if (in.pos == in.size || live->ended)
            return NULL;
        /* A full output buffer may hide more that is ready. */
        do {
            before = live->done;
            fault = decode_step(live, &in, out_step);
            if (fault != NULL)
                return fault;
        } while (!live->ended && live->done - before == out_step);
    }
}

static const char *decode_in_steps(const void *frame, size_t frame_len,
                                   const struct oracle_want *want,
                                   size_t in_step, size_t out_step)
{
    struct oracle_live live = {NULL, want->content, want->len, 0, false};
    const char *fault;

    live.decoder = new_decoder(window_log_of(want), want->dict, want->dict_len);
    fault = feed_in_steps(&live, frame, frame_len, in_step, out_step);
    if (fault == NULL && !live.ended)
        fault = "the frame is not complete";
    else if (fault == NULL && live.done != want->len)
        fault = "streaming decoding gave too few bytes";
    oracle_live_free(&live);
    return fault;
}

/* Steps of one byte are slow, so they are for small frames. */
static const char *decode_in_many_steps(const void *frame, size_t frame_len,
                                        const struct oracle_want *want)
{
    static const size_t steps[][2] = {{STEP_MAX, STEP_MAX}, {4099, 1021}};
    size_t small = (size_t)1 << 16;
    const char *fault = NULL;

    for (size_t i = 0; fault == NULL && i < 2; i++) {
        if (i == 0 || want->len <= small * 32)
            fault = decode_in_steps(frame, frame_len, want, steps[i][0],
                                    steps[i][1]);
    }
    if (fault == NULL && frame_len <= small && want->len <= small * 16)
        fault = decode_in_steps(frame, frame_len, want, 1, STEP_MAX);
    if (fault == NULL && want->len <= small)
        fault = decode_in_steps(frame, frame_len, want, STEP_MAX, 1);
    return fault;
}

static const char *walk(const void *frame, size_t frame_len,
                        const struct oracle_want *want)
{
    struct frame_walk out;

    if (frame_walk_dict(frame, frame_len, want->dict, want->dict_len, &out) !=
        0) {
        fprintf(stderr, "frame_walk: %s\n", out.error);
        return "a block or sequence breaks the rules of the format";
    }
    if (out.decoded != want->len)
        return "the blocks do not add up to the content";
    return NULL;
}

const char *oracle_check_once(const void *frame, size_t frame_len,
                              const struct oracle_want *want)
{
    const char *fault = check_header(frame, frame_len, want);

    if (fault == NULL &&
        ZSTD_findFrameCompressedSize(frame, frame_len) != frame_len)
        fault = "not exactly one frame";
    if (fault == NULL)
        fault = decode_at_once(frame, frame_len, want);
    if (fault == NULL)
        fault = walk(frame, frame_len, want);
    return fault;
}

const char *oracle_check(const void *frame, size_t frame_len,
                         const struct oracle_want *want)
{
    const char *fault = oracle_check_once(frame, frame_len, want);

    if (fault == NULL)
        fault = decode_in_many_steps(frame, frame_len, want);
    return fault;
}

void oracle_live_init(struct oracle_live *live, const void *content, size_t len)
{
    memset(live, 0, sizeof(*live));
    live->content = content;
    live->len = len;
    live->decoder = new_decoder(31, NULL, 0);
}

void oracle_live_free(struct oracle_live *live)
{
    ZSTD_freeDCtx(live->decoder);
    live->decoder = NULL;
}

const char *oracle_live_feed(struct oracle_live *live, const void *bytes,
                             size_t len)
{
    return feed_in_steps(live, bytes, len, len, STEP_MAX);
}
