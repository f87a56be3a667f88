/*
 * Accept-Encoding as the NGINX modules read it (shim-nginx). Every field is
 * given to the parser in a buffer of just its size, so that a sanitizer sees
 * a byte too many being read.
 */
#include <stdlib.h>
#include <string.h>

#include "support/expect.h"

#include "ngx_http_zstd_accept.h"

enum { OK = NGX_OK, AGAIN = NGX_AGAIN, NO = NGX_DECLINED };

struct row {
    const char *field;
    unsigned zstd;
    unsigned others;
    unsigned identity;
    int preferred; /* what is chosen where zstd wins equal weights */
    int modest;    /* and where it does not */
};

static const struct row rows[] = {
    /* names: whole tokens, in any case */
    {"zstd", 1000, 0, 0, OK, OK},
    {"ZSTD", 1000, 0, 0, OK, OK},
    {"zStD", 1000, 0, 0, OK, OK},
    {"zstdx", 0, 0, 0, NO, NO},
    {"x-zstd", 0, 0, 0, NO, NO},
    {"notzstd", 0, 0, 0, NO, NO},
    {"zst", 0, 0, 0, NO, NO},
    {"zstd-x, zstd.y", 0, 0, 0, NO, NO},
    {"notzstd, zstd", 1000, 0, 0, OK, OK},
    {"zstd2;q=1, zstd;q=0.5", 500, 0, 0, OK, OK},
    {"dcz, dcb", 0, 0, 0, NO, NO},
    {"br", 0, 1000, 0, NO, NO},
    {"brotli", 0, 0, 0, NO, NO},
    {"gzip", 0, 1000, 0, NO, NO},
    {"x-gzip", 0, 1000, 0, NO, NO},
    {"deflate, compress", 0, 0, 0, NO, NO},

    /* lists: spaces, tabs, empty elements */
    {"", 0, 0, 0, NO, NO},
    {" ", 0, 0, 0, NO, NO},
    {",", 0, 0, 0, NO, NO},
    {",, zstd ,,", 1000, 0, 0, OK, OK},
    {"\tzstd\t,\tgzip\t", 1000, 1000, 0, OK, AGAIN},
    {"gzip,deflate,br,zstd", 1000, 1000, 0, OK, AGAIN},
    {"gzip, deflate, br, zstd", 1000, 1000, 0, OK, AGAIN},
    {"zstd gzip", 0, 0, 0, NO, NO},
    {"zstd\ngzip", 0, 0, 0, NO, NO},

    /* weights */
    {"zstd;q=1", 1000, 0, 0, OK, OK},
    {"zstd;q=0", 0, 0, 0, NO, NO},
    {"zstd ;q=0", 0, 0, 0, NO, NO},
    {"zstd; q=0", 0, 0, 0, NO, NO},
    {"zstd\t;\tq=0\t", 0, 0, 0, NO, NO},
    {"zstd;Q=0.5", 500, 0, 0, OK, OK},
    {"zstd;q=0.", 0, 0, 0, NO, NO},
    {"zstd;q=1.", 1000, 0, 0, OK, OK},
    {"zstd;q=0.0, gzip", 0, 1000, 0, NO, NO},
    {"zstd;q=0.000", 0, 0, 0, NO, NO},
    {"zstd;q=0.001", 1, 0, 0, OK, OK},
    {"zstd;q=0.5", 500, 0, 0, OK, OK},
    {"zstd;q=0.05", 50, 0, 0, OK, OK},
    {"zstd;q=0.123", 123, 0, 0, OK, OK},
    {"zstd;q=0.999", 999, 0, 0, OK, OK},
    {"zstd;q=1.000", 1000, 0, 0, OK, OK},

    /* malformed weights: the element does not count */
    {"zstd;q=", 0, 0, 0, NO, NO},
    {"zstd;q", 0, 0, 0, NO, NO},
    {"zstd;", 0, 0, 0, NO, NO},
    {"zstd;q=1x", 0, 0, 0, NO, NO},
    {"zstd;q=x", 0, 0, 0, NO, NO},
    {"zstd;q=2", 0, 0, 0, NO, NO},
    {"zstd;q=10", 0, 0, 0, NO, NO},
    {"zstd;q=-1", 0, 0, 0, NO, NO},
    {"zstd;q=+1", 0, 0, 0, NO, NO},
    {"zstd;q=.5", 0, 0, 0, NO, NO},
    {"zstd;q=00.5", 0, 0, 0, NO, NO},
    {"zstd;q=0,5", 0, 0, 0, NO, NO},
    {"zstd;q=0.0001", 0, 0, 0, NO, NO},
    {"zstd;q=1.0000", 0, 0, 0, NO, NO},
    {"zstd;q=1.001", 0, 0, 0, NO, NO},
    {"zstd;q=1.5", 0, 0, 0, NO, NO},
    {"zstd;q =1", 0, 0, 0, NO, NO},
    {"zstd;q= 1", 0, 0, 0, NO, NO},
    {"zstd;q=1;q=1", 0, 0, 0, NO, NO},
    {"zstd;q=1;", 0, 0, 0, NO, NO},
    {"zstd;;q=1", 0, 0, 0, NO, NO},
    {"zstd;level=3", 0, 0, 0, NO, NO},
    {"zstd;q=\"1\"", 0, 0, 0, NO, NO},
    {"zstd;q=0x, zstd;q=0.3", 300, 0, 0, OK, OK},
    {"zstd;q=1x, *", 1000, 1000, 0, OK, AGAIN},

    /* quoted strings hide what is in them */
    {"\"zstd\"", 0, 0, 0, NO, NO},
    {"gzip;x=\"a, zstd, b\"", 0, 0, 0, NO, NO},
    {"x;y=\",zstd,\", zstd;q=0.2", 200, 0, 0, OK, OK},
    {"x;y=\"\\\", zstd\", br", 0, 1000, 0, NO, NO},
    {"x;y=\"\\\\\", zstd", 1000, 0, 0, OK, OK},
    {"x;y=\"never closed, zstd", 0, 0, 0, NO, NO},
    {"zstd, \"", 1000, 0, 0, OK, OK},
    {"zstd, \"\\", 1000, 0, 0, OK, OK},

    /* all others */
    {"*", 1000, 1000, 0, OK, AGAIN},
    {"*;q=0.5", 500, 500, 0, OK, AGAIN},
    {"*;q=0", 0, 0, 0, NO, NO},
    {"*, zstd;q=0", 0, 1000, 0, NO, NO},
    {"zstd;q=0, *", 0, 1000, 0, NO, NO},
    {"zstd, *;q=0", 1000, 0, 0, OK, OK},
    {"gzip, *;q=0", 0, 1000, 0, NO, NO},
    {"gzip;q=0, br;q=0, *", 1000, 0, 0, OK, OK},
    {"br;q=1.0, gzip;q=0.8, *;q=0.1", 100, 1000, 0, AGAIN, AGAIN},
    {"zstd;q=0.9, *;q=0.8", 900, 800, 0, OK, OK},

    /* against others */
    {"gzip;q=0.5, zstd;q=1", 1000, 500, 0, OK, OK},
    {"gzip;q=1, zstd;q=0.5", 500, 1000, 0, AGAIN, AGAIN},
    {"x-gzip, zstd;q=0.999", 999, 1000, 0, AGAIN, AGAIN},
    {"br;q=0.2, gzip;q=0.6, zstd;q=0.5", 500, 600, 0, AGAIN, AGAIN},
    {"deflate;q=1, zstd;q=0.1", 100, 0, 0, OK, OK},

    /* identity */
    {"identity", 0, 0, 1000, NO, NO},
    {"identity, zstd", 1000, 0, 1000, OK, OK},
    {"identity;q=1, zstd;q=0.5", 500, 0, 1000, NO, NO},
    {"identity;q=0.5, zstd;q=1", 1000, 0, 500, OK, OK},
    {"identity;q=0, zstd", 1000, 0, 0, OK, OK},
    {"identity;q=0.5, *;q=0.1", 100, 100, 500, NO, NO},
    {"identity;q=0.7, gzip, zstd;q=0.5", 500, 1000, 700, NO, NO},

    /* named twice: the lower weight */
    {"zstd;q=0, zstd", 0, 0, 0, NO, NO},
    {"zstd, zstd;q=0", 0, 0, 0, NO, NO},
    {"zstd;q=0.3, zstd;q=0.7", 300, 0, 0, OK, OK},
    {"gzip;q=0.3, x-gzip;q=0.7", 0, 300, 0, NO, NO},
};

