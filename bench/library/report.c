/*
 * report.c - see report.h.
 */
#include "report.h"

#include <stdlib.h>
#include <string.h>

#include "goals.h"
#include "matrix.h"

#define MS 1e6
#define MIB 1048576.0

bool report_add(struct report *report, const struct result *result)
{
    if (report->count == report->capacity) {
        size_t capacity = report->capacity == 0 ? 64 : 2 * report->capacity;
        struct result *results =
            realloc(report->results, capacity * sizeof(*results));

        if (results == NULL)
            return false;
        report->results = results;
        report->capacity = capacity;
    }
    report->results[report->count++] = *result;
    return true;
}

void report_free(struct report *report)
{
    free(report->results);
    report->results = NULL;
    report->count = report->capacity = 0;
}

const struct result *report_find(const struct report *report, const char *file,
                                 int level, const char *engine)
{
    for (size_t i = 0; i < report->count; i++) {
        const struct result *r = &report->results[i];

        if (r->level == level && strcmp(r->file, file) == 0 &&
            strcmp(r->engine->name, engine) == 0) {
            return r;
        }
    }
    return NULL;
}

/* ------------------------------------------------------------------------ */
/* Text                                                                     */
/* ------------------------------------------------------------------------ */

void report_print_machine(FILE *out, const struct machine *machine)
{
    fprintf(out, "date        %s UTC\n", machine->date);
    fprintf(out, "CPU         %s, %ld usable\n", machine->cpu, machine->cpus);
    fprintf(out, "kernel      %s\n", machine->kernel);
    fprintf(out, "huge pages  %s\n", machine->huge_pages);
    fprintf(out, "load        %.2f\n", machine->load);
    fprintf(out, "compiler    %s\n", machine->compiler);
    fprintf(out, "libzstd     %s, %s\n", machine->zstd_version,
            machine->zstd_file);
    fprintf(out, "segzstd     %s\n\n", machine->segzstd_version);
}

/* How many bytes become one. */
static double compression(const struct result *r)
{
    return ratio((double)r->bytes, r->size.median);
}

static void print_row(FILE *out, const struct result *r,
                      const struct machine *machine)
{
    fprintf(out, "%-13s %10.4f %4.0f%% %6.3f %10.4f %4.0f%% %6.3f %10.0f",
            r->engine->name, r->wall_ns.median / MS,
            100 * spread_part(&r->wall_ns), r->wall_ratio,
            r->cpu_ns.median / MS, 100 * spread_part(&r->cpu_ns), r->cpu_ratio,
            r->size.median);
    fprintf(out, " %6.4f %6.2f %8.1f %8.1f %8.0f %5llu %s\n", r->size_ratio,
            compression(r), (double)r->usage.encoder_bytes / MIB,
            (double)r->usage.peak_bytes / MIB, r->faults.median,
            (unsigned long long)r->usage.segments, machine->zstd_file);
}

void report_print_cell(FILE *out, const struct report *report, size_t first)
{
    const struct result *r = &report->results[first];

    fprintf(out, "%s, %zu bytes, level %d, %zu rounds\n", r->file, r->bytes,
            r->level, r->rounds);
    fprintf(out,
            "%-13s %10s %5s %6s %10s %5s %6s %10s %6s %6s %8s %8s %8s %5s %s\n",
            "engine", "wall ms", "+-", "x", "CPU ms", "+-", "x", "size", "x",
            "ratio", "enc MiB", "peak MiB", "faults", "segs", "libzstd");
    for (size_t i = first; i < report->count; i++)
        print_row(out, &report->results[i], &report->machine);
    fprintf(out, "\n");
    fflush(out);
}

/* ------------------------------------------------------------------------ */
/* Markdown                                                                 */
/* ------------------------------------------------------------------------ */

static void write_markdown_machine(FILE *out, const struct machine *machine)
{
    fprintf(out,
            "%s UTC; %s, %ld CPUs usable; %s; huge pages `%s`; load %.2f "
            "at start; %s; libzstd %s (`%s`); segzstd %s.\n\n",
            machine->date, machine->cpu, machine->cpus, machine->kernel,
            machine->huge_pages, machine->load, machine->compiler,
            machine->zstd_version, machine->zstd_file,
            machine->segzstd_version);
}

static void write_markdown_row(FILE *out, const struct result *r,
                               const struct machine *machine)
{
    fprintf(out,
            "| %d | %s | %.4f | %.1f%% | %.3f | %.3f | %.4f | %.1f%% |"
            " %.3f | %.3f |",
            r->level, r->engine->name, r->wall_ns.median / MS,
            100 * spread_part(&r->wall_ns), r->wall_ratio, r->wall_round_ratio,
            r->cpu_ns.median / MS, 100 * spread_part(&r->cpu_ns), r->cpu_ratio,
            r->cpu_round_ratio);
    fprintf(out, " %.0f | %.4f | %.2f | %.1f | %.1f | %.0f | %llu | %zu |",
            r->size.median, r->size_ratio, compression(r),
            (double)r->usage.encoder_bytes / MIB,
            (double)r->usage.peak_bytes / MIB, r->faults.median,
            (unsigned long long)r->usage.segments, r->rounds);
    fprintf(out, " `%s` |\n", machine->zstd_file);
}

