/*
 * One stream, one thread: what goes in comes out, whatever its size, level and
 * the way it is pushed; and what is refused leaves the stream as it was.
 */
#include <stdlib.h>
#include <string.h>

#include "support/env.h"
#include "support/expect.h"

enum {
    KIB = 1 << 10,
    MIB = 1 << 20,
    SEGMENT = 64 * KIB, /* smallest that is allowed; half a block */
    SOURCES = 64,
    SEED = 1
};

static segzstd_stream_options fixed_options(int level, size_t segment_bytes)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

    options.level = level;
    options.segment_bytes = segment_bytes;
    return options;
}

enum way { COPY, REF, READER, WAYS };

static int push_in_way(struct drive *d, enum way way,
                       struct drive_source *source, segzstd_op op)
{
    if (way == COPY)
        return drive_push(d, source->content, (size_t)source->len, op);
    if (way == REF)
        return drive_push_ref(d, source->content, (size_t)source->len, op);
    return drive_push_source(d, source, source->len, op);
}

/* Compresses content that lies in memory, and has the frame judged. */
static void round_trip(segzstd_cache *cache,
                       const segzstd_stream_options *options,
                       const void *content, size_t len, enum way way,
                       size_t push_bytes)
{
    struct drive_source source = {content, len, 0, 0, NULL};
    segzstd_stream *stream = expect_stream(cache, options);
    struct drive d;

    drive_init(&d, stream, SEED);
    d.push_bytes = push_bytes;
    d.order = DRIVE_ANY;
    assert_int_equal(push_in_way(&d, way, &source, SEGZSTD_END), 0);
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, content, len);
    segzstd_stream_free(stream);
    drive_free(&d);
}

/* Fixed and adaptive. */
static void round_trip_both(segzstd_cache *cache, int level,
                            const void *content, size_t len, enum way way,
                            size_t push_bytes)
{
    segzstd_stream_options options = fixed_options(level, SEGMENT);

    round_trip(cache, &options, content, len, way, push_bytes);
    options.segment_bytes = 0;
    round_trip(cache, &options, content, len, way, push_bytes);
}

/* ------------------------------------------------------------------------ */

/* Around powers of two lie the borders of header fields, blocks, segments and
 * windows. */
static void test_sizes__around_borders__round_trip(void **state)
{
    size_t top = env_pick("largest content", 4 * MIB, 256 * KIB);
    segzstd_cache *cache = expect_cache(3, NULL);
    unsigned char *content = data_new(top + 1, DATA_MIXTURE, SEED);

    (void)state;
    for (size_t size = 1; size <= top; size *= 2) {
        for (size_t len = size - 1; len <= size + 1; len++)
            round_trip_both(cache, 1, content, len, COPY, SIZE_MAX);
    }
    for (size_t n = 3; n <= 10; n++) {
        for (size_t len = n * SEGMENT - 1; len <= n * SEGMENT + 1; len++) {
            if (len <= top)
                round_trip_both(cache, 3, content, len, COPY, SIZE_MAX);
        }
    }
    free(content);
    segzstd_cache_free(cache);
}

static void test_sizes__around_a_small_window__round_trip(void **state)
{
    static const unsigned logs[] = {10, 12, 16, 17, 18, 20};
    segzstd_cache *cache = expect_cache(3, NULL);
    unsigned char *content = data_new(2 * MIB, DATA_JSON, SEED);

    (void)state;
    for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++) {
        size_t window = (size_t)1 << logs[i];

        for (size_t len = window - 1; len <= window + 1; len++) {
            segzstd_stream_options options = fixed_options(5, SEGMENT);
            struct drive d;
            segzstd_stream *stream;
            struct oracle_want want = {content, len,     NULL,
                                       0,       logs[i], ORACLE_SIZE_ANY};

            options.window_log = logs[i];
            stream = expect_stream(cache, &options);
            drive_init(&d, stream, len);
            assert_int_equal(drive_push(&d, content, len, SEGZSTD_END), 0);
            assert_int_equal(drive_end(&d), 0);
            expect_no_fault(d.fault);
            expect_no_fault(oracle_check(d.out, d.out_len, &want));
            segzstd_stream_free(stream);
            drive_free(&d);
        }
    }
    free(content);
    segzstd_cache_free(cache);
}

static void test_sizes__up_to_32_mib__round_trip(void **state)
{
    size_t top = env_pick("largest content", 32 * MIB, 512 * KIB);
    segzstd_cache *cache = expect_cache(4, NULL);
    unsigned char *content = data_new(top, DATA_MIXTURE, SEED);
    segzstd_stream_options options = fixed_options(1, MIB);

    (void)state;
    round_trip(cache, &options, content, top, COPY, 0);
    round_trip(cache, &options, content, top - 1, READER, 0);
    options.segment_bytes = 0;
    round_trip(cache, &options, content, top, REF, MIB);
    round_trip(cache, &options, content, top / 2 + 1, READER, 0);
    free(content);
    segzstd_cache_free(cache);
}

/* Everything that libzstd offers, on contents that make each of its
 * strategies work across some cuts. */
static void test_levels__all__round_trip(void **state)
{
    size_t len = env_pick("content", 200 * KIB, 70 * KIB);
    int top = (int)env_pick("highest level", (size_t)segzstd_max_level(), 9);
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *text = data_new(len, DATA_JSON, SEED);
    unsigned char *mixture = data_new(len, DATA_MIXTURE, SEED);

    (void)state;
    for (int level = -7; level <= top; level++) {
        segzstd_stream_options options = fixed_options(level, SEGMENT);

        options.size = len; /* keeps the tables small */
        round_trip(cache, &options, text, len, COPY, SIZE_MAX);
        round_trip(cache, &options, mixture, len, REF, SIZE_MAX);
        options.segment_bytes = 0;
        round_trip(cache, &options, mixture, len, COPY, 0);
    }
    round_trip_both(cache, segzstd_min_level(), text, len, COPY, SIZE_MAX);
    free(text);
    free(mixture);
    segzstd_cache_free(cache);
}

static void test_kinds__all__round_trip(void **state)
{
    static const int levels[] = {-3, 1, 3, 5, 7, 13, 17};
    size_t len = env_pick("content", 400 * KIB, 130 * KIB);
    size_t level_count = env_pick("levels", 7, 3);
    segzstd_cache *cache = expect_cache(3, NULL);

    (void)state;
    for (int kind = 0; kind < DATA_KINDS; kind++) {
        unsigned char *content = data_new(len, (enum data_kind)kind, SEED);

        for (size_t i = 0; i < level_count; i++)
            round_trip_both(cache, levels[i], content, len, COPY, SIZE_MAX);
        free(content);
    }
    segzstd_cache_free(cache);
}

