/*
 * progress.h - the line that is rewritten on a terminal while a file is being
 * compressed, and sizes for people.
 */
#ifndef SEGZSTD_TOOL_PROGRESS_H
#define SEGZSTD_TOOL_PROGRESS_H

#include "posix.h"

#define TEXT_SIZE_MAX 24

/* "97.7 KiB", in three digits. Returns text. */
const char *text_size(char text[TEXT_SIZE_MAX], uint64_t bytes);

/* "0:08", or with hours "1:02:03". Returns text. */
const char *text_seconds(char text[TEXT_SIZE_MAX], uint64_t seconds);

/* How far it is. */
struct progress_state {
    uint64_t total; /* SEGZSTD_SIZE_UNKNOWN if so */
    uint64_t in;    /* content bytes done */
    uint64_t out;   /* frame bytes made of these */
    uint64_t elapsed_ns;
};

/* The line without the file's name: what is done of the total, the ratio, the
 * speed and the time left. Fits into `max` bytes, 80 at least. */
void progress_text(char *text, size_t max, const struct progress_state *state);

struct progress {
    bool enabled;
    const char *name; /* borrowed */
    uint64_t start_ns;
    uint64_t next_ns; /* not before this is it written again */
    size_t width;     /* characters on the terminal now */
};

/* Nanoseconds of a clock that does not go back. */
uint64_t progress_now_ns(void);

/* Begins a file; nothing is shown yet, so that short ones do not flicker. */
void progress_begin(struct progress *progress, bool enabled, const char *name);

/* Milliseconds until the line is due; -1 if it never is. For poll(). */
int progress_due_ms(const struct progress *progress, uint64_t now_ns);

/* Writes the line, if it is due. */
void progress_update(struct progress *progress, uint64_t now_ns, uint64_t total,
                     uint64_t in, uint64_t out);

/* Takes the line away. */
void progress_end(struct progress *progress);

#endif /* SEGZSTD_TOOL_PROGRESS_H */
