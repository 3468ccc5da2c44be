// Task "text": plain causal language modelling of any UTF-8 text.
#pragma once

#include <memory>
#include <string>

#include "qkv/tasks/task.h"

namespace qkv {

Settings text_settings();
inline constexpr const char* kTextExamples =
    "  qkv train text                            generated sentences, a small model\n"
    "  qkv train text --data book.txt            your own text\n"
    "  qkv train text --data book.txt --tokenizer bpe --vocabulary 4000\n";

inline constexpr const char* kTextAbout =
    "The model reads a text from left to right and predicts each token from those before it. The text it writes "
    "begins with a few words given to it and continues with what it finds likely.";
std::unique_ptr<Task> make_text(const Settings& settings, const std::string& assets);

}  // namespace qkv
