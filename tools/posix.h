/*
 * posix.h - what every file of the command includes first: POSIX with 64-bit
 * file sizes, and the terminal's width.
 */
#ifndef SEGZSTD_TOOL_POSIX_H
#define SEGZSTD_TOOL_POSIX_H

#define _DEFAULT_SOURCE
#define _FILE_OFFSET_BITS 64
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "segzstd.h"

#endif /* SEGZSTD_TOOL_POSIX_H */
