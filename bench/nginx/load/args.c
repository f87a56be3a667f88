/*
 * args.c - see args.h.
 */
#define _GNU_SOURCE 1

#include "args.h"

#include "event.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Options of a stream are stream * FIELDS + field, the others follow. */
enum { PATH, ENCODING, RATE, READ_RATE, PHASE, CONNECTIONS, COUNT, FIELDS };
enum {
    WARMUP = STREAMS * FIELDS,
    SECONDS,
    TIMEOUT,
    REALTIME,
    PID,
    JSON,
    SAMPLES,
    HGRM,
    HELP,
    EVENTS, /* and all after it are of event streams */
    EVENT_PATH,
    EVENT_ENCODING,
    EVENT_ORIGIN,
    EVENT_RATE,
    EVENT_BYTES
};

static const struct option options[] = {
    {"small", required_argument, NULL, SMALL *FIELDS + PATH},
    {"small-encoding", required_argument, NULL, SMALL *FIELDS + ENCODING},
    {"small-rate", required_argument, NULL, SMALL *FIELDS + RATE},
    {"small-connections", required_argument, NULL, SMALL *FIELDS + CONNECTIONS},
    {"small-count", required_argument, NULL, SMALL *FIELDS + COUNT},
    {"large", required_argument, NULL, LARGE *FIELDS + PATH},
    {"large-encoding", required_argument, NULL, LARGE *FIELDS + ENCODING},
    {"large-rate", required_argument, NULL, LARGE *FIELDS + RATE},
    {"large-phase", required_argument, NULL, LARGE *FIELDS + PHASE},
    {"large-connections", required_argument, NULL, LARGE *FIELDS + CONNECTIONS},
    {"large-count", required_argument, NULL, LARGE *FIELDS + COUNT},
    {"slow", required_argument, NULL, SLOW *FIELDS + PATH},
    {"slow-encoding", required_argument, NULL, SLOW *FIELDS + ENCODING},
    {"slow-rate", required_argument, NULL, SLOW *FIELDS + READ_RATE},
    {"slow-connections", required_argument, NULL, SLOW *FIELDS + CONNECTIONS},
    {"event-streams", required_argument, NULL, EVENTS},
    {"event-path", required_argument, NULL, EVENT_PATH},
    {"event-encoding", required_argument, NULL, EVENT_ENCODING},
    {"event-origin", required_argument, NULL, EVENT_ORIGIN},
    {"event-rate", required_argument, NULL, EVENT_RATE},
    {"event-bytes", required_argument, NULL, EVENT_BYTES},
    {"warmup", required_argument, NULL, WARMUP},
    {"seconds", required_argument, NULL, SECONDS},
    {"timeout", required_argument, NULL, TIMEOUT},
    {"realtime", no_argument, NULL, REALTIME},
    {"pid", required_argument, NULL, PID},
    {"json", required_argument, NULL, JSON},
    {"samples", required_argument, NULL, SAMPLES},
    {"hgrm", required_argument, NULL, HGRM},
    {"help", no_argument, NULL, HELP},
    {NULL, 0, NULL, 0},
};

static const char help_text[] =
    "usage: segzstd_load [OPTION]... ADDRESS:PORT\n"
    "HTTP/1.1 load on keepalive connections from one thread, and what it does\n"
    "to small requests meanwhile.\n"
    "\n"
    "Small requests, at a constant rate. Their latency counts from the time "
    "at\n"
    "which they should have been sent, whether or not they could be.\n"
    "  --small PATH            send these\n"
    "  --small-rate R          per second (200)\n"
    "  --small-connections N   on so many connections (64); where they are "
    "few,\n"
    "                          stalls are longer: requests wait for them, too\n"
    "Large requests:\n"
    "  --large PATH            send these\n"
    "  --large-rate R          per second; without it each connection sends "
    "its\n"
    "                          next one when an answer has ended\n"
    "  --large-phase K         with a rate: K at the same instant (1)\n"
    "  --large-connections N   no more than N at a time (K, or 1)\n"
    "Slow readers, each asking again when an answer has ended:\n"
    "  --slow PATH             what they ask for\n"
    "  --slow-rate B           bytes per second that each of them reads "
    "(4096)\n"
    "  --slow-connections N    (512)\n"
    "Streams of events that stay open, of which we are the origin, too:\n"
    "  --event-streams N       open so many; all else begins when they are\n"
    "  --event-path PATH       what they ask for; the server has to hand it "
    "on\n"
    "  --event-origin PORT     to 127.0.0.1:PORT, with its request headers\n"
    "  --event-rate R          events per second and stream (1)\n"
    "  --event-bytes B         of each event (200)\n"
    "  --event-encoding CODING (identity)\n"
    "Of small and large requests:\n"
    "  --*-encoding CODING     ask for it and expect it (identity); small,\n"
    "                          large and slow ones\n"
    "  --*-count N             no more than N; small and large ones\n"
    "Bounds and results:\n"
    "  --seconds S             send for so long (10)\n"
    "  --warmup S              before that, not counted (0)\n"
    "  --timeout S             without an answer it has failed (30)\n"
    "  --realtime              never wait for a CPU behind the server (root); "
    "for\n"
    "                          constant rates, at which this needs little "
    "CPU\n"
    "  --pid PID               report CPU and memory of this process\n"
    "  --json FILE             write the results\n"
    "  --samples FILE          write each answer's times, as CSV\n"
    "  --hgrm PREFIX           write whole distributions in ms, as text of\n"
    "                          HdrHistogram: PREFIX-small-last-byte.hgrm, ...\n"
    "Exit status: 0; 1 if a request failed; 2 for wrong arguments.\n";

