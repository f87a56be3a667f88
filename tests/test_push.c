/*
 * What a push leaves in a stream: its segments and their extents. What comes
 * out of streams is the matter of the tests of the interface.
 */
#include <stdlib.h>

#include "stream.h"
#include "support/data.h"
#include "support/expect.h"

enum { CONTENT = 4 << 20 };

struct fixture {
    struct test_alloc alloc;
    struct segzstd_cache *cache;
    struct segzstd_stream *stream;
    segzstd_stream_options options; /* of the stream to be made */
    unsigned char *content;
    uint64_t taken; /* of the content */
    unsigned released;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return -1;
    alloc_init(&f->alloc);
    f->cache = expect_cache(2, &f->alloc);
    f->options = (segzstd_stream_options)SEGZSTD_STREAM_OPTIONS_INIT;
    f->options.level = 1;
    f->content = data_new(CONTENT, DATA_RANDOM, 1);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    const char *fault;

    alloc_heal(&f->alloc);
    segzstd_stream_free(f->stream);
    segzstd_cache_free(f->cache);
    fault = alloc_done(&f->alloc);
    if (fault != NULL)
        print_error("%s\n", fault);
    free(f->content);
    free(f);
    return fault == NULL ? 0 : -1;
}

/* Another stream, of the options as they are now. */
static void open_stream(struct fixture *f)
{
    segzstd_stream_free(f->stream);
    f->stream = expect_stream(f->cache, &f->options);
    f->taken = 0;
    f->released = 0;
}

static void release(void *arg)
{
    ++*(unsigned *)arg;
}

static int64_t read_nothing(void *arg, uint64_t offset, void *dst, size_t len)
{
    (void)arg;
    (void)offset;
    (void)dst;
    (void)len;
    return -1;
}

/* Pushes the next bytes of the content, all of which must be taken. */
static void push(struct fixture *f, size_t len, segzstd_op op)
{
    size_t taken = SIZE_MAX;

    assert_int_equal(
        segzstd_stream_push(f->stream, f->content + f->taken, len, op, &taken),
        0);
    assert_int_equal(taken, len);
    f->taken += taken;
}

static int push_ref(struct fixture *f, size_t len, segzstd_op op)
{
    int rc = segzstd_stream_push_ref(f->stream, f->content + f->taken, len, op,
                                     release, &f->released);

    if (rc == 0)
        f->taken += len;
    return rc;
}

static int push_reader(struct fixture *f, uint64_t len, segzstd_op op)
{
    return segzstd_stream_push_reader(f->stream, read_nothing, len, op, release,
                                      &f->released);
}

/* Runs all jobs that there are, and drops their output. */
static void work(struct fixture *f)
{
    segzstd_job *job;

    while (segzstd_stream_poll_job(f->stream, &job) == 0 && job != NULL) {
        segzstd_job_run(job);
        assert_int_equal(segzstd_job_complete(job), 0);
        segzstd_stream_consume(f->stream,
                               segzstd_stream_ready_bytes(f->stream));
    }
}

static unsigned count_segments(const struct fixture *f)
{
    const struct segzstd__link *head = &f->stream->segments;
    unsigned n = 0;

    for (const struct segzstd__link *l = head->next; l != head; l = l->next)
        n++;
    return n;
}

static struct segzstd__segment *tail_of(const struct fixture *f)
{
    struct segzstd__segment *tail = segzstd__stream_tail(f->stream);

    assert_non_null(tail);
    return tail;
}

/* All that the extent has, also before the segment, is the content. */
static void expect_extent(const struct fixture *f,
                          const struct segzstd__segment *segment, size_t carry)
{
    const struct segzstd__extent *extent = segment->extent;

    assert_non_null(extent);
    assert_int_equal(segment->start - extent->pos, carry);
    assert_true(segzstd__extent_end(extent) >= segment->end);
    assert_true(extent->len <= extent->cap);
    assert_memory_equal(extent->base, f->content + extent->pos, extent->len);
}

/* ---- copied bytes ---- */

