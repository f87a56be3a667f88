#!/usr/bin/env bash
# The library compiles without a warning, with gcc and with clang, with asserts
# and without.
set -eu
cd "$(dirname "$0")/../.."
for compiler in gcc clang; do
    for asserts in -UNDEBUG -DNDEBUG; do
        for file in lib/*.c; do
            $compiler -std=c11 -Wall -Wextra -Wconversion -Werror -O2 \
                $asserts -Iinclude -c -o /dev/null "$file"
        done
    done
done
