#!/bin/sh
# Fetches real HTML pages from an npm package, by name, into a folder outside
# the repository, and prints the path of pages.html: four long pages, one after
# the other, so that its start is a page and its first million bytes are pages.
#
#   bench/library/pages.sh [FOLDER]
#
# FOLDER is that of bench/corpus.sh. What is there is not fetched again; it must
# have the checksum below.
set -eu

folder=${1:-${SEGZSTD_CORPUS:-${XDG_CACHE_HOME:-$HOME/.cache}/segzstd-corpus}}
package=htmlparser-benchmark@1.1.3
checksum=03f03a8a05e9ae3529abbd21068622b47207d07bec06c466142f8b3611d87406
members='
74e8bc94abea7c60f022d8d3f672f80e59e3e126735fae0b5ee5914ff2fce48e
488a0b7fa8bc2e0d799ac1dcb22620654777c66a9260983f369d842210f5d3d4
ea80cfab838b25791b92aca7861c81a444dc8854a67298f3af81f95c53fa75bd
6b817bedb8d6402bab160ed6d2b99256163bd3aef20deae3015f74e5bb253e55'

say() {
    echo "pages: $*" >&2
}

fetch() { # fetch FILE
    command -v npm >/dev/null || {
        say "the command npm is missing (package npm)"
        exit 1
    }
    say "fetching $package"
    (cd "$tmp" && npm pack --silent "$package" >/dev/null)
    for member in $members; do
        tar -xzOf "$tmp"/*.tgz "package/files/$member.html"
    done >"$1"
}

check() { # check FILE
    sum=$(sha256sum "$1" | cut -d ' ' -f 1)
    [ "$sum" = "$checksum" ] || {
        say "$1 has checksum $sum, not $checksum"
        exit 1
    }
}

mkdir -p "$folder"
tmp=$(mktemp -d "$folder/tmp.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM

if [ ! -e "$folder/pages.html" ]; then
    fetch "$tmp/pages.html"
    check "$tmp/pages.html"
    mv "$tmp/pages.html" "$folder/pages.html"
fi
check "$folder/pages.html"
echo "$folder/pages.html"
