/*
 * Flush: what was pushed before it can be decoded from the bytes that are
 * readable after it, whoever's encoder it takes, and however many streams are
 * open.
 */
#include <stdlib.h>
#include <string.h>

#include "support/env.h"
#include "support/expect.h"

enum { KIB = 1 << 10, MIB = 1 << 20, SEGMENT = 64 * KIB, SEED = 5 };

/* A stream with a client that decodes each byte as soon as it is ready. */
struct talk {
    struct drive d;
    struct oracle_live live;
    const unsigned char *content;
    size_t len;
    size_t said;
};

static void talk_begin(struct talk *t, segzstd_cache *cache,
                       const segzstd_stream_options *options,
                       const unsigned char *content, size_t len)
{
    drive_init(&t->d, expect_stream(cache, options), SEED);
    oracle_live_init(&t->live, content, len);
    t->d.live = &t->live;
    t->content = content;
    t->len = len;
    t->said = 0;
}

static void say(struct talk *t, size_t n, segzstd_op op)
{
    assert_true(n <= t->len - t->said);
    assert_int_equal(drive_push(&t->d, t->content + t->said, n, op), 0);
    t->said += n;
}

/* All work is done: the client must have all that was said. */
static void expect_heard(struct talk *t)
{
    assert_int_equal(drive_rest(&t->d), 0);
    expect_no_fault(t->d.fault);
    assert_true(segzstd_stream_is_flushed(t->d.stream));
    assert_int_equal(t->live.done, t->said);
}

static void talk_end(struct talk *t)
{
    assert_int_equal(drive_end(&t->d), 0);
    assert_true(t->live.ended);
    expect_frame(&t->d, t->content, t->said);
    segzstd_stream_free(t->d.stream);
    drive_free(&t->d);
    oracle_live_free(&t->live);
}

static segzstd_stream_options fixed_options(int level, size_t segment_bytes)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

    options.level = level;
    options.segment_bytes = segment_bytes;
    return options;
}

/* ------------------------------------------------------------------------ */

static void flush_at_random(segzstd_cache *cache,
                            const segzstd_stream_options *options,
                            enum data_kind kind, size_t len)
{
    unsigned char *content = data_new(len, kind, SEED);
    struct talk t;

    talk_begin(&t, cache, options, content, len);
    t.d.order = DRIVE_ANY;
    t.d.rng = rng_seed((uint64_t)kind * 1000 + (uint64_t)options->level + 99);
    while (t.said < len) {
        size_t n = rng_spread(&t.d.rng, SEGMENT * 2);
        bool flush = rng_below(&t.d.rng, 2) == 0;

        n = n < len - t.said ? n : len - t.said;
        say(&t, n, flush ? SEGZSTD_FLUSH : SEGZSTD_CONTINUE);
        if (flush)
            expect_heard(&t);
    }
    talk_end(&t);
    free(content);
}

static void test_flush__anywhere__makes_all_before_it_decodable(void **state)
{
    static const int levels[] = {-1, 1, 4, 6, 9, 16};
    size_t level_count = env_pick("levels", 6, 2);
    size_t len = env_pick("content", 500 * KIB, 100 * KIB);
    segzstd_cache *cache = expect_cache(3, NULL);

    (void)state;
    for (int kind = 0; kind < DATA_KINDS; kind++) {
        for (size_t i = 0; i < level_count; i++) {
            segzstd_stream_options options = fixed_options(levels[i], 0);

            flush_at_random(cache, &options, (enum data_kind)kind, len);
            options.segment_bytes = SEGMENT;
            flush_at_random(cache, &options, (enum data_kind)kind, len);
            options.overlap_bytes = SEGZSTD_OVERLAP_NONE;
            flush_at_random(cache, &options, (enum data_kind)kind, len);
        }
    }
    segzstd_cache_free(cache);
}

