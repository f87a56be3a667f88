/*
 * buf.c - chunked byte queue.
 */
#include "buf.h"

struct segzstd__chunk *segzstd__chunk_init(void *block, size_t block_bytes)
{
    struct segzstd__chunk *chunk = block;

    assert(block_bytes > sizeof(*chunk));
    chunk->next = NULL;
    chunk->block_bytes = block_bytes;
    chunk->cap = block_bytes - sizeof(*chunk);
    chunk->begin = 0;
    chunk->end = 0;
    return chunk;
}

size_t segzstd__buf_room(const struct segzstd__buf *buf)
{
    return buf->tail == NULL ? 0 : buf->tail->cap - buf->tail->end;
}

uint8_t *segzstd__buf_tail(struct segzstd__buf *buf)
{
    assert(segzstd__buf_room(buf) != 0);
    return buf->tail->data + buf->tail->end;
}

void segzstd__buf_produced(struct segzstd__buf *buf, size_t bytes)
{
    assert(bytes <= segzstd__buf_room(buf));
    if (bytes == 0)
        return;
    buf->tail->end += bytes;
    buf->len += bytes;
}

void segzstd__buf_add_chunk(struct segzstd__buf *buf,
                            struct segzstd__chunk *chunk)
{
    assert(chunk->next == NULL && chunk->begin == chunk->end);
    if (buf->tail == NULL)
        buf->head = chunk;
    else
        buf->tail->next = chunk;
    buf->tail = chunk;
}

void segzstd__buf_reserve(struct segzstd__buf *buf, size_t bytes)
{
    struct segzstd__chunk *chunk = buf->tail;

    assert(chunk != NULL && chunk->end == 0 && bytes <= chunk->cap);
    chunk->begin = bytes;
    chunk->end = bytes;
}

void segzstd__buf_replace_head(struct segzstd__buf *buf, size_t drop,
                               const void *src, size_t len)
{
    struct segzstd__chunk *chunk = buf->head;

    assert(chunk != NULL && drop <= chunk->end - chunk->begin);
    assert(len <= chunk->begin + drop);
    chunk->begin = chunk->begin + drop - len;
    buf->len = buf->len - drop + len;
    memcpy(chunk->data + chunk->begin, src, len);
}

void segzstd__buf_append(struct segzstd__buf *dst, struct segzstd__buf *src)
{
    if (src->head == NULL)
        return;
    if (dst->tail == NULL)
        dst->head = src->head;
    else
        dst->tail->next = src->head;
    dst->tail = src->tail;
    dst->len += src->len;
    *src = (struct segzstd__buf){NULL, NULL, 0};
}

void segzstd__buf_copy(struct segzstd__buf *dst, const struct segzstd__buf *src)
{
    const struct segzstd__chunk *c;

    for (c = src->head; c != NULL; c = c->next) {
        size_t n = c->end - c->begin;

        if (n == 0)
            continue;
        memcpy(segzstd__buf_tail(dst), c->data + c->begin, n);
        segzstd__buf_produced(dst, n);
    }
}

size_t segzstd__buf_peek(const struct segzstd__buf *buf, segzstd_vec *vec,
                         size_t max)
{
    size_t n = 0;

    for (const struct segzstd__chunk *c = buf->head; c != NULL && n < max;
         c = c->next) {
        if (c->begin == c->end)
            continue;
        vec[n].base = c->data + c->begin;
        vec[n].len = c->end - c->begin;
        n++;
    }
    return n;
}

struct segzstd__chunk *segzstd__buf_pop(struct segzstd__buf *buf)
{
    struct segzstd__chunk *chunk = buf->head;

    if (chunk == NULL)
        return NULL;
    buf->head = chunk->next;
    if (buf->head == NULL)
        buf->tail = NULL;
    buf->len -= chunk->end - chunk->begin;
    chunk->next = NULL;
    return chunk;
}

struct segzstd__chunk *segzstd__buf_consume(struct segzstd__buf *buf,
                                            size_t *bytes)
{
    struct segzstd__chunk *chunk = buf->head;
    size_t n;

    assert(*bytes <= buf->len);
    if (chunk == NULL || *bytes == 0)
        return NULL;
    n = min_size(*bytes, chunk->end - chunk->begin);
    chunk->begin += n;
    buf->len -= n;
    *bytes -= n;
    return chunk->begin == chunk->end ? segzstd__buf_pop(buf) : NULL;
}
