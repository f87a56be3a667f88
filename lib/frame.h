/*
 * frame.h - the bytes of a frame around its blocks: header, block headers, last
 * block, checksum. RFC 8878, section 3.1.1. No state machine.
 */
#ifndef SEGZSTD_FRAME_H
#define SEGZSTD_FRAME_H

#include "common.h"

#define FRAME_MAGIC 0xFD2FB528u
#define FRAME_HEADER_BYTES_MAX 18
#define BLOCK_HEADER_BYTES 3
#define CHECKSUM_BYTES 4

/* Block_Type, RFC 8878 section 3.1.1.2.2. */
enum segzstd__block_type {
    BLOCK_RAW = 0,
    BLOCK_RLE = 1,
    BLOCK_COMPRESSED = 2,
    BLOCK_RESERVED = 3
};

struct segzstd__frame_header {
    unsigned window_log;   /* 10 to 31 */
    uint64_t content_size; /* or SEGZSTD_SIZE_UNKNOWN */
    uint32_t dict_id;      /* 0: none */
    bool checksum;
};

/* Writes the header, at most FRAME_HEADER_BYTES_MAX; returns its length. */
size_t segzstd__frame_put_header(uint8_t *dst,
                                 const struct segzstd__frame_header *header);

/* Length of the frame header that src begins with; 0 if `len` is too short to
 * tell or src is not a frame. */
size_t segzstd__frame_header_bytes(const uint8_t *src, size_t len);

/* Writes BLOCK_HEADER_BYTES. `size` is Block_Size, below 2^21. */
void segzstd__frame_put_block_header(uint8_t *dst,
                                     enum segzstd__block_type type, size_t size,
                                     bool last);

/* Content_Checksum: the low four bytes of XXH64 with seed 0. */
struct segzstd__xxh64 {
    uint64_t lane[4];
    uint64_t total;
    uint8_t tail[32];
    size_t tail_len;
};

void segzstd__xxh64_init(struct segzstd__xxh64 *hash);
void segzstd__xxh64_update(struct segzstd__xxh64 *hash, const void *src,
                           size_t len);
uint64_t segzstd__xxh64_digest(const struct segzstd__xxh64 *hash);

/* Little-endian stores and loads, any alignment. */
static inline void store_le(uint8_t *dst, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        dst[i] = (uint8_t)(v >> (8 * i));
}

static inline uint64_t load_le(const uint8_t *src, size_t bytes)
{
    uint64_t v = 0;

    for (size_t i = 0; i < bytes; i++)
        v |= (uint64_t)src[i] << (8 * i);
    return v;
}

#endif /* SEGZSTD_FRAME_H */
