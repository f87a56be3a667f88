/* The command's files are in no library, so this program takes them in. Theirs
 * must be the first include: they ask for POSIX. */
#include "../tools/args.c"
#include "../tools/number.c"
#include "../tools/option.c"

#include "support/expect.h"

#define ARGUMENTS_MAX 16

/* A command line, as main() gets it. */
struct line {
    char *argv[ARGUMENTS_MAX + 1];
    int argc;
    struct args args;
};

/* Ends with NULL. The strings are borrowed, and not written to. */
static struct line make_line(const char *const *arguments)
{
    struct line line = {.argv = {(char *)(uintptr_t) "segzstd"}, .argc = 1};

    for (; *arguments != NULL; arguments++)
        line.argv[line.argc++] = (char *)(uintptr_t)*arguments;
    return line;
}

#define LINE(...) make_line((const char *const[]){__VA_ARGS__, NULL})

static bool parse(struct line *line)
{
    return args_parse(&line->args, line->argc, line->argv);
}

static void expect_fault(struct line line, const char *fault)
{
    assert_false(parse(&line));
    assert_string_equal(line.args.fault, fault);
}

static void test_number__digits__up_to_the_most(void **state)
{
    uint64_t n = 1;

    (void)state;
    assert_true(number_parse("0", 0, &n) && n == 0);
    assert_true(number_parse("0012", 12, &n) && n == 12);
    assert_true(number_parse("18446744073709551615", UINT64_MAX, &n));
    assert_true(n == UINT64_MAX);
    assert_false(number_parse("13", 12, &n));
    assert_true(n == UINT64_MAX);
}

/* strtoul() takes a sign and blanks, and says nothing when it overflows unless
 * asked in the right way. */
static void test_number__anything_else__refused(void **state)
{
    static const char *const wrong[] = {"",
                                        "-1",
                                        "+1",
                                        " 1",
                                        "1 ",
                                        "0x10",
                                        "1.5",
                                        "12x",
                                        "1K",
                                        "18446744073709551616",
                                        "99999999999999999999999"};
    uint64_t n;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(number_parse(wrong[i], UINT64_MAX, &n));
}

static void test_number_read__text_behind__is_where_it_stops(void **state)
{
    const char *text = "19fk", *none = "f";
    uint64_t n;

    (void)state;
    assert_true(number_read(&text, 22, &n) && n == 19);
    assert_string_equal(text, "fk");
    assert_false(number_read(&none, 22, &n));
    assert_string_equal(none, "f");
}

static void test_size__suffixes__are_powers_of_two(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } sizes[] = {
        {"7", 7},
        {"7K", 7 << 10},
        {"7Ki", 7 << 10},
        {"7KB", 7 << 10},
        {"7KiB", 7 << 10},
        {"7M", 7 << 20},
        {"7MiB", 7 << 20},
        {"7G", UINT64_C(7) << 30},
        {"17179869183G", UINT64_C(17179869183) << 30},
    };
    uint64_t n;

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        assert_true(number_parse_size(sizes[i].text, UINT64_MAX, &n));
        assert_true(n == sizes[i].bytes);
    }
}

static void test_size__wrong_suffix_or_too_much__refused(void **state)
{
    static const char *const wrong[] = {
        "",    "K",  "7k",  "7T",  "7KK",   "7Bi",         "7iB",
        "7 K", "7B", "12x", "7K ", "7KiBs", "17179869184G"};
    uint64_t n;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(number_parse_size(wrong[i], UINT64_MAX, &n));
    assert_true(number_parse_size("1K", 1024, &n));
    assert_false(number_parse_size("1K", 1023, &n));
}

static void test_args__none__stdin_to_stdout_at_the_default(void **state)
{
    struct line line = LINE("--");

    (void)state;
    assert_true(parse(&line));
    assert_int_equal(line.args.action, ARGS_COMPRESS);
    assert_int_equal(line.args.file_count, 1);
    assert_null(line.args.files[0]);
    assert_true(line.args.to_stdout);
    assert_int_equal(line.args.stream.level, 0);
    assert_int_equal(line.args.stream.checksum, 1);
    assert_int_equal(line.args.threads, 0);
    assert_false(line.args.remove || line.args.force || line.args.stats);
}

/* The files are written over the arguments. */
static void test_args__files_between_options__keep_their_order(void **state)
{
    struct line line =
        LINE("a", "-9", "b", "-T", "4", "-", "--overlap", "1M", "--", "-c");

    (void)state;
    assert_true(parse(&line));
    assert_int_equal(line.args.file_count, 4);
    assert_string_equal(line.args.files[0], "a");
    assert_string_equal(line.args.files[1], "b");
    assert_null(line.args.files[2]);
    assert_string_equal(line.args.files[3], "-c");
    assert_false(line.args.to_stdout);
    assert_int_equal(line.args.threads, 4);
    assert_int_equal(line.args.stream.overlap_bytes, 1 << 20);
}

