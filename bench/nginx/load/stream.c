/*
 * stream.c - see stream.h.
 */
#define _GNU_SOURCE 1

#include "stream.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A slow reader's buffer in the kernel: the kernel's least, about. What the
 * client does not read then waits in the server. */
#define SLOW_RCVBUF 4096

static void conn_ready(struct load *load, struct source *source);

void stream_init(struct stream *stream, const struct args *args,
                 const struct stream_args *stream_args)
{
    memset(stream, 0, sizeof(*stream));
    stream->args = stream_args;
    if (stream_args->path == NULL)
        return;
    stream->request_len = (size_t)snprintf(
        stream->request, sizeof(stream->request),
        "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: segzstd_load\r\n"
        "Accept-Encoding: %s\r\n\r\n",
        stream_args->path, args->host, stream_args->encoding);
    stream->conns = calloc(stream_args->connections, sizeof(*stream->conns));
    if (stream->conns == NULL)
        die("connections");
    for (unsigned i = 0; i < stream_args->connections; i++) {
        struct conn *conn = &stream->conns[i];
        /* answers to small requests first: their times must not include our
         * reading of large ones */
        conn->source.ready = conn_ready;
        conn->source.urgent = stream_args == &args->streams[SMALL];
        conn->stream = stream;
        conn->fd = -1;
    }
}

static void close_conn(struct conn *conn)
{
    if (conn->fd >= 0)
        close(conn->fd);
    conn->fd = -1;
    conn->state = CONN_NONE;
}

void stream_free(struct stream *stream)
{
    for (unsigned i = 0; stream->conns != NULL && i < stream->args->connections;
         i++)
        close_conn(&stream->conns[i]);
    free(stream->conns);
    samples_free(&stream->first);
    samples_free(&stream->last);
    samples_free(&stream->lag);
}

/* All of one phase are due at the same time. */
static uint64_t due_time(const struct stream *stream, uint64_t index)
{
    const struct stream_args *args = stream->args;
    double seconds = (double)(index - index % args->phase) / args->rate;

    return stream->epoch_ns + (uint64_t)(seconds * 1e9);
}

static bool is_open_loop(const struct stream *stream)
{
    return stream->args->rate > 0;
}

/* Has the stream had all the requests that it may have? */
static bool is_spent(const struct stream *stream, uint64_t count)
{
    return stream->args->count > 0 &&
           count >= stream->args->count + stream->lead_count;
}

uint64_t stream_next_due(const struct stream *stream)
{
    if (!is_open_loop(stream) || stream->ended || is_spent(stream, stream->due))
        return UINT64_MAX;
    return due_time(stream, stream->due);
}

__attribute__((format(printf, 3, 4))) static void fail(struct conn *conn,
                                                       enum fault fault,
                                                       const char *format, ...)
{
    struct stream *stream = conn->stream;
    va_list list;

    va_start(list, format);
    faults_add(&stream->faults, fault, format, list);
    va_end(list);
    conn->claimed = false;
    close_conn(conn);
}

static void fail_connect(struct load *load, struct conn *conn, int error)
{
    fail(conn, FAULT_CONNECT, "cannot connect to %s: %s", load->args->host,
         strerror(error));
    load_count_connect(load, false);
}

static void send_request(struct conn *conn)
{
    struct stream *stream = conn->stream;
    ssize_t n = send(conn->fd, stream->request, stream->request_len,
                     MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n != (ssize_t)stream->request_len) {
        fail(conn, FAULT_CLOSED, "request not sent: %s",
             n < 0 ? strerror(errno) : "the socket took a part of it");
        return;
    }
    conn->state = CONN_BUSY;
    conn->first_ns = 0;
    http_start(&conn->response, conn->head);
}

