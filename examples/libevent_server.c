/*
 * libevent_server.c - static files and an event stream from one event loop
 * (libevent), compressed by the threads of an executor.
 *
 *      libevent_server DIRECTORY [PORT [LEVEL]]
 *      curl -H 'Accept-Encoding: zstd' http://127.0.0.1:PORT/FILE | zstd -dc
 *      curl -N --compressed http://127.0.0.1:PORT/events
 *
 * The loop never compresses and never reads a file: jobs do, on the executor's
 * threads. When jobs are finished the executor writes to an eventfd, which
 * wakes the loop like a socket would.
 *
 * Where each thing happens:
 *      push        on_request() for a file, all of it as a reader;
 *                  send_event() for an event, with a flush
 *      poll_job    submit_jobs()
 *      complete    complete_job()
 *      peek        send_ready()
 *      consume     on_written(), when the socket has taken what was sent
 *
 * Back-pressure: output is consumed only once the socket has taken it. So while
 * a client is slow its stream's output reaches options.output_bytes, the stream
 * gives no more jobs, and no more of the file is read. An event that comes
 * before the last one went out is dropped for that client.
 *
 * Fairness: the cache limits how many jobs are out, by the number of workers. A
 * response that wants a job and gets none stands in a queue, whose head is asked
 * again whenever a job, of any response, was completed.
 */
#define _DEFAULT_SOURCE

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <time.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>

#include "web.h"

/* Most output of one response that waits for its client. */
enum { OUTPUT_BYTES = 256 * 1024 };

/* Most pieces of output given to the socket at a time. */
enum { VECS = 8 };

/* Most bytes of requests that a client may send ahead. */
enum { INPUT_BYTES = 64 * 1024, HEADER_BYTES = 16 * 1024 };

/* A client that takes nothing for so long is given up. */
static const struct timeval stall = {60, 0};

/* Time from event to event. */
static const struct timeval tick = {0, 200 * 1000};

struct server {
    struct event_base *base;
    struct evhttp *http;
    segzstd_cache *cache;
    segzstd_executor *executor;
    int root_fd;
    int level;
    int wakeup_fd;          /* eventfd: the executor writes, the loop reads */
    struct event *wakeup;   /* wakeup_fd is readable */
    struct event *ticker;   /* every tick */
    struct event *ends[2];  /* SIGTERM, SIGINT */
    struct evbuffer *chunk; /* empty between two calls */
    uint64_t ticks;
    bool is_short; /* of memory: no new jobs before the next tick */
    LIST_HEAD(, response) listeners; /* of the event stream */
    TAILQ_HEAD(, response) waiting;  /* for a worker, first come first served */
};

/* A response that is being sent. It owns its stream, and lives until the frame
 * was sent or its client has gone; jobs that are out then are waited for by
 * the stream alone. */
struct response {
    struct server *server;
    struct evhttp_request *request;
    segzstd_stream *stream; /* NULL: an event stream that is not compressed */
    size_t sending;         /* bytes that the socket has not yet taken */
    bool is_listener;
    bool is_waiting;
    LIST_ENTRY(response) listener_link;
    TAILQ_ENTRY(response) waiting_link;
};

/* ------------------------------------------------------------------------ */
/* The life of a response                                                   */
/* ------------------------------------------------------------------------ */

static void wait_for_worker(struct response *r)
{
    if (!r->is_waiting)
        TAILQ_INSERT_TAIL(&r->server->waiting, r, waiting_link);
    r->is_waiting = true;
}

static void wait_no_more(struct response *r)
{
    if (r->is_waiting)
        TAILQ_REMOVE(&r->server->waiting, r, waiting_link);
    r->is_waiting = false;
}

/* At any moment, jobs out included: their stream is cancelled, and freed when
 * complete_job() has got the last of them. */
static void free_response(struct response *r)
{
    wait_no_more(r);
    if (r->is_listener)
        LIST_REMOVE(r, listener_link);
    segzstd_stream_free(r->stream);
    free(r);
}

/* The connection is being closed, by the client or by evhttp_free(). */
static void on_close(struct evhttp_connection *connection, void *arg)
{
    struct response *r = arg;

    (void)connection;
    /* libevent leaves the request to us if the client went away. */
    if (evhttp_request_get_connection(r->request) == NULL)
        evhttp_request_free(r->request);
    free_response(r);
}

