/*
 * goals.h - what the library means to reach, held against what was measured.
 */
#ifndef BENCH_GOALS_H
#define BENCH_GOALS_H

#include <stdio.h>

#include "report.h"

/* One row per goal: measured median, by level, worst cell. A goal for which
 * nothing was measured says so. */
void goals_print(FILE *out, const struct report *report);
void goals_write_markdown(FILE *out, const struct report *report);
void goals_write_json(FILE *out, const struct report *report);

#endif /* BENCH_GOALS_H */
