/*
 * worker.c - see worker.h.
 */
#define _GNU_SOURCE 1

#include "worker.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A whole small file; false if it cannot be read. */
static bool read_file(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    size_t n;

    if (file == NULL)
        return false;
    n = fread(text, 1, size - 1, file);
    text[n] = '\0';
    fclose(file);
    return n > 0;
}

/* The number after `name` in the text of a status file. */
static uint64_t number_of(const char *text, const char *name)
{
    const char *found = strstr(text, name);

    return found == NULL ? 0 : strtoull(found + strlen(name), NULL, 10);
}

static uint64_t tick_ns(void)
{
    return 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* From a stat file; the name may hold spaces and brackets. */
static bool read_stat(const char *path, struct worker_thread *thread)
{
    uint64_t user, system;
    char text[1024];
    char *open, *close;
    size_t len;

    if (!read_file(path, text, sizeof(text)))
        return false;
    open = strchr(text, '(');
    close = strrchr(text, ')');
    if (open == NULL || close == NULL ||
        sscanf(close + 1,
               " %*c %*d %*d %*d %*d %*d %*u %" SCNu64 " %*u %" SCNu64
               " %*u %" SCNu64 " %" SCNu64,
               &thread->minor_faults, &thread->major_faults, &user,
               &system) != 4) {
        errno = EPROTO;
        return false;
    }
    len = (size_t)(close - open) - 1;
    if (len > sizeof(thread->name) - 1)
        len = sizeof(thread->name) - 1;
    memcpy(thread->name, open + 1, len);
    thread->name[len] = '\0';
    thread->user_ns = user * tick_ns();
    thread->system_ns = system * tick_ns();
    return true;
}

/* False if the thread is not there (any more). */
static bool look_thread(struct worker_thread *thread, int pid, int tid)
{
    char path[64];
    char text[4096];

    memset(thread, 0, sizeof(*thread));
    thread->tid = tid;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
    if (!read_stat(path, thread))
        return false;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
    if (read_file(path, text, sizeof(text)))
        thread->cpu_ns = strtoull(text, NULL, 10);
    snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
    if (!read_file(path, text, sizeof(text)))
        return false;
    thread->voluntary = number_of(text, "\nvoluntary_ctxt_switches:");
    thread->involuntary = number_of(text, "\nnonvoluntary_ctxt_switches:");
    return true;
}

static void look_threads(struct worker *worker)
{
    struct worker_thread *threads = worker->threads;
    struct dirent *entry;
    char path[64];
    DIR *dir;

    if (look_thread(&threads[0], worker->pid, worker->pid))
        worker->thread_count = 1;
    snprintf(path, sizeof(path), "/proc/%d/task", worker->pid);
    dir = opendir(path);
    if (dir == NULL)
        return;
    while ((entry = readdir(dir)) != NULL &&
           worker->thread_count < WORKER_THREADS_MAX) {
        int tid = atoi(entry->d_name);
        if (tid > 0 && tid != worker->pid &&
            look_thread(&threads[worker->thread_count], worker->pid, tid))
            worker->thread_count++;
    }
    closedir(dir);
}

bool worker_look(struct worker *worker, int pid)
{
    char path[64];
    char text[4096];

    memset(worker, 0, sizeof(*worker));
    worker->pid = pid;
    worker->tick_ns = tick_ns();
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (!read_stat(path, &worker->process))
        return false;
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    if (!read_file(path, text, sizeof(text)))
        return false;
    worker->rss_bytes = 1024 * number_of(text, "\nVmRSS:");
    worker->peak_rss_bytes = 1024 * number_of(text, "\nVmHWM:");
    look_threads(worker);
    return worker->thread_count > 0;
}

static const struct worker_thread *find_thread(const struct worker *worker,
                                               int tid)
{
    for (unsigned i = 0; i < worker->thread_count; i++) {
        if (worker->threads[i].tid == tid)
            return &worker->threads[i];
    }
    return NULL;
}

static void subtract(struct worker_thread *after,
                     const struct worker_thread *before)
{
    after->user_ns -= before->user_ns;
    after->system_ns -= before->system_ns;
    after->cpu_ns -= before->cpu_ns;
    after->minor_faults -= before->minor_faults;
    after->major_faults -= before->major_faults;
    after->voluntary -= before->voluntary;
    after->involuntary -= before->involuntary;
}

void worker_subtract(struct worker *after, const struct worker *before)
{
    subtract(&after->process, &before->process);
    for (unsigned i = 0; i < after->thread_count; i++) {
        struct worker_thread *thread = &after->threads[i];
        const struct worker_thread *old = find_thread(before, thread->tid);
        if (old != NULL)
            subtract(thread, old);
    }
}

struct worker_thread worker_total(const struct worker *worker)
{
    struct worker_thread total = worker->process;

    for (unsigned i = 0; i < worker->thread_count; i++) {
        const struct worker_thread *thread = &worker->threads[i];
        total.cpu_ns += thread->cpu_ns;
        total.voluntary += thread->voluntary;
        total.involuntary += thread->involuntary;
    }
    return total;
}
