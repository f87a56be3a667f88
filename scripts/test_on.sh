#!/usr/bin/env bash
# Runs the tests in another release of Debian, which is made in a folder of its
# own: with its compilers, its libzstd, its NGINX.
#   scripts/test_on.sh RELEASE [STAGE...]
# RELEASE is Debian's name for it: bookworm, trixie, forky. STAGEs are those of
# test.sh, which runs them on a copy of this repository. Needs root, and an hour
# for all stages.
#
# Environment: SEGZSTD_DEBIAN, the folder that the releases are made in
# (segzstd-debian in the user's cache folder).
set -euo pipefail

[ $# -gt 0 ] || {
    sed -n '2,/^set/{s/^# \{0,1\}//p;}' "$0" >&2
    exit 2
}
release=$1
shift
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${SEGZSTD_DEBIAN:-${XDG_CACHE_HOME:-$HOME/.cache}/segzstd-debian}/$release

debian() {
    "$root/scripts/chroot.sh" "$release" 'ca-certificates git' "$folder" "$@"
}

debian
# what is committed, as a clone has it
rm -rf "$folder/srv/segzstd"
git clone --quiet --no-hardlinks "$root" "$folder/srv/segzstd"
debian env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    CI="${CI:-}" bash /srv/segzstd/scripts/test.sh "$@"
