#!/usr/bin/env bash
# The shared library exports what the header declares SEGZSTD_API, no more and
# no less, and every name begins with segzstd_.
#   exports.sh BUILD_DIR
set -eu -o pipefail
library=$(realpath "$1/libsegzstd.so")
cd "$(dirname "$0")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# A declared function's name is the first one that is followed by "(".
echo '#include "segzstd.h"' | cc -E -P -Iinclude -DSEGZSTD_API=@ - |
    tr '\n' ' ' | tr '@' '\n' |
    sed -n '1d; s/^[^(]*[ *]\([A-Za-z0-9_]\{1,\}\)(.*/\1/p' |
    sort >"$tmp/declared"
nm -D --defined-only "$library" | awk '{ print $3 }' | sort >"$tmp/exported"

if grep -v '^segzstd_[a-z]' "$tmp/exported"; then
    echo "exports: the names above do not begin with segzstd_"
    exit 1
fi
if [ ! -s "$tmp/exported" ] ||
    ! diff -u --label declared --label exported "$tmp/declared" "$tmp/exported"
then
    echo "exports: the header and the library differ"
    exit 1
fi
echo "exports: $(wc -l <"$tmp/exported") names, as declared"