static void start_connect(struct load *load, struct conn *conn)
{
    bool slow = conn->stream->args->read_rate > 0;
    int one = 1, size = SLOW_RCVBUF;

    conn->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (conn->fd < 0) {
        fail_connect(load, conn, errno);
        return;
    }
    setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (slow)
        setsockopt(conn->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    if (connect(conn->fd, (const struct sockaddr *)&load->args->server,
                sizeof(load->args->server)) != 0 &&
        errno != EINPROGRESS) {
        fail_connect(load, conn, errno);
        return;
    }
    conn->state = CONN_CONNECTING;
    if (!slow && !source_add(load, &conn->source, conn->fd, EPOLLOUT))
        fail_connect(load, conn, errno);
}

/* The socket has become writable, or broke. */
static void end_connect(struct load *load, struct conn *conn)
{
    socklen_t len = sizeof(int);
    int error = 0;

    if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    if (error == 0 && conn->stream->args->read_rate == 0 &&
        !source_change(load, &conn->source, conn->fd, EPOLLIN))
        error = errno;
    if (error != 0) {
        fail_connect(load, conn, error);
        return;
    }
    load_count_connect(load, true);
    conn->state = CONN_IDLE;
    send_request(conn);
}

static bool is_counted(const struct conn *conn)
{
    return conn->start_ns >= conn->stream->counted_ns;
}

/* One request is given to a connection, which is made first if it has none. */
static void claim(struct load *load, struct conn *conn, uint64_t start_ns,
                  uint64_t now)
{
    struct stream *stream = conn->stream;

    conn->index = stream->sent++;
    conn->claimed = true;
    conn->start_ns = start_ns;
    conn->claimed_ns = now;
    if (conn->state != CONN_IDLE) {
        start_connect(load, conn);
        return;
    }
    if (is_counted(conn)) {
        samples_add(&stream->lag,
                    now -
                        (start_ns > conn->free_ns ? start_ns : conn->free_ns));
    }
    send_request(conn);
}

/* They take turns, so that all of them are used. */
static struct conn *find_free(struct stream *stream)
{
    for (unsigned i = 0; i < stream->args->connections; i++) {
        struct conn *conn = &stream->conns[stream->next_conn];
        stream->next_conn = (stream->next_conn + 1) % stream->args->connections;
        if (!conn->claimed)
            return conn;
    }
    return NULL;
}

static void dispatch_open(struct load *load, struct stream *stream,
                          uint64_t now)
{
    struct conn *conn;

    while (stream_next_due(stream) <= now)
        stream->due++;
    while (stream->sent < stream->due && !load->hopeless &&
           (conn = find_free(stream)) != NULL)
        claim(load, conn, due_time(stream, stream->sent), now);
    if (stream->due - stream->sent > stream->most_waiting)
        stream->most_waiting = stream->due - stream->sent;
}

static void dispatch_closed(struct load *load, struct stream *stream,
                            uint64_t now)
{
    struct conn *conn;

    while (!stream->ended && !is_spent(stream, stream->sent) &&
           !load->hopeless && (conn = find_free(stream)) != NULL)
        claim(load, conn, now, now);
}

void stream_dispatch(struct load *load, struct stream *stream, uint64_t now)
{
    if (is_open_loop(stream))
        dispatch_open(load, stream, now);
    else
        dispatch_closed(load, stream, now);
}

/* Is the complete answer what was asked for? If not, it has failed. */
static bool check_answer(struct conn *conn)
{
    static const unsigned char zstd_magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
    const struct http_response *response = &conn->response;
    struct stream *stream = conn->stream;
    const char *wanted = stream->args->encoding;

    if (response->status != 200) {
        fail(conn, FAULT_STATUS, "status %d of %s", response->status,
             stream->args->path);
        return false;
    }
    if (strcmp(response->encoding[0] ? response->encoding : "identity",
               wanted) != 0) {
        fail(conn, FAULT_ENCODING, "Content-Encoding \"%s\" of %s, not %s",
             response->encoding, stream->args->path, wanted);
        return false;
    }
    if (strcmp(wanted, "zstd") == 0 &&
        memcmp(response->start, zstd_magic, sizeof(zstd_magic)) != 0) {
        fail(conn, FAULT_ENCODING, "%s does not begin as a zstd frame",
             stream->args->path);
        return false;
    }
    if (response->chunked)
        return true;
    if (stream->content_length == 0)
        stream->content_length = response->length;
    if (response->length != stream->content_length) {
        fail(conn, FAULT_LENGTH,
             "Content-Length %" PRIu64 " of %s, before %" PRIu64,
             response->length, stream->args->path, stream->content_length);
        return false;
    }
    return true;
}

static void count_answer(struct load *load, struct conn *conn, uint64_t now)
{
    struct stream *stream = conn->stream;
    uint64_t bytes = conn->response.body_bytes;

    stream->done++;
    stream->last_done_ns = now;
    stream->body_bytes += bytes;
    if (stream->max_body < bytes)
        stream->max_body = bytes;
    if (stream->min_body > bytes || stream->done == 1)
        stream->min_body = bytes;
    samples_add(&stream->first, conn->first_ns - conn->start_ns);
    samples_add(&stream->last, now - conn->start_ns);
    if (load->samples != NULL) {
        fprintf(load->samples, "%s,%.3f,%.3f,%.3f,%" PRIu64 "\n",
                stream->args->name,
                (double)(conn->start_ns - stream->epoch_ns) / 1e3,
                (double)(conn->first_ns - conn->start_ns) / 1e3,
                (double)(now - conn->start_ns) / 1e3, bytes);
    }
}

static void end_answer(struct load *load, struct conn *conn, uint64_t now)
{
    if (!check_answer(conn))
        return;
    if (conn->first_ns == 0) /* an empty body */
        conn->first_ns = now;
    if (is_counted(conn))
        count_answer(load, conn, now);
    conn->claimed = false;
    conn->free_ns = now;
    conn->state = CONN_IDLE;
    if (conn->response.close)
        close_conn(conn);
}

static void take_bytes(struct load *load, struct conn *conn, size_t n)
{
    struct http_response *response = &conn->response;
    uint64_t now = now_ns();
    size_t used;

    if (!conn->claimed) {
        fail(conn, FAULT_HTTP, "bytes that nobody asked for");
        return;
    }
    used = http_read(response, load->buf, n);
    conn->stream->received_bytes += used;
    if (conn->first_ns == 0 && response->body_bytes > 0) {
        conn->first_ns = now;
        conn->stream->begun++;
    }
    if (response->state == HTTP_BROKEN) {
        fail(conn, FAULT_HTTP, "%s: %s", conn->stream->args->path,
             response->error);
    } else if (used < n) {
        fail(conn, FAULT_HTTP, "bytes after the end of %s",
             conn->stream->args->path);
    } else if (response->state == HTTP_DONE) {
        end_answer(load, conn, now);
    }
}

static void read_some(struct load *load, struct conn *conn, size_t max)
{
    ssize_t n = recv(conn->fd, load->buf, max, MSG_DONTWAIT);

    if (n > 0) {
        take_bytes(load, conn, (size_t)n);
    } else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    } else if (!conn->claimed) {
        close_conn(conn); /* idle, as a server may */
    } else {
        fail(conn, FAULT_CLOSED, "%s: connection %s after %" PRIu64 " bytes",
             conn->stream->args->path, n == 0 ? "ended" : strerror(errno),
             conn->response.body_bytes);
    }
}

