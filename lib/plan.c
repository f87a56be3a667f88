/*
 * plan.c - decisions as pure functions.
 */
#include "plan.h"

#include "input.h"

/* Window_Log floor of the format: RFC 8878, section 3.1.1.1.2. */
#define WINDOW_LOG_MIN 10

/*
 * A stream of unknown length may end long after its hint: the window is never
 * below this because of a hint alone. 128 KiB is one block.
 */
#define HINT_WINDOW_LOG_MIN 17

unsigned segzstd__plan_level_window_log(int level)
{
    /* As libzstd 1.5 chooses it for content above 256 KiB or of unknown size:
     * zstd's lib/compress/clevels.h, column W. (1.4 has 21 for level 9.) A test
     * compares it with the libzstd in use. */
    static const uint8_t window_log[23] = {21, 19, 20, 21, 21, 21, 21, 21,
                                           21, 22, 22, 22, 22, 22, 22, 22,
                                           22, 23, 23, 23, 25, 26, 27};

    if (level < 0)
        return 19;
    return window_log[level > 22 ? 22 : level];
}

unsigned segzstd__plan_window_log(int level, unsigned cap, uint64_t size,
                                  bool certain)
{
    unsigned log = segzstd__plan_level_window_log(level);
    unsigned need;

    if (log > cap)
        log = cap;
    if (size == SEGZSTD_SIZE_UNKNOWN)
        return log;
    need = size == 0 ? 0 : ceil_log2(size);
    if (!certain && need < HINT_WINDOW_LOG_MIN)
        need = HINT_WINDOW_LOG_MIN;
    if (need < WINDOW_LOG_MIN)
        need = WINDOW_LOG_MIN;
    return need < log ? need : log;
}

/*
 * What priming costs and gives depends on the match finder. Measured on JS, JSON,
 * a tar and an executable of 2 to 16 MB, cut in two: at the greedy and lazy
 * levels 2 MiB cost 4 % of the CPU and halve the loss of size; a binary tree
 * pays twice that, and on repetitive content many times; the optimal parsers
 * are slow enough to pay for 4 MiB.
 */
static size_t most_overlap(int level)
{
    if (level <= 4)
        return 512 * KIB;
    if (level <= 12)
        return 2 * MIB;
    return level <= 15 ? 1 * MIB : 4 * MIB;
}

/*
 * At most so many eighths of what follows. react-dom.js and emoji.json of the
 * benchmark in two parts at level 9, where priming takes a quarter of the
 * instructions of compressing: 2/8 make them 1.3 and 0.9 % larger, 4/8 0.9 and
 * 0.5 %, 6/8 0.5 and 0.4 %, 8/8 0.2 and 0.1 %. Slower levels pay more for it.
 */
static unsigned overlap_eighths(int level, bool regular)
{
    if (regular)
        return 1;
    if (level <= 4)
        return 2;
    if (level <= 9)
        return 6;
    return level >= 13 && level <= 15 ? 2 : 4;
}

size_t segzstd__plan_overlap(int level, unsigned window_log,
                             uint64_t part_bytes, bool regular)
{
    uint64_t share = part_bytes / 8 * overlap_eighths(level, regular);
    uint64_t overlap = min_u64(most_overlap(level), share);

    return (size_t)min_u64(overlap, (uint64_t)1 << window_log);
}

/*
 * MiB, as libzstd 1.4.8 to 1.5.7 make them for a large window and with tables on
 * huge pages: the most of these. For a small window they are two tables of two
 * entries for each byte of it and what it is primed with, and what does not
 * depend on that.
 */
uint64_t segzstd__plan_encoder_bytes(int level, unsigned window_log,
                                     size_t overlap, bool stable_input)
{
    static const uint16_t most[23] = {3,  1,  1,  3,  3,   5,   5,  7,
                                      7,  13, 25, 25, 49,  33,  49, 65,
                                      33, 49, 51, 83, 163, 323, 643};
    uint64_t window = (uint64_t)1 << window_log;
    uint64_t bytes =
        2 * MIB + 64 * KIB + ((uint64_t)16 << ceil_log2(window + overlap));

    bytes = min_u64(bytes, most[level < 0 ? 1 : level > 22 ? 22 : level] * MIB);
    return stable_input ? bytes : bytes + window + 2 * MIB;
}

