/*
 * output.h - the file that is written, or stdout.
 *
 * A new file gets its name at once. One that replaces another is written
 * beside it, and renamed when it is complete, so that nothing is lost if it
 * never is.
 */
#ifndef SEGZSTD_TOOL_OUTPUT_H
#define SEGZSTD_TOOL_OUTPUT_H

#include "posix.h"

struct output {
    const char *name; /* for messages; borrowed while it is open */
    int fd;
    char *path;      /* its name in the end; NULL: stdout */
    char *temporary; /* its name until then, if that is another */
    bool is_ours;    /* made by us, and removed if it is not completed */
    int write_errno; /* of the write that failed, else 0 */
};

/* The name of the compressed file beside `path`, to be freed by the caller.
 * NULL: no memory. */
char *output_name_of(const char *path);

/* Both are names of one regular file; NULL is stdin. */
bool output_is_file(const char *path, const char *other);

/*
 * Opens `path`, which is copied, or stdout where it is NULL. Asks before it
 * overwrites, unless `force`, but a file that stdout is already is written to as
 * stdout is. Never writes over the file `source` (NULL: none), nor, unless
 * `force`, to a terminal. Returns a status, after a message.
 */
int output_open(struct output *output, const char *path, bool force,
                const struct stat *source);

/* Writes pieces; returns how many bytes, or -1 and sets write_errno. */
int64_t output_write(struct output *output, const segzstd_vec *vec,
                     size_t count);

/* Completes the output, with owner, mode and times of `source` if it is not
 * NULL and the output is a file of ours. Returns a status, after a message. */
int output_complete(struct output *output, const struct stat *source);

/* Closes the output and removes it, if it is a file of ours. */
void output_drop(struct output *output);

#endif /* SEGZSTD_TOOL_OUTPUT_H */
