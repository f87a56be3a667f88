/*
 * help.h - the text of --help.
 */
#ifndef SEGZSTD_TOOL_HELP_H
#define SEGZSTD_TOOL_HELP_H

#include "posix.h"

void help_print(FILE *file);

#endif /* SEGZSTD_TOOL_HELP_H */
