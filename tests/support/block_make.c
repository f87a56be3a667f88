#include "support/block_make.h"

#include <stdlib.h>

/* Bits, lowest first: forwards for descriptions, and for streams that are read
 * from the end. Aborts where the room ends, as a test's own fault. */
struct bits {
    unsigned char *dst;
    size_t cap;
    size_t n;
};

static void put_bits(struct bits *bits, uint64_t value, unsigned n)
{
    for (unsigned i = 0; i < n; i++, bits->n++) {
        size_t byte = bits->n / 8;

        if (byte >= bits->cap)
            abort();
        if (bits->n % 8 == 0)
            bits->dst[byte] = 0;
        bits->dst[byte] |= (unsigned char)((value >> i & 1) << (bits->n % 8));
    }
}

/* The final bit flag. Returns the length in bytes. */
static size_t end_bits(struct bits *bits)
{
    put_bits(bits, 1, 1);
    return (bits->n + 7) / 8;
}

void maker_init(struct maker *maker)
{
    memset(maker, 0, sizeof(*maker));
    maker->offset[0] = 1;
    maker->offset[1] = 4;
    maker->offset[2] = 8;
}

/* Lengths as code, extra bits and their number. The bases follow from the
 * numbers of extra bits. */
struct code {
    unsigned code;
    unsigned bits;
    uint32_t extra;
};

static struct code find_code(uint32_t length, uint32_t base,
                             const unsigned char *extra_bits)
{
    struct code code = {0, 0, 0};

    for (;;) {
        code.bits = extra_bits[code.code];
        if (length - base < (uint32_t)1 << code.bits)
            break;
        base += (uint32_t)1 << code.bits;
        code.code++;
    }
    code.extra = length - base;
    return code;
}

static struct code literals_code(uint32_t length)
{
    static const unsigned char bits[36] = {
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  1,  1,
        1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

    return find_code(length, 0, bits);
}

static struct code match_code(uint32_t length)
{
    static const unsigned char bits[53] = {
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  0,  0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  1,  1,  1, 1,
        2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

    return find_code(length, 3, bits);
}

static struct code offset_code(uint32_t offset_value)
{
    struct code code = {0, 0, 0};

