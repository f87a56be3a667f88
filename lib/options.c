/*
 * options.c - reading and checking option structs.
 */
#include "options.h"

#define SEGMENT_BYTES_MIN (64 * KIB)
#define SEGMENT_BYTES_MAX ((size_t)1 << 30)
#define WINDOW_LOG_MIN 10
#define WINDOW_LOG_MAX (sizeof(size_t) == 4 ? 30 : 31)
#define INPUT_BYTES_MIN BLOCK_BYTES_MAX
#define INPUT_BYTES_DEFAULT (8 * MIB)
#define OUTPUT_BYTES_MIN (64 * KIB)

/*
 * What an event stream needs to find its own repeated phrases again. Small, for
 * ten thousand streams keep it.
 */
#define HISTORY_BYTES_DEFAULT (32 * KIB)

#define LEVEL_DEFAULT 3

/* No struct of options will ever be this large: its size is garbage. */
#define STRUCT_BYTES_MAX 4096

static int read_struct(void *ours, size_t bytes, const void *given)
{
    size_t given_bytes;

    memcpy(&given_bytes, given, sizeof(given_bytes));
    if (given_bytes < sizeof(given_bytes) || given_bytes > STRUCT_BYTES_MAX)
        return SEGZSTD_ERR_INVALID;
    for (size_t i = bytes; i < given_bytes; i++)
        if (((const uint8_t *)given)[i] != 0)
            return SEGZSTD_ERR_INVALID;
    memcpy(ours, given, min_size(bytes, given_bytes));
    return 0;
}

void segzstd__options_write(void *out, const void *ours, size_t bytes)
{
    size_t out_bytes;

    memcpy(&out_bytes, out, sizeof(out_bytes));
    memcpy(out, ours, min_size(bytes, out_bytes));
    if (out_bytes > bytes)
        memset((uint8_t *)out + bytes, 0, out_bytes - bytes);
    memcpy(out, &out_bytes, sizeof(out_bytes));
}

int segzstd__options_read_cache(segzstd_cache_options *options,
                                const segzstd_cache_options *given)
{
    *options = (segzstd_cache_options)SEGZSTD_CACHE_OPTIONS_INIT;
    return given == NULL ? 0 : read_struct(options, sizeof(*options), given);
}

static bool in_range(uint64_t value, uint64_t least, uint64_t most)
{
    return value >= least && value <= most;
}

/* Name of the first field that is out of range; NULL if none is. */
static const char *find_fault(const segzstd_stream_options *o)
{
    if (o->level < segzstd_min_level() || o->level > segzstd_max_level())
        return "level";
    if (o->window_log != 0 &&
        !in_range(o->window_log, WINDOW_LOG_MIN, WINDOW_LOG_MAX))
        return "window_log";
    if (o->size_is_certain && o->size == SEGZSTD_SIZE_UNKNOWN)
        return "size_is_certain";
    if (o->segment_bytes != 0 &&
        !in_range(o->segment_bytes, SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX))
        return "segment_bytes";
    if (o->input_bytes != 0 &&
        !in_range(o->input_bytes, INPUT_BYTES_MIN, SIZE_MAX / 8))
        return "input_bytes";
    if (o->output_bytes != 0 &&
        !in_range(o->output_bytes, OUTPUT_BYTES_MIN, SIZE_MAX / 8))
        return "output_bytes";
    if (o->read_bytes != 0 &&
        !in_range(o->read_bytes, INPUT_BYTES_MIN, SIZE_MAX / 8))
        return "read_bytes";
    if (o->extent_bytes != 0 &&
        !in_range(o->extent_bytes, INPUT_BYTES_MIN, SIZE_MAX / 8))
        return "extent_bytes";
    return NULL;
}

/* 0 is `automatic`, SEGZSTD_OVERLAP_NONE is 0. */
static size_t size_or_none(size_t given, size_t automatic)
{
    if (given == SEGZSTD_OVERLAP_NONE)
        return 0;
    return given == 0 ? automatic : given;
}

static void complete(segzstd_stream_options *o)
{
    if (o->level == 0)
        o->level = LEVEL_DEFAULT;
    if (o->window_log == 0)
        o->window_log = SEGZSTD_WINDOW_LOG_HTTP;
    if (o->input_bytes == 0)
        o->input_bytes = INPUT_BYTES_DEFAULT;
    if (o->read_bytes == 0)
        o->read_bytes = 2 * o->input_bytes;
    if (o->extent_bytes == 0)
        o->extent_bytes = 2 * o->input_bytes;
    o->history_bytes = size_or_none(o->history_bytes, HISTORY_BYTES_DEFAULT);
}

int segzstd__options_copy_stream(segzstd_stream_options *options,
                                 const segzstd_stream_options *given)
{
    *options = (segzstd_stream_options)SEGZSTD_STREAM_OPTIONS_INIT;
    return given == NULL ? 0 : read_struct(options, sizeof(*options), given);
}

int segzstd__options_read_stream(segzstd_stream_options *options,
                                 const segzstd_stream_options *given,
                                 const char **field)
{
    const char *fault = NULL;

    if (segzstd__options_copy_stream(options, given) != 0)
        fault = "struct_size";
    if (fault == NULL)
        fault = find_fault(options);
    if (field != NULL)
        *field = fault;
    if (fault != NULL)
        return SEGZSTD_ERR_INVALID;
    complete(options);
    return 0;
}

int segzstd_stream_options_check(const segzstd_stream_options *options,
                                 const char **field)
{
    segzstd_stream_options scratch;

    return segzstd__options_read_stream(&scratch, options, field);
}