/* Without an overlap the first blocks of a segment read the state that the
 * last segment left. */
static void test_overlap__any__round_trip(void **state)
{
    static const size_t overlaps[] = {
        SEGZSTD_OVERLAP_NONE, 1, 100, 64 * KIB, MIB, 64 * MIB};
    size_t len = env_pick("content", 700 * KIB, 200 * KIB);
    int step = (int)env_pick("each so many-th kind", 1, 3);
    segzstd_cache *cache = expect_cache(3, NULL);

    (void)state;
    for (int kind = 0; kind < DATA_KINDS; kind += step) {
        unsigned char *content = data_new(len, (enum data_kind)kind, SEED);

        for (size_t i = 0; i < sizeof(overlaps) / sizeof(overlaps[0]); i++) {
            segzstd_stream_options options = fixed_options(4, SEGMENT);

            options.overlap_bytes = overlaps[i];
            round_trip(cache, &options, content, len, COPY, SIZE_MAX);
            options.level = 6;
            round_trip(cache, &options, content, len, READER, 0);
        }
        free(content);
    }
    segzstd_cache_free(cache);
}

static void test_push__pieces_of_1_byte_to_1_mib__round_trip(void **state)
{
    static const size_t pieces[] = {1, 2, 7, 100, 4095, 65536, 65537, MIB};
    segzstd_cache *cache = expect_cache(3, NULL);
    unsigned char *content = data_new(2 * MIB, DATA_TEXT, SEED);

    (void)state;
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        size_t len = pieces[i] < 100 ? 150 * KIB : 2 * MIB - 77;

        if (env_short())
            len /= 32;
        round_trip_both(cache, 1, content, len, COPY, pieces[i]);
        round_trip_both(cache, 1, content, len / 2, REF, pieces[i]);
    }
    free(content);
    segzstd_cache_free(cache);
}

/* Lent memory is scribbled over as soon as it is released, so a release that
 * comes too early breaks the frame, and a late one is seen by the count. */
static void test_push_ref__mixed_with_copies_and_readers__keeps_order(void **s)
{
    size_t len = env_pick("content", 3 * MIB, 300 * KIB);
    segzstd_cache *cache = expect_cache(3, NULL);
    unsigned char *content = data_new(len, DATA_MIXTURE, SEED);
    struct drive_source sources[SOURCES];

    (void)s;
    for (size_t segment = 0; segment <= SEGMENT; segment += SEGMENT) {
        segzstd_stream_options options = fixed_options(2, segment);
        segzstd_stream *stream = expect_stream(cache, &options);
        size_t at = 0, used = 0;
        struct drive d;

        drive_init(&d, stream, SEED);
        while (at < len) {
            size_t n = rng_spread(&d.rng, 300 * KIB);
            size_t ways = used < SOURCES ? WAYS : READER;
            enum way way = (enum way)rng_below(&d.rng, ways);
            struct drive_source one, *source = &one;

            if (way == READER)
                source = &sources[used++];
            n = n < len - at ? n : len - at;
            *source = (struct drive_source){content + at, n, 0, 0, NULL};
            assert_int_equal(push_in_way(&d, way, source, SEGZSTD_CONTINUE), 0);
            at += n;
        }
        assert_int_equal(drive_end(&d), 0);
        expect_frame(&d, content, len);
        segzstd_stream_free(stream);
        drive_free(&d);
    }
    free(content);
    segzstd_cache_free(cache);
}

/* Freed before anything ran: all that was lent comes back. */
static void test_push_ref__stream_freed_at_once__is_released(void **state)
{
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(MIB, DATA_TEXT, SEED);
    struct drive_source source = {content, MIB, 0, 0, NULL};
    segzstd_stream *stream = expect_stream(cache, NULL);
    struct drive d;

    (void)state;
    drive_init(&d, stream, SEED);
    assert_int_equal(drive_push_ref(&d, content, MIB, SEGZSTD_CONTINUE), 0);
    assert_int_equal(drive_push_source(&d, &source, MIB, SEGZSTD_CONTINUE), 0);
    drive_give_up(&d);
    segzstd_stream_free(stream);
    assert_int_equal(d.refs_lent, 2);
    assert_int_equal(d.refs_back, 2);
    drive_free(&d);
    free(content);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */
/* Readers                                                                  */

static void test_reader__short_reads__are_gone_on_with(void **state)
{
    static const size_t read_max[] = {1, 1000, 65537};
    segzstd_cache *cache = expect_cache(3, NULL);
    unsigned char *content = data_new(MIB, DATA_JSON, SEED);

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        size_t len = read_max[i] == 1 ? 150 * KIB : MIB;
        struct drive_source source = {content, len, read_max[i], 0, NULL};

        for (size_t segment = 0; segment <= SEGMENT; segment += SEGMENT) {
            segzstd_stream_options options = fixed_options(1, segment);
            segzstd_stream *stream = expect_stream(cache, &options);
            struct drive d;

            drive_init(&d, stream, SEED);
            assert_int_equal(drive_push_source(&d, &source, len, SEGZSTD_END),
                             0);
            assert_int_equal(drive_end(&d), 0);
            expect_frame(&d, content, len);
            segzstd_stream_free(stream);
            drive_free(&d);
        }
    }
    free(content);
    segzstd_cache_free(cache);
}

/* The error must come, stay, and come alone: output before it is good. */
static void expect_read_error(segzstd_cache *cache, size_t segment_bytes,
                              struct drive_source *source, uint64_t promised,
                              const unsigned char *content, size_t len)
{
    segzstd_stream_options options = fixed_options(1, segment_bytes);
    segzstd_stream *stream = expect_stream(cache, &options);
    struct oracle_live live;
    struct drive d;
    int rc;

    oracle_live_init(&live, content, len);
    drive_init(&d, stream, SEED);
    d.live = &live;
    rc = drive_push_source(&d, source, promised, SEGZSTD_END);
    if (rc == 0)
        rc = drive_rest(&d);
    assert_int_equal(rc, SEGZSTD_ERR_READ);
    assert_int_equal(segzstd_stream_error(stream), SEGZSTD_ERR_READ);
    drive_give_up(&d);
    drive_read(&d);
    expect_no_fault(d.fault);
    assert_false(live.ended);
    assert_false(segzstd_stream_is_done(stream));
    assert_int_equal(drive_take(&d), SEGZSTD_ERR_READ);
    segzstd_stream_free(stream);
    assert_int_equal(d.refs_back, 1);
    oracle_live_free(&live);
    drive_free(&d);
}

