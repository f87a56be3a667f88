#include "buf.h"

#include <stdlib.h>

#include "support/data.h"
#include "support/expect.h"

enum { HEAD = sizeof(struct segzstd__chunk) };

static struct segzstd__chunk *new_chunk(size_t cap)
{
    void *block = malloc(HEAD + cap);

    assert_non_null(block);
    return segzstd__chunk_init(block, HEAD + cap);
}

static void add_chunk(struct segzstd__buf *buf, size_t cap)
{
    segzstd__buf_add_chunk(buf, new_chunk(cap));
}

/* Adds a chunk that is filled with the text. */
static void add_text(struct segzstd__buf *buf, const char *text)
{
    size_t len = strlen(text);

    add_chunk(buf, len);
    memcpy(segzstd__buf_tail(buf), text, len);
    segzstd__buf_produced(buf, len);
}

static void free_all(struct segzstd__buf *buf)
{
    struct segzstd__chunk *chunk;

    while ((chunk = segzstd__buf_pop(buf)) != NULL)
        free(chunk);
    assert_int_equal(buf->len, 0);
    assert_null(buf->head);
    assert_null(buf->tail);
}

/* All that is to be read, as one string. */
static void expect_text(const struct segzstd__buf *buf, const char *text)
{
    segzstd_vec vec[16];
    size_t n = segzstd__buf_peek(buf, vec, 16);

    assert_int_equal(buf->len, strlen(text));
    for (size_t i = 0; i < n; i++) {
        assert_true(vec[i].len <= strlen(text));
        assert_memory_equal(vec[i].base, text, vec[i].len);
        text += vec[i].len;
    }
    assert_string_equal(text, "");
}

static void test_chunk_init__block__has_room_behind_the_head(void **state)
{
    struct segzstd__chunk *chunk = new_chunk(100);

    (void)state;
    assert_int_equal(chunk->block_bytes, HEAD + 100);
    assert_int_equal(chunk->cap, 100);
    assert_int_equal(chunk->begin, 0);
    assert_int_equal(chunk->end, 0);
    assert_null(chunk->next);
    free(chunk);
}

static void test_room__no_chunk__is_none(void **state)
{
    struct segzstd__buf buf = {NULL, NULL, 0};
    segzstd_vec vec[1];
    size_t bytes = 0;

    (void)state;
    assert_int_equal(segzstd__buf_room(&buf), 0);
    assert_int_equal(segzstd__buf_peek(&buf, vec, 1), 0);
    assert_null(segzstd__buf_pop(&buf));
    assert_null(segzstd__buf_consume(&buf, &bytes));
}

static void test_produced__bytes__shrink_the_room_of_the_last_chunk(
    void **state)
{
    struct segzstd__buf buf = {NULL, NULL, 0};

    (void)state;
    add_chunk(&buf, 10);
    assert_int_equal(segzstd__buf_room(&buf), 10);
    memcpy(segzstd__buf_tail(&buf), "abcdef", 6);
    segzstd__buf_produced(&buf, 0);
    assert_int_equal(segzstd__buf_room(&buf), 10);
    segzstd__buf_produced(&buf, 6);
    assert_int_equal(segzstd__buf_room(&buf), 4);
    add_chunk(&buf, 3);
    assert_int_equal(segzstd__buf_room(&buf), 3);
    memcpy(segzstd__buf_tail(&buf), "ghi", 3);
    segzstd__buf_produced(&buf, 3);
    assert_int_equal(segzstd__buf_room(&buf), 0);
    expect_text(&buf, "abcdefghi");
    free_all(&buf);
}

