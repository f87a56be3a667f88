/*
 * encoder.c is compiled into this test with its calls of libzstd in between, so
 * that each of them can fail, and so that libzstd can seem to be older: without
 * custom allocation or without the stable input buffer.
 */
#define ZSTD_STATIC_LINKING_ONLY

#include "encoder.h"

#include <stdlib.h>
#include <zstd_errors.h>

#pragma weak ZSTD_createCCtx_advanced

/* Not static, since encoder.c makes a weak reference of the name. */
ZSTD_CCtx *(*create_advanced)(ZSTD_customMem) = ZSTD_createCCtx_advanced;

static unsigned calls;    /* of libzstd that can fail */
static unsigned fault_at; /* the one that does, counted from 1; 0: none */
static size_t fault_code; /* what it returns */
static bool refuse_cctx;
static int unknown_param; /* 0: all are known */
static unsigned version_number = ZSTD_VERSION_NUMBER;

static bool is_faulty(void)
{
    return ++calls == fault_at;
}

static ZSTD_bounds bounds_of(ZSTD_cParameter param)
{
    ZSTD_bounds bounds = ZSTD_cParam_getBounds(param);

    if ((int)param == unknown_param)
        bounds.error = (size_t)-ZSTD_error_parameter_unsupported;
    return bounds;
}

#define FAULTY(call) (is_faulty() ? fault_code : (call))
#define ZSTD_createCCtx_advanced create_advanced
#define ZSTD_createCCtx() (refuse_cctx ? NULL : ZSTD_createCCtx())
#define ZSTD_versionNumber() version_number
#define ZSTD_cParam_getBounds(param) bounds_of(param)
#define ZSTD_CCtx_setParameter(c, param, value)                                \
  FAULTY(ZSTD_CCtx_setParameter(c, param, value))
#define ZSTD_CCtx_setPledgedSrcSize(c, size)                                   \
  FAULTY(ZSTD_CCtx_setPledgedSrcSize(c, size))
#define ZSTD_CCtx_refPrefix(c, prefix, len)                                    \
  FAULTY(ZSTD_CCtx_refPrefix(c, prefix, len))
#define ZSTD_CCtx_refCDict(c, cdict) FAULTY(ZSTD_CCtx_refCDict(c, cdict))
#define ZSTD_compressStream2(c, out, in, op)                                   \
  FAULTY(ZSTD_compressStream2(c, out, in, op))
#define ZSTD_compress2(c, dst, cap, src, len)                                  \
  FAULTY(ZSTD_compress2(c, dst, cap, src, len))
#define ZSTD_decompress(dst, cap, src, len)                                    \
  FAULTY(ZSTD_decompress(dst, cap, src, len))
#include "encoder.c"
#undef ZSTD_createCCtx
#undef ZSTD_versionNumber
#undef ZSTD_cParam_getBounds
#undef ZSTD_CCtx_setParameter
#undef ZSTD_CCtx_refCDict
#undef ZSTD_compress2
#undef ZSTD_decompress

#include "support/data.h"
#include "support/expect.h"
#include "support/frame_walk.h"

enum { WINDOW_LOG = 20 };

/* What an encoder needs, and where a frame is put together. */
struct fixture {
    struct test_alloc alloc;
    struct segzstd__mem mem;
    struct segzstd__encoder *encoder;
    unsigned char *frame;
    size_t len;
    size_t cap;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return -1;
    alloc_init(&f->alloc);
    segzstd__mem_init(&f->mem, &f->alloc.api, 0, false);
    f->encoder = segzstd__encoder_new(&f->mem);
    f->cap = 8 * MIB;
    f->frame = malloc(f->cap);
    calls = fault_at = 0;
    *state = f;
    return f->encoder == NULL || f->frame == NULL ? -1 : 0;
}

