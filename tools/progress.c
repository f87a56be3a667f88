/*
 * progress.c - the line that is rewritten on a terminal.
 */
#include "progress.h"

#include <sys/ioctl.h>
#include <time.h>

#include "cleanup.h"

#define NS_PER_SECOND UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

/* Ten lines a second are as many as anyone can read. */
#define INTERVAL_NS (100 * NS_PER_MS)

#define COLUMNS_DEFAULT 80
#define LINE_MAX_BYTES 512

const char *text_size(char text[TEXT_SIZE_MAX], uint64_t bytes)
{
    static const char *const units[] = {"B",   "KiB", "MiB", "GiB",
                                        "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    int digits;

    while (value >= 1024) {
        value /= 1024;
        unit++;
    }
    digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(text, TEXT_SIZE_MAX, "%.*f %s", digits, value, units[unit]);
    return text;
}

const char *text_seconds(char text[TEXT_SIZE_MAX], uint64_t seconds)
{
    uint64_t minutes = seconds / 60, hours = minutes / 60;

    if (hours == 0)
        snprintf(text, TEXT_SIZE_MAX, "%ju:%02ju", (uintmax_t)minutes,
                 (uintmax_t)(seconds % 60));
    else
        snprintf(text, TEXT_SIZE_MAX, "%ju:%02ju:%02ju", (uintmax_t)hours,
                 (uintmax_t)(minutes % 60), (uintmax_t)(seconds % 60));
    return text;
}

/* Adds text behind what is there; cut off at `max`. */
#define ADD(text, max, ...)                                                    \
  snprintf((text) + strlen(text), (max)-strlen(text), __VA_ARGS__)

void progress_text(char *text, size_t max, const struct progress_state *state)
{
    char size[TEXT_SIZE_MAX];
    bool known = state->total != SEGZSTD_SIZE_UNKNOWN && state->total != 0;
    double seconds = (double)state->elapsed_ns / (double)NS_PER_SECOND;
    double speed = seconds > 0 ? (double)state->in / seconds : 0;

    snprintf(text, max, "%s", text_size(size, state->in));
    if (known) {
        ADD(text, max, " of %s", text_size(size, state->total));
        ADD(text, max, ", %2.0f%%",
            100 * (double)state->in / (double)state->total);
    }
    if (state->out != 0)
        ADD(text, max, ", ratio %.2f", (double)state->in / (double)state->out);
    if (speed > 0)
        ADD(text, max, ", %s/s", text_size(size, (uint64_t)speed));
    if (known && speed > 0)
        ADD(text, max, ", %s left",
            text_seconds(
                size,
                (uint64_t)((double)(state->total - state->in) / speed + 0.5)));
}

uint64_t progress_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

void progress_begin(struct progress *progress, bool enabled, const char *name)
{
    uint64_t now_ns = progress_now_ns();

    *progress = (struct progress){.enabled = enabled,
                                  .name = name,
                                  .start_ns = now_ns,
                                  .next_ns = now_ns + INTERVAL_NS};
}

int progress_due_ms(const struct progress *progress, uint64_t now_ns)
{
    if (!progress->enabled)
        return -1;
    if (now_ns >= progress->next_ns)
        return 0;
    return (int)((progress->next_ns - now_ns) / NS_PER_MS + 1);
}

static size_t terminal_columns(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return COLUMNS_DEFAULT;
    return size.ws_col;
}

/* Writes over the line of before. The last column stays free, for some
 * terminals begin a new line there. */
static void show(struct progress *progress, const char *text)
{
    char line[LINE_MAX_BYTES];
    size_t columns = terminal_columns(), width;
    int left = (int)columns - 1 - (int)strlen(text) - 2;

    if (left > 0)
        snprintf(line, sizeof(line), "%.*s: %s", left, progress->name, text);
    else
        snprintf(line, sizeof(line), "%.*s", (int)columns - 1, text);
    width = strlen(line);
    cleanup_line_open(true);
    fprintf(stderr, "\r%s%*s", line,
            width < progress->width ? (int)(progress->width - width) : 0, "");
    fflush(stderr);
    progress->width = width;
}

void progress_update(struct progress *progress, uint64_t now_ns, uint64_t total,
                     uint64_t in, uint64_t out)
{
    struct progress_state state = {total, in, out, now_ns - progress->start_ns};
    char text[128];

    if (!progress->enabled || now_ns < progress->next_ns)
        return;
    progress_text(text, sizeof(text), &state);
    show(progress, text);
    progress->next_ns = now_ns + INTERVAL_NS;
}

void progress_end(struct progress *progress)
{
    if (progress->width == 0)
        return;
    fprintf(stderr, "\r%*s\r", (int)progress->width, "");
    fflush(stderr);
    progress->width = 0;
    cleanup_line_open(false);
}
