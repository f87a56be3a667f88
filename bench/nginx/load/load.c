/*
 * load.c - see load.h.
 */
#define _GNU_SOURCE 1

#include "load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

/* So many connections refused one after the other, and it makes no sense. */
#define FAILED_CONNECTS_MAX 100

bool source_add(const struct load *load, struct source *source, int fd,
                uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};

    return epoll_ctl(load->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

bool source_change(const struct load *load, struct source *source, int fd,
                   uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};

    return epoll_ctl(load->epoll, EPOLL_CTL_MOD, fd, &event) == 0;
}

void load_count_connect(struct load *load, bool made)
{
    load->failed_connects = made ? 0 : load->failed_connects + 1;
    if (load->failed_connects == FAILED_CONNECTS_MAX)
        load->hopeless = true;
}

uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

_Noreturn void die(const char *what)
{
    fprintf(stderr, "segzstd_load: %s: %s\n", what, strerror(errno));
    exit(1);
}
