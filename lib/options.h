/*
 * options.h - option and statistics structs that grow at their end.
 */
#ifndef SEGZSTD_OPTIONS_H
#define SEGZSTD_OPTIONS_H

#include "common.h"

/*
 * Copies what the caller's struct has over the defaults; `given` may be NULL.
 * A struct that is smaller than ours is of an older caller, and its missing
 * fields have their defaults. One that is larger is of a newer caller: the
 * fields that we do not know must be 0. Returns 0 or SEGZSTD_ERR_INVALID.
 */
int segzstd__options_read_cache(segzstd_cache_options *options,
                                const segzstd_cache_options *given);

int segzstd__options_copy_stream(segzstd_stream_options *options,
                                 const segzstd_stream_options *given);

/* The same, and checks and completes the values: no field that has a default is
 * 0 afterwards, except where 0 is a value. *field (may be NULL) is the name of
 * the first one at fault, or NULL. */
int segzstd__options_read_stream(segzstd_stream_options *options,
                                 const segzstd_stream_options *given,
                                 const char **field);

/* Fills a caller's struct, of the size in its first field, from ours. What it
 * has beyond ours becomes 0. */
void segzstd__options_write(void *out, const void *ours, size_t bytes);

#endif /* SEGZSTD_OPTIONS_H */
