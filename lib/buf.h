/*
 * buf.h - a queue of bytes in owned chunks: written at the tail, read at the
 * head. It knows nothing of where the chunks' memory comes from.
 */
#ifndef SEGZSTD_BUF_H
#define SEGZSTD_BUF_H

#include "common.h"

/* The head of a memory block; the bytes follow. One owner at a time. */
struct segzstd__chunk {
    struct segzstd__chunk *next;
    size_t block_bytes; /* the whole block, to give it back */
    size_t cap;         /* bytes that fit into data */
    size_t begin;       /* data[begin..end) is not yet read */
    size_t end;
    uint8_t data[];
};

struct segzstd__buf {
    struct segzstd__chunk *head;
    struct segzstd__chunk *tail;
    size_t len; /* bytes not yet read, over all chunks */
};

/* Makes a chunk of a block of memory. */
struct segzstd__chunk *segzstd__chunk_init(void *block, size_t block_bytes);

/* Room behind the last byte; 0 if there is no chunk. */
size_t segzstd__buf_room(const struct segzstd__buf *buf);

/* Where the next byte goes; only if there is room. */
uint8_t *segzstd__buf_tail(struct segzstd__buf *buf);

/* `bytes` were written at the tail. */
void segzstd__buf_produced(struct segzstd__buf *buf, size_t bytes);

/* Adds an empty chunk, which `buf` owns from now on. */
void segzstd__buf_add_chunk(struct segzstd__buf *buf,
                            struct segzstd__chunk *chunk);

/* Leaves `bytes` free in front of the first byte of an empty last chunk. */
void segzstd__buf_reserve(struct segzstd__buf *buf, size_t bytes);

/* Replaces the first `drop` bytes, which lie in the first chunk, by `len` bytes
 * of src, for which room was reserved. */
void segzstd__buf_replace_head(struct segzstd__buf *buf, size_t drop,
                               const void *src, size_t len);

/* Moves all chunks of `src` behind those of `dst`; `src` is empty then. */
void segzstd__buf_append(struct segzstd__buf *dst, struct segzstd__buf *src);

/* Copies `src`, which is not longer than the room of `dst`, behind the last byte
 * of `dst`. */
void segzstd__buf_copy(struct segzstd__buf *dst,
                       const struct segzstd__buf *src);

/* Shows what is to be read as up to `max` pieces; returns how many. */
size_t segzstd__buf_peek(const struct segzstd__buf *buf, segzstd_vec *vec,
                         size_t max);

/* Drops up to *bytes at the head, and reduces *bytes by them. Returns a chunk
 * that was emptied, which is the caller's, or NULL if none was: call it until
 * *bytes is 0. */
struct segzstd__chunk *segzstd__buf_consume(struct segzstd__buf *buf,
                                            size_t *bytes);

/* Takes the first chunk out, read or not; NULL if there is none. */
struct segzstd__chunk *segzstd__buf_pop(struct segzstd__buf *buf);

#endif /* SEGZSTD_BUF_H */
