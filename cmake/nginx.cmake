# The NGINX modules, for the NGINX that is installed, by NGINX's own configure:
# nginx/*.so in the build folder.

file(GLOB nginx_sources CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/shim-nginx/*
     ${PROJECT_SOURCE_DIR}/lib/*.[ch])

set(nginx_modules
  ${PROJECT_BINARY_DIR}/nginx/ngx_http_zstd_filter_module.so
  ${PROJECT_BINARY_DIR}/nginx/ngx_http_zstd_static_module.so)

add_custom_command(
  OUTPUT ${nginx_modules}
  COMMAND ${CMAKE_COMMAND} -E env CC=${CMAKE_C_COMPILER}
    ${PROJECT_SOURCE_DIR}/scripts/build_nginx_module.sh
    ${PROJECT_BINARY_DIR}/nginx
  DEPENDS ${nginx_sources}
    ${PROJECT_SOURCE_DIR}/include/segzstd.h
    ${PROJECT_SOURCE_DIR}/scripts/build_nginx_module.sh
  COMMENT "Building the NGINX modules"
  VERBATIM)

add_custom_target(nginx_modules ALL DEPENDS ${nginx_modules})
