/*
 * machine.c - see machine.h.
 */
#define _GNU_SOURCE 1

#include "machine.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <zstd.h>

#include "segzstd.h"

/* The first line of `path` that contains `word`, without its end. */
static bool find_line(const char *path, const char *word, char *line, int size)
{
    FILE *file = fopen(path, "r");
    bool found = false;

    if (file == NULL)
        return false;
    while (!found && fgets(line, size, file) != NULL)
        found = strstr(line, word) != NULL;
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return found;
}

/* What does not fit is cut off. */
static void copy_text(char *dst, size_t size, const char *text)
{
    size_t len = strlen(text);

    if (len > size - 1)
        len = size - 1;
    memcpy(dst, text, len);
    dst[len] = '\0';
}

static void look_cpu(struct machine *machine)
{
    char line[256];
    const char *colon;
    cpu_set_t set;

    if (find_line("/proc/cpuinfo", "model name", line, sizeof(line)) &&
        (colon = strchr(line, ':')) != NULL) {
        copy_text(machine->cpu, sizeof(machine->cpu),
                  colon + 1 + strspn(colon + 1, " "));
    }
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        machine->cpus = CPU_COUNT(&set);
}

static void look_system(struct machine *machine)
{
    struct utsname name;
    char line[256];

    if (uname(&name) == 0) {
        snprintf(machine->kernel, sizeof(machine->kernel), "%.40s %.60s %.20s",
                 name.sysname, name.release, name.machine);
    }
    if (find_line("/sys/kernel/mm/transparent_hugepage/enabled", "[", line,
                  sizeof(line))) {
        copy_text(machine->huge_pages, sizeof(machine->huge_pages), line);
    }
    if (getloadavg(&machine->load, 1) != 1)
        machine->load = 0;
}

static void look_zstd(struct machine *machine)
{
    char line[PATH_MAX];
    const char *path;

    copy_text(machine->zstd_version, sizeof(machine->zstd_version),
              ZSTD_versionString());
    copy_text(machine->segzstd_version, sizeof(machine->segzstd_version),
              segzstd_version());
    if (find_line("/proc/self/maps", "libzstd", line, sizeof(line)) &&
        (path = strchr(line, '/')) != NULL) {
        copy_text(machine->zstd_file, sizeof(machine->zstd_file), path);
    }
}

void machine_look(struct machine *machine)
{
    time_t now = time(NULL);
    struct tm utc;

    memset(machine, 0, sizeof(*machine));
    copy_text(machine->cpu, sizeof(machine->cpu), "unknown");
    copy_text(machine->kernel, sizeof(machine->kernel), "unknown");
    copy_text(machine->huge_pages, sizeof(machine->huge_pages), "unknown");
    copy_text(machine->zstd_file, sizeof(machine->zstd_file), "unknown");
#ifdef __clang__
    copy_text(machine->compiler, sizeof(machine->compiler),
              "clang " __clang_version__);
#else
    copy_text(machine->compiler, sizeof(machine->compiler), "gcc " __VERSION__);
#endif
    if (gmtime_r(&now, &utc) != NULL)
        strftime(machine->date, sizeof(machine->date), "%Y-%m-%d %H:%M", &utc);
    look_cpu(machine);
    look_system(machine);
    look_zstd(machine);
}
