/*
 * events.h - streams of events, held open through the server, and what becomes
 * of the events that the origin writes into them.
 */
#ifndef LOAD_EVENTS_H
#define LOAD_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "faults.h"
#include "http.h"
#include "load.h"
#include "origin.h"
#include "samples.h"

enum event_state {
    EVENT_NONE, /* not yet, or not any more */
    EVENT_CONNECTING,
    EVENT_BEGINNING, /* until the first event has arrived */
    EVENT_OPEN,
    EVENT_ENDING /* the origin has ended it */
};

struct event_stream {
    struct source source;
    struct events *events;
    int fd;
    enum event_state state;
    uint64_t begun_ns; /* since when it is CONNECTING or ENDING */
    struct http_response response;
    char *head;        /* for the response's, until all of it is here */
    uint64_t count;    /* events written into it, with the first one */
    uint64_t *written; /* when those were that have not arrived */
    unsigned waiting;  /* so many */
    unsigned room;
};

struct events {
    struct load *load;
    const struct event_args *args;
    struct origin origin;
    struct event_stream *streams; /* NULL: none wanted */
    unsigned tried;               /* streams that had a connection tried */
    unsigned beginning;           /* not yet open */
    unsigned asked_to_end;
    unsigned ending;
    unsigned opened; /* at any time */
    unsigned open;
    unsigned completed; /* ended as they should */

    uint64_t epoch_ns;   /* the first event is due */
    uint64_t counted_ns; /* events written earlier are not counted */
    uint64_t due;        /* events whose time has come */
    uint64_t end_ns;     /* none is due from then on */
    bool counting;

    double open_s; /* until all streams were open */
    uint64_t sent; /* below: of the counted */
    uint64_t arrived;
    uint64_t waiting; /* of all, not arrived */
    uint64_t shared;  /* arrived together with one before them */
    uint64_t wakeups; /* reads that brought bytes */
    uint64_t body_bytes;
    uint64_t received_bytes; /* with framing */
    struct faults faults;
    struct samples latency; /* from the origin's write to the arrival */
    struct samples lag;     /* from due to the origin's write */
};

/* Makes the origin listen. */
void events_init(struct events *events, struct load *load);
void events_free(struct events *events);

/* Opens streams, a few at a time; false when all are open or have failed. */
bool events_open(struct events *events);

/* When the next event is due; UINT64_MAX if none will be. */
uint64_t events_next_due(const struct events *events);

/* Makes the origin write what is due. */
void events_dispatch(struct events *events, uint64_t now);

/* Is an event to be written, or on its way? */
bool events_are_busy(const struct events *events);

/* Fails streams of which something is missing for too long. */
void events_check_timeouts(struct events *events, uint64_t now);

/* Counts what has not arrived, with the time that it has waited. Ends the
 * counting. */
void events_give_up(struct events *events, uint64_t now);

/* Makes the origin end all streams; false when none is left. */
bool events_end(struct events *events);

#endif /* LOAD_EVENTS_H */