static bool complain(const char *option, const char *value, const char *wanted)
{
    fprintf(stderr, "segzstd_load: %s: \"%s\" is not %s\n", option, value,
            wanted);
    return false;
}

static bool read_double(const char *text, double min, double max,
                        double *number)
{
    char *end;

    errno = 0;
    *number = strtod(text, &end);
    return errno == 0 && end != text && *end == '\0' && isfinite(*number) &&
           *number >= min && *number <= max;
}

static bool read_whole(const char *text, uint64_t min, uint64_t max,
                       uint64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && *text >= '0' && *text <= '9' && *end == '\0' &&
           *number >= min && *number <= max;
}

static bool read_server(struct args *args, char *text)
{
    char *colon = strrchr(text, ':');
    uint64_t port;
    bool right;

    args->host = text;
    if (colon == NULL)
        return complain("server", text,
                        "an IPv4 address and a port, as in "
                        "127.0.0.1:8080");
    *colon = '\0';
    args->server.sin_family = AF_INET;
    right = inet_pton(AF_INET, text, &args->server.sin_addr) == 1 &&
            read_whole(colon + 1, 1, 65535, &port);
    *colon = ':';
    if (!right)
        return complain("server", text,
                        "an IPv4 address and a port, as in "
                        "127.0.0.1:8080");
    args->server.sin_port = htons((uint16_t)port);
    return true;
}

static bool read_path(const char *option, const char *value, const char **path)
{
    *path = value;
    return (value[0] == '/' && strpbrk(value, " \r\n") == NULL &&
            strlen(value) < 1024) ||
           complain(option, value,
                    "a path that begins with / and has no "
                    "spaces");
}

static bool read_coding(const char *option, const char *value,
                        const char **coding)
{
    *coding = value;
    return (value[0] != '\0' && strlen(value) < 16 &&
            strspn(value, "abcdefghijklmnopqrstuvwxyz-") == strlen(value)) ||
           complain(option, value, "a content coding, as zstd or identity");
}

static bool read_count(const char *option, const char *value, unsigned min,
                       unsigned max, unsigned *count)
{
    uint64_t number;
    char wanted[64];

    if (read_whole(value, min, max, &number)) {
        *count = (unsigned)number;
        return true;
    }
    snprintf(wanted, sizeof(wanted), "a number from %u to %u", min, max);
    return complain(option, value, wanted);
}

static bool parse_stream(struct stream_args *stream, int field,
                         const char *option, const char *value)
{
    switch (field) {
    case PATH:
        return read_path(option, value, &stream->path);
    case ENCODING:
        return read_coding(option, value, &stream->encoding);
    case RATE:
        return read_double(value, 0.01, 1e6, &stream->rate) ||
               complain(option, value, "a number from 0.01 to 1000000");
    case READ_RATE:
        return read_double(value, 1, 1e9, &stream->read_rate) ||
               complain(option, value, "a number from 1 to 1000000000");
    case PHASE:
        return read_count(option, value, 1, 1024, &stream->phase);
    case CONNECTIONS:
        return read_count(option, value, 1, 4096, &stream->connections);
    default:
        return read_whole(value, 1, UINT32_MAX, &stream->count) ||
               complain(option, value, "a number from 1 to 4294967295");
    }
}

static bool parse_events(struct event_args *events, int code,
                         const char *option, const char *value)
{
    uint64_t number = 0;

    switch (code) {
    case EVENTS:
        return read_count(option, value, 1, 50000, &events->streams);
    case EVENT_PATH:
        return read_path(option, value, &events->path);
    case EVENT_ENCODING:
        return read_coding(option, value, &events->encoding);
    case EVENT_ORIGIN:
        if (!read_whole(value, 1, 65535, &number))
            return complain(option, value, "a port from 1 to 65535");
        events->origin_port = (unsigned)number;
        return true;
    case EVENT_RATE:
        return read_double(value, 0.001, 10000, &events->rate) ||
               complain(option, value, "a number from 0.001 to 10000");
    default:
        return read_count(option, value, EVENT_MIN, EVENT_MAX, &events->bytes);
    }
}

