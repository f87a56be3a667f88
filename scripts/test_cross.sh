#!/usr/bin/env bash
# Cross-compiles the library, its command and its unit tests for another
# architecture, and runs the tests, in their short form, under qemu.
#   scripts/test_cross.sh ARCH...
# ARCH is Debian's name for it: arm64; armhf or i386, where a size has 32 bits;
# s390x, whose bytes are the other way round. Needs root, and some ten minutes
# for each. What is committed is tested.
#
# Environment: SEGZSTD_DEBIAN, the folder that Debian with the cross compilers is
# made in (segzstd-debian in the user's cache folder).
set -euo pipefail

[ $# -gt 0 ] || {
    sed -n '2,/^set/{s/^# \{0,1\}//p;}' "$0" >&2
    exit 2
}
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${SEGZSTD_DEBIAN:-${XDG_CACHE_HOME:-$HOME/.cache}/segzstd-debian}/cross
needs='build-essential ca-certificates cmake git ninja-build pkg-config qemu-user'

debian() {
    "$root/scripts/chroot.sh" bookworm "$needs" "$folder" "$@"
}

# In Debian: its cross compiler and the libraries for $arch, a build and a run.
# shellcheck disable=SC2016
cross='
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
arch=$1
machine=$2
dpkg --add-architecture "$arch"
{ apt-get -qq update && apt-get -qq install -y --no-install-recommends \
    -o APT::Sandbox::User=root "crossbuild-essential-$arch" \
    "libcmocka-dev:$arch" "libzstd-dev:$arch"; } >/dev/null </dev/null
compiler=$(dpkg-architecture -a "$arch" -q DEB_HOST_GNU_TYPE 2>/dev/null)-gcc
libraries=/usr/lib/$(dpkg-architecture -a "$arch" -q DEB_HOST_MULTIARCH \
    2>/dev/null)
cd /srv/segzstd
PKG_CONFIG_LIBDIR=$libraries/pkgconfig cmake -B "/srv/$arch" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -g" -DSEGZSTD_WERROR=ON \
    -DSEGZSTD_BUILD_TESTS=ON -DCMAKE_SYSTEM_NAME=Linux \
    "-DCMAKE_SYSTEM_PROCESSOR=$machine" "-DCMAKE_C_COMPILER=$compiler" \
    "-DSEGZSTD_TEST_WRAPPER=qemu-$machine" >/dev/null
cmake --build "/srv/$arch" -- -k 0 >"/srv/$arch/log" || {
    tail -n 40 "/srv/$arch/log"
    exit 1
}
SEGZSTD_TEST_SHORT=1 ctest --test-dir "/srv/$arch" -j "$(nproc)" \
    -L "unit|plain" --no-tests=error --output-on-failure --timeout 1200'

debian
for arch; do
    case $arch in
        arm64) machine=aarch64 ;;
        armhf) machine=arm ;;
        *) machine=$arch ;;
    esac
    rm -rf "$folder/srv/segzstd" "$folder/srv/$arch"
    git clone --quiet --no-hardlinks "$root" "$folder/srv/segzstd"
    echo "=== $arch"
    debian env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        LC_ALL=C.UTF-8 bash -c "$cross" cross "$arch" "$machine"
done
