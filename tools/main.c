/*
 * main.c - segzstd: compresses files to one zstd frame each.
 */
#include <fcntl.h>

#include "args.h"
#include "cleanup.h"
#include "compress.h"
#include "help.h"
#include "message.h"

/* The whole invocation. */
struct session {
    struct args args;
    struct compressor compressor;
    int status;       /* of the first file that failed */
    size_t done;      /* files */
    uint64_t in, out; /* bytes, of these */
};

static void note_failure(struct session *session, int status)
{
    if (session->status == STATUS_OK)
        session->status = status;
}

/* "a : 41.45%   (  97.7 KiB =>   40.5 KiB, a.zst)", as zstd's. */
static void print_summary(const char *label, uint64_t in, uint64_t out,
                          const char *target)
{
    char size_in[TEXT_SIZE_MAX], size_out[TEXT_SIZE_MAX], percent[32] = "";

    if (in != 0)
        snprintf(percent, sizeof(percent), "%.2f%%",
                 100 * (double)out / (double)in);
    fprintf(stderr, "%-20s :%7s   (%10s => %10s%s%s)\n", label, percent,
            text_size(size_in, in), text_size(size_out, out),
            target == NULL ? "" : ", ", target == NULL ? "" : target);
}

static void print_stats(const struct session *session, const char *name,
                        const struct outcome *outcome)
{
    const segzstd_stream_stats *stats = &outcome->stats;
    int level = session->args.stream.level;

    fprintf(stderr,
            "%s: in=%ju out=%ju segments=%ju splits=%ju jobs=%ju threads=%u "
            "level=%d wall_ns=%ju cpu_ns=%ju memory_peak=%ju\n",
            name, (uintmax_t)stats->bytes_in, (uintmax_t)stats->bytes_out,
            (uintmax_t)stats->segments, (uintmax_t)stats->splits,
            (uintmax_t)stats->jobs, session->compressor.threads,
            level == 0 ? 3 : level, (uintmax_t)outcome->wall_ns,
            (uintmax_t)stats->cpu_ns,
            (uintmax_t)compressor_memory_peak(&session->compressor));
}

static bool progress_is_wanted(const struct args *args)
{
    if (args->progress != ARGS_PROGRESS_AUTO)
        return args->progress == ARGS_PROGRESS_ON;
    return message_level >= LEVEL_DEFAULT && isatty(STDERR_FILENO);
}

/* Compresses an open input behind what the output has. */
static int compress(struct session *session, const struct input *input,
                    struct output *output)
{
    struct progress progress;
    struct outcome outcome;
    int status;

    progress_begin(&progress, progress_is_wanted(&session->args), input->name);
    status =
        compress_run(&session->compressor, input, output, &progress, &outcome);
    if (status != STATUS_OK)
        return status;
    session->done++;
    session->in += outcome.stats.bytes_in;
    session->out += outcome.stats.bytes_out;
    if (message_level >= LEVEL_DEFAULT)
        print_summary(input->name, outcome.stats.bytes_in,
                      outcome.stats.bytes_out, output->name);
    if (session->args.stats)
        print_stats(session, input->name, &outcome);
    return STATUS_OK;
}

static int remove_input(const char *path)
{
    if (unlink(path) == 0)
        return STATUS_OK;
    message_error("%s: compressed, but not removed: %s", path, strerror(errno));
    return STATUS_REFUSED;
}

/* Behind the frame: checks the input, completes the output, removes the
 * input. */
static int finish(struct session *session, const struct input *input,
                  struct output *output, const char *path)
{
    bool is_file = path != NULL && S_ISREG(input->stat.st_mode);
    bool removes = session->args.remove && is_file && output->path != NULL;
    bool is_whole = input_finish(input);
    int status = output_complete(output, is_file ? &input->stat : NULL);

    if (status != STATUS_OK)
        return status;
    if (!is_whole)
        return STATUS_READ;
    return removes ? remove_input(path) : STATUS_OK;
}

/* path NULL: stdin; target NULL: stdout. *broken: the target has a part of a
 * frame that nothing can follow. */
static int compress_one(struct session *session, const char *path,
                        const char *target, bool *broken)
{
    struct input input;
    struct output output;
    int status = input_open(&input, path, session->args.force);

    *broken = false;
    if (status != STATUS_OK)
        return status;
    status = output_open(&output, target, session->args.force, &input.stat);
    if (status == STATUS_OK) {
        status = compress(session, &input, &output);
        *broken = status != STATUS_OK;
        if (status == STATUS_OK)
            status = finish(session, &input, &output, path);
        else
            output_drop(&output);
    }
    input_close(&input);
    return status;
}

