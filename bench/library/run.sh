#!/bin/bash
# Builds the library in its release form, fetches the corpus, runs all parts of
# the benchmark and writes the results into a folder.
#
#   bench/library/run.sh [--quick] [--readme] [--libzstd LIST] [-o FOLDER]
#                        [-- OPTION...]
#
# --quick takes under three minutes: fewer files, levels, engines and rounds.
# --readme puts the summary into bench/README.md, behind its last heading.
# --libzstd runs the same program under each libzstd of the LIST, a folder with a
# libzstd.so.1, or the word system, one after another, separated by commas; see
# bench/library/libzstd.sh. Results are in a folder of the FOLDER each.
# OPTIONs go to `segzstd_bench engines`, see its --help.
# FOLDER is results/ of the build folder, which is $SEGZSTD_BUILD or
# build/bench.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${SEGZSTD_BUILD:-$root/build/bench}
results=
quick=no
readme=no
libraries=

fail() {
    echo "run: $*" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=yes ;;
    --readme) readme=yes ;;
    --libzstd | -o)
        [ $# -gt 1 ] || fail "$1 needs a value"
        [ "$1" = -o ] && results=$2 || libraries=$2
        shift
        ;;
    --)
        shift
        break
        ;;
    *)
        sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
        [ "$1" = --help ] && exit 0
        exit 2
        ;;
    esac
    shift
done
[ $readme = no ] || [ -z "$libraries" ] ||
    fail "--readme takes the system's libzstd, so not with --libzstd"
results=${results:-$build/results}
mkdir -p "$results"
engine_options=("$@")

cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release \
    -DSEGZSTD_BUILD_BENCH=ON >"$results/build.log"
cmake --build "$build" -j 2 --target segzstd_bench >>"$results/build.log"
bench=$build/bench/segzstd_bench

files=$("$root/bench/corpus.sh")
pages=$("$root/bench/library/pages.sh")
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

# part NAME OUT OPTION...: one that runs engines on a list of files (stdin).
part() {
    local name=$1 out=$2
    shift 2
    xargs "$bench" "$name" --json "$out/$name.json" \
        --markdown "$out/$name.md" "$@" | tee "$out/$name.txt"
}

responses() { # responses OUT OPTION...
    { echo "$pages" && of emoji.json random.bin; } | part responses "$@"
}

measure_quick() { # measure_quick OUT
    of small.json jquery.min.js react-dom.js emoji.json icons.json |
        part engines "$1" --levels 3,9,15 --seconds 2 --min-rounds 3 \
            --engines oneshot,stream,zstdmt-2,zstdmt-2-1m,adaptive-0,adaptive-1,adaptive-2,copy-2,fixed-0,fixed-1,fixed-2 \
            "${engine_options[@]}"
    responses "$1" --levels 3 --sizes 20000,1000000 --seconds 1
    "$bench" small --levels 3 --batches 31 --json "$1/small.json" \
        "$small" | tee "$1/small.txt"
    count_instructions 3 | tee "$1/instructions.txt"
    "$bench" streams --first 32768 --rounds 5 --json "$1/streams.json" \
        "$events" | tee "$1/streams.txt"
}

measure_all() { # measure_all OUT
    echo "$files" | part engines "$1" "${engine_options[@]}"
    responses "$1"
    "$bench" small --json "$1/small.json" "$small" | tee "$1/small.txt"
    count_instructions 1 3 9 19 | tee "$1/instructions.txt"
    {
        "$bench" streams --json "$1/streams.json" "$events"
        "$bench" streams --rest --json "$1/streams-rest.json" "$events"
    } | tee "$1/streams.txt"
}

block() { # block TITLE FILE...
    printf '\n## %s\n\n```\n' "$1"
    shift
    cat "$@"
    printf '```\n'
}

# everything OUT PART: the part's results one by one, without what is before.
everything() {
    printf '\n## Everything measured: %s\n' "$2"
    sed '1,/^## Everything measured/d' "$1/$2.md"
}

write_summary() { # write_summary OUT
    {
        sed '/^## Everything measured/,$d' "$1/engines.md"
        block "A small body" "$1/small.txt" "$1/instructions.txt"
        block "Open streams" "$1/streams.txt"
    } >"$1/summary.md"
    {
        cat "$1/summary.md"
        everything "$1" engines
        printf '\n'
        sed -n '/^| engine | what/,/^$/p' "$1/responses.md"
        everything "$1" responses
    } >"$1/results.md"
}

measure() { # measure OUT
    mkdir -p "$1"
    if [ $quick = yes ]; then measure_quick "$1"; else measure_all "$1"; fi
    write_summary "$1"
}

# What the dynamic linker really takes from FOLDER is looked at first.
measure_under() { # measure_under FOLDER OUT
    local mapped
    [ "$1" = system ] || export LD_LIBRARY_PATH=$1
    mapped=$("$bench" machine | sed -n 's/^libzstd .*, //p')
    case $mapped in
    "$1"/*) ;;
    *) [ "$1" = system ] || fail "of $1 nothing was mapped, but $mapped" ;;
    esac
    echo "--- $mapped"
    measure "$2"
}

if [ -z "$libraries" ]; then
    measure "$results"
    said=$results
else
    said=
    number=0
    IFS=, read -r -a folders <<<"$libraries"
    for folder in "${folders[@]}"; do
        number=$((number + 1))
        if [ "$folder" != system ]; then
            [ -e "$folder/libzstd.so.1" ] || fail "no libzstd.so.1 in $folder"
            folder=$(realpath "$folder")
        fi
        out=$results/$number-$(basename "$folder")
        (measure_under "$folder" "$out")
        said="$said $out"
    done
fi

if [ $readme = yes ]; then
    {
        sed '/^## The last results/q' "$root/bench/README.md"
        printf '\n'
        sed 's/^## /### /' "$results/summary.md"
    } >"$results/README.md"
    cp "$results/README.md" "$root/bench/README.md"
fi
echo "results are in $said: results.md, summary.md, and engines," \
    "responses, small and streams.json"
