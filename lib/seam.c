/*
 * seam.c - follows two decoders through the first blocks of a segment.
 *
 * A block is read twice at most: once to see what E's offsets are and whether D
 * would come to the same ones, and, if not, once more to collect its sequences,
 * because they must be written from the last to the first.
 */
#include "seam.h"

/* One compressed block, as read. Pointers borrow the caller's bytes. */
struct parsed_block {
    const uint8_t *src; /* after the block header */
    size_t len;
    struct segzstd__literals literals;
    struct segzstd__sequences_head head;
    const uint8_t *stream; /* of sequences; none if head.count is 0 */
    size_t stream_len;
    size_t decoded; /* bytes the block decodes to */

    bool same_offsets;                /* D comes to E's offsets */
    uint32_t e_before[OFFSETS_COUNT]; /* E at the start of the block */
    uint32_t d_after[OFFSETS_COUNT];  /* D at its end, if same_offsets */
};

/* One call's work. */
struct rewrite {
    struct segzstd__seam *seam;
    struct segzstd__mem *mem;
    const uint8_t *content; /* not yet consumed */
    size_t content_len;
};

void segzstd__seam_init(struct segzstd__seam *seam)
{
    memset(seam, 0, sizeof(*seam));
    seam->e_offset[0] = 1;
    seam->e_offset[1] = 4;
    seam->e_offset[2] = 8;
}

bool segzstd__seam_is_settled(const struct segzstd__seam *seam)
{
    int i;

    for (i = 0; i < OFFSETS_COUNT; i++) {
        if (seam->d_offset[i] != seam->e_offset[i])
            return false;
    }
    /* A table that E does not have cannot be repeated by the encoder. */
    for (i = 0; i < TABLES_COUNT; i++) {
        if (seam->tables.exists[i] && !seam->shared[i])
            return false;
    }
    return !seam->e_huffman || seam->shared_huffman;
}

size_t segzstd__seam_bound(size_t src_len, size_t content_len)
{
    /* Whatever becomes of a block, it is no longer than it was, or than a block
     * header, which it had, and its content. */
    return src_len + content_len;
}

/* Moves E through the sequences, and D through a copy of its offsets until
 * these do not suffice. Sums up what the block decodes to. */
static bool follow_sequences(struct segzstd__seam *seam,
                             struct parsed_block *block)
{
    struct segzstd__sequences_reader reader;
    struct segzstd__sequence sequence;
    size_t literals_left = block->literals.decoded;

    if (!segzstd__sequences_reader_init(&reader, &seam->tables,
                                        block->head.count, block->stream,
                                        block->stream_len))
        return false;
    while (reader.left > 0) {
        uint32_t offset;

        if (!segzstd__sequences_read(&reader, &sequence) ||
            sequence.literals > literals_left)
            return false;
        literals_left -= sequence.literals;
        block->decoded += sequence.match;
        if (block->decoded > BLOCK_BYTES_MAX)
            return false;
        offset = segzstd__offset_resolve(seam->e_offset, sequence.offset_value,
                                         sequence.literals);
        if (offset == 0)
            return false;
        if (block->same_offsets)
            block->same_offsets =
                segzstd__offset_resolve(block->d_after, sequence.offset_value,
                                        sequence.literals) == offset;
    }
    return true;
}

/* Reads src[0..len), the inside of a compressed block, and brings E up to
 * date. */
static bool parse_block(struct segzstd__seam *seam, struct parsed_block *block,
                        const uint8_t *src, size_t len)
{
    const uint8_t *sequences;
    size_t sequences_len;

    block->src = src;
    block->len = len;
    if (!segzstd__block_read_literals(&block->literals, src, len))
        return false;
    sequences = src + block->literals.section;
    sequences_len = len - block->literals.section;
    if (block->literals.type == LITERALS_TREELESS && !seam->e_huffman)
        return false;
    if (!segzstd__sequences_read_head(&block->head, &seam->tables, sequences,
                                      sequences_len))
        return false;
    block->stream = sequences + block->head.head_bytes;
    block->stream_len = sequences_len - block->head.head_bytes;
    block->decoded = block->literals.decoded;
    block->same_offsets = true;
    memcpy(block->e_before, seam->e_offset, sizeof(block->e_before));
    memcpy(block->d_after, seam->d_offset, sizeof(block->d_after));
    return block->head.count == 0 || follow_sequences(seam, block);
}

static bool has_table(const struct segzstd__seam *seam,
                      const struct parsed_block *block, enum table_kind kind)
{
    return block->head.count == 0 || block->head.mode[kind] != TABLE_REPEAT ||
           seam->shared[kind];
}

