/*
 * number.c - numbers as they are written on a command line.
 */
#include "number.h"

bool number_read(const char **text, uint64_t most, uint64_t *value)
{
    const char *p = *text;
    uint64_t sum = 0;

    if (*p < '0' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');

        if (sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    if (sum > most)
        return false;
    *text = p;
    *value = sum;
    return true;
}

bool number_parse(const char *text, uint64_t most, uint64_t *value)
{
    return number_read(&text, most, value) && *text == '\0';
}

/* The power of two that a suffix stands for; negative if it is none. */
static int suffix_log(const char *suffix)
{
    static const char units[] = "KMG";
    const char *unit;

    if (suffix[0] == '\0')
        return 0;
    unit = strchr(units, suffix[0]);
    if (unit == NULL)
        return -1;
    suffix++;
    if (strcmp(suffix, "") != 0 && strcmp(suffix, "i") != 0 &&
        strcmp(suffix, "B") != 0 && strcmp(suffix, "iB") != 0)
        return -1;
    return 10 * (int)(unit - units + 1);
}

bool number_parse_size(const char *text, uint64_t most, uint64_t *value)
{
    uint64_t number;
    int log;

    if (!number_read(&text, most, &number))
        return false;
    log = suffix_log(text);
    if (log < 0 || number > most >> log)
        return false;
    *value = number << log;
    return true;
}
