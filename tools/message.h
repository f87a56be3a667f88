/*
 * message.h - what the command says on stderr, and what it exits with.
 */
#ifndef SEGZSTD_TOOL_MESSAGE_H
#define SEGZSTD_TOOL_MESSAGE_H

#include "posix.h"

/* Exit codes, as those of the zstd command in the same situation. */
enum status {
    STATUS_OK = 0,
    STATUS_REFUSED = 1, /* wrong option, or a file that was left out */
    STATUS_LIBZSTD = 11,
    STATUS_MEMORY = 30,
    STATUS_DICT_MISSING = 31,
    STATUS_DICT_KIND = 32, /* no regular file, or no dictionary */
    STATUS_DICT_OPEN = 33,
    STATUS_DICT_SIZE = 34,
    STATUS_DICT_READ = 35,
    STATUS_READ = 37,
    STATUS_WRITE = 70
};

/* How much is said. */
enum {
    LEVEL_SILENT = 0,
    LEVEL_ERRORS = 1,  /* with -q, or when data goes to stdout */
    LEVEL_DEFAULT = 2, /* also warnings, progress and a summary */
    LEVEL_VERBOSE = 3
};

extern int message_level;

#if defined(__GNUC__)
#  define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
#else
#  define PRINTF_LIKE(text, first)
#endif

/* One line on stderr, "segzstd: ...", at its level or above. */
void message_error(const char *format, ...) PRINTF_LIKE(1, 2);
void message_warn(const char *format, ...) PRINTF_LIKE(1, 2);

/* Whether the user at the terminal says yes to a question. False, without
 * asking, where stdin is no terminal or with -q. */
bool message_ask(const char *format, ...) PRINTF_LIKE(1, 2);

#endif /* SEGZSTD_TOOL_MESSAGE_H */
