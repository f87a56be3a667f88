#include "support/park.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0) {
        if (errno != EINTR)
            abort();
    }
}

static void report_done(struct park_worker *worker)
{
    struct park *park = worker->park;

    pthread_mutex_lock(&park->lock);
    park->done[park->done_count++] = worker;
    pthread_mutex_unlock(&park->lock);
    sem_post(&park->finished);
}

static void *work(void *arg)
{
    struct park_worker *worker = arg;

    for (;;) {
        wait_for(&worker->go);
        if (worker->job == NULL)
            return NULL;
        segzstd_job_run(worker->job);
        report_done(worker);
    }
}

void park_start(struct park *park, unsigned workers)
{
    memset(park, 0, sizeof(*park));
    park->count = workers;
    sem_init(&park->finished, 0, 0);
    pthread_mutex_init(&park->lock, NULL);
    for (unsigned i = 0; i < workers; i++) {
        struct park_worker *worker = &park->workers[i];

        worker->park = park;
        sem_init(&worker->go, 0, 0);
        if (pthread_create(&worker->thread, NULL, work, worker) != 0)
            abort();
    }
}

void park_stop(struct park *park)
{
    for (unsigned i = 0; i < park->count; i++) {
        struct park_worker *worker = &park->workers[i];

        worker->job = NULL;
        sem_post(&worker->go);
        pthread_join(worker->thread, NULL);
        sem_destroy(&worker->go);
    }
    sem_destroy(&park->finished);
    pthread_mutex_destroy(&park->lock);
}

bool park_give(struct park *park, segzstd_job *job, unsigned *worker)
{
    for (unsigned i = 0; i < park->count; i++) {
        if (!park->workers[i].busy) {
            park->workers[i].busy = true;
            park->workers[i].job = job;
            *worker = i;
            return true;
        }
    }
    return false;
}

void park_release(struct park *park, unsigned worker)
{
    sem_post(&park->workers[worker].go);
}

segzstd_job *park_wait(struct park *park)
{
    struct park_worker *worker;

    wait_for(&park->finished);
    pthread_mutex_lock(&park->lock);
    worker = park->done[0];
    park->done_count--;
    memmove(&park->done[0], &park->done[1],
            park->done_count * sizeof(park->done[0]));
    pthread_mutex_unlock(&park->lock);
    worker->busy = false;
    return worker->job;
}

void gate_init(struct park_gate *gate)
{
    sem_init(&gate->reached, 0, 0);
    sem_init(&gate->open, 0, 0);
}

void gate_destroy(struct park_gate *gate)
{
    sem_destroy(&gate->reached);
    sem_destroy(&gate->open);
}

void gate_pass(struct park_gate *gate)
{
    sem_post(&gate->reached);
    wait_for(&gate->open);
}

void gate_wait(struct park_gate *gate)
{
    wait_for(&gate->reached);
}

void gate_open(struct park_gate *gate)
{
    sem_post(&gate->open);
}
