/*
 * streams.c - many open streams, flushed in turn with little in each flush, on
 * few encoders: what does it take in memory and time?
 *
 * Every stream gets so many bytes that its history, by which another encoder
 * takes over, is full: else the memory would look smaller than it can become.
 * The output of some streams is kept, decoded and compared.
 */
#define _GNU_SOURCE 1

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "commands.h"
#include "drive.h"
#include "file.h"
#include "machine.h"
#include "measure.h"
#include "options.h"
#include "report.h"

#define MIB 1048576.0

/* Every so manieth stream is decoded in the end. */
#define SAMPLE_EVERY 97

/* A prime, so that streams and rounds see all of the file. */
#define OFFSET_STEP 7919

struct streams {
    struct file file;
    unsigned long count;
    unsigned long encoders;
    unsigned long rounds;
    unsigned long first_bytes; /* of the first flush, e.g. a page */
    unsigned long event_bytes; /* of every other flush */
    unsigned long level;
    bool rest;        /* say so after each flush */
    const char *json; /* file to write, or NULL */
    struct machine machine;

    segzstd_cache *cache;
    segzstd_stream **open;
    struct sink *kept; /* one for each sampled stream */
    struct sink dropped;
    uint64_t rss_before;
    struct reading spent;
};

static size_t event_len(const struct streams *self, unsigned long round)
{
    return round == 0 ? self->first_bytes : self->event_bytes;
}

/* What stream `index` is given in `round`. */
static const unsigned char *event(const struct streams *self,
                                  unsigned long index, unsigned long round)
{
    size_t room = self->file.len - event_len(self, round);

    return self->file.bytes +
           (index * OFFSET_STEP + round * self->event_bytes) % (room + 1);
}

static struct sink *sink_of(struct streams *self, unsigned long index)
{
    if (index % SAMPLE_EVERY == 0)
        return &self->kept[index / SAMPLE_EVERY];
    return &self->dropped;
}

/* One push, its jobs on this thread, and all its output. */
static bool push(struct streams *self, unsigned long index, const void *src,
                 size_t len, segzstd_op op)
{
    segzstd_stream *stream = self->open[index];
    size_t taken = 0;
    int error = segzstd_stream_push(stream, src, len, op, &taken);

    if (error == 0)
        error = drive_jobs(stream);
    drive_output(stream, sink_of(self, index));
    if (error == 0 && (taken != len || !segzstd_stream_is_flushed(stream)))
        error = SEGZSTD_ERR_INTERNAL;
    if (self->rest)
        segzstd_stream_rest(stream);
    if (error != 0) {
        fprintf(stderr, "stream %lu: %s\n", index, segzstd_strerror(error));
    }
    return error == 0;
}

static bool open_streams(struct streams *self)
{
    segzstd_cache_options cache = SEGZSTD_CACHE_OPTIONS_INIT;
    segzstd_stream_options options = SEGZSTD_STREAM_OPTIONS_INIT;
    bool good;

    cache.workers = 1; /* jobs run on this thread */
    cache.encoders_kept =
        self->encoders > 1 ? (unsigned)self->encoders - 1 : SEGZSTD_NONE;
    options.level = (int)self->level;
    good = segzstd_cache_new(&self->cache, &cache) == 0;
    for (unsigned long i = 0; good && i < self->count; i++) {
        good = segzstd_stream_new(&self->open[i], self->cache, &options) == 0;
    }
    return good;
}

static bool run_rounds(struct streams *self)
{
    struct reading start = measure_now();

    for (unsigned long round = 0; round < self->rounds; round++) {
        for (unsigned long i = 0; i < self->count; i++) {
            if (!push(self, i, event(self, i, round), event_len(self, round),
                      SEGZSTD_FLUSH)) {
                return false;
            }
        }
    }
    self->spent = measure_since(&start);
    return true;
}

