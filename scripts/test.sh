#!/usr/bin/env bash
# Takes a Debian or Ubuntu machine from nothing to the result of all tests.
#   scripts/test.sh [--quick] [STAGE...]
# Without a stage: all but "long". With --quick: setup, dev and checks.
#   setup     installs what is missing
#   dev       gcc, optimised, with asserts: unit tests, command, examples
#   checks    names, layers, format, warnings, header, installed tree
#   asan      clang, address and undefined behaviour sanitizers: the same tests
#   tsan      clang, thread sanitizer: the unit tests in their short form
#   valgrind  the unit tests in their short form
#   fuzz      each fuzz target for FUZZ_SECONDS (60)
#   long      tests that have a long form, in it
# Stops at the first stage that fails. Builds are in build/, or below
# SEGZSTD_BUILD_ROOT.
set -eu -o pipefail
cd "$(dirname "$0")/.."

build_root=${SEGZSTD_BUILD_ROOT:-build}
jobs=$(nproc)
passed=0
failed=0
skipped=0
launcher=

# Prints what the command said only if it failed.
quietly() {
    local log=$build_root/log
    mkdir -p "$build_root"
    if ! "$@" >"$log" 2>&1; then
        tail -n 60 "$log"
        return 1
    fi
}

build() {
    quietly cmake --preset "$1" -G Ninja -B "$build_root/$1" &&
        quietly cmake --build "$build_root/$1" -j "$jobs"
}

# run_tests PRESET OPTION... runs ctest and adds up what its summary says.
run_tests() {
    local build=$build_root/$1 log=$build_root/log rc=0 bad all not_run
    shift
    $launcher ctest --test-dir "$build" -j "$jobs" --no-tests=error \
        --output-on-failure --timeout 600 "$@" 2>&1 | tee "$log" || rc=1
    read -r bad all < <(sed -n \
        's/.*tests passed, \([0-9]*\) tests failed out of \([0-9]*\)/\1 \2/p' \
        "$log") || return 1
    not_run=$(grep -c ' (Skipped)$' "$log" || true)
    passed=$((passed + all - bad - not_run))
    failed=$((failed + bad))
    skipped=$((skipped + not_run))
    return $rc
}

stage_setup() {
    scripts/setup.sh build test
}

stage_dev() {
    build dev && run_tests dev -LE 'check|long'
}

stage_checks() {
    build dev && run_tests dev -L check
}

stage_asan() {
    local -x UBSAN_OPTIONS=print_stacktrace=1
    build asan && run_tests asan -LE long
}

# Older run-time libraries of the thread sanitizer cannot live with as much
# address randomisation as newer kernels do.
stage_tsan() {
    local launcher=
    local -x SEGZSTD_TEST_SHORT=1
    [ "$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)" -le 28 ] ||
        launcher='setarch -R'
    build tsan && run_tests tsan -L unit
}

stage_valgrind() {
    local -x SEGZSTD_TEST_SHORT=1
    build valgrind && run_tests valgrind -L unit
}

stage_fuzz() {
    build fuzz && run_tests fuzz -L fuzz --timeout 86400
}

stage_long() {
    build dev && run_tests dev -L long --timeout 86400
}

# The last line is the summary of all stages that ran.
finish() {
    local also=
    [ "$skipped" = 0 ] || also=", $skipped skipped"
    printf '\n%s passed, %s failed%s\n' "$passed" "$failed" "$also"
    [ "$failed" = 0 ]
}

run_stage() {
    local start=$SECONDS
    printf '\n=== %s\n' "$1"
    if ! "stage_$1"; then
        printf '\n=== %s FAILED after %s s\n' "$1" $((SECONDS - start))
        [ "$failed" != 0 ] || failed=1
        finish
        exit 1
    fi
    printf '=== %s: %s s\n' "$1" $((SECONDS - start))
}

stages='setup dev checks asan tsan valgrind fuzz'
[ "${1-}" != --quick ] || { stages='setup dev checks' && shift; }
[ $# = 0 ] || stages=$*
for stage in $stages; do
    if ! declare -F "stage_$stage" >/dev/null; then
        echo "test.sh: no such stage: $stage" >&2
        exit 2
    fi
done
for stage in $stages; do
    run_stage "$stage"
done
finish
