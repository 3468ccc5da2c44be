// Settings with some options changed, as tests state them.
#pragma once

#include <initializer_list>
#include <utility>

#include "qkv/base/settings.h"

namespace qkv::testing {

using Changes = std::initializer_list<std::pair<const char*, const char*>>;

inline Settings changed(Settings settings, Changes changes) {
  for (const auto& [name, value] : changes) settings.set(name, value);
  return settings;
}

}  // namespace qkv::testing