static void test_reader__that_fails__fails_the_stream(void **state)
{
    static const uint64_t places[] = {1, 65536, 65537, 300000, 599999};
    size_t len = 600 * 1000;
    segzstd_cache *cache = expect_cache(3, NULL);
    unsigned char *content = data_new(len, DATA_TEXT, SEED);

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        struct drive_source source = {content, len, 0, places[i], NULL};

        expect_read_error(cache, 0, &source, len, content, len);
        expect_read_error(cache, SEGMENT, &source, len, content, len);
    }
    free(content);
    segzstd_cache_free(cache);
}

static void test_reader__that_ends_early__fails_the_stream(void **state)
{
    static const size_t lens[] = {0, 1, 65535, 65536, 65537, 599999};
    size_t promised = 600 * 1000;
    segzstd_cache *cache = expect_cache(3, NULL);
    unsigned char *content = data_new(promised, DATA_TEXT, SEED);

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        struct drive_source source = {content, lens[i], 0, 0, NULL};

        expect_read_error(cache, 0, &source, promised, content, promised);
        expect_read_error(cache, SEGMENT, &source, promised, content, promised);
    }
    free(content);
    segzstd_cache_free(cache);
}

static void test_reader__of_nothing__ends_an_empty_frame(void **state)
{
    segzstd_cache *cache = expect_cache(2, NULL);

    (void)state;
    round_trip_both(cache, 3, "", 0, READER, 0);
    round_trip_both(cache, 3, "", 0, REF, 0);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */
/* What the frame header says                                               */

static struct oracle_header header_of(const struct drive *d)
{
    struct oracle_header header;

    assert_true(oracle_read_header(d->out, d->out_len, &header));
    return header;
}

static void test_checksum__wanted__is_there_and_right(void **state)
{
    static const size_t lens[] = {0, 1, 1000, SEGMENT + 1, 500 * KIB};
    segzstd_cache *cache = expect_cache(3, NULL);
    unsigned char *content = data_new(500 * KIB, DATA_JSON, SEED);
    unsigned char *scratch = data_new(500 * KIB, DATA_ZEROS, SEED);

    (void)state;
    for (size_t i = 0; i < 15; i++) {
        size_t len = lens[i % 5];
        struct drive_source source = {content, len, 0, 0, NULL};
        segzstd_stream_options options = fixed_options(3, SEGMENT);
        segzstd_stream *stream;
        struct drive d;

        options.checksum = 1;
        stream = expect_stream(cache, &options);
        drive_init(&d, stream, i);
        d.order = DRIVE_ANY;
        assert_int_equal(
            push_in_way(&d, (enum way)(i / 5), &source, SEGZSTD_END), 0);
        assert_int_equal(drive_end(&d), 0);
        assert_true(header_of(&d).checksum);
        expect_frame(&d, content, len);
        /* The decoder does look at it. */
        d.out[d.out_len - 1] ^= 1;
        assert_true(
            ZSTD_isError(ZSTD_decompress(scratch, len, d.out, d.out_len)));
        segzstd_stream_free(stream);
        drive_free(&d);
    }
    free(scratch);
    free(content);
    segzstd_cache_free(cache);
}

static void test_checksum__not_wanted__is_not_there(void **state)
{
    segzstd_cache *cache = expect_cache(1, NULL);
    segzstd_stream *stream = expect_stream(cache, NULL);
    struct drive d;

    (void)state;
    drive_init(&d, stream, SEED);
    assert_int_equal(drive_push(&d, "abc", 3, SEGZSTD_END), 0);
    assert_int_equal(drive_end(&d), 0);
    assert_false(header_of(&d).checksum);
    expect_frame(&d, "abc", 3);
    segzstd_stream_free(stream);
    drive_free(&d);
    segzstd_cache_free(cache);
}

/* Pushes in pieces, so that the header is written before the end is known. */
static void expect_size(segzstd_cache *cache,
                        const segzstd_stream_options *options,
                        const unsigned char *content, size_t len,
                        size_t push_bytes, enum oracle_size size)
{
    struct oracle_want want = {content, len, NULL, 0, 0, size};
    segzstd_stream *stream = expect_stream(cache, options);
    struct drive d;

    drive_init(&d, stream, SEED);
    d.push_bytes = push_bytes;
    assert_int_equal(drive_push(&d, content, len, SEGZSTD_CONTINUE), 0);
    assert_int_equal(drive_end(&d), 0);
    expect_no_fault(d.fault);
    assert_true(segzstd_stream_is_done(stream));
    expect_no_fault(oracle_check(d.out, d.out_len, &want));
    segzstd_stream_free(stream);
    drive_free(&d);
}

static void test_certain_size__met__is_declared(void **state)
{
    static const size_t lens[] = {0,     1,     255,   256,   257,
                                  65535, 65791, 65792, 65793, 400 * KIB};
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(400 * KIB, DATA_TEXT, SEED);

    (void)state;
    for (size_t i = 0; i < 10; i++) {
        segzstd_stream_options options = fixed_options(3, 0);

        options.size = lens[i];
        options.size_is_certain = 1;
        expect_size(cache, &options, content, lens[i], 10 * KIB,
                    ORACLE_SIZE_PRESENT);
        options.segment_bytes = SEGMENT;
        expect_size(cache, &options, content, lens[i], 10 * KIB,
                    ORACLE_SIZE_PRESENT);
    }
    free(content);
    segzstd_cache_free(cache);
}

static void test_size__only_a_hint__is_not_declared(void **state)
{
    static const uint64_t hints[] = {0,
                                     1,
                                     1000,
                                     399 * KIB,
                                     400 * KIB,
                                     1 << 30,
                                     (uint64_t)1 << 60,
                                     SEGZSTD_SIZE_UNKNOWN};
    size_t len = 400 * KIB;
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(len, DATA_TEXT, SEED);

    (void)state;
    for (size_t i = 0; i < 8; i++) {
        segzstd_stream_options options = fixed_options(3, 0);

        options.size = hints[i];
        expect_size(cache, &options, content, len, 100 * KIB,
                    ORACLE_SIZE_ABSENT);
        options.segment_bytes = SEGMENT;
        expect_size(cache, &options, content, len, 100 * KIB,
                    ORACLE_SIZE_ABSENT);
    }
    free(content);
    segzstd_cache_free(cache);
}

/* One push that ends: the length is known before the header is written. */
static void test_size__known_whole__is_declared(void **state)
{
    static const size_t lens[] = {0, 1, 2000, SEGMENT, 300 * KIB};
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(300 * KIB, DATA_TEXT, SEED);

    (void)state;
    for (size_t i = 0; i < 10; i++) {
        size_t len = lens[i % 5];
        segzstd_stream_options options = fixed_options(3, i < 5 ? 0 : MIB);
        struct oracle_want want = {content, len, NULL,
                                   0,       0,   ORACLE_SIZE_PRESENT};
        segzstd_stream *stream = expect_stream(cache, &options);
        struct drive d;

        drive_init(&d, stream, SEED);
        assert_int_equal(drive_push(&d, content, len, SEGZSTD_END), 0);
        assert_int_equal(drive_end(&d), 0);
        expect_no_fault(d.fault);
        expect_no_fault(oracle_check(d.out, d.out_len, &want));
        segzstd_stream_free(stream);
        drive_free(&d);
    }
    free(content);
    segzstd_cache_free(cache);
}

/* After SEGZSTD_ERR_SIZE: what was taken is compressed and read, and is not
 * a whole frame. */
static void expect_taken_is_readable(struct drive *d, struct oracle_live *live)
{
    segzstd_stream *stream = d->stream;

    assert_int_equal(segzstd_stream_error(stream), SEGZSTD_ERR_SIZE);
    for (;;) {
        segzstd_job *job = NULL;
        int rc = segzstd_stream_poll_job(stream, &job);

        assert_true(rc == 0 || rc == SEGZSTD_ERR_SIZE);
        if (job == NULL)
            break;
        segzstd_job_run(job);
        rc = segzstd_job_complete(job);
        assert_true(rc == 0 || rc == SEGZSTD_ERR_SIZE);
        drive_read(d);
    }
    drive_read(d);
    expect_no_fault(d->fault);
    assert_int_equal(live->done, d->taken);
    assert_false(live->ended);
    assert_false(segzstd_stream_is_done(stream));
    assert_int_equal(segzstd_stream_error(stream), SEGZSTD_ERR_SIZE);
}

/* `pushed` bytes where `certain` were promised. */
static void expect_size_error(segzstd_cache *cache, size_t segment_bytes,
                              const unsigned char *content, size_t certain,
                              size_t pushed, enum way way)
{
    struct drive_source source = {content, pushed, 0, 0, NULL};
    segzstd_stream_options options = fixed_options(1, segment_bytes);
    segzstd_stream *stream;
    struct oracle_live live;
    size_t taken;
    struct drive d;

    options.size = certain;
    options.size_is_certain = 1;
    stream = expect_stream(cache, &options);
    oracle_live_init(&live, content, pushed);
    drive_init(&d, stream, SEED);
    d.live = &live;
    d.push_bytes = 50 * KIB;
    assert_int_equal(push_in_way(&d, way, &source, SEGZSTD_END),
                     SEGZSTD_ERR_SIZE);
    while (d.job_count > 0)
        drive_run_one(&d);
    assert_true(d.taken <= certain);
    expect_taken_is_readable(&d, &live);
    assert_int_equal(
        segzstd_stream_push(stream, "x", 1, SEGZSTD_CONTINUE, &taken),
        SEGZSTD_ERR_SIZE);
    assert_int_equal(taken, 0);
    segzstd_stream_free(stream);
    assert_int_equal(d.refs_back, d.refs_lent);
    oracle_live_free(&live);
    drive_free(&d);
}

static void test_certain_size__not_met__is_an_error_at_end(void **state)
{
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(400 * KIB, DATA_TEXT, SEED);

    (void)state;
    for (int way = COPY; way < WAYS; way++) {
        for (size_t segment = 0; segment <= SEGMENT; segment += SEGMENT) {
            expect_size_error(cache, segment, content, 1, 0, (enum way)way);
            expect_size_error(cache, segment, content, 1000, 999,
                              (enum way)way);
            expect_size_error(cache, segment, content, 400 * KIB, 400 * KIB - 1,
                              (enum way)way);
        }
    }
    free(content);
    segzstd_cache_free(cache);
}

static void test_certain_size__exceeded__is_an_error_at_the_push(void **state)
{
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(400 * KIB, DATA_TEXT, SEED);

    (void)state;
    for (int way = COPY; way < WAYS; way++) {
        for (size_t segment = 0; segment <= SEGMENT; segment += SEGMENT) {
            expect_size_error(cache, segment, content, 0, 1, (enum way)way);
            expect_size_error(cache, segment, content, 999, 1000,
                              (enum way)way);
            expect_size_error(cache, segment, content, 300 * KIB, 400 * KIB,
                              (enum way)way);
        }
    }
    free(content);
    segzstd_cache_free(cache);
}

/* A push of nothing after a certain size that is met is still fine. */
static void test_certain_size__met_before_end__ends_well(void **state)
{
    segzstd_stream_options options = fixed_options(1, 0);
    segzstd_cache *cache = expect_cache(2, NULL);
    segzstd_stream *stream;
    struct drive d;

    (void)state;
    options.size = 5;
    options.size_is_certain = 1;
    stream = expect_stream(cache, &options);
    drive_init(&d, stream, SEED);
    assert_int_equal(drive_push(&d, "hello", 5, SEGZSTD_FLUSH), 0);
    assert_int_equal(drive_rest(&d), 0);
    assert_int_equal(drive_push(&d, NULL, 0, SEGZSTD_CONTINUE), 0);
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, "hello", 5);
    segzstd_stream_free(stream);
    drive_free(&d);
    segzstd_cache_free(cache);
}

