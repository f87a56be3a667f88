/*
 * worker.h - what the kernel counts of another process and of its threads.
 */
#ifndef LOAD_WORKER_H
#define LOAD_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#define WORKER_THREADS_MAX 256

struct worker_thread {
    int tid;
    char name[32];
    uint64_t user_ns; /* as the kernel splits cpu_ns, in whole ticks */
    uint64_t system_ns;
    uint64_t cpu_ns; /* exact, of the scheduler; 0 where it has no schedstat */
    uint64_t minor_faults; /* page faults */
    uint64_t major_faults; /* those that read from a disk */
    uint64_t voluntary;    /* context switches */
    uint64_t involuntary;
};

struct worker {
    int pid;
    struct worker_thread process; /* all threads, ended ones too; cpu_ns and
                                     switches are not in it */
    uint64_t tick_ns;             /* the step of user_ns and system_ns */
    uint64_t rss_bytes;
    uint64_t peak_rss_bytes; /* since the process began */
    unsigned thread_count;
    struct worker_thread threads[WORKER_THREADS_MAX]; /* [0]: the first one */
};

/* False, with errno set, if there is no such process or it may not be seen. */
bool worker_look(struct worker *worker, int pid);

/* What was counted from `before` to `after`, per thread and in all; resident
 * memory is that of `after`. Threads that ended meanwhile are lost. */
void worker_subtract(struct worker *after, const struct worker *before);

/* Over all threads. User and system time and faults are the process's own
 * count: a sum over threads would round each of them. */
struct worker_thread worker_total(const struct worker *worker);

#endif /* LOAD_WORKER_H */