/* Whatever happened in a test: nothing leaks, and all counts are back. */
static int teardown(void **state)
{
    struct fixture *f = *state;
    const char *fault;
    int rc;

    create_advanced = ZSTD_createCCtx_advanced;
    calls = fault_at = 0;
    unknown_param = 0;
    refuse_cctx = false;
    if (f->encoder != NULL)
        segzstd__encoder_free(f->encoder);
    fault = alloc_done(&f->alloc);
    rc = fault != NULL || f->mem.used != 0 || f->mem.table_used != 0;
    if (rc != 0)
        print_error("%s, %ju bytes counted\n", fault == NULL ? "" : fault,
                    (uintmax_t)f->mem.used);
    free(f->frame);
    free(f);
    return -rc;
}

/* Flushes up to `end`, with at most `room` bytes for each call; how many calls
 * it took. */
static unsigned flush(struct fixture *f, size_t end, size_t room)
{
    unsigned n = 0;
    bool done = false;

    while (!done) {
        size_t written = SIZE_MAX;

        room = min_size(room, f->cap - f->len);
        assert_int_equal(segzstd__encoder_flush(f->encoder, end,
                                                f->frame + f->len, room,
                                                &written, &done),
                         0);
        assert_true(written <= room);
        f->len += written;
        n++;
    }
    return n;
}

/* Appends the empty last block. */
static void end_frame(struct fixture *f)
{
    memcpy(f->frame + f->len, "\1\0", 3);
    f->len += 3;
}

/* The frame decodes to the content, for a decoder that has the prefix. */
static void expect_decodes(struct fixture *f, const unsigned char *prefix,
                           size_t prefix_len, const unsigned char *content,
                           size_t len)
{
    unsigned char *back = malloc(len + 1);
    ZSTD_DCtx *dctx = ZSTD_createDCtx();
    size_t n;

    assert_non_null(back);
    assert_non_null(dctx);
    ZSTD_DCtx_refPrefix(dctx, prefix, prefix_len);
    n = ZSTD_decompressDCtx(dctx, back, len + 1, f->frame, f->len);
    if (ZSTD_isError(n))
        fail_msg("%s", ZSTD_getErrorName(n));
    assert_int_equal(n, len);
    assert_memory_equal(back, content, len);
    ZSTD_freeDCtx(dctx);
    free(back);
}

/* A run at the start of a frame. */
static struct segzstd__run first_run(int level, const unsigned char *base,
                                     size_t len, bool stable)
{
    return (struct segzstd__run){.level = level,
                                 .window_log = WINDOW_LOG,
                                 .base = base,
                                 .len_max = len,
                                 .stable_input = stable,
                                 .at_frame_start = true};
}

static void begin(struct fixture *f, const struct segzstd__run *run)
{
    assert_int_equal(segzstd__encoder_begin(f->encoder, run), 0);
    f->len = 0;
}

/* ---- what libzstd can do ---- */

static void test_is_supported__from_1_4_0_on(void **state)
{
    unsigned version = version_number;

    (void)state;
    version_number = 10399;
    assert_false(segzstd__encoder_is_supported());
    version_number = 10400;
    assert_true(segzstd__encoder_is_supported());
    version_number = version;
}

/* Known to work from 1.5.0 on; what older ones do, only the probe can say. */
static void test_stable_input__this_libzstd__is_probed(void **state)
{
    bool works = segzstd__encoder_has_stable_input();

    (void)state;
    assert_int_equal(works, stable_input_works);
    if (ZSTD_versionNumber() >= 10500)
        assert_true(works);
}

static void test_stable_input__any_call_of_the_probe_fails__is_not_used(
    void **state)
{
    unsigned steps;

    (void)state;
    calls = fault_at = 0;
    if (!segzstd__encoder_has_stable_input())
        skip();
    fault_code = (size_t)-ZSTD_error_GENERIC;
    for (steps = 1;; steps++) {
        ZSTD_CCtx *cctx = ZSTD_createCCtx();
        bool works;

        assert_non_null(cctx);
        calls = 0;
        fault_at = steps;
        works = grow_stable_input(cctx);
        ZSTD_freeCCtx(cctx);
        if (calls < fault_at) {
            assert_true(works);
            break;
        }
        assert_false(works);
    }
    /* the parameter, two flushes, the end, and decoding */
    assert_int_equal(steps, 6);
    fault_at = 0;
}

