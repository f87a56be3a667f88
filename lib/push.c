/*
 * push.c - how content comes into a stream: copied into extents, by reference,
 * or as a range of a reader.
 */
#include "plan.h"
#include "stream.h"

/*
 * A reference to less than this is copied when other content came before it: a
 * segment of its own would cost more ratio than the copy costs time.
 */
#define REF_BYTES_MIN (1 * MIB)

/* With fixed segmentation an extent has room for this many segments, within
 * extent_max: each extent repeats the overlap once. */
#define SEGMENTS_PER_EXTENT 4

struct segzstd__segment *segzstd__stream_tail(struct segzstd_stream *stream)
{
    if (list_is_empty(&stream->segments))
        return NULL;
    return segzstd__segment_of(stream->segments.prev);
}

/* What an extent holds when there is no memory for what it should hold. */
#define LEAST_EXTENT_BYTES (16 * KIB - EXTENT_HEADER_BYTES)

/* ---- extents for copied bytes ---- */

/* Content that came since an encoder was last lost: small for a stream that
 * trickles while others need its encoder. */
static uint64_t run_bytes(const struct segzstd_stream *stream)
{
    return stream->pos_in - stream->run_pos;
}

/*
 * How many content bytes an extent that begins at `start` should hold. With
 * fixed segmentation one that holds a segment at all holds whole ones, so that
 * the cut between two extents is one that would be made anyway.
 */
static size_t wanted_bytes(const struct segzstd_stream *stream, uint64_t start)
{
    uint64_t size = stream->options.size;
    uint64_t left = size != SEGZSTD_SIZE_UNKNOWN && size > stream->pos_in
                        ? size - start
                        : SEGZSTD_SIZE_UNKNOWN;
    size_t segment = stream->options.segment_bytes;
    size_t max = stream->extent_max, bytes;

    if (segment == 0)
        return segzstd__plan_extent_bytes(left, run_bytes(stream), max);
    max = segment * min_size(SEGMENTS_PER_EXTENT, max_size(1, max / segment));
    bytes = segzstd__plan_extent_bytes(left, run_bytes(stream), max);
    return bytes < segment ? bytes : bytes - bytes % segment;
}

/* No encoder has looked at the segment, nobody else at its extent. */
static bool may_move(const struct segzstd__segment *segment)
{
    return !segment->job_out && segment->fed == segment->start &&
           segment->extent->refs == 1;
}

/* Content and history of a stream that rests: the least extent. */
#define LEAST_RUN_BYTES (64 * KIB)

/* A stream that has nothing to be compressed gets a little memory more easily
 * than others, or it could stand still for as long as these hold theirs. */
static bool has_room(const struct segzstd_stream *stream, size_t bytes)
{
    if (segzstd__cache_has_room(stream->cache, bytes))
        return true;
    return stream->waiting == 0 && bytes <= LEAST_RUN_BYTES &&
           segzstd__cache_has_least_room(stream->cache, bytes);
}

/* An extent for content at `pos` with at most `carry` bytes of what came right
 * before, which lie at the end of `source` (may be NULL). */
static struct segzstd__extent *new_extent(struct segzstd_stream *stream,
                                          const struct segzstd__extent *source,
                                          uint64_t pos, size_t carry,
                                          size_t content)
{
    struct segzstd__extent *extent;

    if (source == NULL || segzstd__extent_end(source) != pos)
        carry = 0;
    else
        carry = min_size(carry, source->len);
    if (!has_room(stream, carry + content))
        return NULL;
    extent = segzstd__extent_new(stream->cache, pos, carry, content);
    if (extent == NULL)
        return NULL;
    if (carry != 0)
        segzstd__extent_write(extent, source->base + source->len - carry,
                              carry);
    /* A cut between extents must be one of the grid. */
    if (segzstd__stream_is_fixed(stream))
        extent->cap = min_size(extent->cap, carry + content);
    return extent;
}

/* Moves the tail's bytes, and the overlap before them, to a larger extent, if it
 * should have one and there is memory for it. */
