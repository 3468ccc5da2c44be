// What every command's option parser shares: CLI11 set up so that wrong usage is one line and exit code 2.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "qkv/app/command.h"
#include "qkv/base/settings.h"

namespace qkv::app {

/// A check whose help text says already what is accepted.
inline CLI::Validator silent(CLI::Validator check) { return check.description(""); }

/// Parses `arguments`. Returns false when there is nothing to run: after printing --help, or when the last argument is
/// --check, which any command takes to have its options checked and no more. Throws ConfigError on wrong usage.
bool parse(CLI::App& cli, const Arguments& arguments);

/// Adds one option per setting (--name VALUE; flags as --name / --no-name) that writes into `settings`, but for those
/// named in `without`.
void add_settings(CLI::App& cli, Settings& settings, const std::vector<std::string>& without = {});

/// Adds --name KIND, one of the names of an enumeration; the help text says which, what they mean and the default.
template <class Enum>
CLI::Option* add_choice(CLI::App& cli, const std::string& name, Enum& value) {
  std::vector<std::string> meanings;
  for (const NameRow<Enum>& row : Names<Enum>::rows) {
    meanings.push_back(*row.meaning ? std::string(row.name) + " (" + row.meaning + ")" : row.name);
  }
  return cli
      .add_option_function<std::string>(
          name, [&value](const std::string& text) { value = qkv::parse<Enum>(text); },
          listed(meanings, " or ") + " [" + name_of(value) + "]")
      ->check(silent(CLI::IsMember(choices<Enum>())))
      ->type_name("KIND");
}

/// Adds --weights WHICH, the checkpoint of a run to use.
void add_weights(CLI::App& cli, std::string& which);

/// Adds --threads N.
void add_threads(CLI::App& cli);

}  // namespace qkv::app
