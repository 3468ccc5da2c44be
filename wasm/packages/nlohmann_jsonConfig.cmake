# nlohmann JSON as WebAssembly needs it: its headers.
include(${CMAKE_CURRENT_LIST_DIR}/headers.cmake)
qkv_headers(nlohmann_json::nlohmann_json nlohmann/json.hpp)
if(NOT TARGET nlohmann_json::nlohmann_json)
  set(nlohmann_json_FOUND FALSE)
endif()
