#include "support/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { WORDS = 1024, WORD_MAX = 12 };

struct vocabulary {
    char word[WORDS][WORD_MAX];
    unsigned char len[WORDS];
};

/* Where a generator writes; never beyond `end`. */
struct sink {
    unsigned char *at;
    unsigned char *end;
};

struct rng rng_seed(uint64_t seed)
{
    struct rng rng = {(seed + 1) * 0x9e3779b97f4a7c15u};

    if (rng.state == 0)
        rng.state = 1;
    rng_next(&rng);
    return rng;
}

/* Shift-register generator with a multiplied output; period 2^64 - 1. */
uint64_t rng_next(struct rng *rng)
{
    uint64_t x = rng->state;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    rng->state = x;
    return x * 0x2545f4914f6cdd1du;
}

size_t rng_below(struct rng *rng, size_t n)
{
    return (size_t)((rng_next(rng) >> 11) % n);
}

size_t rng_spread(struct rng *rng, size_t max)
{
    size_t top = 1;

    while (top < max && rng_below(rng, 16) != 0)
        top *= 2;
    return 1 + rng_below(rng, top < max ? top : max);
}

static size_t room(const struct sink *sink)
{
    return (size_t)(sink->end - sink->at);
}

static void put(struct sink *sink, const void *bytes, size_t len)
{
    if (len > room(sink))
        len = room(sink);
    memcpy(sink->at, bytes, len);
    sink->at += len;
}

static void put_byte(struct sink *sink, unsigned value, size_t count)
{
    if (count > room(sink))
        count = room(sink);
    memset(sink->at, (int)value, count);
    sink->at += count;
}

static void make_vocabulary(struct vocabulary *v)
{
    static const char letters[] = "eeeettaaooiinnsshhrrddlucmfwygpbvk";
    struct rng rng = rng_seed(7);

    for (size_t i = 0; i < WORDS; i++) {
        size_t len = 1 + rng_below(&rng, 4) + rng_below(&rng, WORD_MAX - 4);

        for (size_t k = 0; k < len; k++)
            v->word[i][k] = letters[rng_below(&rng, sizeof(letters) - 1)];
        v->len[i] = (unsigned char)len;
    }
}

/* Early words are the frequent ones, as in a language. */
static size_t pick_word(struct rng *rng)
{
    return rng_below(rng, 1 + rng_below(rng, WORDS));
}

static void fill_text(struct sink *sink, struct rng *rng)
{
    struct vocabulary v;

    make_vocabulary(&v);
    while (room(sink) > 0) {
        size_t w = pick_word(rng);

        put(sink, v.word[w], v.len[w]);
        if (rng_below(rng, 12) == 0)
            put(sink, rng_below(rng, 8) == 0 ? ".\n\n" : ", ", 2);
        else
            put_byte(sink, ' ', 1);
    }
}

static void fill_json(struct sink *sink, struct rng *rng)
{
    struct vocabulary v;
    unsigned id = 1000;

    make_vocabulary(&v);
    while (room(sink) > 0) {
        size_t a = pick_word(rng), b = pick_word(rng);
        char line[256];
        int n = snprintf(line, sizeof(line),
                         "{\"id\":%u,\"name\":\"%.*s %.*s\",\"price\":%u.%02u,"
                         "\"tags\":[\"%.*s\"],\"active\":%s},\n",
                         id, v.len[a], v.word[a], v.len[b], v.word[b],
                         (unsigned)rng_below(rng, 1000),
                         (unsigned)rng_below(rng, 100), v.len[b], v.word[b],
                         rng_below(rng, 3) == 0 ? "true" : "false");

        put(sink, line, (size_t)n);
        id += 1 + (unsigned)rng_below(rng, 3);
    }
}

static void fill_random(struct sink *sink, struct rng *rng)
{
    while (room(sink) > 0) {
        uint64_t value = rng_next(rng);

        put(sink, &value, sizeof(value));
    }
}

static void fill_period(struct sink *sink, struct rng *rng, size_t period)
{
    uint64_t pattern = rng_next(rng);

    while (room(sink) > 0)
        put(sink, &pattern, period);
}

static void fill_runs(struct sink *sink, struct rng *rng)
{
    while (room(sink) > 0) {
        unsigned value = (unsigned)rng_below(rng, 256);

        put_byte(sink, value, rng_spread(rng, 4096));
    }
}

