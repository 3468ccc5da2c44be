# Installs the library, its public headers, the program and the files that find_package(qkv) and pkg-config read.
include(CMakePackageConfigHelpers)
# The component "program" is what runs without a compiler; everything else is "library".
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME library)
install(TARGETS qkv EXPORT qkvTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(QKV_PROGRAM)
  install(TARGETS qkv_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
  include(cmake/manual.cmake)
endif()
# The public headers are qkv.h and what it includes; everything else belongs to the implementation.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS qkv/qkv.h)
file(STRINGS qkv/qkv.h public_headers REGEX "^#include \"qkv/")
list(TRANSFORM public_headers REPLACE "^#include \"(.*)\"$" "\\1")
foreach(header qkv/qkv.h ${public_headers})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()

# What a program must link besides libqkv: all of it with the static library, nothing with the shared one.
get_target_property(library_type qkv TYPE)
set(QKV_NEEDS_MORE ON)
if(library_type STREQUAL "SHARED_LIBRARY")
  set(QKV_NEEDS_MORE OFF)
  set(QKV_PC_PRIVATE .private)
  if(QKV_PROGRAM)
    set_target_properties(qkv_program PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  endif()
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/qkv)
install(EXPORT qkvTargets NAMESPACE qkv:: DESTINATION ${package_dir})
configure_package_config_file(cmake/qkvConfig.cmake.in ${PROJECT_BINARY_DIR}/qkvConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/qkvConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/qkvConfig.cmake ${PROJECT_BINARY_DIR}/qkvConfigVersion.cmake
        DESTINATION ${package_dir})
if(TARGET qkv_runs)
  install(TARGETS qkv_runs EXPORT qkvRunsTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT qkvRunsTargets NAMESPACE qkv:: DESTINATION ${package_dir})
  install(FILES qkv/runs.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/qkv)
  install(FILES qkv/tasks/prediction.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/qkv/tasks)
endif()

file(RELATIVE_PATH QKV_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/qkv.pc.in ${PROJECT_BINARY_DIR}/qkv.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/qkv.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(PROJECT_IS_TOP_LEVEL AND QKV_NEEDS_MORE)
  include(cmake/packages.cmake)
endif()
