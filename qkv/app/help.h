// The text of a command's help.
#pragma once

#include <string>
#include <vector>

#include "qkv/app/cli.h"

namespace qkv::app {

/// What the command does, how it is called, its options by section, and the footer; as wide as the terminal.
std::string help_text(const std::string& about, const std::string& name, const std::vector<Option>& options,
                      const std::string& footer);
/// The same as a section of the manual page, in roff.
std::string manual_text(const std::string& about, const std::string& name, const std::vector<Option>& options,
                        const std::string& footer);
/// A text as roff: nothing in it is taken for a request or an escape, hyphens can be copied.
std::string roff(const std::string& text);
/// A row of a list in roff: what it is about, and the text.
std::string roff_row(const std::string& left, const std::string& text);

}  // namespace qkv::app
