/*
 * output.c - the file that is written, or stdout.
 */
#include "output.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/uio.h>

#include "cleanup.h"
#include "message.h"

/* Until it is complete nobody else can read it. */
#define MODE_UNTIL_COMPLETE 0600
#define MODE_OF_NEW 0666

#define SUFFIX ".zst"
#define TEMPORARY_NAME ".segzstd.XXXXXX"
#define VECTORS_MAX 16

static char *join(const char *first, size_t first_len, const char *second)
{
    size_t second_len = strlen(second);
    char *text = malloc(first_len + second_len + 1);

    if (text != NULL) {
        memcpy(text, first, first_len);
        memcpy(text + first_len, second, second_len + 1);
    }
    return text;
}

char *output_name_of(const char *path)
{
    return join(path, strlen(path), SUFFIX);
}

static int fail(const struct output *output, int status)
{
    message_error("%s: %s", output->name, strerror(errno));
    return status;
}

static int open_stdout(struct output *output, bool force)
{
    output->name = "stdout";
    if (!force && isatty(STDOUT_FILENO)) {
        message_error("stdout is a terminal; compressed data is not written "
                      "to it (-f does)");
        return STATUS_REFUSED;
    }
    output->fd = STDOUT_FILENO;
    return STATUS_OK;
}

/* A device or pipe is written to as it is, and stays. */
static int open_special(struct output *output, bool force)
{
    output->fd = open(output->path, O_WRONLY | O_CLOEXEC);
    if (output->fd < 0)
        return fail(output, STATUS_REFUSED);
    if (!force && isatty(output->fd)) {
        message_error("%s is a terminal; compressed data is not written to it",
                      output->name);
        return STATUS_REFUSED;
    }
    return STATUS_OK;
}

/* False, with errno, if that did not work. */
static bool open_new(struct output *output)
{
    cleanup_hold_signals();
    output->fd = open(output->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                      MODE_UNTIL_COMPLETE);
    if (output->fd >= 0) {
        output->is_ours = true;
        cleanup_guard(output->path);
    }
    cleanup_let_signals();
    return output->fd >= 0;
}

static int open_temporary(struct output *output)
{
    const char *slash = strrchr(output->path, '/');
    size_t folder_len = slash == NULL ? 0 : (size_t)(slash + 1 - output->path);

    output->temporary = join(output->path, folder_len, TEMPORARY_NAME);
    if (output->temporary == NULL)
        return fail(output, STATUS_MEMORY);
    cleanup_hold_signals();
    output->fd = mkstemp(output->temporary);
    if (output->fd >= 0) {
        output->is_ours = true;
        cleanup_guard(output->temporary);
    }
    cleanup_let_signals();
    return output->fd >= 0 ? STATUS_OK : fail(output, STATUS_REFUSED);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool output_is_file(const char *path, const char *other)
{
    struct stat a, b;

    if (stat(path, &a) != 0 || !S_ISREG(a.st_mode))
        return false;
    return (other != NULL ? stat(other, &b) : fstat(STDIN_FILENO, &b)) == 0 &&
           is_same_file(&a, &b);
}

/* As /dev/stdout is, where that goes to a file. */
static bool is_stdout(const struct stat *file)
{
    struct stat out;

    return fstat(STDOUT_FILENO, &out) == 0 && is_same_file(file, &out);
}

/* The name is taken, by `old` unless that is a link to nowhere. */
static int open_over(struct output *output, bool force,
                     const struct stat *source)
{
    struct stat old;
    bool exists = stat(output->path, &old) == 0;

    if (exists && S_ISDIR(old.st_mode)) {
        message_error("%s is a directory", output->name);
        return STATUS_REFUSED;
    }
    if (exists && !S_ISREG(old.st_mode))
        return open_special(output, force);
    if (exists && source != NULL && is_same_file(&old, source)) {
        message_error("%s is the input; not overwritten", output->name);
        return STATUS_REFUSED;
    }
    if (exists && is_stdout(&old)) {
        output->fd = STDOUT_FILENO;
        free(output->path);
        output->path = NULL;
        return STATUS_OK;
    }
    if (!force &&
        !message_ask("%s already exists; overwrite it?", output->name)) {
        message_error("%s already exists; not overwritten (-f does)",
                      output->name);
        return STATUS_REFUSED;
    }
    return open_temporary(output);
}

static int open_file(struct output *output, const char *path, bool force,
                     const struct stat *source)
{
    output->name = path;
    output->path = join(path, strlen(path), "");
    if (output->path == NULL)
        return fail(output, STATUS_MEMORY);
    if (open_new(output))
        return STATUS_OK;
    return errno == EEXIST ? open_over(output, force, source)
                           : fail(output, STATUS_REFUSED);
}

int output_open(struct output *output, const char *path, bool force,
                const struct stat *source)
{
    int status;

    *output = (struct output){.fd = -1};
    status = path == NULL ? open_stdout(output, force)
                          : open_file(output, path, force, source);
    if (status != STATUS_OK)
        output_drop(output);
    return status;
}

/* stdout may be a pipe that somebody else has made non-blocking. */
static void wait_for_room(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};

    poll(&poll_fd, 1, -1);
}