/* Just before, on and after the border of a block and of a segment. */
static void test_flush__on_a_border__is_decodable(void **state)
{
    static const size_t borders[] = {128 * KIB, SEGMENT, 256 * KIB};
    size_t len = 600 * KIB;
    segzstd_cache *cache = expect_cache(3, NULL);
    unsigned char *content = data_new(len, DATA_JSON, SEED);

    (void)state;
    for (size_t i = 0; i < 18; i++) {
        segzstd_stream_options options =
            fixed_options(3, i % 2 == 0 ? 0 : SEGMENT);
        size_t n = borders[i / 6] + i / 2 % 3 - 1;
        struct talk t;

        talk_begin(&t, cache, &options, content, len);
        say(&t, n, SEGZSTD_FLUSH);
        expect_heard(&t);
        say(&t, 1, SEGZSTD_FLUSH);
        expect_heard(&t);
        say(&t, n, SEGZSTD_FLUSH);
        expect_heard(&t);
        talk_end(&t);
    }
    free(content);
    segzstd_cache_free(cache);
}

/* Nobody else wants the encoder, so it stays. */
static void test_flush__many_small_ones__keep_the_encoder(void **state)
{
    size_t count = env_pick("flushes", 3000, 200);
    size_t len = count * 61;
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    segzstd_stream_options options = fixed_options(3, 0);
    segzstd_stream_stats stats;
    struct talk t;

    (void)state;
    talk_begin(&t, cache, &options, content, len);
    for (size_t i = 0; i < count; i++) {
        say(&t, 61, SEGZSTD_FLUSH);
        expect_heard(&t);
    }
    /* Only where the content goes on in another extent is one primed. */
    stats = expect_stream_stats(t.d.stream);
    assert_true(stats.encoders <= 4);
    assert_true(stats.segments <= 4);
    talk_end(&t);
    free(content);
    segzstd_cache_free(cache);
}

static void test_flush__of_single_bytes__is_decodable(void **state)
{
    size_t len = env_pick("bytes", 1000, 100);
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(len, DATA_MIXTURE, SEED);

    (void)state;
    for (size_t segment = 0; segment <= SEGMENT; segment += SEGMENT) {
        segzstd_stream_options options = fixed_options(1, segment);
        struct talk t;

        talk_begin(&t, cache, &options, content, len);
        while (t.said < len) {
            say(&t, 1, SEGZSTD_FLUSH);
            expect_heard(&t);
        }
        talk_end(&t);
    }
    free(content);
    segzstd_cache_free(cache);
}

static void test_flush__with_nothing_new__adds_nothing(void **state)
{
    segzstd_cache *cache = expect_cache(2, NULL);
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;
    size_t before;
    struct talk t;

    (void)state;
    talk_begin(&t, cache, &options, (const unsigned char *)"hello again", 11);
    for (int i = 0; i < 3; i++) {
        say(&t, 0, SEGZSTD_FLUSH);
        expect_heard(&t);
    }
    say(&t, 5, SEGZSTD_FLUSH);
    expect_heard(&t);
    before = t.d.out_len;
    for (int i = 0; i < 3; i++) {
        say(&t, 0, SEGZSTD_FLUSH);
        expect_heard(&t);
    }
    assert_int_equal(t.d.out_len, before);
    say(&t, 6, SEGZSTD_CONTINUE);
    say(&t, 0, SEGZSTD_FLUSH);
    expect_heard(&t);
    talk_end(&t);
    segzstd_cache_free(cache);
}

static void test_flush__not_asked_for__is_not_claimed(void **state)
{
    segzstd_cache *cache = expect_cache(2, NULL);
    segzstd_stream *stream = expect_stream(cache, NULL);
    size_t taken;
    struct drive d;

    (void)state;
    drive_init(&d, stream, SEED);
    assert_int_equal(
        segzstd_stream_push(stream, "hello", 5, SEGZSTD_FLUSH, &taken), 0);
    assert_false(segzstd_stream_is_flushed(stream));
    assert_int_equal(drive_take(&d), 0);
    assert_false(segzstd_stream_is_flushed(stream));
    assert_int_equal(drive_run_one(&d), 0);
    assert_true(segzstd_stream_is_flushed(stream));
    assert_int_equal(
        segzstd_stream_push(stream, "hello", 5, SEGZSTD_FLUSH, &taken), 0);
    assert_false(segzstd_stream_is_flushed(stream));
    d.taken = 10;
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, "hellohello", 10);
    segzstd_stream_free(stream);
    drive_free(&d);
    segzstd_cache_free(cache);
}

