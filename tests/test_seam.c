#include "seam.h"

#include <stdlib.h>
#include <zstd.h>

#include "support/block_make.h"
#include "support/data.h"
#include "support/env.h"
#include "support/expect.h"
#include "support/frame_walk.h"
#include "support/seam_frame.h"

enum { CAP = 1 << 19 };

/* ----------------------------------------------------------------------- */
/* Blocks of libzstd                                                       */

/* What the seams of several frames did, and the encoder of all of them. */
struct tally {
    ZSTD_CCtx *encoder;
    uint64_t blocks[SEAM_OUTCOMES];
    uint64_t seams;
    uint64_t settled;
};

/* The frame of the plan is valid for all ways to decode it. */
static void check_plan(const struct seam_plan *plan, const char *what,
                       const unsigned char *content, size_t len,
                       struct tally *tally)
{
    struct oracle_want want = {
        content, len, NULL, 0, plan->window_log, ORACLE_SIZE_ABSENT};
    struct seam_frame frame;
    struct segzstd__mem mem;
    const char *fault;

    segzstd__mem_init(&mem, NULL, 0, false);
    fault = seam_frame_make(&frame, plan, tally->encoder, &mem, content, len);
    if (fault == NULL)
        fault = oracle_check(frame.bytes, frame.len, &want);
    if (fault != NULL)
        fail_msg("%s, level %d, segments of %zu, overlap %zu: %s", what,
                 plan->level, plan->segment, plan->overlap, fault);
    assert_int_equal(atomic_load(&mem.used), 0);
    for (int i = 0; i < SEAM_OUTCOMES; i++)
        tally->blocks[i] += frame.blocks[i];
    tally->seams += frame.seams;
    tally->settled += frame.settled;
    seam_frame_free(&frame);
}

/* All levels and overlaps, with small segments and large ones. */
static void check_content(const char *what, const unsigned char *content,
                          size_t len, struct tally *tally)
{
    static const int levels[] = {-5, 1, 3, 5, 7, 9, 13, 16, 19, 22};
    static const size_t overlaps[] = {0, 1024, 128 << 10};
    size_t level_step = env_pick("every n-th level: n", 1, 5);

    for (size_t l = 0; l < sizeof(levels) / sizeof(*levels); l += level_step) {
        for (size_t o = 0; o < 3; o++) {
            struct seam_plan plan = {0};

            plan.level = levels[l];
            plan.window_log = 20;
            plan.overlap = overlaps[o];
            plan.first_piece = 40; /* so small that some are stored */
            plan.segment = 7777;
            check_plan(&plan, what, content, min_size(len, 60000), tally);
            plan.first_piece = 256;
            plan.segment = 150000;
            plan.rest_piece = 100000;
            check_plan(&plan, what, content, len, tally);
            plan.first_piece = plan.segment; /* whole blocks */
            check_plan(&plan, what, content, len, tally);
        }
    }
}

/* Noise with short echoes at the distances that every frame begins with: blocks
 * that are hardly smaller than their content, but need the state. */
static void fill_echoes(unsigned char *dst, size_t len)
{
    struct rng rng = rng_seed(22);
    size_t at = 8;

    data_fill(dst, len, DATA_RANDOM, 23);
    while (len - at > 64) {
        static const size_t distances[] = {1, 4, 8};
        size_t distance = distances[rng_below(&rng, 3)];

        at += rng_below(&rng, 20);
        for (size_t n = 5 + rng_below(&rng, 8); n > 0; n--, at++)
            dst[at] = dst[at - distance];
    }
}

/* Indentation: runs of spaces, as long as they are deep, between short words. */
static void fill_spaces(unsigned char *dst, size_t len)
{
    struct rng rng = rng_seed(24);
    size_t depth = 0;

    for (size_t at = 0; at < len;) {
        size_t n = min_size(4 * depth, len - at);

        memset(dst + at, ' ', n);
        at += n;
        for (n = rng_below(&rng, 6); n > 0 && at < len; n--)
            dst[at++] = (unsigned char)"{}[],\n"[rng_below(&rng, 6)];
        depth = rng_below(&rng, 5) > 0 ? depth + 1 : depth / 3;
        depth = min_size(depth, 100);
    }
}

enum { CONTENT_LEN = 260000 };

