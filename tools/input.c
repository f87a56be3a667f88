/*
 * input.c - a file to be compressed, or stdin.
 */
#include "input.h"

#include <fcntl.h>

#include "message.h"

/* A symbolic link is left out unless it leads to a pipe, as the names do that a
 * shell makes for <(command). */
static bool is_unwanted_link(const char *path, const struct stat *target)
{
    struct stat link;

    return lstat(path, &link) == 0 && S_ISLNK(link.st_mode) &&
           !S_ISFIFO(target->st_mode);
}

/* Why a file of this kind is left out; NULL if it is not. */
static const char *refuse_kind(const char *path, const struct stat *stat,
                               bool force)
{
    if (S_ISDIR(stat->st_mode))
        return "is a directory -- ignored";
    if (!force && is_unwanted_link(path, stat))
        return "is a symbolic link -- ignored (-f follows it)";
    if (S_ISBLK(stat->st_mode) && !force)
        return "is a block device -- ignored (-f reads it)";
    if (S_ISREG(stat->st_mode) || S_ISFIFO(stat->st_mode) ||
        S_ISBLK(stat->st_mode))
        return NULL;
    return "is not a regular file -- ignored";
}

static int open_path(struct input *input, const char *path, bool force)
{
    const char *reason;

    input->name = path;
    if (stat(path, &input->stat) != 0) {
        message_error("%s: %s -- ignored", path, strerror(errno));
        return STATUS_REFUSED;
    }
    reason = refuse_kind(path, &input->stat, force);
    if (reason != NULL) {
        message_error("%s %s", path, reason);
        return STATUS_REFUSED;
    }
    input->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (input->fd < 0 || fstat(input->fd, &input->stat) != 0) {
        message_error("%s: %s -- ignored", path, strerror(errno));
        return STATUS_REFUSED;
    }
    return STATUS_OK;
}

static int open_stdin(struct input *input, bool force)
{
    input->name = "stdin";
    if (!force && isatty(STDIN_FILENO)) {
        message_error("stdin is a terminal (-f reads it); "
                      "see segzstd --help for how to name files");
        return STATUS_REFUSED;
    }
    input->fd = STDIN_FILENO;
    if (fstat(input->fd, &input->stat) != 0) {
        message_error("stdin: %s", strerror(errno));
        return STATUS_READ;
    }
    return STATUS_OK;
}

/* A file of 0 bytes is read like a pipe, since those of /proc say 0 too. So is
 * one whose offset is behind its end. */
static void find_range(struct input *input)
{
    off_t begin;

    if (!S_ISREG(input->stat.st_mode))
        return;
    begin = lseek(input->fd, 0, SEEK_CUR);
    if (begin < 0 || begin >= input->stat.st_size)
        return;
    input->is_regular = true;
    input->begin = (uint64_t)begin;
    input->size = (uint64_t)(input->stat.st_size - begin);
}

int input_open(struct input *input, const char *path, bool force)
{
    int status;

    *input = (struct input){.fd = -1};
    status =
        path == NULL ? open_stdin(input, force) : open_path(input, path, force);
    if (status == STATUS_OK)
        find_range(input);
    else
        input_close(input);
    return status;
}

bool input_finish(const struct input *input)
{
    struct stat now;

    if (!input->is_regular)
        return true;
    lseek(input->fd, input->stat.st_size, SEEK_SET);
    if (fstat(input->fd, &now) != 0 || now.st_size <= input->stat.st_size)
        return true;
    message_error("%s grew while it was read; the output has its first %ju "
                  "bytes",
                  input->name, (uintmax_t)input->size);
    return false;
}

void input_close(struct input *input)
{
    if (input->fd > STDIN_FILENO)
        close(input->fd);
    input->fd = -1;
}
