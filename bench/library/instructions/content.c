/*
 * content.c - see content.h.
 */
#include "content.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SEED 0x9e3779b97f4a7c15u

/* More than the longest record. */
#define RECORD_MAX 256

static const char *const words[] = {
    "amber",  "basin",  "cedar",  "delta",   "ember",  "fjord",
    "grove",  "haven",  "island", "jasper",  "kelp",   "lagoon",
    "meadow", "nectar", "opal",   "prairie", "quartz", "ridge",
    "slate",  "tundra", "umber",  "valley",  "willow", "zephyr",
};

#define WORD_COUNT (sizeof(words) / sizeof(words[0]))

/* xorshift64. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static const char *word(uint64_t *state)
{
    return words[next_random(state) % WORD_COUNT];
}

static size_t write_record(char *record, unsigned long id, uint64_t *state)
{
    unsigned cents = (unsigned)(next_random(state) % 100000);
    const char *first = word(state);
    const char *second = word(state);
    const char *tag = word(state);

    return (size_t)snprintf(
        record, RECORD_MAX,
        "{\"id\":%lu,\"name\":\"%s %s\",\"key\":\"%08lx\",\"price\":%u.%02u,"
        "\"tags\":[\"%s\"],\"stock\":%s},\n",
        id, first, second, (unsigned long)(next_random(state) & 0xffffffffu),
        cents / 100, cents % 100, tag, cents % 3 == 0 ? "false" : "true");
}

void content_fill(unsigned char *dst, size_t len)
{
    char record[RECORD_MAX];
    uint64_t state = SEED;

    for (unsigned long id = 1; len > 0; id++) {
        size_t bytes = write_record(record, id, &state);

        if (bytes > len)
            bytes = len;
        memcpy(dst, record, bytes);
        dst += bytes;
        len -= bytes;
    }
}
