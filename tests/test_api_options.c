/*
 * Option and statistics structs: those of older callers are smaller, those of
 * newer ones larger; a field that is left 0 has its default; what is out of
 * range is refused by name. And the small functions beside them.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "support/expect.h"

enum { KIB = 1 << 10, SEED = 17, TAIL = 64, GARBAGE = 0xa5 };

/* A struct as a newer caller would have it: known fields, then others. */
struct newer_stream_options {
    segzstd_stream_options known;
    unsigned char tail[TAIL];
};

struct newer_cache_options {
    segzstd_cache_options known;
    unsigned char tail[TAIL];
};

struct newer_cache_stats {
    segzstd_cache_stats known;
    unsigned char tail[TAIL];
};

struct newer_stream_stats {
    segzstd_stream_stats known;
    unsigned char tail[TAIL];
};

static void round_trip(segzstd_cache *cache,
                       const segzstd_stream_options *options,
                       struct oracle_header *header)
{
    unsigned char *content = data_new(100 * KIB, DATA_JSON, SEED);
    struct drive d;

    drive_init(&d, expect_stream(cache, options), SEED);
    /* The header is written before the end is known. */
    assert_int_equal(drive_push(&d, content, 70 * KIB, SEGZSTD_FLUSH), 0);
    assert_int_equal(drive_rest(&d), 0);
    assert_int_equal(
        drive_push(&d, content + 70 * KIB, 30 * KIB, SEGZSTD_CONTINUE), 0);
    assert_int_equal(drive_end(&d), 0);
    expect_frame(&d, content, 100 * KIB);
    assert_true(oracle_read_header(d.out, d.out_len, header));
    segzstd_stream_free(d.stream);
    drive_free(&d);
    free(content);
}

/* ------------------------------------------------------------------------ */
/* Older and newer                                                          */

/* Whatever lies behind struct_size is not looked at. */
static void test_stream_options__of_any_older_size__have_defaults(void **state)
{
    static const size_t sizes[] = {
        sizeof(size_t),
        offsetof(segzstd_stream_options, window_log),
        offsetof(segzstd_stream_options, size),
        offsetof(segzstd_stream_options, size_is_certain),
        offsetof(segzstd_stream_options, checksum),
        offsetof(segzstd_stream_options, segment_bytes),
        offsetof(segzstd_stream_options, overlap_bytes),
        offsetof(segzstd_stream_options, max_jobs),
        offsetof(segzstd_stream_options, input_bytes),
        offsetof(segzstd_stream_options, output_bytes),
        offsetof(segzstd_stream_options, history_bytes),
        offsetof(segzstd_stream_options, dict),
        offsetof(segzstd_stream_options, no_dict_id),
        offsetof(segzstd_stream_options, user),
        offsetof(segzstd_stream_options, read_bytes),
        offsetof(segzstd_stream_options, extent_bytes),
    };
    segzstd_cache *cache = expect_cache(2, NULL);

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        segzstd_stream_options given = SEGZSTD_STREAM_OPTIONS_INIT;
        struct oracle_header header;
        const char *field = NULL;

        given.level = 2;
        given.checksum = 1;
        given.segment_bytes = 64 * KIB;
        memset((char *)&given + sizes[i], GARBAGE, sizeof(given) - sizes[i]);
        given.struct_size = sizes[i];
        assert_int_equal(segzstd_stream_options_check(&given, &field), 0);
        round_trip(cache, &given, &header);
        assert_int_equal(header.checksum,
                         sizes[i] > offsetof(segzstd_stream_options, checksum));
        assert_true(header.content_size == ORACLE_NO_SIZE);
    }
    segzstd_cache_free(cache);
}

