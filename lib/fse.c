/*
 * fse.c - finite state entropy coding, for sequences only.
 *
 * Made for a few small blocks at the start of a segment: plain loops over the
 * format's definitions, a bounds check at every step, no table beyond those of
 * the decoder.
 */
#include "fse.h"

/* A description of a table is read forwards, lowest bits first. */
struct forward_bits {
    const uint8_t *src;
    size_t len;
    size_t at; /* bits read; beyond 8 * len the bits are 0 */
};

static uint32_t peek_forward(const struct forward_bits *bits, unsigned n)
{
    uint32_t value = 0;
    unsigned i;

    for (i = 0; i < n; i++) {
        size_t at = bits->at + i;

        if (at / 8 < bits->len)
            value |= (uint32_t)(bits->src[at / 8] >> (at % 8) & 1) << i;
    }
    return value;
}

static uint32_t take_forward(struct forward_bits *bits, unsigned n)
{
    uint32_t value = peek_forward(bits, n);

    bits->at += n;
    return value;
}

/*
 * A number from 0 to max. With n bits for max there are codes to spare, so the
 * lowest `spare` numbers take one bit less.
 */
static uint32_t take_up_to(struct forward_bits *bits, uint32_t max)
{
    unsigned n = highest_bit(max) + 1;
    uint32_t spare = ((uint32_t)1 << n) - 1 - max;
    uint32_t half = (uint32_t)1 << (n - 1);
    uint32_t value = peek_forward(bits, n);

    if (value % half < spare) {
        bits->at += n - 1;
        return value % half;
    }
    bits->at += n;
    return value < half ? value : value - spare;
}

/* After a symbol without states: how many more such symbols follow, 2 bits at a
 * time, as long as these say 3. False if that is beyond symbol_max. */
static bool take_zero_run(struct forward_bits *bits,
                          struct segzstd__fse_counts *counts,
                          unsigned symbol_max)
{
    uint32_t n;

    do {
        n = take_forward(bits, 2);
        if (counts->symbols + n > symbol_max + 1)
            return false;
        counts->symbols = (uint8_t)(counts->symbols + n); /* all zero already */
    } while (n == 3);
    return true;
}

bool segzstd__fse_read_counts(struct segzstd__fse_counts *counts,
                              const uint8_t *src, size_t len,
                              unsigned symbol_max, unsigned log_max,
                              size_t *used)
{
    struct forward_bits bits = {src, len, 0};
    unsigned log = take_forward(&bits, 4) + 5;
    uint32_t left = (uint32_t)1 << log; /* states not yet given to a symbol */

    assert(symbol_max < FSE_SYMBOLS_MAX && log_max <= FSE_LOG_MAX);
    if (log > log_max)
        return false;
    memset(counts, 0, sizeof(*counts));
    counts->log = (uint8_t)log;
    while (left > 0) {
        int count;

        if (counts->symbols > symbol_max)
            return false;
        /* 0 is "less than one", else the number of states plus 1. */
        count = (int)take_up_to(&bits, left + 1) - 1;
        counts->count[counts->symbols++] = (int16_t)count;
        left -= count < 0 ? 1 : (uint32_t)count;
        if (count == 0 && !take_zero_run(&bits, counts, symbol_max))
            return false;
    }
    *used = (bits.at + 7) / 8;
    return *used <= len;
}

/* Gives every state its symbol: "less than one" symbols from the top down, the
 * others spread over the rest. */
static void place_symbols(struct segzstd__fse_table *table,
                          const struct segzstd__fse_counts *counts)
{
    unsigned size = 1u << counts->log;
    unsigned step = (size >> 1) + (size >> 3) + 3;
    unsigned top = size; /* states from here on are taken */
    unsigned at = 0;
    unsigned s;
    int i;

    for (s = 0; s < counts->symbols; s++) {
        if (counts->count[s] < 0)
            table->entry[--top].symbol = (uint8_t)s;
    }
    for (s = 0; s < counts->symbols; s++) {
        for (i = 0; i < counts->count[s]; i++) {
            table->entry[at].symbol = (uint8_t)s;
            do
                at = (at + step) & (size - 1);
            while (at >= top);
        }
    }
}