static void expect_window(segzstd_cache *cache, int level, unsigned window_log,
                          const unsigned char *content, size_t len)
{
    segzstd_stream_options options = fixed_options(level, 256 * KIB);
    struct oracle_want want = {content, len,        NULL,
                               0,       window_log, ORACLE_SIZE_ANY};
    segzstd_stream_stats stats;
    segzstd_stream *stream;
    struct drive d;

    options.window_log = window_log;
    options.overlap_bytes = 64 * KIB;
    stream = expect_stream(cache, &options);
    drive_init(&d, stream, SEED);
    d.jobs_held = 1;
    d.push_bytes = 100 * KIB;
    assert_int_equal(drive_push(&d, content, len, SEGZSTD_CONTINUE), 0);
    assert_int_equal(drive_end(&d), 0);
    expect_no_fault(d.fault);
    expect_no_fault(oracle_check(d.out, d.out_len, &want));
    stats = expect_stream_stats(stream);
    assert_true(stats.window_log <= (window_log != 0 ? window_log : 23));
    assert_true(header_of(&d).window <= (uint64_t)1 << stats.window_log);
    assert_true(header_of(&d).window > (uint64_t)1 << stats.window_log >> 1);
    segzstd_stream_free(stream);
    drive_free(&d);
}

/* The size is not known, so the level's own window would be up to 128 MiB. */
static void test_window__high_levels__stay_under_the_cap(void **state)
{
    size_t len = env_pick("content", 600 * KIB, 270 * KIB);
    int top = (int)env_pick("highest level", 22, 20);
    segzstd_cache *cache = expect_cache(1, NULL);
    unsigned char *content = data_new(len, DATA_JSON, SEED);

    (void)state;
    for (int level = 20; level <= top; level++)
        expect_window(cache, level, 0, content, len);
    expect_window(cache, 19, 18, content, len);
    expect_window(cache, 9, 10, content, len);
    expect_window(cache, 1, 17, content, len);
    expect_window(cache, 3, 27, content, len);
    expect_window(cache, 1, 30, content, len);
    free(content);
    segzstd_cache_free(cache);
}