static void test_rewrite__each_kind_of_data__decodes(void **state)
{
    struct tally tally = {ZSTD_createCCtx(), {0}, 0, 0};
    unsigned char *content;

    (void)state;
    assert_non_null(tally.encoder);
    for (int kind = 0; kind < DATA_KINDS; kind++) {
        content = data_new(CONTENT_LEN, (enum data_kind)kind, 21);
        check_content(data_name((enum data_kind)kind), content, CONTENT_LEN,
                      &tally);
        free(content);
    }
    content = malloc(CONTENT_LEN);
    assert_non_null(content);
    fill_echoes(content, CONTENT_LEN);
    check_content("echoes", content, CONTENT_LEN, &tally);
    fill_spaces(content, CONTENT_LEN);
    check_content("spaces", content, CONTENT_LEN, &tally);
    free(content);
    /* The matrix is worth something only if it takes both paths. Blocks of
     * libzstd are never stored, see the blocks made by hand below: three offsets
     * spelled out take about a byte, and libzstd saves two or writes none. */
    assert_true(tally.blocks[SEAM_COPIED] > 0);
    assert_true(tally.blocks[SEAM_REWRITTEN] > 0);
    assert_true(tally.settled > 0);
    assert_true(tally.settled < tally.seams);
    ZSTD_freeCCtx(tally.encoder);
}

/* Machine code of the day: this program itself. */
static void test_rewrite__own_executable__decodes(void **state)
{
    struct tally tally = {ZSTD_createCCtx(), {0}, 0, 0};
    unsigned char *content = malloc(CONTENT_LEN);
    FILE *file = fopen("/proc/self/exe", "rb");
    size_t len;

    (void)state;
    assert_non_null(tally.encoder);
    assert_non_null(content);
    assert_non_null(file);
    len = fread(content, 1, CONTENT_LEN, file);
    fclose(file);
    assert_true(len > 0);
    check_content("executable", content, len, &tally);
    assert_true(tally.settled > 0);
    free(content);
    ZSTD_freeCCtx(tally.encoder);
}

/* Segments so short that they end before the states agree, and shorter than
 * anything that libzstd would compress. */
static void test_rewrite__tiny_segments__decode(void **state)
{
    struct tally tally = {ZSTD_createCCtx(), {0}, 0, 0};
    unsigned char *content = data_new(6000, DATA_JSON, 25);

    (void)state;
    assert_non_null(tally.encoder);
    for (size_t segment = 1; segment < 1000; segment += 1 + segment / 2) {
        struct seam_plan plan = {0};

        plan.level = 3;
        plan.window_log = 17;
        plan.overlap = 500;
        plan.first_piece = 256;
        plan.segment = segment;
        check_plan(&plan, "tiny", content, min_size(6000, segment * 40),
                   &tally);
    }
    assert_true(tally.settled < tally.seams);
    free(content);
    ZSTD_freeCCtx(tally.encoder);
}

/* ----------------------------------------------------------------------- */
/* Blocks made by hand                                                     */

struct run {
    unsigned char *bytes; /* blocks */
    size_t len;
    unsigned char *content;
    size_t content_len;
    struct maker maker;
};

static void run_new(struct run *run)
{
    memset(run, 0, sizeof(*run));
    maker_init(&run->maker);
    run->bytes = malloc(CAP);
    run->content = malloc(CAP);
    assert_non_null(run->bytes);
    assert_non_null(run->content);
}

static void run_free(struct run *run)
{
    free(run->bytes);
    free(run->content);
}

static void run_add(struct run *run, const struct make_block *block)
{
    size_t len =
        maker_put(&run->maker, block, run->bytes + run->len, CAP - run->len);

    assert_true(len > 0);
    run->len += len;
}

/* A frame of two runs of blocks; returns its length. */
static size_t put_frame(unsigned char *dst, const unsigned char *first,
                        size_t first_len, const unsigned char *second,
                        size_t second_len)
{
    struct segzstd__frame_header header = {24, SEGZSTD_SIZE_UNKNOWN, 0, false};
    size_t n = segzstd__frame_put_header(dst, &header);

    memcpy(dst + n, first, first_len);
    n += first_len;
    memcpy(dst + n, second, second_len);
    n += second_len;
    segzstd__frame_put_block_header(dst + n, BLOCK_RAW, 0, true);
    return n + BLOCK_HEADER_BYTES;
}

/* What a fresh decoder makes of the blocks. */
static void run_decode(struct run *run)
{
    unsigned char *frame = malloc(2 * CAP);
    size_t len, n;

    assert_non_null(frame);
    len = put_frame(frame, run->bytes, run->len, run->bytes, 0);
    n = ZSTD_decompress(run->content, CAP, frame, len);
    free(frame);
    if (ZSTD_isError(n))
        fail_msg("blocks made by hand: %s", ZSTD_getErrorName(n));
    assert_int_equal(n, run->maker.position);
    run->content_len = n;
}

