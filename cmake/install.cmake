# What `cmake --install` puts where: the libraries, the header, the pkg-config
# file and the CMake package. The last two find the rest relative to themselves,
# so that an installed tree may be moved.

include(CMakePackageConfigHelpers)

install(TARGETS segzstd segzstd_static EXPORT segzstd-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/segzstd.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

file(RELATIVE_PATH SEGZSTD_PC_TO_PREFIX
     ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/segzstd.pc.in segzstd.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/segzstd.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/segzstd)
configure_package_config_file(cmake/segzstd-config.cmake.in
  segzstd-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(segzstd-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(EXPORT segzstd-targets NAMESPACE segzstd:: DESTINATION ${package_dir})
install(FILES
  ${PROJECT_BINARY_DIR}/segzstd-config.cmake
  ${PROJECT_BINARY_DIR}/segzstd-config-version.cmake
  DESTINATION ${package_dir})
