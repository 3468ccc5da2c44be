// Task "translate": sentences of one language into another, by a recurrent model or a Transformer.
#pragma once

#include "qkv/tasks/task.h"

namespace qkv {

Settings translate_settings();
std::unique_ptr<Task> make_translate(const Settings& settings, const std::string& assets);

}  // namespace qkv
