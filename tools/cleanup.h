/*
 * cleanup.h - an output file that is not complete does not survive the process,
 * if a signal ends it.
 */
#ifndef SEGZSTD_TOOL_CLEANUP_H
#define SEGZSTD_TOOL_CLEANUP_H

#include "posix.h"

/* Once, before any thread is started. Signals that were ignored stay so. */
void cleanup_init(void);

/* Between these two calls the signals of cleanup_init() wait. A file is made,
 * renamed and removed there, together with the call of cleanup_guard(). */
void cleanup_hold_signals(void);
void cleanup_let_signals(void);

/* A signal removes this file. Borrows path, until the next call; NULL: none. */
void cleanup_guard(const char *path);

/* A signal ends the line on stderr first. */
void cleanup_line_open(bool open);

#endif /* SEGZSTD_TOOL_CLEANUP_H */
