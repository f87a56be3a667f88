#!/bin/bash
# Counts the instructions of a fixed set of cases and compares them with those
# in instructions.txt: what a change costs, also where neighbours disturb times.
#
#   bench/library/instructions.sh [--update] [FOLDER]
#
# Each case is counted twice over: what the library's own functions execute, and
# all, with libzstd's. A count that is more than 3 % higher than the stored one
# fails. Numbers belong to a version of the compiler, one of libzstd and an
# architecture; where there are none for those of this machine, nothing can be
# said: exit code 77, "skipped".
# --update stores the counts. FOLDER is for the build, build/instructions if not
# given. CC and LD_LIBRARY_PATH choose compiler (in a new folder) and libzstd.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
stored=$here/instructions.txt
update=no
percent=3

if [ "${1-}" = --update ]; then
    update=yes
    shift
fi
case ${1-} in
-*)
    sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
    [ "$1" = --help ] && exit 0
    exit 2
    ;;
esac
build=${1:-$root/build/instructions}

command -v valgrind >/dev/null || {
    echo "instructions: SKIPPED, needs valgrind"
    exit 77
}
mkdir -p "$build"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Flags of the one who calls would be part of the numbers.
unset CFLAGS LDFLAGS CPPFLAGS
{
    cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release \
        -DSEGZSTD_BUILD_BENCH=ON -DSEGZSTD_BUILD_TOOLS=OFF &&
        cmake --build "$build" --target segzstd_cases
} >"$build/build.log" 2>&1 || {
    tail -n 40 "$build/build.log" >&2
    echo "instructions: the build in $build failed" >&2
    exit 1
}
program=$build/bench/segzstd_cases
key=$("$program" key)

# libc's copying of memory differs from one CPU to another unless it is told to
# use no more than all of them have.
export GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX,-AVX512F,-AVX512VL,-ERMS,-FSRM
GLIBC_TUNABLES=$GLIBC_TUNABLES,-AVX_Fast_Unaligned_Load

count() { # count CASE: its line
    valgrind --tool=callgrind --toggle-collect=case_run_counted \
        --callgrind-out-file="$tmp/$1.out" "$program" "$1" \
        >"$tmp/$1.log" 2>&1 || {
        cat "$tmp/$1.log" >&2
        echo "instructions: the case $1 failed" >&2
        return 1
    }
    printf '%s\t%s\t%s\n' "$key" "$1" \
        "$(awk -f "$here/instructions.awk" "$tmp/$1.out")" >"$tmp/$1.line"
}
export -f count
export tmp here program key

"$program" list >"$tmp/list"
xargs -P "$(nproc)" -I{} bash -c 'count "$1"' - {} <"$tmp/list"
while read -r name; do
    cat "$tmp/$name.line"
done <"$tmp/list" >"$tmp/counts"

if [ $update = yes ]; then
    {
        grep '^#' "$stored"
        { grep -v '^#' "$stored" | grep -vF "$key	" || true; } |
            cat - "$tmp/counts" | sort -s -t '	' -k 1,1
    } >"$tmp/new"
    cp "$tmp/new" "$stored"
    echo "instructions: stored for $key"
    exit 0
fi
if ! grep -qF "$key	" "$stored"; then
    echo "instructions: SKIPPED, $stored has no numbers for \"$key\";" \
        "--update would store them"
    exit 77
fi

awk -F '\t' -v key="$key" -v percent=$percent '
function show(name, what, was, is,    change) {
    change = was > 0 ? 100 * (is - was) / was : 0
    line = sprintf("%-9s %-3s %11d, was %11d, %+.2f %%", name, what, is, was,
                   change)
    if (change > percent || (was == 0 && is > 0)) {
        line = line ": worse by more than " percent " %"
        worse++
    } else if (change < -percent) {
        line = line ": better"
        better++
    }
    print line
}
$1 != key { next }
FNR == NR { own[$2] = $3; all[$2] = $4; next }
{
    counted[$2] = 1
    if (!($2 in own)) {
        print $2 ": no number is stored for it; --update would store it"
        worse++
        next
    }
    show($2, "own", own[$2], $3)
    show($2, "all", all[$2], $4)
}
END {
    for (name in own)
        if (!(name in counted)) {
            print name ": has numbers, but is no case any more"
            worse++
        }
    if (better)
        print better " better by more than " percent " %: --update records them"
    print "instructions: " (worse ? worse " at fault" : "as stored") ", " key
    exit worse > 0
}' "$stored" "$tmp/counts"
