/*
 * oracle.h - the judge of frames: stock libzstd's decoder, and the frame
 * header read by hand. Any thread. Faults are sentences in static memory.
 */
#ifndef SUPPORT_ORACLE_H
#define SUPPORT_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zstd.h>

#define ORACLE_NO_SIZE UINT64_MAX

struct oracle_header {
    uint64_t window;       /* bytes that a decoder must keep */
    uint64_t content_size; /* ORACLE_NO_SIZE if not declared */
    uint32_t dict_id;      /* 0 if not declared */
    size_t header_len;
    bool checksum;
};

/* False if the bytes do not begin with a whole frame header. */
bool oracle_read_header(const void *frame, size_t len,
                        struct oracle_header *header);

enum oracle_size {
    ORACLE_SIZE_ANY,
    ORACLE_SIZE_ABSENT, /* the header must not declare the content size */
    ORACLE_SIZE_PRESENT
};

struct oracle_want {
    const void *content; /* what the frame must decode to */
    size_t len;
    const void *dict; /* NULL: none */
    size_t dict_len;
    unsigned window_log; /* largest that may be declared; 0: 23 */
    enum oracle_size size;
};

/* What is wrong with the frame, or NULL. Decodes it in one shot and in steps
 * from 1 byte to 64 KiB. */
const char *oracle_check(const void *frame, size_t frame_len,
                         const struct oracle_want *want);

/* The same in one shot only. */
const char *oracle_check_once(const void *frame, size_t frame_len,
                              const struct oracle_want *want);

/* A client that decodes what arrives, and compares. */
struct oracle_live {
    ZSTD_DCtx *decoder;
    const unsigned char *content;
    size_t len;
    size_t done; /* bytes decoded so far */
    bool ended;  /* the frame is whole */
};

/* `content` must stay until oracle_live_free(). */
void oracle_live_init(struct oracle_live *live, const void *content,
                      size_t len);
void oracle_live_free(struct oracle_live *live);

/* What is wrong, or NULL. */
const char *oracle_live_feed(struct oracle_live *live, const void *bytes,
                             size_t len);

#endif /* SUPPORT_ORACLE_H */
