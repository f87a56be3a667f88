/*
 * Dictionaries: raw and trained, at all levels, shared, and in frames of many
 * segments, where only the first of them begins with the dictionary's tables.
 */
#include <stdlib.h>
#include <string.h>
#include <zdict.h>

#include "support/env.h"
#include "support/expect.h"

enum {
    KIB = 1 << 10,
    MIB = 1 << 20,
    SEGMENT = 64 * KIB,
    SAMPLES = 1000,
    SAMPLE = 300,
    DICT_MAX = 16 * KIB,
    SEED = 13
};

/* The bytes of a dictionary, and what the library made of them. */
struct dict {
    unsigned char bytes[DICT_MAX];
    size_t len;
    segzstd_dict *dict;
};

static void dict_raw(struct dict *dict, segzstd_cache *cache, size_t len)
{
    dict->len = len;
    data_fill(dict->bytes, len, DATA_JSON, SEED + 1);
    assert_int_equal(
        segzstd_dict_new(&dict->dict, cache, dict->bytes, dict->len), 0);
}

static size_t train(unsigned char *bytes, size_t cap)
{
    unsigned char *samples = data_new(SAMPLES * SAMPLE, DATA_JSON, SEED + 2);
    size_t sizes[SAMPLES], len;

    for (size_t i = 0; i < SAMPLES; i++)
        sizes[i] = SAMPLE;
    len = ZDICT_trainFromBuffer(bytes, cap, samples, sizes, SAMPLES);
    assert_false(ZDICT_isError(len));
    free(samples);
    return len;
}

static void dict_trained(struct dict *dict, segzstd_cache *cache)
{
    dict->len = train(dict->bytes, sizeof(dict->bytes));
    assert_int_equal(
        segzstd_dict_new(&dict->dict, cache, dict->bytes, dict->len), 0);
}

static segzstd_stream_options dict_options(const struct dict *dict, int level,
                                           size_t segment_bytes)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

    options.level = level;
    options.segment_bytes = segment_bytes;
    options.dict = dict->dict;
    return options;
}

static void expect_dict_frame(const struct drive *d, const struct dict *dict,
                              const unsigned char *content, size_t len)
{
    struct oracle_want want = {content,   len, dict->bytes,
                               dict->len, 0,   ORACLE_SIZE_ANY};

    expect_no_fault(d->fault);
    assert_true(segzstd_stream_is_done(d->stream));
    expect_no_fault(oracle_check(d->out, d->out_len, &want));
}

/* Returns the size of the frame. */
static size_t round_trip(segzstd_cache *cache,
                         const segzstd_stream_options *options,
                         const struct dict *dict, const unsigned char *content,
                         size_t len)
{
    size_t out_len;
    struct drive d;

    drive_init(&d, expect_stream(cache, options), SEED);
    d.order = DRIVE_ANY;
    assert_int_equal(drive_push(&d, content, len, SEGZSTD_END), 0);
    assert_int_equal(drive_end(&d), 0);
    expect_dict_frame(&d, dict, content, len);
    segzstd_stream_free(d.stream);
    out_len = d.out_len;
    drive_free(&d);
    return out_len;
}

/* ------------------------------------------------------------------------ */

static void round_trip_sizes(segzstd_cache *cache, const struct dict *dict,
                             int level)
{
    static const size_t lens[] = {0, 1, 100, 4000, SEGMENT + 1, 300 * KIB};
    size_t count = level > 12 ? 4 : 6;
    unsigned char *content = data_new(300 * KIB, DATA_JSON, SEED);

    for (size_t i = 0; i < count; i++) {
        segzstd_stream_options options = dict_options(dict, level, 0);

        options.size = lens[i];
        round_trip(cache, &options, dict, content, lens[i]);
        options.segment_bytes = SEGMENT;
        round_trip(cache, &options, dict, content, lens[i]);
        options.overlap_bytes = SEGZSTD_OVERLAP_NONE;
        options.checksum = 1;
        round_trip(cache, &options, dict, content, lens[i]);
    }
    free(content);
}

