/*
 * bench.c - the loop: all engines in turn, round after round, on one content at
 * one level.
 *
 * Every engine is first run once to warm up, its frame decoded and compared.
 * Then come rounds; in each one all engines run once, in an order that is
 * shuffled anew, so that what disturbs the machine for a while hits all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "commands.h"
#include "engine.h"
#include "file.h"
#include "goals.h"
#include "measure.h"
#include "options.h"
#include "report.h"

/* A sample of a 2 KB file is still some milliseconds long, which clock and
 * scheduler can be trusted with, but never more compressions than this. */
#define REPEATS_MAX 100000

/* An engine in a cell. */
struct contender {
    const struct engine *engine;
    void *state; /* NULL: cannot run here */
    size_t repeats;
    struct series wall_ns;
    struct series cpu_ns;
    struct series size;
    struct series faults;
};

/* One content at one level. */
struct cell {
    const struct options *options;
    const struct file *file;
    int level;
    struct sink sink; /* shared by all, since they run one after another */
    struct contender contenders[OPTIONS_ENGINES_MAX];
    size_t count;
    uint64_t random; /* state of the shuffle */
};

/* Fixed seed, so that two runs have the same order. */
#define SHUFFLE_SEED 0x9e3779b97f4a7c15u

/* xorshift64: good enough to shuffle a dozen engines. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void shuffle(size_t *order, size_t count, uint64_t *random)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = (size_t)(next_random(random) % i);
        size_t kept = order[i - 1];

        order[i - 1] = order[other];
        order[other] = kept;
    }
}

static bool compress(struct cell *cell, struct contender *contender)
{
    const struct file *file = cell->file;

    cell->sink.len = 0;
    return contender->engine->compress(contender->state, file->bytes, file->len,
                                       &cell->sink);
}

/* One run whose frame is decoded and compared. */
static bool verify(struct cell *cell, struct contender *contender)
{
    const struct file *file = cell->file;
    bool good;

    cell->sink.keep = true;
    good = compress(cell, contender) && cell->sink.len <= cell->sink.capacity &&
           frame_decodes_to(cell->sink.dst, cell->sink.len, file->bytes,
                            file->len);
    cell->sink.keep = false;
    if (!good) {
        fprintf(stderr, "%s: level %d: %s made no good frame\n", file->name,
                cell->level, contender->engine->name);
    }
    return good;
}

/* Finds how often a round repeats the compression, by one more run. */
static bool calibrate(struct cell *cell, struct contender *contender)
{
    struct reading start = measure_now();
    double repeats;

    if (!compress(cell, contender))
        return false;
    repeats =
        cell->options->sample_ms * 1e6 / (measure_since(&start).wall_ns + 1);
    contender->repeats = 1;
    if (repeats > REPEATS_MAX)
        contender->repeats = REPEATS_MAX;
    else if (repeats > 1)
        contender->repeats = (size_t)repeats;
    return true;
}

static bool prepare(struct cell *cell, struct contender *contender)
{
    bool optional = (contender->engine->traits & ENGINE_OPTIONAL) != 0;
    struct engine_config config = {
        .level = cell->level,
        .bytes = cell->file->len,
        .overlap_bytes = cell->options->overlap_bytes,
        .no_huge_pages = cell->options->no_huge_pages,
    };

    contender->state = contender->engine->init(contender->engine, &config);
    if (contender->state == NULL) {
        fprintf(stderr, "%s: level %d: %s cannot run%s\n", cell->file->name,
                cell->level, contender->engine->name,
                optional ? ", left out" : "");
        return optional;
    }
    return verify(cell, contender) && calibrate(cell, contender);
}

static bool sample(struct cell *cell, struct contender *contender)
{
    double repeats = (double)contender->repeats;
    struct reading start = measure_now();
    struct reading spent;

    for (size_t i = 0; i < contender->repeats; i++) {
        if (!compress(cell, contender))
            return false;
    }
    spent = measure_since(&start);
    return series_add(&contender->wall_ns, spent.wall_ns / repeats) &&
           series_add(&contender->cpu_ns, spent.cpu_ns / repeats) &&
           series_add(&contender->faults, spent.faults / repeats) &&
           series_add(&contender->size, (double)cell->sink.len);
}

static bool run_round(struct cell *cell)
{
    size_t order[OPTIONS_ENGINES_MAX];

    for (size_t i = 0; i < cell->count; i++)
        order[i] = i;
    shuffle(order, cell->count, &cell->random);
    for (size_t i = 0; i < cell->count; i++) {
        struct contender *contender = &cell->contenders[order[i]];

        if (contender->state != NULL && !sample(cell, contender))
            return false;
    }
    return true;
}

static bool run_rounds(struct cell *cell)
{
    const struct options *options = cell->options;
    struct reading start = measure_now();

    for (size_t round = 0; round < options->rounds_max; round++) {
        if (round >= options->rounds_min &&
            measure_since(&start).wall_ns > options->seconds * 1e9) {
            break;
        }
        if (!run_round(cell))
            return false;
    }
    return true;
}