/* D has all that a block with new offsets still takes from before. */
static bool can_rewrite(const struct segzstd__seam *seam,
                        const struct parsed_block *block)
{
    return (block->literals.type != LITERALS_TREELESS ||
            seam->shared_huffman) &&
           has_table(seam, block, TABLE_LITERALS) &&
           has_table(seam, block, TABLE_MATCHES);
}

static bool can_copy(const struct segzstd__seam *seam,
                     const struct parsed_block *block)
{
    return can_rewrite(seam, block) && block->same_offsets &&
           has_table(seam, block, TABLE_OFFSETS);
}

/* Which tables D shares with E after the block. */
static void update_shared(struct segzstd__seam *seam,
                          const struct parsed_block *block,
                          enum seam_outcome outcome)
{
    bool sent = outcome != SEAM_STORED; /* D got the block with its tables */
    int kind;

    if (block->literals.type == LITERALS_COMPRESSED) {
        seam->e_huffman = true;
        seam->shared_huffman = sent;
    }
    if (block->head.count == 0)
        return;
    for (kind = 0; kind < TABLES_COUNT; kind++) {
        if (block->head.mode[kind] != TABLE_REPEAT)
            seam->shared[kind] = sent;
    }
    if (outcome == SEAM_REWRITTEN)
        seam->shared[TABLE_OFFSETS] = seam->tables.predefined[TABLE_OFFSETS];
}

/*
 * Collects the sequences with offset values for D, whose repeat offsets are
 * brought up to date: repeat codes where they lead D to E's offset, else the
 * offset itself.
 */
static void collect_sequences(const struct segzstd__seam *seam,
                              const struct parsed_block *block,
                              struct segzstd__sequence *sequence,
                              uint32_t d_offset[OFFSETS_COUNT])
{
    struct segzstd__sequences_reader reader;
    uint32_t e_offset[OFFSETS_COUNT];
    uint32_t d_tried[OFFSETS_COUNT];
    size_t i;

    memcpy(e_offset, block->e_before, sizeof(e_offset));
    segzstd__sequences_reader_init(&reader, &seam->tables, block->head.count,
                                   block->stream, block->stream_len);
    for (i = 0; i < block->head.count; i++) {
        struct segzstd__sequence *s = &sequence[i];
        uint32_t offset;

        segzstd__sequences_read(&reader, s);
        offset =
            segzstd__offset_resolve(e_offset, s->offset_value, s->literals);
        memcpy(d_tried, d_offset, sizeof(d_tried));
        if (segzstd__offset_resolve(d_tried, s->offset_value, s->literals) ==
            offset) {
            memcpy(d_offset, d_tried, sizeof(d_tried));
        } else {
            s->offset_value = offset + OFFSETS_COUNT;
            segzstd__offset_resolve(d_offset, s->offset_value, s->literals);
        }
    }
}

/* Everything before the bit stream: literals section, count, modes, tables.
 * No longer than it was in the block. Returns its length. */
static size_t write_head(const struct parsed_block *block, uint8_t *dst)
{
    const struct segzstd__sequences_head *head = &block->head;
    const uint8_t *sequences = block->src + block->literals.section;
    size_t len = block->literals.section + head->count_bytes;
    int kind;

    memcpy(dst, block->src, len);
    dst[len++] = (uint8_t)((unsigned)head->mode[TABLE_LITERALS] << 6 |
                           (unsigned)TABLE_PREDEFINED << 4 |
                           (unsigned)head->mode[TABLE_MATCHES] << 2);
    for (kind = 0; kind < TABLES_COUNT; kind++) {
        if (kind == TABLE_OFFSETS)
            continue;
        memcpy(dst + len, sequences + head->at[kind], head->bytes[kind]);
        len += head->bytes[kind];
    }
    return len;
}

/* Writes the block at dst with its offsets spelled out, and D as it is then.
 * *len is 0 if that is impossible, or not smaller than the content. */
static int rewrite_block(struct rewrite *rw, const struct parsed_block *block,
                         uint8_t *dst, size_t *len)
{
    struct segzstd__seam *seam = rw->seam;
    size_t scratch_bytes = block->head.count * sizeof(struct segzstd__sequence);
    struct segzstd__sequence *sequence;
    struct segzstd__fse_table offsets;
    uint32_t d_offset[OFFSETS_COUNT];
    uint8_t *inside = dst + BLOCK_HEADER_BYTES;
    size_t head_len = write_head(block, inside);
    size_t stream_len;

    *len = 0;
    if (head_len >= block->decoded)
        return 0;
    sequence = segzstd__mem_alloc(rw->mem, scratch_bytes);
    if (sequence == NULL)
        return SEGZSTD_ERR_NOMEM;
    memcpy(d_offset, seam->d_offset, sizeof(d_offset));
    collect_sequences(seam, block, sequence, d_offset);
    segzstd__table_build_predefined(&offsets, TABLE_OFFSETS);
    if (segzstd__sequences_write(&seam->tables, &offsets, sequence,
                                 block->head.count, inside + head_len,
                                 block->decoded - head_len - 1, &stream_len)) {
        *len = BLOCK_HEADER_BYTES + head_len + stream_len;
        segzstd__frame_put_block_header(dst, BLOCK_COMPRESSED,
                                        head_len + stream_len, false);
        memcpy(seam->d_offset, d_offset, sizeof(d_offset));
    }
    segzstd__mem_free(rw->mem, sequence, scratch_bytes);
    return 0;
}

