// qkv runs: lists the runs there are, and removes or renames them.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "qkv/app/cli.h"
#include "qkv/base/error.h"
#include "qkv/io/json.h"
#include "qkv/report/metric_text.h"
#include "qkv/tasks/metrics.h"
#include "qkv/train/run_archive.h"
#include "qkv/train/run_folder.h"
#include "qkv/train/run_tree.h"
#include "qkv/view/table.h"
#include "qkv/view/text.h"

namespace qkv::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFooter =
    "Examples:\n"
    "  qkv runs                                     every run below runs/, at any depth\n"
    "  qkv runs --root other                        those below another folder\n"
    "  qkv runs rm runs/reverse-dot                 removes a run, a comparison or a study, nothing else\n"
    "  qkv runs rename runs/reverse-dot first-try   runs/first-try from now on\n"
    "  qkv runs add reverse.tar                     unpacks a run that came as one file\n";

/// What the list says of one run.
struct Listed {
  FoundRun run;
  std::string task, model, metric, error;
  double figure = std::nan("");
  bool finished = false;
  int64_t step = 0;
  double age = 0;  // seconds since it was last written to
  int64_t bytes = 0;
};

/// The figure that counts most: one of those that tasks are judged by, else the loss.
void take_figure(const Metrics& metrics, Listed& l) {
  for (const char* name : {"exact_match", "bleu", "accuracy", "loss"}) {
    const double value = metric_of(metrics, name);
    if (std::isnan(value)) continue;
    l.metric = name;
    l.figure = value;
    return;
  }
}

Metrics finished_figures(const std::string& path) {
  Metrics metrics;
  const Json result = read_json(path, "the result of a run");
  for (const auto& [name, value] : result.items()) {
    if (value.is_number()) metrics.emplace_back(name, value.get<double>());
  }
  return metrics;
}

/// "transformer, multi-head, rotary"; a recurrent model has no positions to encode.
std::string model_of(const Settings& settings) {
  const bool recurrent = settings.has("model") && settings.get_text("model") == "rnn";
  std::string text;
  for (const char* name : {"model", "attention", "positions"}) {
    if (settings.has(name) && !(recurrent && std::string_view(name) == "positions"))
      text += (text.empty() ? "" : ", ") + settings.get_text(name);
  }
  return text;
}

void take_files(const std::string& path, Listed& l) {
  fs::file_time_type newest = fs::file_time_type::min();
  std::error_code error;
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (!it->is_regular_file(gone)) continue;
    l.bytes += static_cast<int64_t>(it->file_size(gone));
    newest = std::max(newest, it->last_write_time(gone));
  }
  l.age = std::max(0.0, std::chrono::duration<double>(fs::file_time_type::clock::now() - newest).count());
}

Listed describe(const FoundRun& run) {
  Listed l;
  l.run = run;
  take_files(run.path, l);
  try {
    const RunFolder folder = RunFolder::open(run.path);
    l.task = folder.spec().name;
    l.model = model_of(folder.settings());
    if (const std::vector<int64_t> steps = folder.checkpoints(); !steps.empty()) l.step = steps.back();
    const std::string result = run.path + "/result.json";
    l.finished = fs::exists(result);
    if (l.finished) {
      take_figure(finished_figures(result), l);
    } else if (const std::vector<EvaluationRecord> history = folder.history(); !history.empty()) {
      take_figure(history.back().validation, l);
    }
  } catch (const Error& e) {
    l.error = e.what();
  }
  return l;
}

/// "now", "5 min", "3 h", "12 days".
std::string age_text(double seconds) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
  const auto whole = [&](double unit, const char* name) {
    return std::to_string(static_cast<int64_t>(seconds / unit)) + " " + name;
  };
  if (seconds < kMinute) return "now";
  if (seconds < 2 * kHour) return whole(kMinute, "min");
  if (seconds < 2 * kDay) return whole(kHour, "h");
  return whole(kDay, "days");
}

std::string size_text(int64_t bytes) {
  constexpr double kMega = 1e6, kGiga = 1e9;
  const auto b = static_cast<double>(bytes);
  return b < kGiga ? format_number(b / kMega, 2) + " MB" : format_number(b / kGiga, 3) + " GB";
}