    while (offset_value >> code.code > 1)
        code.code++;
    code.bits = code.code;
    code.extra = offset_value - ((uint32_t)1 << code.code);
    return code;
}

static struct code code_of(const struct make_sequence *s, int kind)
{
    if (kind == TABLE_LITERALS)
        return literals_code(s->literals);
    if (kind == TABLE_OFFSETS)
        return offset_code(s->offset_value);
    return match_code(s->match);
}

size_t make_description(const struct segzstd__fse_counts *counts,
                        unsigned char *dst, size_t cap)
{
    struct bits bits = {dst, cap, 0};
    unsigned left = 1u << counts->log;

    put_bits(&bits, counts->log - 5u, 4);
    for (unsigned s = 0; left > 0; s++) {
        int count = counts->count[s];
        unsigned value = (unsigned)(count + 1); /* 0 to max */
        unsigned max = left + 1;
        unsigned n = 0, spare;

        while (max >> n != 0)
            n++;
        spare = (1u << n) - 1 - max;
        if (value < spare)
            put_bits(&bits, value, n - 1);
        else if (value < 1u << (n - 1))
            put_bits(&bits, value, n);
        else
            put_bits(&bits, value + spare, n);
        left -= count < 0 ? 1 : (unsigned)count;
        if (count == 0) {
            unsigned run = 0;

            while (counts->count[s + 1 + run] == 0)
                run++;
            s += run;
            for (; run >= 3; run -= 3)
                put_bits(&bits, 3, 2);
            put_bits(&bits, run, 2);
        }
    }
    return (bits.n + 7) / 8;
}

void make_random_counts(struct segzstd__fse_counts *counts, struct rng *rng,
                        unsigned symbol_max, unsigned log)
{
    unsigned left = 1u << log;
    size_t zeros = rng_below(rng, 8); /* of 8 symbols */

    memset(counts, 0, sizeof(*counts));
    counts->log = (uint8_t)log;
    while (left > 0) {
        unsigned s = counts->symbols++;

        if (s == symbol_max) {
            counts->count[s] = (int16_t)left;
            return;
        }
        if (rng_below(rng, 8) < zeros)
            continue;
        if (rng_below(rng, 3) == 0) {
            counts->count[s] = -1;
            left--;
        } else {
            size_t count = rng_spread(rng, left);

            counts->count[s] = (int16_t)count;
            left -= (unsigned)count;
        }
    }
}

/* Counts that have each code of the sequences: one state each, the rest to the
 * most frequent. */
static bool counts_for(struct segzstd__fse_counts *counts,
                       const struct make_block *block, int kind)
{
    static const unsigned log_max[TABLES_COUNT] = {9, 8, 9};
    size_t seen[FSE_SYMBOLS_MAX] = {0};
    unsigned used = 0, best = 0;

    memset(counts, 0, sizeof(*counts));
    for (size_t i = 0; i < block->count; i++)
        seen[code_of(&block->seq[i], kind).code]++;
    for (unsigned s = 0; s < FSE_SYMBOLS_MAX; s++) {
        if (seen[s] == 0)
            continue;
        counts->count[s] = seen[s] > 1 ? 1 : -1;
        counts->symbols = (uint8_t)(s + 1);
        used++;
        if (seen[s] > seen[best])
            best = s;
    }
    counts->log = (uint8_t)(5 + used % (log_max[kind] - 4));
    while (1u << counts->log < used)
        counts->log++;
    if (counts->log > log_max[kind])
        return false;
    counts->count[best] = (int16_t)((1 << counts->log) - (int)used + 1);
    return true;
}

/* Sets the table of `kind` as the mode says, and writes its description. */
static bool put_table(struct segzstd__tables *tables,
                      const struct make_block *block, int kind,
                      struct bits *bits)
{
    struct segzstd__fse_table *table = &tables->table[kind];
    struct segzstd__fse_counts counts;
    unsigned char *dst = bits->dst + bits->n / 8;
    size_t cap = bits->cap - bits->n / 8;

    if (block->mode[kind] == TABLE_REPEAT)
        return tables->exists[kind];
    tables->exists[kind] = true;
    if (block->mode[kind] == TABLE_PREDEFINED) {
        segzstd__table_build_predefined(table, (enum table_kind)kind);
    } else if (block->mode[kind] == TABLE_RLE) {
        unsigned code = code_of(&block->seq[0], kind).code;

        segzstd__fse_build_rle(table, (uint8_t)code);
        put_bits(bits, code, 8);
    } else {
        if (!counts_for(&counts, block, kind))
            return false;
        segzstd__fse_build(table, &counts);
        bits->n += 8 * make_description(&counts, dst, cap);
    }
    return true;
}

/* Codes of one kind, from the last sequence to the first. */
struct coder {
    const struct segzstd__fse_table *table;
    unsigned state;
};

static bool step_back(struct coder *coder, unsigned code, bool is_last,
                      struct bits *bits)
{
    unsigned next = coder->state;
    const struct segzstd__fse_entry *entry;

