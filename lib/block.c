/*
 * block.c - block, literals and sequences headers, and sequences themselves.
 */
#include "block.h"

/* Codes of lengths: base value and number of extra bits, RFC 8878, section
 * 3.1.1.3.2.1.1. An offset code n is 2^n plus n extra bits. */
struct length_code {
    uint32_t base;
    uint8_t bits;
};

#define LITERALS_CODE_MAX 35
#define OFFSET_CODE_MAX 31 /* offset values below 2^32 */
#define MATCH_CODE_MAX 52

static const struct length_code literals_code[LITERALS_CODE_MAX + 1] = {
    {0, 0},     {1, 0},     {2, 0},     {3, 0},      {4, 0},      {5, 0},
    {6, 0},     {7, 0},     {8, 0},     {9, 0},      {10, 0},     {11, 0},
    {12, 0},    {13, 0},    {14, 0},    {15, 0},     {16, 1},     {18, 1},
    {20, 1},    {22, 1},    {24, 2},    {28, 2},     {32, 3},     {40, 3},
    {48, 4},    {64, 6},    {128, 7},   {256, 8},    {512, 9},    {1024, 10},
    {2048, 11}, {4096, 12}, {8192, 13}, {16384, 14}, {32768, 15}, {65536, 16},
};

static const struct length_code match_code[MATCH_CODE_MAX + 1] = {
    {3, 0},     {4, 0},     {5, 0},      {6, 0},      {7, 0},      {8, 0},
    {9, 0},     {10, 0},    {11, 0},     {12, 0},     {13, 0},     {14, 0},
    {15, 0},    {16, 0},    {17, 0},     {18, 0},     {19, 0},     {20, 0},
    {21, 0},    {22, 0},    {23, 0},     {24, 0},     {25, 0},     {26, 0},
    {27, 0},    {28, 0},    {29, 0},     {30, 0},     {31, 0},     {32, 0},
    {33, 0},    {34, 0},    {35, 1},     {37, 1},     {39, 1},     {41, 1},
    {43, 2},    {47, 2},    {51, 3},     {59, 3},     {67, 4},     {83, 4},
    {99, 5},    {131, 7},   {259, 8},    {515, 9},    {1027, 10},  {2051, 11},
    {4099, 12}, {8195, 13}, {16387, 14}, {32771, 15}, {65539, 16},
};

/* What the format says of each kind of table, by enum table_kind: largest
 * symbol and accuracy, and the predefined distribution (section 3.1.1.3.2.2). */
static const struct table_rules {
    uint8_t symbol_max;
    uint8_t log_max;
    struct segzstd__fse_counts predefined;
} rules[TABLES_COUNT] = {
    {LITERALS_CODE_MAX,
     9,
     {{4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
       2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1},
      36,
      6}},
    {OFFSET_CODE_MAX,
     8,
     {{1, 1, 1, 1, 1, 1, 2, 2, 2, 1,  1,  1,  1,  1, 1,
       1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1},
      29,
      5}},
    {MATCH_CODE_MAX,
     9,
     {{1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1,  1,  1,  1,  1,  1,  1, 1,
       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1},
      53,
      6}},
};

bool segzstd__block_read_header(struct segzstd__block_header *header,
                                const uint8_t *src, size_t len)
{
    size_t field;
    size_t size;

    if (len < BLOCK_HEADER_BYTES)
        return false;
    field = (size_t)load_le(src, BLOCK_HEADER_BYTES);
    size = field >> 3;
    header->last = field & 1;
    header->type = (enum segzstd__block_type)(field >> 1 & 3);
    header->decoded = header->type == BLOCK_COMPRESSED ? 0 : size;
    header->content = header->type == BLOCK_RLE ? 1 : size;
    return header->type != BLOCK_RESERVED && size <= BLOCK_BYTES_MAX &&
           header->content <= len - BLOCK_HEADER_BYTES;
}

/* Raw and RLE literals: one size of 5, 12 or 20 bits. */
static bool read_plain_literals(struct segzstd__literals *literals,
                                const uint8_t *src, size_t len)
{
    static const uint8_t bytes[4] = {1, 2, 1, 3};
    unsigned format = src[0] >> 2 & 3;
    size_t header = bytes[format];

    if (len < header)
        return false;
    literals->decoded = (size_t)(load_le(src, header) >> (header == 1 ? 3 : 4));
    literals->section =
        header + (literals->type == LITERALS_RLE ? 1 : literals->decoded);
    return true;
}

/* Huffman-coded literals: two sizes of 10, 14 or 18 bits each. Only format 0
 * has one stream; the others have four, which begin with 6 bytes of sizes. */
static bool read_coded_literals(struct segzstd__literals *literals,
                                const uint8_t *src, size_t len)
{
    static const uint8_t bits[4] = {10, 10, 14, 18};
    static const uint8_t bytes[4] = {3, 3, 4, 5};
    unsigned format = src[0] >> 2 & 3;
    size_t mask = ((size_t)1 << bits[format]) - 1;
    uint64_t field;
    size_t coded;

    if (len < bytes[format])
        return false;
    field = load_le(src, bytes[format]) >> 4;
    literals->decoded = (size_t)field & mask;
    coded = (size_t)(field >> bits[format]) & mask;
    literals->section = bytes[format] + coded;
    return coded >= (format == 0 ? 1 : 10);
}