static void parse(ngx_http_zstd_weights_t *w, const char *field)
{
    size_t len = strlen(field);
    u_char *copy = malloc(len > 0 ? len : 1);

    assert_non_null(copy);
    memcpy(copy, field, len);
    ngx_http_zstd_parse_accept(w, copy, copy + len);
    free(copy);
}

static void expect_row(const struct row *row, ngx_http_zstd_weights_t *w)
{
    if (w->zstd != row->zstd || w->others != row->others ||
        w->identity != row->identity)
        fail_msg("\"%s\": zstd %u, others %u, identity %u", row->field,
                 (unsigned)w->zstd, (unsigned)w->others, (unsigned)w->identity);
    if (ngx_http_zstd_choose(w, 1) != row->preferred)
        fail_msg("\"%s\": wrong choice where zstd is preferred", row->field);
    if (ngx_http_zstd_choose(w, 0) != row->modest)
        fail_msg("\"%s\": wrong choice where it is not", row->field);
}

static void test_accept__each_row__has_its_weights(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ngx_http_zstd_weights_t w = {0};

        parse(&w, rows[i].field);
        expect_row(&rows[i], &w);
    }
}

/* A field of several lines is a list as long as all of them: "*" in one does
 * not stand for what another names. */
static void test_accept__several_lines__are_one_list(void **state)
{
    static const struct {
        const char *lines[3];
        struct row row;
    } cases[] = {
        {{"gzip", "zstd"}, {"1", 1000, 1000, 0, OK, AGAIN}},
        {{"zstd;q=0", "*"}, {"2", 0, 1000, 0, NO, NO}},
        {{"*", "zstd;q=0"}, {"3", 0, 1000, 0, NO, NO}},
        {{"*;q=0.5", "br;q=0.1", "gzip;q=0"}, {"4", 500, 100, 0, OK, OK}},
        {{"zstd", "zstd;q=0.4"}, {"5", 400, 0, 0, OK, OK}},
        {{"identity", "", "zstd;q=0.9"}, {"6", 900, 0, 1000, NO, NO}},
        {{"x;y=\"", "zstd"}, {"7", 1000, 0, 0, OK, OK}},
    };
    size_t i, line;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ngx_http_zstd_weights_t w = {0};

        for (line = 0; line < 3 && cases[i].lines[line]; line++)
            parse(&w, cases[i].lines[line]);
        expect_row(&cases[i].row, &w);
    }
}

