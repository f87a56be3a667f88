/*
 * store.c - writing content as it is, for when there is no time or memory to
 * compress it.
 */
#include "stream.h"

/* Content of one raw block that store writes: a chunk of 64 KiB holds it. */
#define STORE_BLOCK_BYTES (32 * KIB)

/* One raw block of up to `len` bytes at the segment's `fed`. */
static int store_block(struct segzstd_stream *s, struct segzstd__segment *seg,
                       size_t len)
{
    struct segzstd__buf out = {NULL, NULL, 0};
    size_t header = seg->fed == 0 ? FRAME_HEADER_BYTES_MAX : 0;
    uint8_t *p;
    int error = segzstd__job_ensure_room(s->cache, &out,
                                         header + BLOCK_HEADER_BYTES + len, 0);

    if (error != 0)
        return error;
    segzstd__stream_fix_header(s);
    p = segzstd__buf_tail(&out);
    if (seg->fed == 0)
        p += segzstd__frame_put_header(p, &s->shared.header);
    segzstd__frame_put_block_header(p, BLOCK_RAW, len, false);
    p += BLOCK_HEADER_BYTES;
    memcpy(p, segzstd__extent_at(seg->extent, seg->fed), len);
    p += len;
    segzstd__buf_produced(&out, (size_t)(p - segzstd__buf_tail(&out)));
    if (!seg->extent->borrowed)
        s->waiting -= len;
    seg->fed += len;
    seg->taken = seg->fed;
    s->stats.bytes_done += len;
    s->stats.bytes_stored += len;
    segzstd__stream_took_output(s, seg, &out);
    return 0;
}

/* Block_Maximum_Size is the window if that is smaller; a frame's window is
 * never below that of its content, so only content counts. */
static size_t store_bytes(const struct segzstd_stream *s,
                          const struct segzstd__segment *seg, size_t most)
{
    size_t len = (size_t)min_u64(seg->end - seg->fed, STORE_BLOCK_BYTES);

    len = min_size(len, (size_t)1 << s->shared.header.window_log);
    return min_size(len, most);
}

static struct segzstd__segment *find_storable(const struct segzstd_stream *s)
{
    struct segzstd__link *link;

    for (link = s->segments.next; link != &s->segments; link = link->next) {
        struct segzstd__segment *seg = segzstd__segment_of(link);

        if (!seg->job_out && seg->reader == NULL && seg->fed < seg->end)
            return seg;
    }
    return NULL;
}

int segzstd_stream_store(segzstd_stream *s, size_t max_bytes, size_t *stored)
{
    struct segzstd__tally tally = {0};
    struct segzstd__segment *seg;
    int error = s->error;

    while (error == 0 && tally.stored_bytes < max_bytes &&
           (seg = find_storable(s)) != NULL) {
        size_t len;

        segzstd__stream_fix_header(s);
        segzstd__cache_abandon(s->cache, &seg->claim);
        len = store_bytes(s, seg, max_bytes - (size_t)tally.stored_bytes);
        error = store_block(s, seg, len);
        if (error == 0)
            tally.stored_bytes += len;
    }
    tally.bytes_in = tally.stored_bytes;
    segzstd__cache_count(s->cache, &tally);
    if (stored != NULL)
        *stored = (size_t)tally.stored_bytes;
    return error;
}
