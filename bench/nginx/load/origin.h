/*
 * origin.h - the application behind the server under test: answers each of its
 * requests with a stream of events that does not end by itself.
 */
#ifndef LOAD_ORIGIN_H
#define LOAD_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "load.h"

/* A header of requests, that the server hands on: which stream it is. */
#define ORIGIN_STREAM_HEADER "X-Stream"

struct origin_conn {
    struct source source;
    struct origin *origin;
    int fd;
    bool chunked;     /* else the response ends with the connection */
    unsigned stream;  /* once the request is here */
    uint64_t written; /* events */
    size_t head_len;
    char *head; /* of the request, until all of it is here */
};

struct origin {
    struct source source;
    int fd; /* listens */
    unsigned streams;
    unsigned event_bytes;
    unsigned conn_count; /* accepted; each has a place of its own */
    unsigned conn_max;
    struct origin_conn *conns;
    struct origin_conn **of_stream; /* NULL: not there (any more) */
    uint64_t refused;               /* requests that are no stream's */
    char *buf;                      /* what is just written */
};

/* Listens on 127.0.0.1; ends the program if it cannot. */
void origin_open(struct origin *origin, const struct load *load);
void origin_close(struct origin *origin);

/* Writes a stream's next event, the first one having gone with the head. NULL,
 * or what was wrong; then the stream's connection is closed. */
const char *origin_send(struct origin *origin, unsigned stream);

/* Ends a stream's response as it should end. */
void origin_end(struct origin *origin, unsigned stream);

#endif /* LOAD_ORIGIN_H */