/* Frees the response, but not its request, which is returned. */
static struct evhttp_request *detach(struct response *r)
{
    struct evhttp_request *request = r->request;

    evhttp_connection_set_closecb(evhttp_request_get_connection(request), NULL,
                                  NULL);
    free_response(r);
    return request;
}

static void end_response(struct response *r)
{
    evhttp_send_reply_end(detach(r));
}

/* The frame cannot be ended: the client must see that it is incomplete. */
static void break_response(struct response *r, int err)
{
    fprintf(stderr, "%s: %s\n", evhttp_request_get_uri(r->request),
            segzstd_strerror(err));
    evhttp_connection_free(evhttp_request_get_connection(detach(r)));
}

/* ------------------------------------------------------------------------ */
/* Output                                                                   */
/* ------------------------------------------------------------------------ */

static bool pump(struct response *r);

/* The socket has taken all that was given to it. */
static void on_written(struct evhttp_connection *connection, void *arg)
{
    struct response *r = arg;

    (void)connection;
    if (r->stream != NULL)
        segzstd_stream_consume(r->stream, r->sending);
    r->sending = 0;
    if (r->stream != NULL)
        pump(r);
}

/* Sends what is in server->chunk. */
static void send_chunk(struct response *r)
{
    struct evbuffer *chunk = r->server->chunk;

    r->sending = evbuffer_get_length(chunk);
    evhttp_send_reply_chunk_with_cb(r->request, chunk, on_written, r);
}

/* Sends output that is ready, or ends the response. One chunk at a time: its
 * bytes are not copied, so they stay in the stream until on_written(). */
static void send_ready(struct response *r)
{
    segzstd_vec vec[VECS];
    size_t count, i;

    if (r->sending > 0)
        return;
    if (segzstd_stream_is_done(r->stream)) {
        end_response(r);
        return;
    }
    count = segzstd_stream_peek(r->stream, vec, VECS);
    for (i = 0; i < count; i++)
        evbuffer_add_reference(r->server->chunk, vec[i].base, vec[i].len, NULL,
                               NULL);
    if (count > 0)
        send_chunk(r);
    else if (r->is_listener)
        segzstd_stream_rest(r->stream); /* until the next event */
}

/* ------------------------------------------------------------------------ */
/* Jobs                                                                     */
/* ------------------------------------------------------------------------ */

/* Hands over all jobs that the stream gives now. Returns 0 or its error. */
static int submit_jobs(struct response *r)
{
    segzstd_job *job;
    int err;

    while ((err = segzstd_stream_poll_job(r->stream, &job)) == 0 && job != NULL)
        segzstd_executor_submit(r->server->executor, job);
    if (err == SEGZSTD_ERR_NOMEM)
        r->server->is_short = true;
    if (segzstd_stream_want_job(r->stream))
        wait_for_worker(r); /* all are busy, or memory is short */
    return err;
}

/* Moves a response on as far as it goes now; it may be gone afterwards.
 * Returns whether it has to wait for a worker. */
static bool pump(struct response *r)
{
    int err = submit_jobs(r);
    bool is_waiting;

    if (segzstd_is_fatal(err)) {
        break_response(r, err);
        return false;
    }
    is_waiting = r->is_waiting;
    send_ready(r);
    return is_waiting;
}

/* Asks the responses that wait, until one gets all workers busy again. */
static void pump_waiting(struct server *s)
{
    struct response *r;

    while ((r = TAILQ_FIRST(&s->waiting)) != NULL) {
        wait_no_more(r);
        if (pump(r))
            break; /* it is now the last in the queue */
    }
}

/* Gives a job back to its stream. The response is asked for its next job when
 * its turn comes, but what is ready is sent at once. */
static void complete_job(segzstd_job *job)
{
    segzstd_stream *stream = segzstd_job_stream(job);
    /* A stream that has an error, be it that it was freed, has no response. */
    bool is_orphan = segzstd_stream_error(stream) != 0;
    struct response *r = segzstd_stream_user(stream);
    int err = segzstd_job_complete(job);

    if (is_orphan)
        return;
    if (segzstd_is_fatal(err)) {
        break_response(r, err);
        return;
    }
    if (err == SEGZSTD_ERR_NOMEM)
        r->server->is_short = true; /* to ask again at once would be in vain */
    wait_for_worker(r);
    send_ready(r);
}

