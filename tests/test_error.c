#include <string.h>

#include "common.h"
#include "support/expect.h"

static const int errors[] = {
    SEGZSTD_OK,           SEGZSTD_ERR_INVALID,  SEGZSTD_ERR_STATE,
    SEGZSTD_ERR_AGAIN,    SEGZSTD_ERR_NOMEM,    SEGZSTD_ERR_UNSUPPORTED,
    SEGZSTD_ERR_THREAD,   SEGZSTD_ERR_DST_SIZE, SEGZSTD_ERR_ZSTD,
    SEGZSTD_ERR_SIZE,     SEGZSTD_ERR_READ,     SEGZSTD_ERR_CANCELED,
    SEGZSTD_ERR_INTERNAL,
};

enum { ERRORS = sizeof(errors) / sizeof(errors[0]) };

static void test_strerror__each_value__has_a_sentence_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < ERRORS; i++) {
        const char *text = segzstd_strerror(errors[i]);

        assert_true(strlen(text) > 3);
        assert_int_not_equal(text[strlen(text) - 1], '.');
        assert_string_not_equal(text, segzstd_strerror(-99));
        for (int k = 0; k < i; k++)
            assert_string_not_equal(text, segzstd_strerror(errors[k]));
    }
}

static void test_strerror__any_other_value__is_not_null(void **state)
{
    static const int others[] = {1, -8, -99, -100, -106, INT32_MAX, INT32_MIN};

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_string_equal(segzstd_strerror(others[i]), "unknown error");
}

static void test_is_fatal__each_value__from_zstd_on(void **state)
{
    (void)state;
    for (int i = 0; i < ERRORS; i++)
        assert_int_equal(segzstd_is_fatal(errors[i]) != 0,
                         errors[i] <= SEGZSTD_ERR_ZSTD);
    assert_int_equal(segzstd_is_fatal(SEGZSTD_ERR_FATAL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strerror__each_value__has_a_sentence_of_its_own),
        cmocka_unit_test(test_strerror__any_other_value__is_not_null),
        cmocka_unit_test(test_is_fatal__each_value__from_zstd_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
