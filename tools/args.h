/*
 * args.h - the command line. Pure: reads its arguments and writes the struct.
 */
#ifndef SEGZSTD_TOOL_ARGS_H
#define SEGZSTD_TOOL_ARGS_H

#include "posix.h"

enum args_action { ARGS_COMPRESS, ARGS_HELP, ARGS_VERSION };

enum args_progress { ARGS_PROGRESS_AUTO, ARGS_PROGRESS_ON, ARGS_PROGRESS_OFF };

struct args {
    enum args_action action;

    /* Level, checksum, segments, overlap, window and dictionary id; with all
     * that is asked for in range. */
    segzstd_stream_options stream;

    unsigned threads;    /* 0: as many as CPUs */
    const char *output;  /* -o, else NULL */
    const char *dict;    /* -D, else NULL */
    bool to_stdout;      /* -c, or stdin without -o */
    bool force;          /* -f */
    bool remove;         /* --rm */
    bool stats;          /* --stats */
    int quieter, louder; /* how often -q and -v were given */
    bool level_reduced;  /* a level above 19 without --ultra */
    enum args_progress progress;

    /* The files, in order; NULL is stdin. At least one. The array is the
     * argv of args_parse(), written over; size is argc at most. */
    char **files;
    size_t file_count;

    char fault[256]; /* of args_parse(), if it is false */
};

/* False, with a sentence that names the option in args->fault, if the command
 * line is wrong. argv is borrowed as long as args is used; argc is 1 at
 * least. */
bool args_parse(struct args *args, int argc, char **argv);

#endif /* SEGZSTD_TOOL_ARGS_H */
