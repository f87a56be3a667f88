/*
 * options.c - see options.h.
 */
#define _GNU_SOURCE 1

#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEVELS = 'l',
    ENGINES = 'e',
    SIZES = 'z',
    ROUNDS = 'r',
    ROUNDS_MIN = 'm',
    SECONDS = 's',
    SAMPLE_MS = 't',
    OVERLAP = 'o',
    NO_HUGE_PAGES = 'n',
    JSON = 'j',
    MARKDOWN = 'd',
    HELP = 'h'
};

static const struct option long_options[] = {
    {"levels", required_argument, NULL, LEVELS},
    {"engines", required_argument, NULL, ENGINES},
    {"sizes", required_argument, NULL, SIZES},
    {"rounds", required_argument, NULL, ROUNDS},
    {"min-rounds", required_argument, NULL, ROUNDS_MIN},
    {"seconds", required_argument, NULL, SECONDS},
    {"sample-ms", required_argument, NULL, SAMPLE_MS},
    {"overlap", required_argument, NULL, OVERLAP},
    {"no-huge-pages", no_argument, NULL, NO_HUGE_PAGES},
    {"json", required_argument, NULL, JSON},
    {"markdown", required_argument, NULL, MARKDOWN},
    {"help", no_argument, NULL, HELP},
    {NULL, 0, NULL, 0},
};

static void print_defaults(FILE *out, const struct options *options)
{
    fputs("not said, levels are", out);
    for (size_t i = 0; i < options->level_count; i++)
        fprintf(out, " %d", options->levels[i]);
    fputs("; sizes", out);
    for (size_t i = 0; i < options->size_count; i++)
        fprintf(out, " %zu", options->sizes[i]);
    fputs(options->size_count == 0 ? " those of the files\n" : "\n", out);
}

static void print_help(FILE *out, const struct options *options)
{
    const struct engine_table *table = options->table;

    fprintf(out, "usage: segzstd_bench %s [OPTION]... FILE...\n",
            table->command);
    fputs("  --levels 1,3,9     levels\n"
          "  --engines a,b      engines, the first is the base (all)\n"
          "  --sizes N,M        only the first N, M bytes of each file\n"
          "  --rounds N         most rounds of a cell (15)\n"
          "  --min-rounds N     fewest, whatever the time (3)\n"
          "  --seconds S        no new round after S seconds in a cell (5)\n"
          "  --sample-ms M      repeat short compressions up to M ms (5)\n"
          "  --overlap BYTES    segzstd's overlap (automatic)\n"
          "  --no-huge-pages    segzstd: ordinary pages for encoders\n"
          "  --json FILE        write all results\n"
          "  --markdown FILE    write all results\n"
          "A cell is one content at one level; ",
          out);
    print_defaults(out, options);
    fputs("\nengines:\n", out);
    for (size_t i = 0; i < table->count; i++) {
        fprintf(out, "  %-13s %s\n", table->engines[i].name,
                table->engines[i].about);
    }
}

bool parse_number(const char *text, unsigned long min, unsigned long max,
                  unsigned long *number)
{
    char *end;

    errno = 0;
    *number = strtoul(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *number >= min &&
           *number <= max;
}

bool parse_levels(const char *text, int *levels, size_t max, size_t *count)
{
    char *end;

    for (*count = 0; *count < max; text = end + 1) {
        levels[(*count)++] = (int)strtol(text, &end, 10);
        if (end == text || (*end != '\0' && *end != ','))
            return false;
        if (*end == '\0')
            return true;
    }
    return false;
}

/* False also for a size of 0. */
static bool parse_sizes(struct options *options, const char *text)
{
    char *end;

    options->size_count = 0;
    for (; options->size_count < OPTIONS_SIZES_MAX; text = end + 1) {
        size_t size = strtoul(text, &end, 10);

        if (size == 0 || (*end != '\0' && *end != ','))
            return false;
        options->sizes[options->size_count++] = size;
        if (*end == '\0')
            return true;
    }
    return false;
}

static bool parse_engines(struct options *options, const char *text)
{
    options->chosen_count = 0;
    while (options->chosen_count < OPTIONS_ENGINES_MAX) {
        size_t len = strcspn(text, ",");
        const struct engine *engine = engine_find(options->table, text, len);

        if (engine == NULL)
            return false;
        options->chosen[options->chosen_count++] = engine;
        if (text[len] == '\0')
            return true;
        text += len + 1;
    }
    return false;
}

static bool parse_seconds(const char *text, double *seconds)
{
    char *end;

    *seconds = strtod(text, &end);
    return end != text && *end == '\0' && *seconds >= 0;
}

static bool parse_size(const char *text, size_t min, size_t *size)
{
    unsigned long number;

    if (!parse_number(text, min, 1UL << 30, &number))
        return false;
    *size = number;
    return true;
}

static void set_defaults(struct options *options,
                         const struct engine_table *table)
{
    memset(options, 0, sizeof(*options));
    options->table = table;
    options->level_count = table->level_count;
    for (size_t i = 0; i < table->level_count; i++)
        options->levels[i] = table->levels[i];
    options->size_count = table->size_count;
    for (size_t i = 0; i < table->size_count; i++)
        options->sizes[i] = table->sizes[i];
    options->chosen_count = table->count;
    for (size_t i = 0; i < table->count; i++)
        options->chosen[i] = &table->engines[i];
    options->rounds_max = 15;
    options->rounds_min = 3;
    options->seconds = 5;
    options->sample_ms = 5;
}

/* False if `text` does not fit the option. */
static bool take_option(struct options *options, int option, const char *text)
{
    switch (option) {
    case LEVELS:
        return parse_levels(text, options->levels, OPTIONS_LEVELS_MAX,
                            &options->level_count);
    case ENGINES:
        return parse_engines(options, text);
    case SIZES:
        return parse_sizes(options, text);
    case ROUNDS:
        return parse_size(text, 1, &options->rounds_max);
    case ROUNDS_MIN:
        return parse_size(text, 1, &options->rounds_min);
    case SECONDS:
        return parse_seconds(text, &options->seconds);
    case SAMPLE_MS:
        return parse_seconds(text, &options->sample_ms);
    case OVERLAP:
        return parse_size(text, 0, &options->overlap_bytes);
    case NO_HUGE_PAGES:
        options->no_huge_pages = true;
        return true;
    case JSON:
        options->json = text;
        return true;
    case MARKDOWN:
        options->markdown = text;
        return true;
    default:
        return false;
    }
}

bool options_parse(struct options *options, const struct engine_table *table,
                   int argc, char **argv, int *exit_code)
{
    int option;

    set_defaults(options, table);
    *exit_code = 2;
    while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        if (option == HELP) {
            print_help(stdout, options);
            *exit_code = 0;
            return false;
        }
        if (!take_option(options, option, optarg)) {
            fprintf(stderr, "%s: wrong option or value%s%s\n", table->command,
                    optarg != NULL ? ": " : "", optarg != NULL ? optarg : "");
            return false;
        }
    }
    options->files = argv + optind;
    options->file_count = (size_t)(argc - optind);
    if (options->file_count == 0)
        fprintf(stderr, "%s: no file given\n", table->command);
    return options->file_count > 0;
}
