#!/usr/bin/env bash
# Takes a Debian or Ubuntu machine from nothing to two tables. Real files, each
# compressed by segzstd with one and with all threads and by zstd; and the same
# files served by NGINX with the module, see demo_serve.sh. Every result is
# decompressed by zstd and compared.
#   scripts/demo.sh [FILE...]
# Without a file it takes some of npm packages, kept in the user's cache folder,
# or, where there is no npm, some of this system.
set -eu -o pipefail
export LC_ALL=C

levels='3 9 19'
runs=3      # the fastest counts
patience=10 # seconds of one file and level after which no further run is made
threads=$(nproc)

# fetch PACKAGE@VERSION FILE prints the path of a file of an npm package.
fetch() {
    local cache=${XDG_CACHE_HOME:-$HOME/.cache}/segzstd/$1
    if [ ! -f "$cache/package/$2" ]; then
        mkdir -p "$cache" && (
            cd "$cache"
            tar -xzf "$(npm pack --silent "$1")"
        ) >&2 || return 1
    fi
    echo "$cache/package/$2"
}

files_of_npm() {
    fetch react-dom@19.2.0 cjs/react-dom-client.development.js &&
        fetch world-atlas@2.0.2 countries-10m.json &&
        fetch typescript@5.9.3 lib/typescript.js
}

largest_below() {
    find "$1" -xdev -type f -size +1M -size -8M -printf '%s %p\n' |
        sort -n | tail -n 1 | cut -d ' ' -f 2-
}

files_of_system() {
    tar -cf "$tmp/include.tar" -C /usr/include linux
    printf '%s\n' "$tmp/include.tar" \
        "$(largest_below /usr/share)" "$(largest_below /usr/lib)"
}

build() {
    scripts/setup.sh build demo
    echo "demo: building into $build_dir"
    if ! { cmake --preset release -G Ninja -B "$build_dir" &&
        cmake --build "$build_dir"; } >"$tmp/log" 2>&1; then
        tail -n 40 "$tmp/log" >&2
        echo 'demo: the build failed' >&2
        exit 1
    fi
    PATH=$build_dir/tools:$PATH
}

# "file lvl command input output ratio segs secs MB/s", in 79 columns.
row() {
    printf '%-18s %3s %-12s %8s %8s %6s %4s %6s %6s\n' "$@"
}

short_name() {
    local name
    name=$(basename "$1")
    [ ${#name} -le 18 ] || name=${name:0:16}..
    echo "$name"
}

# compress NUMBER FILE LEVEL runs that command once and prints its microseconds.
compress() {
    local options=(-q -f "-$3" -o "$tmp/$1.zst") start
    case ${commands[$1]} in segzstd*) options+=(--stats) ;; esac
    start=${EPOCHREALTIME/./}
    ${commands[$1]} "${options[@]}" -- "$2" 2>"$tmp/$1.stats" ||
        { cat "$tmp/$1.stats" >&2 && return 1; }
    echo $((${EPOCHREALTIME/./} - start))
}

# Fails, loudly, if stock zstd does not give the file back.
check() {
    zstd -q -d -c "$tmp/$1.zst" | cmp - "$2" ||
        { echo "demo: $2 came back changed" >&2 && exit 1; }
}

compare_level() {
    local file=$1 level=$2 fastest=() start=$SECONDS micros segments numbers n
    for _ in $(seq "$runs"); do
        [ $((SECONDS - start)) -lt "$patience" ] || break
        for n in "${!commands[@]}"; do
            micros=$(compress "$n" "$file" "$level")
            check "$n" "$file"
            if [ "$micros" -lt "${fastest[$n]:-$((micros + 1))}" ]; then
                fastest[$n]=$micros
            fi
        done
    done
    for n in "${!commands[@]}"; do
        segments=$(sed -n 's/.* segments=\([0-9]*\) .*/\1/p' "$tmp/$n.stats")
        numbers=$(stat -L -c %s "$file" "$tmp/$n.zst" |
            awk -v micros="${fastest[$n]}" -v segments="${segments:--}" '
                { size[NR] = $1 }
                END { printf "%.0f %.0f %.2f %s %.3f %.1f", size[1], size[2],
                      size[1] / size[2], segments, micros / 1e6,
                      size[1] / micros }')
        row "$([ "$n" != 0 ] || short_name "$file")" "$level" \
            "${commands[$n]}" $numbers
    done
}

files=()
for file in "$@"; do
    [ -f "$file" ] && [ -r "$file" ] ||
        { echo "demo: $file is not a file that can be read" >&2 && exit 1; }
    files+=("$(realpath "$file")")
done
cd "$(dirname "$0")/.."
build_dir=$(realpath -m "${SEGZSTD_BUILD_ROOT:-build}/release")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
build

if [ ${#files[@]} = 0 ] && command -v npm >/dev/null; then
    echo 'demo: taking files of npm packages'
    mapfile -t files < <(files_of_npm)
fi
if [ ${#files[@]} = 0 ]; then
    echo 'demo: no file of npm to be had, taking files of this system'
    mapfile -t files < <(files_of_system)
fi

[ "$threads" -gt 1 ] || threads=2
commands=('zstd -T1' 'zstd -T0' 'segzstd -T1' "segzstd -T$threads")
printf '\nzstd %s; %s; %s CPUs\n\n' \
    "$(zstd --version | grep -o 'v[0-9.]*' | tr -d v)" \
    "$(segzstd --version)" "$(nproc)"
row file lvl command input output ratio segs secs MB/s
for file in "${files[@]}"; do
    for level in $levels; do
        compare_level "$file" "$level"
    done
    echo
done
printf 'Every result was decompressed by zstd and is the same as its file.\n'
printf 'segs: segments; secs: wall time, the fastest of up to %s runs.\n' "$runs"

scripts/demo_serve.sh "${files[@]}"