/* `before`, then `after` as it was rewritten, decode to the content of both. */
static void expect_joined(const struct run *before, const struct run *after,
                          const unsigned char *rewritten, size_t rewritten_len)
{
    size_t content_len = before->content_len + after->content_len;
    unsigned char *frame = malloc(4 * CAP);
    unsigned char *content = malloc(content_len + 1);
    struct frame_walk walk;
    size_t len, n;

    assert_non_null(frame);
    assert_non_null(content);
    len =
        put_frame(frame, before->bytes, before->len, rewritten, rewritten_len);
    n = ZSTD_decompress(content, content_len, frame, len);
    if (ZSTD_isError(n))
        fail_msg("the joined frame: %s", ZSTD_getErrorName(n));
    assert_int_equal(n, content_len);
    assert_memory_equal(content, before->content, before->content_len);
    assert_memory_equal(content + before->content_len, after->content,
                        after->content_len);
    if (frame_walk(frame, len, 0, &walk) != 0)
        fail_msg("%s", walk.error);
    free(content);
    free(frame);
}

/* One call, with source, content and room not a byte longer than they are, so
 * that ASan sees any step beyond. The caller frees *dst. */
static int rewrite_exactly(struct segzstd__seam *seam, struct segzstd__mem *mem,
                           const unsigned char *src, size_t len,
                           const unsigned char *content, size_t content_len,
                           unsigned char **dst, size_t *dst_len)
{
    size_t cap = segzstd__seam_bound(len, content_len);
    unsigned char *src_copy = malloc(len > 0 ? len : 1);
    unsigned char *content_copy = malloc(content_len > 0 ? content_len : 1);
    int err;

    *dst = malloc(cap > 0 ? cap : 1);
    assert_non_null(src_copy);
    assert_non_null(content_copy);
    assert_non_null(*dst);
    memcpy(src_copy, src, len);
    memcpy(content_copy, content, content_len);
    err = segzstd__seam_rewrite(seam, mem, *dst, cap, dst_len, src_copy, len,
                                content_copy, content_len);
    if (err == 0)
        assert_in_range(*dst_len, 0, cap);
    free(content_copy);
    free(src_copy);
    return err;
}

/* Rewrites all of `after` and checks it behind `before`. The caller frees the
 * result, of *len bytes. */
static unsigned char *join(struct segzstd__seam *seam, struct run *before,
                           struct run *after, size_t *len)
{
    struct segzstd__mem mem;
    unsigned char *dst;

    segzstd__mem_init(&mem, NULL, 0, false);
    segzstd__seam_init(seam);
    run_decode(before);
    run_decode(after);
    assert_int_equal(rewrite_exactly(seam, &mem, after->bytes, after->len,
                                     after->content, after->content_len, &dst,
                                     len),
                     0);
    assert_int_equal(atomic_load(&mem.used), 0);
    expect_joined(before, after, dst, *len);
    return dst;
}

/* Blocks of any kind after blocks of any kind. */
static void test_rewrite__random_blocks__decode_after_any_others(void **state)
{
    struct rng rng = rng_seed(31);
    uint64_t blocks[SEAM_OUTCOMES] = {0};
    size_t rounds = env_pick("random frames", 3000, 30), settled = 0;

    (void)state;
    if (!env_reads_short_sequences())
        skip();
    for (size_t i = 0; i < rounds; i++) {
        struct segzstd__seam seam;
        struct run run[2];
        unsigned char *dst;
        size_t max = rng_spread(&rng, 40000), len;

        for (int k = 0; k < 2; k++) {
            run_new(&run[k]);
            for (size_t n = 1 + rng_below(&rng, 6); n > 0; n--)
                run[k].len += maker_put_random(&run[k].maker, &rng, max,
                                               run[k].bytes + run[k].len);
        }
        dst = join(&seam, &run[0], &run[1], &len);
        for (int k = 0; k < SEAM_OUTCOMES; k++)
            blocks[k] += seam.blocks[k];
        settled += segzstd__seam_is_settled(&seam);
        free(dst);
        run_free(&run[0]);
        run_free(&run[1]);
    }
    for (int k = 0; k < SEAM_OUTCOMES; k++)
        assert_true(blocks[k] > 0);
    assert_in_range(settled, 1, rounds - 1);
}

/* Block of 300 literals, half of them in a match each, with the offset values
 * given; long enough to be worth writing again. */
struct hand_block {
    struct make_block block;
    struct make_sequence seq[4];
    unsigned char literals[300];
};

static struct make_block *hand_block(struct hand_block *hand, size_t count,
                                     const uint32_t offset_values[4])
{
    struct make_block *block = &hand->block;

    memset(hand, 0, sizeof(*hand));
    for (size_t i = 0; i < sizeof(hand->literals); i++)
        hand->literals[i] = (unsigned char)(i * 7 / 3 & 1);
    for (size_t i = 0; i < count; i++)
        hand->seq[i] =
            (struct make_sequence){20 + (uint32_t)i, 30, offset_values[i]};
    block->literals = hand->literals;
    block->literals_len = 200;
    block->literals_format = 1;
    block->seq = hand->seq;
    block->count = count;
    return block;
}

