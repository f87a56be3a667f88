/*
 * frame.c - frame header, block header and checksum bytes.
 */
#include "frame.h"

/* Frame_Content_Size_Flag: 0, 1, 2, 3 for fields of (0 or 1), 2, 4, 8 bytes. */
static unsigned content_size_code(uint64_t size)
{
    if (size == SEGZSTD_SIZE_UNKNOWN)
        return 0;
    return (unsigned)(size >= 256) + (size >= 65536 + 256) +
           (size >= 0xFFFFFFFFu);
}

/* Dictionary_ID_Flag: 0, 1, 2, 3 for fields of 0, 1, 2, 4 bytes. */
static unsigned dict_id_code(uint32_t id)
{
    return (unsigned)(id > 0) + (id >= 256) + (id >= 65536);
}

size_t segzstd__frame_put_header(uint8_t *dst,
                                 const struct segzstd__frame_header *header)
{
    static const uint8_t dict_bytes[4] = {0, 1, 2, 4};
    uint64_t size = header->content_size;
    unsigned size_code = content_size_code(size);
    unsigned dict_code = dict_id_code(header->dict_id);
    bool single = size != SEGZSTD_SIZE_UNKNOWN &&
                  size <= (uint64_t)1 << header->window_log;
    uint8_t *p = dst;

    assert(header->window_log >= 10 && header->window_log <= 31);
    store_le(p, FRAME_MAGIC, 4);
    p += 4;
    *p++ = (uint8_t)(size_code << 6 | (unsigned)single << 5 |
                     (unsigned)header->checksum << 2 | dict_code);
    if (!single)
        *p++ = (uint8_t)((header->window_log - 10) << 3);
    store_le(p, header->dict_id, dict_bytes[dict_code]);
    p += dict_bytes[dict_code];
    if (size_code == 1) {
        store_le(p, size - 256, 2);
        p += 2;
    } else if (size_code > 1) {
        store_le(p, size, (size_t)1 << size_code);
        p += (size_t)1 << size_code;
    } else if (single) {
        *p++ = (uint8_t)size;
    }
    return (size_t)(p - dst);
}

size_t segzstd__frame_header_bytes(const uint8_t *src, size_t len)
{
    static const uint8_t dict_bytes[4] = {0, 1, 2, 4};
    static const uint8_t size_bytes[4] = {0, 2, 4, 8};
    unsigned descriptor;
    bool single;
    size_t bytes;

    if (len < 5 || load_le(src, 4) != FRAME_MAGIC)
        return 0;
    descriptor = src[4];
    single = (descriptor >> 5 & 1) != 0;
    bytes = 5 + (size_t)!single + dict_bytes[descriptor & 3] +
            size_bytes[descriptor >> 6];
    if (single && descriptor >> 6 == 0)
        bytes++;
    return bytes <= len ? bytes : 0;
}

void segzstd__frame_put_block_header(uint8_t *dst,
                                     enum segzstd__block_type type, size_t size,
                                     bool last)
{
    assert(size < (size_t)1 << 21);
    store_le(dst, size << 3 | (uint64_t)type << 1 | last, BLOCK_HEADER_BYTES);
}

/* ---- XXH64: the algorithm is specified at github.com/Cyan4973/xxHash ---- */

#define PRIME_1 0x9E3779B185EBCA87u
#define PRIME_2 0xC2B2AE3D27D4EB4Fu
#define PRIME_3 0x165667B19E3779F9u
#define PRIME_4 0x85EBCA77C2B2AE63u
#define PRIME_5 0x27D4EB2F165667C5u

static uint64_t rotate_left(uint64_t v, unsigned n)
{
    return v << n | v >> (64 - n);
}

/* load_le() of eight bytes, as one instruction where memory is little-endian */
static uint64_t load_le64(const uint8_t *src)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t v;

    memcpy(&v, src, sizeof(v));
    return v;
#else
    return load_le(src, 8);
#endif
}

static uint64_t mix_lane(uint64_t lane, uint64_t input)
{
    return rotate_left(lane + input * PRIME_2, 31) * PRIME_1;
}

static const uint8_t *mix_stripes(uint64_t lane[4], const uint8_t *p,
                                  size_t stripes)
{
    uint64_t a = lane[0], b = lane[1], c = lane[2], d = lane[3];

    for (; stripes != 0; stripes--, p += 32) {
        a = mix_lane(a, load_le64(p));
        b = mix_lane(b, load_le64(p + 8));
        c = mix_lane(c, load_le64(p + 16));
        d = mix_lane(d, load_le64(p + 24));
    }
    lane[0] = a;
    lane[1] = b;
    lane[2] = c;
    lane[3] = d;
    return p;
}

void segzstd__xxh64_init(struct segzstd__xxh64 *hash)
{
    hash->lane[0] = PRIME_1 + PRIME_2;
    hash->lane[1] = PRIME_2;
    hash->lane[2] = 0;
    hash->lane[3] = 0 - PRIME_1;
    hash->total = 0;
    hash->tail_len = 0;
}

void segzstd__xxh64_update(struct segzstd__xxh64 *hash, const void *src,
                           size_t len)
{
    const uint8_t *p = src;
    size_t n;

    hash->total += len;
    if (hash->tail_len != 0) {
        n = min_size(len, sizeof(hash->tail) - hash->tail_len);
        memcpy(hash->tail + hash->tail_len, p, n);
        hash->tail_len += n;
        p += n;
        len -= n;
        if (hash->tail_len < sizeof(hash->tail))
            return;
        mix_stripes(hash->lane, hash->tail, 1);
    }
    p = mix_stripes(hash->lane, p, len / 32);
    hash->tail_len = len % 32;
    if (hash->tail_len != 0)
        memcpy(hash->tail, p, hash->tail_len);
}

static uint64_t join_lanes(const uint64_t lane[4])
{
    static const unsigned turn[4] = {1, 7, 12, 18};
    uint64_t h = 0;

    for (size_t i = 0; i < 4; i++)
        h += rotate_left(lane[i], turn[i]);
    for (size_t i = 0; i < 4; i++)
        h = (h ^ mix_lane(0, lane[i])) * PRIME_1 + PRIME_4;
    return h;
}

static uint64_t mix_tail(uint64_t h, const uint8_t *p, size_t len)
{
    for (; len >= 8; len -= 8, p += 8)
        h = rotate_left(h ^ mix_lane(0, load_le64(p)), 27) * PRIME_1 + PRIME_4;
    if (len >= 4) {
        h = rotate_left(h ^ load_le(p, 4) * PRIME_1, 23) * PRIME_2 + PRIME_3;
        len -= 4;
        p += 4;
    }
    for (; len != 0; len--, p++)
        h = rotate_left(h ^ *p * PRIME_5, 11) * PRIME_1;
    return h;
}

uint64_t segzstd__xxh64_digest(const struct segzstd__xxh64 *hash)
{
    uint64_t h = hash->total >= 32 ? join_lanes(hash->lane) : PRIME_5;

    h = mix_tail(h + hash->total, hash->tail, hash->tail_len);
    h = (h ^ h >> 33) * PRIME_2;
    h = (h ^ h >> 29) * PRIME_3;
    return h ^ h >> 32;
}