static void test_push__first_bytes__open_a_segment(void **state)
{
    struct fixture *f = *state;
    struct segzstd__segment *tail;

    open_stream(f);
    assert_null(segzstd__stream_tail(f->stream));
    push(f, 0, SEGZSTD_CONTINUE);
    assert_null(segzstd__stream_tail(f->stream));
    push(f, 100, SEGZSTD_CONTINUE);
    tail = tail_of(f);
    assert_int_equal(tail->start, 0);
    assert_int_equal(tail->end, 100);
    assert_true(tail->open);
    assert_int_equal(f->stream->waiting, 100);
    assert_int_equal(f->stream->pos_in, 100);
    expect_extent(f, tail, 0);
    push(f, 100, SEGZSTD_CONTINUE);
    assert_ptr_equal(tail_of(f), tail);
    assert_int_equal(tail->end, 200);
    expect_extent(f, tail, 0);
}

/* What no encoder has looked at moves to a larger extent, so that it needs not
 * be cut there. */
static void test_push__unknown_size__grows_in_one_segment(void **state)
{
    struct fixture *f = *state;

    open_stream(f);
    while (f->taken + 10000 <= CONTENT) {
        push(f, 10000, SEGZSTD_CONTINUE);
        assert_int_equal(count_segments(f), 1);
        expect_extent(f, tail_of(f), 0);
        assert_int_equal(tail_of(f)->extent->refs, 1);
    }
    assert_int_equal(tail_of(f)->start, 0);
    assert_int_equal(tail_of(f)->end, f->taken);
}

/* The hint tells how much room there should be; beyond it the stream goes on
 * as one of unknown size. */
static void test_push__size_hinted__has_room_at_once(void **state)
{
    struct fixture *f = *state;

    f->options.size = 1 << 20;
    open_stream(f);
    push(f, 1000, SEGZSTD_CONTINUE);
    assert_true(tail_of(f)->extent->cap >= 1 << 20);
    assert_true(tail_of(f)->extent->cap <= 3 << 19);
    push(f, (1 << 20) - 1000, SEGZSTD_CONTINUE);
    push(f, 1 << 20, SEGZSTD_CONTINUE);
    assert_int_equal(count_segments(f), 1);
    expect_extent(f, tail_of(f), 0);
}

static void test_push__extent_full_and_fed__opens_a_primed_segment(void **state)
{
    struct fixture *f = *state;
    struct segzstd__segment *first;
    size_t cap;

    f->options.overlap_bytes = 5000;
    open_stream(f);
    push(f, 300000, SEGZSTD_FLUSH);
    work(f);
    first = tail_of(f);
    assert_int_equal(first->fed, 300000);
    cap = first->extent->cap;
    push(f, cap - 300000, SEGZSTD_CONTINUE);
    assert_ptr_equal(tail_of(f), first);
    push(f, 1000, SEGZSTD_CONTINUE);
    assert_int_equal(count_segments(f), 2);
    assert_false(first->open);
    assert_int_equal(first->end, cap);
    assert_true(tail_of(f)->open);
    assert_int_equal(tail_of(f)->start, cap);
    expect_extent(f, tail_of(f), 5000);
}

/* A stream that trickles while others need encoders keeps little; one that has
 * come far since it lost one carries the overlap. */
static void test_push__after_rest__carries_the_history(void **state)
{
    struct fixture *f = *state;

    f->options.overlap_bytes = 50000;
    f->options.history_bytes = 10000;
    open_stream(f);
    push(f, 100000, SEGZSTD_FLUSH);
    work(f);
    segzstd_stream_rest(f->stream);
    assert_int_equal(count_segments(f), 0);
    assert_non_null(f->stream->history);
    assert_int_equal(f->stream->history->len, 10000);
    push(f, 100, SEGZSTD_FLUSH);
    assert_null(f->stream->history);
    expect_extent(f, tail_of(f), 10000);
    work(f);

    /* the tail's extent has the history and a little more */
    tail_of(f)->open = false;
    f->stream->run_pos = 100100 - 9000;
    push(f, 100, SEGZSTD_FLUSH);
    expect_extent(f, tail_of(f), 10000);
    work(f);
    tail_of(f)->open = false;
    f->stream->run_pos = 0;
    push(f, 100, SEGZSTD_FLUSH);
    expect_extent(f, tail_of(f), 10100);
}

/* What follows a reference or a reader has no use for the history. */
static void test_push_ref_and_reader__after_rest__drop_the_history(void **state)
{
    struct fixture *f = *state;

    for (int reader = 0; reader < 2; reader++) {
        open_stream(f);
        push(f, 100000, SEGZSTD_FLUSH);
        work(f);
        segzstd_stream_rest(f->stream);
        assert_non_null(f->stream->history);
        if (reader != 0)
            assert_int_equal(push_reader(f, 100, SEGZSTD_CONTINUE), 0);
        else
            assert_int_equal(push_ref(f, 1 << 20, SEGZSTD_CONTINUE), 0);
        assert_null(f->stream->history);
    }
}

