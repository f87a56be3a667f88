/*
 * faults.h - why requests and event streams failed, counted.
 */
#ifndef LOAD_FAULTS_H
#define LOAD_FAULTS_H

#include <stdarg.h>
#include <stdint.h>

enum fault {
    FAULT_CONNECT,  /* no connection to be had */
    FAULT_CLOSED,   /* ended or broke before the answer did */
    FAULT_HTTP,     /* not HTTP/1.1, or not framed as it should be */
    FAULT_STATUS,   /* not 200 */
    FAULT_ENCODING, /* another Content-Encoding than was asked for */
    FAULT_LENGTH,   /* other bytes, by their number, than there should be */
    FAULT_TIMEOUT,
    FAULTS
};

/* All zero: none. */
struct faults {
    uint64_t total;
    uint64_t counts[FAULTS];
    char first[160]; /* in words; empty: none */
};

const char *fault_name(enum fault fault);

void faults_add(struct faults *faults, enum fault fault, const char *format,
                va_list list);

#endif /* LOAD_FAULTS_H */
