/*
 * option.c - the names of the options.
 */
#include "option.h"

static const struct option options[] = {
    {"", 'D', OPTION_DICT, VALUE_NEEDED},
    {"", 'H', OPTION_HELP, VALUE_NONE},
    {"", 'o', OPTION_OUTPUT, VALUE_NEEDED},
    {"check", 'C', OPTION_CHECK, VALUE_NONE},
    {"compress", 'z', OPTION_NOTHING, VALUE_NONE},
    {"decompress", 'd', OPTION_NOT_HERE, VALUE_NONE},
    {"fast", 0, OPTION_FAST, VALUE_MAYBE},
    {"force", 'f', OPTION_FORCE, VALUE_NONE},
    {"help", 'h', OPTION_HELP, VALUE_NONE},
    {"keep", 'k', OPTION_KEEP, VALUE_NONE},
    {"list", 'l', OPTION_NOT_HERE, VALUE_NONE},
    {"no-check", 0, OPTION_NO_CHECK, VALUE_NONE},
    {"no-dictID", 0, OPTION_NO_DICT_ID, VALUE_NONE},
    {"no-progress", 0, OPTION_NO_PROGRESS, VALUE_NONE},
    {"overlap", 0, OPTION_OVERLAP, VALUE_NEEDED},
    {"progress", 0, OPTION_PROGRESS, VALUE_NONE},
    {"quiet", 'q', OPTION_QUIET, VALUE_NONE},
    {"rm", 0, OPTION_REMOVE, VALUE_NONE},
    {"segment-size", 0, OPTION_SEGMENT_SIZE, VALUE_NEEDED},
    {"stats", 0, OPTION_STATS, VALUE_NONE},
    {"stdout", 'c', OPTION_STDOUT, VALUE_NONE},
    {"test", 't', OPTION_NOT_HERE, VALUE_NONE},
    {"threads", 'T', OPTION_THREADS, VALUE_NEEDED},
    {"ultra", 0, OPTION_ULTRA, VALUE_NONE},
    {"uncompress", 0, OPTION_NOT_HERE, VALUE_NONE},
    {"verbose", 'v', OPTION_VERBOSE, VALUE_NONE},
    {"version", 'V', OPTION_VERSION, VALUE_NONE},
    {"window-log", 0, OPTION_WINDOW_LOG, VALUE_NEEDED},
};

#define OPTION_COUNT (sizeof(options) / sizeof(options[0]))

const struct option *option_find_name(const char *name, size_t len)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (len != 0 && strlen(options[i].name) == len &&
            memcmp(options[i].name, name, len) == 0)
            return &options[i];
    return NULL;
}

const struct option *option_find_letter(char letter)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (letter != '\0' && options[i].letter == letter)
            return &options[i];
    return NULL;
}
