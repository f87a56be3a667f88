/*
 * main.c - an HTTP/1.1 load client: small requests at a constant rate, and what
 * large responses beside them do to their latency; slow readers; streams of
 * events. One thread, one epoll.
 *
 * It needs nothing but Linux and libc:  cc -O2 -o segzstd_load *.c
 * With HdrHistogram:  cc -O2 -DHAVE_HDR -o segzstd_load *.c -lhdr_histogram
 *
 * Latencies count from the time at which a request was due, not from when it
 * could be sent: a server that stalls for a second also delays all requests of
 * that second, and a client that then waits politely would not see it.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "args.h"
#include "events.h"
#include "hgrm.h"
#include "limit.h"
#include "load.h"
#include "report.h"
#include "stream.h"
#include "worker.h"

/* Each slow reader reads once in this time; they take turns evenly. */
#define SLOW_PERIOD_NS 500000000u

/* Deadlines of answers are looked at so often. */
#define CHECK_PERIOD_NS 50000000u

/* Read at most so much of one answer before looking at the others: it takes
 * some 30 us. */
#define BUF_SIZE (128u * 1024u)

/* Ends the wait when something is due. */
struct timer {
    struct source source;
    int fd;
};

struct run {
    struct load load;
    struct stream streams[STREAMS];
    struct events events;
    struct timer timer;
    FILE *json;          /* NULL: not written */
    struct hgrm hgrm;    /* files for distributions */
    uint64_t start_ns;   /* the first request that is not small */
    uint64_t counted_ns; /* the first one that counts */
    uint64_t end_ns;     /* no request after it */
    uint64_t check_ns;   /* the next look at deadlines */
    uint64_t slow_ns;    /* the next slow reader's turn */
    unsigned slow_next;

    struct worker first_look; /* at the worker, before all */
    bool counting;            /* the warm-up is over; below is of its end */
    struct rusage usage;
    struct worker worker;
    uint64_t stopped_ns; /* when counting ended; below is of that time */
    struct rusage usage_then;
    struct worker worker_then;
};

static void look_at_worker(struct worker *worker, int pid)
{
    char what[64];

    if (pid != 0 && !worker_look(worker, pid)) {
        snprintf(what, sizeof(what), "process %d", pid);
        die(what);
    }
}

/* Woken by an answer, we run at once: what a busy server keeps us from is no
 * part of its latency. */
static void become_realtime(void)
{
    struct sched_param param = {.sched_priority = 1};

    if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) != 0)
        die("--realtime, for which one must be root");
}

static void start_counting(struct run *run)
{
    run->counting = true;
    run->events.counting = true;
    look_at_worker(&run->worker, run->load.args->pid);
    getrusage(RUSAGE_SELF, &run->usage);
}

static void stop_counting(struct run *run)
{
    run->stopped_ns = now_ns();
    look_at_worker(&run->worker_then, run->load.args->pid);
    getrusage(RUSAGE_SELF, &run->usage_then);
    if (run->events.streams != NULL)
        events_give_up(&run->events, run->stopped_ns);
}

static void end_streams(struct run *run)
{
    for (int i = 0; i < STREAMS; i++)
        run->streams[i].ended = true;
}

/* One slow reader after the other, each once in the period. */
static void step_slow(struct run *run, uint64_t now)
{
    struct stream *stream = &run->streams[SLOW];
    const struct stream_args *args = stream->args;
    size_t n = (size_t)(args->read_rate * SLOW_PERIOD_NS / 1e9) + 1;

    while (run->slow_ns <= now) {
        conn_step(&run->load, &stream->conns[run->slow_next], n);
        run->slow_next = (run->slow_next + 1) % args->connections;
        run->slow_ns += SLOW_PERIOD_NS / args->connections;
    }
}

static void check_timeouts(struct run *run, uint64_t now)
{
    if (now < run->check_ns)
        return;
    run->check_ns = now + CHECK_PERIOD_NS;
    for (int i = SMALL; i <= LARGE; i++) {
        if (run->streams[i].conns != NULL)
            stream_check_timeouts(&run->load, &run->streams[i], now);
    }
    if (run->events.streams != NULL)
        events_check_timeouts(&run->events, now);
}

/* Everything whose time has come. Returns the time of what comes next. */
static uint64_t do_due(struct run *run)
{
    uint64_t now = now_ns();
    uint64_t next;

    if (!run->counting && now >= run->counted_ns) {
        start_counting(run);
        now = now_ns();
    }
    if (now >= run->end_ns)
        end_streams(run);
    if (run->streams[SMALL].conns != NULL)
        stream_dispatch(&run->load, &run->streams[SMALL], now);
    if (run->streams[LARGE].conns != NULL && now >= run->start_ns)
        stream_dispatch(&run->load, &run->streams[LARGE], now);
    if (run->streams[SLOW].conns != NULL)
        step_slow(run, now);
    if (run->events.streams != NULL)
        events_dispatch(&run->events, now);
    check_timeouts(run, now);

    next = run->check_ns;
    if (now < run->start_ns && run->start_ns < next)
        next = run->start_ns;
    if (!run->counting && run->counted_ns < next)
        next = run->counted_ns;
    if (run->streams[SLOW].conns != NULL && run->slow_ns < next)
        next = run->slow_ns;
    if (events_next_due(&run->events) < next)
        next = events_next_due(&run->events);
    for (int i = SMALL; i <= LARGE; i++) {
        if (run->streams[i].conns != NULL &&
            stream_next_due(&run->streams[i]) < next)
            next = stream_next_due(&run->streams[i]);
    }
    return next;
}

