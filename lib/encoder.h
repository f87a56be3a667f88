/*
 * encoder.h - the only file that calls libzstd's compressor.
 *
 * An encoder makes *runs*: the blocks of one stretch of content, primed with
 * the bytes before it. A run can pause after any flush and go on later, as long
 * as nobody else used the encoder in between; the cache sees to that.
 */
#ifndef SEGZSTD_ENCODER_H
#define SEGZSTD_ENCODER_H

#include "mem.h"
#include "seam.h"

#include <zstd.h>

/* The parameters of libzstd that an encoder has been given. */
struct segzstd__encoder_params {
    int level;
    int window_log; /* 0: the level's */
    int content_size_flag;
    int checksum_flag;
    int dict_id_flag;
    int stable_input;
    int force_max_window;
};

struct segzstd__encoder {
    struct segzstd__mem *mem;
    ZSTD_CCtx *cctx;
    size_t charged; /* counted by us, where libzstd takes no allocator */
    struct segzstd__encoder_params params;
    bool params_valid;
    const char *zstd_error; /* name of the last error; static memory */

    /* The present run. */
    ZSTD_inBuffer input; /* src is the first byte of the run */
    bool header_pending; /* libzstd's frame header is still to come */
    bool seam_active;    /* blocks are looked at, see seam.h */
    size_t seam_piece;   /* how much to feed next while they are */
    struct segzstd__seam seam;
};

/* What a run is about. All pointers are borrowed while the run goes on. */
struct segzstd__run {
    int level;
    unsigned window_log;
    const uint8_t *base;   /* first byte of its content */
    size_t len_max;        /* no more content than that will follow base */
    const uint8_t *prefix; /* the bytes before it, wherever they lie */
    size_t prefix_len;
    const ZSTD_CDict *cdict; /* NULL: none; excludes a prefix */
    bool stable_input;
    bool at_frame_start; /* the decoder's state is known: no seam */
};

/* A whole frame in one call. */
struct segzstd__whole {
    int level;
    int window_log; /* 0: the level's */
    const ZSTD_CDict *cdict;
    bool checksum;
    bool dict_id;
};

/* False if libzstd is older than 1.4.0. */
bool segzstd__encoder_is_supported(void);

/* True if a buffer of stable input may grow; probed once in a process. */
bool segzstd__encoder_has_stable_input(void);

/* True if libzstd takes our allocator. */
bool segzstd__encoder_has_custom_alloc(void);

/* Returns NULL if there is no memory. */
struct segzstd__encoder *segzstd__encoder_new(struct segzstd__mem *mem);
void segzstd__encoder_free(struct segzstd__encoder *encoder);

/* Bytes held, tables included. */
size_t segzstd__encoder_bytes(const struct segzstd__encoder *encoder);

/* Starts a run. Returns 0, SEGZSTD_ERR_NOMEM or SEGZSTD_ERR_ZSTD. */
int segzstd__encoder_begin(struct segzstd__encoder *encoder,
                           const struct segzstd__run *run);

/*
 * Compresses the run's content up to `end` bytes behind its base and flushes it,
 * as far as dst has room. *written is how much was written, *done tells
 * whether all is out; if not, call again with more room and the same end.
 * The first output of a run begins with a frame header of libzstd.
 * Returns 0, SEGZSTD_ERR_NOMEM or SEGZSTD_ERR_ZSTD.
 */
int segzstd__encoder_flush(struct segzstd__encoder *encoder, size_t end,
                           uint8_t *dst, size_t dst_len, size_t *written,
                           bool *done);

/* Makes a frame as ZSTD_compress2() does; dst_len is at least
 * segzstd__encoder_bound(len). Ends any run. Errors as above. */
int segzstd__encoder_whole(struct segzstd__encoder *encoder,
                           const struct segzstd__whole *whole, uint8_t *dst,
                           size_t dst_len, size_t *written, const uint8_t *src,
                           size_t len);

/* Most output for `len` bytes in one flush, frame header included. */
size_t segzstd__encoder_bound(size_t len);

#endif /* SEGZSTD_ENCODER_H */
