#!/usr/bin/env bash
# An installed tree serves a program through pkg-config, with the shared and the
# static library, and through find_package; also after it was moved.
#   install.sh BUILD_DIR
set -eu
build=$(cd "$1" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
cmake --install "$build" --prefix "$tmp/first" >install.log
mv first moved

libdir=$(dirname "$(find "$tmp/moved" -name libsegzstd.so)")
export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
cat >main.c <<'END'
#include <segzstd.h>
#include <string.h>
int main(void)
{
    char out[128];
    size_t n = 0;
    int rc = segzstd_compress(out, sizeof out, &n, "moved", 5, NULL, 1);
    return rc != 0 || n == 0 || strcmp(segzstd_version(), VERSION) != 0;
}
END
version="-DVERSION=\"$(pkg-config --modversion segzstd)\""
cc "$version" main.c -o shared $(pkg-config --cflags --libs segzstd)
./shared
# --static also gives what libsegzstd.a itself needs.
cc "$version" main.c -o static $(pkg-config --static --cflags --libs segzstd |
    sed "s|-lsegzstd|$libdir/libsegzstd.a|")
./static
ldd ./static | grep -q libsegzstd && echo "install: not static" && exit 1

cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.22)
project(consumer C)
find_package(segzstd REQUIRED)
foreach(library segzstd segzstd_static)
  add_executable(with_${library} main.c)
  target_link_libraries(with_${library} PRIVATE segzstd::${library})
  target_compile_definitions(with_${library} PRIVATE
    VERSION="${segzstd_VERSION}")
endforeach()
END
cmake -G Ninja -S . -B build -DCMAKE_PREFIX_PATH="$tmp/moved" >cmake.log
cmake --build build >>cmake.log
build/with_segzstd
build/with_segzstd_static
