/*
 * The cache: what it counts, what it keeps and for how long, and that all of it
 * goes back to the allocator.
 */
#include <stdlib.h>
#include <string.h>

#include "support/env.h"
#include "support/expect.h"

enum { KIB = 1 << 10, MIB = 1 << 20, SEED = 19 };

static segzstd_cache *new_cache(const segzstd_cache_options *options)
{
    segzstd_cache_options given = *options;
    segzstd_cache *cache = NULL;

    given.no_stable_input = env_plain_input();
    assert_int_equal(segzstd_cache_new(&cache, &given), 0);
    return cache;
}

/* One stream from its beginning to its end; returns the size of the frame. */
static size_t use_cache(segzstd_cache *cache, int level, size_t len)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    size_t out_len;
    struct drive d;

    options.level = level;
    options.size = len;
    drive_init(&d, expect_stream(cache, &options), SEED);
    assert_int_equal(drive_push(&d, content, len, SEGZSTD_END), 0);
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, content, len);
    out_len = d.out_len;
    segzstd_stream_free(d.stream);
    drive_free(&d);
    free(content);
    return out_len;
}

/* ------------------------------------------------------------------------ */
/* Counters                                                                 */

static void test_stats__of_a_new_cache__count_nothing(void **state)
{
    segzstd_cache *cache = expect_cache(3, NULL);
    segzstd_cache_stats stats = expect_cache_stats(cache);

    (void)state;
    assert_int_equal(stats.workers, 3);
    assert_int_equal(stats.encoders_limit, 6);
    assert_int_equal(stats.encoders_live, 0);
    assert_int_equal(stats.encoders_peak, 0);
    assert_int_equal(stats.encoder_bytes, 0);
    assert_int_equal(stats.idle_bytes, 0);
    assert_int_equal(stats.jobs_out, 0);
    assert_int_equal(stats.streams_open, 0);
    assert_int_equal(stats.hits + stats.misses + stats.steals, 0);
    assert_int_equal(stats.jobs + stats.bytes_in + stats.bytes_out, 0);
    assert_int_equal(stats.bytes, stats.bytes_peak);
    assert_true(stats.bytes > 0);
    segzstd_cache_free(cache);
}

/* Also what no job made: stored blocks, and the end of the frame. */
static void test_stats__stored_and_ended__counts_every_byte(void **state)
{
    segzstd_cache *cache = expect_cache(1, NULL);
    segzstd_stream *stream = expect_stream(cache, NULL);
    unsigned char content[1000] = {0};
    size_t taken, stored;

    (void)state;
    assert_int_equal(segzstd_stream_push(stream, content, sizeof(content),
                                         SEGZSTD_FLUSH, &taken),
                     0);
    assert_int_equal(segzstd_stream_store(stream, SIZE_MAX, &stored), 0);
    assert_int_equal(stored, sizeof(content));
    assert_int_equal(segzstd_stream_push(stream, NULL, 0, SEGZSTD_END, &taken),
                     0);
    assert_true(segzstd_stream_ready_bytes(stream) > sizeof(content));
    assert_int_equal(expect_cache_stats(cache).bytes_out,
                     segzstd_stream_ready_bytes(stream));
    assert_int_equal(expect_stream_stats(stream).bytes_out,
                     segzstd_stream_ready_bytes(stream));
    segzstd_stream_free(stream);
    segzstd_cache_free(cache);
}

static void test_stats__after_streams__add_up(void **state)
{
    segzstd_cache *cache = expect_cache(1, NULL);
    segzstd_cache_stats stats;
    uint64_t out = 0;

    (void)state;
    out += use_cache(cache, 3, 100 * KIB);
    stats = expect_cache_stats(cache);
    assert_int_equal(stats.misses, 1);
    assert_int_equal(stats.hits, 0);
    assert_int_equal(stats.bytes_in, 100 * KIB);
    assert_int_equal(stats.bytes_out, out);
    assert_true(stats.jobs > 0);
    out += use_cache(cache, 3, 100 * KIB);
    stats = expect_cache_stats(cache);
    assert_int_equal(stats.misses, 1);
    assert_int_equal(stats.hits, 1);
    assert_int_equal(stats.steals, 0);
    assert_int_equal(stats.bytes_in, 200 * KIB);
    assert_int_equal(stats.bytes_out, out);
    assert_int_equal(stats.streams_open, 0);
    assert_int_equal(stats.stored_bytes, 0);
    assert_int_equal(stats.encoders_peak, 1);
    segzstd_cache_free(cache);
}