/* All that stream `index` was given. The caller frees it. */
static unsigned char *expected_content(const struct streams *self,
                                       unsigned long index, size_t *len)
{
    unsigned char *content =
        malloc(self->first_bytes + self->rounds * self->event_bytes);

    *len = 0;
    for (unsigned long r = 0; content != NULL && r < self->rounds; r++) {
        memcpy(content + *len, event(self, index, r), event_len(self, r));
        *len += event_len(self, r);
    }
    return content;
}

static bool verify_stream(struct streams *self, unsigned long index)
{
    const struct sink *sink = sink_of(self, index);
    unsigned char *content;
    size_t len;
    bool good;

    if (!push(self, index, NULL, 0, SEGZSTD_END))
        return false;
    content = expected_content(self, index, &len);
    good = content != NULL && segzstd_stream_is_done(self->open[index]) &&
           sink->len <= sink->capacity &&
           frame_decodes_to(sink->dst, sink->len, content, len);
    free(content);
    return good;
}

static bool verify_streams(struct streams *self)
{
    for (unsigned long i = 0; i < self->count; i += SAMPLE_EVERY) {
        if (!verify_stream(self, i))
            return false;
    }
    return true;
}

static void write_json(FILE *out, const struct streams *self,
                       const segzstd_cache_stats *stats)
{
    double flushes = (double)self->count * (double)self->rounds;

    fprintf(out,
            "{\"streams\":%lu,\"encoders\":%lu,\"rounds\":%lu,"
            "\"event_bytes\":%lu,\"first_bytes\":%lu,\"level\":%lu",
            self->count, self->encoders, self->rounds, self->event_bytes,
            self->first_bytes, self->level);
    fprintf(out, ",\"bytes_peak\":%llu,\"rss_peak\":%llu,\"encoders_peak\":%u",
            (unsigned long long)stats->bytes_peak,
            (unsigned long long)(measure_rss_peak() - self->rss_before),
            stats->encoders_peak);
    fprintf(out, ",\"wall_ns_per_flush\":%.1f,\"cpu_ns_per_flush\":%.1f",
            self->spent.wall_ns / flushes, self->spent.cpu_ns / flushes);
    fputs(",\"zstd_file\":", out);
    write_json_string(out, self->machine.zstd_file);
    fputs("}\n", out);
}

static void print(const struct streams *self, const segzstd_cache_stats *stats)
{
    double flushes = (double)self->count * (double)self->rounds;

    printf("%lu streams, level %lu, %lu encoders, %lu flushes each of %lu B "
           "(the first %lu B)%s\n",
           self->count, self->level, self->encoders, self->rounds,
           self->event_bytes, self->first_bytes, self->rest ? ", rest" : "");
    printf("peak by the cache's count  %.1f MiB, %u encoders\n",
           (double)stats->bytes_peak / MIB, stats->encoders_peak);
    printf("peak of resident memory    %.1f MiB more than before\n",
           (double)(measure_rss_peak() - self->rss_before) / MIB);
    printf("one flush                  %.1f us wall, %.1f us CPU, %.1f B\n",
           self->spent.wall_ns / flushes / 1000,
           self->spent.cpu_ns / flushes / 1000,
           (double)stats->bytes_out / flushes);
    printf("encoders                   %llu hits, %llu misses, %llu steals\n",
           (unsigned long long)stats->hits, (unsigned long long)stats->misses,
           (unsigned long long)stats->steals);
    printf("libzstd                    %s\n", self->machine.zstd_file);
}

/* Before the verification, which needs memory of its own. */
static bool report(const struct streams *self)
{
    segzstd_cache_stats stats = SEGZSTD_CACHE_STATS_INIT;
    FILE *json;

    if (segzstd_cache_get_stats(self->cache, &stats) != 0)
        return false;
    print(self, &stats);
    if (self->json == NULL)
        return true;
    json = fopen(self->json, "w");
    if (json == NULL) {
        perror(self->json);
        return false;
    }
    write_json(json, self, &stats);
    return fclose(json) == 0;
}

