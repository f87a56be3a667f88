#!/usr/bin/env bash
# Runs all tests on a build that counts executed lines, and prints the lines of
# lib that none executed, but for asserts, and then each file's share.
#   scripts/coverage.sh
set -eu -o pipefail
cd "$(dirname "$0")/.."
build=${SEGZSTD_BUILD_ROOT:-build}/coverage
scripts/setup.sh build test coverage
cmake --preset coverage -G Ninja -B "$build" >/dev/null
cmake --build "$build" -j "$(nproc)" >/dev/null
find "$build" -name '*.gcda' -delete
rc=0
ctest --test-dir "$build" -LE long -j "$(nproc)" --no-tests=error \
    --output-on-failure || rc=1

# Of every program, since some tests compile a file of lib into themselves.
lcov --quiet --capture --directory "$build" --base-directory . \
    --output-file "$build/all.info"
lcov --quiet --extract "$build/all.info" "$PWD/lib/*" \
    --output-file "$build/lib.info"

printf '\nLines of lib that no test executed:\n'
awk -F '[:,]' -v root="$PWD/" '
    $1 == "SF" { file = substr($2, length(root) + 1) }
    $1 == "DA" && $3 == 0 { print file, $2 }
' "$build/lib.info" | while read -r file line; do
    text=$(sed -n "${line}p" "$file")
    case $text in *assert\(*) continue ;; esac
    printf '%s:%s:%s\n' "$file" "$line" "$text"
done
printf '\n'
lcov --list "$build/lib.info"
exit $rc
