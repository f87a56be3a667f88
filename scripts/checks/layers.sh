#!/usr/bin/env bash
# The files of lib include each other one way only: a file includes its own
# header and those of lower rank. A file that is not in the table fails.
set -eu
cd "$(dirname "$0")/../../lib"

rank_of() {
    case $1 in
    common) echo 0 ;;
    list | version) echo 1 ;;
    error | mem | buf | frame | fse | pool) echo 2 ;;
    block | options) echo 3 ;;
    seam | input | retain) echo 4 ;;
    encoder | plan) echo 5 ;;
    cache) echo 6 ;;
    dict) echo 7 ;;
    job) echo 8 ;;
    segment) echo 9 ;;
    stream) echo 10 ;;
    push | poll | store | executor) echo 11 ;;
    *) echo "layers: $1 has no rank in $0" >&2 && return 1 ;;
    esac
}

failed=0
for file in *.[ch]; do
    name=${file%.*}
    rank=$(rank_of "$name") || { failed=1 && continue; }
    for included in $(sed -n 's/^ *# *include *"\(.*\)\.h".*/\1/p' "$file"); do
        case $included in segzstd | "$name") continue ;; esac
        if ! [ "$(rank_of "$included")" -lt "$rank" ]; then
            echo "layers: $file must not include $included.h"
            failed=1
        fi
    done
done
exit $failed