static void test_stable_input__parameter_unknown_or_no_memory__is_not_used(
    void **state)
{
    bool before = segzstd__encoder_has_stable_input();

    (void)state;
    stable_input_works = false;
    unknown_param = PARAM_STABLE_INPUT;
    probe_stable_input();
    assert_false(stable_input_works);
    unknown_param = 0;
    refuse_cctx = true;
    probe_stable_input();
    assert_false(stable_input_works);
    refuse_cctx = false;
    probe_stable_input();
    assert_int_equal(stable_input_works, before);
}

/* ---- whole frames ---- */

struct whole_case {
    const unsigned char *content;
    size_t len;
    struct segzstd__whole whole;
};

/* What a fresh context of libzstd makes with the same parameters. */
static size_t make_plainly(unsigned char *dst, size_t cap,
                           const struct whole_case *c)
{
    ZSTD_CCtx *cctx = ZSTD_createCCtx();
    size_t n;

    assert_non_null(cctx);
    ZSTD_CCtx_setParameter(cctx, ZSTD_c_compressionLevel, c->whole.level);
    ZSTD_CCtx_setParameter(cctx, ZSTD_c_windowLog, c->whole.window_log);
    ZSTD_CCtx_setParameter(cctx, ZSTD_c_checksumFlag, c->whole.checksum);
    ZSTD_CCtx_setParameter(cctx, ZSTD_c_dictIDFlag, c->whole.dict_id);
    ZSTD_CCtx_refCDict(cctx, c->whole.cdict);
    n = ZSTD_compress2(cctx, dst, cap, c->content, c->len);
    assert_false(ZSTD_isError(n));
    ZSTD_freeCCtx(cctx);
    return n;
}

/* Leaves the encoder in the middle of a run with other parameters. */
static void disturb(struct fixture *f, const unsigned char *content,
                    size_t round)
{
    struct segzstd__run run =
        first_run((int)(round % 7) + 1, content + 1000, 100000,
                  round % 2 != 0 && segzstd__encoder_has_stable_input());

    run.prefix = content;
    run.prefix_len = round % 3 * 500;
    run.base = content + run.prefix_len;
    begin(f, &run);
    flush(f, 100 + round * 1000 % 90000, f->cap);
}

static void expect_whole(struct fixture *f, const struct whole_case *c)
{
    size_t bound = segzstd__encoder_bound(c->len), written = 0, want;
    unsigned char *dst = malloc(bound);

    assert_non_null(dst);
    assert_int_equal(segzstd__encoder_whole(f->encoder, &c->whole, dst, bound,
                                            &written, c->content, c->len),
                     0);
    want = make_plainly(f->frame, f->cap, c);
    assert_int_equal(written, want);
    assert_memory_equal(dst, f->frame, want);
    free(dst);
}

/* Whatever the encoder was used for before. */
static void test_whole__after_any_use__is_what_compress2_makes(void **state)
{
    static const int levels[] = {-7, 1, 3, 6, 9, 13};
    static const size_t sizes[] = {0, 1, 100, 10000, 131073, 400000};
    struct fixture *f = *state;
    unsigned char *content = data_new(400000, DATA_MIXTURE, 1);
    size_t round = 0;

    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
            struct whole_case c = {content, sizes[k], {.level = levels[i]}};

            c.whole.checksum = round % 2 != 0;
            c.whole.window_log = round % 3 == 0 ? WINDOW_LOG : 0;
            if (round % 5 != 0)
                disturb(f, content, round);
            expect_whole(f, &c);
            round++;
        }
    free(content);
}

static void test_whole__with_dictionary__is_what_compress2_makes(void **state)
{
    struct fixture *f = *state;
    unsigned char *content = data_new(200000, DATA_JSON, 1);
    ZSTD_CDict *cdict = ZSTD_createCDict(content, 20000, 6);
    struct whole_case c = {content + 20000, 5000, {.level = 6}};

    assert_non_null(cdict);
    for (size_t round = 0; round < 8; round++) {
        c.whole.cdict = round % 2 != 0 ? cdict : NULL;
        c.whole.dict_id = round % 4 > 1;
        c.len = 5000 * round;
        expect_whole(f, &c);
    }
    ZSTD_freeCDict(cdict);
    free(content);
}

