/*
 * goals.c - see goals.h. A goal is a ratio of two engines' medians, on files of
 * some sizes at some levels. It holds at a level if the median over the files
 * is within it; the worst single cell is shown beside it.
 */
#include "goals.h"

#include <string.h>

#define LEVELS_MAX 32

enum metric { WALL, CPU, SIZE };

struct goal {
    const char *what;
    const char *engine;
    const char *base;
    enum metric metric;
    double bytes_min;
    double bytes_max;
    int level_min;
    int level_max;
    double at_most;
};

#define MB 1e6

/* The 16 MB file is a little over that. */
#define MB16 16.8e6

static const struct goal goals[] = {
    {"CPU, no idle worker", "adaptive-1", "oneshot", CPU, 1 * MB, MB16, 1, 8,
     1.03},
    {"CPU, no idle worker, huge pages", "adaptive-1", "oneshot", CPU, 1 * MB,
     MB16, 9, 19, 0.97},
    {"CPU, owner's thread", "adaptive-0", "oneshot", CPU, 1 * MB, MB16, 1, 8,
     1.03},
    {"CPU, owner's thread, huge pages", "adaptive-0", "oneshot", CPU, 1 * MB,
     MB16, 9, 19, 0.97},
    {"wall, 2 threads", "adaptive-2", "oneshot", WALL, 4 * MB, MB16, 3, 19,
     0.60},
    {"wall against libzstd's threads", "adaptive-2", "zstdmt-2", WALL, 1 * MB,
     MB16, 9, 19, 0.80},
    {"CPU against libzstd's threads", "adaptive-2", "zstdmt-2", CPU, 1 * MB,
     MB16, 9, 19, 1.00},
    {"size against libzstd's threads", "adaptive-2", "zstdmt-2", SIZE, 1 * MB,
     MB16, 9, 19, 1.01},
    {"wall against libzstd's 1 MiB jobs", "adaptive-2", "zstdmt-2-1m", WALL,
     1 * MB, MB16, 9, 19, 0.80},
    {"CPU against libzstd's 1 MiB jobs", "adaptive-2", "zstdmt-2-1m", CPU,
     1 * MB, MB16, 9, 19, 1.00},
    {"size against libzstd's 1 MiB jobs", "adaptive-2", "zstdmt-2-1m", SIZE,
     1 * MB, MB16, 9, 19, 1.01},
    {"size, 2 threads", "adaptive-2", "oneshot", SIZE, 4 * MB, MB16, 1, 8,
     1.005},
    {"size, 2 threads", "adaptive-2", "oneshot", SIZE, 4 * MB, MB16, 9, 14,
     1.01},
    {"size, 2 threads", "adaptive-2", "oneshot", SIZE, 4 * MB, MB16, 15, 19,
     1.02},
    {"CPU, fixed 1 MiB segments", "fixed-1", "oneshot", CPU, 1 * MB, MB16, 3,
     12, 1.10},
    {"CPU, fixed 1 MiB, owner's thread", "fixed-0", "oneshot", CPU, 1 * MB,
     MB16, 3, 12, 1.10},
};

#define GOAL_COUNT (sizeof(goals) / sizeof(goals[0]))

/* One level's part of a goal. */
struct level_part {
    int level;
    double median;
};

struct verdict {
    size_t cells;
    double median;
    double worst;
    const struct result *worst_cell;
    struct level_part levels[LEVELS_MAX];
    size_t level_count;
    size_t levels_met;
};

static double metric_of(const struct result *r, enum metric metric)
{
    if (metric == WALL)
        return r->wall_ns.median;
    return metric == CPU ? r->cpu_ns.median : r->size.median;
}

/* The ratio of the goal in the cell of `r`; 0 if `r` is not its engine's, or
 * the other engine did not run. */
static double cell_ratio(const struct goal *goal, const struct report *report,
                         const struct result *r)
{
    double bytes = (double)r->bytes;
    const struct result *base;

    if (strcmp(r->engine->name, goal->engine) != 0 ||
        r->level < goal->level_min || r->level > goal->level_max ||
        bytes < goal->bytes_min || bytes > goal->bytes_max) {
        return 0;
    }
    base = report_find(report, r->file, r->level, goal->base);
    if (base == NULL)
        return 0;
    return ratio(metric_of(r, goal->metric), metric_of(base, goal->metric));
}

static void judge_level(struct verdict *verdict, const struct goal *goal,
                        const struct report *report, int level)
{
    struct series ratios = {0};
    struct level_part *part;

    for (size_t i = 0; i < report->count; i++) {
        double value = cell_ratio(goal, report, &report->results[i]);

        if (report->results[i].level == level && value > 0)
            series_add(&ratios, value);
    }
    if (ratios.count > 0 && verdict->level_count < LEVELS_MAX) {
        part = &verdict->levels[verdict->level_count++];
        part->level = level;
        part->median = series_median(&ratios);
        if (part->median <= goal->at_most)
            verdict->levels_met++;
    }
    series_free(&ratios);
}