static void test_peek__empty_chunks__are_no_pieces(void **state)
{
    struct segzstd__buf buf = {NULL, NULL, 0};
    segzstd_vec vec[4];

    (void)state;
    add_chunk(&buf, 5);
    add_text(&buf, "one");
    add_chunk(&buf, 5);
    add_text(&buf, "two");
    add_chunk(&buf, 5);
    assert_int_equal(segzstd__buf_peek(&buf, vec, 4), 2);
    assert_memory_equal(vec[0].base, "one", 3);
    assert_memory_equal(vec[1].base, "two", 3);
    assert_int_equal(vec[1].len, 3);
    assert_int_equal(segzstd__buf_peek(&buf, vec, 1), 1);
    assert_memory_equal(vec[0].base, "one", 3);
    assert_int_equal(segzstd__buf_peek(&buf, vec, 0), 0);
    free_all(&buf);
}

static void test_consume__across_chunks__returns_those_emptied(void **state)
{
    struct segzstd__buf buf = {NULL, NULL, 0};
    struct segzstd__chunk *chunk;
    size_t bytes = 2;

    (void)state;
    add_text(&buf, "abc");
    add_text(&buf, "defg");
    assert_null(segzstd__buf_consume(&buf, &bytes));
    assert_int_equal(bytes, 0);
    expect_text(&buf, "cdefg");

    bytes = 3;
    chunk = segzstd__buf_consume(&buf, &bytes);
    assert_non_null(chunk);
    assert_null(chunk->next);
    assert_int_equal(chunk->cap, 3);
    free(chunk);
    assert_int_equal(bytes, 2);
    assert_null(segzstd__buf_consume(&buf, &bytes));
    assert_int_equal(bytes, 0);
    expect_text(&buf, "fg");

    bytes = 2;
    chunk = segzstd__buf_consume(&buf, &bytes);
    assert_non_null(chunk);
    free(chunk);
    assert_null(buf.tail);
    expect_text(&buf, "");
}

static void test_consume__nothing__leaves_an_empty_chunk(void **state)
{
    struct segzstd__buf buf = {NULL, NULL, 0};
    size_t bytes = 0;

    (void)state;
    add_chunk(&buf, 5);
    assert_null(segzstd__buf_consume(&buf, &bytes));
    assert_int_equal(segzstd__buf_room(&buf), 5);
    free_all(&buf);
}

static void test_pop__unread_bytes__go_with_their_chunk(void **state)
{
    struct segzstd__buf buf = {NULL, NULL, 0};
    struct segzstd__chunk *chunk;

    (void)state;
    add_text(&buf, "abc");
    add_text(&buf, "de");
    chunk = segzstd__buf_pop(&buf);
    assert_memory_equal(chunk->data, "abc", 3);
    free(chunk);
    expect_text(&buf, "de");
    free_all(&buf);
}

static void test_append__empty_or_not__keeps_the_order(void **state)
{
    struct segzstd__buf a = {NULL, NULL, 0}, b = {NULL, NULL, 0};

    (void)state;
    segzstd__buf_append(&a, &b);
    expect_text(&a, "");

    add_text(&b, "abc");
    add_text(&b, "def");
    segzstd__buf_append(&a, &b);
    assert_null(b.head);
    assert_null(b.tail);
    assert_int_equal(b.len, 0);
    expect_text(&a, "abcdef");

    segzstd__buf_append(&a, &b);
    expect_text(&a, "abcdef");

    add_text(&b, "ghi");
    segzstd__buf_append(&a, &b);
    expect_text(&a, "abcdefghi");
    add_text(&a, "jkl");
    expect_text(&a, "abcdefghijkl");
    free_all(&a);
}

static void test_copy__several_chunks__become_one(void **state)
{
    struct segzstd__buf from = {NULL, NULL, 0}, to = {NULL, NULL, 0};

    (void)state;
    segzstd__buf_copy(&to, &from);
    expect_text(&to, "");
    add_text(&from, "abc");
    add_chunk(&from, 10);
    add_text(&from, "def");
    add_chunk(&to, 9);
    memcpy(segzstd__buf_tail(&to), "...", 3);
    segzstd__buf_produced(&to, 3);
    segzstd__buf_copy(&to, &from);
    expect_text(&to, "...abcdef");
    assert_int_equal(segzstd__buf_room(&to), 0);
    expect_text(&from, "abcdef");
    free_all(&from);
    free_all(&to);
}

