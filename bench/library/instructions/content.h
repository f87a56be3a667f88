/*
 * content.h - what the counted cases compress: the same bytes on every machine.
 */
#ifndef CASES_CONTENT_H
#define CASES_CONTENT_H

#include <stddef.h>

/* Fills dst with `len` bytes of records, much as an interface of a server sends
 * them. */
void content_fill(unsigned char *dst, size_t len);

#endif /* CASES_CONTENT_H */
