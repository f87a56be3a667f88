/*
 * args.c - the command line.
 */
#include "args.h"

#include <limits.h>

#include "number.h"
#include "option.h"

/* Above it a level takes so much memory that it has to be asked for twice, as
 * with the zstd command. */
#define LEVEL_MAX_DEFAULT 19

/* The library's limit, see segzstd_executor_new(). */
#define THREADS_MAX 1024

/* A walk over the arguments. */
struct parser {
    struct args *args;
    char **argv;
    int argc;
    int next;   /* index of the next argument */
    bool ultra; /* may come after the level */
};

#define FAIL(args, ...)                                                        \
  (snprintf((args)->fault, sizeof((args)->fault), __VA_ARGS__), false)

static bool set_segment_bytes(struct args *args, const char *value)
{
    uint64_t bytes;

    if (strcmp(value, "auto") == 0) {
        args->stream.segment_bytes = 0;
        return true;
    }
    if (!number_parse_size(value, SIZE_MAX, &bytes) || bytes == 0)
        return FAIL(args,
                    "--segment-size: '%s' is neither a size, like 1M, nor auto",
                    value);
    args->stream.segment_bytes = (size_t)bytes;
    return true;
}

static bool set_overlap(struct args *args, const char *value)
{
    uint64_t bytes;

    if (strcmp(value, "auto") == 0) {
        args->stream.overlap_bytes = 0;
        return true;
    }
    if (!number_parse_size(value, SIZE_MAX - 1, &bytes))
        return FAIL(args,
                    "--overlap: '%s' is neither a size, like 256K, nor auto",
                    value);
    args->stream.overlap_bytes =
        bytes == 0 ? SEGZSTD_OVERLAP_NONE : (size_t)bytes;
    return true;
}

static bool set_window_log(struct args *args, const char *value)
{
    uint64_t log;

    if (!number_parse(value, UINT_MAX, &log) || log == 0)
        return FAIL(args, "--window-log: '%s' is not a number from 10 to 31",
                    value);
    args->stream.window_log = (unsigned)log;
    return true;
}

static bool set_threads(struct args *args, const char *value)
{
    uint64_t threads;

    if (!number_parse(value, THREADS_MAX, &threads))
        return FAIL(args, "-T: '%s' is not a number from 0 to %d", value,
                    THREADS_MAX);
    args->threads = (unsigned)threads;
    return true;
}

/* value is NULL for --fast alone. */
static bool set_fast(struct args *args, const char *value)
{
    uint64_t least = (uint64_t) - (int64_t)segzstd_min_level(), fast = 1;

    if (value != NULL && (!number_parse(value, least, &fast) || fast == 0))
        return FAIL(args, "--fast: '%s' is not a number from 1 to %ju", value,
                    (uintmax_t)least);
    args->stream.level = -(int)fast;
    return true;
}

/* The digits of -19, which other letters may follow. */
static bool set_level(struct args *args, const char **text)
{
    const char *begin = *text;
    uint64_t level;

    if (!number_read(text, (uint64_t)segzstd_max_level(), &level))
        return FAIL(args, "-%.*s: the highest level is %d",
                    (int)strspn(begin, "0123456789"), begin,
                    segzstd_max_level());
    args->stream.level = (int)level;
    return true;
}

static bool apply_action(struct args *args, enum args_action action)
{
    args->action = action;
    return true;
}

/* `given` is the option as it was written. */
static bool apply(struct parser *parser, const struct option *option,
                  const char *given, const char *value)
{
    struct args *args = parser->args;

    switch (option->id) {
    case OPTION_CHECK:
        args->stream.checksum = 1;
        break;
    case OPTION_DICT:
        args->dict = value;
        break;
    case OPTION_FAST:
        return set_fast(args, value);
    case OPTION_FORCE:
        args->force = true;
        break;
    case OPTION_HELP:
        return apply_action(args, ARGS_HELP);
    case OPTION_KEEP:
        args->remove = false;
        break;
    case OPTION_NO_CHECK:
        args->stream.checksum = 0;
        break;
    case OPTION_NO_DICT_ID:
        args->stream.no_dict_id = 1;
        break;
    case OPTION_NO_PROGRESS:
        args->progress = ARGS_PROGRESS_OFF;
        break;
    case OPTION_NOT_HERE:
        return FAIL(args, "%s: segzstd only compresses; zstd does the rest",
                    given);
    case OPTION_NOTHING:
        break;
    case OPTION_OUTPUT:
        args->output = value;
        args->to_stdout = false;
        break;
    case OPTION_OVERLAP:
        return set_overlap(args, value);
    case OPTION_PROGRESS:
        args->progress = ARGS_PROGRESS_ON;
        break;
    case OPTION_QUIET:
        args->quieter++;
        break;
    case OPTION_REMOVE:
        args->remove = true;
        break;
    case OPTION_SEGMENT_SIZE:
        return set_segment_bytes(args, value);
    case OPTION_STATS:
        args->stats = true;
        break;
    case OPTION_STDOUT:
        args->output = NULL;
        args->to_stdout = true;
        break;
    case OPTION_THREADS:
        return set_threads(args, value);
    case OPTION_ULTRA:
        parser->ultra = true;
        break;
    case OPTION_VERBOSE:
        args->louder++;
        break;
    case OPTION_VERSION:
        return apply_action(args, ARGS_VERSION);
    case OPTION_WINDOW_LOG:
        return set_window_log(args, value);
    }
    return true;
}

