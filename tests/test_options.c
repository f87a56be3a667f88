#include "options.h"

#include <string.h>

#include "support/expect.h"

static segzstd_stream_options init_stream(void)
{
    return (segzstd_stream_options)SEGZSTD_STREAM_OPTIONS_INIT;
}

/* The name of the field at fault, or "" if the options are taken. */
static const char *fault_of(const segzstd_stream_options *given)
{
    segzstd_stream_options read;
    const char *field = "not set";
    int rc = segzstd__options_read_stream(&read, given, &field);

    assert_int_equal(segzstd_stream_options_check(given, NULL), rc);
    assert_int_equal(rc, field == NULL ? 0 : SEGZSTD_ERR_INVALID);
    return field == NULL ? "" : field;
}

/* ---- growing structs ---- */

static void test_read_cache__null__has_the_defaults(void **state)
{
    const segzstd_cache_options init = SEGZSTD_CACHE_OPTIONS_INIT;
    segzstd_cache_options read;

    (void)state;
    memset(&read, 0xaa, sizeof(read));
    assert_int_equal(segzstd__options_read_cache(&read, NULL), 0);
    assert_int_equal(read.struct_size, init.struct_size);
    assert_null(read.allocator);
    assert_int_equal(read.workers, 0);
    assert_int_equal(read.encoders_kept, 0);
    assert_int_equal(read.byte_budget, 0);
    assert_int_equal(read.retention, SEGZSTD_RETAIN_ALL);
    assert_int_equal(read.retain_bytes, 0);
    assert_int_equal(read.idle_ns, 0);
    assert_int_equal(read.no_huge_pages, 0);
    assert_int_equal(read.no_stable_input, 0);
}

static void test_read_cache__given__is_copied(void **state)
{
    const segzstd_allocator allocator = {NULL, NULL, NULL};
    const segzstd_cache_options given = {
        sizeof(given), &allocator, 1, 2, 3, SEGZSTD_RETAIN_NONE, 4, 5, 6, 7};
    segzstd_cache_options read;

    (void)state;
    assert_int_equal(segzstd__options_read_cache(&read, &given), 0);
    assert_ptr_equal(read.allocator, &allocator);
    assert_int_equal(read.workers, 1);
    assert_int_equal(read.encoders_kept, 2);
    assert_int_equal(read.byte_budget, 3);
    assert_int_equal(read.retention, SEGZSTD_RETAIN_NONE);
    assert_int_equal(read.retain_bytes, 4);
    assert_int_equal(read.idle_ns, 5);
    assert_int_equal(read.no_huge_pages, 6);
    assert_int_equal(read.no_stable_input, 7);
}

static void test_read_cache__size_below_its_own_field__refused(void **state)
{
    segzstd_cache_options given = SEGZSTD_CACHE_OPTIONS_INIT, read;

    (void)state;
    for (given.struct_size = 0; given.struct_size < sizeof(size_t);
         given.struct_size++)
        assert_int_equal(segzstd__options_read_cache(&read, &given),
                         SEGZSTD_ERR_INVALID);
    assert_int_equal(segzstd__options_read_cache(&read, &given), 0);
}

/* A caller built against a header that ended after `level`: what lies behind
 * its struct is not ours to read. */
static void test_read_stream__older_struct__rest_has_defaults(void **state)
{
    segzstd_stream_options given, read;

    (void)state;
    memset(&given, 0xaa, sizeof(given));
    given.struct_size = offsetof(segzstd_stream_options, window_log);
    given.level = 7;
    assert_int_equal(segzstd__options_read_stream(&read, &given, NULL), 0);
    assert_int_equal(read.level, 7);
    assert_int_equal(read.window_log, SEGZSTD_WINDOW_LOG_HTTP);
    assert_true(read.size == SEGZSTD_SIZE_UNKNOWN);
    assert_int_equal(read.size_is_certain, 0);
    assert_null(read.dict);
    assert_null(read.user);
}

struct newer_options {
    segzstd_stream_options known;
    unsigned char unknown[16];
};

