/*
 * report.h - the results of a run as text and as JSON.
 */
#ifndef LOAD_REPORT_H
#define LOAD_REPORT_H

#include <stdio.h>

#include "args.h"
#include "events.h"
#include "stream.h"
#include "worker.h"

struct results {
    const struct args *args;
    struct stream *streams; /* STREAMS of them */
    struct events *events;
    double seconds;          /* counted, to the last answer */
    double generator_user_s; /* our own CPU time in these */
    double generator_system_s;
    const struct worker *worker; /* what it used in these; NULL: not looked */
    uint64_t first_rss_bytes;    /* its memory before any connection */
};

void report_text(FILE *out, const struct results *results);
void report_json(FILE *out, const struct results *results);

#endif /* LOAD_REPORT_H */