static bool is_over(const struct run *run)
{
    bool busy = events_are_busy(&run->events);
    bool more = run->events.open > 0;

    for (int i = SMALL; i <= LARGE; i++) {
        const struct stream *stream = &run->streams[i];
        if (stream->conns == NULL)
            continue;
        busy |= stream_is_busy(stream);
        more |= !stream_is_spent(stream);
    }
    if (run->load.hopeless)
        return true;
    if (now_ns() >= run->end_ns)
        return !busy ||
               now_ns() >=
                   run->end_ns + (uint64_t)(run->load.args->timeout_s * 1e9);
    return !busy && !more && run->streams[SLOW].conns == NULL;
}

static void take_ticks(struct load *load, struct source *source)
{
    uint64_t ticks;

    (void)load;
    if (read(((struct timer *)source)->fd, &ticks, sizeof(ticks)) < 0 &&
        errno != EAGAIN)
        die("timer");
}

static void wait_for_events(struct run *run, uint64_t next)
{
    struct epoll_event events[64];
    struct itimerspec at = {{0}, {0}};
    int n;

    at.it_value.tv_sec = (time_t)(next / 1000000000u);
    at.it_value.tv_nsec = (long)(next % 1000000000u);
    if (timerfd_settime(run->timer.fd, TFD_TIMER_ABSTIME, &at, NULL) != 0)
        die("timer");
    n = epoll_wait(run->load.epoll, events, 64, -1);
    if (n < 0 && errno != EINTR)
        die("epoll");

    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < n; i++) {
            struct source *source = events[i].data.ptr;
            if (source->urgent == (pass == 0))
                source->ready(&run->load, source);
        }
    }
}

/* NULL if no file is wanted. */
static FILE *create(const char *path)
{
    FILE *file = NULL;

    if (path != NULL && (file = fopen(path, "w")) == NULL)
        die(path);
    return file;
}

static void finish(FILE *file, const char *path)
{
    if (file != NULL && fclose(file) != 0)
        die(path);
}

/* Small requests begin earlier than the others by so much that each of their
 * connections has been used once: a server that accepts one connection in each
 * turn of its loop would otherwise be measured by that. At most 1 s. */
static uint64_t lead_ns(const struct args *args)
{
    const struct stream_args *small = &args->streams[SMALL];
    double seconds = small->connections / small->rate;

    if (small->path == NULL)
        return 0;
    return (uint64_t)(1e9 * (seconds < 1 ? seconds : 1));
}

static void add_distributions(struct run *run)
{
    const char *prefix = run->load.args->hgrm;

    for (int i = 0; i < STREAMS && prefix != NULL; i++) {
        struct stream *stream = &run->streams[i];
        if (stream->conns == NULL)
            continue;
        hgrm_add(&run->hgrm, prefix, stream->args->name, "first-byte",
                 &stream->first);
        hgrm_add(&run->hgrm, prefix, stream->args->name, "last-byte",
                 &stream->last);
        hgrm_add(&run->hgrm, prefix, stream->args->name, "sent-late",
                 &stream->lag);
    }
    if (prefix != NULL && run->events.streams != NULL) {
        hgrm_add(&run->hgrm, prefix, "event", "latency", &run->events.latency);
        hgrm_add(&run->hgrm, prefix, "event", "sent-late", &run->events.lag);
    }
}

/* The results, epoll, what is read of /proc, ... */
#define OTHER_FILES 40

static unsigned long files_of(const struct args *args)
{
    unsigned long files = OTHER_FILES + 2ul * args->events.streams;

    for (int i = 0; i < STREAMS; i++) {
        if (args->streams[i].path != NULL)
            files += args->streams[i].connections;
    }
    return files;
}

static void set_up(struct run *run, const struct args *args)
{
    memset(run, 0, sizeof(*run));
    if (args->realtime)
        become_realtime();
    limit_need_files(files_of(args));
    run->load.args = args;
    run->load.buf_size = BUF_SIZE;
    run->load.buf = malloc(BUF_SIZE);
    run->load.epoll = epoll_create1(EPOLL_CLOEXEC);
    run->timer.source.ready = take_ticks;
    run->timer.source.urgent = true;
    run->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (run->load.buf == NULL || run->load.epoll < 0 || run->timer.fd < 0 ||
        !source_add(&run->load, &run->timer.source, run->timer.fd, EPOLLIN))
        die("start");
    run->json = create(args->json);
    run->load.samples = create(args->samples);
    if (run->load.samples != NULL) {
        fputs("stream,due_us,first_byte_us,last_byte_us,body_bytes\n",
              run->load.samples);
    }
    look_at_worker(&run->first_look, args->pid);

    for (int i = 0; i < STREAMS; i++)
        stream_init(&run->streams[i], args, &args->streams[i]);
    events_init(&run->events, &run->load);
    add_distributions(run);
}

