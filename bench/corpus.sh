#!/bin/sh
# Fetches the benchmark's files from npm and Debian packages, by name, into a
# folder outside the repository, and prints their paths, smallest first.
#
#   bench/corpus.sh [FOLDER]
#
# FOLDER is $SEGZSTD_CORPUS, or segzstd-corpus in the user's cache folder. What
# is already there is not fetched again. Files made from npm packages, whose
# versions never change, must have the checksums below. Debian's binary follows
# the release and its updates, so its version is written beside it instead.
set -eu

folder=${1:-${SEGZSTD_CORPUS:-${XDG_CACHE_HOME:-$HOME/.cache}/segzstd-corpus}}

say() {
    echo "corpus: $*" >&2
}

need() {
    command -v "$1" >/dev/null || {
        say "the command $1 is missing (package $2)"
        exit 1
    }
}

# Puts the .tgz of NAME@VERSION into the folder $tmp and its path into $tgz.
npm_pack() {
    need npm npm
    say "fetching $1"
    mkdir -p "$tmp/npm"
    rm -f "$tmp"/npm/*.tgz
    (cd "$tmp/npm" && npm pack --silent "$1" >/dev/null)
    tgz=$(echo "$tmp"/npm/*.tgz)
}

# check FILE SHA256
check() {
    sum=$(sha256sum "$1" | cut -d ' ' -f 1)
    [ "$sum" = "$2" ] || {
        say "$1 has checksum $sum, not $2"
        exit 1
    }
}

# from_npm FILE SHA256 NAME@VERSION MEMBER: one member of a package.
from_npm() {
    if [ ! -e "$folder/$1" ]; then
        npm_pack "$3"
        tar -xzOf "$tgz" "$4" >"$tmp/$1"
        check "$tmp/$1" "$2"
        mv "$tmp/$1" "$folder/$1"
    fi
    check "$folder/$1" "$2"
    echo "$folder/$1"
}

# tar_from_npm FILE SHA256 NAME@VERSION...: whole packages, one tar after
# another, much as an archive of a project's modules looks.
tar_from_npm() {
    file=$1
    sum_wanted=$2
    shift 2
    if [ ! -e "$folder/$file" ]; then
        : >"$tmp/$file"
        for package in "$@"; do
            npm_pack "$package"
            gzip -dc "$tgz" >>"$tmp/$file"
        done
        check "$tmp/$file" "$sum_wanted"
        mv "$tmp/$file" "$folder/$file"
    fi
    check "$folder/$file" "$sum_wanted"
    echo "$folder/$file"
}

# from_debian FILE PACKAGE MEMBER: a file of the package that apt would install.
from_debian() {
    if [ ! -e "$folder/$1" ]; then
        need apt-get apt
        say "fetching Debian's $2"
        mkdir -p "$tmp/deb"
        (cd "$tmp/deb" && apt-get download -qq "$2" >/dev/null 2>&1) || {
            say "apt-get download $2 failed; try apt-get update first"
            exit 1
        }
        dpkg-deb --fsys-tarfile "$tmp"/deb/"$2"_*.deb |
            tar -xOf - "./$3" >"$tmp/$1"
        basename "$tmp"/deb/"$2"_*.deb >"$folder/$1.version"
        mv "$tmp/$1" "$folder/$1"
    fi
    echo "$folder/$1"
}

# random_bytes FILE SHA256 COUNT: from perl's own generator, whose sequence is
# the same everywhere.
random_bytes() {
    if [ ! -e "$folder/$1" ]; then
        perl -e 'srand(1); print pack("C*", map { int(rand(256)) } 1..shift)' \
            "$3" >"$tmp/$1"
        mv "$tmp/$1" "$folder/$1"
    fi
    check "$folder/$1" "$2"
    echo "$folder/$1"
}

# records_json FILE SHA256 COUNT: a list as an API answers with, whose numbers
# come from a generator that is the same everywhere (Park and Miller's, all
# its products are exact in a double).
records_json() {
    if [ ! -e "$folder/$1" ]; then
        awk -v count="$3" '
            function rnd(n) {
                seed = (seed * 16807) % 2147483647
                return seed % n
            }
            function word(list) { return list[1 + rnd(list[0])] }
            function words(n, text) {
                while (n-- > 0)
                    text = text (text == "" ? "" : " ") word(noun)
                return text
            }
            function fill(list, text, n) {
                n = split(text, list, " ")
                list[0] = n
            }
            BEGIN {
                seed = 20000101
                fill(first, "Ada Ben Chen Dana Emil Fatima Goran Hana Ivan" \
                    " Jana Karim Lena Mia Nils Olga Pavel Rosa Sven Tara Uma")
                fill(last, "Abel Berg Costa Diaz Evans Fischer Garcia Horn" \
                    " Ito Jensen Khan Lopez Meyer Novak Okafor Patel Rossi")
                fill(noun, "order draft stock route price client review note" \
                    " batch label parcel refund credit supply region device" \
                    " signal record window anchor market planet garden river")
                fill(state, "open paid shipped returned cancelled")
                fill(city, "Berlin Lagos Lima Osaka Paris Quito Riga Turin")
                printf "{\"total\":%d,\"items\":[", count
                for (i = 1; i <= count; i++) {
                    a = word(first); b = word(last)
                    printf "%s{\"id\":%d,\"uuid\":\"%06x-%04x-%04x\",", \
                        (i > 1 ? "," : ""), 100000 + i, rnd(16777216), \
                        rnd(65536), rnd(65536)
                    printf "\"name\":\"%s %s\",\"email\":" \
                        "\"%s.%s%d@example.com\",", a, b, tolower(a), \
                        tolower(b), rnd(1000)
                    printf "\"state\":\"%s\",\"city\":\"%s\"," \
                        "\"created\":\"2026-%02d-%02dT%02d:%02d:%02dZ\",", \
                        word(state), word(city), 1 + rnd(12), 1 + rnd(28), \
                        rnd(24), rnd(60), rnd(60)
                    printf "\"amount\":%d.%02d,\"active\":%s,\"tags\":" \
                        "[\"%s\",\"%s\"],\"text\":\"%s\"}", rnd(5000), \
                        rnd(100), (rnd(2) ? "true" : "false"), word(noun), \
                        word(noun), words(6 + rnd(10))
                }
                print "]}"
            }' >"$tmp/$1"
        check "$tmp/$1" "$2"
        mv "$tmp/$1" "$folder/$1"
    fi
    check "$folder/$1" "$2"
    echo "$folder/$1"
}

mkdir -p "$folder"
tmp=$(mktemp -d "$folder/tmp.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM

from_npm small.json \
    847222df2786ba133e90a7822d2b5f80f59ebbcbf59e61e3d739cf64f6461817 \
    commander@12.0.0 package/package.json
from_npm jquery.min.js \
    fc9a93dd241f6b045cbff0481cf4e1901becd0e12fb45166a8f17f95823f0b1a \
    jquery@3.7.1 package/dist/jquery.min.js
random_bytes random.bin \
    df1f64559e602f414f199ce0fd0a2c2191bc47a93c3d1eee1616a33dc968eaae 1048576
from_npm react-dom.js \
    f9044a5e9c39db8bb1a204dff924e526ec0a621e695bb69de1035811be8709e4 \
    react-dom@18.3.1 package/umd/react-dom.development.js
records_json data.json \
    b3947c94296d52c23461ecadc29941244bea27d280d93f1ca7bf3fb2377fd8d5 4000
from_npm emoji.json \
    b5b8a0bc61c9e2b27b26e876f816bd37893556876848f503b71db5ecb62741b0 \
    emoji-datasource@15.1.2 package/emoji_pretty.json
from_npm icons.json \
    cf75b3541b06b3bb40f9e40880d4fb34a648c02c4bc8181f49b7db40e0f53d3c \
    @iconify-json/ph@1.2.2 package/icons.json
from_npm typescript.js \
    d4eeb6e18a598a21aa0a5c09a52270856e4b23bd31d9c7c60ab80a22b275b07b \
    typescript@5.4.5 package/lib/typescript.js
from_debian gdb.elf gdb usr/bin/gdb
tar_from_npm modules.tar \
    7b41c3728667091d0e7421ad22d6ae55df74263b081df83f36f6241503539ba1 \
    prettier@3.2.5 webpack@5.91.0 lodash@4.17.21