/* The run before of most tests: it leaves other offsets and no table. */
static void run_before(struct run *run)
{
    static const uint32_t offset_values[4] = {3 + 11, 3 + 12, 3 + 13};
    struct hand_block hand;

    run_new(run);
    run_add(run, hand_block(&hand, 3, offset_values));
}

static void expect_blocks(const struct segzstd__seam *seam, uint64_t copied,
                          uint64_t rewritten, uint64_t stored)
{
    assert_int_equal(seam->blocks[SEAM_COPIED], copied);
    assert_int_equal(seam->blocks[SEAM_REWRITTEN], rewritten);
    assert_int_equal(seam->blocks[SEAM_STORED], stored);
}

/* Rewrites the run after run_before() and frees both. */
static void check_run(struct run *after, struct segzstd__seam *seam,
                      uint64_t copied, uint64_t rewritten, uint64_t stored)
{
    struct run before;
    unsigned char *dst;
    size_t len;

    run_before(&before);
    dst = join(seam, &before, after, &len);
    expect_blocks(seam, copied, rewritten, stored);
    if (rewritten + stored == 0) {
        assert_int_equal(len, after->len);
        assert_memory_equal(dst, after->bytes, len);
    }
    free(dst);
    run_free(&before);
    run_free(after);
}

static void test_rewrite__three_offsets_of_its_own__copied_and_settled(
    void **state)
{
    static const uint32_t offset_values[4] = {3 + 5, 3 + 6, 3 + 7, 2};
    struct hand_block hand;
    struct segzstd__seam seam;
    struct run run;

    (void)state;
    run_new(&run);
    run_add(&run, hand_block(&hand, 4, offset_values));
    check_run(&run, &seam, 1, 0, 0);
    assert_true(segzstd__seam_is_settled(&seam));
}

/* Each of the three offsets that every frame begins with, and "the last less
 * one", which is 0 here unless another came before. */
static void test_rewrite__offsets_of_a_fresh_frame__spelled_out(void **state)
{
    (void)state;
    for (uint32_t code = 1; code <= 3; code++) {
        const uint32_t offset_values[4] = {code};
        static const uint32_t fresh[] = {1, 4, 8};
        struct hand_block hand;
        struct segzstd__seam seam;
        struct run run;

        run_new(&run);
        run_add(&run, hand_block(&hand, 1, offset_values));
        check_run(&run, &seam, 0, 1, 0);
        assert_int_equal(seam.d_offset[0], fresh[code - 1]);
        assert_int_equal(seam.e_offset[0], fresh[code - 1]);
        assert_false(segzstd__seam_is_settled(&seam));
    }
}

/* Without literals before it, code 3 is the last offset less one: here of an
 * offset that D knows, so the code can stay. */
static void test_rewrite__last_offset_less_one__known_is_copied(void **state)
{
    static const uint32_t offset_values[4] = {3 + 9, 3};
    struct hand_block hand;
    struct segzstd__seam seam;
    struct run run;

    (void)state;
    run_new(&run);
    hand_block(&hand, 2, offset_values);
    hand.seq[1].literals = 0;
    run_add(&run, &hand.block);
    check_run(&run, &seam, 1, 0, 0);
    assert_int_equal(seam.d_offset[0], 8);
    assert_int_equal(seam.d_offset[1], 9);
    assert_int_equal(seam.d_offset[2], 0);
}

/* A block that is written again has the predefined offsets table, so that D
 * cannot repeat the one that the encoder wrote. A table that the next block
 * brings is the same for both. */
static void test_rewrite__offsets_table_lost__is_not_repeated(void **state)
{
    static const uint32_t first[4] = {3 + 20, 3 + 21, 3 + 22, 3};
    static const uint32_t later[4] = {3 + 20, 3 + 21};
    struct hand_block hand;
    struct segzstd__seam seam;
    struct run run;

    (void)state;
    run_new(&run);
    hand_block(&hand, 4, first);
    hand.seq[0].offset_value = 2; /* makes it written again */
    hand.block.mode[TABLE_OFFSETS] = TABLE_FSE;
    run_add(&run, &hand.block);
    hand_block(&hand, 2, later);
    hand.block.mode[TABLE_OFFSETS] = TABLE_REPEAT;
    run_add(&run, &hand.block);
    hand.block.mode[TABLE_OFFSETS] = TABLE_FSE;
    run_add(&run, &hand.block);
    check_run(&run, &seam, 1, 2, 0);
    assert_true(segzstd__seam_is_settled(&seam));
}

