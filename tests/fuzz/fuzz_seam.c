/*
 * fuzz_seam.c - the seam on arbitrary bytes. The first byte says what the others
 * are:
 *
 *   0  blocks. They must be refused, or rewritten within the bound. If stock
 *      libzstd decodes them in a fresh frame, they are rewritten for a decoder
 *      in another state, which must come to the same content.
 *   1  options and content. libzstd compresses it in segments, the seam joins
 *      them, and stock libzstd decodes.
 *   2  a seed for blocks made by hand, which are treated as in 0, and must not
 *      be refused.
 */
#include "seam.h"

#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

#include "support/block_make.h"
#include "support/data.h"
#include "support/frame_walk.h"
#include "support/oracle.h"
#include "support/seam_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    CONTENT_MAX = 1 << 20, /* longer content is not looked at */
    BLOCKS_MAX = 1 << 20,
    FRAME_MAX = 1 << 22
};

/* What the process keeps from one input to the next. */
static struct {
    ZSTD_CCtx *encoder;
    ZSTD_DCtx *decoder;
    uint8_t before[4096]; /* blocks in front of those of an input */
    size_t before_len;
    size_t before_content_len;
    uint8_t frame[FRAME_MAX];
    uint8_t content[CONTENT_MAX];
    uint8_t joined[CONTENT_MAX + 8192];
    uint8_t blocks[BLOCKS_MAX];
} fuzz;

static void fail(const char *what)
{
    fprintf(stderr, "fuzz_seam: %s\n", what);
    abort();
}

static void fail_if(const char *fault)
{
    if (fault != NULL)
        fail(fault);
}

static size_t put_frame(const uint8_t *first, size_t first_len,
                        const uint8_t *second, size_t second_len)
{
    struct segzstd__frame_header header = {24, SEGZSTD_SIZE_UNKNOWN, 0, false};
    size_t n = segzstd__frame_put_header(fuzz.frame, &header);

    memcpy(fuzz.frame + n, first, first_len);
    n += first_len;
    memcpy(fuzz.frame + n, second, second_len);
    n += second_len;
    segzstd__frame_put_block_header(fuzz.frame + n, BLOCK_RAW, 0, true);
    return n + BLOCK_HEADER_BYTES;
}

/* Blocks with all tables, and offsets that are not those of a fresh frame. */
static void prepare(void)
{
    uint8_t content[5000];
    uint8_t bytes[sizeof(fuzz.before) + FRAME_HEADER_BYTES_MAX];
    ZSTD_inBuffer in = {content, sizeof(content), 0};
    ZSTD_outBuffer out = {bytes, sizeof(bytes), 0};
    size_t skip;

    fuzz.encoder = ZSTD_createCCtx();
    fuzz.decoder = ZSTD_createDCtx();
    if (fuzz.encoder == NULL || fuzz.decoder == NULL)
        abort();
    data_fill(content, sizeof(content), DATA_JSON, 3);
    if (ZSTD_compressStream2(fuzz.encoder, &out, &in, ZSTD_e_flush) != 0)
        abort();
    skip = segzstd__frame_header_bytes(bytes, out.pos);
    fuzz.before_len = out.pos - skip;
    fuzz.before_content_len = sizeof(content);
    memcpy(fuzz.before, bytes + skip, fuzz.before_len);
}

/* What is known of blocks before they are rewritten. libzstd decodes some
 * streams of sequences that end in the wrong place: these are valid only. */
enum soundness { BROKEN, VALID, SOUND };

static enum soundness soundness_of(const uint8_t *blocks, size_t len,
                                   size_t *content_len)
{
    size_t frame_len = put_frame(blocks, len, blocks, 0);
    size_t n = ZSTD_decompressDCtx(fuzz.decoder, fuzz.content, CONTENT_MAX,
                                   fuzz.frame, frame_len);
    struct frame_walk walk;

    if (ZSTD_isError(n) ||
        ZSTD_findFrameCompressedSize(fuzz.frame, frame_len) != frame_len)
        return BROKEN;
    *content_len = n;
    return frame_walk(fuzz.frame, frame_len, 0, &walk) == 0 ? SOUND : VALID;
}

/* Rewritten blocks decode to fuzz.content, behind others, and stay sound. */
static void check_joined(const uint8_t *blocks, size_t len, size_t content_len,
                         enum soundness before)
{
    size_t skip = fuzz.before_content_len;
    size_t frame_len = put_frame(fuzz.before, fuzz.before_len, blocks, len);
    size_t n = ZSTD_decompressDCtx(fuzz.decoder, fuzz.joined,
                                   sizeof(fuzz.joined), fuzz.frame, frame_len);
    struct frame_walk walk;

    if (ZSTD_isError(n))
        fail(ZSTD_getErrorName(n));
    if (n != skip + content_len)
        fail("rewritten blocks decode to another length");
    if (memcmp(fuzz.joined + skip, fuzz.content, content_len) != 0)
        fail("rewritten blocks decode to other bytes");
    if (before == SOUND && frame_walk(fuzz.frame, frame_len, 0, &walk) != 0)
        fail(walk.error);
}

/* Rewrites blocks that decode to fuzz.content unless they are broken. Copies
 * have no byte to spare, so that ASan sees steps beyond. */
