#!/usr/bin/env bash
# Installs, on Debian or Ubuntu, the packages that are missing, and says which.
# What the tests can do without is left out where the release does not have it.
# Asks nothing.
#   scripts/setup.sh GROUP...
# Groups: build, test, demo, bench, coverage, nginx, nginx-test, nginx-source
set -eu

packages_of() {
    case $1 in
    build) echo gcc libc6-dev cmake ninja-build pkg-config libzstd-dev ;;
    test) echo g++ clang llvm clang-format libcmocka-dev valgrind zstd curl \
        libevent-dev libmicrohttpd-dev python3 python3-zstandard gnuplot-nox \
        fonts-dejavu-core ;;
    demo) echo zstd ;;
    bench) echo make valgrind && { command -v npm >/dev/null || echo npm; } ;;
    coverage) echo lcov ;;
    nginx) echo gcc libc6-dev make pkg-config libzstd-dev nginx nginx-dev \
        curl zstd python3 ;;
    nginx-test) echo libnginx-mod-http-brotli-filter \
        libnginx-mod-http-brotli-static libnginx-mod-http-js \
        libnginx-mod-http-perl nghttp2-client openssl python3-pytest \
        python3-pytest-xdist python3-h2 python3-zstandard chromium \
        fonts-dejavu-core ;;
    nginx-source) echo dpkg-dev libpcre2-dev libssl-dev zlib1g-dev valgrind ;;
    *) echo "setup: no such group of packages: $1" >&2 && exit 2 ;;
    esac
}

# Tests that need one of these are skipped without it, and say so. Ubuntu has
# Chromium as a snap, for one.
optional=" chromium libnginx-mod-http-brotli-filter \
libnginx-mod-http-brotli-static libnginx-mod-http-js libnginx-mod-http-perl "

# Those that this release has, and those that are needed all the same.
available_of() {
    local package
    for package in "$@"; do
        case $optional in
        *" $package "*)
            apt-cache policy "$package" 2>/dev/null |
                grep -q 'Candidate: [^(]' || {
                echo "setup: this release has no $package" >&2
                continue
            }
            ;;
        esac
        echo "$package"
    done
}

missing_of() {
    local package
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null |
            grep -q 'ok installed' || echo "$package"
    done
}

root=
[ "$(id -u)" = 0 ] || root=sudo

apt() {
    $root env DEBIAN_FRONTEND=noninteractive apt-get -y "$@" </dev/null
}

# Packages of servers would start them: not while this runs.
policy=/usr/sbin/policy-rc.d
hold_services() {
    [ ! -e $policy ] || return 0
    trap '$root rm -f $policy' EXIT
    printf '#!/bin/sh\nexit 101\n' | $root tee $policy >/dev/null
    $root chmod 755 $policy
}

# A mirror that fails once is asked again.
install() {
    local log there try
    log=$(mktemp)
    hold_services
    for try in 1 2; do
        if apt update >"$log" 2>&1; then
            there=$(available_of "$@")
            if [ -n "$there" ]; then
                echo "setup: installing" $there
                apt install --no-install-recommends $there >"$log" 2>&1
            fi && rm -f "$log" && return
        fi
        echo "setup: try $try failed" >&2
    done
    tail -n 30 "$log" >&2
    echo "setup: cannot install $*; all that apt said is in $log" >&2
    exit 1
}

# The sanitizers' run-time library is a package of its own in newer releases,
# with clang's version in its name.
install_clang_runtime() {
    if ! echo 'int main(void) { return 0; }' |
        clang -fsanitize=address,fuzzer-no-link -x c -o /dev/null - 2>/dev/null
    then
        install "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
    fi
}

wanted=
for group in "$@"; do
    wanted="$wanted $(packages_of "$group")"
done
missing=$(missing_of $wanted)
[ -z "$missing" ] || install $missing
case " $* " in *' test '*) install_clang_runtime ;; esac