/* A block that D gets as a raw one brings D no table of any kind. */
static void test_rewrite__tables_of_a_stored_block__not_repeated(void **state)
{
    static const uint32_t first[4] = {1};
    static const uint32_t later[4] = {3 + 5, 3 + 6, 3 + 7};
    enum table_kind kinds[] = {TABLE_LITERALS, TABLE_MATCHES};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct hand_block hand;
        struct segzstd__seam seam;
        struct run run;

        run_new(&run);
        /* Longer than its content of 24 bytes. */
        hand_block(&hand, 1, first);
        hand.seq[0].match = 3;
        hand.block.literals_len = 21;
        hand.block.mode[kinds[i]] = TABLE_FSE;
        run_add(&run, &hand.block);
        hand_block(&hand, 3, later);
        for (int k = 0; k < 3; k++) { /* codes that the table has */
            hand.seq[k].literals = 20;
            hand.seq[k].match = 3;
        }
        hand.block.mode[kinds[i]] = TABLE_REPEAT;
        run_add(&run, &hand.block);
        check_run(&run, &seam, 0, 0, 2);
        assert_false(segzstd__seam_is_settled(&seam));
    }
}

/* The Huffman table of a stored block is not there for a treeless one. */
static void test_rewrite__huffman_table_lost__treeless_is_stored(void **state)
{
    static const uint32_t first[4] = {1};
    static const uint32_t later[4] = {3 + 5, 3 + 6, 3 + 7};
    struct hand_block hand;
    struct segzstd__seam seam;
    struct run run;

    (void)state;
    run_new(&run);
    hand_block(&hand, 1, first);
    hand.seq[0] = (struct make_sequence){1, 3, 1};
    hand.block.literals_len = 1;
    hand.block.literals_format = 0;
    hand.block.literals_type = LITERALS_COMPRESSED;
    run_add(&run, &hand.block);
    hand_block(&hand, 3, later);
    hand.block.literals_format = 0;
    hand.block.literals_type = LITERALS_TREELESS;
    run_add(&run, &hand.block);
    /* One without sequences as well. */
    hand.block.count = 0;
    run_add(&run, &hand.block);
    hand.block.count = 3;
    hand.block.literals_type = LITERALS_COMPRESSED;
    run_add(&run, &hand.block);
    check_run(&run, &seam, 1, 0, 3);
    assert_true(segzstd__seam_is_settled(&seam));
}

/* Offsets are settled, but a table is not: the encoder may still repeat it. */
static void test_is_settled__a_table_missing__not_yet(void **state)
{
    static const uint32_t first[4] = {1};
    static const uint32_t later[4] = {3 + 5, 3 + 6, 3 + 7};
    struct hand_block hand;
    struct segzstd__seam seam;
    struct run run;

    (void)state;
    run_new(&run);
    hand_block(&hand, 1, first);
    hand.seq[0] = (struct make_sequence){1, 3, 1};
    hand.block.literals_len = 1;
    hand.block.literals_format = 0;
    hand.block.literals_type = LITERALS_COMPRESSED;
    run_add(&run, &hand.block);
    run_add(&run, hand_block(&hand, 3, later)); /* raw literals */
    check_run(&run, &seam, 1, 0, 1);
    assert_memory_equal(seam.d_offset, seam.e_offset, sizeof(seam.d_offset));
    assert_false(segzstd__seam_is_settled(&seam));
}

/* What follows in the same call is not looked at. */
static void test_rewrite__after_settling__the_rest_is_copied(void **state)
{
    static const uint32_t offset_values[4] = {3 + 5, 3 + 6, 3 + 7};
    static const unsigned char rest[] = "not a block at all";
    struct hand_block hand;
    struct segzstd__seam seam;
    struct segzstd__mem mem;
    struct run run;
    unsigned char *dst;
    size_t len;

    (void)state;
    segzstd__mem_init(&mem, NULL, 0, false);
    run_new(&run);
    run_add(&run, hand_block(&hand, 3, offset_values));
    memcpy(run.bytes + run.len, rest, sizeof(rest));
    for (int i = 0; i < 2; i++) {
        /* Once while settling, once when settled before. */
        size_t skip = i == 0 ? 0 : run.len;
        size_t want = run.len + sizeof(rest) - skip;

        if (i == 0)
            segzstd__seam_init(&seam);
        assert_int_equal(rewrite_exactly(&seam, &mem, run.bytes + skip, want,
                                         run.content, 1000, &dst, &len),
                         0);
        assert_true(segzstd__seam_is_settled(&seam));
        assert_int_equal(len, want);
        assert_memory_equal(dst, run.bytes + skip, want);
        free(dst);
    }
    run_free(&run);
}

