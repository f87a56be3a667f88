/*
 * segment.c - segments, and references to what they read.
 */
#include "segment.h"

struct segzstd__segment *segzstd__segment_of(struct segzstd__link *link)
{
    return LINK_OWNER(link, struct segzstd__segment, link);
}

struct segzstd__extent *segzstd__extent_new(struct segzstd_cache *cache,
                                            uint64_t pos, size_t carry,
                                            size_t content)
{
    size_t bytes = segzstd__extent_block_bytes(carry + content);
    void *block = segzstd__cache_get_block(cache, &bytes);

    return block == NULL ? NULL
                         : segzstd__extent_init(block, bytes, pos - carry);
}

struct segzstd__extent *segzstd__extent_ref(struct segzstd__extent *extent)
{
    if (extent != NULL)
        extent->refs++;
    return extent;
}

void segzstd__extent_unref(struct segzstd__extent *extent,
                           struct segzstd_cache *cache)
{
    if (extent == NULL || --extent->refs != 0)
        return;
    if (!extent->borrowed) {
        segzstd__cache_put_block(cache, extent, extent->block_bytes);
        return;
    }
    if (extent->release != NULL)
        extent->release(extent->release_arg);
    segzstd__cache_free(cache, extent, extent->block_bytes);
}

void segzstd__reader_unref(struct segzstd__reader *reader,
                           struct segzstd_cache *cache)
{
    if (reader == NULL || --reader->refs != 0)
        return;
    if (reader->release != NULL)
        reader->release(reader->arg);
    segzstd__cache_free(cache, reader, sizeof(*reader));
}

struct segzstd__segment *segzstd__segment_new(struct segzstd_cache *cache,
                                              uint64_t pos, size_t overlap)
{
    struct segzstd__segment *segment =
        segzstd__cache_alloc(cache, sizeof(*segment));

    if (segment == NULL)
        return NULL;
    memset(segment, 0, sizeof(*segment));
    list_init(&segment->link);
    segment->overlap = overlap;
    segzstd__segment_move(segment, pos);
    return segment;
}

void segzstd__segment_move(struct segzstd__segment *segment, uint64_t pos)
{
    assert(segment->fed == segment->end);
    segment->start = pos;
    segment->end = pos;
    segment->fed = pos;
    segment->taken = pos;
}

void segzstd__segment_drop_input(struct segzstd__segment *segment,
                                 struct segzstd_cache *cache)
{
    segzstd__extent_unref(segment->extent, cache);
    segment->extent = NULL;
    segzstd__reader_unref(segment->reader, cache);
    segment->reader = NULL;
}

void segzstd__segment_free(struct segzstd__segment *segment,
                           struct segzstd_cache *cache)
{
    assert(!segment->job_out);
    list_remove(&segment->link);
    segzstd__cache_abandon(cache, &segment->claim);
    segzstd__job_drop(cache, &segment->out);
    segzstd__segment_drop_input(segment, cache);
    segzstd__cache_free(cache, segment, sizeof(*segment));
}

bool segzstd__segment_is_finished(const struct segzstd__segment *segment)
{
    return !segment->open && !segment->job_out && segment->fed == segment->end;
}

uint64_t segzstd__segment_waiting(const struct segzstd__segment *segment)
{
    return segment->end - segment->taken;
}

struct segzstd__segment *segzstd__segment_split(
    struct segzstd__segment *segment, struct segzstd_cache *cache, uint64_t pos)
{
    struct segzstd__segment *rest =
        segzstd__segment_new(cache, pos, segment->overlap);

    assert(pos >= segment->taken && pos <= segment->end);
    if (rest == NULL)
        return NULL;
    rest->end = segment->end;
    rest->open = segment->open;
    rest->reader = segment->reader;
    if (rest->reader != NULL)
        rest->reader->refs++;
    else
        rest->extent = segzstd__extent_ref(segment->extent);
    segment->end = pos;
    segment->open = false;
    list_insert_after(&segment->link, &rest->link);
    return rest;
}

size_t segzstd__segment_prefix(const struct segzstd__segment *segment,
                               uint64_t pos)
{
    return (size_t)min_u64(segment->overlap, pos - segment->extent->pos);
}
