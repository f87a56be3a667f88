#!/usr/bin/env bash
# The code is as clang-format 14 makes it. Other versions break lines
# differently, so with them nothing can be said: exit code 77, "skipped".
set -eu
cd "$(dirname "$0")/../.."
format=$(command -v clang-format-14 || command -v clang-format)
if ! "$format" --version | grep -q 'version 14\.'; then
    echo "format: SKIPPED, needs clang-format 14; here: $("$format" --version)"
    exit 77
fi
find lib include tests tools bench examples -name '*.[ch]' -print0 |
    xargs -0 "$format" --dry-run -Werror
