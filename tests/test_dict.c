/*
 * dict.c is compiled into this test with its calls of libzstd in between, so
 * that they can fail, and so that "another thread was faster" can be played.
 */
#include "dict.h"

#include <stdlib.h>
#include <zdict.h>
#include <stdatomic.h>
#include <zstd_errors.h>

static bool refuse_cctx, refuse_cdict, out_of_memory;
/* Called once, before one is made. Threads may make several at once. */
static void (*_Atomic before_cdict)(void);

static ZSTD_CDict *make_cdict(const void *bytes, size_t len, int level)
{
    void (*call)(void) = atomic_exchange(&before_cdict, NULL);

    if (call != NULL)
        call();
    return refuse_cdict ? NULL : ZSTD_createCDict(bytes, len, level);
}

#define ZSTD_createCCtx() (refuse_cctx ? NULL : ZSTD_createCCtx())
#define ZSTD_createCDict make_cdict
#define ZSTD_compress_usingDict(c, dst, cap, src, len, dict, dict_len, level)  \
  (out_of_memory ? (size_t)-ZSTD_error_memory_allocation                       \
                 : ZSTD_compress_usingDict(c, dst, cap, src, len, dict,        \
                                           dict_len, level))
#include "dict.c"
#undef ZSTD_createCDict

#include "support/data.h"
#include "support/expect.h"

enum { SAMPLES = 200, SAMPLE = 500, TRAINED = 4096 };

struct fixture {
    struct test_alloc alloc;
    struct segzstd_cache *cache;
    struct segzstd_dict *dict;
    unsigned char *content; /* SAMPLES times SAMPLE bytes */
    unsigned char trained[TRAINED];
    size_t trained_len;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    size_t sizes[SAMPLES];

    if (f == NULL)
        return -1;
    alloc_init(&f->alloc);
    f->cache = expect_cache(1, &f->alloc);
    f->content = data_new((size_t)SAMPLES * SAMPLE, DATA_JSON, 1);
    for (int i = 0; i < SAMPLES; i++)
        sizes[i] = SAMPLE;
    f->trained_len =
        ZDICT_trainFromBuffer(f->trained, TRAINED, f->content, sizes, SAMPLES);
    *state = f;
    return ZDICT_isError(f->trained_len) ? -1 : 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    const char *fault;

    alloc_heal(&f->alloc);
    segzstd_dict_free(f->dict);
    segzstd_cache_free(f->cache);
    fault = alloc_done(&f->alloc);
    if (fault != NULL)
        print_error("%s\n", fault);
    free(f->content);
    free(f);
    return fault == NULL ? 0 : -1;
}

static void make_dict(struct fixture *f, const void *bytes, size_t len)
{
    assert_int_equal(segzstd_dict_new(&f->dict, f->cache, bytes, len), 0);
}

static int try_dict(struct fixture *f, const void *bytes, size_t len)
{
    int rc = segzstd_dict_new(&f->dict, f->cache, bytes, len);

    if (rc != 0)
        assert_null(f->dict);
    return rc;
}

/* ---- new and free ---- */

static void test_new__raw_content__has_no_id(void **state)
{
    struct fixture *f = *state;

    make_dict(f, f->content, 5000);
    assert_int_equal(segzstd_dict_id(f->dict), 0);
    assert_int_equal(f->dict->len, 5000);
    assert_memory_equal(f->dict->bytes, f->content, 5000);
}

static void test_new__trained__has_the_id_of_its_header(void **state)
{
    struct fixture *f = *state;

    make_dict(f, f->trained, f->trained_len);
    assert_int_equal(segzstd_dict_id(f->dict),
                     ZDICT_getDictID(f->trained, f->trained_len));
    assert_int_not_equal(segzstd_dict_id(f->dict), 0);
}