/* A header of libzstd gives way to one that is longer or shorter. */
static void test_replace_head__any_length__the_rest_stays(void **state)
{
    static const char *const heads[] = {"", "1", "123456", "123456789abcdefgh"};

    (void)state;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        struct segzstd__buf buf = {NULL, NULL, 0};
        char text[64];

        add_chunk(&buf, 100);
        segzstd__buf_reserve(&buf, 11);
        assert_int_equal(segzstd__buf_room(&buf), 89);
        assert_int_equal(buf.len, 0);
        memcpy(segzstd__buf_tail(&buf), "theirsand the rest", 18);
        segzstd__buf_produced(&buf, 18);
        add_text(&buf, ", and more");
        segzstd__buf_replace_head(&buf, 6, heads[i], strlen(heads[i]));
        snprintf(text, sizeof(text), "%sand the rest, and more", heads[i]);
        expect_text(&buf, text);
        free_all(&buf);
    }
}

/* ---- against a plain array ---- */

struct model {
    struct segzstd__buf buf;
    unsigned char bytes[1 << 16];
    size_t begin, end;
};

static void produce(struct model *m, struct rng *rng)
{
    size_t room = segzstd__buf_room(&m->buf), n;

    if (room == 0) {
        add_chunk(&m->buf, rng_spread(rng, 300));
        return;
    }
    n = rng_below(rng, room + 1);
    if (n > sizeof(m->bytes) - m->end)
        return;
    data_fill(m->bytes + m->end, n, DATA_RANDOM, rng_next(rng));
    if (n != 0)
        memcpy(segzstd__buf_tail(&m->buf), m->bytes + m->end, n);
    segzstd__buf_produced(&m->buf, n);
    m->end += n;
}

static void consume(struct model *m, struct rng *rng)
{
    size_t bytes = rng_below(rng, m->buf.len + 1);

    m->begin += bytes;
    while (bytes != 0)
        free(segzstd__buf_consume(&m->buf, &bytes));
}

static void expect_model(const struct model *m)
{
    size_t at = m->begin, n;
    segzstd_vec vec[32];

    assert_int_equal(m->buf.len, m->end - m->begin);
    n = segzstd__buf_peek(&m->buf, vec, 32);
    for (size_t i = 0; i < n; i++) {
        assert_true(vec[i].len != 0 && vec[i].len <= m->end - at);
        assert_memory_equal(vec[i].base, m->bytes + at, vec[i].len);
        at += vec[i].len;
    }
    if (n < 32)
        assert_int_equal(at, m->end);
}

static void test_buf__random_use__bytes_come_out_in_order(void **state)
{
    struct model *m = calloc(1, sizeof(*m));
    struct rng rng = rng_seed(1);

    (void)state;
    assert_non_null(m);
    for (int i = 0; i < 3000; i++) {
        if (rng_below(&rng, 5) != 0)
            produce(m, &rng);
        else
            consume(m, &rng);
        expect_model(m);
    }
    assert_true(m->begin > 10000);
    free_all(&m->buf);
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunk_init__block__has_room_behind_the_head),
        cmocka_unit_test(test_room__no_chunk__is_none),
        cmocka_unit_test(
            test_produced__bytes__shrink_the_room_of_the_last_chunk),
        cmocka_unit_test(test_peek__empty_chunks__are_no_pieces),
        cmocka_unit_test(test_consume__across_chunks__returns_those_emptied),
        cmocka_unit_test(test_consume__nothing__leaves_an_empty_chunk),
        cmocka_unit_test(test_pop__unread_bytes__go_with_their_chunk),
        cmocka_unit_test(test_append__empty_or_not__keeps_the_order),
        cmocka_unit_test(test_copy__several_chunks__become_one),
        cmocka_unit_test(test_replace_head__any_length__the_rest_stays),
        cmocka_unit_test(test_buf__random_use__bytes_come_out_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