static void write_markdown_file(FILE *out, const struct result *r)
{
    fprintf(out, "\n### %s, %zu bytes\n\n", r->file, r->bytes);
    fprintf(out, "| level | engine | wall ms | +- | x | x in round | CPU ms |"
                 " +- | x | x in round | size | x | ratio | encoder MiB |"
                 " peak MiB | faults | segments | rounds | libzstd |\n"
                 "|--:|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
                 "--:|--:|--:|--:|:--|\n");
}

static void write_markdown_engines(FILE *out, const struct engine_table *table)
{
    fprintf(out, "| engine | what |\n|:--|:--|\n");
    for (size_t i = 0; i < table->count; i++) {
        fprintf(out, "| %s | %s |\n", table->engines[i].name,
                table->engines[i].about);
    }
    fprintf(out,
            "\nx: ratio of medians to `%s`; x in round: median of the "
            "ratios within each round; +-: half the distance of the "
            "quartiles; ratio: bytes of the content to those of the frame.\n",
            table->engines[0].name);
}

void report_write_markdown(FILE *out, const struct report *report)
{
    const struct result *last = NULL;

    write_markdown_machine(out, &report->machine);
    if (report->table->has_goals)
        goals_write_markdown(out, report);
    matrix_write_markdown(out, report);
    fprintf(out, "\n");
    write_markdown_engines(out, report->table);
    fprintf(out, "\n## Everything measured\n");
    for (size_t i = 0; i < report->count; i++) {
        const struct result *r = &report->results[i];

        if (last == NULL || last->file != r->file || last->bytes != r->bytes)
            write_markdown_file(out, r);
        last = r;
        write_markdown_row(out, r, &report->machine);
    }
}

/* ------------------------------------------------------------------------ */
/* JSON                                                                     */
/* ------------------------------------------------------------------------ */

void write_json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void write_json_field(FILE *out, const char *name, const char *text)
{
    fprintf(out, "\"%s\":", name);
    write_json_string(out, text);
    fputs(",", out);
}

static void write_json_machine(FILE *out, const struct machine *machine)
{
    fputs("\"machine\":{", out);
    write_json_field(out, "date", machine->date);
    write_json_field(out, "cpu", machine->cpu);
    write_json_field(out, "kernel", machine->kernel);
    write_json_field(out, "huge_pages", machine->huge_pages);
    write_json_field(out, "compiler", machine->compiler);
    write_json_field(out, "zstd_version", machine->zstd_version);
    write_json_field(out, "zstd_file", machine->zstd_file);
    write_json_field(out, "segzstd_version", machine->segzstd_version);
    fprintf(out, "\"cpus\":%ld,\"load\":%.2f}", machine->cpus, machine->load);
}

static void write_json_spread(FILE *out, const char *name,
                              const struct spread *spread)
{
    fprintf(out, ",\"%s\":{\"median\":%.1f,\"q1\":%.1f,\"q3\":%.1f}", name,
            spread->median, spread->q1, spread->q3);
}

static void write_json_result(FILE *out, const struct result *r,
                              const struct machine *machine)
{
    fputs("{", out);
    write_json_field(out, "zstd_file", machine->zstd_file);
    write_json_field(out, "file", r->file);
    write_json_field(out, "engine", r->engine->name);
    fprintf(out, "\"bytes\":%zu,\"level\":%d,\"rounds\":%zu,\"repeats\":%zu",
            r->bytes, r->level, r->rounds, r->repeats);
    write_json_spread(out, "wall_ns", &r->wall_ns);
    write_json_spread(out, "cpu_ns", &r->cpu_ns);
    write_json_spread(out, "size", &r->size);
    write_json_spread(out, "faults", &r->faults);
    fprintf(out,
            ",\"encoder_bytes\":%llu,\"peak_bytes\":%llu,\"segments\":%llu",
            (unsigned long long)r->usage.encoder_bytes,
            (unsigned long long)r->usage.peak_bytes,
            (unsigned long long)r->usage.segments);
    fprintf(out, ",\"ratio\":%.4f", compression(r));
    fprintf(out, ",\"wall_ratio\":%.5f,\"cpu_ratio\":%.5f,\"size_ratio\":%.6f",
            r->wall_ratio, r->cpu_ratio, r->size_ratio);
    fprintf(out, ",\"wall_round_ratio\":%.5f,\"cpu_round_ratio\":%.5f}",
            r->wall_round_ratio, r->cpu_round_ratio);
}

void report_write_json(FILE *out, const struct report *report)
{
    fputs("{", out);
    write_json_machine(out, &report->machine);
    if (report->table->has_goals) {
        fputs(",\n\"goals\":", out);
        goals_write_json(out, report);
    }
    fputs(",\n\"results\":[\n", out);
    for (size_t i = 0; i < report->count; i++) {
        if (i > 0)
            fputs(",\n", out);
        write_json_result(out, &report->results[i], &report->machine);
    }
    fputs("\n]}\n", out);
}