/* A repeat that is farther away than the cap must not be used by the second
 * encoder either, though it was shown the bytes. */
static void test_window__repeat_beyond_the_cap__is_not_used(void **state)
{
    size_t part = 512 * KIB;
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(2 * part, DATA_RANDOM, SEED);

    (void)state;
    memcpy(content + part, content, part);
    for (int level = 1; level <= 16; level += 5) {
        expect_window(cache, level, 19, content, 2 * part);
        expect_window(cache, level, 18, content, 2 * part);
        expect_window(cache, level, 20, content, 2 * part);
    }
    free(content);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */
/* Predicates                                                               */

static void test_predicates__of_a_new_stream(void **state)
{
    segzstd_cache *cache = expect_cache(2, NULL);
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;
    segzstd_job *job = (segzstd_job *)&options;
    segzstd_stream *stream;
    segzstd_vec vec;

    (void)state;
    options.user = &options;
    stream = expect_stream(cache, &options);
    assert_ptr_equal(segzstd_stream_user(stream), &options);
    assert_true(segzstd_stream_want_input(stream) > 0);
    assert_false(segzstd_stream_want_job(stream));
    assert_false(segzstd_stream_want_output(stream));
    assert_false(segzstd_stream_is_done(stream));
    assert_int_equal(segzstd_stream_jobs_out(stream), 0);
    assert_int_equal(segzstd_stream_ready_bytes(stream), 0);
    assert_int_equal(segzstd_stream_peek(stream, &vec, 1), 0);
    assert_int_equal(segzstd_stream_error(stream), 0);
    assert_string_equal(segzstd_stream_zstd_error(stream), "");
    assert_int_equal(segzstd_stream_poll_job(stream, &job), 0);
    assert_null(job);
    segzstd_stream_free(stream);
    segzstd_cache_free(cache);
}

static void test_predicates__follow_a_stream_to_its_end(void **state)
{
    segzstd_cache *cache = expect_cache(2, NULL);
    segzstd_stream *stream = expect_stream(cache, NULL);
    segzstd_job *job = NULL;
    size_t taken = 0, ready;

    (void)state;
    assert_int_equal(
        segzstd_stream_push(stream, "hello", 5, SEGZSTD_END, &taken), 0);
    assert_int_equal(taken, 5);
    assert_int_equal(segzstd_stream_want_input(stream), 0);
    assert_true(segzstd_stream_want_job(stream));
    assert_false(segzstd_stream_is_flushed(stream));
    assert_int_equal(segzstd_stream_poll_job(stream, &job), 0);
    assert_non_null(job);
    assert_ptr_equal(segzstd_job_stream(job), stream);
    assert_int_equal(segzstd_stream_jobs_out(stream), 1);
    segzstd_job_run(job);
    assert_int_equal(segzstd_job_complete(job), 0);
    assert_int_equal(segzstd_stream_jobs_out(stream), 0);
    assert_false(segzstd_stream_want_job(stream));
    assert_true(segzstd_stream_want_output(stream));
    assert_true(segzstd_stream_is_flushed(stream));
    assert_false(segzstd_stream_is_done(stream));
    ready = segzstd_stream_ready_bytes(stream);
    segzstd_stream_consume(stream, ready - 1);
    assert_int_equal(segzstd_stream_ready_bytes(stream), 1);
    assert_false(segzstd_stream_is_done(stream));
    segzstd_stream_consume(stream, 100);
    assert_true(segzstd_stream_is_done(stream));
    assert_true(segzstd_stream_is_flushed(stream));
    assert_false(segzstd_stream_want_output(stream));
    assert_int_equal(segzstd_stream_poll_job(stream, &job), 0);
    assert_null(job);
    segzstd_stream_free(stream);
    segzstd_cache_free(cache);
}

/* A writev() that takes a part: what was shown stays where it is. */
static void test_peek__shown_bytes__do_not_move(void **state)
{
    segzstd_cache *cache = expect_cache(4, NULL);
    unsigned char *content = data_new(MIB, DATA_RANDOM, SEED);
    segzstd_stream_options options = fixed_options(1, SEGMENT);
    segzstd_stream *stream = expect_stream(cache, &options);
    segzstd_vec before[2], after[2];
    unsigned char first;
    struct drive d;

    (void)state;
    drive_init(&d, stream, SEED);
    assert_int_equal(drive_push(&d, content, MIB, SEGZSTD_CONTINUE), 0);
    drive_run_one(&d);
    assert_true(segzstd_stream_peek(stream, before, 1) == 1);
    assert_true(before[0].len > 1);
    first = ((const unsigned char *)before[0].base)[1];
    segzstd_stream_consume(stream, 0);
    assert_true(segzstd_stream_peek(stream, after, 1) == 1);
    assert_ptr_equal(after[0].base, before[0].base);
    while (d.job_count > 0)
        drive_run_one(&d);
    segzstd_stream_consume(stream, 1);
    assert_true(segzstd_stream_peek(stream, after, 1) == 1);
    assert_ptr_equal(after[0].base, (const char *)before[0].base + 1);
    assert_int_equal(*(const unsigned char *)after[0].base, first);
    segzstd_stream_free(stream);
    drive_free(&d);
    free(content);
    segzstd_cache_free(cache);
}

static void test_output__consumed_in_small_bits__is_the_frame(void **state)
{
    static const size_t bits[] = {1, 7, 1000, 70000};
    size_t len = env_pick("content", 300 * KIB, 100 * KIB);
    segzstd_cache *cache = expect_cache(3, NULL);
    unsigned char *content = data_new(len, DATA_TEXT, SEED);

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        segzstd_stream_options options = fixed_options(3, SEGMENT);
        segzstd_stream *stream = expect_stream(cache, &options);
        struct drive d;

        drive_init(&d, stream, SEED);
        d.read_bytes = bits[i];
        assert_int_equal(drive_push(&d, content, len, SEGZSTD_END), 0);
        assert_int_equal(drive_end(&d), 0);
        expect_frame(&d, content, len);
        segzstd_stream_free(stream);
        drive_free(&d);
    }
    free(content);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */
/* Refusals                                                                 */

static void test_push__after_end__is_refused(void **state)
{
    segzstd_cache *cache = expect_cache(2, NULL);
    segzstd_stream *stream = expect_stream(cache, NULL);
    struct drive_source source = {(const unsigned char *)"x", 1, 0, 0, NULL};
    size_t taken = 9;
    struct drive d;

    (void)state;
    drive_init(&d, stream, SEED);
    source.drive = &d;
    assert_int_equal(drive_push(&d, "hello", 5, SEGZSTD_END), 0);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(
            segzstd_stream_push(stream, "x", 1, SEGZSTD_CONTINUE, &taken),
            SEGZSTD_ERR_STATE);
        assert_int_equal(taken, 0);
        assert_int_equal(segzstd_stream_push_ref(stream, "x", 1, SEGZSTD_FLUSH,
                                                 drive_release_source, &source),
                         SEGZSTD_ERR_STATE);
        assert_int_equal(segzstd_stream_push_reader(
                             stream, drive_read_source, 1, SEGZSTD_END,
                             drive_release_source, &source),
                         SEGZSTD_ERR_STATE);
        assert_int_equal(d.refs_back, 0);
        assert_int_equal(segzstd_stream_error(stream), 0);
        assert_int_equal(drive_end(&d), 0);
    }
    expect_frame(&d, "hello", 5);
    segzstd_stream_free(stream);
    drive_free(&d);
    segzstd_cache_free(cache);
}