static void print_help(FILE *out)
{
    fputs("usage: segzstd_bench streams [OPTION]... FILE\n"
          "  --streams N     open at once (10000)\n"
          "  --encoders N    alive at most (4)\n"
          "  --rounds N      flushes of each stream (170)\n"
          "  --event BYTES   of a flush (200)\n"
          "  --first BYTES   of the first flush (200)\n"
          "  --level N       (3)\n"
          "  --rest          call segzstd_stream_rest() after each flush\n"
          "  --json FILE     write the numbers\n"
          "The events are cut out of FILE.\n",
          out);
}

static bool take_option(struct streams *self, int option, const char *text)
{
    switch (option) {
    case 'n':
        return parse_number(text, 1, 1000000, &self->count);
    case 'e':
        return parse_number(text, 1, 1024, &self->encoders);
    case 'r':
        return parse_number(text, 1, 1000000, &self->rounds);
    case 'b':
        return parse_number(text, 1, 65536, &self->event_bytes);
    case 'f':
        return parse_number(text, 1, 131072, &self->first_bytes);
    case 'l':
        return parse_number(text, 1, 22, &self->level);
    case 'R':
        self->rest = true;
        return true;
    case 'j':
        self->json = text;
        return true;
    default:
        return false;
    }
}

/* The path of the file to take events from, or NULL. */
static const char *parse(struct streams *self, int argc, char **argv)
{
    static const struct option long_options[] = {
        {"streams", required_argument, NULL, 'n'},
        {"encoders", required_argument, NULL, 'e'},
        {"rounds", required_argument, NULL, 'r'},
        {"event", required_argument, NULL, 'b'},
        {"first", required_argument, NULL, 'f'},
        {"level", required_argument, NULL, 'l'},
        {"rest", no_argument, NULL, 'R'},
        {"json", required_argument, NULL, 'j'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (!take_option(self, option, optarg))
            return NULL;
    }
    return optind + 1 == argc ? argv[optind] : NULL;
}

/* Room for the frames of the sampled streams: a flush of random bytes would
 * still fit. */
static bool make_sinks(struct streams *self)
{
    unsigned long samples = self->count / SAMPLE_EVERY + 1;
    size_t capacity = ZSTD_compressBound(self->first_bytes) +
                      self->rounds * ZSTD_compressBound(self->event_bytes);

    self->kept = calloc(samples, sizeof(*self->kept));
    for (unsigned long i = 0; self->kept != NULL && i < samples; i++) {
        self->kept[i].dst = malloc(capacity);
        if (self->kept[i].dst == NULL)
            return false;
        self->kept[i].capacity = capacity;
        self->kept[i].keep = true;
    }
    return self->kept != NULL;
}

static bool prepare(struct streams *self, const char *path)
{
    if (!file_load(&self->file, path))
        return false;
    if (self->file.len < self->event_bytes ||
        self->file.len < self->first_bytes) {
        fprintf(stderr, "%s: shorter than one event\n", path);
        return false;
    }
    self->open = calloc(self->count, sizeof(segzstd_stream *));
    if (self->open == NULL || !make_sinks(self))
        return false;
    machine_look(&self->machine);
    self->rss_before = measure_rss();
    return open_streams(self);
}

static void finish(struct streams *self)
{
    unsigned long samples = self->count / SAMPLE_EVERY + 1;

    for (unsigned long i = 0; self->open != NULL && i < self->count; i++)
        segzstd_stream_free(self->open[i]);
    free(self->open);
    for (unsigned long i = 0; self->kept != NULL && i < samples; i++)
        free(self->kept[i].dst);
    free(self->kept);
    segzstd_cache_free(self->cache);
    file_free(&self->file);
}

int streams_main(int argc, char **argv)
{
    struct streams self = {
        .count = 10000,
        .encoders = 4,
        .rounds = 170,
        .first_bytes = 200,
        .event_bytes = 200,
        .level = 3,
    };
    const char *path = parse(&self, argc, argv);
    bool good;

    if (path == NULL) {
        print_help(stderr);
        return 2;
    }
    good = prepare(&self, path) && run_rounds(&self) && report(&self) &&
           verify_streams(&self);
    finish(&self);
    return good ? 0 : 1;
}
