/*
 * matrix.c - see matrix.h.
 */
#include "matrix.h"

#include <string.h>

#define LEVELS_MAX 32
#define MIB 1048576.0

/* Below it the hop to another thread is most of the time, see small.c. */
#define BYTES_MIN 1000000

/* What one table shows of a result. */
struct aspect {
    const char *title;
    double (*of)(const struct result *result);
    int digits;
};

static double wall_of(const struct result *r)
{
    return r->wall_ratio;
}

static double cpu_of(const struct result *r)
{
    return r->cpu_ratio;
}

static double size_of(const struct result *r)
{
    return r->size_ratio;
}

static double encoders_of(const struct result *r)
{
    return (double)r->usage.encoder_bytes / MIB;
}

static const struct aspect aspects[] = {
    {"Wall time", wall_of, 2},
    {"CPU", cpu_of, 2},
    {"Size", size_of, 3},
    {"Encoders, MiB", encoders_of, 1},
};

#define ASPECT_COUNT (sizeof(aspects) / sizeof(aspects[0]))

static bool counts(const struct result *r)
{
    return r->bytes >= BYTES_MIN;
}

/* The levels that were measured, each once, in that order. */
static size_t find_levels(const struct report *report, int *levels)
{
    size_t count = 0;

    for (size_t i = 0; i < report->count && count < LEVELS_MAX; i++) {
        const struct result *r = &report->results[i];
        bool known = false;

        for (size_t j = 0; j < count; j++)
            known = known || levels[j] == r->level;
        if (counts(r) && !known)
            levels[count++] = r->level;
    }
    return count;
}

static void write_cell(FILE *out, const struct report *report,
                       const struct aspect *aspect, const struct engine *engine,
                       int level)
{
    struct series values = {0};

    for (size_t i = 0; i < report->count; i++) {
        const struct result *r = &report->results[i];

        if (counts(r) && r->engine == engine && r->level == level)
            series_add(&values, aspect->of(r));
    }
    if (values.count > 0)
        fprintf(out, " %.*f |", aspect->digits, series_median(&values));
    else
        fputs(" |", out);
    series_free(&values);
}

static bool was_measured(const struct report *report,
                         const struct engine *engine)
{
    for (size_t i = 0; i < report->count; i++) {
        if (counts(&report->results[i]) &&
            report->results[i].engine == engine) {
            return true;
        }
    }
    return false;
}

static void write_aspect(FILE *out, const struct report *report,
                         const struct aspect *aspect, const int *levels,
                         size_t level_count)
{
    fprintf(out, "\n| %s |", aspect->title);
    for (size_t i = 0; i < level_count; i++)
        fprintf(out, " %d |", levels[i]);
    fputs("\n|:--|", out);
    for (size_t i = 0; i < level_count; i++)
        fputs("--:|", out);
    fputs("\n", out);
    for (size_t i = 0; i < report->table->count; i++) {
        const struct engine *engine = &report->table->engines[i];

        if (!was_measured(report, engine))
            continue;
        fprintf(out, "| %s |", engine->name);
        for (size_t j = 0; j < level_count; j++)
            write_cell(out, report, aspect, engine, levels[j]);
        fputs("\n", out);
    }
}

void matrix_write_markdown(FILE *out, const struct report *report)
{
    int levels[LEVELS_MAX];
    size_t count = find_levels(report, levels);

    fprintf(out,
            "\n## By level\n\nMedians over the files of 1 MB and more; "
            "times and sizes as ratios to `%s`.\n",
            report->table->engines[0].name);
    for (size_t i = 0; i < ASPECT_COUNT && count > 0; i++)
        write_aspect(out, report, &aspects[i], levels, count);
}
