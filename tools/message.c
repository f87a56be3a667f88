/*
 * message.c - what the command says on stderr.
 */
#include "message.h"

#include <stdarg.h>

int message_level = LEVEL_DEFAULT;

/* One write for one line, so that lines of several processes do not mix. */
static void say(const char *end, const char *format, va_list list)
{
    char line[4096];

    vsnprintf(line, sizeof(line), format, list);
    fprintf(stderr, "segzstd: %s%s", line, end);
}

void message_error(const char *format, ...)
{
    va_list list;

    if (message_level < LEVEL_ERRORS)
        return;
    va_start(list, format);
    say("\n", format, list);
    va_end(list);
}

void message_warn(const char *format, ...)
{
    va_list list;

    if (message_level < LEVEL_DEFAULT)
        return;
    va_start(list, format);
    say("\n", format, list);
    va_end(list);
}

/* Takes a line from the terminal; true if it begins with y or Y. */
static bool read_yes(void)
{
    char first = '\0', c;

    while (read(STDIN_FILENO, &c, 1) == 1 && c != '\n') {
        if (first == '\0')
            first = c;
    }
    return first == 'y' || first == 'Y';
}

bool message_ask(const char *format, ...)
{
    va_list list;

    if (message_level < LEVEL_DEFAULT || !isatty(STDIN_FILENO))
        return false;
    va_start(list, format);
    say(" (y/N) ", format, list);
    va_end(list);
    return read_yes();
}
