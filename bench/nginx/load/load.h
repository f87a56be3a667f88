/*
 * load.h - what everything that sends shares, and what epoll waits for.
 */
#ifndef LOAD_LOAD_H
#define LOAD_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "args.h"

struct load {
    const struct args *args;
    int epoll;
    FILE *samples; /* NULL: not written */
    char *buf;     /* what was just read */
    size_t buf_size;
    unsigned failed_connects; /* one after the other */
    bool hopeless;            /* the server cannot be reached any more */
};

/* A descriptor that epoll waits for; the first member of what it belongs to,
 * and the data of its events. */
struct source {
    void (*ready)(struct load *load, struct source *source);
    bool urgent; /* before all others that are ready at the same time */
};

/* Waits for `events` of epoll; false, with errno set, if that cannot be. */
bool source_add(const struct load *load, struct source *source, int fd,
                uint32_t events);
bool source_change(const struct load *load, struct source *source, int fd,
                   uint32_t events);

/* A connection was refused, or made: after too many refused ones in a row the
 * load is hopeless. */
void load_count_connect(struct load *load, bool made);

/* Of the monotonic clock. */
uint64_t now_ns(void);

/* Says on stderr what could not be done, and errno's reason; ends all. */
_Noreturn void die(const char *what);

#endif /* LOAD_LOAD_H */