/* Raw and RLE blocks read and change nothing. */
static void test_rewrite__raw_and_rle_blocks__pass(void **state)
{
    static const unsigned char blocks[] = {0x18, 0, 0,   'a',  'b', 'c', 0x22,
                                           0,    0, 'd', 0x00, 0,   0};
    static const unsigned char content[] = "abcdddd";
    struct segzstd__seam seam;
    struct segzstd__mem mem;
    unsigned char *dst;
    size_t len;

    (void)state;
    segzstd__mem_init(&mem, NULL, 0, false);
    segzstd__seam_init(&seam);
    assert_int_equal(rewrite_exactly(&seam, &mem, blocks, sizeof(blocks),
                                     content, 7, &dst, &len),
                     0);
    assert_int_equal(len, sizeof(blocks));
    assert_memory_equal(dst, blocks, len);
    expect_blocks(&seam, 0, 0, 0);
    assert_false(segzstd__seam_is_settled(&seam));
    free(dst);
}

static void test_rewrite__nothing__gives_nothing(void **state)
{
    struct segzstd__seam seam;
    struct segzstd__mem mem;
    size_t len = 1;

    (void)state;
    segzstd__mem_init(&mem, NULL, 0, false);
    segzstd__seam_init(&seam);
    assert_int_equal(
        segzstd__seam_rewrite(&seam, &mem, NULL, 0, &len, NULL, 0, NULL, 0), 0);
    assert_int_equal(len, 0);
}

/* The predefined table ends with offsets of half a GiB. The content cannot be
 * there in a test, and needs not be: only its length is looked at. */
static void test_rewrite__offset_beyond_predefined_codes__stored(void **state)
{
    static const uint32_t within[4] = {((uint32_t)1 << 29) - 1, 2};
    static const uint32_t beyond[4] = {(uint32_t)1 << 29, 2};
    struct segzstd__mem mem;

    (void)state;
    segzstd__mem_init(&mem, NULL, 0, false);
    for (int i = 0; i < 2; i++) {
        struct hand_block hand;
        struct segzstd__seam seam;
        struct run run;
        unsigned char *dst;
        size_t len;

        run_new(&run);
        hand_block(&hand, 2, i == 0 ? within : beyond);
        hand.block.mode[TABLE_OFFSETS] = TABLE_FSE;
        run_add(&run, &hand.block);
        data_fill(run.content, run.maker.position, DATA_RANDOM, 41);
        segzstd__seam_init(&seam);
        assert_int_equal(rewrite_exactly(&seam, &mem, run.bytes, run.len,
                                         run.content, run.maker.position, &dst,
                                         &len),
                         0);
        expect_blocks(&seam, 0, i == 0, i == 1);
        if (i == 1) {
            assert_int_equal(len, BLOCK_HEADER_BYTES + run.maker.position);
            assert_memory_equal(dst + BLOCK_HEADER_BYTES, run.content,
                                run.maker.position);
        }
        free(dst);
        run_free(&run);
    }
}

/* As many sequences as a block can have, all to be written again. */
static void test_rewrite__most_sequences__written_again(void **state)
{
    struct make_sequence *seq = calloc(SEQUENCES_MAX, sizeof(*seq));
    static const unsigned char literals[] = "ab";
    struct make_block block = {0};
    struct segzstd__seam seam;
    struct run run;

    (void)state;
    assert_non_null(seq);
    for (size_t i = 0; i < SEQUENCES_MAX; i++)
        seq[i] = (struct make_sequence){0, 3, 4 + (uint32_t)(i * i) % 2};
    seq[0] = (struct make_sequence){2, 3, 1};
    seq[7].offset_value = 2;
    block.literals = literals;
    block.literals_len = 2;
    block.seq = seq;
    block.count = SEQUENCES_MAX;
    block.mode[TABLE_LITERALS] = TABLE_FSE;
    block.mode[TABLE_OFFSETS] = TABLE_FSE;
    block.mode[TABLE_MATCHES] = TABLE_RLE;
    run_new(&run);
    run_add(&run, &block);
    check_run(&run, &seam, 0, 1, 0);
    free(seq);
}

/* ----------------------------------------------------------------------- */
/* Errors                                                                  */

/* Blocks that are stored, written again and copied, none of which settles. */
static void run_of_all_paths(struct run *run)
{
    static const uint32_t fresh[4] = {1};
    static const uint32_t mixed[4] = {3 + 5, 2};
    static const uint32_t later[4] = {3, 1, 2};
    static const uint32_t known[4] = {1, 2};
    struct hand_block hand;

    run_new(run);
    hand_block(&hand, 1, fresh);
    hand.seq[0] = (struct make_sequence){1, 3, 1};
    hand.block.literals_type = LITERALS_RLE;
    hand.block.literals_len = 1;
    run_add(run, &hand.block);
    hand_block(&hand, 2, mixed);
    hand.block.literals_type = LITERALS_COMPRESSED;
    for (int kind = 0; kind < TABLES_COUNT; kind++)
        hand.block.mode[kind] = TABLE_FSE;
    run_add(run, &hand.block);
    hand_block(&hand, 2, known);
    hand.block.literals_type = LITERALS_TREELESS;
    run_add(run, &hand.block);
    hand_block(&hand, 3, later);
    hand.block.mode[TABLE_OFFSETS] = TABLE_FSE;
    run_add(run, &hand.block);
    run_decode(run);
}