/* Each file to a file of its own, or all to stdout. */
static void compress_each(struct session *session)
{
    const struct args *args = &session->args;

    for (size_t i = 0; i < args->file_count; i++) {
        const char *path = args->files[i];
        bool broken, to_stdout = args->to_stdout || path == NULL;
        char *target = to_stdout ? NULL : output_name_of(path);
        int status;

        if (target == NULL && !to_stdout) {
            message_error("%s", strerror(errno));
            note_failure(session, STATUS_MEMORY);
            return;
        }
        status = compress_one(session, path, target, &broken);
        free(target);
        if (status != STATUS_OK)
            note_failure(session, status);
        if (broken && to_stdout)
            return;
    }
}

/* One frame behind the other in one file. */
static int join_files(struct session *session, struct output *output)
{
    const struct args *args = &session->args;

    for (size_t i = 0; i < args->file_count; i++) {
        struct input input;
        int status = input_open(&input, args->files[i], args->force);

        if (status != STATUS_OK) {
            note_failure(session, status);
            continue;
        }
        status = compress(session, &input, output);
        if (status == STATUS_OK && !input_finish(&input))
            note_failure(session, STATUS_READ);
        input_close(&input);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static bool may_join(const struct args *args)
{
    for (size_t i = 0; i < args->file_count; i++)
        if (output_is_file(args->output, args->files[i])) {
            message_error("%s is an input; not overwritten", args->output);
            return false;
        }
    if (args->remove)
        message_warn("the input is kept: its names are not in one output");
    if (args->force ||
        message_ask("%zu files go into %s, and decompress to one; proceed?",
                    args->file_count, args->output))
        return true;
    message_error("%s: not written, since several files would decompress to "
                  "one (-f does)",
                  args->output);
    return false;
}

static void compress_joined(struct session *session)
{
    struct output output;
    int status = STATUS_REFUSED;

    if (may_join(&session->args))
        status = output_open(&output, session->args.output, session->args.force,
                             NULL);
    if (status == STATUS_OK) {
        status = join_files(session, &output);
        if (status == STATUS_OK)
            status = output_complete(&output, NULL);
        else
            output_drop(&output);
    }
    if (status != STATUS_OK)
        note_failure(session, status);
}

static void compress_all(struct session *session)
{
    const struct args *args = &session->args;
    bool broken;

    if (args->output == NULL)
        compress_each(session);
    else if (args->file_count > 1)
        compress_joined(session);
    else
        note_failure(session, compress_one(session, args->files[0],
                                           args->output, &broken));
    if (session->done > 1 && message_level >= LEVEL_DEFAULT) {
        char label[32];

        snprintf(label, sizeof(label), "%zu files", session->done);
        print_summary(label, session->in, session->out, NULL);
    }
}

static void set_message_level(const struct args *args)
{
    message_level = LEVEL_DEFAULT + args->louder - args->quieter;
    if (args->to_stdout && message_level == LEVEL_DEFAULT)
        message_level = LEVEL_ERRORS;
}

static void print_version(FILE *file)
{
    fprintf(file, "segzstd %s, libzstd %s\n", segzstd_version(),
            segzstd_zstd_version());
}

static int compress_files(struct session *session)
{
    const struct args *args = &session->args;
    int status;

    set_message_level(args);
    cleanup_init();
    if (message_level >= LEVEL_VERBOSE)
        print_version(stderr);
    if (args->level_reduced)
        message_warn("levels above 19 need --ultra; 19 is taken");
    status = compressor_init(&session->compressor, &args->stream, args->threads,
                             args->dict);
    if (status == STATUS_OK)
        compress_all(session);
    else
        note_failure(session, status);
    compressor_free(&session->compressor);
    return session->status;
}

/* --help and --version are output: where it goes wrong, that is an error. */
static int print(void (*to)(FILE *file))
{
    to(stdout);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return STATUS_OK;
    message_error("stdout: %s", strerror(errno));
    return STATUS_WRITE;
}

/*
 * stdin, stdout and stderr that are closed are opened so that each use of them
 * fails. Else the next file or pipe would get their place.
 */
static void hold_standard_files(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    static struct session session;

    hold_standard_files();
    if (!args_parse(&session.args, argc, argv)) {
        message_error("%s", session.args.fault);
        return STATUS_REFUSED;
    }
    switch (session.args.action) {
    case ARGS_HELP:
        return print(help_print);
    case ARGS_VERSION:
        return print(print_version);
    case ARGS_COMPRESS:
        break;
    }
    return compress_files(&session);
}
