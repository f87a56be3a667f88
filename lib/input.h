/*
 * input.h - where content bytes lie until they are compressed: extents, which
 * are contiguous ranges of memory, and readers, which fill them.
 *
 * A segment and the overlap before it lie in one extent, so that the encoder
 * sees one contiguous window. Several segments may share an extent. Reference
 * counts are touched by the stream's owner only; jobs use the memory, never the
 * counts.
 */
#ifndef SEGZSTD_INPUT_H
#define SEGZSTD_INPUT_H

#include "common.h"

/* In front of an extent's own bytes, which begin on a cache line. */
#define EXTENT_HEADER_BYTES ((size_t)128)

struct segzstd__extent {
    unsigned refs;           /* owner only */
    uint64_t pos;            /* content position of base[0] */
    uint8_t *base;           /* never written to if borrowed */
    size_t len;              /* bytes present; owner writes */
    size_t cap;              /* bytes that fit */
    size_t block_bytes;      /* own memory, this struct included */
    bool borrowed;           /* base is the host's memory */
    segzstd_release release; /* of borrowed memory; may be NULL */
    void *release_arg;
};

/* Bytes of a block that an extent of `cap` own bytes needs. */
size_t segzstd__extent_block_bytes(size_t cap);

/* Makes an extent for own bytes of a block of memory. One reference. */
struct segzstd__extent *segzstd__extent_init(void *block, size_t block_bytes,
                                             uint64_t pos);

/* Makes an extent, in `block`, of memory that is the host's. */
struct segzstd__extent *segzstd__extent_init_borrowed(
    void *block, size_t block_bytes, uint64_t pos, const void *base, size_t len,
    segzstd_release release, void *arg);

/* Content position behind the last byte present, and behind the last one that
 * fits. */
uint64_t segzstd__extent_end(const struct segzstd__extent *extent);
uint64_t segzstd__extent_cap_end(const struct segzstd__extent *extent);

/* Address of content position `pos`, which lies in the extent or at its end. */
uint8_t *segzstd__extent_at(const struct segzstd__extent *extent, uint64_t pos);

/* Adds bytes that fit. */
void segzstd__extent_write(struct segzstd__extent *extent, const void *src,
                           size_t len);

struct segzstd__reader {
    unsigned refs; /* owner only */
    uint64_t pos;  /* content position of the reader's offset 0 */
    segzstd_read read;
    segzstd_release release; /* may be NULL */
    void *arg;
};

/*
 * Reads all of [pos, pos + len) into dst, across short reads. On any thread.
 * Returns 0, SEGZSTD_ERR_READ, or SEGZSTD_ERR_CANCELED if *canceled was seen.
 */
int segzstd__reader_fill(const struct segzstd__reader *reader, uint64_t pos,
                         uint8_t *dst, size_t len,
                         const _Atomic bool *canceled);

#endif /* SEGZSTD_INPUT_H */