static void test_push__no_history__carries_nothing(void **state)
{
    struct fixture *f = *state;

    f->options.history_bytes = SEGZSTD_OVERLAP_NONE;
    open_stream(f);
    push(f, 100000, SEGZSTD_FLUSH);
    work(f);
    segzstd_stream_rest(f->stream);
    assert_null(f->stream->history);
    push(f, 100, SEGZSTD_CONTINUE);
    expect_extent(f, tail_of(f), 0);
}

/* ---- fixed segmentation ---- */

/* Extents end where a segment of the grid does, so that nothing but the
 * content decides where the cuts are. */
static void test_push__fixed_segments__extents_end_on_the_grid(void **state)
{
    static const size_t segments[] = {64 << 10, 100001, 1 << 20};
    struct fixture *f = *state;

    for (int i = 0; i < 3; i++) {
        struct segzstd__link *link;

        f->options.segment_bytes = segments[i];
        f->options.overlap_bytes = 3000;
        open_stream(f);
        while (f->taken + 30000 <= CONTENT)
            push(f, 30000, SEGZSTD_CONTINUE);
        for (link = f->stream->segments.next; link != &f->stream->segments;
             link = link->next) {
            struct segzstd__segment *seg = segzstd__segment_of(link);

            assert_int_equal(seg->start % segments[i], 0);
            assert_true(seg->open || seg->end % segments[i] == 0);
            expect_extent(f, seg, seg->start == 0 ? 0 : 3000);
        }
        assert_int_equal(tail_of(f)->end, f->taken);
    }
}

/* A window that is smaller than a segment still takes whole ones. */
static void test_push__segment_above_the_window__is_taken_whole(void **state)
{
    struct fixture *f = *state;

    f->options.segment_bytes = 1 << 20;
    f->options.input_bytes = 128 << 10;
    open_stream(f);
    assert_true(segzstd_stream_want_input(f->stream) >= 2 << 20);
    while (f->taken + 65536 <= 2 << 20)
        push(f, 65536, SEGZSTD_CONTINUE);
    assert_int_equal(count_segments(f), 2);
    assert_int_equal(tail_of(f)->start, 1 << 20);
}

/* ---- the window ---- */

static void test_push__more_than_the_window__takes_what_fits(void **state)
{
    struct fixture *f = *state;
    size_t taken;

    f->options.input_bytes = 200000;
    open_stream(f);
    push(f, 150000, SEGZSTD_CONTINUE);
    assert_int_equal(segzstd_stream_want_input(f->stream), 50000);
    assert_int_equal(segzstd_stream_push(f->stream, f->content + f->taken,
                                         50001, SEGZSTD_END, &taken),
                     0);
    assert_int_equal(taken, 50000);
    assert_false(f->stream->ended);
    assert_int_equal(f->stream->pos_flush, 0);
    assert_int_equal(segzstd_stream_want_input(f->stream), 0);
    assert_int_equal(
        segzstd_stream_push(f->stream, f->content, 1, SEGZSTD_FLUSH, &taken),
        0);
    assert_int_equal(taken, 0);
    assert_int_equal(f->stream->pos_flush, 0);
    assert_int_equal(push_ref(f, 10, SEGZSTD_CONTINUE), SEGZSTD_ERR_AGAIN);
    assert_int_equal(push_reader(f, 10, SEGZSTD_CONTINUE), SEGZSTD_ERR_AGAIN);
    assert_int_equal(f->released, 0);
    /* an operation without bytes needs no room */
    assert_int_equal(
        segzstd_stream_push(f->stream, NULL, 0, SEGZSTD_END, &taken), 0);
    assert_true(f->stream->ended);
    assert_int_equal(segzstd_stream_want_input(f->stream), 0);
}

