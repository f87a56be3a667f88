/*
 * main.c - segzstd_cases list | key | CASE
 *
 * Runs one case: first with its frames decoded and compared, which also warms
 * the cache, then as it is to be counted.
 */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <zstd.h>

#include "cases.h"

#ifdef __clang__
#  define COMPILER "clang-" __clang_version__
#else
#  define COMPILER "gcc-" __VERSION__
#endif

static int list(void)
{
    for (size_t i = 0; i < case_count; i++)
        printf("%s\n", cases[i].name);
    return 0;
}

/* What decides how many instructions the same source is; the compiler's version
 * without what a distributor adds to it. */
static int key(void)
{
    struct utsname system;

    if (uname(&system) != 0) {
        perror("uname");
        return 1;
    }
    printf("%.*s libzstd-%s %s\n", (int)strcspn(COMPILER, " "), COMPILER,
           ZSTD_versionString(), system.machine);
    return 0;
}

static const struct counted_case *find(const char *name)
{
    for (size_t i = 0; i < case_count; i++) {
        if (strcmp(cases[i].name, name) == 0)
            return &cases[i];
    }
    return NULL;
}

static int run(const struct counted_case *counted)
{
    struct counted_run *run = case_open(counted);
    bool good;

    if (run == NULL) {
        fprintf(stderr, "%s: no memory\n", counted->name);
        return 1;
    }
    good = case_run(run, true) && case_is_right(run) && case_run_counted(run);
    case_close(run);
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    const struct counted_case *counted;

    if (argc == 2 && strcmp(argv[1], "list") == 0)
        return list();
    if (argc == 2 && strcmp(argv[1], "key") == 0)
        return key();
    counted = argc == 2 ? find(argv[1]) : NULL;
    if (counted != NULL)
        return run(counted);
    fprintf(stderr, "usage: segzstd_cases list | key | CASE\n");
    for (size_t i = 0; i < case_count; i++)
        fprintf(stderr, "  %-9s level %2d: %s\n", cases[i].name, cases[i].level,
                cases[i].about);
    return 2;
}
