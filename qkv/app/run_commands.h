// What the commands about tasks and runs share.
#pragma once

#include <functional>
#include <string>

#include "qkv/app/cli.h"
#include "qkv/train/run_folder.h"
#include "qkv/train/run_tree.h"
#include "qkv/train/session.h"

namespace qkv::app {

/// "reverse, translate, …".
std::string task_names();
/// Declares TASK, the first word of a command that trains (the help leaves it out where it was given), and --config.
void add_task(Cli& cli, const std::string& given, std::string& name);
void add_config(Cli& cli);
/// The first argument when it is a word; "" when it is an option or there is none.
std::string task_argument(const Arguments& arguments);
/// The value given as `--name VALUE` or `--name=VALUE`; "" when it is not there. For what must be known before the
/// other options can be declared.
std::string option_value(const Arguments& arguments, const std::string& name);

/// `arguments` without an option and its value.
Arguments without_option(const Arguments& arguments, const std::string& option);
/// `arguments` with what --config FILE says in place of that option: the file's task as the first word, and its
/// settings, but for those in `except`, before all others, so that an option that is given counts more. FILE is
/// {"task": NAME, "settings": {…}}, as the config.json of a run, or a run's folder. Throws IoError, ConfigError.
Arguments with_config(const Arguments& arguments, const std::vector<std::string>& except = {});

/// "reverse-dot".
std::string default_name(const TaskSpec& spec, const Settings& settings);
/// What a run is called in lines about it: its mechanism, or its task.
std::string run_label(const RunFolder& run);

/// "runs/reverse-dot: task reverse, seed 1, 2 threads, AVX2"; with "--parts 4 on 3 processes" where an update has
/// parts.
std::string opening_line(const std::string& folder, const TaskSpec& spec, const Settings& settings, int processes = 1);

/// Throws IoError unless the folder is a comparison (or study), with the command that continues what it is.
void require_kind(const std::string& folder, FolderKind kind);
/// What the comparison or study in that folder was asked for. Throws as above.
Arguments recorded_arguments(const std::string& folder, FolderKind kind);

/// What the task has to say about its data, on standard error.
void print_notes(Task& task);

/// The folder of a command that trains several runs, with a record of its arguments.
struct FolderOfRuns {
  std::string path, record;  // the record's name
  Arguments arguments;
  bool fresh = true;  // not resumed
};
/// Does the work in it. What is refused changes nothing: a new folder goes unless something was trained, and the record
/// of a resumed one is as before. Throws IoError when another process has started in the folder in the meantime.
void work_in(const FolderOfRuns& folder, const std::function<void()>& work);

/// The result's table, the task's first example as a map, and print_report.
void print_result(const RunFolder& run, Task& task, const SessionResult& result);
/// The map of one example of a run, in the terminal; nothing for a model without attention.
void print_example_map(Task& task, const std::string& input);
/// Where the report of what was trained in a folder is, and what to try next.
void print_report(const std::string& folder);

}  // namespace qkv::app
