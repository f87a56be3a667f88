#!/usr/bin/env bash
# Measures NGINX with several ways to compress: the modules of this repository,
# the packaged zstd filter, gzip, brotli, and none. Writes results.json,
# results.md, and plots.
#
#   bench/nginx/run.sh [--quick] [--native] [-o FOLDER] [-- OPTION...]
#
# All of it takes some 50 minutes, --quick under 4: two levels, one round.
# It runs in a Debian of its own, which has the packaged filters, see
# scripts/chroot.sh; this needs root. --native: on this machine's nginx instead,
# with the peers that are installed.
# FOLDER is nginx/results/ of the build folder, which is $SEGZSTD_BUILD or
# build/bench. OPTIONs go to run.py (see `-- --help`), for instance
#   bench/nginx/run.sh -- --runs open,closed --levels 9 --peers pool,packaged
#
# Environment: SEGZSTD_CHROOT, the folder of that Debian (segzstd-chroot in the
# user's cache folder); SEGZSTD_SUITE, its release (forky).
#
# Everything listens on 127.0.0.1 alone. Run it on a machine that does nothing
# else; where that is not to be had, root can put `nice -n -15` before it.
# Realtime priority would not do: it would stop the system from sharing the CPUs
# between the event loop and the threads, which is measured.
set -euo pipefail
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1

root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath -m "${SEGZSTD_BUILD:-$root/build/bench}")/nginx
cache=${XDG_CACHE_HOME:-$HOME/.cache}
chroot=$(realpath -m "${SEGZSTD_CHROOT:-$cache/segzstd-chroot}")
command="bench/nginx/run.sh${*:+ $*}"
results=$build/results
native=
options=()

fail() {
    echo "run: $*" >&2
    exit 1
}

while [ $# -gt 0 ]; do
    case $1 in
    --quick) options+=(--quick) ;;
    --native) native=1 ;;
    -o)
        [ $# -gt 1 ] || fail "-o needs a folder"
        results=$(realpath -m "$2")
        shift
        ;;
    --)
        shift
        options+=("$@")
        break
        ;;
    *)
        sed -n '2,/^set/{s/^# \{0,1\}//p;}' "$0"
        [ "$1" = --help ] && exit 0
        exit 2
        ;;
    esac
    shift
done

mkdir -p "$build" "$results"
# Two at once would measure each other.
exec 9>"$build/lock"
flock -n 9 || fail "another run is going on"

files=$("$root/bench/corpus.sh")
corpus=$(dirname "${files%%$'\n'*}")

if [ "$native" ]; then
    "$root/bench/nginx/measure.sh" "$build" "$corpus" "$results" \
        --command "$command" ${options[@]+"${options[@]}"}
    exit
fi

# The release that has all peers, and what is needed there.
release=${SEGZSTD_SUITE:-forky}
packages=(
    nginx nginx-dev libnginx-mod-http-zstd-filter
    libnginx-mod-http-brotli-filter
    libzstd-dev libhdr-histogram-dev gcc libc6-dev make pkg-config
    python3 curl zstd gzip brotli wrk nghttp2-client
    gnuplot-nox fonts-dejavu-core
)

debian() {
    "$root/scripts/chroot.sh" "$release" "${packages[*]}" "$chroot" "$@"
}

# What is needed goes into the chroot, the results come out of it.
debian
inside=$chroot/srv
rm -rf "$inside/segzstd" "$inside/results"
mkdir -p "$inside/segzstd/bench" "$inside/corpus" "$inside/results"
cp -R "$root"/{include,lib,scripts,shim-nginx} "$inside/segzstd"
cp -R "$root/bench/nginx" "$inside/segzstd/bench"
for file in $files; do
    cp -u "$file" "$inside/corpus"
done
trap 'cp -R "$inside/results/." "$results"' EXIT
debian env -i \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL="$LC_ALL" \
    PYTHONDONTWRITEBYTECODE=1 /srv/segzstd/bench/nginx/measure.sh \
    /srv/build /srv/corpus /srv/results --command "$command" \
    ${options[@]+"${options[@]}"}
echo "results are in $results"