static void test_stats__encoder_between_two_jobs__is_held(void **state)
{
    segzstd_cache *cache = expect_cache(2, NULL);
    segzstd_cache_stats stats;
    struct drive d;

    (void)state;
    drive_init(&d, expect_stream(cache, NULL), SEED);
    assert_int_equal(expect_cache_stats(cache).streams_open, 1);
    assert_int_equal(drive_push(&d, "hello", 5, SEGZSTD_FLUSH), 0);
    assert_int_equal(expect_cache_stats(cache).jobs_out, 1);
    assert_int_equal(drive_rest(&d), 0);
    stats = expect_cache_stats(cache);
    assert_int_equal(stats.jobs_out, 0);
    assert_int_equal(stats.encoders_live, 1);
    assert_int_equal(stats.encoders_held, 1);
    assert_int_equal(stats.encoders_running, 0);
    assert_int_equal(stats.encoders_idle, 0);
    assert_true(stats.encoder_bytes > 0);
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, "hello", 5);
    segzstd_stream_free(d.stream);
    stats = expect_cache_stats(cache);
    assert_int_equal(stats.streams_open, 0);
    assert_int_equal(stats.encoders_held, 0);
    assert_int_equal(stats.encoders_idle, 1);
    assert_true(stats.idle_bytes >= stats.encoder_bytes);
    assert_true(stats.bytes >= stats.idle_bytes);
    drive_free(&d);
    segzstd_cache_free(cache);
}

static void test_stats__bytes__are_what_the_allocator_gave(void **state)
{
    static struct test_alloc alloc;
    segzstd_cache *cache;

    (void)state;
    alloc_init(&alloc);
    cache = expect_cache(2, &alloc);
    for (int level = 1; level < 10; level += 3) {
        use_cache(cache, level, 300 * KIB);
        assert_true(alloc_bytes(&alloc) <= expect_cache_stats(cache).bytes);
        assert_true(alloc.bytes_peak <= expect_cache_stats(cache).bytes_peak);
    }
    segzstd_cache_free(cache);
    expect_no_fault(alloc_done(&alloc));
}

/* ------------------------------------------------------------------------ */
/* Reuse                                                                    */

static void test_reuse__same_streams__need_no_more_memory(void **state)
{
    size_t rounds = env_pick("rounds", 20, 4);
    segzstd_cache *cache = expect_cache(2, NULL);
    segzstd_cache_stats first, last;

    (void)state;
    use_cache(cache, 5, 500 * KIB);
    first = expect_cache_stats(cache);
    for (size_t i = 0; i < rounds; i++)
        use_cache(cache, 5, 500 * KIB);
    last = expect_cache_stats(cache);
    assert_int_equal(last.misses, first.misses);
    assert_int_equal(last.bytes_peak, first.bytes_peak);
    assert_int_equal(last.bytes, first.bytes);
    assert_int_equal(last.encoders_peak, first.encoders_peak);
    segzstd_cache_free(cache);
}

/* A body of 2 KB at level 19 must not cost the tables of a large one. */
static void test_small_content__high_level__costs_little(void **state)
{
    segzstd_cache *cache = expect_cache(1, NULL);
    unsigned char *content = data_new(2000, DATA_JSON, SEED);
    struct drive d;

    (void)state;
    use_cache(cache, 19, 2000);
    assert_true(expect_cache_stats(cache).bytes_peak < 2 * MIB);
    for (int level = 19; level <= 22; level += 3) {
        segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

        options.level = level; /* and no hint: the end comes with the bytes */
        drive_init(&d, expect_stream(cache, &options), SEED);
        assert_int_equal(drive_push(&d, content, 2000, SEGZSTD_END), 0);
        assert_int_equal(drive_end(&d), 0);
        expect_frame(&d, content, 2000);
        segzstd_stream_free(d.stream);
        drive_free(&d);
        assert_true(expect_cache_stats(cache).bytes_peak < 4 * MIB);
    }
    free(content);
    segzstd_cache_free(cache);
}

