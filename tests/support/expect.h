/*
 * expect.h - what most cmocka tests here need. Included by tests only, since
 * the rest of support/ is used without cmocka too.
 */
#ifndef SUPPORT_EXPECT_H
#define SUPPORT_EXPECT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "segzstd.h"
#include "support/alloc.h"
#include "support/drive.h"
#include "support/env.h"
#include "support/oracle.h"

#define EXPECT_KIB ((size_t)1 << 10)
#define EXPECT_MIB ((size_t)1 << 20)

/* Fails the test with the sentence, if there is one. */
#define expect_no_fault(sentence)                                              \
  do {                                                                         \
    const char *fault_ = (sentence);                                           \
    if (fault_ != NULL)                                                        \
      fail_msg("%s", fault_);                                                  \
  } while (0)

/* A cache for `workers` jobs at once, with the allocator if it is not NULL. */
static inline segzstd_cache *expect_cache(unsigned workers,
                                          struct test_alloc *alloc)
{
    segzstd_cache_options options = SEGZSTD_CACHE_OPTIONS_INIT;
    segzstd_cache *cache = NULL;

    options.workers = workers;
    options.no_stable_input = env_plain_input();
    if (alloc != NULL) {
        options.allocator = &alloc->api;
        options.no_huge_pages = 1;
    }
    assert_int_equal(segzstd_cache_new(&cache, &options), 0);
    assert_non_null(cache);
    return cache;
}

static inline segzstd_stream *expect_stream(
    segzstd_cache *cache, const segzstd_stream_options *options)
{
    segzstd_stream *stream = NULL;

    assert_int_equal(segzstd_stream_new(&stream, cache, options), 0);
    assert_non_null(stream);
    return stream;
}

/* The driver's stream is done, and its output is the frame of the content. */
static inline void expect_frame(const struct drive *d, const void *content,
                                size_t len)
{
    struct oracle_want want = {content, len, NULL, 0, 0, ORACLE_SIZE_ANY};

    expect_no_fault(d->fault);
    assert_true(segzstd_stream_is_done(d->stream));
    assert_int_equal(d->taken, len);
    assert_int_equal(d->refs_back, d->refs_lent);
    expect_no_fault(oracle_check(d->out, d->out_len, &want));
}

static inline segzstd_cache_stats expect_cache_stats(segzstd_cache *cache)
{
    segzstd_cache_stats stats = SEGZSTD_CACHE_STATS_INIT;

    assert_int_equal(segzstd_cache_get_stats(cache, &stats), 0);
    return stats;
}

static inline segzstd_stream_stats expect_stream_stats(
    const segzstd_stream *stream)
{
    segzstd_stream_stats stats = SEGZSTD_STREAM_STATS_INIT;

    assert_int_equal(segzstd_stream_get_stats(stream, &stats), 0);
    return stats;
}

#endif /* SUPPORT_EXPECT_H */
