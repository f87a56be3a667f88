/*
 * dict.c - dictionaries, digested at first use.
 */
#include "dict.h"

#include <zstd_errors.h>

#include "frame.h"

/* RFC 8878, section 5. */
#define DICT_MAGIC 0xEC30A437u
#define DICT_BYTES_MIN 8
#define DICT_BYTES_MAX ((size_t)1 << 30)

/* Published under cache->lock, read-only from then on. */
struct digest {
    struct digest *next;
    ZSTD_CDict *cdict;
    size_t bytes; /* counted for it */
    int level;
};

/* Lets libzstd look at a trained dictionary. 0, or the error to return. */
static int check_trained(const void *bytes, size_t len)
{
    ZSTD_CCtx *cctx = ZSTD_createCCtx();
    uint8_t frame[64];
    size_t code;

    if (cctx == NULL)
        return SEGZSTD_ERR_NOMEM;
    code = ZSTD_compress_usingDict(cctx, frame, sizeof(frame), "x", 1, bytes,
                                   len, 1);
    ZSTD_freeCCtx(cctx);
    if (!ZSTD_isError(code))
        return 0;
    return ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation
               ? SEGZSTD_ERR_NOMEM
               : SEGZSTD_ERR_INVALID;
}

int segzstd_dict_new(segzstd_dict **out, segzstd_cache *cache,
                     const void *bytes, size_t len)
{
    struct segzstd_dict *dict;
    bool trained;

    if (out == NULL || cache == NULL || bytes == NULL || len < DICT_BYTES_MIN ||
        len > DICT_BYTES_MAX)
        return SEGZSTD_ERR_INVALID;
    trained = load_le(bytes, 4) == DICT_MAGIC;
    if (trained) {
        /* libzstd 1.4.0 does not look at one that ends behind its id */
        int error = len > DICT_BYTES_MIN ? check_trained(bytes, len)
                                         : SEGZSTD_ERR_INVALID;

        if (error != 0)
            return error;
    }
    dict = segzstd__cache_alloc(cache, sizeof(*dict) + len);
    if (dict == NULL)
        return SEGZSTD_ERR_NOMEM;
    dict->cache = cache;
    atomic_init(&dict->refs, 1);
    dict->id = trained ? (uint32_t)load_le((const uint8_t *)bytes + 4, 4) : 0;
    dict->len = len;
    dict->digests = NULL;
    memcpy(dict->bytes, bytes, len);
    *out = dict;
    return 0;
}

void segzstd__dict_ref(struct segzstd_dict *dict)
{
    atomic_fetch_add_explicit(&dict->refs, 1, memory_order_relaxed);
}

static void free_digest(struct segzstd_cache *cache, struct digest *digest)
{
    ZSTD_freeCDict(digest->cdict);
    segzstd__mem_uncharge(&cache->mem, digest->bytes);
    segzstd__cache_free(cache, digest, sizeof(*digest));
}

void segzstd_dict_free(segzstd_dict *dict)
{
    struct digest *digest, *next;

    if (dict == NULL ||
        atomic_fetch_sub_explicit(&dict->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (digest = dict->digests; digest != NULL; digest = next) {
        next = digest->next;
        free_digest(dict->cache, digest);
    }
    segzstd__cache_free(dict->cache, dict, sizeof(*dict) + dict->len);
}

uint32_t segzstd_dict_id(const segzstd_dict *dict)
{
    return dict->id;
}

/* Caller holds cache->lock. */
static struct digest *find_digest(const struct segzstd_dict *dict, int level)
{
    struct digest *digest = dict->digests;

    while (digest != NULL && digest->level != level)
        digest = digest->next;
    return digest;
}

static struct digest *make_digest(struct segzstd_dict *dict, int level)
{
    struct segzstd_cache *cache = dict->cache;
    struct digest *digest = segzstd__cache_alloc(cache, sizeof(*digest));

    if (digest == NULL)
        return NULL;
    digest->level = level;
    digest->cdict = ZSTD_createCDict(dict->bytes, dict->len, level);
    digest->bytes =
        digest->cdict == NULL ? 0 : ZSTD_sizeof_CDict(digest->cdict);
    if (digest->cdict != NULL &&
        segzstd__mem_charge(&cache->mem, digest->bytes))
        return digest;
    ZSTD_freeCDict(digest->cdict);
    segzstd__cache_free(cache, digest, sizeof(*digest));
    return NULL;
}

int segzstd__dict_digest(struct segzstd_dict *dict, int level,
                         const ZSTD_CDict **cdict)
{
    pthread_mutex_t *lock = &dict->cache->lock;
    struct digest *digest, *mine = NULL;

    pthread_mutex_lock(lock);
    digest = find_digest(dict, level);
    pthread_mutex_unlock(lock);
    if (digest == NULL) {
        mine = make_digest(dict, level);
        if (mine == NULL)
            return SEGZSTD_ERR_NOMEM;
        /* another thread may have been faster */
        pthread_mutex_lock(lock);
        digest = find_digest(dict, level);
        if (digest == NULL) {
            mine->next = dict->digests;
            dict->digests = mine;
            digest = mine;
            mine = NULL;
        }
        pthread_mutex_unlock(lock);
    }
    if (mine != NULL)
        free_digest(dict->cache, mine);
    *cdict = digest->cdict;
    return 0;
}
