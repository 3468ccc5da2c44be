# Highway as WebAssembly needs it: its headers.
include(${CMAKE_CURRENT_LIST_DIR}/headers.cmake)
qkv_headers(hwy::hwy hwy/highway.h)
if(NOT TARGET hwy::hwy)
  set(hwy_FOUND FALSE)
endif()