int64_t output_write(struct output *output, const segzstd_vec *vec,
                     size_t count)
{
    struct iovec iov[VECTORS_MAX];
    ssize_t written;

    if (count > VECTORS_MAX)
        count = VECTORS_MAX;
    for (size_t i = 0; i < count; i++)
        iov[i] = (struct iovec){(void *)vec[i].base, vec[i].len};
    for (;;) {
        written = writev(output->fd, iov, (int)count);
        if (written >= 0)
            return written;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            wait_for_room(output->fd);
        else if (errno != EINTR)
            break;
    }
    output->write_errno = errno;
    return -1;
}

/*
 * What cannot be kept is no error, but never lets others see more: where the
 * group is not the input's, it has no more rights than everybody.
 */
static void copy_attributes(int fd, const struct stat *source)
{
    struct timespec times[2] = {source->st_atim, source->st_mtim};
    mode_t mode = source->st_mode & 0777;

    if (fchown(fd, source->st_uid, source->st_gid) != 0 &&
        fchown(fd, (uid_t)-1, source->st_gid) != 0)
        mode &= 0707 | (mode & 0007) << 3;
    if (fchmod(fd, mode) != 0)
        message_warn("the mode of a file could not be kept: %s",
                     strerror(errno));
    futimens(fd, times);
}

/* What the user's umask leaves, which can be asked for in no other way. */
static void set_mode_of_new(int fd)
{
    mode_t mask = umask(0);

    umask(mask);
    fchmod(fd, MODE_OF_NEW & ~mask);
}

static int close_file(struct output *output)
{
    int result = close(output->fd);

    output->fd = -1;
    return result == 0 ? STATUS_OK : fail(output, STATUS_WRITE);
}

static int put_in_place(struct output *output)
{
    int status = STATUS_OK;

    cleanup_hold_signals();
    if (output->temporary != NULL &&
        rename(output->temporary, output->path) != 0) {
        status = fail(output, STATUS_WRITE);
    } else {
        cleanup_guard(NULL);
        output->is_ours = false;
    }
    cleanup_let_signals();
    return status;
}

int output_complete(struct output *output, const struct stat *source)
{
    int status = STATUS_OK;

    if (output->is_ours && source != NULL)
        copy_attributes(output->fd, source);
    else if (output->is_ours)
        set_mode_of_new(output->fd);
    if (output->path != NULL)
        status = close_file(output);
    if (status == STATUS_OK && output->is_ours)
        status = put_in_place(output);
    output_drop(output);
    return status;
}

void output_drop(struct output *output)
{
    if (output->fd > STDERR_FILENO)
        close(output->fd);
    if (output->is_ours) {
        cleanup_hold_signals();
        unlink(output->temporary != NULL ? output->temporary : output->path);
        cleanup_guard(NULL);
        cleanup_let_signals();
    }
    free(output->temporary);
    free(output->path);
    *output = (struct output){.fd = -1};
}
