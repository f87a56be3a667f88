/*
 * file.h - a file of the corpus, whole in memory.
 */
#ifndef BENCH_FILE_H
#define BENCH_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct file {
    const char *name; /* without folders; points into the path given */
    unsigned char *bytes;
    size_t len;
};

/* False if the file cannot be read; says why on stderr. */
bool file_load(struct file *file, const char *path);
void file_free(struct file *file);

/* Whether `frame` is one zstd frame of exactly the `len` bytes at `bytes`.
 * Says on stderr what is wrong. */
bool frame_decodes_to(const void *frame, size_t frame_len, const void *bytes,
                      size_t len);

#endif /* BENCH_FILE_H */
