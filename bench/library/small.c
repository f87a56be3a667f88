/*
 * small.c - what a stream of one small body costs beyond libzstd's own call,
 * on one thread: new, push with end, poll, run, complete, peek, consume, free,
 * against ZSTD_compress2 with a reused context.
 *
 * Times of some microseconds are taken over batches that alternate. With --only
 * the program does nothing but one kind of compression, for a tool that counts
 * instructions: two counts, and the difference of the totals.
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
#include "stats.h"

/* A batch of 2 KB bodies is some milliseconds long, and a hundred of them show
 * how much they differ. */
#define BATCH 1000
#define BATCHES 101

struct small {
    struct file file;
    int levels[OPTIONS_LEVELS_MAX];
    size_t level_count;
    size_t batches;
    const char *only; /* "zstd" or "segzstd"; NULL: both, timed */
    size_t count;     /* for only */
    const char *json; /* file to write, or NULL */
    struct machine machine;

    struct sink sink;
    ZSTD_CCtx *cctx;
    segzstd_cache *cache;
    segzstd_stream_options options;
};

/* The two ways, at one level. */
struct small_result {
    int level;
    struct spread zstd_ns;
    struct spread segzstd_ns;
    double difference_ns; /* median of the differences of neighbours */
    size_t zstd_size;
    size_t segzstd_size;
};

static bool zstd_once(struct small *self)
{
    size_t written =
        ZSTD_compress2(self->cctx, self->sink.dst, self->sink.capacity,
                       self->file.bytes, self->file.len);

    self->sink.len = written;
    return !ZSTD_isError(written);
}

static bool segzstd_once(struct small *self)
{
    segzstd_stream *stream;
    size_t taken = 0;
    int error;

    self->sink.len = 0;
    error = segzstd_stream_new(&stream, self->cache, &self->options);
    if (error != 0)
        return false;
    error = segzstd_stream_push(stream, self->file.bytes, self->file.len,
                                SEGZSTD_END, &taken);
    if (error == 0)
        error = drive_jobs(stream);
    drive_output(stream, &self->sink);
    if (error == 0 && !segzstd_stream_is_done(stream))
        error = SEGZSTD_ERR_INTERNAL;
    segzstd_stream_free(stream);
    if (error != 0)
        fprintf(stderr, "small: %s\n", segzstd_strerror(error));
    return error == 0;
}

/* One way, `count` times; adds the nanoseconds of one to *ns. */
static bool run_batch(struct small *self, bool (*once)(struct small *self),
                      size_t count, struct series *ns)
{
    struct reading start = measure_now();

    for (size_t i = 0; i < count; i++) {
        if (!once(self))
            return false;
    }
    return series_add(ns, measure_since(&start).wall_ns / (double)count);
}

static bool set_level(struct small *self, int level)
{
    self->options.level = level;
    return !ZSTD_isError(
        ZSTD_CCtx_setParameter(self->cctx, ZSTD_c_compressionLevel, level));
}

/* Runs each way once and looks at its frame. */
static bool verify(struct small *self, struct small_result *result)
{
    const struct file *file = &self->file;
    bool good;

    self->sink.keep = true;
    good = zstd_once(self) && frame_decodes_to(self->sink.dst, self->sink.len,
                                               file->bytes, file->len);
    result->zstd_size = self->sink.len;
    good = good && segzstd_once(self) &&
           frame_decodes_to(self->sink.dst, self->sink.len, file->bytes,
                            file->len);
    result->segzstd_size = self->sink.len;
    self->sink.keep = false;
    return good;
}

static bool run_level(struct small *self, int level,
                      struct small_result *result)
{
    struct series zstd = {0};
    struct series ours = {0};
    struct series difference = {0};
    bool good;

    memset(result, 0, sizeof(*result));
    result->level = level;
    good = set_level(self, level) && verify(self, result);
    for (size_t i = 0; good && i < self->batches; i++) {
        good = run_batch(self, zstd_once, BATCH, &zstd) &&
               run_batch(self, segzstd_once, BATCH, &ours) &&
               series_add(&difference, ours.values[i] - zstd.values[i]);
    }
    result->zstd_ns = series_spread(&zstd);
    result->segzstd_ns = series_spread(&ours);
    result->difference_ns = series_median(&difference);
    series_free(&zstd);
    series_free(&ours);
    series_free(&difference);
    return good;
}

static void print_result(const struct small *self,
                         const struct small_result *result)
{
    printf("%s, %zu bytes, level %d: libzstd %.0f ns (+-%.0f%%), segzstd "
           "%.0f ns (+-%.0f%%), beyond %.0f ns; %zu and %zu bytes; %s\n",
           self->file.name, self->file.len, result->level,
           result->zstd_ns.median, 100 * spread_part(&result->zstd_ns),
           result->segzstd_ns.median, 100 * spread_part(&result->segzstd_ns),
           result->difference_ns, result->zstd_size, result->segzstd_size,
           self->machine.zstd_file);
}