    if (is_last)
        return segzstd__fse_last_state(coder->table, code, &coder->state);
    if (!segzstd__fse_previous_state(coder->table, code, next, &coder->state))
        return false;
    entry = &coder->table->entry[coder->state];
    put_bits(bits, next - entry->base, entry->bits);
    return true;
}

static bool put_stream(const struct segzstd__tables *tables,
                       const struct make_block *block, struct bits *bits)
{
    static const int order[TABLES_COUNT] = {TABLE_OFFSETS, TABLE_MATCHES,
                                            TABLE_LITERALS};
    struct coder coder[TABLES_COUNT];

    for (int kind = 0; kind < TABLES_COUNT; kind++)
        coder[kind] = (struct coder){&tables->table[kind], 0};
    for (size_t i = block->count; i-- > 0;) {
        const struct make_sequence *s = &block->seq[i];

        for (int k = 0; k < TABLES_COUNT; k++) {
            if (!step_back(&coder[order[k]], code_of(s, order[k]).code,
                           i == block->count - 1, bits))
                return false;
        }
        for (int k = TABLES_COUNT; k-- > 0;) {
            struct code code = code_of(s, order[k]);

            put_bits(bits, code.extra, code.bits);
        }
    }
    put_bits(bits, coder[TABLE_MATCHES].state, coder[TABLE_MATCHES].table->log);
    put_bits(bits, coder[TABLE_OFFSETS].state, coder[TABLE_OFFSETS].table->log);
    put_bits(bits, coder[TABLE_LITERALS].state,
             coder[TABLE_LITERALS].table->log);
    bits->n = 8 * end_bits(bits);
    return true;
}

static bool put_sequences(struct segzstd__tables *tables,
                          const struct make_block *block, struct bits *bits)
{
    size_t count = block->count;
    unsigned field = block->count_bytes;

    if (field == 0)
        field = count < 128 ? 1 : count < 0x7f00 ? 2 : 3;
    if (field == 1)
        put_bits(bits, count, 8);
    else if (field == 2)
        put_bits(bits, (count >> 8) + 128 + ((count & 255) << 8), 16);
    else
        put_bits(bits, 255 + ((count - 0x7f00) << 8), 24);
    if (count == 0)
        return true;
    put_bits(bits,
             (unsigned)block->mode[TABLE_LITERALS] << 6 |
                 (unsigned)block->mode[TABLE_OFFSETS] << 4 |
                 (unsigned)block->mode[TABLE_MATCHES] << 2,
             8);
    for (int kind = 0; kind < TABLES_COUNT; kind++) {
        if (!put_table(tables, block, kind, bits))
            return false;
    }
    return put_stream(tables, block, bits);
}

/* One stream of bits for literals 0 and 1, from the last to the first. */
static size_t put_coded_stream(unsigned char *dst, size_t cap,
                               const unsigned char *literals, size_t len)
{
    struct bits bits = {dst, cap, 0};

    while (len-- > 0)
        put_bits(&bits, literals[len], 1);
    return end_bits(&bits);
}

/* Four streams, after the sizes of the first three. */
static size_t put_four_streams(unsigned char *dst, size_t cap,
                               const unsigned char *literals, size_t len)
{
    size_t each = (len + 3) / 4;
    size_t at = 6;

    for (size_t i = 0; i < 4; i++) {
        size_t n = i < 3 ? each : len - 3 * each;
        size_t bytes =
            put_coded_stream(dst + at, cap - at, literals + i * each, n);

        if (i < 3)
            store_le(dst + 2 * i, bytes, 2);
        at += bytes;
    }
    return at;
}

static bool put_coded_literals(const struct make_block *block,
                               struct bits *bits)
{
    static const unsigned size_bits[4] = {10, 10, 14, 18};
    unsigned n = size_bits[block->literals_format];
    size_t header = (4 + 2 * n + 7) / 8;
    unsigned char *start = bits->dst + bits->n / 8;
    unsigned char *dst = start + header;
    size_t cap = bits->cap - bits->n / 8 - header;
    size_t len = 0;

    if (block->literals_type == LITERALS_COMPRESSED) {
        dst[len++] = 127 + 1; /* one weight of 4 bits, that of literal 0; */
        dst[len++] = 1 << 4;  /* that of literal 1 follows from it */
    }
    if (block->literals_format == 0)
        len += put_coded_stream(dst + len, cap - len, block->literals,
                                block->literals_len);
    else
        len += put_four_streams(dst + len, cap - len, block->literals,
                                block->literals_len);
    if (len >> n != 0 || block->literals_len >> n != 0)
        return false;
    store_le(start,
             (uint64_t)len << (4 + n) | (uint64_t)block->literals_len << 4 |
                 block->literals_format << 2 | (unsigned)block->literals_type,
             header);
    bits->n += 8 * (header + len);
    return true;
}

static bool put_plain_literals(const struct make_block *block,
                               struct bits *bits)
{
    static const unsigned size_bits[4] = {5, 12, 5, 20};
    unsigned n = size_bits[block->literals_format];
    size_t len = block->literals_type == LITERALS_RLE ? 1 : block->literals_len;