static void summarise(const struct cell *cell,
                      const struct contender *contender, struct result *result)
{
    const struct contender *base = &cell->contenders[0];

    memset(result, 0, sizeof(*result));
    result->file = cell->file->name;
    result->bytes = cell->file->len;
    result->level = cell->level;
    result->engine = contender->engine;
    result->rounds = contender->wall_ns.count;
    result->repeats = contender->repeats;
    result->wall_ns = series_spread(&contender->wall_ns);
    result->cpu_ns = series_spread(&contender->cpu_ns);
    result->size = series_spread(&contender->size);
    result->faults = series_spread(&contender->faults);
    contender->engine->usage(contender->state, &result->usage);
    result->wall_ratio =
        ratio(result->wall_ns.median, series_median(&base->wall_ns));
    result->cpu_ratio =
        ratio(result->cpu_ns.median, series_median(&base->cpu_ns));
    result->size_ratio = ratio(result->size.median, series_median(&base->size));
    result->wall_round_ratio =
        series_median_ratio(&contender->wall_ns, &base->wall_ns);
    result->cpu_round_ratio =
        series_median_ratio(&contender->cpu_ns, &base->cpu_ns);
}

static bool report_cell(const struct cell *cell, struct report *report)
{
    size_t first = report->count;
    struct result result;

    for (size_t i = 0; i < cell->count; i++) {
        if (cell->contenders[i].state == NULL)
            continue;
        summarise(cell, &cell->contenders[i], &result);
        if (!report_add(report, &result))
            return false;
    }
    if (report->count > first)
        report_print_cell(stdout, report, first);
    return true;
}

static void release(struct cell *cell)
{
    for (size_t i = 0; i < cell->count; i++) {
        struct contender *contender = &cell->contenders[i];

        if (contender->state != NULL)
            contender->engine->fini(contender->state);
        series_free(&contender->wall_ns);
        series_free(&contender->cpu_ns);
        series_free(&contender->size);
        series_free(&contender->faults);
    }
    free(cell->sink.dst);
}

static bool run_cell(const struct options *options, const struct file *file,
                     int level, struct report *report)
{
    struct cell cell = {.options = options, .file = file, .level = level};
    bool good;

    cell.random = SHUFFLE_SEED;
    cell.count = options->chosen_count;
    /* Room for the block headers of segments beyond libzstd's bound. */
    cell.sink.capacity = ZSTD_compressBound(file->len) + file->len / 64 + 4096;
    cell.sink.dst = malloc(cell.sink.capacity);
    good = cell.sink.dst != NULL;
    if (good)
        memset(cell.sink.dst, 0, cell.sink.capacity);
    for (size_t i = 0; i < cell.count; i++)
        cell.contenders[i].engine = options->chosen[i];
    for (size_t i = 0; good && i < cell.count; i++)
        good = prepare(&cell, &cell.contenders[i]);
    good = good && run_rounds(&cell) && report_cell(&cell, report);
    release(&cell);
    return good;
}

static bool run_levels(const struct options *options, const struct file *file,
                       struct report *report)
{
    bool good = true;

    for (size_t i = 0; good && i < options->level_count; i++)
        good = run_cell(options, file, options->levels[i], report);
    return good;
}

/* The same on the first `size` bytes. */
static bool run_start(const struct options *options, const struct file *file,
                      size_t size, struct report *report)
{
    struct file start = *file;

    if (size > file->len) {
        fprintf(stderr, "%s: has %zu bytes, not the %zu asked for\n",
                file->name, file->len, size);
        return false;
    }
    start.len = size;
    return run_levels(options, &start, report);
}

static bool run_file(const struct options *options, const char *path,
                     struct report *report)
{
    struct file file;
    bool good = true;

    if (!file_load(&file, path))
        return false;
    if (options->size_count == 0)
        good = run_levels(options, &file, report);
    for (size_t i = 0; good && i < options->size_count; i++)
        good = run_start(options, &file, options->sizes[i], report);
    file_free(&file);
    return good;
}

static bool write_file(const char *path, const struct report *report,
                       void (*write)(FILE *out, const struct report *report))
{
    FILE *out;

    if (path == NULL)
        return true;
    out = fopen(path, "w");
    if (out == NULL) {
        perror(path);
        return false;
    }
    write(out, report);
    if (fclose(out) != 0) {
        perror(path);
        return false;
    }
    return true;
}

static int run_table(const struct engine_table *table, int argc, char **argv)
{
    struct options options;
    struct report report = {.table = table};
    int exit_code;
    bool good = true;

    if (!options_parse(&options, table, argc, argv, &exit_code))
        return exit_code;
    machine_look(&report.machine);
    report_print_machine(stdout, &report.machine);
    for (size_t i = 0; good && i < options.file_count; i++)
        good = run_file(&options, options.files[i], &report);
    if (table->has_goals)
        goals_print(stdout, &report);
    good = write_file(options.json, &report, report_write_json) && good;
    good = write_file(options.markdown, &report, report_write_markdown) && good;
    report_free(&report);
    return good ? 0 : 1;
}

int bench_main(int argc, char **argv)
{
    return run_table(&engines_of_files, argc, argv);
}

int responses_main(int argc, char **argv)
{
    return run_table(&engines_of_responses, argc, argv);
}

int machine_main(int argc, char **argv)
{
    struct machine machine;

    if (argc != 1) {
        fprintf(stderr, "%s: takes no argument\n", argv[0]);
        return 2;
    }
    machine_look(&machine);
    report_print_machine(stdout, &machine);
    return 0;
}
