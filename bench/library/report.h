/*
 * report.h - all results of a run, and the ways to show them: aligned text for
 * a terminal, Markdown for people, JSON for programs.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "engine.h"
#include "machine.h"
#include "stats.h"

/* One engine at one level on one file. */
struct result {
    const char *file;
    size_t bytes;
    int level;
    const struct engine *engine;
    size_t rounds;
    size_t repeats; /* compressions in one round; times are of one */
    struct spread wall_ns;
    struct spread cpu_ns;
    struct spread size; /* of the frame */
    struct spread faults;
    struct engine_usage usage;

    /* Against the first engine of the cell: ratios of medians, and medians of
     * the ratios within each round. */
    double wall_ratio;
    double cpu_ratio;
    double size_ratio;
    double wall_round_ratio;
    double cpu_round_ratio;
};

/* Results of a cell (one content, one level) follow each other. */
struct report {
    const struct engine_table *table;
    struct machine machine;
    struct result *results;
    size_t count;
    size_t capacity;
};

/* False without memory. */
bool report_add(struct report *report, const struct result *result);
void report_free(struct report *report);

/* NULL if that was not measured. */
const struct result *report_find(const struct report *report, const char *file,
                                 int level, const char *engine);

void report_print_machine(FILE *out, const struct machine *machine);

/* The results from index `first` on, which are of one cell. */
void report_print_cell(FILE *out, const struct report *report, size_t first);

void report_write_json(FILE *out, const struct report *report);
void report_write_markdown(FILE *out, const struct report *report);

/* A JSON string, quoted. */
void write_json_string(FILE *out, const char *text);

#endif /* BENCH_REPORT_H */