/* A raw block of content. Returns its length. */
static size_t store_block(uint8_t *dst, const uint8_t *content, size_t len)
{
    segzstd__frame_put_block_header(dst, BLOCK_RAW, len, false);
    memcpy(dst + BLOCK_HEADER_BYTES, content, len);
    return BLOCK_HEADER_BYTES + len;
}

/*
 * src[0..len) is the inside of a compressed block, its header in front of it.
 * *dst_len is what was written for it, *decoded what it decodes to.
 */
static int convert_block(struct rewrite *rw, const uint8_t *src, size_t len,
                         uint8_t *dst, size_t *dst_len, size_t *decoded)
{
    struct segzstd__seam *seam = rw->seam;
    struct parsed_block block;
    enum seam_outcome outcome = SEAM_STORED;

    if (!parse_block(seam, &block, src, len) || block.decoded > rw->content_len)
        return SEGZSTD_ERR_INTERNAL;
    if (can_copy(seam, &block)) {
        outcome = SEAM_COPIED;
        *dst_len = BLOCK_HEADER_BYTES + len;
        memcpy(dst, src - BLOCK_HEADER_BYTES, *dst_len);
        memcpy(seam->d_offset, block.d_after, sizeof(block.d_after));
    } else if (can_rewrite(seam, &block)) {
        int err = rewrite_block(rw, &block, dst, dst_len);

        if (err != 0)
            return err;
        if (*dst_len > 0)
            outcome = SEAM_REWRITTEN;
    }
    if (outcome == SEAM_STORED)
        *dst_len = store_block(dst, rw->content, block.decoded);
    update_shared(seam, &block, outcome);
    seam->blocks[outcome]++;
    *decoded = block.decoded;
    return 0;
}

/* One block at src[0..len), header included. */
static int pass_block(struct rewrite *rw, const uint8_t *src, size_t len,
                      size_t *src_taken, uint8_t *dst, size_t *dst_len)
{
    struct segzstd__block_header header;
    size_t decoded;
    int err = 0;

    if (!segzstd__block_read_header(&header, src, len) || header.last)
        return SEGZSTD_ERR_INTERNAL;
    *src_taken = BLOCK_HEADER_BYTES + header.content;
    decoded = header.decoded;
    if (header.type == BLOCK_COMPRESSED) {
        err = convert_block(rw, src + BLOCK_HEADER_BYTES, header.content, dst,
                            dst_len, &decoded);
        if (err != 0)
            return err;
    } else {
        memcpy(dst, src, *src_taken);
        *dst_len = *src_taken;
    }
    if (decoded > rw->content_len)
        return SEGZSTD_ERR_INTERNAL;
    rw->content += decoded;
    rw->content_len -= decoded;
    return 0;
}

/* All blocks, until the states agree; then the rest as it is. */
static int pass_blocks(struct rewrite *rw, const uint8_t *src, size_t len,
                       uint8_t *dst, size_t *dst_len)
{
    size_t src_taken;
    size_t n;
    int err;

    *dst_len = 0;
    while (len > 0 && !segzstd__seam_is_settled(rw->seam)) {
        err = pass_block(rw, src, len, &src_taken, dst + *dst_len, &n);
        if (err != 0)
            return err;
        src += src_taken;
        len -= src_taken;
        *dst_len += n;
    }
    if (len > 0)
        memcpy(dst + *dst_len, src, len);
    else if (rw->content_len > 0)
        return SEGZSTD_ERR_INTERNAL;
    *dst_len += len;
    return 0;
}

int segzstd__seam_rewrite(struct segzstd__seam *seam, struct segzstd__mem *mem,
                          void *dst, size_t dst_cap, size_t *dst_len,
                          const void *src, size_t src_len, const void *content,
                          size_t content_len)
{
    struct segzstd__seam moved = *seam; /* so that an error changes nothing */
    struct rewrite rw = {&moved, mem, content, content_len};
    int err;

    assert(dst_cap >= segzstd__seam_bound(src_len, content_len));
    (void)dst_cap;
    err = pass_blocks(&rw, src, src_len, dst, dst_len);
    if (err == 0)
        *seam = moved;
    return err;
}