static void test_whole__dst_too_small__names_libzstds_error(void **state)
{
    struct fixture *f = *state;
    const struct segzstd__whole whole = {.level = 3};
    unsigned char content[1000];
    size_t written;

    data_fill(content, sizeof(content), DATA_RANDOM, 1);
    assert_string_equal(f->encoder->zstd_error, "");
    assert_int_equal(segzstd__encoder_whole(f->encoder, &whole, f->frame, 10,
                                            &written, content, sizeof(content)),
                     SEGZSTD_ERR_ZSTD);
    assert_string_equal(f->encoder->zstd_error,
                        ZSTD_getErrorString(ZSTD_error_dstSize_tooSmall));
}

/* ---- runs ---- */

static void test_run__in_pieces_of_any_size__decodes(void **state)
{
    static const size_t pieces[] = {997, 30000, 131072, 131073, 600000};
    static const int levels[] = {-3, 1, 5, 9, 16};
    struct fixture *f = *state;
    unsigned char *content = data_new(600000, DATA_MIXTURE, 2);
    bool has_stable = segzstd__encoder_has_stable_input();

    for (size_t i = 0; i < 5; i++)
        for (int stable = 0; stable <= has_stable; stable++) {
            struct segzstd__run run =
                first_run(levels[i], content, 600000, stable != 0);

            begin(f, &run);
            assert_true(f->encoder->header_pending);
            assert_false(f->encoder->seam_active);
            for (size_t end = 0; end < 600000; end += pieces[i])
                flush(f, end, f->cap);
            flush(f, 600000, f->cap);
            end_frame(f);
            expect_decodes(f, NULL, 0, content, 600000);
        }
    free(content);
}

/* All that was flushed can be decoded, with nothing held back. */
static void test_run__paused_after_a_flush__all_so_far_decodes(void **state)
{
    struct fixture *f = *state;
    unsigned char *content = data_new(50000, DATA_TEXT, 3);
    struct segzstd__run run = first_run(5, content, 50000, false);

    run.stable_input = segzstd__encoder_has_stable_input();
    begin(f, &run);
    for (size_t end = 1; end < 50000; end = 3 * end + 7) {
        size_t len = f->len;

        flush(f, end, f->cap);
        len = f->len;
        end_frame(f);
        expect_decodes(f, NULL, 0, content, end);
        f->len = len;
    }
    free(content);
}

static void test_flush__little_room__same_bytes_in_more_calls(void **state)
{
    struct fixture *f = *state;
    unsigned char *content = data_new(300000, DATA_MIXTURE, 4);
    unsigned char *want = malloc(f->cap);
    bool has_stable = segzstd__encoder_has_stable_input();

    assert_non_null(want);
    for (int stable = 0; stable <= has_stable; stable++) {
        struct segzstd__run run = first_run(3, content, 300000, stable != 0);
        size_t want_len;

        begin(f, &run);
        assert_int_equal(flush(f, 300000, f->cap), 1);
        memcpy(want, f->frame, f->len);
        want_len = f->len;
        for (size_t room = 512; room < 100000; room *= 5) {
            begin(f, &run);
            assert_true(flush(f, 300000, room) >= want_len / room);
            assert_int_equal(f->len, want_len);
            assert_memory_equal(f->frame, want, want_len);
        }
    }
    free(want);
    free(content);
}

static void test_flush__nothing_new__writes_nothing(void **state)
{
    struct fixture *f = *state;
    static const unsigned char content[1000] = {1};
    const struct segzstd__run run = first_run(1, content, 1000, false);
    size_t len;

    begin(f, &run);
    flush(f, 1000, f->cap);
    len = f->len;
    assert_int_equal(flush(f, 1000, f->cap), 1);
    assert_int_equal(f->len, len);
}

/* ---- runs that are primed ---- */

enum { PREFIX = 200000 };