    if (block->literals_len >> n != 0)
        return false;
    if (n == 5) /* the higher bit of the format belongs to the size */
        put_bits(bits,
                 block->literals_len << 3 | (unsigned)block->literals_type, 8);
    else
        put_bits(bits,
                 block->literals_len << 4 | block->literals_format << 2 |
                     (unsigned)block->literals_type,
                 n + 4);
    for (size_t i = 0; i < len; i++)
        put_bits(bits, block->literals[i], 8);
    return true;
}

static bool put_literals(struct maker *maker, const struct make_block *block,
                         struct bits *bits)
{
    bool fits;

    if (block->literals_type == LITERALS_RAW ||
        block->literals_type == LITERALS_RLE)
        return put_plain_literals(block, bits);
    if (block->literals_type == LITERALS_TREELESS && !maker->huffman)
        return false;
    fits = put_coded_literals(block, bits);
    maker->huffman = maker->huffman || fits;
    return fits;
}

size_t maker_put(struct maker *maker, const struct make_block *block,
                 unsigned char *dst, size_t cap)
{
    struct bits bits = {dst + BLOCK_HEADER_BYTES, cap - BLOCK_HEADER_BYTES, 0};
    struct maker next = *maker;
    size_t content = block->literals_len;

    if (!put_literals(&next, block, &bits) ||
        !put_sequences(&next.tables, block, &bits) ||
        bits.n / 8 > BLOCK_BYTES_MAX)
        return 0;
    for (size_t i = 0; i < block->count; i++) {
        const struct make_sequence *s = &block->seq[i];

        segzstd__offset_resolve(next.offset, s->offset_value, s->literals);
        content += s->match;
    }
    next.position += content;
    segzstd__frame_put_block_header(dst, BLOCK_COMPRESSED, bits.n / 8, false);
    *maker = next;
    return BLOCK_HEADER_BYTES + bits.n / 8;
}

enum { RANDOM_SEQUENCES = 300 };

/* Room for what a random block is made of. */
struct random_block {
    struct make_block block;
    struct make_sequence seq[RANDOM_SEQUENCES];
    unsigned char *literals;
};

/* An offset value that is valid at `position`: repeat codes half of the time. */
static uint32_t random_offset_value(struct rng *rng,
                                    uint32_t offset[OFFSETS_COUNT],
                                    size_t position, uint32_t literals)
{
    uint32_t tried[OFFSETS_COUNT];
    uint32_t value = 1 + (uint32_t)rng_below(rng, OFFSETS_COUNT);
    uint32_t reached;

    memcpy(tried, offset, sizeof(tried));
    reached = segzstd__offset_resolve(tried, value, literals);
    if (rng_below(rng, 2) == 0 || reached == 0 || reached > position)
        value = OFFSETS_COUNT + (uint32_t)rng_spread(rng, position);
    segzstd__offset_resolve(offset, value, literals);
    return value;
}

/* Sequences that decode to at most content_max bytes; adds to *literals what
 * they take. */
static void random_sequences(struct random_block *r, const struct maker *maker,
                             struct rng *rng, size_t content_max,
                             size_t *literals)
{
    size_t count =
        rng_below(rng, 4) == 0 ? 0 : rng_spread(rng, RANDOM_SEQUENCES);
    uint32_t offset[OFFSETS_COUNT];
    size_t used = 0;
    bool same = rng_below(rng, 8) == 0; /* for RLE tables */

    memcpy(offset, maker->offset, sizeof(offset));
    r->block.count = 0;
    while (r->block.count < count) {
        struct make_sequence *s = &r->seq[r->block.count];
        size_t spread = (size_t)1 << rng_below(rng, 17);

        s->literals = (uint32_t)rng_below(rng, 1 + spread / 4);
        s->match = 3 + (uint32_t)rng_below(rng, spread);
        if (same && r->block.count > 0) {
            s->literals = r->seq[0].literals;
            s->match = r->seq[0].match;
        }
        if (maker->position + used + s->literals == 0)
            s->literals = 1;
        if (used + s->literals + s->match > content_max)
            break;
        s->offset_value = random_offset_value(
            rng, offset, maker->position + used + s->literals, s->literals);
        used += s->literals + s->match;
        *literals += s->literals;
        r->block.count++;
    }
    *literals += rng_below(rng, 1 + (content_max - used) / 8);
}

static void random_literals(struct random_block *r, struct rng *rng)
{
    struct make_block *b = &r->block;
    bool coded;

    b->literals_type = (enum literals_type)rng_below(rng, 4);
    coded = b->literals_type == LITERALS_COMPRESSED ||
            b->literals_type == LITERALS_TREELESS;
    /* Four streams cannot have fewer literals than 6. */
    b->literals_format = (unsigned)rng_below(rng, 4);
    if (coded && b->literals_len < 6)
        b->literals_format = 0;
    b->literals = r->literals;
    for (size_t i = 0; i < b->literals_len; i++)
        r->literals[i] = (unsigned char)rng_below(rng, coded ? 2 : 256);
}

/* A compressed block, or 0 if what chance had chosen does not go together. */
static size_t try_random_block(struct maker *maker, struct rng *rng,
                               size_t content_max, struct random_block *r,
                               unsigned char *dst)
{
    size_t literals = 0;

    memset(&r->block, 0, sizeof(r->block));
    random_sequences(r, maker, rng, content_max, &literals);
    r->block.seq = r->seq;
    r->block.literals_len = literals;
    if (literals == 0 && r->block.count == 0)
        return 0;
    random_literals(r, rng);
    /* Decoders before libzstd 1.5.5 know 0 sequences in one byte only. */
    if (r->block.count > 0 && r->block.count < 128)
        r->block.count_bytes = (unsigned)rng_below(rng, 3);
    for (int kind = 0; kind < TABLES_COUNT; kind++) {
        unsigned mode = (unsigned)rng_below(rng, 4);
        unsigned code;

        if (r->block.count == 0)
            break;
        code = code_of(&r->seq[0], kind).code;
        for (size_t i = 1; mode == TABLE_RLE && i < r->block.count; i++) {
            if (code_of(&r->seq[i], kind).code != code)
                mode = TABLE_FSE;
        }
        r->block.mode[kind] = (enum table_mode)mode;
    }
    return maker_put(maker, &r->block, dst, MAKE_BYTES_MAX);
}

size_t maker_put_random(struct maker *maker, struct rng *rng,
                        size_t content_max, unsigned char *dst)
{
    struct random_block r;
    size_t plain = rng_spread(rng, content_max);
    size_t len = 0;

    r.literals = malloc(BLOCK_BYTES_MAX);
    if (r.literals == NULL)
        abort();
    for (int i = 0; i < 8 && len == 0 && rng_below(rng, 8) != 0; i++)
        len = try_random_block(maker, rng, content_max, &r, dst);
    free(r.literals);
    if (len > 0)
        return len;
    maker->position += plain;
    if (rng_below(rng, 2) == 0) {
        segzstd__frame_put_block_header(dst, BLOCK_RLE, plain, false);
        dst[BLOCK_HEADER_BYTES] = (unsigned char)rng_below(rng, 256);
        return BLOCK_HEADER_BYTES + 1;
    }
    segzstd__frame_put_block_header(dst, BLOCK_RAW, plain, false);
    data_fill(dst + BLOCK_HEADER_BYTES, plain, DATA_RANDOM, rng_next(rng));
    return BLOCK_HEADER_BYTES + plain;
}
