/*
 * dictionary.h - the file of -D.
 */
#ifndef SEGZSTD_TOOL_DICTIONARY_H
#define SEGZSTD_TOOL_DICTIONARY_H

#include "posix.h"

/* Makes a dictionary from a file. Returns a status, after a message. */
int dictionary_load(segzstd_dict **dict, segzstd_cache *cache,
                    const char *path);

#endif /* SEGZSTD_TOOL_DICTIONARY_H */
