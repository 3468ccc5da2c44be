// The text of a command's help.
#pragma once

#include <string>
#include <vector>

#include "qkv/app/cli.h"

namespace qkv::app {

/// What the command does, how it is called, its options by section, and the footer; as wide as the terminal.
std::string help_text(const std::string& about, const std::string& name, const std::vector<Option>& options,
                      const std::string& footer);

}  // namespace qkv::app
