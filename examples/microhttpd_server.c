/*
 * microhttpd_server.c - static files from a server with a thread per connection
 * (libmicrohttpd).
 *
 *      microhttpd_server DIRECTORY [PORT [LEVEL]]
 *      curl -H 'Accept-Encoding: zstd' http://127.0.0.1:PORT/FILE | zstd -dc
 *
 * Each connection's thread owns the stream of its response and runs the jobs
 * of that stream itself, at the point where libmicrohttpd asks for bytes. A
 * pool would gain nothing here: the thread would only wait for it, and other
 * connections keep the other CPUs busy. (A server that wants one response to
 * use several CPUs hands the jobs to an executor: see libevent_server.c.)
 *
 * What has to be shared out are the CPUs: with a hundred connections, a hundred
 * jobs at once would need a hundred encoders, each of up to some 80 MiB. So a
 * job is run only by a thread that has one of as many places as there are
 * CPUs. The cache knows that number as its workers, so that a thread that has a
 * place never finds all workers busy.
 *
 * Back-pressure comes by itself: no call for bytes, no job.
 */
#define _POSIX_C_SOURCE 200809L

#include <arpa/inet.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <signal.h>

#include <microhttpd.h>

#include "web.h"

/* Bytes that libmicrohttpd asks for at a time: fewer calls, larger chunks. */
enum { BLOCK_BYTES = 64 * 1024 };

/* A client that takes nothing for so long is given up. */
enum { TIMEOUT_SECONDS = 60 };

struct server {
    int root_fd;
    int level;
    segzstd_cache *cache;
    sem_t cpus; /* as many places as the cache has workers */
};

/* ------------------------------------------------------------------------ */
/* The body of a response, on the connection's thread                       */
/* ------------------------------------------------------------------------ */

/* Runs one job, if there is one. Returns 0 or the stream's error. */
static int run_job(segzstd_stream *stream)
{
    struct server *s = segzstd_stream_user(stream);
    segzstd_job *job;
    int err;

    while (sem_wait(&s->cpus) != 0)
        ; /* a signal came between */
    err = segzstd_stream_poll_job(stream, &job);
    if (err == 0 && job != NULL) {
        segzstd_job_run(job);
        err = segzstd_job_complete(job);
    }
    sem_post(&s->cpus);
    return err;
}

/* Moves up to `room` bytes that are ready to dst and returns their number. */
static size_t take_ready(segzstd_stream *stream, char *dst, size_t room)
{
    segzstd_vec vec;
    size_t used = 0;

    while (used < room && segzstd_stream_peek(stream, &vec, 1) > 0) {
        size_t n = vec.len < room - used ? vec.len : room - used;

        memcpy(dst + used, vec.base, n);
        segzstd_stream_consume(stream, n);
        used += n;
    }
    return used;
}

/* libmicrohttpd wants bytes: at least one, else it would ask again at once. */
static ssize_t next_bytes(void *stream, uint64_t pos, char *dst, size_t room)
{
    size_t n;

    (void)pos;
    while ((n = take_ready(stream, dst, room)) == 0) {
        if (segzstd_stream_is_done(stream))
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (run_job(stream) != 0)
            return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    return (ssize_t)n;
}

/* The response was sent, or its client has gone. */
static void free_stream(void *stream)
{
    segzstd_stream_free(stream);
}

/* ------------------------------------------------------------------------ */
/* Requests                                                                 */
/* ------------------------------------------------------------------------ */

/* Takes fd over. NULL on failure. */
static struct MHD_Response *zstd_file(struct server *s, int fd, uint64_t size)
{
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;
    segzstd_stream *stream;
    struct MHD_Response *response;

    options.level = s->level;
    options.max_jobs = 1; /* this thread */
    options.user = s;
    if (web_stream_file(&stream, s->cache, options, fd, size) != 0)
        return NULL;
    response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, BLOCK_BYTES, next_bytes, stream, free_stream);
    if (response == NULL) {
        segzstd_stream_free(stream);
        return NULL;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "zstd");
    return response;
}

/* Takes fd over. NULL on failure. */
static struct MHD_Response *plain_file(int fd, uint64_t size)
{
    struct MHD_Response *response = MHD_create_response_from_fd64(size, fd);

    if (response == NULL)
        close(fd);
    return response;
}