/* On the loop: the executor has finished jobs. */
static void on_wakeup(evutil_socket_t fd, short what, void *arg)
{
    struct server *s = arg;
    segzstd_job *job;
    eventfd_t count;

    (void)what;
    eventfd_read(fd, &count);
    while ((job = segzstd_executor_poll(s->executor)) != NULL)
        complete_job(job);
    if (!s->is_short)
        pump_waiting(s);
}

/* On a worker: wakes the loop. */
static void notify(void *arg)
{
    struct server *s = arg;

    eventfd_write(s->wakeup_fd, 1);
}

/* ------------------------------------------------------------------------ */
/* Requests                                                                 */
/* ------------------------------------------------------------------------ */

static bool is_head(struct evhttp_request *request)
{
    return evhttp_request_get_command(request) == EVHTTP_REQ_HEAD;
}

static bool accepts_zstd(struct evhttp_request *request)
{
    return web_accepts_zstd(evhttp_find_header(
        evhttp_request_get_input_headers(request), "Accept-Encoding"));
}

static void add_header(struct evhttp_request *request, const char *name,
                       const char *value)
{
    evhttp_add_header(evhttp_request_get_output_headers(request), name, value);
}

static void send_status(struct evhttp_request *request, int code)
{
    evhttp_send_reply(request, code, NULL, NULL);
}

/* The whole body at once; empties the buffer. */
static void send_body(struct evhttp_request *request, struct evbuffer *body)
{
    if (is_head(request))
        evbuffer_drain(body, evbuffer_get_length(body));
    evhttp_send_reply(request, HTTP_OK, NULL, body);
}

/* NULL if there is no memory. */
static struct response *new_response(struct server *s,
                                     struct evhttp_request *request)
{
    struct response *r = calloc(1, sizeof(*r));

    if (r != NULL) {
        r->server = s;
        r->request = request;
    }
    return r;
}

/* Sends the header and returns whether the body is to follow. Then the end of
 * the connection is the end of the response. */
static bool start_response(struct response *r)
{
    struct evhttp_request *request = r->request;
    struct evhttp_connection *connection =
        evhttp_request_get_connection(request);
    struct bufferevent *socket = evhttp_connection_get_bufferevent(connection);

    if (is_head(request)) {
        free_response(r);
        send_status(request, HTTP_OK);
        return false;
    }
    evhttp_connection_set_closecb(connection, on_close, r);
    bufferevent_set_timeouts(socket, NULL, &stall);
    bufferevent_setwatermark(socket, EV_READ, 0, INPUT_BYTES);
    evhttp_send_reply_start(request, HTTP_OK, NULL);
    return true;
}

/* Takes fd over. */
static void send_zstd_file(struct server *s, struct evhttp_request *request,
                           int fd, uint64_t size)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;
    struct response *r = new_response(s, request);

    if (r == NULL) {
        close(fd);
        send_status(request, HTTP_SERVUNAVAIL);
        return;
    }
    options.level = s->level;
    options.output_bytes = OUTPUT_BYTES;
    options.user = r;
    if (web_stream_file(&r->stream, s->cache, options, fd, size) != 0) {
        free_response(r);
        send_status(request, HTTP_SERVUNAVAIL);
        return;
    }
    add_header(request, "Content-Encoding", "zstd");
    if (start_response(r))
        pump(r);
}

/* Takes fd over. */
static void send_plain_file(struct evhttp_request *request, int fd,
                            uint64_t size)
{
    struct evbuffer *body = evbuffer_new();
    char length[32];

    if (body == NULL || size == 0 ||
        evbuffer_add_file(body, fd, 0, (ev_off_t)size) != 0)
        close(fd);
    if (body == NULL || evbuffer_get_length(body) != size) {
        send_status(request, HTTP_SERVUNAVAIL);
    } else {
        snprintf(length, sizeof(length), "%" PRIu64, size);
        add_header(request, "Content-Length", length);
        send_body(request, body);
    }
    if (body != NULL)
        evbuffer_free(body);
}