static void write_json(FILE *out, const struct small *self,
                       const struct small_result *result)
{
    fputs("{\"file\":", out);
    write_json_string(out, self->file.name);
    fprintf(out, ",\"bytes\":%zu,\"level\":%d,\"zstd_ns\":%.1f", self->file.len,
            result->level, result->zstd_ns.median);
    fprintf(out, ",\"segzstd_ns\":%.1f,\"beyond_ns\":%.1f,\"zstd_file\":",
            result->segzstd_ns.median, result->difference_ns);
    write_json_string(out, self->machine.zstd_file);
    fputs("}\n", out);
}

static bool run_timed(struct small *self)
{
    FILE *json = self->json != NULL ? fopen(self->json, "w") : NULL;
    struct small_result result;
    bool good = self->json == NULL || json != NULL;

    for (size_t i = 0; good && i < self->level_count; i++) {
        good = run_level(self, self->levels[i], &result);
        if (good)
            print_result(self, &result);
        if (good && json != NULL)
            write_json(json, self, &result);
    }
    if (json != NULL)
        good = fclose(json) == 0 && good;
    return good;
}

static bool run_only(struct small *self)
{
    bool ours = strcmp(self->only, "segzstd") == 0;

    if (!set_level(self, self->levels[0]))
        return false;
    for (size_t i = 0; i < self->count; i++) {
        if (!(ours ? segzstd_once(self) : zstd_once(self)))
            return false;
    }
    return true;
}

static void print_help(FILE *out)
{
    fputs("usage: segzstd_bench small [OPTION]... FILE\n"
          "  --levels 3,9              levels (1,3,9,19)\n"
          "  --batches N               of 1000 bodies (101)\n"
          "  --only zstd|segzstd       no timing, the first level only\n"
          "  --count N                 with --only: how many (1000)\n"
          "  --json FILE               write a line for each level\n",
          out);
}

static bool take_option(struct small *self, int option, const char *text)
{
    unsigned long number = 0;

    switch (option) {
    case 'l':
        return parse_levels(text, self->levels, OPTIONS_LEVELS_MAX,
                            &self->level_count);
    case 'b':
        if (!parse_number(text, 1, 1000000, &number))
            return false;
        self->batches = number;
        return true;
    case 'c':
        if (!parse_number(text, 1, 1000000000, &number))
            return false;
        self->count = number;
        return true;
    case 'o':
        self->only = text;
        return strcmp(text, "zstd") == 0 || strcmp(text, "segzstd") == 0;
    case 'j':
        self->json = text;
        return true;
    default:
        return false;
    }
}

/* The path of the file to compress, or NULL. */
static const char *parse(struct small *self, int argc, char **argv)
{
    static const struct option long_options[] = {
        {"levels", required_argument, NULL, 'l'},
        {"batches", required_argument, NULL, 'b'},
        {"only", required_argument, NULL, 'o'},
        {"count", required_argument, NULL, 'c'},
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

static bool open_small(struct small *self, const char *path)
{
    segzstd_cache_options cache_options = SEGZSTD_CACHE_OPTIONS_INIT;

    if (!file_load(&self->file, path))
        return false;
    machine_look(&self->machine);
    cache_options.workers = 1;
    self->options.size = self->file.len;
    self->options.size_is_certain = 1;
    self->sink.capacity = ZSTD_compressBound(self->file.len) + 4096;
    self->sink.dst = malloc(self->sink.capacity);
    self->cctx = ZSTD_createCCtx();
    return self->sink.dst != NULL && self->cctx != NULL &&
           segzstd_cache_new(&self->cache, &cache_options) == 0;
}

static void close_small(struct small *self)
{
    segzstd_cache_free(self->cache);
    ZSTD_freeCCtx(self->cctx);
    free(self->sink.dst);
    file_free(&self->file);
}

int small_main(int argc, char **argv)
{
    struct small self = {
        .levels = {1, 3, 9, 19},
        .level_count = 4,
        .batches = BATCHES,
        .count = 1000,
        .options = SEGZSTD_STREAM_OPTIONS_INIT,
    };
    const char *path = parse(&self, argc, argv);
    bool good;

    if (path == NULL) {
        print_help(stderr);
        return 2;
    }
    good = open_small(&self, path);
    if (good)
        good = self.only != NULL ? run_only(&self) : run_timed(&self);
    close_small(&self);
    return good ? 0 : 1;
}
