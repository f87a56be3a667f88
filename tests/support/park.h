/*
 * park.h - worker threads that stand still until the test lets them go. No
 * test needs to sleep: what has happened is known, not guessed.
 */
#ifndef SUPPORT_PARK_H
#define SUPPORT_PARK_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include "segzstd.h"

enum { PARK_WORKERS_MAX = 16 };

struct park;

struct park_worker {
    struct park *park;
    pthread_t thread;
    sem_t go;         /* posted by the test, waited for by the thread */
    segzstd_job *job; /* written by the test before `go`; NULL: stop */
    bool busy;        /* the test's own: a job is with this worker */
};

struct park {
    unsigned count;
    struct park_worker workers[PARK_WORKERS_MAX];
    sem_t finished;       /* one post for each entry in `done` */
    pthread_mutex_t lock; /* guards `done` and `done_count` */
    struct park_worker *done[PARK_WORKERS_MAX];
    unsigned done_count;
};

/* Starts the workers, all parked. Aborts if there are no threads. */
void park_start(struct park *park, unsigned workers);

/* Stops the workers; none may have a job. */
void park_stop(struct park *park);

/* Gives the job to a worker that has none, which stays parked. False if all
 * have one. */
bool park_give(struct park *park, segzstd_job *job, unsigned *worker);

/* Lets a worker run its job. */
void park_release(struct park *park, unsigned worker);

/* Waits for a released worker to end its job, in the order in which they end.
 * The worker is parked again. */
segzstd_job *park_wait(struct park *park);

/* A place inside a reader where a thread stands still. */
struct park_gate {
    sem_t reached; /* a thread has come to the gate */
    sem_t open;    /* lets one thread pass */
};

void gate_init(struct park_gate *gate);
void gate_destroy(struct park_gate *gate);

/* The thread at the gate: says so, and waits. */
void gate_pass(struct park_gate *gate);

/* The test: waits until a thread has come, or lets one go on. */
void gate_wait(struct park_gate *gate);
void gate_open(struct park_gate *gate);

#endif /* SUPPORT_PARK_H */
