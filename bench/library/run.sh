#!/bin/bash
# Builds the library in its release form, fetches the corpus, runs all parts of
# the benchmark and writes the results into a folder.
#
#   bench/library/run.sh [--quick] [--readme] [-o FOLDER] [-- OPTION...]
#
# --quick takes under three minutes: fewer files, levels, engines and rounds.
# --readme puts the summary into bench/README.md, behind its last heading.
# OPTIONs go to `segzstd_bench engines`, see its --help.
# FOLDER is results/ of the build folder, which is $SEGZSTD_BUILD or
# build/bench.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${SEGZSTD_BUILD:-$root/build/bench}
results=
quick=no
readme=no

while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=yes ;;
    --readme) readme=yes ;;
    -o)
        [ $# -gt 1 ] || {
            echo "run: -o needs a folder" >&2
            exit 2
        }
        results=$2
        shift
        ;;
    --)
        shift
        break
        ;;
    *)
        sed -n '2,11s/^# \{0,1\}//p' "$0"
        [ "$1" = --help ] && exit 0
        exit 2
        ;;
    esac
    shift
done
results=${results:-$build/results}
mkdir -p "$results"

cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release \
    -DSEGZSTD_BUILD_BENCH=ON >"$results/build.log"
cmake --build "$build" -j 2 --target segzstd_bench >>"$results/build.log"
bench=$build/bench/segzstd_bench

files=$("$root/bench/corpus.sh")
of() { # of NAME...: their paths, in the corpus' order
    for name in "$@"; do
        echo "$files" | grep "/$name\$"
    done
}
small=$(of small.json)
events=$(of emoji.json)

# Instructions of one body: the difference of two counts, so that the start of
# the process does not matter.
instructions() { # instructions LEVEL KIND
    for count in 500 1500; do
        valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" \
            small --levels "$1" --only "$2" --count $count "$small" 2>&1 |
            sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
    done | paste -s -d ' ' | awk '{ printf "%d", ($2 - $1) / 1000 }'
}

count_instructions() {
    if ! command -v valgrind >/dev/null; then
        echo "instructions not counted: valgrind is not installed"
        return
    fi
    for level in "$@"; do
        zstd=$(instructions "$level" zstd)
        ours=$(instructions "$level" segzstd)
        echo "level $level: libzstd $zstd instructions, segzstd $ours," \
            "beyond $((ours - zstd))"
    done
}

if [ $quick = yes ]; then
    of small.json jquery.min.js react-dom.js emoji.json icons.json |
        xargs "$bench" engines --levels 3,9,15 --seconds 2 --min-rounds 3 \
            --engines oneshot,stream,zstdmt-2,zstdmt-2-1m,adaptive-0,adaptive-1,adaptive-2,copy-2,fixed-0,fixed-1,fixed-2 \
            --json "$results/engines.json" --markdown "$results/engines.md" \
            "$@" | tee "$results/engines.txt"
    "$bench" small --levels 3 --batches 31 --json "$results/small.json" \
        "$small" | tee "$results/small.txt"
    count_instructions 3 | tee "$results/instructions.txt"
    "$bench" streams --first 32768 --rounds 5 --json "$results/streams.json" \
        "$events" | tee "$results/streams.txt"
else
    echo "$files" |
        xargs "$bench" engines --json "$results/engines.json" \
            --markdown "$results/engines.md" "$@" | tee "$results/engines.txt"
    "$bench" small --json "$results/small.json" "$small" |
        tee "$results/small.txt"
    count_instructions 1 3 9 19 | tee "$results/instructions.txt"
    {
        "$bench" streams --json "$results/streams.json" "$events"
        "$bench" streams --rest --json "$results/streams-rest.json" "$events"
    } | tee "$results/streams.txt"
fi

block() { # block TITLE FILE...
    printf '\n## %s\n\n```\n' "$1"
    shift
    cat "$@"
    printf '```\n'
}
{
    sed '/^## Everything measured/,$d' "$results/engines.md"
    block "A small body" "$results/small.txt" "$results/instructions.txt"
    block "Open streams" "$results/streams.txt"
} >"$results/summary.md"
{
    cat "$results/summary.md"
    printf '\n'
    sed -n '/^## Everything measured/,$p' "$results/engines.md"
} >"$results/results.md"

if [ $readme = yes ]; then
    {
        sed '/^## The last results/q' "$root/bench/README.md"
        printf '\n'
        sed 's/^## /### /' "$results/summary.md"
    } >"$results/README.md"
    cp "$results/README.md" "$root/bench/README.md"
fi
echo "results are in $results: results.md, summary.md, engines.json," \
    "small.json, streams.json"