static void rewrite(const uint8_t *src, size_t len, size_t content_len,
                    enum soundness before, bool must_accept)
{
    size_t cap = segzstd__seam_bound(len, content_len);
    uint8_t *src_copy = malloc(len + 1);
    uint8_t *content_copy = malloc(content_len + 1);
    uint8_t *dst = malloc(cap + 1);
    struct segzstd__seam seam;
    struct segzstd__mem mem;
    size_t dst_len = 0;
    int err;

    if (src_copy == NULL || content_copy == NULL || dst == NULL)
        abort();
    memcpy(src_copy + 1, src, len);
    memcpy(content_copy + 1, fuzz.content, content_len);
    segzstd__mem_init(&mem, NULL, 0, false);
    segzstd__seam_init(&seam);
    err =
        segzstd__seam_rewrite(&seam, &mem, dst + 1, cap, &dst_len, src_copy + 1,
                              len, content_copy + 1, content_len);
    if (atomic_load(&mem.used) != 0)
        fail("memory leaked");
    if (err != 0 && err != SEGZSTD_ERR_INTERNAL)
        fail("another error than for broken blocks");
    if (err != 0 && must_accept)
        fail("valid blocks were refused");
    if (err == 0 && dst_len > cap)
        fail("beyond the bound");
    if (err == 0 && before != BROKEN)
        check_joined(dst + 1, dst_len, content_len, before);
    free(dst);
    free(content_copy);
    free(src_copy);
}

/* What libzstd decodes may still be refused, as it may be valid only. */
static void try_blocks(const uint8_t *blocks, size_t len, bool must_accept)
{
    size_t content_len = len % 4096;
    enum soundness before = soundness_of(blocks, len, &content_len);

    if (must_accept && before != SOUND)
        fail("a block made by hand is not sound");
    rewrite(blocks, len, content_len, before, must_accept);
}

/* Options, as bytes; what is missing is 0. */
struct options {
    const uint8_t *at;
    size_t left;
};

static unsigned take(struct options *o)
{
    if (o->left == 0)
        return 0;
    o->left--;
    return *o->at++;
}

/* The input's bytes, several times, each time with some of them changed. */
static size_t fill_content(struct options *o, unsigned copies)
{
    struct rng rng = rng_seed(copies);
    size_t n = 0;

    for (unsigned i = 0; i < copies && n + o->left <= CONTENT_MAX; i++) {
        memcpy(fuzz.content + n, o->at, o->left);
        for (size_t k = 0; i > 0 && k < o->left / 64; k++)
            fuzz.content[n + rng_below(&rng, o->left)] = (uint8_t)k;
        n += o->left;
    }
    return n;
}

static void try_content(struct options *o)
{
    enum { LITERALS_MODE = 1002, TARGET_BLOCK_BYTES = 1003 };
    struct seam_param params[] = {{ZSTD_c_strategy, (int)(take(o) % 10)},
                                  {ZSTD_c_minMatch, (int)(take(o) % 8)},
                                  {LITERALS_MODE, (int)(take(o) % 3)},
                                  {TARGET_BLOCK_BYTES, (int)take(o) * 16}};
    struct seam_plan plan = {0};
    struct seam_frame frame;
    struct segzstd__mem mem;
    struct oracle_want want = {0};

    plan.level = (int)(take(o) % 25) - 5;
    plan.window_log = 10 + take(o) % 8;
    plan.segment = 1 + (take(o) << 8) + take(o);
    plan.overlap = (size_t)take(o) << (take(o) % 9);
    plan.first_piece = 1 + (take(o) << (take(o) % 10));
    plan.rest_piece = take(o) << 7;
    plan.params = params;
    plan.params_len = sizeof(params) / sizeof(*params);
    want.len = fill_content(o, 1 + take(o) % 32);
    want.content = fuzz.content;
    plan.segment = max_size(plan.segment, want.len / 64);
    segzstd__mem_init(&mem, NULL, 0, false);
    fail_if(seam_frame_make(&frame, &plan, fuzz.encoder, &mem, fuzz.content,
                            want.len));
    if (atomic_load(&mem.used) != 0)
        fail("memory leaked");
    fail_if(oracle_check(frame.bytes, frame.len, &want));
    seam_frame_free(&frame);
}

static void try_made(struct options *o)
{
    size_t max = (size_t)1 << (take(o) % 17);
    size_t blocks = 1 + take(o) % 6;
    struct maker maker;
    struct rng rng;
    uint64_t seed = 0;
    size_t len = 0;

    for (int i = 0; i < 8; i++)
        seed = seed << 8 | take(o);
    rng = rng_seed(seed);
    maker_init(&maker);
    while (blocks-- > 0 && BLOCKS_MAX - len >= MAKE_BYTES_MAX)
        len += maker_put_random(&maker, &rng, max, fuzz.blocks + len);
    try_blocks(fuzz.blocks, len, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct options o = {data, size};

    if (fuzz.encoder == NULL)
        prepare();
    switch (take(&o) % 3) {
    case 0:
        if (o.left <= BLOCKS_MAX)
            try_blocks(o.at, o.left, false);
        break;
    case 1:
        try_content(&o);
        break;
    default:
        try_made(&o);
    }
    return 0;
}