static void test_open_streams__at_rest__cost_little(void **state)
{
    enum { STREAMS = 100 };
    segzstd_cache *cache = expect_cache(1, NULL);
    segzstd_stream *streams[STREAMS];
    uint64_t before = expect_cache_stats(cache).bytes;

    (void)state;
    for (int i = 0; i < STREAMS; i++)
        streams[i] = expect_stream(cache, NULL);
    assert_int_equal(expect_cache_stats(cache).streams_open, STREAMS);
    assert_int_equal(expect_cache_stats(cache).encoders_live, 0);
    assert_true(expect_cache_stats(cache).bytes - before < STREAMS * 4 * KIB);
    for (int i = 0; i < STREAMS; i++)
        segzstd_stream_free(streams[i]);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */
/* Retention                                                                */

static void test_retain__none__keeps_nothing(void **state)
{
    static struct test_alloc alloc;
    segzstd_cache_options options = SEGZSTD_CACHE_OPTIONS_INIT;
    segzstd_cache *cache;
    segzstd_cache_stats stats;
    uint64_t bytes;

    (void)state;
    alloc_init(&alloc);
    options.allocator = &alloc.api;
    options.retention = SEGZSTD_RETAIN_NONE;
    options.no_huge_pages = 1;
    options.workers = 2;
    cache = new_cache(&options);
    bytes = expect_cache_stats(cache).bytes;
    for (int level = 1; level < 8; level += 3) {
        use_cache(cache, level, 300 * KIB);
        stats = expect_cache_stats(cache);
        assert_int_equal(stats.idle_bytes, 0);
        assert_int_equal(stats.encoders_live, 0);
        assert_int_equal(stats.encoder_bytes, 0);
        assert_int_equal(stats.bytes, bytes);
    }
    segzstd_cache_free(cache);
    expect_no_fault(alloc_done(&alloc));
}

static void test_retain__bounded__keeps_no_more_than_that(void **state)
{
    static const uint64_t bounds[] = {0, 100 * KIB, MIB, 3 * MIB, 40 * MIB};
    static const int levels[] = {1, 3, 6, 9, 12, 2, 5};

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        segzstd_cache_options options = SEGZSTD_CACHE_OPTIONS_INIT;
        segzstd_cache *cache;
        uint64_t most = 0;

        options.retention = SEGZSTD_RETAIN_BOUNDED;
        options.retain_bytes = bounds[i];
        options.workers = 4;
        cache = new_cache(&options);
        for (size_t k = 0; k < 7; k++) {
            uint64_t idle;

            use_cache(cache, levels[k], 500 * KIB);
            idle = expect_cache_stats(cache).idle_bytes;
            assert_true(idle <= bounds[i]);
            most = idle > most ? idle : most;
        }
        if (bounds[i] >= 3 * MIB)
            assert_true(most > MIB);
        segzstd_cache_free(cache);
    }
}