/* Content that the prefix holds already, and nothing else does. */
static unsigned char *new_repeated(void)
{
    unsigned char *bytes = data_new(2 * PREFIX, DATA_RANDOM, 5);

    memcpy(bytes + PREFIX, bytes, PREFIX);
    return bytes;
}

static struct segzstd__run primed_run(const unsigned char *bytes, bool stable)
{
    struct segzstd__run run = first_run(3, bytes + PREFIX, PREFIX, stable);

    run.prefix = bytes;
    run.prefix_len = PREFIX;
    run.at_frame_start = false;
    return run;
}

static void test_run__with_prefix__finds_its_matches_there(void **state)
{
    struct fixture *f = *state;
    unsigned char *bytes = new_repeated();
    bool has_stable = segzstd__encoder_has_stable_input();

    for (int stable = 0; stable <= has_stable; stable++) {
        struct segzstd__run run = primed_run(bytes, stable != 0);

        begin(f, &run);
        assert_true(f->encoder->seam_active);
        assert_int_equal(f->encoder->seam_piece, SEAM_PIECE_MIN);
        flush(f, 256, f->cap);
        flush(f, PREFIX, f->cap);
        end_frame(f);
        /* old versions forget it after the first block */
        assert_true(f->len < PREFIX / 2);
        expect_decodes(f, bytes, PREFIX, bytes + PREFIX, PREFIX);

        /* and none is left of it in the next run */
        run = first_run(3, bytes + PREFIX, PREFIX, stable != 0);
        begin(f, &run);
        assert_false(f->encoder->seam_active);
        flush(f, PREFIX, f->cap);
        end_frame(f);
        assert_true(f->len > PREFIX);
        expect_decodes(f, NULL, 0, bytes + PREFIX, PREFIX);
    }
    free(bytes);
}

static uint64_t longest_offset(struct fixture *f, const unsigned char *prefix)
{
    struct frame_walk walk;

    end_frame(f);
    if (frame_walk_dict(f->frame, f->len, prefix, PREFIX, &walk) != 0)
        fail_msg("%s", walk.error);
    assert_int_equal(walk.window, (uint64_t)1 << 17);
    assert_int_equal(walk.decoded, PREFIX);
    return walk.max_offset;
}

/* The prefix was 200,000 bytes ago, the window is 131,072: a real decoder has
 * forgotten it. libzstd alone would let offsets reach a prefix that lies apart,
 * which is shown too, for it is what this test is about. */
static void test_run__prefix_beyond_the_window__is_not_reached(void **state)
{
    struct fixture *f = *state;
    unsigned char *bytes = new_repeated();
    bool has_stable = segzstd__encoder_has_stable_input();

    for (int stable = 0; stable <= has_stable; stable++)
        for (int level = 1; level <= 13; level += 3) {
            struct segzstd__run run = primed_run(bytes, stable != 0);

            run.level = level;
            run.window_log = 17;
            begin(f, &run);
            flush(f, 1000, f->cap);
            flush(f, PREFIX, f->cap);
            assert_true(longest_offset(f, bytes) <= (uint64_t)1 << 17);

            if (stable != 0)
                continue;
            begin(f, &run);
            ZSTD_CCtx_setParameter(f->encoder->cctx, PARAM_FORCE_MAX_WINDOW, 0);
            f->encoder->params_valid = false;
            flush(f, PREFIX, f->cap);
            assert_true(longest_offset(f, bytes) > (uint64_t)1 << 17);
        }
    free(bytes);
}

static void test_run__with_dictionary__refers_to_it(void **state)
{
    struct fixture *f = *state;
    unsigned char *bytes = new_repeated();
    ZSTD_CDict *cdict = ZSTD_createCDict(bytes, PREFIX, 3);
    struct segzstd__run run = first_run(3, bytes + PREFIX, PREFIX, false);

    assert_non_null(cdict);
    run.cdict = cdict;
    begin(f, &run);
    flush(f, PREFIX, f->cap);
    end_frame(f);
    assert_true(f->len < PREFIX / 20);
    expect_decodes(f, bytes, PREFIX, bytes + PREFIX, PREFIX);

    run.cdict = NULL;
    begin(f, &run);
    flush(f, PREFIX, f->cap);
    assert_true(f->len > PREFIX);
    ZSTD_freeCDict(cdict);
    free(bytes);
}