static void test_args__letters_together__each_counts(void **state)
{
    struct line line = LINE("-19fkT3qqvo", "out", "a");

    (void)state;
    assert_true(parse(&line));
    assert_int_equal(line.args.stream.level, 19);
    assert_true(line.args.force);
    assert_int_equal(line.args.threads, 3);
    assert_int_equal(line.args.quieter, 2);
    assert_int_equal(line.args.louder, 1);
    assert_string_equal(line.args.output, "out");
}

static void test_args__output_and_stdout__last_one_counts(void **state)
{
    struct line first = LINE("-c", "-o", "out", "a");
    struct line last = LINE("-o", "out", "-c", "a");

    (void)state;
    assert_true(parse(&first) && parse(&last));
    assert_string_equal(first.args.output, "out");
    assert_false(first.args.to_stdout);
    assert_null(last.args.output);
    assert_true(last.args.to_stdout);
}

/* --ultra may stand behind the level. */
static void test_args__levels__as_zstd_takes_them(void **state)
{
    static const struct {
        const char *first, *second;
        int level;
        bool reduced;
    } cases[] = {
        {"-0", "-q", 0, false},
        {"-19", "-q", 19, false},
        {"-20", "-q", 19, true},
        {"-20", "--ultra", 20, false},
        {"--ultra", "-22", 22, false},
        {"--fast", "-q", -1, false},
        {"--fast=7", "-q", -7, false},
        {"--fast=7", "-5", 5, false},
        {"-5", "--fast=100", -100, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct line line = LINE(cases[i].first, cases[i].second);

        assert_true(parse(&line));
        assert_int_equal(line.args.stream.level, cases[i].level);
        assert_int_equal(line.args.level_reduced, cases[i].reduced);
    }
}

static void test_args__overlap_0__is_none_rather_than_automatic(void **state)
{
    struct line none = LINE("--overlap=0"), some = LINE("--overlap=auto");

    (void)state;
    assert_true(parse(&none) && parse(&some));
    assert_true(none.args.stream.overlap_bytes == SEGZSTD_OVERLAP_NONE);
    assert_true(some.args.stream.overlap_bytes == 0);
}

static void test_args__wrong__fault_names_the_option(void **state)
{
    (void)state;
    expect_fault(LINE("-f99z", "a"), "-99: the highest level is 22");
    expect_fault(LINE("-T", "abc"), "-T: 'abc' is not a number from 0 to 1024");
    expect_fault(LINE("a", "-T"), "-T: the value is missing");
    expect_fault(LINE("a", "--overlap"), "--overlap: the value is missing");
    expect_fault(LINE("-o", "-"), "-o: the file name is missing");
    expect_fault(LINE("--keep=yes"), "--keep: takes no value");
    expect_fault(LINE("-fkxq"), "-x: unknown option");
    expect_fault(LINE("--overla=1"), "--overla=1: unknown option");
    expect_fault(LINE("-cd"),
                 "-d: segzstd only compresses; zstd does the rest");
}

/* Whatever is wrong behind it: who asks for help gets it. */
static void test_args__help__needs_no_sense_in_the_rest(void **state)
{
    struct line line = LINE("--help", "--rubbish");

    (void)state;
    assert_true(parse(&line));
    assert_int_equal(line.args.action, ARGS_HELP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_number__digits__up_to_the_most),
        cmocka_unit_test(test_number__anything_else__refused),
        cmocka_unit_test(test_number_read__text_behind__is_where_it_stops),
        cmocka_unit_test(test_size__suffixes__are_powers_of_two),
        cmocka_unit_test(test_size__wrong_suffix_or_too_much__refused),
        cmocka_unit_test(test_args__none__stdin_to_stdout_at_the_default),
        cmocka_unit_test(test_args__files_between_options__keep_their_order),
        cmocka_unit_test(test_args__letters_together__each_counts),
        cmocka_unit_test(test_args__output_and_stdout__last_one_counts),
        cmocka_unit_test(test_args__levels__as_zstd_takes_them),
        cmocka_unit_test(test_args__overlap_0__is_none_rather_than_automatic),
        cmocka_unit_test(test_args__wrong__fault_names_the_option),
        cmocka_unit_test(test_args__help__needs_no_sense_in_the_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