static void test_push__wrong_arguments__are_refused(void **state)
{
    segzstd_cache *cache = expect_cache(2, NULL);
    segzstd_stream *stream = expect_stream(cache, NULL);
    size_t taken = 9;
    struct drive d;

    (void)state;
    drive_init(&d, stream, SEED);
    assert_int_equal(
        segzstd_stream_push(stream, NULL, 1, SEGZSTD_CONTINUE, &taken),
        SEGZSTD_ERR_INVALID);
    assert_int_equal(segzstd_stream_push(stream, "x", 1, (segzstd_op)3, &taken),
                     SEGZSTD_ERR_INVALID);
    assert_int_equal(
        segzstd_stream_push_ref(stream, NULL, 1, SEGZSTD_CONTINUE, NULL, NULL),
        SEGZSTD_ERR_INVALID);
    assert_int_equal(
        segzstd_stream_push_ref(stream, "x", 1, (segzstd_op)3, NULL, NULL),
        SEGZSTD_ERR_INVALID);
    assert_int_equal(segzstd_stream_push_reader(stream, NULL, 1,
                                                SEGZSTD_CONTINUE, NULL, NULL),
                     SEGZSTD_ERR_INVALID);
    assert_int_equal(segzstd_stream_push_reader(stream, drive_read_source, 1,
                                                (segzstd_op)-1, NULL, NULL),
                     SEGZSTD_ERR_INVALID);
    assert_int_equal(segzstd_stream_error(stream), 0);
    assert_int_equal(drive_push(&d, "hello", 5, SEGZSTD_END), 0);
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, "hello", 5);
    segzstd_stream_free(stream);
    drive_free(&d);
    segzstd_cache_free(cache);
}

static void test_push__nothing__is_fine(void **state)
{
    segzstd_cache *cache = expect_cache(2, NULL);
    segzstd_stream *stream = expect_stream(cache, NULL);
    size_t taken = 9;
    struct drive d;

    (void)state;
    drive_init(&d, stream, SEED);
    assert_int_equal(
        segzstd_stream_push(stream, NULL, 0, SEGZSTD_CONTINUE, &taken), 0);
    assert_int_equal(taken, 0);
    assert_false(segzstd_stream_want_job(stream));
    assert_int_equal(
        segzstd_stream_push_ref(stream, NULL, 0, SEGZSTD_CONTINUE, NULL, NULL),
        0);
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, "", 0);
    segzstd_stream_free(stream);
    drive_free(&d);
    segzstd_cache_free(cache);
}

/* No job is taken, so everything waits. */
static size_t push_until_full(segzstd_stream *stream,
                              const unsigned char *content, size_t len)
{
    size_t total = 0, taken = 1;

    while (taken > 0) {
        size_t want = segzstd_stream_want_input(stream);

        assert_int_equal(
            segzstd_stream_push(stream, content, len, SEGZSTD_CONTINUE, &taken),
            0);
        assert_int_equal(taken, want < len ? want : len);
        total += taken;
    }
    assert_int_equal(segzstd_stream_want_input(stream), 0);
    return total;
}

static void test_push__input_window_full__takes_no_more(void **state)
{
    static const size_t windows[] = {0, 128 * KIB, 200 * 1000, MIB};
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(50 * KIB, DATA_TEXT, SEED);

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;
        size_t bound = windows[i] != 0 ? windows[i] : 8 * MIB;
        segzstd_stream *stream;
        segzstd_stream_stats stats;
        size_t total, room;
        struct drive d;

        options.input_bytes = windows[i];
        options.level = 1;
        stream = expect_stream(cache, &options);
        drive_init(&d, stream, SEED);
        total = push_until_full(stream, content, 50 * KIB);
        assert_int_equal(total, bound);
        stats = expect_stream_stats(stream);
        assert_int_equal(stats.bytes_in, total);
        assert_int_equal(segzstd_stream_push_ref(stream, content, 1,
                                                 SEGZSTD_CONTINUE,
                                                 drive_release_source, NULL),
                         SEGZSTD_ERR_AGAIN);
        assert_int_equal(segzstd_stream_push_ref(stream, content, 50 * KIB,
                                                 SEGZSTD_CONTINUE,
                                                 drive_release_source, NULL),
                         SEGZSTD_ERR_AGAIN);
        assert_int_equal(drive_rest(&d), 0);
        room = segzstd_stream_want_input(stream);
        assert_true(room > 0 && room <= bound);
        assert_int_equal(drive_end(&d), 0);
        expect_no_fault(d.fault);
        segzstd_stream_free(stream);
        drive_free(&d);
    }
    free(content);
    segzstd_cache_free(cache);
}

