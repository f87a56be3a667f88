/*
 * fuzz_roundtrip.c - arbitrary content under arbitrary options: what stock
 * libzstd decodes from the frame is what went in, and every sequence of the
 * frame keeps to its window.
 *
 * The fuzzer's bytes are options, and then a small program that makes content:
 * literal bytes, copies of what came before, runs, generated parts. So a few
 * hundred bytes make content of many segments.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/drive.h"

enum {
    KIB = 1 << 10,
    CONTENT_MAX = 512 * KIB,
    LARGE_MAX = 3072 * KIB, /* enough to be cut for an idle worker */
    DICT_MAX = 8 * KIB
};

struct bytes {
    const uint8_t *at;
    const uint8_t *end;
    unsigned shift; /* of sizes */
};

struct content {
    unsigned char bytes[LARGE_MAX];
    size_t len;
    size_t cap;
};

static void check(const char *fault)
{
    if (fault == NULL)
        return;
    fprintf(stderr, "fuzz_roundtrip: %s\n", fault);
    abort();
}

static unsigned take(struct bytes *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

/* Of any order of magnitude up to 128 KiB, or, where all is large, 2 MiB. */
static size_t take_size(struct bytes *in)
{
    unsigned a = take(in), b = take(in);

    return (((size_t)1 << a % 17) + (b << a % 10)) << in->shift;
}

/* ------------------------------------------------------------------------ */
/* Content                                                                  */

static size_t room_for(const struct content *c, size_t n)
{
    return n < c->cap - c->len ? n : c->cap - c->len;
}

static void add_literals(struct content *c, struct bytes *in, size_t n)
{
    n = room_for(c, n);
    while (n-- > 0 && in->at < in->end)
        c->bytes[c->len++] = *in->at++;
}

static void add_copy(struct content *c, size_t back, size_t n)
{
    if (c->len == 0)
        return;
    back = 1 + back % c->len;
    for (n = room_for(c, n); n > 0; n--, c->len++)
        c->bytes[c->len] = c->bytes[c->len - back];
}

static void add_run(struct content *c, unsigned value, size_t n)
{
    n = room_for(c, n);
    memset(c->bytes + c->len, (int)value, n);
    c->len += n;
}

static void add_generated(struct content *c, unsigned kind, size_t n)
{
    n = room_for(c, n);
    data_fill(c->bytes + c->len, n, (enum data_kind)(kind % DATA_KINDS), kind);
    c->len += n;
}

static void make_content(struct content *c, struct bytes *in)
{
    c->len = 0;
    while (in->at < in->end && c->len < c->cap) {
        unsigned op = take(in);
        size_t n = op % 4 == 0 ? 1 + op / 4 : take_size(in);

        if (op % 4 == 0)
            add_literals(c, in, n);
        else if (op % 4 == 1)
            add_copy(c, take_size(in), n);
        else if (op % 4 == 2)
            add_run(c, take(in), n);
        else
            add_generated(c, op / 4, n);
    }
}

/* ------------------------------------------------------------------------ */

/* All of a case but its content. */
struct setting {
    segzstd_cache *cache;
    segzstd_stream_options options;
    unsigned char dict[DICT_MAX];
    size_t dict_len;    /* 0: none */
    size_t flush_bytes; /* flush each so many; 0: never */
    unsigned way;       /* copy, reference, reader; order */
};

static void take_cache(struct setting *s, struct bytes *in)
{
    segzstd_cache_options options = SEGZSTD_CACHE_OPTIONS_INIT;
    unsigned counts = take(in);

    options.workers = 1 + counts % 4;
    in->shift = counts & 128 ? 4 : 0;
    options.encoders_kept = counts & 16 ? SEGZSTD_NONE : 0;
    options.no_stable_input = (counts & 32) != 0;
    options.no_huge_pages = (counts & 64) != 0;
    if (segzstd_cache_new(&s->cache, &options) != 0)
        check("cache_new failed");
}

static void take_options(struct setting *s, struct bytes *in, size_t *cap)
{
    static const size_t segments[] = {0, 0, 64 * KIB, 65537, 100 * KIB};
    static const size_t overlaps[] = {0, SEGZSTD_OVERLAP_NONE, 1, 5000};
    segzstd_stream_options *o = &s->options;
    unsigned flags = take(in), sizes = take(in);

    *o = (segzstd_stream_options)SEGZSTD_STREAM_OPTIONS_INIT;
    o->level = (int)(take(in) % 27) - 7;
    *cap = o->level > 12 ? 100 * KIB : CONTENT_MAX;
    if (in->shift != 0)
        *cap = o->level > 12 ? 700 * KIB : LARGE_MAX;
    o->segment_bytes = segments[sizes % 5];
    o->overlap_bytes = overlaps[sizes / 5 % 4];
    o->history_bytes = overlaps[sizes / 20 % 4];
    o->checksum = flags & 1;
    o->size = flags & 2 ? take_size(in) : *cap;
    if (flags & 4)
        o->window_log = 10 + take(in) % 14;
    o->no_dict_id = (flags & 8) != 0;
    if (flags & 16)
        s->flush_bytes = take_size(in);
    s->way = take(in);
}

static void take_dict(struct setting *s, struct bytes *in)
{
    unsigned kind = take(in);

    if (kind < 128)
        return;
    s->dict_len = 8 + take_size(in) % (DICT_MAX - 8);
    data_fill(s->dict, s->dict_len, (enum data_kind)(kind % DATA_KINDS), kind);
    if (segzstd_dict_new(&s->options.dict, s->cache, s->dict, s->dict_len) != 0)
        check("dict_new failed");
}

static int push_all(struct drive *d, const struct setting *s,
                    const struct content *c, struct drive_source *source)
{
    size_t at = 0;

    *source = (struct drive_source){c->bytes, c->len, 0, 0, NULL};
    if (s->way % 4 == 0)
        return drive_push_source(d, source, c->len, SEGZSTD_END);
    while (s->flush_bytes != 0 && at + s->flush_bytes < c->len) {
        int rc = drive_push(d, c->bytes + at, s->flush_bytes, SEGZSTD_FLUSH);

        if (rc != 0)
            return rc;
        at += s->flush_bytes;
    }
    if (s->way % 4 == 1)
        return drive_push_ref(d, c->bytes + at, c->len - at, SEGZSTD_END);
    return drive_push(d, c->bytes + at, c->len - at, SEGZSTD_END);
}

static void round_trip(struct setting *s, const struct content *c)
{
    struct oracle_want want = {c->bytes,
                               c->len,
                               s->dict_len > 0 ? s->dict : NULL,
                               s->dict_len,
                               s->options.window_log,
                               ORACLE_SIZE_ANY};
    struct drive_source source;
    segzstd_stream *stream;
    struct drive d;

    if (segzstd_stream_new(&stream, s->cache, &s->options) != 0)
        check("stream_new failed");
    drive_init(&d, stream, c->len);
    d.order = (enum drive_order)(s->way / 4 % 3);
    d.jobs_held = s->way / 16 % 4;
    d.push_bytes = s->way & 128 ? 0 : SIZE_MAX;
    if (push_all(&d, s, c, &source) != 0 || drive_end(&d) != 0)
        check("the stream failed");
    check(d.fault);
    check(oracle_check_once(d.out, d.out_len, &want));
    segzstd_stream_free(stream);
    if (d.refs_back != d.refs_lent)
        check("what was lent did not come back");
    drive_free(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct content content;
    struct bytes in = {data, data + len, 0};
    struct setting setting;

    memset(&setting, 0, sizeof(setting));
    take_cache(&setting, &in);
    take_options(&setting, &in, &content.cap);
    take_dict(&setting, &in);
    make_content(&content, &in);
    round_trip(&setting, &content);
    segzstd_dict_free(setting.options.dict);
    segzstd_cache_free(setting.cache);
    return 0;
}