static void serve_file(struct server *s, struct evhttp_request *request,
                       const char *path)
{
    uint64_t size;
    int fd = web_open(s->root_fd, path, &size);

    if (fd < 0) {
        send_status(request, HTTP_NOTFOUND);
        return;
    }
    add_header(request, "Content-Type", web_type(path));
    add_header(request, "Vary", "Accept-Encoding");
    if (accepts_zstd(request))
        send_zstd_file(s, request, fd, size);
    else
        send_plain_file(request, fd, size);
}

static void serve_status(struct server *s, struct evhttp_request *request)
{
    char text[WEB_STATUS_BYTES];

    web_status(s->cache, text, sizeof(text));
    evbuffer_add(s->chunk, text, strlen(text));
    add_header(request, "Content-Type", "text/plain");
    send_body(request, s->chunk);
}

/* ------------------------------------------------------------------------ */
/* The event stream                                                         */
/* ------------------------------------------------------------------------ */

/* Events resemble the last few: a small window finds that, and keeps the
 * encoders small. */
enum { EVENT_WINDOW_LOG = 16 };

static int new_event_stream(struct response *r)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;

    options.level = r->server->level;
    options.window_log = EVENT_WINDOW_LOG;
    options.max_jobs = 1;
    options.output_bytes = OUTPUT_BYTES;
    options.user = r;
    return segzstd_stream_new(&r->stream, r->server->cache, &options);
}

static void serve_events(struct server *s, struct evhttp_request *request)
{
    struct response *r = new_response(s, request);

    if (r == NULL || (accepts_zstd(request) && new_event_stream(r) != 0)) {
        free(r);
        send_status(request, HTTP_SERVUNAVAIL);
        return;
    }
    add_header(request, "Content-Type", "text/event-stream");
    add_header(request, "Cache-Control", "no-cache");
    add_header(request, "Vary", "Accept-Encoding");
    if (r->stream != NULL)
        add_header(request, "Content-Encoding", "zstd");
    if (start_response(r)) {
        LIST_INSERT_HEAD(&s->listeners, r, listener_link);
        r->is_listener = true;
    }
}

/* The flush lets the client decode the event as soon as it arrives. */
static void send_event(struct response *r, const char *text, size_t len)
{
    size_t taken;
    int err;

    if (r->sending > 0)
        return; /* a slow client: it misses this event */
    if (r->stream == NULL) {
        evbuffer_add(r->server->chunk, text, len);
        send_chunk(r);
        return;
    }
    if (!segzstd_stream_is_flushed(r->stream))
        return; /* all workers are busy: the same */
    err = segzstd_stream_push(r->stream, text, len, SEGZSTD_FLUSH, &taken);
    if (err != 0 || taken < len)
        break_response(r, err);
    else
        pump(r);
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct server *s = arg;
    struct response *r, *next;
    char text[128];
    int len = snprintf(text, sizeof(text),
                       "id: %" PRIu64 "\ndata: {\"ticks\": %" PRIu64 "}\n\n",
                       s->ticks, s->ticks);

    (void)fd;
    (void)what;
    s->ticks++;
    for (r = LIST_FIRST(&s->listeners); r != NULL; r = next) {
        next = LIST_NEXT(r, listener_link);
        send_event(r, text, (size_t)len);
    }
    s->is_short = false;
    pump_waiting(s);
    segzstd_cache_trim(s->cache, now_ns());
}

static void on_request(struct evhttp_request *request, void *arg)
{
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
    struct server *s = arg;
    size_t len;
    char *path = evhttp_uridecode(evhttp_uri_get_path(uri), 0, &len);

    /* HTTP/1.0 knows no chunks: the end of the connection ends the body. */
    if (request->major == 1 && request->minor == 0)
        evhttp_remove_header(evhttp_request_get_input_headers(request),
                             "Connection");
    if (path == NULL || strlen(path) != len)
        send_status(request, HTTP_BADREQUEST);
    else if (strcmp(path, "/events") == 0)
        serve_events(s, request);
    else if (strcmp(path, "/status") == 0)
        serve_status(s, request);
    else
        serve_file(s, request, path);
    free(path);
}

