/*
 * events.c - see events.h.
 */
#define _GNU_SOURCE 1

#include "events.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* So many streams begin at the same time: no flood of connections. */
#define BEGINNING_MAX 64

/* So many end at the same time. */
#define ENDING_MAX 256

/* So many events are written before answers are looked at. */
#define BATCH 64

static void stream_ready(struct load *load, struct source *source);

void events_init(struct events *events, struct load *load)
{
    const struct event_args *args = &load->args->events;

    memset(events, 0, sizeof(*events));
    events->load = load;
    events->args = args;
    if (args->streams == 0)
        return;
    events->streams = calloc(args->streams, sizeof(*events->streams));
    if (events->streams == NULL)
        die("event streams");
    for (unsigned i = 0; i < args->streams; i++) {
        events->streams[i].source.ready = stream_ready;
        events->streams[i].events = events;
        events->streams[i].fd = -1;
    }
    origin_open(&events->origin, load);
}

static unsigned index_of(const struct event_stream *stream)
{
    return (unsigned)(stream - stream->events->streams);
}

/* From one state to another, with what is counted of them. */
static void change_state(struct event_stream *stream, enum event_state state)
{
    struct events *events = stream->events;
    enum event_state old = stream->state;

    events->beginning -= old == EVENT_CONNECTING || old == EVENT_BEGINNING;
    events->open -= old == EVENT_OPEN;
    events->ending -= old == EVENT_ENDING;
    events->beginning += state == EVENT_CONNECTING || state == EVENT_BEGINNING;
    events->open += state == EVENT_OPEN;
    events->ending += state == EVENT_ENDING;
    stream->state = state;
}

static void close_stream(struct event_stream *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = -1;
    free(stream->head);
    stream->head = NULL;
    change_state(stream, EVENT_NONE);
}

void events_free(struct events *events)
{
    for (unsigned i = 0; events->streams != NULL && i < events->args->streams;
         i++) {
        close_stream(&events->streams[i]);
        free(events->streams[i].written);
    }
    if (events->streams != NULL)
        origin_close(&events->origin);
    free(events->streams);
    samples_free(&events->latency);
    samples_free(&events->lag);
}

/* Events that have not arrived count with the time that was waited for them, as
 * requests without an answer do. */
static void give_up_waiting(struct event_stream *stream, uint64_t now)
{
    struct events *events = stream->events;

    for (unsigned i = 0; i < stream->waiting; i++) {
        if (events->counting && stream->written[i] >= events->counted_ns)
            samples_add(&events->latency, now - stream->written[i]);
    }
    events->waiting -= stream->waiting;
    stream->waiting = 0;
}

__attribute__((format(printf, 3, 4))) static void fail(
    struct event_stream *stream, enum fault fault, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    faults_add(&stream->events->faults, fault, format, list);
    va_end(list);
    give_up_waiting(stream, now_ns());
    close_stream(stream);
}

static void fail_connect(struct event_stream *stream, int error)
{
    struct load *load = stream->events->load;

    load_count_connect(load, false);
    fail(stream, FAULT_CONNECT, "cannot connect to %s: %s", load->args->host,
         strerror(error));
}

