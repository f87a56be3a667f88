/*
 * cases.h - work of a fixed amount whose instructions are counted: one thread,
 * no clock that decides anything, the same content each time.
 */
#ifndef CASES_CASES_H
#define CASES_CASES_H

#include <stdbool.h>
#include <stddef.h>

#include "segzstd.h"

/* Of a case, for its `traits`. */
enum {
    CASE_FLUSH = 1,    /* each piece is flushed */
    CASE_REST = 2,     /* the stream is put to rest after each piece */
    CASE_BORROW = 4,   /* pieces are pushed by reference */
    CASE_READER = 8,   /* jobs read the pieces by themselves */
    CASE_STORE = 16,   /* what waits is stored: no job */
    CASE_DICT = 32,    /* with a dictionary */
    CASE_CHECKSUM = 64 /* the frame ends with one */
};

struct counted_case {
    const char *name;
    const char *about;
    int level;
    size_t bytes;         /* of one content */
    size_t piece_bytes;   /* pushed at a time; 0: all */
    size_t segment_bytes; /* 0: adaptive */
    unsigned workers;     /* so many jobs are out before one is run; 0: one */
    unsigned spare;       /* encoders kept beyond the workers' */
    size_t streams;       /* open at once, each gets a piece in turn; 0: one */
    unsigned times;       /* all of it, in one count */
    unsigned traits;      /* CASE_... */
};

extern const struct counted_case cases[];
extern const size_t case_count;

/* The cache and the content of a case, and one set of its streams. */
struct counted_run;

/* NULL without memory. */
struct counted_run *case_open(const struct counted_case *counted);
void case_close(struct counted_run *run);

/* The work, once. False on any error, which is said on stderr. With `keep` the
 * frames are put together, for case_is_right(). */
bool case_run(struct counted_run *run, bool keep);

/* Whether the frames that were kept are right, and cut if they should be. */
bool case_is_right(struct counted_run *run);

/* The work as often as the case says: what is counted, see instructions.sh. */
bool case_run_counted(struct counted_run *run);

#endif /* CASES_CASES_H */