static void test_retain__all__keeps_until_trimmed(void **state)
{
    segzstd_cache *cache = expect_cache(2, NULL);
    uint64_t bytes = expect_cache_stats(cache).bytes;
    segzstd_cache_stats before, after;

    (void)state;
    use_cache(cache, 1, 300 * KIB);
    use_cache(cache, 7, 300 * KIB);
    before = expect_cache_stats(cache);
    assert_true(before.idle_bytes > 0);
    assert_true(before.encoders_idle > 0);
    assert_int_equal(segzstd_cache_trim(cache, UINT64_MAX / 2),
                     before.bytes - bytes);
    after = expect_cache_stats(cache);
    assert_int_equal(after.idle_bytes, 0);
    assert_int_equal(after.encoders_live, 0);
    assert_int_equal(after.bytes, bytes);
    assert_int_equal(segzstd_cache_trim(cache, UINT64_MAX / 2), 0);
    use_cache(cache, 7, 300 * KIB);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */
/* Trim by age                                                              */

static void expect_trim_at(segzstd_cache *cache, uint64_t now, bool released)
{
    uint64_t before = expect_cache_stats(cache).bytes;
    uint64_t bytes = segzstd_cache_trim(cache, now);

    assert_int_equal(expect_cache_stats(cache).bytes, before - bytes);
    assert_int_equal(bytes > 0, released);
}

static void test_trim__by_age__releases_what_is_older(void **state)
{
    segzstd_cache_options options = SEGZSTD_CACHE_OPTIONS_INIT;
    segzstd_cache *cache;

    (void)state;
    options.idle_ns = 1000;
    options.workers = 1;
    cache = new_cache(&options);
    expect_trim_at(cache, 5000, false);
    use_cache(cache, 3, 100 * KIB); /* idle since 5000 */
    expect_trim_at(cache, 5000, false);
    expect_trim_at(cache, 5999, false);
    expect_trim_at(cache, 6000, false);
    expect_trim_at(cache, 6001, true);
    assert_int_equal(expect_cache_stats(cache).idle_bytes, 0);
    use_cache(cache, 3, 100 * KIB); /* idle since 6001 */
    expect_trim_at(cache, 7001, false);
    use_cache(cache, 3, 100 * KIB); /* used again: since 7001 */
    expect_trim_at(cache, 8001, false);
    expect_trim_at(cache, 8002, true);
    segzstd_cache_free(cache);
}

static void test_trim__default_age__is_60_s(void **state)
{
    uint64_t second = 1000 * 1000 * 1000;
    segzstd_cache *cache = expect_cache(1, NULL);

    (void)state;
    expect_trim_at(cache, second, false);
    use_cache(cache, 3, 100 * KIB);
    expect_trim_at(cache, 61 * second, false);
    expect_trim_at(cache, 61 * second + 1, true);
    segzstd_cache_free(cache);
}

/* What is old goes, what is young stays. */
static void test_trim__of_old_and_young__releases_the_old_only(void **state)
{
    segzstd_cache_options options = SEGZSTD_CACHE_OPTIONS_INIT;
    segzstd_cache *cache;
    uint64_t both, young;

    (void)state;
    options.idle_ns = 1000;
    options.workers = 2;
    cache = new_cache(&options);
    segzstd_cache_trim(cache, 1);
    use_cache(cache, 9, 400 * KIB);
    segzstd_cache_trim(cache, 900);
    use_cache(cache, 1, 400 * KIB);
    both = expect_cache_stats(cache).encoder_bytes;
    expect_trim_at(cache, 1500, true);
    young = expect_cache_stats(cache).encoder_bytes;
    assert_true(young > 0 && young < both);
    expect_trim_at(cache, 3000, true);
    assert_int_equal(expect_cache_stats(cache).encoder_bytes, 0);
    segzstd_cache_free(cache);
}

/* A stream that was quiet for long goes on, whatever became of its encoder. */
static void test_trim__while_streams_are_quiet__they_go_on(void **state)
{
    enum { STREAMS = 5 };
    segzstd_cache *cache = expect_cache(3, NULL);
    unsigned char *content = data_new(20 * KIB, DATA_JSON, SEED);
    struct drive drives[STREAMS];
    uint64_t now = 1;

    (void)state;
    for (int i = 0; i < STREAMS; i++)
        drive_init(&drives[i], expect_stream(cache, NULL), SEED);
    for (size_t at = 0; at < 20 * KIB; at += 2 * KIB) {
        for (int i = 0; i < STREAMS; i++) {
            assert_int_equal(
                drive_push(&drives[i], content + at, 2 * KIB, SEGZSTD_FLUSH),
                0);
            if (i % 2 == 0)
                segzstd_cache_trim(cache, now += (uint64_t)1 << 40);
            assert_int_equal(drive_rest(&drives[i]), 0);
        }
        segzstd_cache_trim(cache, now += (uint64_t)1 << 40);
    }
    for (int i = 0; i < STREAMS; i++) {
        assert_int_equal(drive_end(&drives[i]), 0);
        expect_frame(&drives[i], content, 20 * KIB);
        segzstd_stream_free(drives[i].stream);
        drive_free(&drives[i]);
    }
    free(content);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */

static void test_free__used_in_every_way__leaves_nothing(void **state)
{
    static struct test_alloc alloc;
    int top = (int)env_pick("highest level", 15, 5);

    (void)state;
    for (int retention = 0; retention < 3; retention++) {
        segzstd_cache_options options = SEGZSTD_CACHE_OPTIONS_INIT;
        segzstd_cache *cache;

        alloc_init(&alloc);
        options.allocator = &alloc.api;
        options.retention = (segzstd_retention)retention;
        options.retain_bytes = 2 * MIB;
        options.workers = 3;
        cache = new_cache(&options);
        for (int level = -1; level <= top; level += 2)
            use_cache(cache, level, 200 * KIB);
        segzstd_cache_free(cache);
        expect_no_fault(alloc_done(&alloc));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stats__of_a_new_cache__count_nothing),
        cmocka_unit_test(test_stats__stored_and_ended__counts_every_byte),
        cmocka_unit_test(test_stats__after_streams__add_up),
        cmocka_unit_test(test_stats__encoder_between_two_jobs__is_held),
        cmocka_unit_test(test_stats__bytes__are_what_the_allocator_gave),
        cmocka_unit_test(test_reuse__same_streams__need_no_more_memory),
        cmocka_unit_test(test_small_content__high_level__costs_little),
        cmocka_unit_test(test_open_streams__at_rest__cost_little),
        cmocka_unit_test(test_retain__none__keeps_nothing),
        cmocka_unit_test(test_retain__bounded__keeps_no_more_than_that),
        cmocka_unit_test(test_retain__all__keeps_until_trimmed),
        cmocka_unit_test(test_trim__by_age__releases_what_is_older),
        cmocka_unit_test(test_trim__default_age__is_60_s),
        cmocka_unit_test(test_trim__of_old_and_young__releases_the_old_only),
        cmocka_unit_test(test_trim__while_streams_are_quiet__they_go_on),
        cmocka_unit_test(test_free__used_in_every_way__leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
