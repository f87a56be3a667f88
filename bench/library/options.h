/*
 * options.h - command line of the parts that run engines on files.
 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine.h"

#define OPTIONS_LEVELS_MAX 32
#define OPTIONS_ENGINES_MAX 32
#define OPTIONS_SIZES_MAX 32

struct options {
    const struct engine_table *table;
    int levels[OPTIONS_LEVELS_MAX];
    size_t level_count;
    const struct engine *chosen[OPTIONS_ENGINES_MAX];
    size_t chosen_count;
    size_t sizes[OPTIONS_SIZES_MAX]; /* of the contents, cut out of files */
    size_t size_count;               /* 0: whole files */
    size_t rounds_min;
    size_t rounds_max;
    double seconds;   /* no new round of a cell after these */
    double sample_ms; /* short compressions are repeated up to this */
    size_t overlap_bytes;
    bool no_huge_pages;
    const char *json;     /* file to write, or NULL */
    const char *markdown; /* file to write, or NULL */
    char **files;
    size_t file_count;
};

/* The engines, and what is not said, are those of `table`. False after --help or
 * a wrong argument, with *exit_code set. */
bool options_parse(struct options *options, const struct engine_table *table,
                   int argc, char **argv, int *exit_code);

/* "1,3,9" to numbers. False if that is not what it is, or too many. */
bool parse_levels(const char *text, int *levels, size_t max, size_t *count);

/* A whole number from `min` to `max`; false for anything else. */
bool parse_number(const char *text, unsigned long min, unsigned long max,
                  unsigned long *number);

#endif /* BENCH_OPTIONS_H */