/* Copied, it would be a megabyte beyond the bound of the input. */
static void test_push_ref__beyond_the_window__is_borrowed(void **state)
{
    struct fixture *f = *state;

    f->options.input_bytes = 200000;
    open_stream(f);
    push(f, 50000, SEGZSTD_CONTINUE);
    assert_int_equal(push_ref(f, 100000, SEGZSTD_CONTINUE), 0);
    assert_int_equal(f->released, 1);
    assert_int_equal(f->stream->waiting, 150000);
    assert_int_equal(push_ref(f, 100000, SEGZSTD_CONTINUE), 0);
    assert_int_equal(f->released, 1);
    assert_int_equal(f->stream->waiting, 150000);
    assert_true(tail_of(f)->extent->borrowed);
}

static void test_push__flush_and_end__mark_what_is_due(void **state)
{
    struct fixture *f = *state;
    size_t taken = 77;

    open_stream(f);
    push(f, 1000, SEGZSTD_CONTINUE);
    assert_int_equal(f->stream->pos_flush, 0);
    push(f, 1000, SEGZSTD_FLUSH);
    assert_int_equal(f->stream->pos_flush, 2000);
    assert_true(tail_of(f)->open);
    push(f, 1000, SEGZSTD_END);
    assert_int_equal(f->stream->pos_flush, 3000);
    assert_false(tail_of(f)->open);
    assert_int_equal(
        segzstd_stream_push(f->stream, f->content, 1, SEGZSTD_CONTINUE, &taken),
        SEGZSTD_ERR_STATE);
    assert_int_equal(taken, 0);
    assert_int_equal(push_ref(f, 1, SEGZSTD_CONTINUE), SEGZSTD_ERR_STATE);
    assert_int_equal(push_reader(f, 1, SEGZSTD_END), SEGZSTD_ERR_STATE);
}

static void test_push__end_of_nothing__is_a_frame_at_once(void **state)
{
    struct fixture *f = *state;

    open_stream(f);
    push(f, 0, SEGZSTD_END);
    assert_true(f->stream->frame_done);
    assert_int_equal(segzstd_stream_ready_bytes(f->stream), 9);
}

static void test_push__bad_arguments__refused(void **state)
{
    struct fixture *f = *state;
    const segzstd_op bad = (segzstd_op)(SEGZSTD_END + 1);
    size_t taken;

    open_stream(f);
    assert_int_equal(
        segzstd_stream_push(f->stream, NULL, 1, SEGZSTD_CONTINUE, &taken),
        SEGZSTD_ERR_INVALID);
    assert_int_equal(segzstd_stream_push(f->stream, f->content, 1, bad, &taken),
                     SEGZSTD_ERR_INVALID);
    assert_int_equal(push_ref(f, 1, bad), SEGZSTD_ERR_INVALID);
    assert_int_equal(push_reader(f, 1, bad), SEGZSTD_ERR_INVALID);
    assert_int_equal(push_reader(f, UINT64_MAX / 2 + 1, SEGZSTD_CONTINUE),
                     SEGZSTD_ERR_INVALID);
    assert_int_equal(segzstd_stream_push_reader(f->stream, NULL, 1, SEGZSTD_END,
                                                release, &f->released),
                     SEGZSTD_ERR_INVALID);
    assert_int_equal(f->stream->pos_in, 0);
    assert_int_equal(f->released, 0);
    segzstd_stream_cancel(f->stream);
    assert_int_equal(push_ref(f, 1, SEGZSTD_CONTINUE), SEGZSTD_ERR_CANCELED);
    assert_int_equal(segzstd_stream_want_input(f->stream), 0);
}

/* ---- certain sizes ---- */

static void test_push__beyond_a_certain_size__refused_and_kept(void **state)
{
    struct fixture *f = *state;
    size_t taken;

    f->options.size = 1000;
    f->options.size_is_certain = 1;
    open_stream(f);
    push(f, 900, SEGZSTD_CONTINUE);
    assert_int_equal(segzstd_stream_push(f->stream, f->content, 101,
                                         SEGZSTD_CONTINUE, &taken),
                     SEGZSTD_ERR_SIZE);
    assert_int_equal(taken, 0);
    assert_true(f->stream->wrong_size);
    assert_int_equal(f->stream->pos_in, 900);
    assert_int_equal(f->stream->pos_flush, 900);
    assert_false(tail_of(f)->open);
    assert_int_equal(segzstd_stream_want_input(f->stream), 0);
    assert_int_equal(push_ref(f, 100, SEGZSTD_END), SEGZSTD_ERR_SIZE);
    assert_int_equal(push_reader(f, 100, SEGZSTD_END), SEGZSTD_ERR_SIZE);
    assert_int_equal(segzstd_stream_error(f->stream), SEGZSTD_ERR_SIZE);
}