static void conn_ready(struct load *load, struct source *source)
{
    struct conn *conn = (struct conn *)source;

    if (conn->state == CONN_CONNECTING)
        end_connect(load, conn);
    else if (conn->fd >= 0)
        read_some(load, conn, load->buf_size);
}

static bool is_writable(const struct conn *conn)
{
    struct pollfd poll_fd = {.fd = conn->fd, .events = POLLOUT};

    return poll(&poll_fd, 1, 0) == 1;
}

void conn_step(struct load *load, struct conn *conn, size_t n)
{
    if (n > load->buf_size)
        n = load->buf_size;
    if (conn->state == CONN_BUSY) {
        read_some(load, conn, n);
        return;
    }
    if (!conn->claimed && !conn->stream->ended && !load->hopeless) {
        uint64_t now = now_ns();
        claim(load, conn, now, now);
    }
    if (conn->state == CONN_CONNECTING && is_writable(conn))
        end_connect(load, conn);
}

/* An answer that did not come counts with the time that was waited for it: to
 * leave it out would make a server look the better the more it fails. */
static void count_waited(struct stream *stream, uint64_t start_ns, uint64_t now)
{
    if (start_ns >= stream->counted_ns && now > start_ns)
        samples_add(&stream->last, now - start_ns);
}

void stream_check_timeouts(struct load *load, struct stream *stream,
                           uint64_t now)
{
    uint64_t timeout_ns = (uint64_t)(load->args->timeout_s * 1e9);

    for (unsigned i = 0; i < stream->args->connections; i++) {
        struct conn *conn = &stream->conns[i];
        if (!conn->claimed || now - conn->claimed_ns < timeout_ns)
            continue;
        count_waited(stream, conn->start_ns, now);
        fail(conn, FAULT_TIMEOUT, "%s: no answer in %g s", stream->args->path,
             load->args->timeout_s);
    }
}

bool stream_is_spent(const struct stream *stream)
{
    return stream->ended || is_spent(stream, stream->sent);
}

bool stream_is_busy(const struct stream *stream)
{
    if (stream->sent < stream->due)
        return true;
    for (unsigned i = 0; i < stream->args->connections; i++) {
        if (stream->conns[i].claimed)
            return true;
    }
    return false;
}

void stream_give_up(struct stream *stream, uint64_t now)
{
    for (unsigned i = 0; i < stream->args->connections; i++) {
        struct conn *conn = &stream->conns[i];
        if (!conn->claimed)
            continue;
        count_waited(stream, conn->start_ns, now);
        stream->unfinished++;
    }
    while (stream->sent < stream->due) {
        count_waited(stream, due_time(stream, stream->sent++), now);
        stream->unfinished++;
    }
}