static ngx_uint_t has(const char *list, const char *name)
{
    size_t len = strlen(list);
    u_char *copy = malloc(len > 0 ? len : 1);
    char token[32];
    ngx_uint_t found;

    assert_non_null(copy);
    memcpy(copy, list, len);
    strcpy(token, name);
    found = ngx_http_zstd_list_has(copy, copy + len, token);
    free(copy);
    return found;
}

static void test_list__token__is_found_as_a_whole_only(void **state)
{
    (void)state;
    assert_true(has("Accept-Encoding", "accept-encoding"));
    assert_true(has("Cookie,accept-encoding", "accept-encoding"));
    assert_true(has("Cookie ,\tACCEPT-ENCODING\t", "accept-encoding"));
    assert_true(has("*", "*"));
    assert_true(has("max-age=5, No-Transform", "no-transform"));
    assert_true(has("private=\"Set-Cookie\"", "private"));
    assert_false(has("", "accept-encoding"));
    assert_false(has("X-Accept-Encoding", "accept-encoding"));
    assert_false(has("Accept-Encoding-X", "accept-encoding"));
    assert_false(has("Accept-Encodin", "accept-encoding"));
    assert_false(has("Cookie Accept-Encoding", "accept-encoding"));
    assert_false(has("x=\"a, no-transform, b\"", "no-transform"));
    assert_false(has("no-transformer", "no-transform"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accept__each_row__has_its_weights),
        cmocka_unit_test(test_accept__several_lines__are_one_list),
        cmocka_unit_test(test_list__token__is_found_as_a_whole_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
