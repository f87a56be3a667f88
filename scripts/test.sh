#!/usr/bin/env bash
# Takes a Debian or Ubuntu machine from nothing to the result of all tests.
#   scripts/test.sh [--quick] [STAGE...]
# Without a stage: all but "libzstd" and the long ones. With --quick: setup, dev
# and checks.
#   setup     installs what is missing
#   dev       gcc, optimised, with asserts: unit tests, command, examples
#   checks    names, layers, format, warnings, header, installed tree
#   asan      clang, address and undefined behaviour sanitizers: the same tests
#   tsan      clang, thread sanitizer: the unit tests in their short form
#   valgrind  the unit tests in their short form
#   nginx     the NGINX modules in the system's NGINX, short form
#   nginx-asan      linked into an NGINX with the address sanitizer: buffers,
#                   flushes, subrequests, threads, HTTP/2, files, headers and
#                   life cycles, with adaptive segments on the pool, and on the
#                   loop
#   nginx-valgrind  in one under valgrind: life cycles with adaptive segments
#   fuzz      each fuzz target for FUZZ_SECONDS (60)
#   libzstd   the unit tests with the libzstd of Debian 11 and 13, short form
#   long      tests that have a long form, in it
#   nginx-long      the same for the NGINX modules
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
# what frees and reuses memory in unusual ways
asan_tests='lifecycle or threads or chain or flush or subrequest or h2'
asan_tests+=' or static or headers'
valgrind_tests='lifecycle'

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
    build tsan && run_tests tsan -L unit && run_tests tsan -L plain -R threads
}

stage_valgrind() {
    local -x SEGZSTD_TEST_SHORT=1
    build valgrind && run_tests valgrind -L unit &&
        run_tests valgrind -L plain -R adaptive
}

# run_pytest OPTION... runs the tests of the NGINX modules and adds up what the
# summary says.
run_pytest() {
    local log=$build_root/log rc=0 summary
    mkdir -p "$build_root"
    /usr/bin/python3 -m pytest tests/nginx -q --tb=short -n "$jobs" "$@" 2>&1 |
        tee "$log" || rc=1
    summary=$(tail -n 1 "$log")
    passed=$((passed + $(count_of passed "$summary")))
    failed=$((failed + $(count_of failed "$summary") +
        $(count_of 'errors\{0,1\}' "$summary")))
    skipped=$((skipped + $(count_of skipped "$summary")))
    [ "$(count_of passed "$summary")" != 0 ] && return $rc
}

count_of() {
    local number
    number=$(sed -n "s/.*\b\([0-9][0-9]*\) $1\b.*/\1/p" <<<"$2")
    echo "${number:-0}"
}

build_modules() {
    scripts/setup.sh nginx nginx-test && scripts/build_nginx_module.sh "$@"
}

stage_nginx() {
    local -x SEGZSTD_TEST_SHORT=1
    local -x SEGZSTD_NGINX_MODULES=$build_root/nginx
    build_modules "$build_root/nginx" && run_pytest
}

stage_nginx-long() {
    local -x SEGZSTD_NGINX_MODULES=$build_root/nginx SEGZSTD_NGINX_SOURCE
    scripts/setup.sh nginx-source || return 1
    SEGZSTD_NGINX_SOURCE=$(scripts/nginx_source.sh "$build_root/nginx-source")
    build_modules "$build_root/nginx" && run_pytest
}

# build_whole NAME CC_OPTIONS LD_OPTIONS makes an NGINX with the modules linked
# in, in which each allocation from a pool is one of its own.
build_whole() {
    local sources
    scripts/setup.sh nginx nginx-test nginx-source &&
        sources=$(scripts/nginx_source.sh "$build_root/nginx-source") &&
        scripts/build_nginx_module.sh --static "$build_root/$1" "$sources" \
            --with-threads --with-http_ssl_module --with-http_v2_module \
            --with-http_sub_module --with-http_addition_module \
            --with-http_auth_request_module --with-http_slice_module \
            --with-http_gunzip_module --with-http_gzip_static_module \
            --with-http_realip_module --with-http_stub_status_module \
            "--with-cc-opt=-O1 -g -DNGX_DEBUG_PALLOC=1 $2" "--with-ld-opt=$3"
}

stage_nginx-asan() {
    local -x SEGZSTD_TEST_SHORT=1 SEGZSTD_TEST_SCALE=4
    local -x SEGZSTD_NGINX_MODULES=builtin SEGZSTD_NGINX_MODES=adaptive,loop
    local -x SEGZSTD_NGINX
    build_whole nginx-asan '-fsanitize=address -fno-omit-frame-pointer' \
        -fsanitize=address || return 1
    SEGZSTD_NGINX=$(realpath "$build_root/nginx-asan/nginx")
    run_pytest -k "$asan_tests"
}

stage_nginx-valgrind() {
    local -x SEGZSTD_TEST_SHORT=1 SEGZSTD_TEST_SCALE=20
    local -x SEGZSTD_NGINX_MODULES=builtin SEGZSTD_NGINX_MODES=adaptive
    local -x SEGZSTD_NGINX
    build_whole nginx-valgrind '' '' || return 1
    SEGZSTD_NGINX="valgrind --trace-children=yes --quiet \
--log-file={prefix}/valgrind.%p $(realpath "$build_root/nginx-valgrind/nginx")"
    run_pytest -k "$valgrind_tests"
}

# From one seed, so that a change is judged by what it does and not by chance;
# scripts/fuzz.sh is for what chance finds.
stage_fuzz() {
    local -x FUZZ_SEED=${FUZZ_SEED:-1}
    build fuzz && run_tests fuzz -L fuzz --timeout 86400
}

stage_libzstd() {
    local -x SEGZSTD_TEST_SHORT=1 LD_LIBRARY_PATH
    local folders
    folders=$(bench/library/libzstd.sh) && build dev || return 1
    for LD_LIBRARY_PATH in $folders; do
        echo "with $LD_LIBRARY_PATH"
        run_tests dev -L 'unit|plain' || return 1
    done
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

stages='setup dev checks asan tsan valgrind nginx nginx-asan nginx-valgrind fuzz'
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
