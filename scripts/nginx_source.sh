#!/usr/bin/env bash
# Prints the path of a folder with the sources of the NGINX version that this
# Debian or Ubuntu has, without its patches; fetches them first if need be.
#   scripts/nginx_source.sh FOLDER
# For builds that the package cannot give: with sanitizers, or static modules.
# The system's list of package sources is left as it is.
set -eu -o pipefail
[ $# = 1 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
mkdir -p "$1"
folder=$(realpath "$1")

found() {
    find "$folder" -mindepth 1 -maxdepth 1 -type d -name 'nginx-*' | head -n 1
}

# The same repositories as the system's, asked for source packages.
source_lists() {
    mkdir -p "$1"
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ ! -f "$list" ] ||
            sed -n 's/^deb\(-src\)\{0,1\} /deb-src /p' "$list" \
                >"$1/$(basename "$list")"
    done
    for list in /etc/apt/sources.list.d/*.sources; do
        [ ! -f "$list" ] ||
            sed 's/^Types:.*/Types: deb-src/' "$list" >"$1/$(basename "$list")"
    done
}

fetch() {
    local tmp=$folder/apt
    rm -rf "$tmp" "$folder"/nginx_*
    source_lists "$tmp/parts"
    mkdir -p "$tmp/lists/partial"
    local options=(-o Dir::Etc::sourcelist=/dev/null
        -o "Dir::Etc::sourceparts=$tmp/parts" -o "Dir::State::lists=$tmp/lists"
        -o "Dir::Cache::srcpkgcache=$tmp/src.bin"
        -o "Dir::Cache::pkgcache=$tmp/pkg.bin" -o APT::Sandbox::User=root)
    apt-get "${options[@]}" -qq update &&
        (cd "$folder" &&
            apt-get "${options[@]}" -qq source --download-only --tar-only nginx) &&
        tar -xzf "$(ls "$folder"/nginx_*.orig.tar.gz | tail -n 1)" -C "$folder"
    rm -rf "$tmp" "$folder"/nginx_*
}

if [ -z "$(found)" ]; then
    fetch >"$folder/log" 2>&1 ||
        { cat "$folder/log" >&2 && echo 'nginx_source: no sources' >&2 &&
            exit 1; }
fi
found
