# Installs the library, its headers, the program and the files behind find_package(qkv).
include(CMakePackageConfigHelpers)
install(TARGETS qkv EXPORT qkvTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(QKV_PROGRAM)
  install(TARGETS qkv_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
foreach(layer ${QKV_LIBRARY_LAYERS})
  install(DIRECTORY qkv/${layer} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/qkv FILES_MATCHING PATTERN "*.h"
          PATTERN "*-inl.h" EXCLUDE)
endforeach()
install(FILES qkv/qkv.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/qkv)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/qkv)
install(EXPORT qkvTargets NAMESPACE qkv:: DESTINATION ${package_dir})
configure_package_config_file(cmake/qkvConfig.cmake.in ${PROJECT_BINARY_DIR}/qkvConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/qkvConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/qkvConfig.cmake ${PROJECT_BINARY_DIR}/qkvConfigVersion.cmake
        DESTINATION ${package_dir})