static bool grow_tail(struct segzstd_stream *stream,
                      struct segzstd__segment *tail)
{
    struct segzstd__extent *old = tail->extent;
    size_t carry = segzstd__segment_prefix(tail, tail->start);
    size_t have = (size_t)(segzstd__extent_cap_end(old) - tail->start);
    size_t wanted = wanted_bytes(stream, tail->start);
    struct segzstd__extent *extent;

    if (wanted <= have)
        return false;
    extent = new_extent(stream, NULL, tail->start - carry, 0, carry + wanted);
    if (extent == NULL)
        return false;
    segzstd__extent_write(extent, segzstd__extent_at(old, tail->start - carry),
                          carry + (size_t)(tail->end - tail->start));
    segzstd__extent_unref(old, stream->cache);
    tail->extent = extent;
    return true;
}

/* With fixed segmentation the overlap is part of the frame's definition. */
static size_t least_carry(const struct segzstd_stream *stream)
{
    return segzstd__stream_is_fixed(stream)
               ? stream->overlap
               : min_size(stream->options.history_bytes, stream->overlap);
}

static size_t carry_bytes(const struct segzstd_stream *stream)
{
    bool trickles = run_bytes(stream) <= stream->options.history_bytes;

    return trickles ? least_carry(stream) : stream->overlap;
}

/* The tail is closed by what follows it, and the history has been of use. */
static void append_segment(struct segzstd_stream *stream,
                           struct segzstd__segment *segment)
{
    struct segzstd__segment *tail = segzstd__stream_tail(stream);

    if (tail != NULL)
        tail->open = false;
    list_append(&stream->segments, &segment->link);
    if (tail != NULL)
        segzstd__stream_settle(stream, tail);
    segzstd__extent_unref(stream->history, stream->cache);
    stream->history = NULL;
}

/* An extent for the end of the content: as large as is wanted, or as there is
 * memory for. */
static struct segzstd__extent *next_extent(struct segzstd_stream *stream,
                                           const struct segzstd__extent *source)
{
    uint64_t pos = stream->pos_in;
    size_t carry = carry_bytes(stream), bytes = wanted_bytes(stream, pos);
    struct segzstd__extent *extent =
        new_extent(stream, source, pos, carry, bytes);

    /* not with fixed segmentation, which has its grid */
    while (extent == NULL && stream->options.segment_bytes == 0 &&
           bytes / 4 > LEAST_EXTENT_BYTES) {
        bytes /= 4;
        extent =
            new_extent(stream, source, pos, min_size(carry, bytes / 2), bytes);
    }
    if (extent == NULL)
        extent = new_extent(stream, source, pos, least_carry(stream),
                            LEAST_EXTENT_BYTES);
    return extent;
}

/* Opens a segment on an extent of its own, at the end of the content. */
static int open_segment(struct segzstd_stream *stream)
{
    struct segzstd__segment *tail = segzstd__stream_tail(stream);
    struct segzstd__extent *source =
        tail != NULL ? tail->extent : stream->history;
    struct segzstd__segment *segment =
        segzstd__segment_new(stream->cache, stream->pos_in, stream->overlap);

    if (segment == NULL)
        return SEGZSTD_ERR_NOMEM;
    segment->extent = next_extent(stream, source);
    if (segment->extent == NULL) {
        segzstd__segment_free(segment, stream->cache);
        return SEGZSTD_ERR_NOMEM;
    }
    segment->open = true;
    append_segment(stream, segment);
    return 0;
}

/* Makes sure that the tail is open and its extent has room. */
static int find_tail(struct segzstd_stream *stream)
{
    struct segzstd__segment *tail = segzstd__stream_tail(stream);

    if (tail != NULL && tail->open) {
        if (tail->extent->len < tail->extent->cap)
            return 0;
        if (may_move(tail) && grow_tail(stream, tail))
            return 0;
    }
    return open_segment(stream);
}

/* Where there is no memory for an extent it may be that of the last one, which
 * has been compressed: then its end is enough. */
static int ensure_tail(struct segzstd_stream *stream)
{
    int error = find_tail(stream);

    if (error == SEGZSTD_ERR_NOMEM && stream->waiting == 0) {
        segzstd_stream_rest(stream);
        error = find_tail(stream);
    }
    return error;
}