static void test_stream_options__of_a_newer_size__must_be_0_beyond(void **state)
{
    struct newer_stream_options given = {SEGZSTD_STREAM_OPTIONS_INIT, {0}};
    segzstd_cache *cache = expect_cache(1, NULL);
    segzstd_stream *stream = NULL;
    const char *field = NULL;

    (void)state;
    given.known.struct_size = sizeof(given);
    assert_int_equal(segzstd_stream_options_check(&given.known, &field), 0);
    stream = expect_stream(cache, &given.known);
    segzstd_stream_free(stream);
    for (size_t i = 0; i < TAIL; i += TAIL - 1) {
        memset(given.tail, 0, TAIL);
        given.tail[i] = 1;
        stream = NULL;
        assert_int_equal(segzstd_stream_options_check(&given.known, &field),
                         SEGZSTD_ERR_INVALID);
        assert_string_equal(field, "struct_size");
        assert_int_equal(segzstd_stream_new(&stream, cache, &given.known),
                         SEGZSTD_ERR_INVALID);
        assert_null(stream);
    }
    segzstd_cache_free(cache);
}

static void test_cache_options__of_any_older_size__have_defaults(void **state)
{
    static const size_t sizes[] = {
        sizeof(size_t),
        offsetof(segzstd_cache_options, workers),
        offsetof(segzstd_cache_options, encoders_kept),
        offsetof(segzstd_cache_options, byte_budget),
        offsetof(segzstd_cache_options, retention),
        offsetof(segzstd_cache_options, retain_bytes),
        offsetof(segzstd_cache_options, idle_ns),
        offsetof(segzstd_cache_options, no_huge_pages),
        offsetof(segzstd_cache_options, no_stable_input),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        segzstd_cache_options given = SEGZSTD_CACHE_OPTIONS_INIT;
        struct oracle_header header;
        segzstd_cache *cache = NULL;
        segzstd_cache_stats stats;

        given.workers = 3;
        memset((char *)&given + sizes[i], GARBAGE, sizeof(given) - sizes[i]);
        given.struct_size = sizes[i];
        assert_int_equal(segzstd_cache_new(&cache, &given), 0);
        stats = expect_cache_stats(cache);
        if (sizes[i] > offsetof(segzstd_cache_options, workers)) {
            assert_int_equal(stats.workers, 3);
            assert_int_equal(stats.encoders_limit, 6);
        }
        round_trip(cache, NULL, &header);
        segzstd_cache_free(cache);
    }
}

static void test_cache_options__of_a_newer_size__must_be_0_beyond(void **state)
{
    struct newer_cache_options given = {SEGZSTD_CACHE_OPTIONS_INIT, {0}};
    segzstd_cache *cache = NULL;

    (void)state;
    given.known.struct_size = sizeof(given);
    assert_int_equal(segzstd_cache_new(&cache, &given.known), 0);
    segzstd_cache_free(cache);
    cache = NULL;
    given.tail[TAIL - 1] = 1;
    assert_int_equal(segzstd_cache_new(&cache, &given.known),
                     SEGZSTD_ERR_INVALID);
    assert_null(cache);
}

/* Nothing is written behind the size that the caller gave. */
static void test_cache_stats__of_any_size__are_filled_so_far(void **state)
{
    segzstd_cache *cache = expect_cache(3, NULL);
    struct newer_cache_stats all, given;

    (void)state;
    memset(&all, GARBAGE, sizeof(all));
    all.known.struct_size = sizeof(all);
    assert_int_equal(segzstd_cache_get_stats(cache, &all.known), 0);
    assert_int_equal(all.known.struct_size, sizeof(all));
    assert_int_equal(all.known.workers, 3);
    for (size_t i = 0; i < TAIL; i++)
        assert_int_equal(all.tail[i], 0);
    for (size_t size = sizeof(size_t); size <= sizeof(all.known); size += 4) {
        memset(&given, GARBAGE, sizeof(given));
        given.known.struct_size = size;
        assert_int_equal(segzstd_cache_get_stats(cache, &given.known), 0);
        assert_int_equal(given.known.struct_size, size);
        assert_memory_equal((char *)&given + sizeof(size_t),
                            (char *)&all + sizeof(size_t),
                            size - sizeof(size_t));
        for (size_t i = size; i < sizeof(given); i++)
            assert_int_equal(((unsigned char *)&given)[i], GARBAGE);
    }
    segzstd_cache_free(cache);
}

