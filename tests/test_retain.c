#include "retain.h"

#include "support/expect.h"

static void test_limit__by_policy__all_some_or_nothing(void **state)
{
    struct segzstd__retain retain = {SEGZSTD_RETAIN_ALL, 12345, 10};

    (void)state;
    assert_int_equal(segzstd__retain_limit(&retain), UINT64_MAX);
    retain.policy = SEGZSTD_RETAIN_BOUNDED;
    assert_int_equal(segzstd__retain_limit(&retain), 12345);
    retain.policy = SEGZSTD_RETAIN_NONE;
    assert_int_equal(segzstd__retain_limit(&retain), 0);
}

static void test_is_expired__at_the_very_age__stays(void **state)
{
    const struct segzstd__retain retain = {SEGZSTD_RETAIN_ALL, 0, 10};

    (void)state;
    assert_false(segzstd__retain_is_expired(&retain, 100, 100));
    assert_false(segzstd__retain_is_expired(&retain, 100, 110));
    assert_true(segzstd__retain_is_expired(&retain, 100, 111));
    assert_true(segzstd__retain_is_expired(&retain, 0, UINT64_MAX));
}

/* A host whose clock went back must not lose everything at once, as it would
 * if the difference wrapped around. */
static void test_is_expired__clock_went_back__stays(void **state)
{
    const struct segzstd__retain retain = {SEGZSTD_RETAIN_ALL, 0, 10};

    (void)state;
    assert_false(segzstd__retain_is_expired(&retain, 100, 99));
    assert_false(segzstd__retain_is_expired(&retain, UINT64_MAX, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit__by_policy__all_some_or_nothing),
        cmocka_unit_test(test_is_expired__at_the_very_age__stays),
        cmocka_unit_test(test_is_expired__clock_went_back__stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
