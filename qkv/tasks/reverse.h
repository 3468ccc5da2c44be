// Task "reverse": the smallest job that shows what attention is for.
#pragma once

#include <memory>
#include <string>

#include "qkv/tasks/task.h"

namespace qkv {

/// Random strings over an alphabet (4 letters, lengths 1 to 20), written backwards by an encoder-decoder with any
/// mechanism of the attention table. Without attention the whole string must fit through one state.
Settings reverse_settings();
std::unique_ptr<Task> make_reverse(const Settings& settings, const std::string& assets);

}  // namespace qkv
