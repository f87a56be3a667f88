#include <stdio.h>
#include <zstd.h>

#include "support/expect.h"

static void test_version__text__is_that_of_the_header(void **state)
{
    char text[64];

    (void)state;
    snprintf(text, sizeof(text), "%d.%d.%d", SEGZSTD_VERSION_MAJOR,
             SEGZSTD_VERSION_MINOR, SEGZSTD_VERSION_PATCH);
    assert_string_equal(segzstd_version(), text);
}

/* Of the library that is loaded, not of the header that was compiled with. */
static void test_zstd_version__text_and_levels__are_libzstds(void **state)
{
    (void)state;
    assert_string_equal(segzstd_zstd_version(), ZSTD_versionString());
    assert_int_equal(segzstd_min_level(), ZSTD_minCLevel());
    assert_int_equal(segzstd_max_level(), ZSTD_maxCLevel());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version__text__is_that_of_the_header),
        cmocka_unit_test(test_zstd_version__text_and_levels__are_libzstds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
