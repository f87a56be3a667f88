/*
 * http.h - reads HTTP/1.1 responses, in pieces of any size: head, body by its
 * length or in chunks. The body is counted, not kept. No I/O.
 */
#ifndef LOAD_HTTP_H
#define LOAD_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum http_state {
    HTTP_HEAD,
    HTTP_LENGTH,    /* body of known length */
    HTTP_SIZE,      /* the line with a chunk's size */
    HTTP_CHUNK,     /* its bytes */
    HTTP_CHUNK_END, /* the line's end after them */
    HTTP_TRAILER,   /* lines after the last chunk, up to an empty one */
    HTTP_DONE,
    HTTP_BROKEN /* not HTTP as it should be, see error */
};

#define HTTP_HEAD_MAX 8192

struct http_response {
    enum http_state state;
    const char *error; /* in HTTP_BROKEN, what was wrong */
    int status;
    char encoding[16]; /* Content-Encoding, lower case; empty: none */
    bool chunked;
    bool close;             /* the connection ends with this response */
    uint64_t length;        /* Content-Length, unless chunked */
    uint64_t body_bytes;    /* without the framing of chunks */
    unsigned char start[4]; /* the body's first bytes */

    uint64_t left;   /* of the body or the chunk */
    size_t line_len; /* of the line being read after the head */
    size_t head_len;
    char *head;
};

/* `head` has room for HTTP_HEAD_MAX bytes, and is used until the state is
 * another one than HTTP_HEAD. */
void http_start(struct http_response *response, char *head);

/* Reads up to n bytes. The count that it returns is less than n only when the
 * state is then HTTP_DONE or HTTP_BROKEN. */
size_t http_read(struct http_response *response, const char *bytes, size_t n);

#endif /* LOAD_HTTP_H */