bool segzstd__block_read_literals(struct segzstd__literals *literals,
                                  const uint8_t *src, size_t len)
{
    bool read;

    if (len == 0)
        return false;
    literals->type = (enum literals_type)(src[0] & 3);
    if (literals->type == LITERALS_RAW || literals->type == LITERALS_RLE)
        read = read_plain_literals(literals, src, len);
    else
        read = read_coded_literals(literals, src, len);
    return read && literals->decoded <= BLOCK_BYTES_MAX &&
           literals->section <= len;
}

void segzstd__table_build_predefined(struct segzstd__fse_table *table,
                                     enum table_kind kind)
{
    segzstd__fse_build(table, &rules[kind].predefined);
}

/* The count field: 1 byte below 128, 2 bytes up to 0x7eff, else 3. */
static bool read_count(struct segzstd__sequences_head *head, const uint8_t *src,
                       size_t len)
{
    if (len == 0)
        return false;
    head->count_bytes = src[0] < 128 ? 1 : src[0] < 255 ? 2 : 3;
    if (len < head->count_bytes)
        return false;
    if (head->count_bytes == 1)
        head->count = src[0];
    else if (head->count_bytes == 2)
        head->count = ((size_t)src[0] - 128) << 8 | src[1];
    else
        head->count = (size_t)load_le(src + 1, 2) + 0x7f00;
    return head->count <= SEQUENCES_MAX;
}

/* Sets the table of `kind` by its mode and its description at src, of which
 * *used bytes are taken. */
static bool read_table(struct segzstd__tables *tables, enum table_kind kind,
                       enum table_mode mode, const uint8_t *src, size_t len,
                       size_t *used)
{
    struct segzstd__fse_table *table = &tables->table[kind];
    struct segzstd__fse_counts counts;

    *used = 0;
    if (mode == TABLE_REPEAT)
        return tables->exists[kind];
    if (mode == TABLE_PREDEFINED) {
        segzstd__table_build_predefined(table, kind);
    } else if (mode == TABLE_RLE) {
        if (len == 0 || src[0] > rules[kind].symbol_max)
            return false;
        segzstd__fse_build_rle(table, src[0]);
        *used = 1;
    } else {
        if (!segzstd__fse_read_counts(&counts, src, len, rules[kind].symbol_max,
                                      rules[kind].log_max, used))
            return false;
        segzstd__fse_build(table, &counts);
    }
    tables->exists[kind] = true;
    tables->predefined[kind] = mode == TABLE_PREDEFINED;
    return true;
}

bool segzstd__sequences_read_head(struct segzstd__sequences_head *head,
                                  struct segzstd__tables *tables,
                                  const uint8_t *src, size_t len)
{
    uint8_t modes;
    int kind;

    memset(head, 0, sizeof(*head));
    if (!read_count(head, src, len))
        return false;
    head->head_bytes = head->count_bytes;
    if (head->count == 0)
        return head->head_bytes == len;
    if (head->head_bytes == len)
        return false;
    modes = src[head->head_bytes++];
    if ((modes & 3) != 0)
        return false;
    for (kind = 0; kind < TABLES_COUNT; kind++) {
        head->mode[kind] = (enum table_mode)(modes >> (6 - 2 * kind) & 3);
        head->at[kind] = head->head_bytes;
        if (!read_table(tables, (enum table_kind)kind, head->mode[kind],
                        src + head->head_bytes, len - head->head_bytes,
                        &head->bytes[kind]))
            return false;
        head->head_bytes += head->bytes[kind];
    }
    return true;
}

bool segzstd__sequences_reader_init(struct segzstd__sequences_reader *reader,
                                    const struct segzstd__tables *tables,
                                    size_t count, const uint8_t *src,
                                    size_t len)
{
    int kind;

    assert(count > 0);
    if (!segzstd__bit_reader_init(&reader->bits, src, len))
        return false;
    reader->tables = tables;
    reader->left = count;
    for (kind = 0; kind < TABLES_COUNT; kind++)
        reader->state[kind] =
            segzstd__bit_read(&reader->bits, tables->table[kind].log);
    return !reader->bits.overrun;
}

static const struct segzstd__fse_entry *state_entry(
    const struct segzstd__sequences_reader *reader, enum table_kind kind)
{
    return &reader->tables->table[kind].entry[reader->state[kind]];
}

static void next_state(struct segzstd__sequences_reader *reader,
                       enum table_kind kind)
{
    const struct segzstd__fse_entry *entry = state_entry(reader, kind);

    reader->state[kind] =
        entry->base + segzstd__bit_read(&reader->bits, entry->bits);
}