static void test_new__bad_arguments__refused(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(segzstd_dict_new(NULL, f->cache, f->content, 100),
                     SEGZSTD_ERR_INVALID);
    assert_int_equal(segzstd_dict_new(&f->dict, NULL, f->content, 100),
                     SEGZSTD_ERR_INVALID);
    assert_int_equal(try_dict(f, NULL, 100), SEGZSTD_ERR_INVALID);
    assert_int_equal(try_dict(f, f->content, 7), SEGZSTD_ERR_INVALID);
    assert_int_equal(try_dict(f, f->content, ((size_t)1 << 30) + 1),
                     SEGZSTD_ERR_INVALID);
    make_dict(f, f->content, 8);
}

/* The magic and an id, and then no tables, or half of them. */
static void test_new__broken_trained__refused(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(try_dict(f, f->trained, 8), SEGZSTD_ERR_INVALID);
    assert_int_equal(try_dict(f, f->trained, 40), SEGZSTD_ERR_INVALID);
    memset(f->trained + 8, 0xff, 100);
    assert_int_equal(try_dict(f, f->trained, f->trained_len),
                     SEGZSTD_ERR_INVALID);
}

static void test_new__no_memory__refused(void **state)
{
    struct fixture *f = *state;

    refuse_cctx = true;
    assert_int_equal(try_dict(f, f->trained, f->trained_len),
                     SEGZSTD_ERR_NOMEM);
    refuse_cctx = false;
    out_of_memory = true;
    assert_int_equal(try_dict(f, f->trained, f->trained_len),
                     SEGZSTD_ERR_NOMEM);
    out_of_memory = false;
    alloc_fail(&f->alloc, 0, ALLOC_FOR_EVER);
    assert_int_equal(try_dict(f, f->trained, f->trained_len),
                     SEGZSTD_ERR_NOMEM);
}

static void test_free__last_reference__frees_it(void **state)
{
    struct fixture *f = *state;
    uint64_t before = f->cache->mem.used;
    const ZSTD_CDict *cdict;

    make_dict(f, f->content, 5000);
    segzstd__dict_ref(f->dict);
    segzstd__dict_ref(f->dict);
    assert_int_equal(segzstd__dict_digest(f->dict, 1, &cdict), 0);
    assert_int_equal(segzstd__dict_digest(f->dict, 3, &cdict), 0);
    assert_true(f->cache->mem.used > before + 5000);
    segzstd_dict_free(f->dict);
    segzstd_dict_free(f->dict);
    assert_memory_equal(f->dict->bytes, f->content, 5000);
    segzstd_dict_free(f->dict);
    f->dict = NULL;
    assert_int_equal(f->cache->mem.used, before);
    segzstd_dict_free(NULL);
}

/* ---- digests ---- */

/* Frames that are made with the digest name the dictionary. */
static void expect_digest_of(struct fixture *f, const ZSTD_CDict *cdict)
{
    ZSTD_CCtx *cctx = ZSTD_createCCtx();
    unsigned char frame[200];
    size_t n;

    assert_non_null(cctx);
    n = ZSTD_compress_usingCDict(cctx, frame, sizeof(frame), "text", 4, cdict);
    assert_int_equal(ZSTD_getDictID_fromFrame(frame, n),
                     segzstd_dict_id(f->dict));
    ZSTD_freeCCtx(cctx);
}

static void test_digest__each_level__is_made_once(void **state)
{
    static const int levels[] = {3, 1, 9, -2};
    struct fixture *f = *state;
    const ZSTD_CDict *cdicts[4], *again;
    uint64_t used;

    make_dict(f, f->trained, f->trained_len);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(segzstd__dict_digest(f->dict, levels[i], &cdicts[i]),
                         0);
        expect_digest_of(f, cdicts[i]);
        for (int k = 0; k < i; k++)
            assert_ptr_not_equal(cdicts[i], cdicts[k]);
    }
    used = f->cache->mem.used;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(segzstd__dict_digest(f->dict, levels[i], &again), 0);
        assert_ptr_equal(again, cdicts[i]);
    }
    assert_int_equal(f->cache->mem.used, used);
}

static void test_digest__its_size__is_counted(void **state)
{
    struct fixture *f = *state;
    const ZSTD_CDict *cdict;
    uint64_t before;

    make_dict(f, f->content, 50000);
    before = f->cache->mem.used;
    assert_int_equal(segzstd__dict_digest(f->dict, 6, &cdict), 0);
    assert_int_equal(f->cache->mem.used,
                     before + ZSTD_sizeof_CDict(cdict) + sizeof(struct digest));
}