/* 4 to 9 ms; a hop to another thread and back costs about 50 us of CPU, which is
 * felt at the fast levels. Above level 12 a block takes that long. */
size_t segzstd__plan_job_bytes(int level)
{
    if (level <= 2)
        return 4 * MIB;
    if (level <= 4)
        return 2 * MIB;
    if (level <= 7)
        return 1 * MIB;
    if (level <= 10)
        return 512 * KIB;
    return level <= 12 ? 256 * KIB : BLOCK_BYTES_MAX;
}

/* Half of a millisecond at the middle levels, 3 to 6 ms at the slow ones, where a
 * whole block takes 50. With one encoder it costs no size: less than 0.2 % either
 * way. */
size_t segzstd__plan_first_bytes(int level)
{
    if (level <= 4)
        return BLOCK_BYTES_MAX;
    if (level <= 8)
        return 64 * KIB;
    return level <= 12 ? 32 * KIB : 16 * KIB;
}

/* About 3 ms, or one block. */
size_t segzstd__plan_whole_bytes(int level)
{
    if (level <= 4)
        return 1 * MIB;
    if (level <= 7)
        return 512 * KIB;
    return level <= 10 ? 256 * KIB : BLOCK_BYTES_MAX;
}

uint64_t segzstd__plan_work_ns(int level, uint64_t bytes)
{
    /* Tenths of a nanosecond for a byte: jquery.min.js of the benchmark, which
     * is dearer than most, in one call with tables of its size. */
    static const uint16_t cost[20] = {35,  14,  22,  36,   45,   65,  94,
                                      105, 130, 150, 180,  220,  390, 500,
                                      600, 780, 950, 1250, 1600, 1860};
    /* A call of libzstd with a context that is used again. */
    uint64_t ns = 1000;

    if (level < 0)
        level = 1;
    return ns + bytes * cost[level > 19 ? 19 : level] / 10;
}

/*
 * Least content for an encoder of its own. Below it the cut costs more (a hop to
 * another thread, priming, a seam) than the other thread can give back. A late
 * cut shortens only the tail of the content.
 */
static uint64_t least_part(int level, size_t overlap, bool late)
{
    uint64_t least = level <= 4 ? 512 * KIB : PART_BYTES_MIN;

    return max_u64(late ? 2 * least : least, overlap / 2);
}

/* Bytes that could be compressed in the time that priming takes. */
static uint64_t priming_bytes(int level, size_t overlap)
{
    return level <= 12 ? overlap / 4 : overlap / 2;
}

uint64_t segzstd__plan_keep(int level, size_t overlap, uint64_t waiting,
                            unsigned idle, bool late)
{
    uint64_t least = least_part(level, overlap, late);
    uint64_t keep;

    assert(idle != 0);
    if (waiting < 2 * least)
        return 0;
    while (idle > 1 && waiting / (idle + 1) < least)
        idle--;
    keep = (waiting + priming_bytes(level, overlap) * idle) / (idle + 1);
    keep = min_u64(keep, waiting - least);
    /* whole blocks for the encoder that goes on */
    return keep - keep % BLOCK_BYTES_MAX;
}

size_t segzstd__plan_extent_bytes(uint64_t left, uint64_t run_bytes, size_t max)
{
    /*
     * Growth in few steps, since each step beyond the first job costs a segment
     * of its own. What does not make a block is moved to the next step for the
     * price of a copy; from there it leaps to 1 MiB, so that the response of
     * unknown length that most servers send fits into one. With the history in
     * front, 16 KiB make the 48 KiB that an event stream has at rest.
     */
    static const size_t steps[] = {16 * KIB, 48 * KIB, 128 * KIB,
                                   1 * MIB,  4 * MIB,  16 * MIB};
    size_t bytes = max;

    if (left != SEGZSTD_SIZE_UNKNOWN && left != 0)
        return (size_t)min_u64(max_u64(left, steps[0]), max);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (run_bytes < steps[i] - EXTENT_HEADER_BYTES) {
            bytes = steps[i] - EXTENT_HEADER_BYTES;
            break;
        }
    }
    return min_size(bytes, max);
}