static void test_dict__raw_or_trained_at_any_level__decodes(void **state)
{
    static const int levels[] = {-7, -1, 1,  2,  3,  4,  5,
                                 6,  8,  11, 13, 16, 19, 22};
    size_t count = env_pick("levels", 14, 5);
    segzstd_cache *cache = expect_cache(3, NULL);
    struct dict raw, trained;

    (void)state;
    dict_raw(&raw, cache, DICT_MAX);
    dict_trained(&trained, cache);
    for (size_t i = 0; i < count; i++) {
        round_trip_sizes(cache, &raw, levels[i]);
        round_trip_sizes(cache, &trained, levels[i]);
    }
    segzstd_dict_free(raw.dict);
    segzstd_dict_free(trained.dict);
    segzstd_cache_free(cache);
}

static void test_dict__any_kind_of_content__decodes(void **state)
{
    size_t len = env_pick("content", 400 * KIB, 150 * KIB);
    segzstd_cache *cache = expect_cache(3, NULL);
    struct dict raw, trained;

    (void)state;
    dict_raw(&raw, cache, 1000);
    dict_trained(&trained, cache);
    for (int kind = 0; kind < DATA_KINDS; kind++) {
        unsigned char *content = data_new(len, (enum data_kind)kind, SEED);

        for (int level = 1; level < 8; level += 2) {
            segzstd_stream_options options = dict_options(&raw, level, SEGMENT);

            options.overlap_bytes = SEGZSTD_OVERLAP_NONE;
            round_trip(cache, &options, &raw, content, len);
            options.dict = trained.dict;
            round_trip(cache, &options, &trained, content, len);
        }
        free(content);
    }
    segzstd_dict_free(raw.dict);
    segzstd_dict_free(trained.dict);
    segzstd_cache_free(cache);
}

/* A dictionary that makes nothing smaller is not used. */
static void test_dict__like_the_content__makes_it_smaller(void **state)
{
    segzstd_cache *cache = expect_cache(1, NULL);
    unsigned char *content = data_new(2000, DATA_JSON, SEED);
    struct dict raw, trained, none = {{0}, 0, NULL};
    segzstd_stream_options options = dict_options(&none, 3, 0);
    size_t without = round_trip(cache, &options, &none, content, 2000);

    (void)state;
    dict_raw(&raw, cache, DICT_MAX);
    dict_trained(&trained, cache);
    options.dict = raw.dict;
    assert_true(round_trip(cache, &options, &raw, content, 2000) <
                without - without / 10);
    options.dict = trained.dict;
    assert_true(round_trip(cache, &options, &trained, content, 2000) <
                without - without / 10);
    segzstd_dict_free(raw.dict);
    segzstd_dict_free(trained.dict);
    free(content);
    segzstd_cache_free(cache);
}

