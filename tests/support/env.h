/*
 * env.h - forms of a test run beside the normal one.
 *
 * SEGZSTD_TEST_SHORT=1 makes parameters smaller, for runs under valgrind.
 * SEGZSTD_TEST_LONG=1 adds cases that take minutes.
 * SEGZSTD_TEST_PLAIN_INPUT=1 makes caches that do without the stable input
 * buffer, as with an old libzstd.
 */
#ifndef SUPPORT_ENV_H
#define SUPPORT_ENV_H

#include <stdbool.h>
#include <stddef.h>

bool env_short(void);
bool env_long(void);
bool env_plain_input(void);

/* Whether the decoder reads sequences that take less than four bytes behind their
 * number, as those of repeated RLE tables do: 1.4.0 takes them for cut off. If
 * not, says so. */
bool env_reads_short_sequences(void);

/* `normal`; in the short form `reduced`, and then says so on stderr. */
size_t env_pick(const char *what, size_t normal, size_t reduced);

#endif /* SUPPORT_ENV_H */