static void start_connect(struct event_stream *stream)
{
    struct load *load = stream->events->load;
    int one = 1;

    change_state(stream, EVENT_CONNECTING);
    stream->begun_ns = now_ns();
    stream->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (stream->fd < 0) {
        fail_connect(stream, errno);
        return;
    }
    setsockopt(stream->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if ((connect(stream->fd, (const struct sockaddr *)&load->args->server,
                 sizeof(load->args->server)) != 0 &&
         errno != EINPROGRESS) ||
        !source_add(load, &stream->source, stream->fd, EPOLLOUT))
        fail_connect(stream, errno);
}

static void send_request(struct event_stream *stream)
{
    const struct events *events = stream->events;
    char request[2048];
    int len =
        snprintf(request, sizeof(request),
                 "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: segzstd_load\r\n"
                 "Accept: text/event-stream\r\nAccept-Encoding: "
                 "%s\r\n" ORIGIN_STREAM_HEADER ": %u\r\n\r\n",
                 events->args->path, events->load->args->host,
                 events->args->encoding, index_of(stream));

    stream->head = malloc(HTTP_HEAD_MAX);
    if (stream->head == NULL)
        die("the head of a response");
    http_start(&stream->response, stream->head);
    change_state(stream, EVENT_BEGINNING);
    if (send(stream->fd, request, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) !=
        len)
        fail(stream, FAULT_CLOSED, "request not sent");
}

static void end_connect(struct event_stream *stream)
{
    struct load *load = stream->events->load;
    socklen_t len = sizeof(int);
    int error = 0;

    if (getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 ||
        (error == 0 &&
         !source_change(load, &stream->source, stream->fd, EPOLLIN)))
        error = errno;
    if (error != 0) {
        fail_connect(stream, error);
        return;
    }
    load_count_connect(load, true);
    send_request(stream);
}

bool events_open(struct events *events)
{
    while (events->tried < events->args->streams &&
           events->beginning < BEGINNING_MAX && !events->load->hopeless)
        start_connect(&events->streams[events->tried++]);
    return events->beginning > 0 && !events->load->hopeless;
}

static bool is_coded(const struct events *events)
{
    return strcmp(events->args->encoding, "identity") != 0;
}

/* Is the head what was asked for? If not, the stream has failed. */
static bool check_head(struct event_stream *stream)
{
    const struct http_response *response = &stream->response;
    const struct event_args *args = stream->events->args;

    if (response->status != 200) {
        fail(stream, FAULT_STATUS, "status %d of %s", response->status,
             args->path);
        return false;
    }
    if (strcmp(response->encoding[0] ? response->encoding : "identity",
               args->encoding) != 0) {
        fail(stream, FAULT_ENCODING, "Content-Encoding \"%s\" of %s, not %s",
             response->encoding, args->path, args->encoding);
        return false;
    }
    return true;
}

/* Bytes enough are here to say that it is open. */
static void begin(struct event_stream *stream)
{
    static const unsigned char zstd_magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
    const struct http_response *response = &stream->response;
    const struct event_args *args = stream->events->args;

    if (response->body_bytes < sizeof(zstd_magic))
        return;
    if (strcmp(args->encoding, "zstd") == 0 &&
        memcmp(response->start, zstd_magic, sizeof(zstd_magic)) != 0) {
        fail(stream, FAULT_ENCODING, "%s does not begin as a zstd frame",
             args->path);
        return;
    }
    stream->count = 1;
    stream->events->opened++;
    change_state(stream, EVENT_OPEN);
}

/* How many of the events that wait have arrived, now that bytes came: of what
 * is coded that cannot be counted, but bytes come when an event makes them. */
static unsigned count_arrived(const struct event_stream *stream)
{
    const struct events *events = stream->events;
    uint64_t arrived, before = stream->count - stream->waiting;

    if (is_coded(events))
        return stream->waiting;
    arrived = stream->response.body_bytes / events->args->bytes;
    if (arrived > stream->count) /* too many, which is found at the end */
        return stream->waiting;
    return arrived > before ? (unsigned)(arrived - before) : 0;
}

static void take_events(struct event_stream *stream, uint64_t now)
{
    struct events *events = stream->events;
    unsigned arrived = count_arrived(stream);

    if (arrived == 0)
        return;
    for (unsigned i = 0; i < arrived; i++) {
        if (!events->counting || stream->written[i] < events->counted_ns)
            continue;
        samples_add(&events->latency, now - stream->written[i]);
        events->arrived++;
        events->shared += i > 0;
    }
    stream->waiting -= arrived;
    events->waiting -= arrived;
    memmove(stream->written, stream->written + arrived,
            stream->waiting * sizeof(*stream->written));
}

/* Thousands of connections that wait for the end of their time would be in the
 * way of the next run. */
static void leave_no_trace(int fd)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

/* The response is over. */
static void end_response(struct event_stream *stream)
{
    const struct events *events = stream->events;
    const struct http_response *response = &stream->response;

    if (stream->state != EVENT_ENDING) {
        fail(stream, FAULT_CLOSED,
             "%s: the response ended after %" PRIu64
             " bytes, but not by the origin",
             events->args->path, response->body_bytes);
    } else if (!is_coded(events) &&
               response->body_bytes != stream->count * events->args->bytes) {
        fail(stream, FAULT_LENGTH, "%s: %" PRIu64 " bytes of %" PRIu64,
             events->args->path, response->body_bytes,
             stream->count * events->args->bytes);
    } else {
        stream->events->completed++;
        leave_no_trace(stream->fd);
        close_stream(stream);
    }
}

static void take_bytes(struct event_stream *stream, const char *bytes, size_t n)
{
    struct events *events = stream->events;
    struct http_response *response = &stream->response;
    uint64_t now = now_ns(), before = response->body_bytes;
    size_t used = http_read(response, bytes, n);

    if (events->counting) {
        events->wakeups++;
        events->received_bytes += used;
        events->body_bytes += response->body_bytes - before;
    }
    if (response->state == HTTP_BROKEN || used < n) {
        fail(stream, FAULT_HTTP, "%s: %s", events->args->path,
             used < n ? "bytes after the end" : response->error);
        return;
    }
    if (stream->head != NULL && response->state != HTTP_HEAD) {
        free(stream->head);
        stream->head = NULL;
        if (!check_head(stream))
            return;
    }
    if (stream->state == EVENT_BEGINNING)
        begin(stream);
    if (stream->state != EVENT_NONE && response->body_bytes > before)
        take_events(stream, now);
    if (stream->state != EVENT_NONE && response->state == HTTP_DONE)
        end_response(stream);
}

static void stream_ready(struct load *load, struct source *source)
{
    struct event_stream *stream = (struct event_stream *)source;
    ssize_t n;

    if (stream->state == EVENT_CONNECTING) {
        end_connect(stream);
        return;
    }
    if (stream->fd < 0)
        return;
    n = recv(stream->fd, load->buf, load->buf_size, MSG_DONTWAIT);
    if (n > 0)
        take_bytes(stream, load->buf, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        fail(stream, FAULT_CLOSED, "%s: connection %s after %" PRIu64 " bytes",
             stream->events->args->path, n == 0 ? "ended" : strerror(errno),
             stream->response.body_bytes);
}

uint64_t events_next_due(const struct events *events)
{
    const struct event_args *args = events->args;
    double per_second = args->rate * args->streams;
    uint64_t due_ns;

    if (events->open == 0)
        return UINT64_MAX;
    due_ns =
        events->epoch_ns + (uint64_t)((double)events->due / per_second * 1e9);
    return due_ns < events->end_ns ? due_ns : UINT64_MAX;
}

bool events_are_busy(const struct events *events)
{
    return events->waiting > 0 || events_next_due(events) != UINT64_MAX;
}

static void remember(struct event_stream *stream, uint64_t now)
{
    if (stream->waiting == stream->room) {
        unsigned room = stream->room > 0 ? 2 * stream->room : 4;
        uint64_t *written =
            realloc(stream->written, room * sizeof(*stream->written));
        if (written == NULL)
            die("events that wait");
        stream->written = written;
        stream->room = room;
    }
    stream->written[stream->waiting++] = now;
    stream->events->waiting++;
}

static void write_event(struct event_stream *stream, uint64_t due_ns)
{
    struct events *events = stream->events;
    uint64_t now = now_ns();
    const char *error = origin_send(&events->origin, index_of(stream));

    if (error != NULL) {
        fail(stream, FAULT_CLOSED, "%s", error);
        return;
    }
    stream->count++;
    remember(stream, now);
    if (events->counting) {
        events->sent++;
        samples_add(&events->lag, now - due_ns);
    }
}

/* The streams take turns, so that the events of each and of all are evenly
 * spread. */
void events_dispatch(struct events *events, uint64_t now)
{
    uint64_t due_ns;

    for (unsigned i = 0; i < BATCH && (due_ns = events_next_due(events)) <= now;
         i++) {
        struct event_stream *stream =
            &events->streams[events->due++ % events->args->streams];
        if (stream->state == EVENT_OPEN)
            write_event(stream, due_ns);
    }
}

void events_check_timeouts(struct events *events, uint64_t now)
{
    double timeout_s = events->load->args->timeout_s;
    uint64_t timeout_ns = (uint64_t)(timeout_s * 1e9);

    for (unsigned i = 0; i < events->tried; i++) {
        struct event_stream *stream = &events->streams[i];
        bool open = stream->state == EVENT_OPEN;
        uint64_t since = stream->begun_ns;
        if (stream->state == EVENT_NONE || (open && stream->waiting == 0))
            continue;
        if (open)
            since = stream->written[0];
        if (now > since && now - since >= timeout_ns)
            fail(stream, FAULT_TIMEOUT, "%s: %s in %g s", events->args->path,
                 open                            ? "an event did not arrive"
                 : stream->state == EVENT_ENDING ? "the response did not end"
                                                 : "no event arrived",
                 timeout_s);
    }
}

void events_give_up(struct events *events, uint64_t now)
{
    for (unsigned i = 0; i < events->tried; i++)
        give_up_waiting(&events->streams[i], now);
    events->counting = false;
}

bool events_end(struct events *events)
{
    while (events->asked_to_end < events->tried &&
           events->ending < ENDING_MAX) {
        struct event_stream *stream = &events->streams[events->asked_to_end++];
        if (stream->state != EVENT_OPEN)
            continue;
        stream->begun_ns = now_ns();
        change_state(stream, EVENT_ENDING);
        origin_end(&events->origin, index_of(stream));
    }
    return events->ending > 0;
}