static void put_instruction(struct sink *sink, struct rng *rng, unsigned here)
{
    static const unsigned char opcode[] = {0x89, 0x8b, 0xe8, 0x83, 0x0f, 0x48,
                                           0x85, 0xc3, 0x74, 0x75, 0x8d, 0xeb};
    unsigned char op = opcode[rng_below(rng, sizeof(opcode))];

    put(sink, &op, 1);
    if (op == 0xe8) {
        /* Calls to few targets from many places. */
        uint32_t target = (uint32_t)(rng_below(rng, 64) * 4096) - here;

        put(sink, &target, sizeof(target));
    } else if (op != 0xc3) {
        put_byte(sink, (unsigned)rng_below(rng, 64) * 4, 1);
    }
}

static void fill_executable(struct sink *sink, struct rng *rng)
{
    const unsigned char *start = sink->at;

    while (room(sink) > 0) {
        size_t code = 16 + rng_spread(rng, 2048);

        while (code-- > 0)
            put_instruction(sink, rng, (unsigned)(sink->at - start));
        put_byte(sink, 0x90, rng_below(rng, 16));
        if (rng_below(rng, 8) == 0)
            put_byte(sink, 0, rng_below(rng, 512));
        for (uint32_t i = 0; rng_below(rng, 24) != 0; i += 16)
            put(sink, &i, sizeof(i));
    }
}

static void fill_mixture(struct sink *sink, struct rng *rng)
{
    while (room(sink) > 0) {
        size_t len = rng_spread(rng, (size_t)1 << 17);
        enum data_kind kind = (enum data_kind)rng_below(rng, DATA_MIXTURE);

        if (len > room(sink))
            len = room(sink);
        data_fill(sink->at, len, kind, rng_next(rng));
        sink->at += len;
    }
}

static void fill_compressed(struct sink *sink, struct rng *rng)
{
    enum { TEXT = 1 << 16 };
    size_t bound = ZSTD_compressBound(TEXT);
    unsigned char *text = malloc(TEXT), *frame = malloc(bound);

    if (text == NULL || frame == NULL)
        abort();
    while (room(sink) > 0) {
        size_t len;

        data_fill(text, TEXT, DATA_TEXT, rng_next(rng));
        len = ZSTD_compress(frame, bound, text, TEXT, 3);
        if (ZSTD_isError(len))
            abort();
        put(sink, frame, len);
    }
    free(text);
    free(frame);
}

const char *data_name(enum data_kind kind)
{
    static const char *const names[DATA_KINDS] = {
        "text",     "json", "random",     "zeros",   "period 4",
        "period 8", "runs", "executable", "mixture", "compressed"};

    return names[kind];
}

void data_fill(void *dst, size_t len, enum data_kind kind, uint64_t seed)
{
    struct rng rng = rng_seed(seed);
    struct sink sink = {dst, (unsigned char *)dst + len};

    if (kind == DATA_TEXT)
        fill_text(&sink, &rng);
    else if (kind == DATA_JSON)
        fill_json(&sink, &rng);
    else if (kind == DATA_RANDOM)
        fill_random(&sink, &rng);
    else if (kind == DATA_PERIOD4)
        fill_period(&sink, &rng, 4);
    else if (kind == DATA_PERIOD8)
        fill_period(&sink, &rng, 8);
    else if (kind == DATA_RUNS)
        fill_runs(&sink, &rng);
    else if (kind == DATA_EXECUTABLE)
        fill_executable(&sink, &rng);
    else if (kind == DATA_MIXTURE)
        fill_mixture(&sink, &rng);
    else if (kind == DATA_COMPRESSED)
        fill_compressed(&sink, &rng);
    else
        put_byte(&sink, 0, len);
}

unsigned char *data_new(size_t len, enum data_kind kind, uint64_t seed)
{
    unsigned char *bytes = malloc(len > 0 ? len : 1);

    if (bytes == NULL)
        abort();
    data_fill(bytes, len, kind, seed);
    return bytes;
}

enum { PAGE = 4096 };

/* Some random bytes, and then repeats of what is on the page already. */
static void fill_page(unsigned char *page, uint64_t number)
{
    struct rng rng = rng_seed(number);
    struct sink sink = {page, page + PAGE};

    for (int i = 0; i < 32; i++) {
        uint64_t value = rng_next(&rng) & 0x0f0f0f0f0f0f0f0fu;

        put(&sink, &value, sizeof(value));
    }
    while (room(&sink) > 0) {
        size_t back = 8 + rng_below(&rng, 240);

        put(&sink, sink.at - back, 4 + rng_below(&rng, back - 4));
    }
}

void data_fill_at(void *dst, uint64_t offset, size_t len)
{
    unsigned char *at = dst;

    while (len > 0) {
        unsigned char page[PAGE];
        size_t skip = (size_t)(offset % PAGE);
        size_t n = PAGE - skip < len ? PAGE - skip : len;

        fill_page(page, offset / PAGE);
        memcpy(at, page + skip, n);
        at += n;
        offset += n;
        len -= n;
    }
}
