/*
 * dict.h - dictionaries: bytes that are digested once per level and shared.
 */
#ifndef SEGZSTD_DICT_H
#define SEGZSTD_DICT_H

#include "cache.h"

struct segzstd_dict {
    struct segzstd_cache *cache;
    _Atomic unsigned refs;
    uint32_t id; /* never written after segzstd_dict_new() */
    size_t len;
    struct digest *digests; /* cache->lock */
    uint8_t bytes[];        /* never written after segzstd_dict_new() */
};

/* Takes a reference. Any thread that has one. */
void segzstd__dict_ref(struct segzstd_dict *dict);

/*
 * The digested dictionary for a level; made now if it is not there yet. It lives
 * as long as the dictionary. Any thread. Returns 0 or SEGZSTD_ERR_NOMEM.
 */
int segzstd__dict_digest(struct segzstd_dict *dict, int level,
                         const ZSTD_CDict **cdict);

#endif /* SEGZSTD_DICT_H */
