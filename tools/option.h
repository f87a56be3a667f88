/*
 * option.h - the names of the options.
 */
#ifndef SEGZSTD_TOOL_OPTION_H
#define SEGZSTD_TOOL_OPTION_H

#include "posix.h"

enum option_id {
    OPTION_CHECK,
    OPTION_DICT,
    OPTION_FAST,
    OPTION_FORCE,
    OPTION_HELP,
    OPTION_KEEP,
    OPTION_NO_CHECK,
    OPTION_NO_DICT_ID,
    OPTION_NO_PROGRESS,
    OPTION_NOT_HERE, /* what only zstd does */
    OPTION_NOTHING,  /* what this command does anyway */
    OPTION_OUTPUT,
    OPTION_OVERLAP,
    OPTION_PROGRESS,
    OPTION_QUIET,
    OPTION_REMOVE,
    OPTION_SEGMENT_SIZE,
    OPTION_STATS,
    OPTION_STDOUT,
    OPTION_THREADS,
    OPTION_ULTRA,
    OPTION_VERBOSE,
    OPTION_VERSION,
    OPTION_WINDOW_LOG
};

enum option_value { VALUE_NONE, VALUE_MAYBE, VALUE_NEEDED };

struct option {
    const char *name; /* behind two dashes; "" if it has none */
    char letter;      /* behind one dash; 0 if it has none */
    enum option_id id;
    enum option_value value;
};

/* NULL if there is none. */
const struct option *option_find_name(const char *name, size_t len);
const struct option *option_find_letter(char letter);

#endif /* SEGZSTD_TOOL_OPTION_H */