/* Runs one job at a time, newest first: is_flushed may hold only when the
 * client has everything up to the last flush. */
static void work_and_watch(struct talk *t, size_t flushed)
{
    bool moved = true;

    while (moved) {
        moved = false;
        if (segzstd_stream_is_flushed(t->d.stream)) {
            drive_read(&t->d);
            assert_true(t->live.done >= flushed);
        }
        assert_int_equal(drive_step(&t->d, &moved), 0);
    }
}

static void test_flush__jobs_before_it_still_out__waits_for_them(void **state)
{
    size_t len = 900 * KIB;
    segzstd_cache *cache = expect_cache(4, NULL);
    unsigned char *content = data_new(len, DATA_JSON, SEED);

    (void)state;
    for (size_t segment = 0; segment <= SEGMENT; segment += SEGMENT) {
        segzstd_stream_options options = fixed_options(1, segment);
        struct talk t;

        talk_begin(&t, cache, &options, content, len);
        t.d.order = DRIVE_NEWEST;
        say(&t, 300 * KIB, SEGZSTD_FLUSH);
        say(&t, 10, SEGZSTD_FLUSH);
        say(&t, 300 * KIB, SEGZSTD_CONTINUE);
        work_and_watch(&t, 300 * KIB + 10);
        assert_true(segzstd_stream_is_flushed(t.d.stream));
        say(&t, 1, SEGZSTD_FLUSH);
        work_and_watch(&t, t.said);
        expect_heard(&t);
        talk_end(&t);
    }
    free(content);
    segzstd_cache_free(cache);
}

