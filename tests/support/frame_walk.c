#include "support/frame_walk.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "block.h"

#define DICT_MAGIC 0xEC30A437u

struct walker {
    struct frame_walk *out;
    const uint8_t *start;
    const uint8_t *at;
    size_t left;

    size_t block_max;
    uint64_t dict_content; /* bytes */
    bool huffman;          /* there is a table for treeless literals */
    struct segzstd__tables tables;
    uint32_t offset[OFFSETS_COUNT];
};

static int fail(struct walker *w, const char *what, uint64_t value)
{
    snprintf(w->out->error, sizeof(w->out->error),
             "%s (%" PRIu64 "), frame byte %zu, content byte %" PRIu64, what,
             value, (size_t)(w->at - w->start), w->out->decoded);
    return -1;
}

static void skip(struct walker *w, size_t n)
{
    w->at += n;
    w->left -= n;
}

/* The descriptor's fields, in the order in which they follow it. */
static void read_header_fields(struct walker *w, size_t window_bytes,
                               size_t dict_id_bytes, size_t size_bytes)
{
    const uint8_t *at = w->at + 5;
    struct frame_walk *out = w->out;

    if (window_bytes > 0) {
        uint64_t base = (uint64_t)1 << (10 + (*at >> 3));

        out->window = base + base / 8 * (*at & 7);
    }
    at += window_bytes;
    out->dict_id = (uint32_t)load_le(at, dict_id_bytes);
    at += dict_id_bytes;
    out->content_size = FRAME_WALK_NO_SIZE;
    if (size_bytes > 0)
        out->content_size =
            load_le(at, size_bytes) + (size_bytes == 2 ? 256 : 0);
    if (window_bytes == 0)
        out->window = out->content_size;
}

static int walk_header(struct walker *w)
{
    static const uint8_t dict_id_bytes[4] = {0, 1, 2, 4};
    static const uint8_t size_bytes[4] = {0, 2, 4, 8};
    unsigned descriptor;
    bool single;
    size_t size;

    if (w->left < 5 || load_le(w->at, 4) != FRAME_MAGIC)
        return fail(w, "no frame", w->left);
    descriptor = w->at[4];
    if ((descriptor & 8) != 0)
        return fail(w, "the reserved bit is set", descriptor);
    single = (descriptor & 32) != 0;
    size = size_bytes[descriptor >> 6];
    if (single && size == 0)
        size = 1;
    w->out->header_bytes =
        (size_t)5 + !single + dict_id_bytes[descriptor & 3] + size;
    if (w->left < w->out->header_bytes)
        return fail(w, "the header is cut", w->left);
    read_header_fields(w, !single, dict_id_bytes[descriptor & 3], size);
    w->out->checksum = (descriptor & 4) != 0;
    w->block_max = (size_t)min_u64(w->out->window, BLOCK_BYTES_MAX);
    skip(w, w->out->header_bytes);
    return 0;
}

/* A match at content byte `position` that reaches `offset` back. */
static int check_offset(struct walker *w, uint64_t position, uint64_t offset)
{
    uint64_t window = w->out->window;

    if (offset > position) {
        if (offset - position > w->dict_content)
            return fail(w, "an offset is beyond the start", offset);
        if (position > window)
            return fail(w, "an offset into a dictionary left behind", offset);
    } else if (offset > window) {
        return fail(w, "an offset is beyond the window", offset);
    }
    w->out->max_offset = max_u64(w->out->max_offset, offset);
    return 0;
}

static int walk_sequence(struct walker *w,
                         struct segzstd__sequences_reader *reader,
                         size_t *literals_left, uint64_t *position)
{
    struct segzstd__sequence s;
    uint64_t offset;

    if (!segzstd__sequences_read(reader, &s))
        return fail(w, "a broken sequence", reader->left);
    if (s.literals > *literals_left)
        return fail(w, "more literals than there are", s.literals);
    offset = segzstd__offset_resolve(w->offset, s.offset_value, s.literals);
    if (offset == 0)
        return fail(w, "a repeat offset of 0", s.offset_value);
    *literals_left -= s.literals;
    *position += s.literals;
    if (check_offset(w, *position, offset) != 0)
        return -1;
    *position += s.match;
    w->out->sequences++;
    w->out->repeat_codes += s.offset_value <= OFFSETS_COUNT;
    return 0;
}

/* src[0..len) is a sequences section. *decoded is what the block decodes to. */
static int walk_sequences(struct walker *w, const uint8_t *src, size_t len,
                          size_t literals, size_t *decoded)
{
    struct segzstd__sequences_head head;
    struct segzstd__sequences_reader reader;
    uint64_t position = w->out->decoded;

    if (!segzstd__sequences_read_head(&head, &w->tables, src, len))
        return fail(w, "a broken head of sequences", len);
    if (head.count > 0) {
        if (!segzstd__sequences_reader_init(&reader, &w->tables, head.count,
                                            src + head.head_bytes,
                                            len - head.head_bytes))
            return fail(w, "no stream of sequences", len);
        while (reader.left > 0) {
            if (walk_sequence(w, &reader, &literals, &position) != 0)
                return -1;
        }
    }
    *decoded = (size_t)(position - w->out->decoded) + literals;
    return 0;
}