/* ------------------------------------------------------------------------ */
/* Start and end                                                            */
/* ------------------------------------------------------------------------ */

static void on_end(evutil_socket_t signal, short what, void *arg)
{
    struct server *s = arg;

    (void)signal;
    (void)what;
    event_base_loopbreak(s->base);
}

/* Ends the program if something is missing that it cannot do without. */
static void require(bool is_there, const char *what)
{
    if (!is_there) {
        fprintf(stderr, "libevent_server: cannot have %s\n", what);
        exit(1);
    }
}

/* A cache, and as many threads as it has workers, which is all CPUs. */
static void start_threads(struct server *s)
{
    segzstd_cache_stats stats = SEGZSTD_CACHE_STATS_INIT;

    require(segzstd_cache_new(&s->cache, NULL) == 0, "a cache");
    segzstd_cache_get_stats(s->cache, &stats);
    require(segzstd_executor_new(&s->executor, stats.workers, notify, s) == 0,
            "threads");
}

static struct event *add_event(struct server *s, int fd, short what,
                               event_callback_fn on_event,
                               const struct timeval *interval)
{
    struct event *event =
        event_new(s->base, fd, (short)(what | EV_PERSIST), on_event, s);

    require(event != NULL && event_add(event, interval) == 0, "an event");
    return event;
}

static void start_loop(struct server *s)
{
    LIST_INIT(&s->listeners);
    TAILQ_INIT(&s->waiting);
    s->wakeup_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    s->base = event_base_new();
    s->chunk = evbuffer_new();
    require(s->wakeup_fd >= 0 && s->base != NULL && s->chunk != NULL, "a loop");
    s->wakeup = add_event(s, s->wakeup_fd, EV_READ, on_wakeup, NULL);
    s->ticker = add_event(s, -1, EV_TIMEOUT, on_tick, &tick);
    s->ends[0] = add_event(s, SIGTERM, EV_SIGNAL, on_end, NULL);
    s->ends[1] = add_event(s, SIGINT, EV_SIGNAL, on_end, NULL);
    signal(SIGPIPE, SIG_IGN); /* writing to a closed socket is an error */
}

static void start_http(struct server *s, uint16_t port)
{
    struct evhttp_bound_socket *bound;
    struct sockaddr_in address;
    socklen_t len = sizeof(address);

    s->http = evhttp_new(s->base);
    require(s->http != NULL, "a server");
    evhttp_set_gencb(s->http, on_request, s);
    evhttp_set_allowed_methods(s->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
    evhttp_set_max_headers_size(s->http, HEADER_BYTES);
    evhttp_set_max_body_size(s->http, 0);
    bound = evhttp_bind_socket_with_handle(s->http, "127.0.0.1", port);
    require(bound != NULL &&
                getsockname(evhttp_bound_socket_get_fd(bound),
                            (struct sockaddr *)&address, &len) == 0,
            "this port");
    printf("http://127.0.0.1:%u/\n", ntohs(address.sin_port));
    fflush(stdout);
}

/* Closes all connections, whose streams are cancelled, and waits for the jobs
 * that are still out, before it frees what they need. */
static void stop(struct server *s)
{
    segzstd_job *job;

    evhttp_free(s->http);
    while ((job = segzstd_executor_wait(s->executor)) != NULL)
        complete_job(job);
    segzstd_executor_free(s->executor);
    segzstd_cache_free(s->cache);
    event_free(s->ends[0]);
    event_free(s->ends[1]);
    event_free(s->ticker);
    event_free(s->wakeup);
    evbuffer_free(s->chunk);
    event_base_free(s->base);
    close(s->wakeup_fd);
    close(s->root_fd);
    libevent_global_shutdown();
}

int main(int argc, char **argv)
{
    struct server s = {0};

    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: libevent_server DIRECTORY [PORT [LEVEL]]\n");
        return 2;
    }
    s.level = argc > 3 ? atoi(argv[3]) : 0;
    s.root_fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    require(s.root_fd >= 0, argv[1]);
    require(web_is_level(s.level), "such a level");
    start_loop(&s);
    start_threads(&s);
    start_http(&s, (uint16_t)(argc > 2 ? atoi(argv[2]) : 0));
    event_base_dispatch(s.base);
    stop(&s);
    return 0;
}