bool segzstd__sequences_read(struct segzstd__sequences_reader *reader,
                             struct segzstd__sequence *sequence)
{
    struct segzstd__bit_reader *bits = &reader->bits;
    unsigned offset = state_entry(reader, TABLE_OFFSETS)->symbol;
    const struct length_code *literals =
        &literals_code[state_entry(reader, TABLE_LITERALS)->symbol];
    const struct length_code *match =
        &match_code[state_entry(reader, TABLE_MATCHES)->symbol];

    assert(reader->left > 0);
    sequence->literals_state = (uint16_t)reader->state[TABLE_LITERALS];
    sequence->match_state = (uint16_t)reader->state[TABLE_MATCHES];
    sequence->offset_value =
        ((uint32_t)1 << offset) + segzstd__bit_read(bits, offset);
    sequence->match = match->base + segzstd__bit_read(bits, match->bits);
    sequence->literals =
        literals->base + segzstd__bit_read(bits, literals->bits);
    if (--reader->left > 0) {
        next_state(reader, TABLE_LITERALS);
        next_state(reader, TABLE_MATCHES);
        next_state(reader, TABLE_OFFSETS);
    } else if (bits->left > 0) {
        return false;
    }
    return !bits->overrun;
}

/* Writes what leads from one state to `next`. */
static void write_step(struct segzstd__bit_writer *writer,
                       const struct segzstd__fse_entry *from, unsigned next)
{
    segzstd__bit_write(writer, next - from->base, from->bits);
}

/* Writes the extra bits of one sequence, in reverse order of reading. */
static void write_extra(struct segzstd__bit_writer *writer,
                        const struct segzstd__tables *tables,
                        const struct segzstd__sequence *sequence)
{
    const struct segzstd__fse_entry *literals_entry =
        &tables->table[TABLE_LITERALS].entry[sequence->literals_state];
    const struct segzstd__fse_entry *match_entry =
        &tables->table[TABLE_MATCHES].entry[sequence->match_state];
    const struct length_code *literals = &literals_code[literals_entry->symbol];
    const struct length_code *match = &match_code[match_entry->symbol];
    unsigned offset = highest_bit(sequence->offset_value);

    segzstd__bit_write(writer, sequence->literals - literals->base,
                       literals->bits);
    segzstd__bit_write(writer, sequence->match - match->base, match->bits);
    segzstd__bit_write(writer, sequence->offset_value - ((uint32_t)1 << offset),
                       offset);
}

bool segzstd__sequences_write(const struct segzstd__tables *tables,
                              const struct segzstd__fse_table *offsets,
                              const struct segzstd__sequence *sequence,
                              size_t count, uint8_t *dst, size_t cap,
                              size_t *len)
{
    const struct segzstd__fse_table *literals = &tables->table[TABLE_LITERALS];
    const struct segzstd__fse_table *match = &tables->table[TABLE_MATCHES];
    struct segzstd__bit_writer writer;
    unsigned state = 0; /* of offsets */
    size_t i;

    assert(count > 0);
    segzstd__bit_writer_init(&writer, dst, cap);
    for (i = count; i-- > 0;) {
        const struct segzstd__sequence *s = &sequence[i];
        unsigned code = highest_bit(s->offset_value);
        unsigned next = state;

        if (i == count - 1) {
            if (!segzstd__fse_last_state(offsets, code, &state))
                return false;
        } else {
            if (!segzstd__fse_previous_state(offsets, code, next, &state))
                return false;
            write_step(&writer, &offsets->entry[state], next);
            write_step(&writer, &match->entry[s->match_state],
                       s[1].match_state);
            write_step(&writer, &literals->entry[s->literals_state],
                       s[1].literals_state);
        }
        write_extra(&writer, tables, s);
    }
    segzstd__bit_write(&writer, sequence->match_state, match->log);
    segzstd__bit_write(&writer, state, offsets->log);
    segzstd__bit_write(&writer, sequence->literals_state, literals->log);
    return segzstd__bit_writer_end(&writer, len);
}

/* The offset at place `at` moves to the front. */
static uint32_t use_repeat(uint32_t offset[OFFSETS_COUNT], unsigned at)
{
    uint32_t value = offset[at];

    if (value == 0)
        return 0;
    for (; at > 0; at--)
        offset[at] = offset[at - 1];
    offset[0] = value;
    return value;
}

/* A new offset comes to the front, the oldest is forgotten. */
static uint32_t use_new(uint32_t offset[OFFSETS_COUNT], uint32_t value)
{
    offset[2] = offset[1];
    offset[1] = offset[0];
    offset[0] = value;
    return value;
}

uint32_t segzstd__offset_resolve(uint32_t offset[OFFSETS_COUNT],
                                 uint32_t offset_value, uint32_t literals)
{
    if (offset_value > OFFSETS_COUNT)
        return use_new(offset, offset_value - OFFSETS_COUNT);
    if (literals > 0)
        return use_repeat(offset, offset_value - 1);
    /* Without literals the last offset would only lengthen the match before,
     * so the codes mean the next ones, and the last offset less 1. */
    if (offset_value < OFFSETS_COUNT)
        return use_repeat(offset, offset_value);
    if (offset[0] <= 1)
        return 0;
    return use_new(offset, offset[0] - 1);
}