static void test_push__certain_size_not_reached__fails_at_the_end(void **state)
{
    struct fixture *f = *state;
    size_t taken;

    f->options.size = 1000;
    f->options.size_is_certain = 1;
    open_stream(f);
    assert_int_equal(
        segzstd_stream_push(f->stream, NULL, 0, SEGZSTD_END, &taken),
        SEGZSTD_ERR_SIZE);
    open_stream(f);
    assert_int_equal(
        segzstd_stream_push(f->stream, f->content, 999, SEGZSTD_END, &taken),
        SEGZSTD_ERR_SIZE);
    assert_int_equal(taken, 999);
    assert_false(f->stream->ended);
    open_stream(f);
    push(f, 1000, SEGZSTD_END);
    assert_true(f->stream->ended);
}

/* ---- references ---- */

static void test_push_ref__little__is_copied_and_released(void **state)
{
    struct fixture *f = *state;

    open_stream(f);
    assert_int_equal(push_ref(f, 0, SEGZSTD_CONTINUE), 0);
    assert_int_equal(f->released, 1);
    assert_null(segzstd__stream_tail(f->stream));
    assert_int_equal(push_ref(f, (1 << 20) - 1, SEGZSTD_CONTINUE), 0);
    assert_int_equal(f->released, 2);
    assert_true(tail_of(f)->open);
    assert_false(tail_of(f)->extent->borrowed);
    assert_int_equal(f->stream->waiting, (1 << 20) - 1);
    expect_extent(f, tail_of(f), 0);
    assert_int_equal(segzstd_stream_push_ref(f->stream, f->content + f->taken,
                                             10, SEGZSTD_END, NULL, NULL),
                     0);
    assert_true(f->stream->ended);
}

static void expect_borrowed(struct fixture *f, uint64_t start, size_t len)
{
    struct segzstd__segment *tail = tail_of(f);

    assert_true(tail->extent->borrowed);
    assert_ptr_equal(tail->extent->base, f->content + start);
    assert_int_equal(tail->start, start);
    assert_int_equal(tail->end, start + len);
    assert_int_equal(tail->fed, start);
    assert_int_equal(tail->taken, start);
    assert_false(tail->open);
    expect_extent(f, tail, 0);
}

static void test_push_ref__much_or_all__is_a_segment_where_it_lies(void **state)
{
    struct fixture *f = *state;
    struct segzstd__segment *first;

    open_stream(f);
    push(f, 5000, SEGZSTD_CONTINUE);
    first = tail_of(f);
    assert_int_equal(push_ref(f, 1 << 20, SEGZSTD_CONTINUE), 0);
    assert_false(first->open);
    expect_borrowed(f, 5000, 1 << 20);
    assert_int_equal(f->stream->waiting, 5000);
    assert_int_equal(f->released, 0);
    segzstd_stream_free(f->stream);
    f->stream = NULL;
    assert_int_equal(f->released, 1);

    open_stream(f);
    assert_int_equal(push_ref(f, 1, SEGZSTD_END), 0);
    expect_borrowed(f, 0, 1);
    work(f);
    assert_int_equal(f->released, 1);
}

/* The bytes before a cut are the overlap, whosever they are. */
static void test_push__after_a_reference__carries_from_it(void **state)
{
    struct fixture *f = *state;

    f->options.overlap_bytes = 5000;
    open_stream(f);
    assert_int_equal(push_ref(f, 1 << 20, SEGZSTD_CONTINUE), 0);
    push(f, 100, SEGZSTD_CONTINUE);
    assert_int_equal(count_segments(f), 2);
    assert_true(tail_of(f)->open);
    expect_extent(f, tail_of(f), 5000);
}

/* ---- readers ---- */

