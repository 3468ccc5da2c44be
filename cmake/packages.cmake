# Debian packages, made by cpack: qkv (the program) and libqkv-dev (the static library, its headers, qkv::runs).
set(CPACK_GENERATOR DEB)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PACKAGE_CONTACT "The qkv project <qkv@localhost>" CACHE STRING "who made the packages")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "attention, computed, trained and shown")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)

set(CPACK_COMPONENTS_ALL library)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION 
    "For C++20 programs: tensors with gradients, attention forward and backward,
models and training, as a static library with its headers; qkv::runs opens what
the program trained.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libqkv-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
# What a program that links the static libraries must link too.
set(needs libhwy-dev)
if(TARGET qkv_runs AND QKV_GZIP)
  list(APPEND needs zlib1g-dev)
endif()
if(TARGET qkv_runs AND QKV_SENTENCEPIECE)
  list(APPEND needs libsentencepiece-dev pkg-config)
  execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --print-requires --print-requires-private sentencepiece
                  OUTPUT_VARIABLE sentencepiece_needs)
  if(sentencepiece_needs MATCHES protobuf)
    list(APPEND needs libprotobuf-dev)  # which its own package forgets
  endif()
  if("absl_status" IN_LIST QKV_SENTENCEPIECE_MODULES)
    list(APPEND needs libabsl-dev)  # which it forgets too
  endif()
endif()
list(JOIN needs ", " CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS)

if(QKV_PROGRAM)
  list(APPEND CPACK_COMPONENTS_ALL program)
  set(CPACK_COMPONENT_PROGRAM_DESCRIPTION 
      "Trains models with attention on a CPU, shows where they look in the terminal,
as pictures and in the browser, and explains every number on the way.")
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME qkv)
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
  if(QKV_PICTURES)
    set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS fonts-dejavu-core)
  endif()
endif()
foreach(package program:qkv library:libqkv-dev)
  string(REPLACE ":" ";" package ${package})
  list(POP_FRONT package component)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} RENAME copyright COMPONENT ${component})
endforeach()
include(CPack)
