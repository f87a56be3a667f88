#!/usr/bin/env bash
# The public header compiles alone, as C99 and as C++, without a warning, and
# the initialisers of its structs can be used in both.
set -eu
cd "$(dirname "$0")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

cat >"$tmp/use.c" <<'END'
#include "segzstd.h"
int main(void)
{
    segzstd_cache_options a = SEGZSTD_CACHE_OPTIONS_INIT;
    segzstd_cache_stats b = SEGZSTD_CACHE_STATS_INIT;
    segzstd_stream_options c = SEGZSTD_STREAM_OPTIONS_INIT;
    segzstd_stream_stats d = SEGZSTD_STREAM_STATS_INIT;
    return (int)(a.workers + b.workers + c.window_log + d.window_log);
}
END
cp "$tmp/use.c" "$tmp/use.cc"
strict='-pedantic -Wall -Wextra -Werror -fsyntax-only -Iinclude'
for compiler in gcc clang; do
    $compiler -std=c99 $strict -Wc++-compat "$tmp/use.c"
done
for compiler in g++ clang++; do
    $compiler -std=c++11 $strict "$tmp/use.cc"
done