static void expect_no_digest(struct fixture *f)
{
    const ZSTD_CDict *cdict;
    uint64_t before = f->cache->mem.used;

    assert_int_equal(segzstd__dict_digest(f->dict, 6, &cdict),
                     SEGZSTD_ERR_NOMEM);
    assert_int_equal(f->cache->mem.used, before);
    assert_null(f->dict->digests);
}

static void test_digest__no_memory__refused_and_made_later(void **state)
{
    struct fixture *f = *state;
    const ZSTD_CDict *cdict;

    make_dict(f, f->content, 50000);
    alloc_fail(&f->alloc, 0, ALLOC_FOR_EVER);
    expect_no_digest(f);
    alloc_heal(&f->alloc);
    refuse_cdict = true;
    expect_no_digest(f);
    refuse_cdict = false;
    f->cache->mem.budget = f->cache->mem.used + 50000;
    expect_no_digest(f);
    f->cache->mem.budget = 0;
    assert_int_equal(segzstd__dict_digest(f->dict, 6, &cdict), 0);
}

/* ---- threads ---- */

static struct segzstd_dict *raced;
static const ZSTD_CDict *faster;

static void be_faster(void)
{
    assert_int_equal(segzstd__dict_digest(raced, 6, &faster), 0);
}

/* Both made one; the first that is published counts, the other is freed. */
static void test_digest__another_was_faster__its_digest_is_used(void **state)
{
    struct fixture *f = *state;
    const ZSTD_CDict *cdict;
    uint64_t before;

    make_dict(f, f->content, 50000);
    before = f->cache->mem.used;
    raced = f->dict;
    before_cdict = be_faster;
    assert_int_equal(segzstd__dict_digest(f->dict, 6, &cdict), 0);
    assert_ptr_equal(cdict, faster);
    assert_null(f->dict->digests->next);
    assert_int_equal(f->cache->mem.used,
                     before + ZSTD_sizeof_CDict(cdict) + sizeof(struct digest));
}

enum { THREADS = 8, LEVELS = 4 };

struct user {
    struct segzstd_dict *dict;
    pthread_t thread;
    const ZSTD_CDict *cdicts[LEVELS];
    int error;
};

static void *use_dict(void *arg)
{
    struct user *u = arg;

    for (int i = 0; i < LEVELS; i++)
        u->error |= segzstd__dict_digest(u->dict, i + 1, &u->cdicts[i]);
    segzstd_dict_free(u->dict);
    return NULL;
}

static void test_digest__many_threads__share_one_for_each_level(void **state)
{
    struct fixture *f = *state;
    struct user users[THREADS];

    make_dict(f, f->content, 50000);
    for (int i = 0; i < THREADS; i++) {
        users[i] = (struct user){.dict = f->dict};
        segzstd__dict_ref(f->dict);
        assert_int_equal(
            pthread_create(&users[i].thread, NULL, use_dict, &users[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(users[i].thread, NULL);
        assert_int_equal(users[i].error, 0);
        for (int k = 0; k < LEVELS; k++)
            assert_ptr_equal(users[i].cdicts[k], users[0].cdicts[k]);
    }
}

#define WITH_CACHE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CACHE(test_new__raw_content__has_no_id),
        WITH_CACHE(test_new__trained__has_the_id_of_its_header),
        WITH_CACHE(test_new__bad_arguments__refused),
        WITH_CACHE(test_new__broken_trained__refused),
        WITH_CACHE(test_new__no_memory__refused),
        WITH_CACHE(test_free__last_reference__frees_it),
        WITH_CACHE(test_digest__each_level__is_made_once),
        WITH_CACHE(test_digest__its_size__is_counted),
        WITH_CACHE(test_digest__no_memory__refused_and_made_later),
        WITH_CACHE(test_digest__another_was_faster__its_digest_is_used),
        WITH_CACHE(test_digest__many_threads__share_one_for_each_level),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