static void test_stream_stats__of_any_size__are_filled_so_far(void **state)
{
    segzstd_cache *cache = expect_cache(3, NULL);
    segzstd_stream *stream = expect_stream(cache, NULL);
    struct newer_stream_stats all, given;
    size_t taken;

    (void)state;
    assert_int_equal(
        segzstd_stream_push(stream, "hello", 5, SEGZSTD_CONTINUE, &taken), 0);
    memset(&all, GARBAGE, sizeof(all));
    all.known.struct_size = sizeof(all);
    assert_int_equal(segzstd_stream_get_stats(stream, &all.known), 0);
    assert_int_equal(all.known.bytes_in, 5);
    for (size_t i = 0; i < TAIL; i++)
        assert_int_equal(all.tail[i], 0);
    for (size_t size = sizeof(size_t); size <= sizeof(all.known); size += 4) {
        memset(&given, GARBAGE, sizeof(given));
        given.known.struct_size = size;
        assert_int_equal(segzstd_stream_get_stats(stream, &given.known), 0);
        assert_memory_equal((char *)&given + sizeof(size_t),
                            (char *)&all + sizeof(size_t),
                            size - sizeof(size_t));
        for (size_t i = size; i < sizeof(given); i++)
            assert_int_equal(((unsigned char *)&given)[i], GARBAGE);
    }
    segzstd_stream_free(stream);
    segzstd_cache_free(cache);
}

