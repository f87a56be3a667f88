/*
 * limit.c - see limit.h.
 */
#define _GNU_SOURCE 1

#include "limit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

void limit_need_files(unsigned long need)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
        return;
    limit.rlim_cur = need;
    if (limit.rlim_max < need) /* root may raise that, too */
        limit.rlim_max = need;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return;
    fprintf(stderr, "segzstd_load: cannot have %lu open files: %s; ", need,
            strerror(errno));
    getrlimit(RLIMIT_NOFILE, &limit);
    fprintf(stderr, "the limit is %lu, see ulimit -Hn\n",
            (unsigned long)limit.rlim_max);
    exit(1);
}
