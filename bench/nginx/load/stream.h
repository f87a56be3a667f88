/*
 * stream.h - requests of one kind: when they are due, the connections that
 * carry them, and what came of them.
 */
#ifndef LOAD_STREAM_H
#define LOAD_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "args.h"
#include "faults.h"
#include "http.h"
#include "load.h"
#include "samples.h"

enum conn_state {
    CONN_NONE, /* no socket */
    CONN_CONNECTING,
    CONN_IDLE,
    CONN_BUSY /* a request is out */
};

struct conn {
    struct source source;
    struct stream *stream;
    int fd;
    enum conn_state state;
    bool claimed;   /* has a request, out or to be sent when it is connected */
    uint64_t index; /* of that request */
    uint64_t start_ns;   /* of its latency: when it was due */
    uint64_t claimed_ns; /* when it was taken up */
    uint64_t free_ns;    /* when the answer before it had ended */
    uint64_t first_ns;   /* its body's first byte; 0: not yet */
    struct http_response response;
    char head[HTTP_HEAD_MAX];
};

struct stream {
    const struct stream_args *args;
    char request[2048];
    size_t request_len;
    struct conn *conns;
    unsigned next_conn; /* whose turn it is */

    uint64_t epoch_ns;   /* the first request is due */
    uint64_t counted_ns; /* requests due earlier are not counted: warm-up */
    uint64_t lead_count; /* requests before the run really begins */
    uint64_t due;        /* requests whose time has come */
    uint64_t sent;
    bool ended; /* no more become due */

    uint64_t begun; /* answers whose body has begun, of all */
    uint64_t done;  /* answered and right, of the counted */
    struct faults faults;
    uint64_t unfinished; /* at the end of all, still without an answer */
    uint64_t last_done_ns;
    uint64_t most_waiting;   /* due and not sent, at most */
    uint64_t body_bytes;     /* of these */
    uint64_t received_bytes; /* with heads and framing, of all */
    uint64_t min_body, max_body;
    uint64_t content_length; /* of the first answer that had one */
    struct samples first;    /* to the body's first byte */
    struct samples last;
    struct samples lag; /* from due, and a connection free, to sent: our own
                           slowness */
};

void stream_init(struct stream *stream, const struct args *args,
                 const struct stream_args *stream_args);
void stream_free(struct stream *stream);

/* When the next request becomes due; UINT64_MAX if none will. */
uint64_t stream_next_due(const struct stream *stream);

/* Sends what is due, as far as there are connections. */
void stream_dispatch(struct load *load, struct stream *stream, uint64_t now);

/* Of a slow reader: connects, asks, or reads up to n bytes, whichever is its
 * next step. */
void conn_step(struct load *load, struct conn *conn, size_t n);

/* Fails requests that have waited for too long. */
void stream_check_timeouts(struct load *load, struct stream *stream,
                           uint64_t now);

/* Will no more requests be sent? */
bool stream_is_spent(const struct stream *stream);

/* Is a request due or out? */
bool stream_is_busy(const struct stream *stream);

/* Counts what has no answer, with the time that it has waited. */
void stream_give_up(struct stream *stream, uint64_t now);

#endif /* LOAD_STREAM_H */
