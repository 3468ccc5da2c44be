// What every command's option parser shares: CLI11 set up so that wrong usage is one line and exit code 2.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "qkv/app/command.h"
#include "qkv/base/settings.h"

namespace qkv::app {

/// Parses `arguments`. Returns false after printing --help; throws ConfigError on wrong usage.
bool parse(CLI::App& cli, const Arguments& arguments);

/// Adds one option per setting (--name VALUE; flags as --name / --no-name) that writes into `settings`, but for those
/// named in `without`.
void add_settings(CLI::App& cli, Settings& settings, const std::vector<std::string>& without = {});

/// Adds --weights WHICH, the checkpoint of a run to use.
void add_weights(CLI::App& cli, std::string& which);

/// Adds --threads N.
void add_threads(CLI::App& cli);

}  // namespace qkv::app