static void judge(struct verdict *verdict, const struct goal *goal,
                  const struct report *report)
{
    struct series ratios = {0};

    memset(verdict, 0, sizeof(*verdict));
    for (size_t i = 0; i < report->count; i++) {
        double value = cell_ratio(goal, report, &report->results[i]);

        if (value <= 0)
            continue;
        series_add(&ratios, value);
        if (value > verdict->worst) {
            verdict->worst = value;
            verdict->worst_cell = &report->results[i];
        }
    }
    verdict->cells = ratios.count;
    verdict->median = series_median(&ratios);
    for (int level = goal->level_min; level <= goal->level_max; level++)
        judge_level(verdict, goal, report, level);
    series_free(&ratios);
}

static void write_levels(FILE *out, const struct verdict *verdict)
{
    for (size_t i = 0; i < verdict->level_count; i++) {
        const struct level_part *part = &verdict->levels[i];

        fprintf(out, "%s%d: %.3f", i > 0 ? ", " : "", part->level,
                part->median);
    }
}

static void print_goal(FILE *out, const struct goal *goal,
                       const struct verdict *verdict)
{
    fprintf(out, "%-34s %2d-%-2d <= %.3f  ", goal->what, goal->level_min,
            goal->level_max, goal->at_most);
    if (verdict->cells == 0) {
        fputs("not measured\n", out);
        return;
    }
    fprintf(out, "%.3f  met at %zu of %zu levels (", verdict->median,
            verdict->levels_met, verdict->level_count);
    write_levels(out, verdict);
    fprintf(out, "), worst %.3f %s level %d\n", verdict->worst,
            verdict->worst_cell->file, verdict->worst_cell->level);
}

void goals_print(FILE *out, const struct report *report)
{
    struct verdict verdict;

    fputs("goals: median over files and levels, at each level, worst cell\n",
          out);
    for (size_t i = 0; i < GOAL_COUNT; i++) {
        judge(&verdict, &goals[i], report);
        print_goal(out, &goals[i], &verdict);
    }
}

static void write_markdown_goal(FILE *out, const struct goal *goal,
                                const struct verdict *verdict)
{
    fprintf(out, "| %s | `%s` / `%s` | %.0f-%.0f MB, levels %d-%d | %.3f | ",
            goal->what, goal->engine, goal->base, goal->bytes_min / MB,
            goal->bytes_max / MB - 0.5, goal->level_min, goal->level_max,
            goal->at_most);
    if (verdict->cells == 0) {
        fputs("not measured | | | |\n", out);
        return;
    }
    fprintf(out, "%.3f | ", verdict->median);
    write_levels(out, verdict);
    fprintf(out, " | %.3f (%s, level %d) | %zu of %zu |\n", verdict->worst,
            verdict->worst_cell->file, verdict->worst_cell->level,
            verdict->levels_met, verdict->level_count);
}

void goals_write_markdown(FILE *out, const struct report *report)
{
    struct verdict verdict;

    fputs("## Goals\n\n"
          "A goal holds at a level if the median over the files does.\n\n"
          "| what | ratio of medians | where | at most | median |"
          " by level, median over files | worst | levels met |\n"
          "|:--|:--|:--|--:|--:|:--|:--|--:|\n",
          out);
    for (size_t i = 0; i < GOAL_COUNT; i++) {
        judge(&verdict, &goals[i], report);
        write_markdown_goal(out, &goals[i], &verdict);
    }
}

static void write_json_goal(FILE *out, const struct goal *goal,
                            const struct verdict *verdict)
{
    fprintf(out, "{\"what\":\"%s\",\"engine\":\"%s\",\"base\":\"%s\"",
            goal->what, goal->engine, goal->base);
    fprintf(out, ",\"level_min\":%d,\"level_max\":%d,\"at_most\":%.3f",
            goal->level_min, goal->level_max, goal->at_most);
    fprintf(out, ",\"cells\":%zu,\"median\":%.5f,\"levels\":{", verdict->cells,
            verdict->median);
    for (size_t i = 0; i < verdict->level_count; i++) {
        fprintf(out, "%s\"%d\":%.5f", i > 0 ? "," : "",
                verdict->levels[i].level, verdict->levels[i].median);
    }
    fprintf(out, "},\"levels_met\":%zu,\"worst\":%.5f", verdict->levels_met,
            verdict->worst);
    if (verdict->worst_cell != NULL) {
        fputs(",\"worst_file\":", out);
        write_json_string(out, verdict->worst_cell->file);
        fprintf(out, ",\"worst_level\":%d", verdict->worst_cell->level);
    }
    fputs("}", out);
}

void goals_write_json(FILE *out, const struct report *report)
{
    struct verdict verdict;

    fputs("[\n", out);
    for (size_t i = 0; i < GOAL_COUNT; i++) {
        judge(&verdict, &goals[i], report);
        write_json_goal(out, &goals[i], &verdict);
        fputs(i + 1 < GOAL_COUNT ? ",\n" : "\n]", out);
    }
}
