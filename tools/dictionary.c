/*
 * dictionary.c - the file of -D.
 */
#include "dictionary.h"

#include "message.h"

/* More is not of use as a dictionary; zstd takes no larger file either. */
#define DICT_BYTES_MAX ((off_t)32 << 20)

static int fail(const char *path, const char *reason, int status)
{
    message_error("-D %s: %s", path, reason);
    return status;
}

static int make(segzstd_dict **dict, segzstd_cache *cache, const char *path,
                const void *bytes, size_t len)
{
    int error = segzstd_dict_new(dict, cache, bytes, len);

    if (error == SEGZSTD_ERR_INVALID)
        return fail(path, "broken, or shorter than 8 bytes", STATUS_DICT_KIND);
    if (error != 0)
        return fail(path, segzstd_strerror(error), STATUS_MEMORY);
    return STATUS_OK;
}

static int load(segzstd_dict **dict, segzstd_cache *cache, const char *path,
                FILE *file, size_t len)
{
    void *bytes = malloc(len + 1);
    int status;

    if (bytes == NULL)
        return fail(path, strerror(errno), STATUS_MEMORY);
    if (fread(bytes, 1, len, file) != len)
        status = fail(path, "could not be read whole", STATUS_DICT_READ);
    else
        status = make(dict, cache, path, bytes, len);
    free(bytes);
    return status;
}

int dictionary_load(segzstd_dict **dict, segzstd_cache *cache, const char *path)
{
    struct stat found;
    FILE *file;
    int status;

    if (stat(path, &found) != 0)
        return fail(path, strerror(errno), STATUS_DICT_MISSING);
    if (!S_ISREG(found.st_mode))
        return fail(path, "is not a regular file", STATUS_DICT_KIND);
    if (found.st_size > DICT_BYTES_MAX)
        return fail(path, "is larger than 32 MiB", STATUS_DICT_SIZE);
    file = fopen(path, "rb");
    if (file == NULL)
        return fail(path, strerror(errno), STATUS_DICT_OPEN);
    status = load(dict, cache, path, file, (size_t)found.st_size);
    fclose(file);
    return status;
}