static void test_rewrite__run_of_all_paths__takes_them(void **state)
{
    struct segzstd__seam seam;
    struct run run;

    (void)state;
    run_of_all_paths(&run);
    check_run(&run, &seam, 1, 2, 1);
    assert_false(segzstd__seam_is_settled(&seam));
}

/* An error, with the seam as it was before. */
static void expect_refused(struct segzstd__mem *mem, const unsigned char *src,
                           size_t len, const unsigned char *content,
                           size_t content_len, int want)
{
    struct segzstd__seam seam, before;
    unsigned char *dst;
    size_t dst_len;

    segzstd__seam_init(&seam);
    before = seam;
    assert_int_equal(rewrite_exactly(&seam, mem, src, len, content, content_len,
                                     &dst, &dst_len),
                     want);
    assert_memory_equal(&seam, &before, sizeof(seam));
    assert_int_equal(atomic_load(&mem->used), 0);
    free(dst);
}

static void test_rewrite__every_truncation__refused(void **state)
{
    struct segzstd__mem mem;
    struct run run;

    (void)state;
    segzstd__mem_init(&mem, NULL, 0, false);
    run_of_all_paths(&run);
    for (size_t len = 0; len < run.len; len++)
        expect_refused(&mem, run.bytes, len, run.content, run.content_len,
                       SEGZSTD_ERR_INTERNAL);
    run_free(&run);
}

static void test_rewrite__content_of_another_length__refused(void **state)
{
    struct segzstd__mem mem;
    struct run run;

    (void)state;
    segzstd__mem_init(&mem, NULL, 0, false);
    run_of_all_paths(&run);
    for (size_t len = 0; len < run.content_len; len++)
        expect_refused(&mem, run.bytes, run.len, run.content, len,
                       SEGZSTD_ERR_INTERNAL);
    expect_refused(&mem, run.bytes, run.len, run.content, run.content_len + 1,
                   SEGZSTD_ERR_INTERNAL);
    run_free(&run);
}

static void test_rewrite__last_block_of_a_frame__refused(void **state)
{
    static const unsigned char last[] = {0x01, 0, 0};
    struct segzstd__mem mem;

    (void)state;
    segzstd__mem_init(&mem, NULL, 0, false);
    expect_refused(&mem, last, sizeof(last), last, 0, SEGZSTD_ERR_INTERNAL);
}

static void test_rewrite__treeless_without_a_table__refused(void **state)
{
    static const uint32_t offset_values[4] = {1};
    struct segzstd__mem mem;
    struct hand_block hand;
    struct run run;

    (void)state;
    segzstd__mem_init(&mem, NULL, 0, false);
    run_new(&run);
    run.maker.huffman = true; /* though it is not */
    hand_block(&hand, 1, offset_values);
    hand.block.literals_type = LITERALS_TREELESS;
    run_add(&run, &hand.block);
    data_fill(run.content, run.maker.position, DATA_ZEROS, 0);
    expect_refused(&mem, run.bytes, run.len, run.content, run.maker.position,
                   SEGZSTD_ERR_INTERNAL);
    run_free(&run);
}

/* The last offset less one, when that was 1. */
static void test_rewrite__offset_of_zero__refused(void **state)
{
    static const uint32_t offset_values[4] = {3 + 1, 3};
    struct segzstd__mem mem;
    struct hand_block hand;
    struct run run;

    (void)state;
    segzstd__mem_init(&mem, NULL, 0, false);
    run_new(&run);
    hand_block(&hand, 2, offset_values);
    hand.seq[1].literals = 0;
    run_add(&run, &hand.block);
    data_fill(run.content, run.maker.position, DATA_ZEROS, 0);
    expect_refused(&mem, run.bytes, run.len, run.content, run.maker.position,
                   SEGZSTD_ERR_INTERNAL);
    run_free(&run);
}

/* More literals used than there are, and more content than a block may have. */
static void test_rewrite__lengths_that_do_not_fit__refused(void **state)
{
    static const uint32_t offset_values[4] = {4, 4};
    struct segzstd__mem mem;

    (void)state;
    segzstd__mem_init(&mem, NULL, 0, false);
    for (int i = 0; i < 2; i++) {
        struct hand_block hand;
        struct run run;

        run_new(&run);
        hand_block(&hand, 2, offset_values);
        if (i == 0)
            hand.block.literals_len = 40; /* 20 and 21 are used */
        else
            hand.seq[1].match = BLOCK_BYTES_MAX - 200 - 30 + 1;
        run_add(&run, &hand.block);
        data_fill(run.content, run.maker.position, DATA_ZEROS, 0);
        expect_refused(&mem, run.bytes, run.len, run.content,
                       run.maker.position, SEGZSTD_ERR_INTERNAL);
        run_free(&run);
    }
}

