#!/usr/bin/env bash
# The library's files compile with nothing but the compiler and -Iinclude.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
cc -I"$root/include" -c "$root"/lib/*.c
