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

static void print_help(FILE *out)
{
    fputs("usage: segzstd_bench engines [OPTION]... FILE...\n"
          "  --levels 1,3,9     levels (1,3,6,9,12,15,19)\n"
          "  --engines a,b      engines, the first is the base (all)\n"
          "  --rounds N         most rounds of a cell (15)\n"
          "  --min-rounds N     fewest, whatever the time (3)\n"
          "  --seconds S        no new round after S seconds in a cell (5)\n"
          "  --sample-ms M      repeat short compressions up to M ms (5)\n"
          "  --overlap BYTES    segzstd's overlap (automatic)\n"
          "  --no-huge-pages    segzstd: ordinary pages for encoders\n"
          "  --json FILE        write all results\n"
          "  --markdown FILE    write all results\n"
          "A cell is one file at one level.\n\nengines:\n",
          out);
    for (size_t i = 0; i < engine_count; i++)
        fprintf(out, "  %-12s %s\n", engines[i].name, engines[i].about);
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

static bool parse_engines(struct options *options, const char *text)
{
    options->chosen_count = 0;
    while (options->chosen_count < OPTIONS_ENGINES_MAX) {
        size_t len = strcspn(text, ",");
        const struct engine *engine = engine_find(text, len);

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

static void set_defaults(struct options *options)
{
    static const int levels[] = {1, 3, 6, 9, 12, 15, 19};

    memset(options, 0, sizeof(*options));
    memcpy(options->levels, levels, sizeof(levels));
    options->level_count = sizeof(levels) / sizeof(levels[0]);
    while (options->chosen_count < engine_count) {
        options->chosen[options->chosen_count] =
            &engines[options->chosen_count];
        options->chosen_count++;
    }
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

bool options_parse(struct options *options, int argc, char **argv,
                   int *exit_code)
{
    int option;

    set_defaults(options);
    *exit_code = 2;
    while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        if (option == HELP) {
            print_help(stdout);
            *exit_code = 0;
            return false;
        }
        if (!take_option(options, option, optarg)) {
            fprintf(stderr, "engines: wrong option or value%s%s\n",
                    optarg != NULL ? ": " : "", optarg != NULL ? optarg : "");
            return false;
        }
    }
    options->files = argv + optind;
    options->file_count = (size_t)(argc - optind);
    if (options->file_count == 0)
        fprintf(stderr, "engines: no file given\n");
    return options->file_count > 0;
}
