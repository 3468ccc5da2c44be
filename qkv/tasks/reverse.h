// Task "reverse": the smallest job that shows what attention is for.
#pragma once

#include <memory>
#include <string>

#include "qkv/tasks/task.h"

namespace qkv {

/// Random strings over an alphabet (4 letters, lengths 1 to 20), written backwards by an encoder-decoder with any
/// mechanism of the attention table. Without attention the whole string must fit through one state.
Settings reverse_settings();
inline constexpr const char* kReverseExamples =
    "  qkv train reverse                                   dot-product attention learns to write backwards\n"
    "  qkv train reverse --attention none --out runs/none  without attention, in a folder of your choice\n"
    "  qkv train reverse --alphabet ab --max-length 30     other strings\n";

inline constexpr const char* kReverseAbout =
    "The model reads a string letter by letter and then writes it backwards. Without attention, everything it knows of "
    "the string must pass through the encoder's last state, a fixed number of values: short strings fit, long ones do "
    "not. With attention the decoder looks back at what was read at every letter it writes, so length costs little. A "
    "string counts as right only when every letter and the end are right.";
std::unique_ptr<Task> make_reverse(const Settings& settings, const std::string& assets);

}  // namespace qkv
