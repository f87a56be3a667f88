#!/usr/bin/env bash
# The shared library needs libc (with threads) and libzstd alone. Of libzstd it
# needs only what 1.4.0 has in its stable interface; other names of libzstd may
# be there as weak references, which are looked at at run time.
#   imports.sh BUILD_DIR
set -eu -o pipefail
library=$(realpath "$1/libsegzstd.so")
cd "$(dirname "$0")"
failed=0

needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for name in $needed; do
    case $name in
    libc.so.* | libpthread.so.* | libzstd.so.1 | ld-linux*) ;;
    *) echo "imports: unexpected library $name" && failed=1 ;;
    esac
done

undefined=$(nm -D --undefined-only "$library")
# Lines of nm: a type (U strong, w weak) and a name with or without @VERSION.
while read -r type name; do
    case $type:$name in
    *@GLIBC_* | w:__gmon_start__ | w:_ITM_* | w:__cxa_finalize) ;;
    w:ZSTD_*) ;;
    U:ZSTD_*) grep -qx "$name" libzstd-1.4.0.names ||
        { echo "imports: $name is not stable in libzstd 1.4.0" && failed=1; } ;;
    *) echo "imports: unexpected name $name" && failed=1 ;;
    esac
done <<<"$undefined"
exit $failed
