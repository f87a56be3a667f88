/*
 * event.c - see event.h.
 */
#include "event.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const words[] = {
    "order",  "customer", "shipped", "warehouse",  "price",  "updated",
    "status", "pending",  "account", "balance",    "north",  "delivery",
    "review", "amount",   "message", "received",   "region", "priority",
    "active", "location", "invoice", "temperature"};

#define WORDS (sizeof(words) / sizeof(words[0]))

/* Of a linear congruential generator; the upper bits are the good ones. */
static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void write_words(char *text, size_t bytes, uint64_t *random)
{
    size_t done = 0;

    while (done < bytes) {
        char word[24];
        uint32_t number = next_random(random);
        size_t len = (size_t)snprintf(word, sizeof(word), "%s %" PRIu32 " ",
                                      words[number % WORDS], number % 9973);
        if (len > bytes - done)
            len = bytes - done;
        memcpy(text + done, word, len);
        done += len;
    }
}

void event_write(char *text, size_t bytes, unsigned stream, uint64_t number)
{
    static const char end[] = "\"}\n\n";
    uint64_t random = stream * UINT64_C(0x9e3779b97f4a7c15) + number;
    char begin[EVENT_MIN];
    size_t len = (size_t)snprintf(begin, sizeof(begin),
                                  "id: %" PRIu64
                                  "\ndata: {\"stream\":%u,\"event\":%" PRIu64
                                  ",\"text\":\"",
                                  number, stream, number);

    memcpy(text, begin, len);
    write_words(text + len, bytes - len - (sizeof(end) - 1), &random);
    memcpy(text + bytes - (sizeof(end) - 1), end, sizeof(end) - 1);
}
