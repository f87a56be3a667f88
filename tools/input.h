/*
 * input.h - a file to be compressed, or stdin.
 */
#ifndef SEGZSTD_TOOL_INPUT_H
#define SEGZSTD_TOOL_INPUT_H

#include "posix.h"

struct input {
    const char *name; /* for messages */
    int fd;
    struct stat stat; /* as it was opened */

    /* A regular file: its size is certain, and it is read with pread() at
     * offset `begin` and up. Everything else is read until its end. */
    bool is_regular;
    uint64_t begin;
    uint64_t size;
};

/*
 * Opens `path`, borrowed while the input is open; NULL is stdin. With `force`
 * symbolic links are followed and block devices read, and stdin may be a
 * terminal. Returns a status, after a message.
 */
int input_open(struct input *input, const char *path, bool force);

/*
 * Behind the last read: stdin goes on behind what was read, for whoever has it
 * next. False, after a message, if a regular file has more bytes now: the
 * output is a whole frame, but of a part of the input.
 */
bool input_finish(const struct input *input);

void input_close(struct input *input);

#endif /* SEGZSTD_TOOL_INPUT_H */