static struct MHD_Response *text(const char *line)
{
    return MHD_create_response_from_buffer(strlen(line), (void *)line,
                                           MHD_RESPMEM_MUST_COPY);
}

/* Queues the response, which may be NULL, and gives up our reference. */
static enum MHD_Result queue(struct MHD_Connection *connection, unsigned status,
                             struct MHD_Response *response)
{
    enum MHD_Result result = MHD_NO; /* closes the connection */

    if (response != NULL) {
        result = MHD_queue_response(connection, status, response);
        MHD_destroy_response(response);
    }
    return result;
}

static enum MHD_Result serve_file(struct server *s,
                                  struct MHD_Connection *connection,
                                  const char *path)
{
    struct MHD_Response *response;
    uint64_t size;
    int fd = web_open(s->root_fd, path, &size);

    if (fd < 0)
        return queue(connection, MHD_HTTP_NOT_FOUND, text("not found\n"));
    if (web_accepts_zstd(MHD_lookup_connection_value(
            connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT_ENCODING)))
        response = zstd_file(s, fd, size);
    else
        response = plain_file(fd, size);
    if (response != NULL) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                web_type(path));
        MHD_add_response_header(response, MHD_HTTP_HEADER_VARY,
                                MHD_HTTP_HEADER_ACCEPT_ENCODING);
    }
    return queue(connection, MHD_HTTP_OK, response);
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection,
                                  const char *path, const char *method,
                                  const char *version, const char *upload,
                                  size_t *upload_len, void **request)
{
    struct server *s = arg;
    char status[WEB_STATUS_BYTES];

    (void)version;
    (void)upload;
    (void)upload_len;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
        strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return queue(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                     text("only GET and HEAD\n"));
    /* This is called twice. An answer to the first call, as above, refuses
     * what else the client sends; one to the second keeps the connection. */
    if (*request == NULL) {
        *request = s;
        return MHD_YES;
    }
    if (strcmp(path, "/status") != 0)
        return serve_file(s, connection, path);
    web_status(s->cache, status, sizeof(status));
    return queue(connection, MHD_HTTP_OK, text(status));
}

/* ------------------------------------------------------------------------ */
/* Start and end                                                            */
/* ------------------------------------------------------------------------ */

/* NULL on failure. */
static struct MHD_Daemon *listen_on(struct server *s, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    return MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
            MHD_USE_ERROR_LOG,
        port, NULL, NULL, on_request, s, MHD_OPTION_SOCK_ADDR, &address,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_SECONDS,
        MHD_OPTION_END);
}

/* Serves until SIGTERM or SIGINT, which the caller has blocked. */
static int serve(struct server *s, uint16_t port, const sigset_t *signals)
{
    struct MHD_Daemon *daemon = listen_on(s, port);
    int received;

    if (daemon == NULL) {
        fprintf(stderr, "cannot listen on port %u\n", port);
        return 1;
    }
    printf("http://127.0.0.1:%u/\n",
           MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);
    sigwait(signals, &received);
    MHD_stop_daemon(daemon); /* joins the threads of all connections */
    return 0;
}

static int open_cache(struct server *s)
{
    segzstd_cache_stats stats = SEGZSTD_CACHE_STATS_INIT;
    int err = segzstd_cache_new(&s->cache, NULL); /* workers: all CPUs */

    if (err != 0) {
        fprintf(stderr, "cache: %s\n", segzstd_strerror(err));
        return -1;
    }
    segzstd_cache_get_stats(s->cache, &stats);
    sem_init(&s->cpus, 0, stats.workers);
    return 0;
}

int main(int argc, char **argv)
{
    struct server s = {0};
    sigset_t signals;
    int result;

    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: microhttpd_server DIRECTORY [PORT [LEVEL]]\n");
        return 2;
    }
    s.level = argc > 3 ? atoi(argv[3]) : 0;
    s.root_fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s.root_fd < 0) {
        perror(argv[1]);
        return 1;
    }
    if (!web_is_level(s.level)) {
        fprintf(stderr, "no such level: %d\n", s.level);
        return 1;
    }
    if (open_cache(&s) != 0)
        return 1;

    /* Blocked here and so in all threads: only sigwait() sees them. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);

    result = serve(&s, (uint16_t)(argc > 2 ? atoi(argv[2]) : 0), &signals);
    sem_destroy(&s.cpus);
    segzstd_cache_free(s.cache);
    close(s.root_fd);
    return result;
}
