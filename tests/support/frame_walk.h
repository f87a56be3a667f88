/*
 * frame_walk.h - reads a frame down to every sequence, without decoding its
 * literals, and holds each against the format's rules (RFC 8878): what a
 * decoder that knows only the declared window and the bytes so far can follow.
 */
#ifndef SUPPORT_FRAME_WALK_H
#define SUPPORT_FRAME_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_WALK_NO_SIZE UINT64_MAX

struct frame_walk {
    /* The frame header. */
    uint64_t window;
    uint64_t content_size; /* FRAME_WALK_NO_SIZE if not declared */
    uint32_t dict_id;      /* 0 if not declared */
    bool checksum;
    size_t header_bytes;

    /* The blocks. */
    uint64_t decoded; /* bytes that they decode to */
    uint64_t blocks;
    uint64_t blocks_raw; /* the empty last one included */
    uint64_t blocks_rle;
    uint64_t blocks_compressed;
    uint64_t sequences;
    uint64_t repeat_codes; /* sequences with a repeat offset */
    uint64_t max_offset;

    char error[160]; /* what is wrong and where; "" if nothing is */
};

/*
 * Walks frame[0..len), which must be exactly one frame. With dict_len, matches
 * may reach that many bytes of a raw dictionary before the content, as long as
 * what was decoded is not beyond the window.
 *
 * Returns 0; or -1, and then error is set, and the counts are those so far.
 */
int frame_walk(const void *frame, size_t len, size_t dict_len,
               struct frame_walk *out);

/* The same with the dictionary itself, raw or trained: a trained one brings
 * tables and repeat offsets. */
int frame_walk_dict(const void *frame, size_t len, const void *dict,
                    size_t dict_len, struct frame_walk *out);

#endif /* SUPPORT_FRAME_WALK_H */