/* ---- parameters ---- */

/* Calls of libzstd that a begin of a run makes beside the parameters. */
enum { BEGIN_CALLS = 2 };

/* Parameters of an encoder; one of them not every libzstd knows. */
static unsigned count_params(void)
{
    return has_param(PARAM_STABLE_INPUT) ? 7 : 6;
}

static unsigned count_begin(struct fixture *f, const struct segzstd__run *run)
{
    calls = 0;
    begin(f, run);
    return calls - BEGIN_CALLS;
}

static void test_params__unchanged__are_not_set_again(void **state)
{
    struct fixture *f = *state;
    static const unsigned char content[100] = {1};
    struct segzstd__run run = first_run(3, content, 100, false);

    assert_int_equal(count_begin(f, &run), count_params());
    assert_int_equal(count_begin(f, &run), 0);
    run.level = 4;
    assert_int_equal(count_begin(f, &run), 1);
    run.window_log = 21;
    run.base = content + 50;
    run.prefix = content;
    run.prefix_len = 50;
    assert_int_equal(count_begin(f, &run), 2);
    assert_int_equal(count_begin(f, &run), 0);
}

static void test_params__stable_input_unknown__is_not_touched(void **state)
{
    struct fixture *f = *state;
    static const unsigned char content[100] = {1};
    const struct segzstd__run run = first_run(3, content, 100, false);

    unknown_param = PARAM_STABLE_INPUT;
    assert_int_equal(count_begin(f, &run), 6);
}

/* After a call that failed it is not known what the context has. */
static void test_begin__any_call_fails__is_told_and_can_be_repeated(
    void **state)
{
    struct fixture *f = *state;
    static const unsigned char content[1000] = {1};
    struct segzstd__run run = first_run(3, content, 1000, false);
    unsigned at;

    for (at = 1;; at++) {
        int rc;

        run.level = 1 + (int)at;
        f->encoder->params_valid = false;
        calls = 0;
        fault_at = at;
        fault_code = (size_t)-ZSTD_error_stage_wrong;
        rc = segzstd__encoder_begin(f->encoder, &run);
        if (calls < at)
            break;
        assert_int_equal(rc, SEGZSTD_ERR_ZSTD);
        assert_string_equal(f->encoder->zstd_error,
                            ZSTD_getErrorString(ZSTD_error_stage_wrong));
        assert_int_equal(f->encoder->params_valid, at > count_params());
        fault_at = 0;
        begin(f, &run);
        flush(f, 1000, f->cap);
        end_frame(f);
        expect_decodes(f, NULL, 0, content, 1000);
    }
    assert_int_equal(at, count_params() + BEGIN_CALLS + 1);
}

static void test_flush_and_whole__libzstd_fails__is_told(void **state)
{
    struct fixture *f = *state;
    static const unsigned char content[1000] = {1};
    const struct segzstd__run run = first_run(3, content, 1000, false);
    const struct segzstd__whole whole = {.level = 3};
    size_t written;
    bool done;

    begin(f, &run);
    calls = 0;
    fault_at = 1;
    fault_code = (size_t)-ZSTD_error_srcBuffer_wrong;
    assert_int_equal(segzstd__encoder_flush(f->encoder, 1000, f->frame, f->cap,
                                            &written, &done),
                     SEGZSTD_ERR_ZSTD);
    assert_string_equal(f->encoder->zstd_error,
                        ZSTD_getErrorString(ZSTD_error_srcBuffer_wrong));
    /* a parameter (the content size's flag is another one), the reference to
     * no dictionary, and the compression itself */
    for (unsigned at = 1; at <= 3; at++) {
        f->encoder->params_valid = true;
        f->encoder->params.level = 3;
        f->encoder->params.window_log = 0;
        f->encoder->params.content_size_flag = 0;
        f->encoder->params.dict_id_flag = 0;
        calls = 0;
        fault_at = at;
        assert_int_equal(segzstd__encoder_whole(f->encoder, &whole, f->frame,
                                                f->cap, &written, content,
                                                sizeof(content)),
                         SEGZSTD_ERR_ZSTD);
        assert_int_equal(calls, at);
    }
}