static void test_struct_size__0_or_too_small__is_refused(void **state)
{
    segzstd_stream_options so = SEGZSTD_STREAM_OPTIONS_INIT;
    segzstd_cache_options co = SEGZSTD_CACHE_OPTIONS_INIT;
    segzstd_stream_stats ss = SEGZSTD_STREAM_STATS_INIT;
    segzstd_cache_stats cs = SEGZSTD_CACHE_STATS_INIT;
    segzstd_cache *cache = expect_cache(1, NULL), *none = NULL;
    segzstd_stream *stream = expect_stream(cache, NULL), *no_stream = NULL;
    const char *field = NULL;

    (void)state;
    for (size_t size = 0; size < sizeof(size_t); size += sizeof(size_t) - 1) {
        so.struct_size = co.struct_size = size;
        ss.struct_size = cs.struct_size = size;
        assert_int_equal(segzstd_stream_options_check(&so, &field),
                         SEGZSTD_ERR_INVALID);
        assert_string_equal(field, "struct_size");
        assert_int_equal(segzstd_stream_new(&no_stream, cache, &so),
                         SEGZSTD_ERR_INVALID);
        assert_null(no_stream);
        assert_int_equal(segzstd_cache_new(&none, &co), SEGZSTD_ERR_INVALID);
        assert_null(none);
        assert_int_equal(segzstd_stream_get_stats(stream, &ss),
                         SEGZSTD_ERR_INVALID);
        assert_int_equal(segzstd_cache_get_stats(cache, &cs),
                         SEGZSTD_ERR_INVALID);
    }
    segzstd_stream_free(stream);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */
/* Defaults                                                                 */

/* All fields 0, but for those whose 0 is a value. */
static void test_stream_options__all_0__are_the_defaults(void **state)
{
    segzstd_stream_options zero, init = SEGZSTD_STREAM_OPTIONS_INIT;
    segzstd_cache *cache = expect_cache(1, NULL);
    const segzstd_stream_options *given[3] = {NULL, &init, &zero};
    unsigned char *content = data_new(100 * KIB, DATA_JSON, SEED);
    struct drive d[3];

    (void)state;
    memset(&zero, 0, sizeof(zero));
    zero.struct_size = sizeof(zero);
    zero.size = SEGZSTD_SIZE_UNKNOWN;
    for (int i = 0; i < 3; i++) {
        drive_init(&d[i], expect_stream(cache, given[i]), SEED);
        assert_int_equal(segzstd_stream_want_input(d[i].stream), 8 << 20);
        assert_null(segzstd_stream_user(d[i].stream));
        assert_int_equal(drive_push(&d[i], content, 100 * KIB, SEGZSTD_END), 0);
        assert_int_equal(drive_end(&d[i]), 0);
        expect_frame(&d[i], content, 100 * KIB);
        assert_int_equal(d[i].out_len, d[0].out_len);
        assert_memory_equal(d[i].out, d[0].out, d[0].out_len);
        segzstd_stream_free(d[i].stream);
    }
    for (int i = 0; i < 3; i++)
        drive_free(&d[i]);
    free(content);
    segzstd_cache_free(cache);
}

static void test_level__0__is_3(void **state)
{
    unsigned char *content = data_new(100 * KIB, DATA_TEXT, SEED);
    segzstd_cache *cache = expect_cache(1, NULL);
    struct drive d[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

        options.level = i * 3;
        drive_init(&d[i], expect_stream(cache, &options), SEED);
        assert_int_equal(drive_push(&d[i], content, 100 * KIB, SEGZSTD_END), 0);
        assert_int_equal(drive_end(&d[i]), 0);
        segzstd_stream_free(d[i].stream);
    }
    assert_int_equal(d[0].out_len, d[1].out_len);
    assert_memory_equal(d[0].out, d[1].out, d[0].out_len);
    drive_free(&d[0]);
    drive_free(&d[1]);
    free(content);
    segzstd_cache_free(cache);
}

static void test_cache_options__counts__are_as_asked_for(void **state)
{
    static const struct {
        unsigned workers, kept, limit;
    } cases[] = {
        {1, 0, 2}, {4, 0, 8},          {4, SEGZSTD_NONE, 4},
        {4, 2, 6}, {1024, 1024, 2048}, {1024, SEGZSTD_NONE, 1024},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        segzstd_cache_options options = SEGZSTD_CACHE_OPTIONS_INIT;
        segzstd_cache *cache = NULL;

        options.workers = cases[i].workers;
        options.encoders_kept = cases[i].kept;
        assert_int_equal(segzstd_cache_new(&cache, &options), 0);
        assert_int_equal(expect_cache_stats(cache).workers, cases[i].workers);
        assert_int_equal(expect_cache_stats(cache).encoders_limit,
                         cases[i].limit);
        segzstd_cache_free(cache);
    }
}

static void test_cache_options__none_given__are_the_defaults(void **state)
{
    segzstd_cache *cache = NULL;
    segzstd_cache_stats stats;

    (void)state;
    assert_int_equal(segzstd_cache_new(&cache, NULL), 0);
    stats = expect_cache_stats(cache);
    assert_in_range(stats.workers, 1, 1024);
    assert_int_equal(stats.encoders_limit, 2 * stats.workers);
    assert_int_equal(stats.encoders_live, 0);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */
/* Out of range                                                             */

static void expect_field(const segzstd_stream_options *options,
                         const char *name)
{
    segzstd_cache *cache = expect_cache(1, NULL);
    segzstd_stream *stream = NULL;
    const char *field = NULL;

    assert_int_equal(segzstd_stream_options_check(options, &field),
                     SEGZSTD_ERR_INVALID);
    assert_non_null(field);
    assert_string_equal(field, name);
    assert_int_equal(segzstd_stream_options_check(options, NULL),
                     SEGZSTD_ERR_INVALID);
    assert_int_equal(segzstd_stream_new(&stream, cache, options),
                     SEGZSTD_ERR_INVALID);
    assert_null(stream);
    assert_int_equal(expect_cache_stats(cache).streams_open, 0);
    segzstd_cache_free(cache);
}

static void expect_fine(const segzstd_stream_options *options)
{
    segzstd_cache *cache = expect_cache(1, NULL);

    assert_int_equal(segzstd_stream_options_check(options, NULL), 0);
    segzstd_stream_free(expect_stream(cache, options));
    segzstd_cache_free(cache);
}

static void test_level__out_of_range__is_named(void **state)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

    (void)state;
    assert_int_equal(segzstd_min_level(), ZSTD_minCLevel());
    assert_int_equal(segzstd_max_level(), ZSTD_maxCLevel());
    options.level = segzstd_max_level();
    expect_fine(&options);
    options.level++;
    expect_field(&options, "level");
    options.level = INT_MAX;
    expect_field(&options, "level");
    options.level = segzstd_min_level();
    expect_fine(&options);
    options.level--;
    expect_field(&options, "level");
    options.level = INT_MIN;
    expect_field(&options, "level");
}

static void test_window_log__out_of_range__is_named(void **state)
{
    static const unsigned wrong[] = {1, 9, 32, 64, UINT_MAX};
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        options.window_log = wrong[i];
        expect_field(&options, "window_log");
    }
    options.window_log = 10;
    expect_fine(&options);
    options.window_log = sizeof(size_t) == 4 ? 30 : 31;
    expect_fine(&options);
}