/* Any byte changed to any other: refused, or rewritten within the bound. */
static void test_rewrite__every_changed_byte__stays_inside(void **state)
{
    size_t step = env_pick("every n-th value of a byte: n", 1, 32);
    size_t valid = 0, broken = 0;
    struct segzstd__mem mem;
    struct run run;

    (void)state;
    segzstd__mem_init(&mem, NULL, 0, false);
    run_of_all_paths(&run);
    for (size_t i = 0; i < run.len; i++) {
        unsigned char before = run.bytes[i];

        for (size_t value = 0; value < 256; value += step) {
            struct segzstd__seam seam;
            unsigned char *dst;
            size_t len;
            int err;

            run.bytes[i] = (unsigned char)value;
            segzstd__seam_init(&seam);
            err = rewrite_exactly(&seam, &mem, run.bytes, run.len, run.content,
                                  run.content_len, &dst, &len);
            free(dst);
            if (err != 0)
                assert_int_equal(err, SEGZSTD_ERR_INTERNAL);
            valid += err == 0;
            broken += err != 0;
        }
        run.bytes[i] = before;
    }
    assert_true(valid > 0);
    assert_true(broken > 0);
    run_free(&run);
}

/* Each block that is written again wants memory once; a failure is no harm, and
 * the same call may be made again. */
static void test_rewrite__no_memory__changes_nothing(void **state)
{
    struct test_alloc alloc;
    struct segzstd__mem mem;
    struct segzstd__seam seam;
    struct run run;
    unsigned char *dst;
    size_t len, refusals;

    (void)state;
    alloc_init(&alloc);
    segzstd__mem_init(&mem, &alloc.api, 0, false);
    run_of_all_paths(&run);
    for (refusals = 0;; refusals++) {
        uint64_t failed = alloc_failed(&alloc);

        alloc_fail(&alloc, refusals, 1);
        segzstd__seam_init(&seam);
        if (rewrite_exactly(&seam, &mem, run.bytes, run.len, run.content,
                            run.content_len, &dst, &len) == 0)
            break;
        free(dst);
        assert_int_equal(alloc_failed(&alloc), failed + 1);
        alloc_fail(&alloc, refusals, 1);
        expect_refused(&mem, run.bytes, run.len, run.content, run.content_len,
                       SEGZSTD_ERR_NOMEM);
        assert_int_equal(alloc_bytes(&alloc), 0);
    }
    assert_true(refusals > 0);
    free(dst);
    run_free(&run);
    expect_no_fault(alloc_done(&alloc));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rewrite__each_kind_of_data__decodes),
        cmocka_unit_test(test_rewrite__own_executable__decodes),
        cmocka_unit_test(test_rewrite__tiny_segments__decode),
        cmocka_unit_test(test_rewrite__random_blocks__decode_after_any_others),
        cmocka_unit_test(
            test_rewrite__three_offsets_of_its_own__copied_and_settled),
        cmocka_unit_test(test_rewrite__offsets_of_a_fresh_frame__spelled_out),
        cmocka_unit_test(test_rewrite__last_offset_less_one__known_is_copied),
        cmocka_unit_test(test_rewrite__offsets_table_lost__is_not_repeated),
        cmocka_unit_test(test_rewrite__tables_of_a_stored_block__not_repeated),
        cmocka_unit_test(test_rewrite__huffman_table_lost__treeless_is_stored),
        cmocka_unit_test(test_is_settled__a_table_missing__not_yet),
        cmocka_unit_test(test_rewrite__after_settling__the_rest_is_copied),
        cmocka_unit_test(test_rewrite__raw_and_rle_blocks__pass),
        cmocka_unit_test(test_rewrite__nothing__gives_nothing),
        cmocka_unit_test(test_rewrite__offset_beyond_predefined_codes__stored),
        cmocka_unit_test(test_rewrite__most_sequences__written_again),
        cmocka_unit_test(test_rewrite__run_of_all_paths__takes_them),
        cmocka_unit_test(test_rewrite__every_truncation__refused),
        cmocka_unit_test(test_rewrite__content_of_another_length__refused),
        cmocka_unit_test(test_rewrite__last_block_of_a_frame__refused),
        cmocka_unit_test(test_rewrite__treeless_without_a_table__refused),
        cmocka_unit_test(test_rewrite__offset_of_zero__refused),
        cmocka_unit_test(test_rewrite__lengths_that_do_not_fit__refused),
        cmocka_unit_test(test_rewrite__every_changed_byte__stays_inside),
        cmocka_unit_test(test_rewrite__no_memory__changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