/* ---- memory ---- */

/* Makes an encoder and uses it for all it can do. */
static int use_encoder(struct fixture *f, const unsigned char *content,
                       size_t len)
{
    const struct segzstd__run run = first_run(1, content, len, false);
    const struct segzstd__whole whole = {.level = 3};
    size_t written;
    bool done;
    int rc;

    f->encoder = segzstd__encoder_new(&f->mem);
    if (f->encoder == NULL)
        return SEGZSTD_ERR_NOMEM;
    rc = segzstd__encoder_begin(f->encoder, &run);
    if (rc == 0)
        rc = segzstd__encoder_flush(f->encoder, len, f->frame, f->cap, &written,
                                    &done);
    if (rc == 0)
        rc = segzstd__encoder_whole(f->encoder, &whole, f->frame, f->cap,
                                    &written, content, len);
    if (rc == 0)
        assert_int_equal(ZSTD_getFrameContentSize(f->frame, written), len);
    return rc;
}

static void drop_encoder(struct fixture *f)
{
    if (f->encoder != NULL)
        segzstd__encoder_free(f->encoder);
    f->encoder = NULL;
    assert_int_equal(f->mem.used, 0);
    assert_int_equal(f->mem.table_used, 0);
}

static void test_memory__any_allocation_fails__is_told_and_leaks_nothing(
    void **state)
{
    struct fixture *f = *state;
    unsigned char *content = data_new(100000, DATA_TEXT, 6);
    uint64_t at;

    drop_encoder(f);
    for (at = 0;; at++) {
        uint64_t before = alloc_failed(&f->alloc);
        int rc;

        alloc_fail(&f->alloc, at, 1);
        rc = use_encoder(f, content, 100000);
        if (alloc_failed(&f->alloc) == before) {
            assert_int_equal(rc, 0);
            break;
        }
        assert_int_equal(rc, SEGZSTD_ERR_NOMEM);
        drop_encoder(f);
    }
    /* the encoder, the context, its tables */
    assert_true(at >= (segzstd__encoder_has_custom_alloc() ? 3 : 1));
    free(content);
}

static void test_bytes__after_use__have_the_tables(void **state)
{
    struct fixture *f = *state;
    static const unsigned char content[100000] = {1};
    size_t fresh = segzstd__encoder_bytes(f->encoder), used;

    drop_encoder(f);
    assert_int_equal(use_encoder(f, content, sizeof(content)), 0);
    used = segzstd__encoder_bytes(f->encoder);
    assert_true(fresh < 64 * KIB && used > fresh + 64 * KIB);
    /* what is counted has a header for each block, and no more */
    assert_true(f->mem.used >= used && f->mem.used - used < 1000);
}

/* The frame and the tables are the same on huge pages. */
static void test_memory__huge_pages__are_counted_and_given_back(void **state)
{
    struct fixture *f = *state;
    unsigned char *content = data_new(3 * MIB, DATA_JSON, 7);
    struct segzstd__run run = first_run(9, content, 3 * MIB, false);

    drop_encoder(f);
    f->mem.huge_pages = true;
    f->encoder = segzstd__encoder_new(&f->mem);
    assert_non_null(f->encoder);
    run.window_log = 22;
    begin(f, &run);
    flush(f, 3 * MIB, f->cap);
    end_frame(f);
    expect_decodes(f, NULL, 0, content, 3 * MIB);
    assert_true(f->mem.used >= segzstd__encoder_bytes(f->encoder));
    if (segzstd__encoder_has_custom_alloc())
        assert_true(f->alloc.bytes < f->mem.used);
    drop_encoder(f);
    free(content);
}

/* ---- libzstd without custom allocation ---- */