static void test_read_stream__newer_struct__unknown_must_be_zero(void **state)
{
    struct newer_options given;
    segzstd_stream_options read;

    (void)state;
    memset(&given, 0, sizeof(given));
    given.known = init_stream();
    given.known.struct_size = sizeof(given);
    given.known.level = 5;
    assert_string_equal(fault_of(&given.known), "");
    assert_int_equal(segzstd__options_read_stream(&read, &given.known, NULL),
                     0);
    assert_int_equal(read.level, 5);
    for (size_t i = 0; i < sizeof(given.unknown); i++) {
        given.unknown[i] = 1;
        assert_string_equal(fault_of(&given.known), "struct_size");
        given.unknown[i] = 0;
    }
}

static void test_write__older_and_newer_struct__fits_the_caller(void **state)
{
    const segzstd_stream_stats ours = {sizeof(ours), 1,  2, 3, 4, 5, 6, 7, 8, 9,
                                       10,           11, 12};
    struct {
        segzstd_stream_stats known;
        unsigned char unknown[16];
    } out;

    (void)state;
    memset(&out, 0xaa, sizeof(out));
    out.known.struct_size = offsetof(segzstd_stream_stats, bytes_out);
    segzstd__options_write(&out, &ours, sizeof(ours));
    assert_int_equal(out.known.struct_size,
                     offsetof(segzstd_stream_stats, bytes_out));
    assert_int_equal(out.known.bytes_in, 1);
    assert_int_equal(out.known.bytes_done, 2);
    assert_true(out.known.bytes_out == 0xaaaaaaaaaaaaaaaau);

    out.known.struct_size = sizeof(out);
    segzstd__options_write(&out, &ours, sizeof(ours));
    assert_int_equal(out.known.struct_size, sizeof(out));
    assert_int_equal(out.known.jobs_peak, 12);
    for (size_t i = 0; i < sizeof(out.unknown); i++)
        assert_int_equal(out.unknown[i], 0);

    out.known.struct_size = sizeof(ours);
    memset(out.unknown, 0xaa, sizeof(out.unknown));
    segzstd__options_write(&out, &ours, sizeof(ours));
    assert_memory_equal(&out.known, &ours, sizeof(ours));
    assert_int_equal(out.unknown[0], 0xaa);
}

/* ---- values of a stream ---- */

static void test_read_stream__zeros__are_completed(void **state)
{
    segzstd_stream_options given = init_stream(), read;

    (void)state;
    assert_int_equal(segzstd__options_read_stream(&read, &given, NULL), 0);
    assert_int_equal(read.level, 3);
    assert_int_equal(read.window_log, 23);
    assert_int_equal(read.input_bytes, 8 * MIB);
    assert_int_equal(read.read_bytes, 16 * MIB);
    assert_int_equal(read.extent_bytes, 16 * MIB);
    assert_int_equal(read.history_bytes, 32 * KIB);
    /* These mean something while they are 0, and are completed later. */
    assert_int_equal(read.segment_bytes, 0);
    assert_int_equal(read.overlap_bytes, 0);
    assert_int_equal(read.max_jobs, 0);
    assert_int_equal(read.output_bytes, 0);
}

static void test_read_stream__none__is_no_history(void **state)
{
    segzstd_stream_options given = init_stream(), read;

    (void)state;
    given.history_bytes = SEGZSTD_OVERLAP_NONE;
    given.overlap_bytes = SEGZSTD_OVERLAP_NONE;
    assert_int_equal(segzstd__options_read_stream(&read, &given, NULL), 0);
    assert_int_equal(read.history_bytes, 0);
    assert_true(read.overlap_bytes == SEGZSTD_OVERLAP_NONE);
}

static void test_read_stream__given_values__stay(void **state)
{
    segzstd_stream_options given = init_stream(), read;
    int user;

    (void)state;
    given.level = -5;
    given.window_log = 20;
    given.size = 1000;
    given.size_is_certain = 1;
    given.checksum = 1;
    given.segment_bytes = 1 * MIB;
    given.overlap_bytes = 17;
    given.max_jobs = 3;
    given.input_bytes = 200 * KIB;
    given.output_bytes = 100 * KIB;
    given.history_bytes = 1;
    given.no_dict_id = 1;
    given.user = &user;
    given.read_bytes = 300 * KIB;
    given.extent_bytes = 500 * KIB;
    assert_int_equal(segzstd__options_read_stream(&read, &given, NULL), 0);
    assert_int_equal(read.level, given.level);
    assert_int_equal(read.window_log, given.window_log);
    assert_int_equal(read.size, given.size);
    assert_int_equal(read.size_is_certain, given.size_is_certain);
    assert_int_equal(read.checksum, given.checksum);
    assert_int_equal(read.segment_bytes, given.segment_bytes);
    assert_int_equal(read.overlap_bytes, given.overlap_bytes);
    assert_int_equal(read.max_jobs, given.max_jobs);
    assert_int_equal(read.input_bytes, given.input_bytes);
    assert_int_equal(read.output_bytes, given.output_bytes);
    assert_int_equal(read.history_bytes, given.history_bytes);
    assert_int_equal(read.no_dict_id, given.no_dict_id);
    assert_ptr_equal(read.user, &user);
    assert_int_equal(read.read_bytes, given.read_bytes);
    assert_int_equal(read.extent_bytes, given.extent_bytes);
}