static bool check_hgrm(void)
{
#ifdef HAVE_HDR
    return true;
#else
    fputs("segzstd_load: --hgrm: built without HdrHistogram (-DHAVE_HDR)\n",
          stderr);
    return false;
#endif
}

static bool parse_option(struct args *args, int code, const char *option,
                         const char *value)
{
    uint64_t number = 0;

    if (code < STREAMS * FIELDS)
        return parse_stream(&args->streams[code / FIELDS], code % FIELDS,
                            option, value);
    if (code >= EVENTS)
        return parse_events(&args->events, code, option, value);
    switch (code) {
    case WARMUP:
        return read_double(value, 0, 3600, &args->warmup_s) ||
               complain(option, value, "a number of seconds up to 3600");
    case SECONDS:
        return read_double(value, 0.01, 3600, &args->seconds) ||
               complain(option, value, "a number of seconds from 0.01 to 3600");
    case TIMEOUT:
        return read_double(value, 0.01, 3600, &args->timeout_s) ||
               complain(option, value, "a number of seconds from 0.01 to 3600");
    case REALTIME:
        args->realtime = true;
        return true;
    case PID:
        if (!read_whole(value, 1, INT_MAX, &number))
            return complain(option, value, "the number of a process");
        args->pid = (int)number;
        return true;
    case JSON:
        args->json = value;
        return true;
    case HGRM:
        args->hgrm = value;
        return check_hgrm();
    default:
        args->samples = value;
        return true;
    }
}

/* given: an option of event streams; NULL: there is none. */
static bool check_events(const struct event_args *events, const char *given)
{
    if (given == NULL)
        return true;
    if (events->streams == 0) {
        fprintf(stderr, "segzstd_load: --%s needs --event-streams N\n", given);
        return false;
    }
    if (events->path == NULL || events->origin_port == 0) {
        fprintf(stderr, "segzstd_load: --event-streams needs --event-%s\n",
                events->path == NULL ? "path PATH" : "origin PORT");
        return false;
    }
    return true;
}

/* What was asked for together must make sense together. */
static bool check_streams(const struct args *args, const char *const *given)
{
    unsigned wanted = args->events.streams > 0;

    for (int i = 0; i < STREAMS; i++) {
        const struct stream_args *stream = &args->streams[i];
        wanted += stream->path != NULL;
        if (stream->path == NULL && given[i] != NULL) {
            fprintf(stderr, "segzstd_load: --%s needs --%s PATH\n", given[i],
                    stream->name);
            return false;
        }
    }
    if (wanted == 0) {
        fputs("segzstd_load: nothing to send, give --small, --large or --slow "
              "a path, or --event-streams\n",
              stderr);
        return false;
    }
    if (args->streams[LARGE].phase > 1 && args->streams[LARGE].rate == 0) {
        fputs("segzstd_load: --large-phase needs --large-rate\n", stderr);
        return false;
    }
    if (args->streams[LARGE].phase > args->streams[LARGE].connections) {
        fputs("segzstd_load: --large-phase is more than --large-connections\n",
              stderr);
        return false;
    }
    return true;
}

static void set_defaults(struct args *args)
{
    static const struct stream_args defaults[STREAMS] = {
        {.name = "small", .rate = 200, .connections = 64},
        {.name = "large"},
        {.name = "slow", .read_rate = 4096, .connections = 512},
    };

    memset(args, 0, sizeof(*args));
    args->seconds = 10;
    args->timeout_s = 30;
    args->events.encoding = "identity";
    args->events.rate = 1;
    args->events.bytes = 200;
    for (int i = 0; i < STREAMS; i++) {
        args->streams[i] = defaults[i];
        args->streams[i].encoding = "identity";
        args->streams[i].phase = 1;
    }
}

bool args_parse(struct args *args, int argc, char **argv, bool *help)
{
    const char *given[STREAMS] = {NULL};
    const char *event_given = NULL;
    int code, index;

    *help = false;
    set_defaults(args);
    while ((code = getopt_long(argc, argv, "", options, &index)) != -1) {
        if (code == '?') /* and getopt has said why */
            return false;
        if (code == HELP) {
            fputs(help_text, stdout);
            *help = true;
            return true;
        }
        if (code < STREAMS * FIELDS)
            given[code / FIELDS] = options[index].name;
        else if (code >= EVENTS)
            event_given = options[index].name;
        if (!parse_option(args, code, options[index].name, optarg))
            return false;
    }
    if (argc - optind != 1) {
        fputs("segzstd_load: give one server, as 127.0.0.1:8080; see --help\n",
              stderr);
        return false;
    }
    if (args->streams[LARGE].connections == 0)
        args->streams[LARGE].connections = args->streams[LARGE].phase;
    return check_events(&args->events, event_given) &&
           check_streams(args, given) && read_server(args, argv[optind]);
}
