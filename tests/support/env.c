#include "support/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

static bool is_set(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0;
}

bool env_short(void)
{
    return is_set("SEGZSTD_TEST_SHORT");
}

bool env_long(void)
{
    return is_set("SEGZSTD_TEST_LONG");
}

bool env_plain_input(void)
{
    return is_set("SEGZSTD_TEST_PLAIN_INPUT");
}

bool env_reads_short_sequences(void)
{
    if (ZSTD_versionNumber() >= 10408)
        return true;
    fprintf(stderr,
            "not tried: sequences in less than four bytes, which "
            "libzstd %s does not read\n",
            ZSTD_versionString());
    return false;
}

size_t env_pick(const char *what, size_t normal, size_t reduced)
{
    if (!env_short())
        return normal;
    fprintf(stderr, "short form: %s: %zu instead of %zu\n", what, reduced,
            normal);
    return reduced;
}