/* Else no worker but one could ever have a segment. */
static void test_push__fixed_segments__one_for_each_worker_fits(void **state)
{
    segzstd_stream_options options = fixed_options(1, MIB);
    segzstd_cache *cache = expect_cache(4, NULL);
    unsigned char *content = data_new(MIB, DATA_TEXT, SEED);
    segzstd_stream *stream;
    struct drive d;

    (void)state;
    options.input_bytes = 128 * KIB;
    stream = expect_stream(cache, &options);
    assert_true(push_until_full(stream, content, MIB) >= 4 * MIB);
    drive_init(&d, stream, SEED);
    assert_int_equal(drive_take(&d), 0);
    assert_int_equal(d.job_count, 4);
    while (d.job_count > 0)
        assert_int_equal(drive_run_one(&d), 0);
    segzstd_stream_free(stream);
    drive_free(&d);
    free(content);
    segzstd_cache_free(cache);
}

/* What is compressed already and waits for what comes before it takes no memory
 * that this may need. */
static void test_reader__last_segment_first__keeps_no_input(void **state)
{
    segzstd_stream_options options = fixed_options(1, MIB);
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(2 * MIB, DATA_TEXT, SEED);
    struct drive_source source = {.content = content, .len = 2 * MIB};
    uint64_t before, after;
    struct drive d;

    (void)state;
    options.size = 2 * MIB;
    drive_init(&d, expect_stream(cache, &options), SEED);
    source.drive = &d;
    assert_int_equal(drive_push_source(&d, &source, 2 * MIB, SEGZSTD_END), 0);
    assert_int_equal(drive_take(&d), 0);
    assert_int_equal(d.job_count, 2);
    d.order = DRIVE_NEWEST;
    before = expect_cache_stats(cache).stream_bytes;
    assert_int_equal(drive_run_one(&d), 0);
    after = expect_cache_stats(cache).stream_bytes;
    assert_true(before >= 2 * MIB);
    assert_true(after <= before - MIB / 2);
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, content, 2 * MIB);
    segzstd_stream_free(d.stream);
    drive_free(&d);
    free(content);
    segzstd_cache_free(cache);
}

static void test_poll__output_bound_reached__gives_no_job(void **state)
{
    size_t bound = 256 * KIB, job_max = SEGMENT + KIB;
    segzstd_stream_options options = fixed_options(1, SEGMENT);
    segzstd_cache *cache = expect_cache(3, NULL);
    unsigned char *content = data_new(2 * MIB, DATA_RANDOM, SEED);
    segzstd_stream *stream;
    size_t taken, at = 0;
    struct drive d;

    (void)state;
    options.output_bytes = bound;
    stream = expect_stream(cache, &options);
    drive_init(&d, stream, SEED);
    do {
        assert_int_equal(segzstd_stream_push(stream, content + at, 2 * MIB - at,
                                             SEGZSTD_CONTINUE, &taken),
                         0);
        at += taken;
        assert_int_equal(drive_take(&d), 0);
        if (segzstd_stream_ready_bytes(stream) >= bound)
            assert_int_equal(d.job_count, 0);
        while (d.job_count > 0)
            assert_int_equal(drive_run_one(&d), 0);
        assert_int_equal(drive_take(&d), 0);
    } while (d.job_count > 0);
    assert_true(segzstd_stream_ready_bytes(stream) >= bound);
    assert_true(segzstd_stream_ready_bytes(stream) < bound + 3 * job_max);
    drive_read(&d);
    assert_int_equal(drive_take(&d), 0);
    assert_true(d.job_count > 0);
    assert_int_equal(drive_push(&d, content + at, 2 * MIB - at, SEGZSTD_END),
                     0);
    d.taken = 2 * MIB;
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, content, 2 * MIB);
    segzstd_stream_free(stream);
    drive_free(&d);
    free(content);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */

static void test_stats__of_a_stream__add_up(void **state)
{
    size_t len = 700 * KIB;
    segzstd_cache *cache = expect_cache(3, NULL);
    unsigned char *content = data_new(len, DATA_JSON, SEED);

    (void)state;
    for (size_t segment = 0; segment <= SEGMENT; segment += SEGMENT) {
        segzstd_stream_options options = fixed_options(3, segment);
        segzstd_stream *stream = expect_stream(cache, &options);
        segzstd_stream_stats stats;
        struct drive d;

        drive_init(&d, stream, SEED);
        stats = expect_stream_stats(stream);
        assert_int_equal(stats.bytes_in, 0);
        assert_int_equal(stats.window_log, 0);
        assert_int_equal(drive_push(&d, content, len, SEGZSTD_END), 0);
        assert_int_equal(drive_end(&d), 0);
        stats = expect_stream_stats(stream);
        assert_int_equal(stats.bytes_in, len);
        assert_int_equal(stats.bytes_done, len);
        assert_int_equal(stats.bytes_out, d.out_len);
        assert_int_equal(stats.bytes_stored, 0);
        assert_true(stats.segments > 0);
        if (segment > 0) {
            assert_int_equal(stats.segments, 11); /* 700 / 64, rounded up */
            assert_int_equal(stats.jobs, 11);
            assert_int_equal(stats.splits, 0);
        }
        assert_true(stats.encoders >= stats.segments);
        assert_true(stats.cpu_ns > 0);
        assert_int_equal(stats.jobs_peak, d.jobs_peak);
        segzstd_stream_free(stream);
        drive_free(&d);
    }
    free(content);
    segzstd_cache_free(cache);
}

