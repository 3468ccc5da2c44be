// What is said of the whole program: its help, its manual page and the words a command line may begin with.
#pragma once

#include "qkv/app/command.h"

namespace qkv::app {

/// qkv --help.
void print_overview();
/// The manual page, in roff: every command and each of its topics, from the options they declare.
void print_manual();
/// The words that may follow those, one in a line.
void print_next_words(const Arguments& before);

}  // namespace qkv::app
