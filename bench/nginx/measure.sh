#!/usr/bin/env bash
# Builds the module and the load client for the nginx that is here, measures,
# and reports; run by run.sh, in its chroot or outside of it.
#
#   bench/nginx/measure.sh BUILD CORPUS RESULTS [OPTION...]
#
# OPTIONs go to run.py.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=$1
corpus=$2
results=$3
shift 3

for command in nginx cc zstd python3; do
    command -v $command >/dev/null || {
        echo "run: the command $command is missing; scripts/setup.sh nginx" \
            "installs it" >&2
        exit 1
    }
done
mkdir -p "$build"

# With HdrHistogram where it is installed.
hdr=()
if pkg-config --exists hdr_histogram; then
    read -ra hdr <<<"-DHAVE_HDR $(pkg-config --cflags --libs hdr_histogram)"
fi
cc -std=c11 -O2 -o "$build/segzstd_load" "$here"/load/*.c \
    ${hdr[@]+"${hdr[@]}"}
echo "building the module"
"$here/../../scripts/build_nginx_module.sh" "$build/module"
system=$(nginx -V 2>&1 | tr ' ' '\n' | sed -n 's/^--modules-path=//p')

status=0
python3 "$here/run.py" --module "$build/module/ngx_http_zstd_filter_module.so" \
    --system-modules "${system:-/usr/lib/nginx/modules}" --corpus "$corpus" \
    --load "$build/segzstd_load" --results "$results" ${hdr[@]+--hdr} "$@" ||
    status=$?
if [ -e "$results/results.json" ]; then
    python3 "$here/report.py" "$results"
fi
exit $status