void print_list(const std::vector<Listed>& all, const std::string& root) {
  if (all.empty()) {
    std::printf("no runs below %s; 'qkv train reverse' makes one in a minute\n", root.c_str());
    return;
  }
  Table table{.header = {"run", "task", "model", "figure", "age", "size"}};
  std::string group;
  for (const Listed& l : all) {
    if (l.run.group != group && !l.run.group.empty()) {
      const std::string path = root + "/" + l.run.group;
      table.rows.push_back({path, "", name_of(folder_kind(path)), "", "", ""});
    }
    group = l.run.group;
    std::string figure = l.metric.empty() ? "" : metric_label(l.metric) + " " + metric_text(l.metric, l.figure);
    if (!l.finished) figure += (figure.empty() ? "" : ", ") + ("step " + std::to_string(l.step) + ", unfinished");
    if (!l.error.empty()) figure = "cannot be read";
    table.rows.push_back({l.run.path, l.task, l.model, figure, age_text(l.age), size_text(l.bytes)});
  }
  // Names are there to be copied, so none is shortened; other programs get one line for each run.
  Terminal terminal = detect_terminal(STDOUT_FILENO);
  if (!terminal.tty) terminal.width = std::numeric_limits<int>::max();
  std::fputs(terminal_table(table, terminal, TableWords::whole).c_str(), stdout);
  for (const Listed& l : all) {
    if (!l.error.empty()) std::fprintf(stderr, "qkv: %s\n", l.error.c_str());
  }
}

std::string list_json(const std::vector<Listed>& all) {
  Json list = Json::array();
  for (const Listed& l : all) {
    Json one{{"id", l.run.id}, {"path", l.run.path}};
    if (!l.run.group.empty()) one["group"] = l.run.group;
    if (!l.error.empty()) one["error"] = l.error;
    if (l.error.empty()) {
      one["task"] = l.task;
      one["model"] = l.model;
      one["finished"] = l.finished;
      one["step"] = l.step;
    }
    if (!l.metric.empty()) one[l.metric] = figure_json(l.figure);
    one["age_seconds"] = std::round(l.age);
    one["bytes"] = l.bytes;
    list.push_back(std::move(one));
  }
  return json_text({{"runs", list}});
}

int remove_all(const Arguments& arguments) {
  Cli cli("Removes runs, comparisons and studies; nothing else, and none that is being trained.", "runs rm");
  std::vector<std::string> paths;
  cli.texts("RUN", paths, "DIR", "the folders").required();
  if (!cli.parse(arguments)) return 0;
  for (const std::string& path : paths) {
    remove_runs(path);
    std::printf("removed %s\n", path.c_str());
  }
  return 0;
}

int rename_one(const Arguments& arguments) {
  Cli cli("Renames a run, a comparison or a study.", "runs rename");
  std::string path, name;
  cli.text("RUN", path, "DIR", "the folder").required();
  cli.text("NAME", name, "TEXT", "its new name in the same folder, or a whole path").required();
  if (!cli.parse(arguments)) return 0;
  std::printf("%s is now %s\n", path.c_str(), rename_runs(path, name).c_str());
  return 0;
}

int add_archives(const Arguments& arguments) {
  Cli cli("Unpacks runs that came as .tar files, as 'tar cf' packs a run's folder.", "runs add");
  std::vector<std::string> files;
  std::string root = "runs";
  cli.texts("FILE", files, "FILE", "the archives, each of one run").required();
  cli.text("--root", root, "DIR", "where the runs are put [runs]");
  if (!cli.parse(arguments)) return 0;
  for (const std::string& file : files) {
    std::error_code error;
    const bool pipe = fs::exists(file, error) && !fs::is_regular_file(file, error);
    const std::string run =
        pipe ? unpack_run(read_file(file), file, root) : unpack_run(*ByteSource::of_file(file), file, root);
    std::printf("%s is now %s\n", file.c_str(), run.c_str());
  }
  return 0;
}

}  // namespace

int run_runs(const Arguments& arguments) {
  const std::string first = arguments.empty() ? "" : arguments[0];
  const Arguments rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  if (first == "rm") return remove_all(rest);
  if (first == "rename") return rename_one(rest);
  if (first == "add") return add_archives(rest);
  Cli cli("Lists the runs there are: task, model, figure, age and size. 'rm', 'rename' and 'add' change them.", "runs");
  std::string root = "runs", what = "list";
  bool json = false;
  const std::vector<std::string> actions = {"list", "rm", "rename", "add"};
  if (!first.empty() && first[0] != '-' && std::find(actions.begin(), actions.end(), first) == actions.end()) {
    throw ConfigError("runs: '" + first + "' is not one of: " + listed(actions) + did_you_mean(first, actions) +
                      "; runs elsewhere are listed with --root DIR; see 'qkv runs --help'");
  }
  cli.choice("WHAT", what, "KIND", "list, rm, rename or add [list]", actions);
  cli.text("--root", root, "DIR", "where runs are looked for [runs]");
  cli.flag("--json", json, "one JSON object on standard output");
  cli.footer(kFooter);
  if (!cli.parse(arguments)) return 0;
  std::error_code error;
  if (cli.given("--root") && !fs::is_directory(root, error))
    throw IoError("--root " + root + ": there is no such folder");
  require_readable(root);
  std::vector<Listed> all;
  for (const FoundRun& run : find_runs(root)) all.push_back(describe(run));
  if (json) {
    std::printf("%s\n", list_json(all).c_str());
  } else {
    print_list(all, root);
  }
  return 0;
}

}  // namespace qkv::app
