/*
 * drive.h - a host with one thread, for tests: pushes in pieces, takes jobs,
 * runs and completes them in some order, collects the output, and checks at
 * each step what must always hold. With an executor its threads run the jobs.
 */
#ifndef SUPPORT_DRIVE_H
#define SUPPORT_DRIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "segzstd.h"
#include "support/data.h"
#include "support/oracle.h"

enum { DRIVE_JOBS_MAX = 64 };

/* Which of the jobs that were taken is run and completed next. */
enum drive_order { DRIVE_OLDEST, DRIVE_NEWEST, DRIVE_ANY };

struct drive {
    segzstd_stream *stream;

    /* How to do it; a test may change this at any time. */
    enum drive_order order;
    unsigned jobs_held; /* take so many jobs, if there are, before one is run;
                          * 0: all that there are */
    size_t push_bytes;  /* bytes of one push; 0: random, 1 B to 64 KiB */
    size_t read_bytes;  /* most output consumed at once; 0: all */
    struct rng rng;     /* decides all that is random */
    segzstd_executor *executor; /* borrowed; NULL: jobs run in the driver */

    /* Called when the library says SEGZSTD_ERR_NOMEM: true to go on, false to
     * return it. NULL: return it. */
    bool (*on_nomem)(void *arg);
    void *nomem_arg;

    /* A client that sees each byte at once; NULL: none. */
    struct oracle_live *live;

    /* What came of it. */
    unsigned char *out; /* the frame so far */
    size_t out_len;
    size_t out_cap;
    uint64_t taken;     /* content bytes that the stream took */
    bool ended;         /* SEGZSTD_END took effect */
    bool discard;       /* throw the output away, count it in out_len only */
    unsigned nomems;    /* how often memory was refused */
    unsigned refs_lent; /* ranges and readers given to the stream */
    unsigned refs_back; /* of these, released */
    size_t ready_peak;  /* most output that waited */
    unsigned jobs_peak; /* most jobs held */
    const char *fault;  /* the first promise that was broken, or NULL */

    segzstd_job *jobs[DRIVE_JOBS_MAX]; /* taken; in the order of taking */
    unsigned job_count;
};

/* Holds all jobs there are, oldest first, pushes and reads all at once. The
 * stream stays the caller's. */
void drive_init(struct drive *d, segzstd_stream *stream, uint64_t seed);

/* Frees the output. No job may be held. */
void drive_free(struct drive *d);

/* One push; *taken may be less than `len`. */
int drive_push_once(struct drive *d, const void *src, size_t len, segzstd_op op,
                    size_t *taken);

/* Pushes all, working in between when the stream is full. Returns 0 or the
 * error that ended it; d->taken says how far it came. */
int drive_push(struct drive *d, const void *src, size_t len, segzstd_op op);

/* The same by reference, each piece in memory of its own that is scribbled
 * over and freed as soon as it is released. */
int drive_push_ref(struct drive *d, const void *src, size_t len, segzstd_op op);

/* A source for segzstd_stream_push_reader(). It must outlive the stream. */
struct drive_source {
    const unsigned char *content;
    uint64_t len;       /* of the content; a read behind it gives 0 */
    size_t read_max;    /* most bytes that one read gives; 0: no limit */
    uint64_t fail_from; /* first byte that cannot be read; 0: all can */
    struct drive *drive;
};

int64_t drive_read_source(void *arg, uint64_t offset, void *dst, size_t len);
void drive_release_source(void *arg);

/* Pushes `len` bytes of the source as one reader. source->drive is set. */
int drive_push_source(struct drive *d, struct drive_source *source,
                      uint64_t len, segzstd_op op);

/* Takes jobs up to jobs_held; returns 0 or the stream's error. */
int drive_take(struct drive *d);

/* Runs and completes one job that is held; returns what complete returned. */
int drive_run_one(struct drive *d);

/* Gives a held job back that was not run. */
int drive_return_one(struct drive *d);

/* Reads output, up to read_bytes. */
void drive_read(struct drive *d);

/* Takes, runs one, reads. *moved is set if anything happened. */
int drive_step(struct drive *d, bool *moved);

/* Works until nothing more is to be done and all output is read. */
int drive_rest(struct drive *d);

/* Ends the frame without more content and works until it is done. */
int drive_end(struct drive *d);

/* After an error: completes all that is held without running it. */
void drive_give_up(struct drive *d);

#endif /* SUPPORT_DRIVE_H */
