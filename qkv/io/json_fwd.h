// The name of a JSON value, for headers that only pass one on: the whole of it costs each file seconds to compile.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace qkv {

using Json = nlohmann::ordered_json;

}  // namespace qkv
