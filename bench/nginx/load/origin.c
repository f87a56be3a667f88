/*
 * origin.c - see origin.h.
 */
#define _GNU_SOURCE 1

#include "origin.h"

#include "event.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_MAX 4096

/* Connections beyond one for each stream: what tries whether we are there. */
#define SPARE_CONNS 64

/* A chunk's size before an event, and the line's end after it. */
#define FRAMING_MAX 16

static const char head_text[] = "HTTP/1.1 200 OK\r\n"
                                "Content-Type: text/event-stream\r\n"
                                "Cache-Control: no-store\r\n"
                                "X-Accel-Buffering: no\r\n"
                                "Connection: close\r\n";

static const char refusal[] = "HTTP/1.1 400 Bad Request\r\n"
                              "Content-Length: 0\r\n"
                              "Connection: close\r\n\r\n";

static void close_conn(struct origin_conn *conn)
{
    if (conn->fd < 0)
        return;
    close(conn->fd);
    conn->fd = -1;
    free(conn->head);
    conn->head = NULL;
    if (conn->origin->of_stream[conn->stream] == conn)
        conn->origin->of_stream[conn->stream] = NULL;
}

/* NULL, or what was wrong. The sockets' buffers hold many events, so that a
 * server that does not take all has stopped to read. */
static const char *send_all(struct origin_conn *conn, const char *bytes,
                            size_t n)
{
    ssize_t sent = send(conn->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (sent == (ssize_t)n)
        return NULL;
    if (sent >= 0 || errno == EAGAIN)
        return "the server does not read what the origin writes";
    return strerror(errno);
}

/* Puts the next event, as it goes over the wire, to buf; its length. */
static size_t make_event(struct origin_conn *conn, char *buf)
{
    unsigned bytes = conn->origin->event_bytes;
    size_t len = 0;

    if (conn->chunked)
        len = (size_t)snprintf(buf, FRAMING_MAX, "%x\r\n", bytes);
    event_write(buf + len, bytes, conn->stream, conn->written++);
    len += bytes;
    if (conn->chunked) {
        memcpy(buf + len, "\r\n", 2);
        len += 2;
    }
    return len;
}

const char *origin_send(struct origin *origin, unsigned stream)
{
    struct origin_conn *conn = origin->of_stream[stream];
    const char *error;

    if (conn == NULL)
        return "the server has closed its connection to the origin";
    error = send_all(conn, origin->buf, make_event(conn, origin->buf));
    if (error != NULL)
        close_conn(conn);
    return error;
}

void origin_end(struct origin *origin, unsigned stream)
{
    struct origin_conn *conn = origin->of_stream[stream];

    if (conn == NULL)
        return;
    if (conn->chunked)
        send_all(conn, "0\r\n\r\n", 5);
    close_conn(conn);
}

/* The head and the first event in one piece, as an application greets. */
static void begin_stream(struct origin_conn *conn)
{
    struct origin *origin = conn->origin;
    int len =
        snprintf(origin->buf, sizeof(head_text) + 64, "%s%s\r\n", head_text,
                 conn->chunked ? "Transfer-Encoding: chunked\r\n" : "");

    origin->of_stream[conn->stream] = conn;
    if (send_all(conn, origin->buf,
                 (size_t)len + make_event(conn, origin->buf + len)) != NULL)
        close_conn(conn);
}

/* Which stream the request in head is for; false if none. */
static bool read_stream(struct origin_conn *conn)
{
    const char *value =
        strcasestr(conn->head, "\r\n" ORIGIN_STREAM_HEADER ": ");
    unsigned long number;
    char *end;

    if (value == NULL)
        return false;
    value += strlen("\r\n" ORIGIN_STREAM_HEADER ": ");
    number = strtoul(value, &end, 10);
    if (end == value || *end != '\r' || number >= conn->origin->streams ||
        conn->origin->of_stream[number] != NULL)
        return false;
    conn->stream = (unsigned)number;
    return true;
}

/* All of the request's head is here. */
static void answer(struct origin_conn *conn)
{
    char *line_end = strstr(conn->head, "\r\n");
    bool right = read_stream(conn);

    *line_end = '\0';
    conn->chunked = strstr(conn->head, " HTTP/1.1") != NULL;
    free(conn->head);
    conn->head = NULL;
    if (right) {
        begin_stream(conn);
        return;
    }
    conn->origin->refused++;
    send_all(conn, refusal, sizeof(refusal) - 1);
    close_conn(conn);
}

static void conn_ready(struct load *load, struct source *source)
{
    struct origin_conn *conn = (struct origin_conn *)source;
    char *to = load->buf;
    size_t room = load->buf_size;
    ssize_t n;

    if (conn->fd < 0)
        return;
    if (conn->head != NULL) {
        to = conn->head + conn->head_len;
        room = HEAD_MAX - 1 - conn->head_len;
    }
    n = recv(conn->fd, to, room, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    /* closed, an endless head, or more than one request */
    if (n <= 0 || conn->head == NULL) {
        close_conn(conn);
        return;
    }
    conn->head_len += (size_t)n;
    conn->head[conn->head_len] = '\0';
    if (strstr(conn->head, "\r\n\r\n") != NULL)
        answer(conn);
}

static void accept_one(struct load *load, struct origin *origin, int fd)
{
    struct origin_conn *conn = &origin->conns[origin->conn_count];
    int one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (origin->conn_count == origin->conn_max) {
        origin->refused++;
        close(fd);
        return;
    }
    origin->conn_count++;
    conn->source.ready = conn_ready;
    conn->origin = origin;
    conn->fd = fd;
    conn->head = malloc(HEAD_MAX);
    if (conn->head == NULL || !source_add(load, &conn->source, fd, EPOLLIN))
        die("a connection of the origin");
}

static void listener_ready(struct load *load, struct source *source)
{
    struct origin *origin = (struct origin *)source;
    int fd;

    while ((fd = accept4(origin->fd, NULL, NULL,
                         SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
        accept_one(load, origin, fd);
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
        die("the origin cannot accept");
}

static void listen_on(struct origin *origin, unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port)};
    char what[64];
    int one = 1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    origin->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (origin->fd < 0)
        die("socket of the origin");
    setsockopt(origin->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(origin->fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(origin->fd, 4096) != 0) {
        snprintf(what, sizeof(what), "--event-origin: 127.0.0.1:%u", port);
        die(what);
    }
}

void origin_open(struct origin *origin, const struct load *load)
{
    const struct event_args *args = &load->args->events;

    memset(origin, 0, sizeof(*origin));
    origin->source.ready = listener_ready;
    origin->streams = args->streams;
    origin->event_bytes = args->bytes;
    origin->conn_max = args->streams + SPARE_CONNS;
    origin->conns = calloc(origin->conn_max, sizeof(*origin->conns));
    origin->of_stream = calloc(args->streams, sizeof(struct origin_conn *));
    origin->buf = malloc(args->bytes + sizeof(head_text) + 64 + FRAMING_MAX);
    if (origin->conns == NULL || origin->of_stream == NULL ||
        origin->buf == NULL)
        die("the origin");
    listen_on(origin, args->origin_port);
    if (!source_add(load, &origin->source, origin->fd, EPOLLIN))
        die("the origin");
}

void origin_close(struct origin *origin)
{
    for (unsigned i = 0; i < origin->conn_count; i++)
        close_conn(&origin->conns[i]);
    if (origin->conns != NULL)
        close(origin->fd);
    free(origin->conns);
    free(origin->of_stream);
    free(origin->buf);
}
