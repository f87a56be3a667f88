#!/usr/bin/env bash
# Makes a Debian system of its own in a folder, with some packages, and runs a
# command in it.
#
#   scripts/chroot.sh [--upgrade] RELEASE "PACKAGE..." FOLDER [COMMAND...]
#
# RELEASE is Debian's name for it. The first time takes some two minutes;
# afterwards only what is missing is installed. --upgrade brings all packages up
# to date. Needs root.
#
# Environment: SEGZSTD_MIRROR, where packages come from (what this machine's apt
# uses for Debian).
#
# Everything is mounted in a mount namespace of its own, so that it is gone with
# the last process, however that ends.
set -euo pipefail
export LC_ALL=C

fail() {
    echo "chroot: $*" >&2
    exit 1
}

usage() {
    sed -n '2,/^set/{s/^# \{0,1\}//p;}' "$0" >&2
    exit 2
}

# The first of this machine's sources that is Debian's main archive.
mirror() {
    [ -z "${SEGZSTD_MIRROR:-}" ] || {
        echo "$SEGZSTD_MIRROR"
        return
    }
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(LABEL) $(REPO_URI)' |
        sed -n 's/^Debian \(http.*\)$/\1/p' | sed -n 1p
}

need_debootstrap() {
    command -v debootstrap >/dev/null && return
    echo "chroot: installing debootstrap"
    { apt-get -qq update &&
        DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
            --no-install-recommends debootstrap debian-archive-keyring
    } >/dev/null </dev/null || fail "cannot install debootstrap"
}

# An older debootstrap has no script of the release's name; sid's fits it.
bootstrap() {
    local from
    from=$(mirror)
    from=${from:-http://deb.debian.org/debian}
    need_debootstrap
    echo "chroot: making Debian $suite in $folder"
    rm -rf --one-file-system "$folder"
    mkdir -p "$folder"
    # debootstrap leaves /proc mounted.
    unshare --mount --propagation private debootstrap --variant=minbase \
        "$suite" "$folder" "$from" sid >"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        fail "debootstrap failed; all of it is in $log"
    }
    printf '#!/bin/sh\nexit 101\n' >"$folder/usr/sbin/policy-rc.d"
    chmod 755 "$folder/usr/sbin/policy-rc.d"
    touch "$folder/.bootstrapped"
}

# What this machine's apt needs to reach its mirror, that one needs too: an
# archive of the past has Release files that are over, for one.
copy_apt_options() {
    apt-config dump |
        grep -E '^Acquire::(Check-Valid-Until|Check-Date|https?::Proxy)' \
            >"$folder/etc/apt/apt.conf.d/00host" || true
    cp -L /etc/resolv.conf "$folder/etc/resolv.conf"
    cp -L /etc/hosts "$folder/etc/hosts"
}

# inside COMMAND...: in the system, which ends with this process.
inside() {
    # shellcheck disable=SC2016
    unshare --mount --propagation private bash -c '
        set -eu
        mount -t proc proc "$0/proc"
        mkdir -p "$0/dev/shm"
        mount -t tmpfs -o mode=1777 shm "$0/dev/shm"
        mkdir -p "$0/dev/pts"
        mount -t devpts -o newinstance,ptmxmode=0666 pts "$0/dev/pts"
        ln -sfn pts/ptmx "$0/dev/ptmx"
        exec chroot "$0" "$@"' "$folder" "$@"
}

apt() {
    inside env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
        -o APT::Sandbox::User=root "$@" </dev/null
}

# Installs what is missing; a mirror that fails once is asked again.
install() {
    local try missing=()
    for package in "${packages[@]}"; do
        [ -e "$folder/var/lib/dpkg/info/$package.list" ] ||
            [ -e "$folder/var/lib/dpkg/info/$package:$arch.list" ] ||
            missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || [ "$upgrade" ] || return 0
    echo "chroot: installing ${missing[*]:-updates}"
    for try in 1 2; do
        if { apt update &&
            { [ ! "$upgrade" ] || apt dist-upgrade; } &&
            apt install --no-install-recommends "${packages[@]}" &&
            apt clean; } >"$log" 2>&1; then
            return
        fi
        echo "chroot: try $try failed" >&2
    done
    tail -n 20 "$log" >&2
    fail "cannot install the packages; all that apt said is in $log"
}

upgrade=
if [ "${1:-}" = --upgrade ]; then
    upgrade=1
    shift
fi
[ $# -ge 3 ] || usage
suite=$1
read -ra packages <<<"$2"
folder=$(realpath -m "$3")
shift 3
[ "$(id -u)" = 0 ] || fail "needs root"
arch=$(dpkg --print-architecture)
log=$folder.log
mkdir -p "$(dirname "$folder")"

[ -e "$folder/.bootstrapped" ] || bootstrap
copy_apt_options
install
[ $# = 0 ] || inside "$@"