/* Before all else: the streams of events are there. */
static void open_events(struct run *run)
{
    uint64_t start_ns = now_ns();

    while (events_open(&run->events)) {
        check_timeouts(run, now_ns());
        wait_for_events(run, run->check_ns);
    }
    run->events.open_s = (double)(now_ns() - start_ns) / 1e9;
}

/* They end as they should, which counts no more but has to be right. */
static void end_events(struct run *run)
{
    while (events_end(&run->events) && !run->load.hopeless) {
        check_timeouts(run, now_ns());
        wait_for_events(run, run->check_ns);
    }
}

static void start_clock(struct run *run)
{
    const struct args *args = run->load.args;

    run->streams[SMALL].epoch_ns = now_ns();
    run->start_ns = run->streams[SMALL].epoch_ns + lead_ns(args);
    run->streams[SMALL].lead_count =
        (uint64_t)((double)lead_ns(args) / 1e9 * args->streams[SMALL].rate);
    run->counted_ns = run->start_ns + (uint64_t)(args->warmup_s * 1e9);
    run->end_ns = run->counted_ns + (uint64_t)(args->seconds * 1e9);
    run->slow_ns = run->start_ns;
    run->streams[LARGE].epoch_ns = run->start_ns;
    run->streams[SLOW].epoch_ns = run->start_ns;
    run->events.epoch_ns = run->start_ns;
    run->events.end_ns = run->end_ns;
    run->events.counted_ns = run->counted_ns;
    for (int i = 0; i < STREAMS; i++)
        run->streams[i].counted_ns = run->counted_ns;
}

static double seconds_of(struct timeval after, struct timeval before)
{
    return (double)(after.tv_sec - before.tv_sec) +
           (double)(after.tv_usec - before.tv_usec) / 1e6;
}

static bool events_are_right(const struct events *events)
{
    return events->streams == NULL ||
           (events->faults.total == 0 && events->arrived == events->sent &&
            events->arrived > 0 && events->completed == events->args->streams);
}

/* What has no answer is counted. True if no request failed. */
static bool end_stream(struct stream *stream, uint64_t now)
{
    bool right = true;

    if (stream->conns == NULL)
        return true;
    if (stream->args->read_rate == 0) {
        stream_give_up(stream, now);
        right = stream->done > 0;
    }
    return right && stream->faults.total == 0 && stream->unfinished == 0;
}

/* To the last answer; to the end where none is to be waited for. */
static double counted_seconds(const struct run *run)
{
    uint64_t end = 0;

    for (int i = 0; i < STREAMS; i++) {
        if (run->streams[i].last_done_ns > end)
            end = run->streams[i].last_done_ns;
    }
    if (end < run->counted_ns || run->streams[SLOW].conns != NULL ||
        run->events.streams != NULL)
        end = run->stopped_ns;
    if (!run->counting || end < run->counted_ns)
        return 0;
    return (double)(end - run->counted_ns) / 1e9;
}

/* True if no request failed. */
static bool report(struct run *run)
{
    struct results results = {.args = run->load.args,
                              .streams = run->streams,
                              .events = &run->events,
                              .seconds = counted_seconds(run)};
    bool right = run->counting && events_are_right(&run->events);

    for (int i = 0; i < STREAMS; i++)
        right = end_stream(&run->streams[i], run->stopped_ns) && right;
    if (run->load.args->pid != 0) {
        worker_subtract(&run->worker_then, &run->worker);
        results.worker = &run->worker_then;
        results.first_rss_bytes = run->first_look.rss_bytes;
    }
    results.generator_user_s =
        seconds_of(run->usage_then.ru_utime, run->usage.ru_utime);
    results.generator_system_s =
        seconds_of(run->usage_then.ru_stime, run->usage.ru_stime);
    report_text(stdout, &results);
    if (run->json != NULL)
        report_json(run->json, &results);
    if (run->load.hopeless)
        fputs("segzstd_load: given up, no connection is accepted\n", stderr);
    else if (!run->counting)
        fputs("segzstd_load: all was over during the warm-up\n", stderr);
    return right;
}

int main(int argc, char **argv)
{
    static struct run run; /* with its tables of threads, some 40 KiB */
    struct args args;
    bool help, right;

    if (!args_parse(&args, argc, argv, &help))
        return 2;
    if (help)
        return 0;
    set_up(&run, &args);
    if (run.events.streams != NULL)
        open_events(&run);
    start_clock(&run);
    while (!is_over(&run))
        wait_for_events(&run, do_due(&run));
    stop_counting(&run);
    if (run.events.streams != NULL)
        end_events(&run);
    right = report(&run);
    hgrm_write(&run.hgrm);

    for (int i = 0; i < STREAMS; i++)
        stream_free(&run.streams[i]);
    events_free(&run.events);
    finish(run.json, args.json);
    finish(run.load.samples, args.samples);
    close(run.timer.fd);
    close(run.load.epoll);
    free(run.load.buf);
    return right ? 0 : 1;
}
