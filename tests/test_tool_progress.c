/* The command's files are in no library, so this program takes them in. Theirs
 * must be the first include: they ask for POSIX. */
#include "../tools/cleanup.c"
#include "../tools/progress.c"

#include "support/expect.h"

static void expect_size(uint64_t bytes, const char *expected)
{
    char text[TEXT_SIZE_MAX];

    assert_string_equal(text_size(text, bytes), expected);
}

static void test_size__any__has_three_digits(void **state)
{
    (void)state;
    expect_size(0, "0 B");
    expect_size(1023, "1023 B");
    expect_size(1024, "1.00 KiB");
    expect_size(100000, "97.7 KiB");
    expect_size(200000, "195 KiB");
    expect_size(UINT64_C(5) << 30, "5.00 GiB");
    expect_size(UINT64_MAX, "16.0 EiB");
}

/* 9.999 with two digits would be 10.00. */
static void test_size__rounded_up_to_a_power_of_ten__no_digit_more(void **state)
{
    (void)state;
    expect_size(10239, "10.0 KiB");
    expect_size(102399, "100 KiB");
}

static void expect_seconds(uint64_t seconds, const char *expected)
{
    char text[TEXT_SIZE_MAX];

    assert_string_equal(text_seconds(text, seconds), expected);
}

static void test_seconds__any__are_minutes_and_hours(void **state)
{
    (void)state;
    expect_seconds(0, "0:00");
    expect_seconds(8, "0:08");
    expect_seconds(3599, "59:59");
    expect_seconds(3600, "1:00:00");
    expect_seconds(90061, "25:01:01");
}

static void expect_line(struct progress_state state, const char *expected)
{
    char text[128];

    progress_text(text, sizeof(text), &state);
    assert_string_equal(text, expected);
}

static void test_progress__known_size__share_speed_and_time_left(void **state)
{
    (void)state;
    expect_line((struct progress_state){.total = 100 << 20,
                                        .in = 25 << 20,
                                        .out = 10 << 20,
                                        .elapsed_ns = 5 * NS_PER_SECOND},
                "25.0 MiB of 100 MiB, 25%, ratio 2.50, 5.00 MiB/s, 0:15 left");
}

static void test_progress__unknown_size__nothing_that_needs_it(void **state)
{
    (void)state;
    expect_line((struct progress_state){.total = SEGZSTD_SIZE_UNKNOWN,
                                        .in = 25 << 20,
                                        .out = 10 << 20,
                                        .elapsed_ns = 5 * NS_PER_SECOND},
                "25.0 MiB, ratio 2.50, 5.00 MiB/s");
}

/* Nothing is divided by zero before the first job is done. */
static void test_progress__at_the_very_start__no_ratio_no_speed(void **state)
{
    (void)state;
    expect_line((struct progress_state){.total = 1000}, "0 B of 1000 B,  0%");
}

static void test_progress__longest_numbers__fit_80_columns(void **state)
{
    struct progress_state longest = {.total = UINT64_MAX - 1,
                                     .in = UINT64_C(1023) << 50,
                                     .out = UINT64_C(1023) << 36,
                                     .elapsed_ns = NS_PER_SECOND};
    char text[128];

    (void)state;
    progress_text(text, sizeof(text), &longest);
    assert_in_range(strlen(text), 1, 79);
}

static void test_due__not_enabled__never(void **state)
{
    struct progress progress;

    (void)state;
    progress_begin(&progress, false, "a");
    assert_int_equal(progress_due_ms(&progress, UINT64_MAX), -1);
}

static void test_due__enabled__when_the_interval_is_over(void **state)
{
    struct progress progress;

    (void)state;
    progress_begin(&progress, true, "a");
    assert_int_equal(progress_due_ms(&progress, progress.next_ns), 0);
    assert_in_range(progress_due_ms(&progress, progress.next_ns - 1), 1, 1);
    assert_in_range(progress_due_ms(&progress, progress.start_ns), 100, 101);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size__any__has_three_digits),
        cmocka_unit_test(
            test_size__rounded_up_to_a_power_of_ten__no_digit_more),
        cmocka_unit_test(test_seconds__any__are_minutes_and_hours),
        cmocka_unit_test(test_progress__known_size__share_speed_and_time_left),
        cmocka_unit_test(test_progress__unknown_size__nothing_that_needs_it),
        cmocka_unit_test(test_progress__at_the_very_start__no_ratio_no_speed),
        cmocka_unit_test(test_progress__longest_numbers__fit_80_columns),
        cmocka_unit_test(test_due__not_enabled__never),
        cmocka_unit_test(test_due__enabled__when_the_interval_is_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