static int copy_bytes(struct segzstd_stream *stream, const uint8_t *src,
                      size_t len)
{
    while (len != 0) {
        struct segzstd__segment *tail;
        size_t n;
        int error = ensure_tail(stream);

        if (error != 0)
            return error;
        tail = segzstd__stream_tail(stream);
        n = min_size(len, tail->extent->cap - tail->extent->len);
        segzstd__extent_write(tail->extent, src, n);
        tail->end += n;
        stream->pos_in += n;
        stream->waiting += n;
        src += n;
        len -= n;
    }
    return 0;
}

/* ---- what follows the bytes ---- */

static size_t window_room(const struct segzstd_stream *stream)
{
    return stream->waiting >= stream->input_max
               ? 0
               : stream->input_max - (size_t)stream->waiting;
}

/* Nothing will follow it. */
static void close_tail(struct segzstd_stream *stream)
{
    struct segzstd__segment *tail = segzstd__stream_tail(stream);

    if (tail != NULL) {
        tail->open = false;
        segzstd__stream_settle(stream, tail);
    }
    segzstd__stream_advance(stream);
}

/* The content can never be what the frame header says. */
static int fail_size(struct segzstd_stream *stream)
{
    stream->wrong_size = true;
    stream->pos_flush = stream->pos_in;
    close_tail(stream);
    return SEGZSTD_ERR_SIZE;
}

/* Checks a push of `len` bytes. 0 if it may go on. */
static int check_push(struct segzstd_stream *stream, const void *src,
                      uint64_t len, segzstd_op op)
{
    const segzstd_stream_options *o = &stream->options;

    if (stream->error != 0)
        return stream->error;
    if (stream->wrong_size)
        return SEGZSTD_ERR_SIZE;
    if (stream->ended)
        return SEGZSTD_ERR_STATE;
    if ((src == NULL && len != 0) || (unsigned)op > SEGZSTD_END ||
        len > UINT64_MAX / 2 - stream->pos_in)
        return SEGZSTD_ERR_INVALID;
    if (o->size_is_certain && len > o->size - stream->pos_in)
        return fail_size(stream);
    return 0;
}

/* True if `len` more bytes and the end would break the promised size. */
static bool ends_wrong(const struct segzstd_stream *stream, uint64_t len,
                       segzstd_op op)
{
    const segzstd_stream_options *o = &stream->options;

    return op == SEGZSTD_END && o->size_is_certain &&
           stream->pos_in + len != o->size;
}

static int apply_op(struct segzstd_stream *stream, segzstd_op op)
{
    if (op == SEGZSTD_CONTINUE)
        return 0;
    if (ends_wrong(stream, 0, op))
        return fail_size(stream);
    stream->pos_flush = stream->pos_in;
    if (op == SEGZSTD_END) {
        stream->ended = true;
        close_tail(stream);
    }
    return 0;
}

/* ---- the three pushes ---- */

int segzstd_stream_push(segzstd_stream *stream, const void *src, size_t len,
                        segzstd_op op, size_t *taken)
{
    uint64_t before = stream->pos_in;
    int error = check_push(stream, src, len, op);
    size_t room;

    *taken = 0;
    if (error != 0)
        return error;
    room = window_room(stream);
    error = copy_bytes(stream, src, min_size(len, room));
    *taken = (size_t)(stream->pos_in - before);
    if (error != 0) {
        /* what is there must not wait for more, which waits for its memory */
        if (!segzstd__stream_is_fixed(stream))
            stream->pos_flush = stream->pos_in;
        return error;
    }
    return len <= room ? apply_op(stream, op) : 0;
}

/* Appends a closed segment that has all of its content. */
static void append_closed(struct segzstd_stream *stream,
                          struct segzstd__segment *segment, uint64_t len)
{
    segment->end = segment->start + len;
    stream->pos_in += len;
    append_segment(stream, segment);
}

/* For pushes that take all or nothing. */
static int check_whole_push(struct segzstd_stream *stream, const void *src,
                            uint64_t len, segzstd_op op)
{
    int error = check_push(stream, src, len, op);

    if (error != 0)
        return error;
    if (window_room(stream) == 0)
        return SEGZSTD_ERR_AGAIN;
    return ends_wrong(stream, len, op) ? fail_size(stream) : 0;
}

