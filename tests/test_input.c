#include "input.h"

#include <stdlib.h>

#include "support/data.h"
#include "support/expect.h"

static void test_extent__own_bytes__lie_in_its_block(void **state)
{
    size_t bytes = segzstd__extent_block_bytes(1000);
    unsigned char *block = malloc(bytes);
    struct segzstd__extent *extent;

    (void)state;
    assert_non_null(block);
    extent = segzstd__extent_init(block, bytes, 5000);
    assert_ptr_equal(extent, block);
    assert_int_equal(extent->refs, 1);
    assert_int_equal(extent->cap, 1000);
    assert_int_equal(extent->len, 0);
    assert_int_equal(extent->block_bytes, bytes);
    assert_false(extent->borrowed);
    assert_true(extent->base >= block + sizeof(*extent));
    assert_ptr_equal(extent->base + extent->cap, block + bytes);
    assert_int_equal(segzstd__extent_end(extent), 5000);
    assert_int_equal(segzstd__extent_cap_end(extent), 6000);
    free(block);
}

static void test_extent__written__grows_by_content_position(void **state)
{
    size_t bytes = segzstd__extent_block_bytes(10);
    void *block = malloc(bytes);
    struct segzstd__extent *extent;

    (void)state;
    assert_non_null(block);
    extent = segzstd__extent_init(block, bytes, 1);
    segzstd__extent_write(extent, "hello", 5);
    segzstd__extent_write(extent, NULL, 0);
    segzstd__extent_write(extent, "world", 5);
    assert_int_equal(extent->len, 10);
    assert_int_equal(segzstd__extent_end(extent), 11);
    assert_memory_equal(segzstd__extent_at(extent, 1), "helloworld", 10);
    assert_memory_equal(segzstd__extent_at(extent, 6), "world", 5);
    assert_ptr_equal(segzstd__extent_at(extent, 11), extent->base + 10);
    free(block);
}

static void note_release(void *arg)
{
    ++*(int *)arg;
}

/* Content positions are 64 bits wide also where size_t is not. */
static void test_extent__borrowed__is_full_of_the_hosts_bytes(void **state)
{
    const uint64_t pos = (uint64_t)5 << 40;
    struct segzstd__extent *extent = malloc(sizeof(*extent));
    int released = 0;

    (void)state;
    assert_non_null(extent);
    segzstd__extent_init_borrowed(extent, sizeof(*extent), pos, "text", 4,
                                  note_release, &released);
    assert_true(extent->borrowed);
    assert_int_equal(extent->refs, 1);
    assert_int_equal(extent->block_bytes, sizeof(*extent));
    assert_int_equal(segzstd__extent_end(extent), pos + 4);
    assert_int_equal(segzstd__extent_cap_end(extent), pos + 4);
    assert_memory_equal(segzstd__extent_at(extent, pos + 2), "xt", 2);
    extent->release(extent->release_arg);
    assert_int_equal(released, 1);
    free(extent);
}

/* ---- readers ---- */

/* A source that gives at most so much at once, and from some call on
 * something else. */
struct source {
    unsigned char content[1000];
    size_t most;
    unsigned calls;
    unsigned odd_call; /* the first that returns `odd`; 0: none */
    int64_t odd;
};

static int64_t read_source(void *arg, uint64_t offset, void *dst, size_t len)
{
    struct source *source = arg;

    if (++source->calls == source->odd_call)
        return source->odd;
    assert_true(len != 0 && offset + len <= sizeof(source->content));
    len = min_size(len, source->most);
    memcpy(dst, source->content + offset, len);
    return (int64_t)len;
}

static void init_source(struct source *source, size_t most)
{
    memset(source, 0, sizeof(*source));
    data_fill(source->content, sizeof(source->content), DATA_RANDOM, 1);
    source->most = most;
}

static const _Atomic bool not_canceled = false;

static void test_reader_fill__short_reads__are_put_together(void **state)
{
    static const size_t most[] = {1, 7, 100, 1000};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct source source;
        const struct segzstd__reader reader = {1, 77777, read_source, NULL,
                                               &source};
        unsigned char dst[302];

        init_source(&source, most[i]);
        memset(dst, 0, sizeof(dst));
        assert_int_equal(segzstd__reader_fill(&reader, 77777 + 50, dst + 1, 300,
                                              &not_canceled),
                         0);
        assert_memory_equal(dst + 1, source.content + 50, 300);
        assert_int_equal(dst[0], 0);
        assert_int_equal(dst[301], 0);
        assert_int_equal(source.calls, (300 + most[i] - 1) / most[i]);
    }
}

static void test_reader_fill__nothing__calls_nobody(void **state)
{
    struct source source;
    const struct segzstd__reader reader = {1, 0, read_source, NULL, &source};
    unsigned char dst;

    (void)state;
    init_source(&source, 1);
    assert_int_equal(segzstd__reader_fill(&reader, 10, &dst, 0, &not_canceled),
                     0);
    assert_int_equal(source.calls, 0);
}

/* The end comes early, the read fails, or the reader lies about how much it
 * wrote: believing it would take bytes that nobody wrote. */
static void test_reader_fill__end_failure_or_lie__is_an_error(void **state)
{
    static const int64_t odd[] = {0, -1, INT64_MIN, 251, INT64_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        struct source source;
        const struct segzstd__reader reader = {1, 0, read_source, NULL,
                                               &source};
        unsigned char dst[300];

        init_source(&source, 50);
        source.odd_call = 2;
        source.odd = odd[i];
        assert_int_equal(
            segzstd__reader_fill(&reader, 0, dst, sizeof(dst), &not_canceled),
            SEGZSTD_ERR_READ);
        assert_int_equal(source.calls, 2);
    }
}

/* Seen before the next read, not only at the end. */
static void test_reader_fill__canceled__reads_no_more(void **state)
{
    static const _Atomic bool canceled = true;
    struct source source;
    const struct segzstd__reader reader = {1, 0, read_source, NULL, &source};
    unsigned char dst[300];

    (void)state;
    init_source(&source, 50);
    assert_int_equal(
        segzstd__reader_fill(&reader, 0, dst, sizeof(dst), &canceled),
        SEGZSTD_ERR_CANCELED);
    assert_int_equal(source.calls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extent__own_bytes__lie_in_its_block),
        cmocka_unit_test(test_extent__written__grows_by_content_position),
        cmocka_unit_test(test_extent__borrowed__is_full_of_the_hosts_bytes),
        cmocka_unit_test(test_reader_fill__short_reads__are_put_together),
        cmocka_unit_test(test_reader_fill__nothing__calls_nobody),
        cmocka_unit_test(test_reader_fill__end_failure_or_lie__is_an_error),
        cmocka_unit_test(test_reader_fill__canceled__reads_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