/* The next argument as the value of an option; NULL if there is none. */
static char *next_value(struct parser *parser)
{
    return parser->next < parser->argc ? parser->argv[parser->next++] : NULL;
}

/* --name, --name=value, --name value. */
static bool parse_long(struct parser *parser, const char *given)
{
    const char *name = given + 2, *value = strchr(name, '=');
    size_t len = value == NULL ? strlen(name) : (size_t)(value - name);
    const struct option *option = option_find_name(name, len);

    if (option == NULL)
        return FAIL(parser->args, "%s: unknown option", given);
    if (value != NULL)
        value++;
    if (value != NULL && option->value == VALUE_NONE)
        return FAIL(parser->args, "--%s: takes no value", option->name);
    if (value == NULL && option->value == VALUE_NEEDED) {
        value = next_value(parser);
        if (value == NULL)
            return FAIL(parser->args, "--%s: the value is missing",
                        option->name);
    }
    return apply(parser, option, given, value);
}

/*
 * -T4, where other letters may follow, or -T 4. Anything else that is attached
 * is the value as a whole, and wrong.
 */
static bool parse_threads(struct parser *parser, const char **text)
{
    char digits[32];
    size_t len = strspn(*text, "0123456789");
    const char *value;

    if (**text == '\0') {
        value = next_value(parser);
        return value != NULL ? set_threads(parser->args, value)
                             : FAIL(parser->args, "-T: the value is missing");
    }
    if (len == 0 || len >= sizeof(digits))
        return set_threads(parser->args, *text);
    memcpy(digits, *text, len);
    digits[len] = '\0';
    *text += len;
    return set_threads(parser->args, digits);
}

/* -o FILE or -o=FILE; as with zstd, letters may follow in -of FILE. */
static bool parse_file_value(struct parser *parser, const struct option *option,
                             const char **text)
{
    const char *value;

    if (**text == '=') {
        value = *text + 1;
        *text += strlen(*text);
    } else {
        value = next_value(parser);
    }
    if (value == NULL || *value == '\0' || *value == '-')
        return FAIL(parser->args, "-%c: the file name is missing",
                    option->letter);
    return apply(parser, option, "", value);
}

/* One letter, or the number of a level, at *text. */
static bool parse_letter(struct parser *parser, const char **text)
{
    const struct option *option;
    char given[3] = {'-', **text, '\0'};

    if (**text >= '0' && **text <= '9')
        return set_level(parser->args, text);
    option = option_find_letter(**text);
    if (option == NULL)
        return FAIL(parser->args, "%s: unknown option", given);
    ++*text;
    if (option->id == OPTION_THREADS)
        return parse_threads(parser, text);
    if (option->value == VALUE_NEEDED)
        return parse_file_value(parser, option, text);
    return apply(parser, option, given, NULL);
}

static bool parse_letters(struct parser *parser, const char *given)
{
    const char *text = given + 1;

    while (*text != '\0')
        if (!parse_letter(parser, &text))
            return false;
    return true;
}

static void add_file(struct args *args, char *path)
{
    args->files[args->file_count++] = path;
}

static bool parse_all(struct parser *parser)
{
    bool only_files = false;

    while (parser->next < parser->argc &&
           parser->args->action == ARGS_COMPRESS) {
        char *given = parser->argv[parser->next++];
        bool good = true;

        if (only_files || given[0] != '-')
            add_file(parser->args, given);
        else if (given[1] == '\0')
            add_file(parser->args, NULL);
        else if (given[1] != '-')
            good = parse_letters(parser, given);
        else if (given[2] == '\0')
            only_files = true;
        else
            good = parse_long(parser, given);
        if (!good)
            return false;
    }
    return true;
}

/* The library knows the ranges. */
static bool check_stream(struct args *args)
{
    const char *field;

    if (segzstd_stream_options_check(&args->stream, &field) == 0)
        return true;
    if (strcmp(field, "segment_bytes") == 0)
        return FAIL(args, "--segment-size: not from 64K to 1G");
    if (strcmp(field, "window_log") == 0)
        return FAIL(args, "--window-log: not from 10 to 31");
    return FAIL(args, "%s: out of range", field);
}

static bool complete(struct parser *parser)
{
    struct args *args = parser->args;

    if (args->action != ARGS_COMPRESS)
        return true;
    if (args->file_count == 0)
        add_file(args, NULL);
    if (args->stream.level > LEVEL_MAX_DEFAULT && !parser->ultra) {
        args->stream.level = LEVEL_MAX_DEFAULT;
        args->level_reduced = true;
    }
    if (args->file_count == 1 && args->files[0] == NULL && args->output == NULL)
        args->to_stdout = true;
    return check_stream(args);
}

bool args_parse(struct args *args, int argc, char **argv)
{
    struct parser parser = {args, argv, argc, 1, false};

    *args = (struct args){.files = argv, .stream = SEGZSTD_STREAM_OPTIONS_INIT};
    args->stream.checksum = 1;
    return parse_all(&parser) && complete(&parser);
}
