// Shared pieces of the commands about runs.
#include "qkv/app/run_commands.h"

#include <unistd.h>

#include <cstdio>

#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/io/json.h"
#include "qkv/report/metric_text.h"
#include "qkv/report/trace_maps.h"
#include "qkv/view/table.h"
#include "qkv/view/text.h"

namespace qkv::app {

std::string task_names() {
  std::string names;
  for (const TaskSpec& spec : task_table()) names += (names.empty() ? "" : ", ") + std::string(spec.name);
  return names;
}

std::string task_argument(const Arguments& arguments) {
  return arguments.empty() || arguments[0].empty() || arguments[0][0] == '-' ? "" : arguments[0];
}

std::string option_value(const Arguments& arguments, const std::string& name) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == name && i + 1 < arguments.size()) return arguments[i + 1];
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

std::string opening_line(const std::string& folder, const TaskSpec& spec, const Settings& settings) {
  return folder + ": task " + spec.name + ", seed " + std::to_string(settings.get_integer("seed")) + ", " +
         std::to_string(num_threads()) + (num_threads() == 1 ? " thread" : " threads");
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

void print_result(const RunFolder& run, Task& task, const SessionResult& result) {
  Table table{.header = {"figure", "value"}};
  for (const auto& [name, value] : result.evaluation.metrics) {
    table.rows.push_back({metric_label(name), metric_text(name, value)});
  }
  table.rows.push_back({"parameters", std::to_string(result.parameters)});
  table.rows.push_back({"epochs", std::to_string(result.training.state.epoch)});
  table.rows.push_back({"seconds", format_number(result.training.state.seconds, 3)});
  std::fputs(("\n" + terminal_table(table, detect_terminal(STDOUT_FILENO))).c_str(), stdout);
  for (const std::string& note : result.evaluation.notes) std::printf("%s\n", note.c_str());
  const std::vector<std::string> examples = task.examples(1);
  if (!examples.empty()) print_example_map(task, examples[0]);
  std::printf("\nreport: %s/report.html\n", run.path().c_str());
}

}  // namespace qkv::app
