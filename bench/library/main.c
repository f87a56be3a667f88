/*
 * main.c - segzstd_bench COMMAND ...
 */
#include <stdio.h>
#include <string.h>

#include "commands.h"

static const struct command {
    const char *name;
    const char *about;
    int (*main)(int argc, char **argv);
} commands[] = {
    {"engines", "all engines beside each other, on files", bench_main},
    {"responses", "a frame for each response, as a server's filter makes it",
     responses_main},
    {"small", "what the library adds to libzstd's call on a small body",
     small_main},
    {"streams", "memory of many open streams that are flushed in turn",
     streams_main},
    {"machine", "what the other parts say of where they ran", machine_main},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < COMMAND_COUNT; i++) {
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].main(argc - 1, argv + 1);
    }
    fprintf(stderr, "usage: segzstd_bench COMMAND ..., where COMMAND is\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(stderr, "  %-9s %s\n", commands[i].name, commands[i].about);
    return 2;
}