void segzstd__fse_build(struct segzstd__fse_table *table,
                        const struct segzstd__fse_counts *counts)
{
    unsigned next[FSE_SYMBOLS_MAX]; /* of each symbol, counts its states up */
    unsigned size = 1u << counts->log;
    unsigned i;

    assert(counts->log <= FSE_LOG_MAX && counts->symbols <= FSE_SYMBOLS_MAX);
    table->log = counts->log;
    place_symbols(table, counts);
    for (i = 0; i < counts->symbols; i++)
        next[i] = counts->count[i] < 0 ? 1 : (unsigned)counts->count[i];
    for (i = 0; i < size; i++) {
        struct segzstd__fse_entry *entry = &table->entry[i];
        unsigned number = next[entry->symbol]++;
        unsigned bits = counts->log - highest_bit(number);

        entry->bits = (uint8_t)bits;
        entry->base = (uint16_t)((number << bits) - size);
    }
}

void segzstd__fse_build_rle(struct segzstd__fse_table *table, uint8_t symbol)
{
    table->log = 0;
    table->entry[0].base = 0;
    table->entry[0].symbol = symbol;
    table->entry[0].bits = 0;
}

bool segzstd__fse_last_state(const struct segzstd__fse_table *table,
                             unsigned symbol, unsigned *state)
{
    unsigned i;

    for (i = 0; i < 1u << table->log; i++) {
        if (table->entry[i].symbol == symbol) {
            *state = i;
            return true;
        }
    }
    return false;
}

bool segzstd__fse_previous_state(const struct segzstd__fse_table *table,
                                 unsigned symbol, unsigned next,
                                 unsigned *state)
{
    unsigned i;

    for (i = 0; i < 1u << table->log; i++) {
        const struct segzstd__fse_entry *entry = &table->entry[i];

        if (entry->symbol == symbol && entry->base <= next &&
            next < entry->base + (1u << entry->bits)) {
            *state = i;
            return true;
        }
    }
    return false;
}

bool segzstd__bit_reader_init(struct segzstd__bit_reader *reader,
                              const uint8_t *src, size_t len)
{
    if (len == 0 || src[len - 1] == 0)
        return false;
    reader->src = src;
    reader->len = len;
    reader->left = (len - 1) * 8 + highest_bit(src[len - 1]);
    reader->overrun = false;
    return true;
}

uint32_t segzstd__bit_read(struct segzstd__bit_reader *reader, unsigned n)
{
    uint64_t word = 0;
    size_t first; /* byte */
    size_t end;
    size_t i;

    assert(n <= 32);
    if (n > reader->left) {
        reader->left = 0;
        reader->overrun = true;
    }
    if (n == 0 || reader->overrun)
        return 0;
    reader->left -= n;
    first = reader->left / 8;
    end = min_size(first + 5, reader->len); /* 7 + 32 bits lie in 5 bytes */
    for (i = end; i > first; i--)
        word = word << 8 | reader->src[i - 1];
    word >>= reader->left % 8;
    return (uint32_t)(word & (((uint64_t)1 << n) - 1));
}

void segzstd__bit_writer_init(struct segzstd__bit_writer *writer, uint8_t *dst,
                              size_t cap)
{
    memset(writer, 0, sizeof(*writer));
    writer->dst = dst;
    writer->cap = cap;
}

void segzstd__bit_write(struct segzstd__bit_writer *writer, uint32_t value,
                        unsigned n)
{
    assert(n <= 32 && (uint64_t)value >> n == 0);
    writer->held |= (uint64_t)value << writer->n_held;
    writer->n_held += n;
    while (writer->n_held >= 8) {
        if (writer->len < writer->cap)
            writer->dst[writer->len++] = (uint8_t)writer->held;
        else
            writer->overrun = true;
        writer->held >>= 8;
        writer->n_held -= 8;
    }
}

bool segzstd__bit_writer_end(struct segzstd__bit_writer *writer, size_t *len)
{
    segzstd__bit_write(writer, 1, 1);
    if (writer->n_held > 0)
        segzstd__bit_write(writer, 0, 8 - writer->n_held);
    *len = writer->len;
    return !writer->overrun;
}
