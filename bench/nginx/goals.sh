#!/usr/bin/env bash
# Measures what the NGINX module is for: how little compression disturbs small
# requests beside it, and what it costs. Prints a table with a goal and a result
# in each row; writes goals.txt, goals.md and goals.json.
#
#   bench/nginx/goals.sh [--quick] [-o FOLDER] [--module FILE] [-- OPTION...]
#
# --quick takes under 4 minutes: two levels, one round. All of it: 25 minutes.
# --module: a built ngx_http_zstd_filter_module.so for the nginx in PATH;
#           without it, it is built.
# FOLDER is nginx/results/ of the build folder, which is $SEGZSTD_BUILD or
# build/bench. OPTIONs go to goals.py, see its --help.
#
# Everything runs on 127.0.0.1, on a port that is free. Run it on a machine that
# does nothing else; where that is not to be had, root can put `nice -n -15`
# before it. Realtime priority would not do: it would stop the system from
# sharing the CPUs between the event loop and the threads, which is measured.
set -euo pipefail
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1

root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath -m "${SEGZSTD_BUILD:-$root/build/bench}")/nginx
results=
module=
options=()

need_value() {
    [ "$1" -gt 1 ] || {
        echo "goals: $2 needs a value" >&2
        exit 2
    }
}

while [ $# -gt 0 ]; do
    case $1 in
    --quick) options+=(--quick) ;;
    -o)
        need_value $# "$1"
        results=$(realpath -m "$2")
        shift
        ;;
    --module)
        need_value $# "$1"
        module=$(realpath "$2")
        shift
        ;;
    --)
        shift
        options+=("$@")
        break
        ;;
    *)
        sed -n '2,19s/^# \{0,1\}//p' "$0"
        [ "$1" = --help ] && exit 0
        exit 2
        ;;
    esac
    shift
done

for command in nginx cc zstd python3; do
    command -v $command >/dev/null || {
        echo "goals: the command $command is missing; scripts/setup.sh build" \
            "demo nginx installs it" >&2
        exit 1
    }
done
results=${results:-$build/results}
mkdir -p "$results" "$build"

cc -std=c11 -O2 -o "$build/segzstd_load" "$root"/bench/nginx/load/*.c
if [ -z "$module" ]; then
    "$root/scripts/build_nginx_module.sh" "$build/module" \
        >"$results/module.log" 2>&1 || {
        tail -n 30 "$results/module.log" >&2
        echo "goals: the module was not built" >&2
        exit 1
    }
    module=$build/module/ngx_http_zstd_filter_module.so
fi
files=$("$root/bench/corpus.sh")
files=$(dirname "${files%%$'\n'*}")

LOAD_TMP=$(mktemp -d)
export LOAD_TMP
trap 'rm -rf "$LOAD_TMP"' EXIT
python3 "$root/bench/nginx/goals.py" --module "$module" --files "$files" \
    --load "$build/segzstd_load" --results "$results" \
    ${options[@]+"${options[@]}"}
echo "results are in $results: goals.txt, goals.md, goals.json"
