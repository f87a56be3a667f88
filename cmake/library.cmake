# The library, twice: segzstd (shared) and segzstd_static (with position
# independent code, so that a plug-in of a host can contain it).

file(GLOB lib_sources CONFIGURE_DEPENDS
     RELATIVE ${PROJECT_SOURCE_DIR} lib/*.c)

add_library(segzstd SHARED ${lib_sources})
add_library(segzstd_static STATIC ${lib_sources})

foreach(target segzstd segzstd_static)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PRIVATE PkgConfig::LIBZSTD Threads::Threads)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME segzstd
    POSITION_INDEPENDENT_CODE ON)
endforeach()

set_target_properties(segzstd PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${SEGZSTD_SOVERSION})

# The names that a project has which found the installed package.
add_library(segzstd::segzstd ALIAS segzstd)
add_library(segzstd::segzstd_static ALIAS segzstd_static)
