/*
 * version.c - versions of this library and of the libzstd in use.
 */
#include "common.h"

#include <zstd.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char *segzstd_version(void)
{
    return TEXT(SEGZSTD_VERSION_MAJOR) "." TEXT(SEGZSTD_VERSION_MINOR) "." TEXT(
        SEGZSTD_VERSION_PATCH);
}

const char *segzstd_zstd_version(void)
{
    return ZSTD_versionString();
}

int segzstd_min_level(void)
{
    return ZSTD_minCLevel();
}

int segzstd_max_level(void)
{
    return ZSTD_maxCLevel();
}
