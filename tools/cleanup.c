/*
 * cleanup.c - signals that end the process, and the file they remove.
 */
#include "cleanup.h"

#include <signal.h>

static const int deadly[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM};
#define DEADLY_COUNT (sizeof(deadly) / sizeof(deadly[0]))

/* Read by the handler, written with the signals held; the threads that
 * compress have all signals blocked. */
static const char *volatile guarded;
static volatile sig_atomic_t line_open;

static sigset_t mask_before; /* of cleanup_hold_signals() */

/* Calls only what is async-signal-safe. The signal that it raises again ends
 * the process when it returns. */
static void on_deadly(int number)
{
    const char *path = guarded;

    if (path != NULL)
        unlink(path);
    if (line_open && write(STDERR_FILENO, "\n", 1) != 1)
        line_open = 0; /* no matter; the result has to be looked at */
    signal(number, SIG_DFL);
    raise(number);
}

static void fill_set(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < DEADLY_COUNT; i++)
        sigaddset(set, deadly[i]);
}

void cleanup_init(void)
{
    struct sigaction action = {0}, before;

    action.sa_handler = on_deadly;
    fill_set(&action.sa_mask);
    for (size_t i = 0; i < DEADLY_COUNT; i++) {
        sigaction(deadly[i], NULL, &before);
        if (before.sa_handler != SIG_IGN)
            sigaction(deadly[i], &action, NULL);
    }
    /* A file that grows over the limit is an error of write(). */
    signal(SIGXFSZ, SIG_IGN);
}

void cleanup_hold_signals(void)
{
    sigset_t set;

    fill_set(&set);
    pthread_sigmask(SIG_BLOCK, &set, &mask_before);
}

void cleanup_let_signals(void)
{
    pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
}

void cleanup_guard(const char *path)
{
    guarded = path;
}

void cleanup_line_open(bool open)
{
    line_open = open;
}