/* What a reference needs, got before anything is changed. */
struct loan {
    struct segzstd__segment *segment;
    struct segzstd__extent *extent; /* not yet made */
};

static void free_loan(struct segzstd_stream *stream, struct loan *loan)
{
    if (loan->segment != NULL)
        segzstd__segment_free(loan->segment, stream->cache);
    segzstd__cache_free(stream->cache, loan->extent, sizeof(*loan->extent));
}

static int get_loan(struct segzstd_stream *stream, struct loan *loan)
{
    loan->segment =
        segzstd__segment_new(stream->cache, stream->pos_in, stream->overlap);
    loan->extent = segzstd__cache_alloc(stream->cache, sizeof(*loan->extent));
    if (loan->segment != NULL && loan->extent != NULL)
        return 0;
    free_loan(stream, loan);
    return SEGZSTD_ERR_NOMEM;
}

static void borrow(struct segzstd_stream *stream, struct loan *loan,
                   const uint8_t *src, size_t len, segzstd_release release,
                   void *arg)
{
    struct segzstd__segment *segment = loan->segment;

    segzstd__segment_move(segment, stream->pos_in);
    segment->extent =
        segzstd__extent_init_borrowed(loan->extent, sizeof(*loan->extent),
                                      stream->pos_in, src, len, release, arg);
    append_closed(stream, segment, len);
}

/* As far as the input window goes; but where segments are fixed, when jobs came
 * back must not decide where one begins. */
static bool is_copied(const struct segzstd_stream *stream, size_t len)
{
    return len < REF_BYTES_MIN &&
           (len <= window_room(stream) || segzstd__stream_is_fixed(stream));
}

int segzstd_stream_push_ref(segzstd_stream *stream, const void *src, size_t len,
                            segzstd_op op, segzstd_release release, void *arg)
{
    int error = check_whole_push(stream, src, len, op);
    bool alone = stream->pos_in == 0 && op == SEGZSTD_END && len != 0;
    uint64_t before = stream->pos_in;
    size_t copied = 0;
    struct loan loan;

    if (error != 0)
        return error;
    error = get_loan(stream, &loan);
    if (error != 0)
        return error;
    if (is_copied(stream, len) && !alone) {
        copy_bytes(stream, src, len);
        copied = (size_t)(stream->pos_in - before);
    }
    if (copied < len) {
        /* also the rest of what there was no memory to copy */
        borrow(stream, &loan, (const uint8_t *)src + copied, len - copied,
               release, arg);
    } else {
        free_loan(stream, &loan);
        if (release != NULL)
            release(arg);
    }
    return apply_op(stream, op);
}

int segzstd_stream_push_reader(segzstd_stream *stream, segzstd_read read,
                               uint64_t len, segzstd_op op,
                               segzstd_release release, void *arg)
{
    struct segzstd_cache *cache = stream->cache;
    int error = read == NULL ? SEGZSTD_ERR_INVALID
                             : check_whole_push(stream, stream, len, op);
    struct segzstd__segment *segment;
    struct segzstd__reader *reader;

    if (error != 0)
        return error;
    if (len == 0) {
        if (release != NULL)
            release(arg);
        return apply_op(stream, op);
    }
    segment = segzstd__segment_new(cache, stream->pos_in, stream->overlap);
    reader = segzstd__cache_alloc(cache, sizeof(*reader));
    if (segment == NULL || reader == NULL) {
        segzstd__cache_free(cache, reader, sizeof(*reader));
        if (segment != NULL)
            segzstd__segment_free(segment, cache);
        return SEGZSTD_ERR_NOMEM;
    }
    *reader = (struct segzstd__reader){1, stream->pos_in, read, release, arg};
    segment->reader = reader;
    append_closed(stream, segment, len);
    return apply_op(stream, op);
}

size_t segzstd_stream_want_input(const segzstd_stream *stream)
{
    if (stream->error != 0 || stream->wrong_size || stream->ended)
        return 0;
    return window_room(stream);
}