static void test_dict__large_body__decodes(void **state)
{
    size_t len = env_pick("content", 8 * MIB, MIB);
    segzstd_cache *cache = expect_cache(4, NULL);
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    struct dict trained;
    segzstd_stream_options options;

    (void)state;
    dict_trained(&trained, cache);
    options = dict_options(&trained, 1, MIB);
    round_trip(cache, &options, &trained, content, len);
    options.segment_bytes = 0;
    round_trip(cache, &options, &trained, content, len);
    /* The dictionary is soon beyond the window. */
    options.window_log = 16;
    round_trip(cache, &options, &trained, content, MIB);
    options.segment_bytes = SEGMENT;
    round_trip(cache, &options, &trained, content, MIB);
    segzstd_dict_free(trained.dict);
    free(content);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */

static uint32_t id_in_frame(segzstd_cache *cache, const struct dict *dict,
                            int no_dict_id)
{
    segzstd_stream_options options = dict_options(dict, 3, 0);
    struct oracle_header header;
    struct drive d;

    options.no_dict_id = no_dict_id;
    drive_init(&d, expect_stream(cache, &options), SEED);
    assert_int_equal(drive_push(&d, "hello", 5, SEGZSTD_END), 0);
    assert_int_equal(drive_end(&d), 0);
    expect_dict_frame(&d, dict, (const unsigned char *)"hello", 5);
    assert_true(oracle_read_header(d.out, d.out_len, &header));
    segzstd_stream_free(d.stream);
    drive_free(&d);
    return header.dict_id;
}

static void test_dict_id__of_a_trained_one__is_in_the_header(void **state)
{
    segzstd_cache *cache = expect_cache(1, NULL);
    struct dict trained;
    uint32_t id;

    (void)state;
    dict_trained(&trained, cache);
    id = segzstd_dict_id(trained.dict);
    assert_int_equal(id, ZDICT_getDictID(trained.bytes, trained.len));
    assert_int_not_equal(id, 0);
    assert_int_equal(id_in_frame(cache, &trained, 0), id);
    assert_int_equal(id_in_frame(cache, &trained, 1), 0);
    segzstd_dict_free(trained.dict);
    segzstd_cache_free(cache);
}

/* Ids are written in one, two or four bytes. */
static void test_dict_id__of_any_size__is_in_the_header(void **state)
{
    /* The last hundred are error codes for a libzstd whose sizes have 32 bits. */
    static const uint32_t ids[] = {1,     255,   256,
                                   65535, 65536, UINT32_MAX - 1000};
    segzstd_cache *cache = expect_cache(1, NULL);
    struct dict trained;

    (void)state;
    dict_trained(&trained, cache);
    segzstd_dict_free(trained.dict);
    for (size_t i = 0; i < 6; i++) {
        for (unsigned k = 0; k < 4; k++)
            trained.bytes[4 + k] = (unsigned char)(ids[i] >> (8 * k));
        assert_int_equal(
            segzstd_dict_new(&trained.dict, cache, trained.bytes, trained.len),
            0);
        assert_int_equal(segzstd_dict_id(trained.dict), ids[i]);
        assert_int_equal(id_in_frame(cache, &trained, 0), ids[i]);
        segzstd_dict_free(trained.dict);
    }
    segzstd_cache_free(cache);
}

static void test_dict_id__of_raw_bytes__is_none(void **state)
{
    segzstd_cache *cache = expect_cache(1, NULL);
    struct dict raw;

    (void)state;
    dict_raw(&raw, cache, 5000);
    assert_int_equal(segzstd_dict_id(raw.dict), 0);
    assert_int_equal(id_in_frame(cache, &raw, 0), 0);
    segzstd_dict_free(raw.dict);
    segzstd_cache_free(cache);
}

/* ------------------------------------------------------------------------ */

/* Streams of several levels at once; the maker's reference is long gone. */
static void test_dict__shared_by_streams__outlives_its_maker(void **state)
{
    enum { STREAMS = 12 };
    size_t len = 150 * KIB;
    static struct test_alloc alloc;
    segzstd_cache *cache;
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    struct drive drives[STREAMS];
    struct dict trained;

    (void)state;
    alloc_init(&alloc);
    cache = expect_cache(2, &alloc);
    dict_trained(&trained, cache);
    for (int i = 0; i < STREAMS; i++) {
        segzstd_stream_options options =
            dict_options(&trained, 1 + i % 4, i % 2 == 0 ? 0 : SEGMENT);

        drive_init(&drives[i], expect_stream(cache, &options), SEED);
    }
    segzstd_dict_free(trained.dict);
    for (size_t at = 0; at < len; at += 10 * KIB) {
        for (int i = 0; i < STREAMS; i++) {
            assert_int_equal(
                drive_push(&drives[i], content + at, 10 * KIB, SEGZSTD_FLUSH),
                0);
            assert_int_equal(drive_rest(&drives[i]), 0);
        }
    }
    for (int i = 0; i < STREAMS; i++) {
        assert_int_equal(drive_end(&drives[i]), 0);
        expect_dict_frame(&drives[i], &trained, content, len);
        segzstd_stream_free(drives[i].stream);
        drive_free(&drives[i]);
    }
    segzstd_cache_free(cache);
    expect_no_fault(alloc_done(&alloc));
    free(content);
}

/* The bytes are copied: what becomes of the caller's is of no matter. */
static void test_dict__bytes_overwritten__is_as_it_was(void **state)
{
    segzstd_cache *cache = expect_cache(1, NULL);
    unsigned char *content = data_new(3000, DATA_JSON, SEED);
    struct dict raw, kept;
    segzstd_stream_options options;

    (void)state;
    dict_raw(&raw, cache, 5000);
    kept = raw;
    memset(raw.bytes, 0, sizeof(raw.bytes));
    options = dict_options(&raw, 3, 0);
    round_trip(cache, &options, &kept, content, 3000);
    segzstd_dict_free(raw.dict);
    free(content);
    segzstd_cache_free(cache);
}

static void test_dict__first_bytes_stored__rest_decodes(void **state)
{
    size_t len = 200 * KIB, stored, taken;
    segzstd_cache *cache = expect_cache(2, NULL);
    unsigned char *content = data_new(len, DATA_JSON, SEED);
    struct dict trained;

    (void)state;
    dict_trained(&trained, cache);
    for (size_t segment = 0; segment <= SEGMENT; segment += SEGMENT) {
        segzstd_stream_options options = dict_options(&trained, 3, segment);
        struct drive d;

        drive_init(&d, expect_stream(cache, &options), SEED);
        assert_int_equal(segzstd_stream_push(d.stream, content, 1000,
                                             SEGZSTD_CONTINUE, &taken),
                         0);
        assert_int_equal(segzstd_stream_store(d.stream, 1000, &stored), 0);
        assert_int_equal(stored, 1000);
        assert_int_equal(
            drive_push(&d, content + 1000, len - 1000, SEGZSTD_END), 0);
        assert_int_equal(drive_end(&d), 0);
        expect_dict_frame(&d, &trained, content, len);
        segzstd_stream_free(d.stream);
        drive_free(&d);
    }
    segzstd_dict_free(trained.dict);
    free(content);
    segzstd_cache_free(cache);
}

static void expect_refused(segzstd_cache *cache, const void *bytes, size_t len)
{
    segzstd_dict *dict = NULL;

    assert_int_equal(segzstd_dict_new(&dict, cache, bytes, len),
                     SEGZSTD_ERR_INVALID);
    assert_null(dict);
}

static void test_dict_new__wrong_length__is_refused(void **state)
{
    segzstd_cache *cache = expect_cache(1, NULL);
    static const unsigned char bytes[8] = "abcdefg";
    segzstd_dict *dict = NULL;

    (void)state;
    expect_refused(cache, bytes, 0);
    expect_refused(cache, bytes, 7);
    expect_refused(cache, bytes, ((size_t)1 << 30) + 1);
    assert_int_equal(segzstd_dict_new(&dict, cache, bytes, 8), 0);
    segzstd_dict_free(dict);
    segzstd_cache_free(cache);
}

static void test_dict_new__broken_trained_one__is_refused(void **state)
{
    static struct test_alloc alloc;
    segzstd_cache *cache;
    struct dict trained;

    (void)state;
    alloc_init(&alloc);
    cache = expect_cache(1, &alloc);
    dict_trained(&trained, cache);
    segzstd_dict_free(trained.dict);
    /* Its tables are longer than that. */
    for (size_t len = 8; len < 60; len++)
        expect_refused(cache, trained.bytes, len);
    memset(trained.bytes + 8, 0xff, 100);
    expect_refused(cache, trained.bytes, trained.len);
    segzstd_cache_free(cache);
    expect_no_fault(alloc_done(&alloc));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dict__raw_or_trained_at_any_level__decodes),
        cmocka_unit_test(test_dict__any_kind_of_content__decodes),
        cmocka_unit_test(test_dict__like_the_content__makes_it_smaller),
        cmocka_unit_test(test_dict__large_body__decodes),
        cmocka_unit_test(test_dict_id__of_a_trained_one__is_in_the_header),
        cmocka_unit_test(test_dict_id__of_any_size__is_in_the_header),
        cmocka_unit_test(test_dict_id__of_raw_bytes__is_none),
        cmocka_unit_test(test_dict__shared_by_streams__outlives_its_maker),
        cmocka_unit_test(test_dict__bytes_overwritten__is_as_it_was),
        cmocka_unit_test(test_dict__first_bytes_stored__rest_decodes),
        cmocka_unit_test(test_dict_new__wrong_length__is_refused),
        cmocka_unit_test(test_dict_new__broken_trained_one__is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
