#!/usr/bin/env bash
# Builds the NGINX modules.
#   scripts/build_nginx_module.sh OUT_DIR
#       both .so files for the NGINX that is installed (Debian: nginx-dev)
#   scripts/build_nginx_module.sh [--static] OUT_DIR NGINX_SOURCE [OPTION...]
#       OUT_DIR/nginx from a folder with NGINX's sources, which is left as it
#       is, and both .so files; with --static they are linked in. OPTION...
#       goes to NGINX's configure; without it there is a set that the tests
#       need.
# All files are written below OUT_DIR, the .so files into it.
#
# Environment: CC; CFLAGS (-O2 -g); JOBS (one per processor); NGINX_DEV, the
# folder of nginx-dev (/usr/share/nginx/src); ZSTD_INC, ZSTD_LIB and PKG_CONFIG,
# see shim-nginx/config.
set -eu -o pipefail
repo=$(realpath "$(dirname "$0")/..")
nginx_dev=${NGINX_DEV:-/usr/share/nginx/src}

usage() {
    sed -n '2,/^set/{s/^# \{0,1\}//p;}' "$0" >&2
    exit 2
}

add=--add-dynamic-module
if [ "${1:-}" = --static ]; then
    add=--add-module
    shift
    [ $# -ge 2 ] || usage
fi
case ${1:-} in '' | -*) usage ;; esac

mkdir -p "$1"
out=$(realpath "$1")
shift
build=$out/nginx-build
rm -rf "$build"
rm -f "$out"/ngx_http_zstd_*.so "$out/nginx"
mkdir "$build"
log=$build/log

# Prints what the command said only if it failed.
quietly() {
    if ! "$@" >>"$log" 2>&1; then
        tail -n 40 "$log" >&2
        echo "build_nginx_module: failed; all of it is in $log" >&2
        exit 1
    fi
}

# configure SOURCE OPTION... runs NGINX's configure for our modules.
configure() {
    local source=$1 script=./configure
    shift
    cd "$source"
    # A checkout of the repository has it elsewhere.
    [ -e $script ] || script=auto/configure
    quietly $script ${CC:+"--with-cc=$CC"} \
        "--with-cc-opt=${CFLAGS:--O2 -g}" "--builddir=$build" \
        "$@" "$add=$repo/shim-nginx"
}

if [ $# = 0 ]; then
    if ! [ -e "$nginx_dev/conf_flags" ]; then
        echo "build_nginx_module: no $nginx_dev/conf_flags; install nginx-dev" \
            "or name a folder with NGINX's sources" >&2
        exit 1
    fi
    # The options that NGINX was built with, so that it accepts the modules.
    . "$nginx_dev/conf_flags"
    configure "$nginx_dev" "${NGX_CONF_FLAGS[@]}"
    quietly make -C "$nginx_dev" -f "$build/Makefile" \
        -j "${JOBS:-$(nproc)}" modules
else
    if ! [ -e "$1/auto/module" ]; then
        echo "build_nginx_module: $1 has no sources of NGINX" >&2
        exit 1
    fi
    # NGINX's configure writes into the folder of its sources.
    mkdir "$build/source"
    cp -R "$1/." "$build/source"
    shift
    if [ $# = 0 ]; then
        set -- --with-compat --with-debug --with-threads \
            --with-http_ssl_module --with-http_v2_module \
            --with-http_realip_module --with-http_addition_module \
            --with-http_sub_module --with-http_gunzip_module \
            --with-http_gzip_static_module --with-http_auth_request_module \
            --with-http_slice_module --with-http_stub_status_module
    fi
    configure "$build/source" "--prefix=$out/root" "$@"
    quietly make -C "$build/source" -f "$build/Makefile" \
        -j "${JOBS:-$(nproc)}" build
    server=$build/nginx
    [ -e "$server" ] || server=$build/angie # which has a name of its own
    cp "$server" "$out/nginx"
fi

if [ $add = --add-dynamic-module ]; then
    cp "$build"/ngx_http_zstd_*.so "$out"
fi
