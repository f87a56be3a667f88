/*
 * input.c - extents and readers.
 */
#include "input.h"

/* Most for one call of a reader, so that a job that is canceled ends soon. */
#define READ_BYTES (256 * KIB)

static_assert(sizeof(struct segzstd__extent) <= EXTENT_HEADER_BYTES,
              "the extent fits in front of its bytes");

size_t segzstd__extent_block_bytes(size_t cap)
{
    return cap + EXTENT_HEADER_BYTES;
}

struct segzstd__extent *segzstd__extent_init(void *block, size_t block_bytes,
                                             uint64_t pos)
{
    struct segzstd__extent *extent = block;

    assert(block_bytes > EXTENT_HEADER_BYTES);
    *extent = (struct segzstd__extent){
        .refs = 1,
        .pos = pos,
        .base = (uint8_t *)block + EXTENT_HEADER_BYTES,
        .cap = block_bytes - EXTENT_HEADER_BYTES,
        .block_bytes = block_bytes,
    };
    return extent;
}

struct segzstd__extent *segzstd__extent_init_borrowed(
    void *block, size_t block_bytes, uint64_t pos, const void *base, size_t len,
    segzstd_release release, void *arg)
{
    struct segzstd__extent *extent = block;

    *extent = (struct segzstd__extent){
        .refs = 1,
        .pos = pos,
        .base = (uint8_t *)(uintptr_t)base,
        .len = len,
        .cap = len,
        .block_bytes = block_bytes,
        .borrowed = true,
        .release = release,
        .release_arg = arg,
    };
    return extent;
}

uint64_t segzstd__extent_end(const struct segzstd__extent *extent)
{
    return extent->pos + extent->len;
}

uint64_t segzstd__extent_cap_end(const struct segzstd__extent *extent)
{
    return extent->pos + extent->cap;
}

uint8_t *segzstd__extent_at(const struct segzstd__extent *extent, uint64_t pos)
{
    assert(pos >= extent->pos && pos - extent->pos <= extent->cap);
    return extent->base + (size_t)(pos - extent->pos);
}

void segzstd__extent_write(struct segzstd__extent *extent, const void *src,
                           size_t len)
{
    assert(!extent->borrowed && len <= extent->cap - extent->len);
    if (len == 0)
        return;
    memcpy(extent->base + extent->len, src, len);
    extent->len += len;
}

int segzstd__reader_fill(const struct segzstd__reader *reader, uint64_t pos,
                         uint8_t *dst, size_t len, const _Atomic bool *canceled)
{
    uint64_t offset = pos - reader->pos;

    while (len != 0) {
        size_t most = min_size(len, READ_BYTES);
        int64_t n;

        if (atomic_load_explicit(canceled, memory_order_relaxed))
            return SEGZSTD_ERR_CANCELED;
        n = reader->read(reader->arg, offset, dst, most);
        if (n <= 0 || (uint64_t)n > most)
            return SEGZSTD_ERR_READ;
        offset += (uint64_t)n;
        dst += (size_t)n;
        len -= (size_t)n;
    }
    return 0;
}
