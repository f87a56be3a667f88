#!/usr/bin/env bash
# Formats the code in place, with clang-format 14. The check of it is
# scripts/checks/format.sh, which is part of the tests.
set -eu
cd "$(dirname "$0")/.."
format=$(command -v clang-format-14 || command -v clang-format)
"$format" --version | grep -q 'version 14\.' || {
    echo "format: needs clang-format 14" >&2
    exit 1
}
find lib include tests tools bench examples -name '*.[ch]' -print0 |
    xargs -0 "$format" -i
