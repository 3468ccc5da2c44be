# qkv_headers(NAME header): an interface library NAME of a header-only package of this machine. Its folder alone is
# linked into the build: the whole of /usr/include would hide emscripten's own headers.
function(qkv_headers name header)
  string(REGEX REPLACE "/.*" "" folder ${header})
  find_path(found_${folder} ${header} PATHS /usr/include /usr/local/include NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
  if(found_${folder})
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include)
    file(CREATE_LINK ${found_${folder}}/${folder} ${PROJECT_BINARY_DIR}/include/${folder} SYMBOLIC)
    add_library(${name} INTERFACE IMPORTED GLOBAL)
    target_include_directories(${name} SYSTEM INTERFACE ${PROJECT_BINARY_DIR}/include)
  endif()
endfunction()
