/*
 * hgrm.h - files with the whole distributions of samples.
 */
#ifndef LOAD_HGRM_H
#define LOAD_HGRM_H

#include "samples.h"

#define HGRM_MAX 16

struct hgrm_file {
    FILE *file;
    char path[4096];
    struct samples *samples;
};

/* All zero: none. */
struct hgrm {
    unsigned count;
    struct hgrm_file files[HGRM_MAX];
};

/* Makes the file PREFIX-STREAM-KIND.hgrm for these samples, so that a folder
 * that cannot be written is found before the run. Ends the program if so. */
void hgrm_add(struct hgrm *hgrm, const char *prefix, const char *stream,
              const char *kind, struct samples *samples);

/* Writes and closes them all. */
void hgrm_write(struct hgrm *hgrm);

#endif /* LOAD_HGRM_H */