static int walk_compressed(struct walker *w, size_t len, size_t *decoded)
{
    struct segzstd__literals literals;

    if (!segzstd__block_read_literals(&literals, w->at, len))
        return fail(w, "a broken literals section", len);
    if (literals.type == LITERALS_TREELESS && !w->huffman)
        return fail(w, "treeless literals without a table", len);
    if (literals.type == LITERALS_COMPRESSED)
        w->huffman = true;
    return walk_sequences(w, w->at + literals.section, len - literals.section,
                          literals.decoded, decoded);
}

static int walk_block(struct walker *w, bool *last)
{
    struct segzstd__block_header header;
    struct frame_walk *out = w->out;
    size_t decoded;

    if (!segzstd__block_read_header(&header, w->at, w->left))
        return fail(w, "a broken block header", w->left);
    if (header.content > w->block_max)
        return fail(w, "a block is too large", header.content);
    skip(w, BLOCK_HEADER_BYTES);
    decoded = header.decoded;
    if (header.type == BLOCK_COMPRESSED &&
        walk_compressed(w, header.content, &decoded) != 0)
        return -1;
    if (decoded > w->block_max)
        return fail(w, "a block decodes to too much", decoded);
    skip(w, header.content);
    out->decoded += decoded;
    out->blocks++;
    out->blocks_raw += header.type == BLOCK_RAW;
    out->blocks_rle += header.type == BLOCK_RLE;
    out->blocks_compressed += header.type == BLOCK_COMPRESSED;
    *last = header.last;
    return 0;
}

static int walk_frame(struct walker *w)
{
    bool last = false;

    if (walk_header(w) != 0)
        return -1;
    while (!last) {
        if (walk_block(w, &last) != 0)
            return -1;
    }
    if (w->out->content_size != FRAME_WALK_NO_SIZE &&
        w->out->content_size != w->out->decoded)
        return fail(w, "another content size is declared",
                    w->out->content_size);
    if (w->out->checksum) {
        if (w->left < CHECKSUM_BYTES)
            return fail(w, "the checksum is cut", w->left);
        skip(w, CHECKSUM_BYTES);
    }
    if (w->left > 0)
        return fail(w, "bytes after the frame", w->left);
    return 0;
}

/* The state that a decoder starts with. */
static void start(struct walker *w, const void *frame, size_t len,
                  struct frame_walk *out)
{
    memset(w, 0, sizeof(*w));
    memset(out, 0, sizeof(*out));
    w->out = out;
    w->start = frame;
    w->at = frame;
    w->left = len;
    w->offset[0] = 1;
    w->offset[1] = 4;
    w->offset[2] = 8;
}

int frame_walk(const void *frame, size_t len, size_t dict_len,
               struct frame_walk *out)
{
    struct walker w;

    start(&w, frame, len, out);
    w.dict_content = dict_len;
    return walk_frame(&w);
}

/* The tables of a trained dictionary, RFC 8878, section 5. Tables of literals
 * and sequences follow each other; *used is the length of all. */
static bool read_dict_tables(struct walker *w, const uint8_t *src, size_t len,
                             size_t *used)
{
    static const struct {
        enum table_kind kind;
        unsigned symbol_max;
        unsigned log_max;
    } order[TABLES_COUNT] = {{TABLE_OFFSETS, 31, 8},
                             {TABLE_MATCHES, 52, 9},
                             {TABLE_LITERALS, 35, 9}};
    struct segzstd__fse_counts counts;
    size_t at;

    if (len == 0)
        return false;
    /* Weights of the Huffman code: coded in that many bytes, or 4 bits each. */
    at = 1 + (src[0] < 128 ? src[0] : ((size_t)src[0] - 126) / 2);
    for (size_t i = 0; i < TABLES_COUNT; i++) {
        size_t n;

        if (at > len || !segzstd__fse_read_counts(&counts, src + at, len - at,
                                                  order[i].symbol_max,
                                                  order[i].log_max, &n))
            return false;
        segzstd__fse_build(&w->tables.table[order[i].kind], &counts);
        w->tables.exists[order[i].kind] = true;
        at += n;
    }
    *used = at;
    w->huffman = true;
    return true;
}

static int read_dict(struct walker *w, const uint8_t *dict, size_t len)
{
    size_t used;
    size_t at = 8; /* magic and id */

    w->dict_content = len;
    if (len < at || load_le(dict, 4) != DICT_MAGIC)
        return 0;
    if (!read_dict_tables(w, dict + at, len - at, &used))
        return fail(w, "a broken dictionary", len);
    at += used;
    if (len - at < 4 * OFFSETS_COUNT)
        return fail(w, "a dictionary without offsets", len);
    for (size_t i = 0; i < OFFSETS_COUNT; i++, at += 4)
        w->offset[i] = (uint32_t)load_le(dict + at, 4);
    w->dict_content = len - at;
    return 0;
}

int frame_walk_dict(const void *frame, size_t len, const void *dict,
                    size_t dict_len, struct frame_walk *out)
{
    struct walker w;

    start(&w, frame, len, out);
    if (read_dict(&w, dict, dict_len) != 0)
        return -1;
    return walk_frame(&w);
}
