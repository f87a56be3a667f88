/*
 * number.h - numbers as they are written on a command line. Pure functions.
 */
#ifndef SEGZSTD_TOOL_NUMBER_H
#define SEGZSTD_TOOL_NUMBER_H

#include "posix.h"

/* Reads the digits that *text begins with and moves *text behind them. False if
 * there are none, or if the number is above `most`. */
bool number_read(const char **text, uint64_t most, uint64_t *value);

/* The whole text is a number without sign, at most `most`. */
bool number_parse(const char *text, uint64_t most, uint64_t *value);

/* The same, in bytes: K, Ki, KB, KiB after the number mean 2^10 bytes; M is
 * 2^20 and G 2^30 in the same way. */
bool number_parse_size(const char *text, uint64_t most, uint64_t *value);

#endif /* SEGZSTD_TOOL_NUMBER_H */