static void test_push_reader__range__is_a_segment_without_bytes(void **state)
{
    const uint64_t len = (uint64_t)3 << 40;
    struct fixture *f = *state;
    struct segzstd__segment *tail;

    open_stream(f);
    assert_int_equal(push_reader(f, 0, SEGZSTD_FLUSH), 0);
    assert_int_equal(f->released, 1);
    assert_int_equal(segzstd_stream_push_reader(f->stream, read_nothing, 0,
                                                SEGZSTD_CONTINUE, NULL, NULL),
                     0);
    push(f, 5000, SEGZSTD_CONTINUE);
    assert_int_equal(push_reader(f, len, SEGZSTD_CONTINUE), 0);
    tail = tail_of(f);
    assert_int_equal(count_segments(f), 2);
    assert_null(tail->extent);
    assert_int_equal(tail->start, 5000);
    assert_int_equal(tail->end, 5000 + len);
    assert_false(tail->open);
    assert_int_equal(tail->reader->refs, 1);
    assert_int_equal(tail->reader->pos, 5000);
    assert_int_equal(f->stream->waiting, 5000);
    assert_int_equal(f->stream->pos_in, 5000 + len);

    /* nobody has read the bytes before this cut */
    assert_int_equal(push_ref(f, 100, SEGZSTD_CONTINUE), 0);
    assert_int_equal(tail_of(f)->start, 5000 + len);
    assert_int_equal(tail_of(f)->extent->pos, 5000 + len);
    segzstd_stream_free(f->stream);
    f->stream = NULL;
    assert_int_equal(f->released, 3);
}

/* ---- memory ---- */

/* Whichever allocation of a push is refused with all after it: what was taken
 * is there, the rest is not, and a later push goes on. */
static void test_push__no_memory__keeps_what_was_taken(void **state)
{
    struct fixture *f = *state;
    unsigned refused = 0;
    uint64_t at;

    for (at = 0;; at++) {
        size_t taken;
        int rc;

        open_stream(f);
        while (segzstd__cache_reclaim(f->cache))
            ;
        push(f, 1000, SEGZSTD_CONTINUE);
        alloc_fail(&f->alloc, at, ALLOC_FOR_EVER);
        rc = segzstd_stream_push(f->stream, f->content + 1000, 2000000,
                                 SEGZSTD_FLUSH, &taken);
        alloc_heal(&f->alloc);
        f->taken += taken;
        assert_int_equal(f->stream->pos_in, 1000 + taken);
        assert_int_equal(f->stream->waiting, 1000 + taken);
        expect_extent(f, tail_of(f), 0);
        if (rc == 0)
            break;
        assert_int_equal(rc, SEGZSTD_ERR_NOMEM);
        assert_true(taken < 2000000);
        /* or it could wait for a whole block for ever */
        assert_int_equal(f->stream->pos_flush, 1000 + taken);
        push(f, 2000000 - taken, SEGZSTD_CONTINUE);
        expect_extent(f, tail_of(f), 0);
        refused++;
    }
    assert_true(refused >= 2);
}

/* Input leaves an eighth of the budget; up to there a smaller extent serves
 * where the one that was wanted is too much. */
static void test_push__byte_budget__is_used_but_for_an_eighth(void **state)
{
    struct fixture *f = *state;
    uint64_t budget;
    size_t taken;

    open_stream(f);
    push(f, 1000, SEGZSTD_CONTINUE);
    budget = f->cache->mem.used + 1000000;
    f->cache->mem.budget = budget;
    assert_int_equal(segzstd_stream_push(f->stream, f->content + 1000, 2000000,
                                         SEGZSTD_CONTINUE, &taken),
                     SEGZSTD_ERR_NOMEM);
    f->taken += taken;
    /* an extent takes a quarter more at most, by its class of sizes */
    assert_true(f->cache->mem.used <= budget - budget / 16);
    assert_true(taken > 200000);
    assert_int_equal(tail_of(f)->end, f->taken);
    assert_memory_equal(
        segzstd__extent_at(tail_of(f)->extent, tail_of(f)->start),
        f->content + tail_of(f)->start,
        (size_t)(tail_of(f)->end - tail_of(f)->start));
    f->cache->mem.budget = 0;
    push(f, 1000, SEGZSTD_END);
    work(f);
    assert_true(segzstd_stream_is_done(f->stream));
}

/* The first push of a stream: a segment, or its extent, is refused. */
static void test_push__no_memory_for_a_segment__changes_nothing(void **state)
{
    struct fixture *f = *state;

    for (uint64_t at = 0; at < 2; at++) {
        size_t taken;

        open_stream(f);
        while (segzstd__cache_reclaim(f->cache))
            ;
        alloc_fail(&f->alloc, at, ALLOC_FOR_EVER);
        assert_int_equal(segzstd_stream_push(f->stream, f->content, 1000,
                                             SEGZSTD_END, &taken),
                         SEGZSTD_ERR_NOMEM);
        alloc_heal(&f->alloc);
        assert_int_equal(taken, 0);
        assert_int_equal(count_segments(f), 0);
        assert_false(f->stream->ended);
        push(f, 1000, SEGZSTD_END);
    }
}