static void test_read_stream__level__is_libzstds_range(void **state)
{
    segzstd_stream_options given = init_stream();

    (void)state;
    given.level = segzstd_min_level();
    assert_string_equal(fault_of(&given), "");
    given.level = segzstd_max_level();
    assert_string_equal(fault_of(&given), "");
    given.level = segzstd_min_level() - 1;
    assert_string_equal(fault_of(&given), "level");
    given.level = segzstd_max_level() + 1;
    assert_string_equal(fault_of(&given), "level");
}

static void test_read_stream__certain_size__must_be_known(void **state)
{
    segzstd_stream_options given = init_stream();

    (void)state;
    given.size_is_certain = 1;
    assert_string_equal(fault_of(&given), "size_is_certain");
    given.size = 0;
    assert_string_equal(fault_of(&given), "");
}

/* The least and the most that a field may have, 0 (automatic) aside. */
struct range {
    const char *field;
    size_t offset;
    size_t least;
    size_t most;
};

#define RANGE(field, least, most)                                              \
  {                                                                            \
#    field, offsetof(segzstd_stream_options, field), least, most               \
  }

static void test_read_stream__size_beyond_its_range__names_it(void **state)
{
    static const struct range ranges[] = {
        RANGE(segment_bytes, 64 * KIB, (size_t)1 << 30),
        RANGE(input_bytes, 128 * KIB, SIZE_MAX / 8),
        RANGE(read_bytes, 128 * KIB, SIZE_MAX / 8),
        RANGE(extent_bytes, 128 * KIB, SIZE_MAX / 8),
        RANGE(output_bytes, 64 * KIB, SIZE_MAX / 8),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        const struct range *r = &ranges[i];
        segzstd_stream_options given = init_stream();
        size_t *value = (void *)((char *)&given + r->offset);

        *value = r->least;
        assert_string_equal(fault_of(&given), "");
        *value = r->most;
        assert_string_equal(fault_of(&given), "");
        *value = r->least - 1;
        assert_string_equal(fault_of(&given), r->field);
        *value = r->most + 1;
        assert_string_equal(fault_of(&given), r->field);
    }
}

static void test_read_stream__window_log__has_the_formats_range(void **state)
{
    segzstd_stream_options given = init_stream();
    unsigned most = sizeof(size_t) == 4 ? 30 : 31;

    (void)state;
    for (given.window_log = 1; given.window_log < 40; given.window_log++)
        assert_string_equal(fault_of(&given),
                            given.window_log >= 10 && given.window_log <= most
                                ? ""
                                : "window_log");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_cache__null__has_the_defaults),
        cmocka_unit_test(test_read_cache__given__is_copied),
        cmocka_unit_test(test_read_cache__size_below_its_own_field__refused),
        cmocka_unit_test(test_read_stream__older_struct__rest_has_defaults),
        cmocka_unit_test(test_read_stream__newer_struct__unknown_must_be_zero),
        cmocka_unit_test(test_write__older_and_newer_struct__fits_the_caller),
        cmocka_unit_test(test_read_stream__zeros__are_completed),
        cmocka_unit_test(test_read_stream__none__is_no_history),
        cmocka_unit_test(test_read_stream__given_values__stay),
        cmocka_unit_test(test_read_stream__level__is_libzstds_range),
        cmocka_unit_test(test_read_stream__certain_size__must_be_known),
        cmocka_unit_test(test_read_stream__size_beyond_its_range__names_it),
        cmocka_unit_test(test_read_stream__window_log__has_the_formats_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
