/*
 * matrix.h - all engines at all levels on one page: medians over the files.
 */
#ifndef BENCH_MATRIX_H
#define BENCH_MATRIX_H

#include <stdio.h>

#include "report.h"

/* Writes tables of wall time, CPU, size and encoder memory in Markdown, a line
 * for each engine and a column for each level. */
void matrix_write_markdown(FILE *out, const struct report *report);

#endif /* BENCH_MATRIX_H */