/* A segment or what it refers to is refused. */
static void test_push_ref_and_reader__no_memory__changes_nothing(void **state)
{
    struct fixture *f = *state;

    for (uint64_t at = 0; at < 2; at++) {
        open_stream(f);
        push(f, 1000, SEGZSTD_CONTINUE);
        alloc_fail(&f->alloc, at, ALLOC_FOR_EVER);
        assert_int_equal(push_ref(f, 2 << 20, SEGZSTD_END), SEGZSTD_ERR_NOMEM);
        alloc_fail(&f->alloc, at, ALLOC_FOR_EVER);
        assert_int_equal(push_reader(f, 1000, SEGZSTD_END), SEGZSTD_ERR_NOMEM);
        alloc_heal(&f->alloc);
        assert_int_equal(f->released, 0);
        assert_int_equal(count_segments(f), 1);
        assert_int_equal(f->stream->pos_in, 1000);
        assert_true(tail_of(f)->open);
        assert_false(f->stream->ended);
    }
}

/* All or nothing: what there was no memory to copy is borrowed instead. */
static void test_push_ref__no_memory_to_copy__borrows_the_rest(void **state)
{
    struct fixture *f = *state;
    size_t room;

    open_stream(f);
    push(f, 1000, SEGZSTD_CONTINUE);
    room = tail_of(f)->extent->cap - 1000;
    alloc_fail(&f->alloc, 2, ALLOC_FOR_EVER);
    assert_int_equal(push_ref(f, 500000, SEGZSTD_CONTINUE), 0);
    alloc_heal(&f->alloc);
    assert_int_equal(count_segments(f), 2);
    expect_borrowed(f, 1000 + room, 500000 - room);
    assert_int_equal(f->stream->waiting, 1000 + room);
    assert_int_equal(f->released, 0);
    push(f, 1, SEGZSTD_END);
    work(f);
    assert_true(segzstd_stream_is_done(f->stream));
    assert_int_equal(f->released, 1);
}

#define WITH_CACHE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CACHE(test_push__first_bytes__open_a_segment),
        WITH_CACHE(test_push__unknown_size__grows_in_one_segment),
        WITH_CACHE(test_push__size_hinted__has_room_at_once),
        WITH_CACHE(test_push__extent_full_and_fed__opens_a_primed_segment),
        WITH_CACHE(test_push__after_rest__carries_the_history),
        WITH_CACHE(test_push_ref_and_reader__after_rest__drop_the_history),
        WITH_CACHE(test_push__no_history__carries_nothing),
        WITH_CACHE(test_push__fixed_segments__extents_end_on_the_grid),
        WITH_CACHE(test_push__segment_above_the_window__is_taken_whole),
        WITH_CACHE(test_push__more_than_the_window__takes_what_fits),
        WITH_CACHE(test_push_ref__beyond_the_window__is_borrowed),
        WITH_CACHE(test_push__flush_and_end__mark_what_is_due),
        WITH_CACHE(test_push__end_of_nothing__is_a_frame_at_once),
        WITH_CACHE(test_push__bad_arguments__refused),
        WITH_CACHE(test_push__beyond_a_certain_size__refused_and_kept),
        WITH_CACHE(test_push__certain_size_not_reached__fails_at_the_end),
        WITH_CACHE(test_push_ref__little__is_copied_and_released),
        WITH_CACHE(test_push_ref__much_or_all__is_a_segment_where_it_lies),
        WITH_CACHE(test_push__after_a_reference__carries_from_it),
        WITH_CACHE(test_push_reader__range__is_a_segment_without_bytes),
        WITH_CACHE(test_push__no_memory__keeps_what_was_taken),
        WITH_CACHE(test_push__byte_budget__is_used_but_for_an_eighth),
        WITH_CACHE(test_push__no_memory_for_a_segment__changes_nothing),
        WITH_CACHE(test_push_ref_and_reader__no_memory__changes_nothing),
        WITH_CACHE(test_push_ref__no_memory_to_copy__borrows_the_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