static void test_byte_options__out_of_range__are_named(void **state)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

    (void)state;
    options.segment_bytes = 64 * KIB - 1;
    expect_field(&options, "segment_bytes");
    options.segment_bytes = ((size_t)1 << 30) + 1;
    expect_field(&options, "segment_bytes");
    options.segment_bytes = (size_t)1 << 30;
    expect_fine(&options);
    options.segment_bytes = 64 * KIB;
    expect_fine(&options);
    options.read_bytes = 128 * KIB - 1;
    expect_field(&options, "read_bytes");
    options.read_bytes = 128 * KIB;
    options.extent_bytes = 128 * KIB - 1;
    expect_field(&options, "extent_bytes");
    options.extent_bytes = 128 * KIB;
    options.input_bytes = 128 * KIB - 1;
    expect_field(&options, "input_bytes");
    options.input_bytes = 128 * KIB;
    expect_fine(&options);
    options.output_bytes = 64 * KIB - 1;
    expect_field(&options, "output_bytes");
    options.output_bytes = 64 * KIB;
    expect_fine(&options);
}

static void test_options_check__several_at_fault__names_the_first(void **state)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

    (void)state;
    options.output_bytes = 1;
    expect_field(&options, "output_bytes");
    options.input_bytes = 1;
    expect_field(&options, "input_bytes");
    options.segment_bytes = 1;
    expect_field(&options, "segment_bytes");
    options.window_log = 1;
    expect_field(&options, "window_log");
    options.level = 1000;
    expect_field(&options, "level");
}

static void expect_cache_refused(const segzstd_cache_options *options)
{
    segzstd_cache *cache = NULL;

    assert_int_equal(segzstd_cache_new(&cache, options), SEGZSTD_ERR_INVALID);
    assert_null(cache);
}

static void test_cache_options__out_of_range__are_refused(void **state)
{
    segzstd_cache_options init = SEGZSTD_CACHE_OPTIONS_INIT, options = init;
    segzstd_allocator half = {NULL, NULL, NULL};

    (void)state;
    options.workers = 1025;
    expect_cache_refused(&options);
    options.workers = SEGZSTD_NONE;
    expect_cache_refused(&options);
    options = init;
    options.encoders_kept = 1025;
    expect_cache_refused(&options);
    options = init;
    options.retention = (segzstd_retention)3;
    expect_cache_refused(&options);
    options = init;
    options.allocator = &half;
    expect_cache_refused(&options);
}

/* ------------------------------------------------------------------------ */

static void test_strerror__any_value__is_a_sentence(void **state)
{
    (void)state;
    for (int error = 5; error > -120; error--) {
        const char *text = segzstd_strerror(error);

        assert_non_null(text);
        assert_true(strlen(text) > 3);
        assert_int_not_equal(text[strlen(text) - 1], '.');
    }
    assert_string_not_equal(segzstd_strerror(SEGZSTD_ERR_NOMEM),
                            segzstd_strerror(SEGZSTD_ERR_AGAIN));
    assert_non_null(segzstd_strerror(INT_MIN));
    assert_non_null(segzstd_strerror(INT_MAX));
}

