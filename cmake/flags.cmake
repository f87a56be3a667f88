# Flags of every target of this project.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)

add_compile_options(-Wall -Wextra -Wconversion)
if(SEGZSTD_WERROR)
  add_compile_options(-Werror)
endif()

if(SEGZSTD_SANITIZE)
  # No recovery: a report ends the program, so that a test fails.
  set(sanitize -fsanitize=${SEGZSTD_SANITIZE} -fno-sanitize-recover=all)
  add_compile_options(${sanitize} -fno-omit-frame-pointer)
  add_link_options(${sanitize})
endif()

if(SEGZSTD_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()

if(SEGZSTD_BUILD_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "SEGZSTD_BUILD_FUZZ needs clang (CC=clang)")
  endif()
  # The library reports its branches to libFuzzer, which only the fuzz targets
  # link.
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()
