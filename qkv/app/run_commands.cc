// Shared pieces of the commands about runs.
#include "qkv/app/run_commands.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/io/json.h"
#include "qkv/kernels/simd_target.h"
#include "qkv/report/metric_text.h"
#include "qkv/report/trace_maps.h"
#include "qkv/view/table.h"
#include "qkv/view/text.h"

namespace qkv::app {

Arguments task_topics() {
  Arguments names;
  for (const TaskSpec& spec : task_table()) names.emplace_back(spec.name);
  return names;
}

std::string task_names() { return listed(task_topics()); }

void add_task(Cli& cli, const std::string& given, std::string& name) {
  Option& task = cli.text("TASK", name, "NAME", "what to learn: " + task_names()).among(task_topics());
  if (!given.empty()) task.hidden();
  add_config(cli);
}

void add_config(Cli& cli) {
  cli.call("--config", "FILE",
           "task and settings from a JSON file or a run's folder; options that are given count more",
           [](const std::string&) {});
}

Arguments without_option(const Arguments& arguments, const std::string& option) {
  Arguments rest;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == option) {
      ++i;
    } else if (!arguments[i].starts_with(option + "=")) {
      rest.push_back(arguments[i]);
    }
  }
  return rest;
}

Arguments with_config(const Arguments& arguments, const std::vector<std::string>& except) {
  std::string file = option_value(arguments, "--config");
  if (file.empty()) return arguments;
  if (folder_kind(file) == FolderKind::run) file += "/config.json";
  const Json json = read_json(file, "a configuration: {\"task\": NAME, \"settings\": {...}}");
  const JsonObject config(json, file);
  if (!config.has("settings")) {
    throw ConfigError(file +
                      R"( has no settings; it is written {"task": "reverse", "settings": {"epochs": 3}}, as the )"
                      "config.json of a run is");
  }
  Arguments rest = without_option(arguments, "--config");
  std::string task = task_argument(rest);
  if (!task.empty()) rest.erase(rest.begin());
  const std::string named = config.has("task") ? config.text("task") : task;
  if (task.empty()) task = named;
  if (task.empty()) throw ConfigError(file + " names no task; give one: " + task_names());
  if (named != task) throw ConfigError(file + " is of task '" + named + "', not '" + task + "'");
  Arguments all{task};
  try {
    Settings settings = find_task(task).settings();
    for (const auto& [name, value] : config.object("settings").json().items()) {
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      settings.set(name, text);
      if (text.empty() || std::find(except.begin(), except.end(), name) != except.end()) continue;
      const bool flag = value.is_boolean();
      all.push_back(flag ? (text == "true" ? "--" : "--no-") + name : "--" + name + "=" + text);
    }
  } catch (const ConfigError& e) {
    throw ConfigError(file + ": " + e.what());
  }
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

std::string task_argument(const Arguments& arguments) {
  return arguments.empty() || arguments[0].empty() || arguments[0][0] == '-' ? "" : arguments[0];
}

std::string option_value(const Arguments& arguments, const std::string& name) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == name && i + 1 < arguments.size() && arguments[i + 1] != kNextWords) return arguments[i + 1];
    if (arguments[i].starts_with(name + "=")) return arguments[i].substr(name.size() + 1);
  }
  return "";
}

std::string default_name(const TaskSpec& spec, const Settings& settings) {
  return std::string(spec.name) + (settings.has("attention") ? "-" + settings.get_text("attention") : "");
}

std::string run_label(const RunFolder& run) {
  return run.settings().has("attention") ? run.settings().get_text("attention") : run.spec().name;
}

std::string opening_line(const std::string& folder, const TaskSpec& spec, const Settings& settings, int processes) {
  std::string text = folder + ": task " + spec.name + ", seed " + std::to_string(settings.get_integer("seed"));
  if (settings.get_integer("parts") > 1) text += ", --parts " + std::to_string(settings.get_integer("parts"));
  if (processes > 1) text += " on " + std::to_string(processes) + " processes";
  return text + ", " + std::to_string(num_threads()) + (num_threads() == 1 ? " thread" : " threads") +
         (processes > 1 ? " each, " : ", ") + kernels::simd_target();
}

void require_kind(const std::string& folder, FolderKind kind) {
  const FolderKind found = folder_kind(folder);
  if (found == kind) return;
  std::string text = "no " + std::string(name_of(kind)) + " in " + folder;
  if (found == FolderKind::other) {
    text += "; 'qkv runs' lists what there is";
  } else {
    text += ": it is a " + std::string(name_of(found)) + ", which continues with 'qkv " + row_of(found).command +
            " --resume " + folder + "'";
  }
  throw IoError(text);
}

Arguments recorded_arguments(const std::string& folder, FolderKind kind) {
  require_kind(folder, kind);
  const std::string file = folder + "/" + row_of(kind).record;
  return JsonObject(read_json(file, std::string("the record of a ") + name_of(kind)), file).texts("arguments");
}

void print_notes(Task& task) {
  for (const std::string& note : task.notes()) std::fprintf(stderr, "qkv: %s\n", note.c_str());
}

void work_in(const FolderOfRuns& folder, const std::function<void()>& work) {
  const std::string file = folder.path + "/" + folder.record;
  const std::string record = json_text({{"arguments", folder.arguments}}, 2) + "\n";
  std::string before;
  if (folder.fresh) {
    claim_folder(folder.path, folder.record, record);
  } else {
    refuse_links(folder.path);
    before = read_text(file);
    write_file_atomic(file, record);
  }
  try {
    work();
  } catch (const Error&) {
    if (folder.fresh) {
      remove_untrained(folder.path);
    } else {
      write_file_atomic(file, before);
    }
    throw;
  }
}

void print_example_map(Task& task, const std::string& input) {
  const TracedExample traced = task.trace(input);
  if (traced.attention.empty()) return;
  HeatMap map = maps_of(traced).front();
  map.title = input + " → " + traced.output;
  std::fputs(("\n" + terminal_heatmap(map, detect_terminal(STDOUT_FILENO))).c_str(), stdout);
}

void print_report(const std::string& folder) {
  std::printf("\nreport: %s/report.html\nlook further in the browser: qkv serve\n", folder.c_str());
}

void print_result(const RunFolder& run, Task& task, const SessionResult& result) {
  Table table{.header = {"figure", "value"}};
  for (const auto& [name, value] : result.evaluation.metrics) {
    table.rows.push_back({metric_label(name, run.settings()), metric_text(name, value)});
  }
  table.rows.push_back({"parameters", std::to_string(result.parameters)});
  table.rows.push_back({"epochs", std::to_string(result.training.state.epoch)});
  table.rows.push_back({"seconds", format_number(result.training.state.seconds, 3)});
  std::fputs(("\n" + terminal_table(table, detect_terminal(STDOUT_FILENO))).c_str(), stdout);
  for (const std::string& note : result.evaluation.notes) std::printf("%s\n", note.c_str());
  const std::vector<std::string> examples = task.examples(1);
  if (!examples.empty()) print_example_map(task, examples[0]);
  print_report(run.path());
}

}  // namespace qkv::app
