/*
 * args.h - what the command line asks for.
 */
#ifndef LOAD_ARGS_H
#define LOAD_ARGS_H

#include <stdbool.h>
#include <stdint.h>
#include <netinet/in.h>

enum stream_id { SMALL, LARGE, SLOW, STREAMS };

/* Requests of one kind. */
struct stream_args {
    const char *name;
    const char *path;     /* NULL: this stream is not wanted */
    const char *encoding; /* asked for, and expected; "identity": none */
    double rate;          /* requests per second; 0: a closed loop */
    double read_rate;     /* bytes that each connection reads per second; 0: as
                             fast as they come */
    unsigned phase;       /* sent at the same instant, rate / phase times per
                             second */
    unsigned connections;
    uint64_t count; /* no more requests than these; 0: no bound */
};

/* Streams of events, which come from an origin that we are too. */
struct event_args {
    unsigned streams; /* 0: none wanted */
    const char *path;
    const char *encoding;
    unsigned origin_port;
    double rate;    /* events per second and stream */
    unsigned bytes; /* of each event */
};

struct args {
    struct sockaddr_in server;
    const char *host; /* as written, for the Host header */
    struct stream_args streams[STREAMS];
    struct event_args events;
    double warmup_s; /* at first, not counted */
    double seconds;
    double timeout_s; /* of each answer */
    bool realtime;    /* no other process gets a CPU that we could use */
    int pid;          /* of the worker to be looked at; 0: none */
    const char *json; /* NULL: not written */
    const char *samples;
    const char *hgrm; /* what names of files with distributions begin with;
                         NULL: none wanted */
};

/* Says on stderr what was wrong and returns false; *help if that was asked for
 * and printed, and there is nothing more to do. */
bool args_parse(struct args *args, int argc, char **argv, bool *help);

#endif /* LOAD_ARGS_H */