static void test_memory__no_custom_alloc__is_counted_after_the_fact(
    void **state)
{
    struct fixture *f = *state;
    unsigned char *content = data_new(100000, DATA_TEXT, 6);
    struct segzstd__run run;

    drop_encoder(f);
    create_advanced = NULL;
    assert_false(segzstd__encoder_has_custom_alloc());
    assert_int_equal(use_encoder(f, content, 100000), 0);
    assert_int_equal(f->encoder->charged, ZSTD_sizeof_CCtx(f->encoder->cctx));
    assert_int_equal(f->mem.table_used, f->encoder->charged);
    assert_int_equal(f->mem.used, segzstd__encoder_bytes(f->encoder));
    assert_int_equal(f->alloc.bytes, sizeof(*f->encoder));
    drop_encoder(f);

    /* the first flush of a run is when its tables are there */
    f->encoder = segzstd__encoder_new(&f->mem);
    assert_non_null(f->encoder);
    run = first_run(1, content, 100000, false);
    begin(f, &run);
    flush(f, 1000, f->cap);
    assert_int_equal(f->mem.used, segzstd__encoder_bytes(f->encoder));
    drop_encoder(f);
    free(content);
}

static void test_memory__no_custom_alloc__budget_is_kept(void **state)
{
    struct fixture *f = *state;
    unsigned char *content = data_new(100000, DATA_TEXT, 6);

    drop_encoder(f);
    create_advanced = NULL;
    f->mem.budget = 100000;
    assert_int_equal(use_encoder(f, content, 100000), SEGZSTD_ERR_NOMEM);
    assert_int_equal(f->encoder->charged, 0);
    assert_int_equal(f->mem.used, sizeof(*f->encoder));
    f->mem.budget = 0;
    drop_encoder(f);
    free(content);
}

static void test_new__no_context__gives_all_back(void **state)
{
    struct fixture *f = *state;

    drop_encoder(f);
    create_advanced = NULL;
    refuse_cctx = true;
    assert_null(segzstd__encoder_new(&f->mem));
    assert_int_equal(f->mem.used, 0);
}

#define WITH_ENCODER(test)                                                     \
  cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_supported__from_1_4_0_on),
        cmocka_unit_test(test_stable_input__this_libzstd__is_probed),
        cmocka_unit_test(
            test_stable_input__any_call_of_the_probe_fails__is_not_used),
        cmocka_unit_test(
            test_stable_input__parameter_unknown_or_no_memory__is_not_used),
        WITH_ENCODER(test_whole__after_any_use__is_what_compress2_makes),
        WITH_ENCODER(test_whole__with_dictionary__is_what_compress2_makes),
        WITH_ENCODER(test_whole__dst_too_small__names_libzstds_error),
        WITH_ENCODER(test_run__in_pieces_of_any_size__decodes),
        WITH_ENCODER(test_run__paused_after_a_flush__all_so_far_decodes),
        WITH_ENCODER(test_flush__little_room__same_bytes_in_more_calls),
        WITH_ENCODER(test_flush__nothing_new__writes_nothing),
        WITH_ENCODER(test_run__with_prefix__finds_its_matches_there),
        WITH_ENCODER(test_run__prefix_beyond_the_window__is_not_reached),
        WITH_ENCODER(test_run__with_dictionary__refers_to_it),
        WITH_ENCODER(test_params__unchanged__are_not_set_again),
        WITH_ENCODER(test_params__stable_input_unknown__is_not_touched),
        WITH_ENCODER(test_begin__any_call_fails__is_told_and_can_be_repeated),
        WITH_ENCODER(test_flush_and_whole__libzstd_fails__is_told),
        WITH_ENCODER(
            test_memory__any_allocation_fails__is_told_and_leaks_nothing),
        WITH_ENCODER(test_bytes__after_use__have_the_tables),
        WITH_ENCODER(test_memory__huge_pages__are_counted_and_given_back),
        WITH_ENCODER(test_memory__no_custom_alloc__is_counted_after_the_fact),
        WITH_ENCODER(test_memory__no_custom_alloc__budget_is_kept),
        WITH_ENCODER(test_new__no_context__gives_all_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