/* Zeros compress to next to nothing, however many segments there are. */
static void test_zeros__in_many_segments__stay_small(void **state)
{
    size_t len = 2 * MIB;
    segzstd_cache *cache = expect_cache(4, NULL);
    unsigned char *content = data_new(len, DATA_ZEROS, SEED);

    (void)state;
    for (int level = 1; level <= 9; level += 4) {
        segzstd_stream_options options = fixed_options(level, 128 * KIB);
        segzstd_stream *stream = expect_stream(cache, &options);
        struct drive d;

        drive_init(&d, stream, SEED);
        assert_int_equal(drive_push(&d, content, len, SEGZSTD_END), 0);
        assert_int_equal(drive_end(&d), 0);
        expect_frame(&d, content, len);
        assert_true(d.out_len < 2048);
        segzstd_stream_free(stream);
        drive_free(&d);
    }
    free(content);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */
/* More than 32 bits can count                                              */

struct endless {
    ZSTD_DCtx *decoder;
    uint64_t done;
};

static int64_t read_endless(void *arg, uint64_t offset, void *dst, size_t len)
{
    (void)arg;
    data_fill_at(dst, offset, len);
    return (int64_t)len;
}

/* Decodes what arrives, and compares it with what the source gives again. */
static void check_endless(struct endless *e, const void *bytes, size_t len)
{
    static unsigned char got[1 << 17], want[1 << 17];
    ZSTD_inBuffer in = {bytes, len, 0};
    ZSTD_outBuffer out;

    do {
        out = (ZSTD_outBuffer){got, sizeof(got), 0};
        assert_false(
            ZSTD_isError(ZSTD_decompressStream(e->decoder, &out, &in)));
        data_fill_at(want, e->done, out.pos);
        assert_memory_equal(got, want, out.pos);
        e->done += out.pos;
    } while (in.pos < in.size || out.pos == out.size);
}

static void drain_endless(segzstd_stream *stream, struct endless *e)
{
    segzstd_vec vec;

    while (segzstd_stream_peek(stream, &vec, 1) > 0) {
        check_endless(e, vec.base, vec.len);
        segzstd_stream_consume(stream, vec.len);
    }
}

static void test_content__of_more_than_4_gib__round_trips(void **state)
{
    uint64_t len = ((uint64_t)1 << 32) + 12345;
    segzstd_stream_options options = fixed_options(-5, 16 * MIB);
    struct endless e = {NULL, 0};
    segzstd_cache *cache;
    segzstd_stream *stream;
    segzstd_job *job;

    (void)state;
    if (!env_long()) {
        print_message("only with SEGZSTD_TEST_LONG=1\n");
        skip();
    }
    options.size = len;
    options.size_is_certain = 1;
    e.decoder = ZSTD_createDCtx();
    cache = expect_cache(2, NULL);
    stream = expect_stream(cache, &options);
    assert_int_equal(segzstd_stream_push_reader(stream, read_endless, len,
                                                SEGZSTD_END, NULL, NULL),
                     0);
    while (!segzstd_stream_is_done(stream)) {
        assert_int_equal(segzstd_stream_poll_job(stream, &job), 0);
        assert_non_null(job);
        segzstd_job_run(job);
        assert_int_equal(segzstd_job_complete(job), 0);
        drain_endless(stream, &e);
    }
    assert_true(e.done == len);
    assert_true(expect_stream_stats(stream).bytes_done == len);
    segzstd_stream_free(stream);
    segzstd_cache_free(cache);
    ZSTD_freeDCtx(e.decoder);
}

/* The frame was complete, but nobody has read it. */
static void test_cancel__end_not_read__is_not_done(void **state)
{
    segzstd_cache *cache = expect_cache(1, NULL);
    segzstd_stream *stream = expect_stream(cache, NULL);
    segzstd_job *job;
    size_t taken;

    (void)state;
    assert_int_equal(
        segzstd_stream_push(stream, "text", 4, SEGZSTD_END, &taken), 0);
    assert_int_equal(segzstd_stream_poll_job(stream, &job), 0);
    segzstd_job_run(job);
    assert_int_equal(segzstd_job_complete(job), 0);
    assert_true(segzstd_stream_ready_bytes(stream) > 0);
    segzstd_stream_cancel(stream);
    assert_false(segzstd_stream_is_done(stream));
    segzstd_stream_free(stream);
    segzstd_cache_free(cache);
}

static int64_t read_too_much(void *arg, uint64_t offset, void *dst, size_t len)
{
    (void)arg;
    (void)offset;
    memset(dst, 'a', len);
    return (int64_t)len + 1;
}

static void test_reader__returns_more_than_asked__is_an_error(void **state)
{
    segzstd_cache *cache = expect_cache(1, NULL);
    segzstd_stream *stream = expect_stream(cache, NULL);
    segzstd_job *job;

    (void)state;
    assert_int_equal(segzstd_stream_push_reader(stream, read_too_much, 900000,
                                                SEGZSTD_END, NULL, NULL),
                     0);
    assert_int_equal(segzstd_stream_poll_job(stream, &job), 0);
    segzstd_job_run(job);
    assert_int_equal(segzstd_job_complete(job), SEGZSTD_ERR_READ);
    segzstd_stream_free(stream);
    segzstd_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes__around_borders__round_trip),
        cmocka_unit_test(test_sizes__around_a_small_window__round_trip),
        cmocka_unit_test(test_sizes__up_to_32_mib__round_trip),
        cmocka_unit_test(test_levels__all__round_trip),
        cmocka_unit_test(test_kinds__all__round_trip),
        cmocka_unit_test(test_overlap__any__round_trip),
        cmocka_unit_test(test_push__pieces_of_1_byte_to_1_mib__round_trip),
        cmocka_unit_test(
            test_push_ref__mixed_with_copies_and_readers__keeps_order),
        cmocka_unit_test(test_push_ref__stream_freed_at_once__is_released),
        cmocka_unit_test(test_reader__short_reads__are_gone_on_with),
        cmocka_unit_test(test_reader__that_fails__fails_the_stream),
        cmocka_unit_test(test_reader__that_ends_early__fails_the_stream),
        cmocka_unit_test(test_reader__of_nothing__ends_an_empty_frame),
        cmocka_unit_test(test_checksum__wanted__is_there_and_right),
        cmocka_unit_test(test_checksum__not_wanted__is_not_there),
        cmocka_unit_test(test_certain_size__met__is_declared),
        cmocka_unit_test(test_size__only_a_hint__is_not_declared),
        cmocka_unit_test(test_size__known_whole__is_declared),
        cmocka_unit_test(test_certain_size__not_met__is_an_error_at_end),
        cmocka_unit_test(test_certain_size__exceeded__is_an_error_at_the_push),
        cmocka_unit_test(test_certain_size__met_before_end__ends_well),
        cmocka_unit_test(test_window__high_levels__stay_under_the_cap),
        cmocka_unit_test(test_window__repeat_beyond_the_cap__is_not_used),
        cmocka_unit_test(test_predicates__of_a_new_stream),
        cmocka_unit_test(test_predicates__follow_a_stream_to_its_end),
        cmocka_unit_test(test_peek__shown_bytes__do_not_move),
        cmocka_unit_test(test_output__consumed_in_small_bits__is_the_frame),
        cmocka_unit_test(test_push__after_end__is_refused),
        cmocka_unit_test(test_push__wrong_arguments__are_refused),
        cmocka_unit_test(test_push__nothing__is_fine),
        cmocka_unit_test(test_push__input_window_full__takes_no_more),
        cmocka_unit_test(test_push__fixed_segments__one_for_each_worker_fits),
        cmocka_unit_test(test_reader__last_segment_first__keeps_no_input),
        cmocka_unit_test(test_poll__output_bound_reached__gives_no_job),
        cmocka_unit_test(test_cancel__end_not_read__is_not_done),
        cmocka_unit_test(test_reader__returns_more_than_asked__is_an_error),
        cmocka_unit_test(test_stats__of_a_stream__add_up),
        cmocka_unit_test(test_zeros__in_many_segments__stay_small),
        cmocka_unit_test(test_content__of_more_than_4_gib__round_trips),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