static void test_flush__of_readers_and_ranges__is_decodable(void **state)
{
    size_t len = 800 * KIB, half = len / 2;
    segzstd_cache *cache = expect_cache(3, NULL);
    unsigned char *content = data_new(len, DATA_JSON, SEED);

    (void)state;
    for (size_t segment = 0; segment <= SEGMENT; segment += SEGMENT) {
        segzstd_stream_options options = fixed_options(3, segment);
        struct drive_source first = {content, 100000, 0, 0, NULL};
        struct drive_source second = {content + half, 100, 0, 0, NULL};
        struct talk t;

        talk_begin(&t, cache, &options, content, len);
        assert_int_equal(drive_push_source(&t.d, &first, 100000, SEGZSTD_FLUSH),
                         0);
        t.said = 100000;
        expect_heard(&t);
        assert_int_equal(drive_push_ref(&t.d, content + t.said, half - t.said,
                                        SEGZSTD_FLUSH),
                         0);
        t.said = half;
        expect_heard(&t);
        assert_int_equal(drive_push_source(&t.d, &second, 100, SEGZSTD_FLUSH),
                         0);
        t.said += 100;
        expect_heard(&t);
        say(&t, len - t.said, SEGZSTD_FLUSH);
        expect_heard(&t);
        talk_end(&t);
    }
    free(content);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */
/* More streams than encoders                                               */

static segzstd_cache *new_cache(unsigned workers, unsigned kept)
{
    segzstd_cache_options options = SEGZSTD_CACHE_OPTIONS_INIT;
    segzstd_cache *cache = NULL;

    options.workers = workers;
    options.encoders_kept = kept;
    options.no_stable_input = env_plain_input();
    assert_int_equal(segzstd_cache_new(&cache, &options), 0);
    return cache;
}

/* Two streams say the same text in turn, over and over, with one encoder
 * between them. Returns the bytes of one turn of the first stream. */
static size_t bytes_of_a_turn(size_t history_bytes, bool rest)
{
    enum { TURN = 500, TURNS = 20 };
    segzstd_stream_options options = fixed_options(3, 0);
    segzstd_cache *cache = new_cache(1, SEGZSTD_NONE);
    unsigned char content[TURN * TURNS];
    size_t before = 0, bytes = 0;
    segzstd_stream_stats stats;
    struct talk a, b;

    options.history_bytes = history_bytes;
    data_fill(content, TURN, DATA_TEXT, SEED);
    for (size_t i = 1; i < TURNS; i++)
        memcpy(content + i * TURN, content, TURN);
    talk_begin(&a, cache, &options, content, sizeof(content));
    talk_begin(&b, cache, &options, content, sizeof(content));
    for (size_t i = 0; i < TURNS; i++) {
        before = a.d.out_len;
        say(&a, TURN, SEGZSTD_FLUSH);
        expect_heard(&a);
        bytes = a.d.out_len - before;
        if (rest)
            segzstd_stream_rest(a.d.stream);
        say(&b, TURN, SEGZSTD_FLUSH);
        expect_heard(&b);
    }
    assert_int_equal(expect_cache_stats(cache).encoders_peak, 1);
    stats = expect_stream_stats(a.d.stream);
    assert_int_equal(stats.encoders, TURNS);
    /* at rest it loses its memory too, and goes on in another */
    assert_int_equal(stats.segments, rest ? TURNS : 1);
    talk_end(&a);
    talk_end(&b);
    segzstd_cache_free(cache);
    return bytes;
}

static void test_steal__stream_goes_on__with_its_history(void **state)
{
    (void)state;
    assert_true(bytes_of_a_turn(0, false) < 60);
    assert_true(bytes_of_a_turn(0, true) < 60);
    assert_true(bytes_of_a_turn(600, true) < 60);
}

static void test_steal__stream_without_history__goes_on_too(void **state)
{
    (void)state;
    assert_true(bytes_of_a_turn(SEGZSTD_OVERLAP_NONE, true) > 100);
}

static void test_steal__streams_of_all_levels__go_on(void **state)
{
    enum { TALKS = 12 };
    size_t len = 300 * KIB;
    segzstd_cache *cache = new_cache(1, 2);
    unsigned char *content = data_new(len, DATA_MIXTURE, SEED);
    size_t turns = env_pick("turns", 30, 5);
    struct rng rng = rng_seed(SEED);
    struct talk talks[TALKS];

    (void)state;
    for (int i = 0; i < TALKS; i++) {
        segzstd_stream_options options = fixed_options(i - 2, 0);

        if (i % 3 == 2)
            options.segment_bytes = SEGMENT;
        talk_begin(&talks[i], cache, &options, content, len);
    }
    for (size_t turn = 0; turn < turns; turn++) {
        for (int i = 0; i < TALKS; i++) {
            say(&talks[i], rng_spread(&rng, 10000), SEGZSTD_FLUSH);
            expect_heard(&talks[i]);
        }
    }
    for (int i = 0; i < TALKS; i++)
        talk_end(&talks[i]);
    assert_true(expect_cache_stats(cache).encoders_peak <= 3);
    assert_true(expect_cache_stats(cache).steals > 0);
    free(content);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */
/* Rest                                                                     */

static void rest_at_random(segzstd_cache *cache,
                           const segzstd_stream_options *options,
                           const unsigned char *content, size_t len)
{
    struct talk t;

    talk_begin(&t, cache, options, content, len);
    segzstd_stream_rest(t.d.stream);
    while (t.said < len) {
        size_t n = rng_spread(&t.d.rng, SEGMENT * 2);
        bool flush = rng_below(&t.d.rng, 2) == 0;

        n = n < len - t.said ? n : len - t.said;
        say(&t, n, flush ? SEGZSTD_FLUSH : SEGZSTD_CONTINUE);
        segzstd_stream_rest(t.d.stream); /* a job may be out */
        if (flush)
            expect_heard(&t);
        segzstd_stream_rest(t.d.stream);
        segzstd_stream_rest(t.d.stream);
    }
    talk_end(&t);
}

static void test_rest__in_any_state__changes_no_content(void **state)
{
    static const size_t histories[] = {0, SEGZSTD_OVERLAP_NONE, 1000};
    size_t len = env_pick("content", 400 * KIB, 100 * KIB);
    segzstd_cache *cache = expect_cache(2, NULL);

    (void)state;
    for (int kind = 0; kind < DATA_KINDS; kind++) {
        unsigned char *content = data_new(len, (enum data_kind)kind, SEED);

        for (int i = 0; i < 6; i++) {
            segzstd_stream_options options =
                fixed_options(1 + i, i % 2 == 0 ? 0 : SEGMENT);

            options.checksum = 1;
            options.history_bytes = histories[i / 2];
            rest_at_random(cache, &options, content, len);
        }
        free(content);
    }
    segzstd_cache_free(cache);
}

static void test_rest__after_a_flush__gives_the_encoder_back(void **state)
{
    segzstd_stream_options options = fixed_options(3, 0);
    segzstd_cache *cache = expect_cache(1, NULL);
    unsigned char *content = data_new(200 * KIB, DATA_JSON, SEED);
    struct talk t;

    (void)state;
    talk_begin(&t, cache, &options, content, 200 * KIB);
    say(&t, 100 * KIB, SEGZSTD_FLUSH);
    expect_heard(&t);
    assert_int_equal(expect_cache_stats(cache).encoders_held, 1);
    assert_true(expect_stream_stats(t.d.stream).memory > 100 * KIB);
    segzstd_stream_rest(t.d.stream);
    assert_int_equal(expect_cache_stats(cache).encoders_held, 0);
    assert_int_equal(expect_cache_stats(cache).encoders_idle, 1);
    assert_true(expect_stream_stats(t.d.stream).memory < 64 * KIB);
    say(&t, 100 * KIB, SEGZSTD_FLUSH);
    expect_heard(&t);
    talk_end(&t);
    free(content);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */

enum {
    STREAMS = 10000,
    FIRST = 33 * KIB, /* fills the default history */
    TURN = 200,
    TURNS = 4,
    SAID = FIRST + TURNS * TURN,
    WATCHED = 97 /* every so many-th has a client that decodes at once */
};

struct crowd {
    segzstd_cache *cache;
    size_t count;
    unsigned char *text; /* streams say parts of it */
    size_t text_len;
    struct drive *drives;
    struct oracle_live *lives; /* of those that are watched */
};

static const unsigned char *text_of(const struct crowd *c, size_t i)
{
    return c->text + i * 131 % (c->text_len - SAID);
}

static void crowd_open(struct crowd *c, size_t count)
{
    segzstd_stream_options options = fixed_options(3, 0);

    c->count = count;
    c->cache = new_cache(2, 2);
    c->text_len = 4 * MIB;
    c->text = data_new(c->text_len, DATA_JSON, SEED);
    c->drives = calloc(count, sizeof(*c->drives));
    c->lives = calloc(count, sizeof(*c->lives));
    assert_non_null(c->drives);
    assert_non_null(c->lives);
    for (size_t i = 0; i < count; i++) {
        drive_init(&c->drives[i], expect_stream(c->cache, &options), i);
        if (i % WATCHED == 0) {
            oracle_live_init(&c->lives[i], text_of(c, i), SAID);
            c->drives[i].live = &c->lives[i];
        }
    }
}

/* Two at a time, so that both workers have a job at once. */
static void crowd_say(struct crowd *c, size_t at, size_t len, bool rest)
{
    for (size_t i = 0; i < c->count; i++) {
        struct drive *d = &c->drives[i];

        assert_int_equal(drive_push(d, text_of(c, i) + at, len, SEGZSTD_FLUSH),
                         0);
        if (i % 2 == 0 && i + 1 < c->count)
            continue;
        for (size_t k = i - i % 2; k <= i; k++) {
            assert_int_equal(drive_rest(&c->drives[k]), 0);
            expect_no_fault(c->drives[k].fault);
            assert_true(segzstd_stream_is_flushed(c->drives[k].stream));
            if (k % WATCHED == 0)
                assert_int_equal(c->lives[k].done, at + len);
            if (rest)
                segzstd_stream_rest(c->drives[k].stream);
        }
    }
}

static void crowd_close(struct crowd *c)
{
    ZSTD_DCtx *decoder = ZSTD_createDCtx();
    unsigned char got[SAID];

    for (size_t i = 0; i < c->count; i++) {
        struct drive *d = &c->drives[i];

        assert_int_equal(drive_end(d), 0);
        assert_int_equal(
            ZSTD_decompressDCtx(decoder, got, SAID, d->out, d->out_len), SAID);
        assert_memory_equal(got, text_of(c, i), SAID);
        if (i % WATCHED == 0) {
            expect_frame(d, text_of(c, i), SAID);
            oracle_live_free(&c->lives[i]);
        }
        segzstd_stream_free(d->stream);
        drive_free(d);
    }
    ZSTD_freeDCtx(decoder);
    free(c->drives);
    free(c->lives);
    free(c->text);
}

static void run_crowd(bool rest, uint64_t bytes_max)
{
    size_t count = env_pick("streams", STREAMS, 100);
    segzstd_cache_stats stats;
    struct crowd c;

    crowd_open(&c, count);
    crowd_say(&c, 0, FIRST, rest);
    for (size_t turn = 0; turn < TURNS; turn++)
        crowd_say(&c, FIRST + turn * TURN, TURN, rest);
    stats = expect_cache_stats(c.cache);
    assert_int_equal(stats.streams_open, count);
    assert_int_equal(stats.encoders_limit, 4);
    assert_true(stats.encoders_live <= 4);
    assert_true(stats.encoders_peak <= 4);
    print_message("%zu streams: peak %llu KiB\n", count,
                  (unsigned long long)stats.bytes_peak / KIB);
    assert_true(stats.bytes_peak < bytes_max);
    if (!rest)
        assert_true(stats.steals > 0);
    crowd_close(&c);
    stats = expect_cache_stats(c.cache);
    assert_int_equal(stats.streams_open, 0);
    assert_true(stats.encoders_peak <= 4);
    assert_true(stats.bytes_peak < bytes_max);
    segzstd_cache_free(c.cache);
}

static void test_flush__10000_streams_with_4_encoders__stays_in_bounds(void **s)
{
    (void)s;
    run_crowd(true, (uint64_t)600 * MIB);
}

/* Their encoders are taken; but until the next push, what they have of their
 * content is more than the history. */
static void test_flush__10000_streams_that_do_not_rest__decode_too(void **s)
{
    (void)s;
    run_crowd(false, (uint64_t)1200 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flush__anywhere__makes_all_before_it_decodable),
        cmocka_unit_test(test_flush__on_a_border__is_decodable),
        cmocka_unit_test(test_flush__many_small_ones__keep_the_encoder),
        cmocka_unit_test(test_flush__of_single_bytes__is_decodable),
        cmocka_unit_test(test_flush__with_nothing_new__adds_nothing),
        cmocka_unit_test(test_flush__not_asked_for__is_not_claimed),
        cmocka_unit_test(test_flush__jobs_before_it_still_out__waits_for_them),
        cmocka_unit_test(test_flush__of_readers_and_ranges__is_decodable),
        cmocka_unit_test(test_steal__stream_goes_on__with_its_history),
        cmocka_unit_test(test_steal__stream_without_history__goes_on_too),
        cmocka_unit_test(test_steal__streams_of_all_levels__go_on),
        cmocka_unit_test(
            test_flush__10000_streams_with_4_encoders__stays_in_bounds),
        cmocka_unit_test(
            test_flush__10000_streams_that_do_not_rest__decode_too),
        cmocka_unit_test(test_rest__in_any_state__changes_no_content),
        cmocka_unit_test(test_rest__after_a_flush__gives_the_encoder_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