static void test_is_fatal__values_below_the_line__are(void **state)
{
    (void)state;
    assert_false(segzstd_is_fatal(0));
    assert_false(segzstd_is_fatal(SEGZSTD_ERR_INVALID));
    assert_false(segzstd_is_fatal(SEGZSTD_ERR_DST_SIZE));
    assert_true(segzstd_is_fatal(SEGZSTD_ERR_ZSTD));
    assert_true(segzstd_is_fatal(SEGZSTD_ERR_SIZE));
    assert_true(segzstd_is_fatal(SEGZSTD_ERR_READ));
    assert_true(segzstd_is_fatal(SEGZSTD_ERR_CANCELED));
    assert_true(segzstd_is_fatal(SEGZSTD_ERR_INTERNAL));
}

static void test_version__of_both_libraries__is_told(void **state)
{
    char want[32];

    (void)state;
    snprintf(want, sizeof(want), "%d.%d.%d", SEGZSTD_VERSION_MAJOR,
             SEGZSTD_VERSION_MINOR, SEGZSTD_VERSION_PATCH);
    assert_string_equal(segzstd_version(), want);
    assert_string_equal(segzstd_zstd_version(), ZSTD_versionString());
}

/* More for more, and nothing for what there is not. */
static void test_encoder_bytes__public__follows_level_and_size(void **state)
{
    (void)state;
    assert_int_equal(segzstd_encoder_bytes(0, 0, SEGZSTD_SIZE_UNKNOWN),
                     segzstd_encoder_bytes(3, 23, SEGZSTD_SIZE_UNKNOWN));
    assert_true(segzstd_encoder_bytes(19, 0, SEGZSTD_SIZE_UNKNOWN) >
                10 * segzstd_encoder_bytes(3, 0, SEGZSTD_SIZE_UNKNOWN));
    assert_true(segzstd_encoder_bytes(19, 0, 1 << 16) * 10 <
                segzstd_encoder_bytes(19, 0, SEGZSTD_SIZE_UNKNOWN));
    assert_true(segzstd_encoder_bytes(22, 20, SEGZSTD_SIZE_UNKNOWN) <
                segzstd_encoder_bytes(22, 27, SEGZSTD_SIZE_UNKNOWN));
    assert_true(segzstd_encoder_bytes(segzstd_min_level(), 0, 0) > 0);
    assert_int_equal(segzstd_encoder_bytes(segzstd_max_level() + 1, 0, 0), 0);
    assert_int_equal(segzstd_encoder_bytes(3, 9, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encoder_bytes__public__follows_level_and_size),
        cmocka_unit_test(test_stream_options__of_any_older_size__have_defaults),
        cmocka_unit_test(
            test_stream_options__of_a_newer_size__must_be_0_beyond),
        cmocka_unit_test(test_cache_options__of_any_older_size__have_defaults),
        cmocka_unit_test(test_cache_options__of_a_newer_size__must_be_0_beyond),
        cmocka_unit_test(test_cache_stats__of_any_size__are_filled_so_far),
        cmocka_unit_test(test_stream_stats__of_any_size__are_filled_so_far),
        cmocka_unit_test(test_struct_size__0_or_too_small__is_refused),
        cmocka_unit_test(test_stream_options__all_0__are_the_defaults),
        cmocka_unit_test(test_level__0__is_3),
        cmocka_unit_test(test_cache_options__counts__are_as_asked_for),
        cmocka_unit_test(test_cache_options__none_given__are_the_defaults),
        cmocka_unit_test(test_level__out_of_range__is_named),
        cmocka_unit_test(test_window_log__out_of_range__is_named),
        cmocka_unit_test(test_byte_options__out_of_range__are_named),
        cmocka_unit_test(test_options_check__several_at_fault__names_the_first),
        cmocka_unit_test(test_cache_options__out_of_range__are_refused),
        cmocka_unit_test(test_strerror__any_value__is_a_sentence),
        cmocka_unit_test(test_is_fatal__values_below_the_line__are),
        cmocka_unit_test(test_version__of_both_libraries__is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
