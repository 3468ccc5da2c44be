// The commands of the program: one file each, one row in the table of commands.cc.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace qkv::app {

using Arguments = std::vector<std::string>;  // without the program's and the command's name

struct Command {
  const char* group;  // what one does with it: "learn", "train", "look", "use", "measure"
  const char* name;
  const char* summary;
  int (*run)(const Arguments& arguments);  // returns the exit code; throws qkv::Error
  Arguments (*topics)() = nullptr;         // words after its name that have a help of their own
};

/// All commands, in the order --help lists them, those of a group together.
std::span<const Command> command_table();

/// "qkv 0.1.0 (Release, AVX2, commit 1a2b3c4d5e)": version, kind of build, instruction set and commit. The program's
/// own, linked to nothing else: a new commit recompiles one file.
std::string version_text();

/// The tasks by name.
Arguments task_topics();
Arguments lab_topics();

int run_train(const Arguments& arguments);
int run_compare(const Arguments& arguments);
int run_study(const Arguments& arguments);
int run_runs(const Arguments& arguments);
int run_eval(const Arguments& arguments);
int run_predict(const Arguments& arguments);
int run_map(const Arguments& arguments);
int run_attend(const Arguments& arguments);
int run_explain(const Arguments& arguments);
int run_serve(const Arguments& arguments);
int run_site(const Arguments& arguments);
int run_lab(const Arguments& arguments);
int run_bench(const Arguments& arguments);

}  // namespace qkv::app
