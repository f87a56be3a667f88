#!/usr/bin/env bash
# Fuzzing in the long form: every target, or those that are named, for
# FUZZ_SECONDS (default 1800) each, two at a time.
#   scripts/fuzz.sh [TARGET...]
#   scripts/fuzz.sh --run PROGRAM     one built target, default 60 seconds
# FUZZ_SEED repeats a run (the log names the seed); without it each is another.
# What is found to reach new code is kept in build/fuzz/corpus, and what fails
# in build/fuzz/crashes; give such a file to the program to see it fail again.
set -eu

run_target() {
    local program=$1 name build seeds
    name=$(basename "$program")
    build=$(cd "$(dirname "$program")/../.." && pwd)
    seeds=tests/fuzz/seeds/$name
    mkdir -p "$build/corpus/$name" "$build/crashes"
    if [ ! -d "$seeds" ]; then
        echo "fuzz: no seeds in $seeds" >&2
        exit 1
    fi
    "$program" -max_total_time="${FUZZ_SECONDS:-60}" -timeout=30 \
        -rss_limit_mb=4096 -print_final_stats=1 -seed="${FUZZ_SEED:-0}" \
        -artifact_prefix="$build/crashes/$name-" \
        "$build/corpus/$name" "$seeds"
}

cd "$(dirname "$0")/.."
if [ "${1-}" = --run ]; then
    run_target "$2"
    exit
fi

export FUZZ_SECONDS=${FUZZ_SECONDS:-1800}
build=${SEGZSTD_BUILD_ROOT:-build}/fuzz
scripts/setup.sh build test
cmake --preset fuzz -G Ninja -B "$build"
cmake --build "$build" -j "$(nproc)"
pattern=$(IFS='|' && echo "$*")
ctest --test-dir "$build" -L fuzz -R "${pattern:-.}" -j 2 --timeout 86400 \
    --no-tests=error --output-on-failure
