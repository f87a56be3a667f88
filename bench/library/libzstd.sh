#!/bin/sh
# Fetches libzstd as other releases of Debian have it, and prints for each the
# folder with its libzstd.so.1, for LD_LIBRARY_PATH.
#
#   bench/library/libzstd.sh [RELEASE...]
#
# RELEASE is the name of one, bullseye and trixie if not given. The packages come
# from the mirror that this machine uses, through apt, which checks the release's
# signature; with an apt configuration of their own, so that nothing of the
# system changes. The folders are in $SEGZSTD_LIBZSTD, or segzstd-libzstd in the
# user's cache folder, by release. What is already there is not fetched again.
set -eu

cache=${SEGZSTD_LIBZSTD:-${XDG_CACHE_HOME:-$HOME/.cache}/segzstd-libzstd}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

fail() {
    echo "libzstd: $*" >&2
    exit 1
}

# The mirror of the system's own release: the first of its sources with the
# component main that is none for security updates.
mirror() {
    apt-get indextargets --format '$(REPO_URI) $(COMPONENT)' \
        'Created-By: Packages' 'Origin: Debian' 'Label: Debian' |
        sed -n 's/ main$//p' | head -n 1
}

# apt_in FOLDER ARGUMENT...: apt-get that knows nothing but FOLDER's sources.
apt_in() {
    own=$1
    shift
    apt-get -q -o "Dir::Etc::sourcelist=$own/sources.list" \
        -o Dir::Etc::sourceparts=- -o Dir::Etc::preferences=- \
        -o Dir::Etc::preferencesparts=- -o "Dir::State=$own/state" \
        -o "Dir::State::status=$own/status" -o "Dir::Cache=$own/cache" \
        -o APT::Sandbox::User=root -o Acquire::Languages=none \
        -o Acquire::Retries=2 "$@" >"$own/log" 2>&1 || {
        tail -n 5 "$own/log" >&2
        fail "apt-get $1 failed for $release"
    }
}

fetch() { # fetch RELEASE INTO
    uri=$(mirror)
    [ -n "$uri" ] ||
        fail "apt knows no mirror of Debian; try apt-get update first"
    [ -e "$keyring" ] || fail "the package debian-archive-keyring is missing"
    mkdir -p "$tmp/state/lists/partial" "$tmp/cache/archives/partial"
    : >"$tmp/status"
    echo "deb [signed-by=$keyring] $uri $1 main" >"$tmp/sources.list"
    echo "libzstd: fetching that of $1" >&2
    apt_in "$tmp" update
    (cd "$tmp" && apt_in "$tmp" download libzstd1)
    dpkg-deb -x "$tmp"/libzstd1_*.deb "$tmp/root"
    library=$(find "$tmp/root" -name libzstd.so.1 -print -quit)
    [ -n "$library" ] || fail "no libzstd.so.1 in $(echo "$tmp"/*.deb)"
    basename "$tmp"/libzstd1_*.deb >"$(dirname "$library")/package"
    mv "$(dirname "$library")" "$2"
}

# Newer releases may need a newer libc than this system's.
check() { # check FOLDER
    missing=$(LC_ALL=C ldd "$1/libzstd.so.1" 2>&1 | grep 'not found') || return 0
    fail "$1/libzstd.so.1 cannot run here: $missing"
}

mkdir -p "$cache"
[ $# -gt 0 ] || set -- bullseye trixie
for release in "$@"; do
    case $release in
    *[!a-z]* | '') fail "no name of a release: '$release'" ;;
    esac
    if [ ! -e "$cache/$release" ]; then
        tmp=$(mktemp -d "$cache/tmp.XXXXXX")
        trap 'rm -rf "$tmp"' EXIT
        trap 'exit 1' INT TERM
        fetch "$release" "$cache/$release"
        rm -rf "$tmp"
    fi
    check "$cache/$release"
    echo "$cache/$release"
done
