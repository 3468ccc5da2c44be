// What the shell offers to complete, read from the tables of commands and options.
#pragma once

#include <string>
#include <vector>

#include "qkv/app/cli.h"

namespace qkv::app {

/// The words that may follow `before`, one in a line: the values of an option that waits for one; else those of the
/// value without a name whose turn it is, and the options. Nothing for a file, which the shell knows better.
std::string next_words(const std::vector<Option>& options, const Arguments& before);

}  // namespace qkv::app
