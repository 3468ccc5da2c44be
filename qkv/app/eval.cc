// qkv eval: the figures of a trained run, on its own data or on the user's.
#include <unistd.h>

#include <cstdio>

#include "qkv/app/cli.h"
#include "qkv/app/run_commands.h"
#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/io/json.h"
#include "qkv/report/metric_text.h"
#include "qkv/tasks/knowledge/knowledge.h"
#include "qkv/view/table.h"
#include "qkv/view/text.h"

namespace qkv::app {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  qkv eval runs/reverse-dot                    validation figures, exact match by length, errors\n"
    "  qkv eval runs/reverse-dot --data my.txt      the same on your own strings, one per line\n"
    "  qkv eval runs/reverse-dot --weights last     the newest checkpoint instead of the best\n"
    "  qkv eval runs/translate --data multi30k      BLEU on the test sets of a folder (or two files: a.de,a.en)\n"
    "  qkv eval runs/images-multi-head --data test  the test set of the images it was trained on\n"
    "  qkv eval --baseline London --data birth_dev.tsv   how far one answer to every question goes\n";

void print_tables(const Evaluation& e, const Settings& settings) {
  const Terminal terminal = detect_terminal(STDOUT_FILENO);
  Table figures{.header = {"figure", "value"}};
  for (const auto& [name, value] : e.metrics) {
    figures.rows.push_back({metric_label(name, settings), metric_text(name, value)});
  }
  std::fputs(terminal_table(figures, terminal).c_str(), stdout);
  for (const std::string& note : e.notes) std::printf("%s\n", note.c_str());
  for (const Breakdown& b : e.breakdowns) {
    Table table{.header = {b.by, metric_label(b.metric), "cases"}};
    for (size_t i = 0; i < b.x.size(); ++i) {
      std::string group = group_name(b, i);
      if (b.trained_to > 0 && b.x[i] > b.trained_to) group += " (not trained on)";
      table.rows.push_back({group, metric_text(b.metric, b.y[i]), std::to_string(b.counts[i])});
    }
    std::fputs(("\n" + terminal_table(table, terminal)).c_str(), stdout);
  }
  if (e.errors.empty()) return;
  Table errors{.title = "some that came out wrong", .header = {"input", "expected", "written"}};
  for (const Case& c : e.errors) errors.rows.push_back({c.input, c.expected, c.predicted});
  std::fputs(("\n" + terminal_table(errors, terminal)).c_str(), stdout);
}

std::string as_json(const std::string& run, const std::string& weights, const Evaluation& e) {
  Json j{{"run", run}, {"weights", weights}};
  for (const auto& [name, value] : e.metrics) j[name] = value;
  for (const Breakdown& b : e.breakdowns) {
    Json groups = Json::object();
    for (size_t i = 0; i < b.x.size(); ++i) groups[group_name(b, i)] = b.y[i];
    j[b.name] = groups;
    if (b.trained_to > 0) j["trained_to_" + b.by] = b.trained_to;
  }
  Json errors = Json::array();
  for (const Case& c : e.errors)
    errors.push_back({{"input", c.input}, {"expected", c.expected}, {"predicted", c.predicted}});
  j["errors"] = errors;
  if (!e.notes.empty()) j["notes"] = e.notes;
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

int run_eval(const Arguments& arguments) {
  Cli cli("Evaluates a trained run.", "eval");
  std::string path, data, weights, baseline;
  std::vector<std::pair<std::string, std::string>> changes;
  bool json = false, replace_missing = false;
  cli.text("RUN", path, "DIR", "the run's folder");
  cli.text("--data", data, "DATA", "data of the task's own kind: a file, a folder or SRC,TGT [the validation data]");
  for (const char* name : {"beam", "length-penalty"}) {
    cli.call(std::string("--") + name, "X", "search of a translator [the run's own]",
             [&changes, name](const std::string& value) { changes.emplace_back(name, value); });
  }
  cli.text("--baseline", baseline, "ANSWER", "instead of a run: one answer to every question of --data (knowledge)");
  cli.flag("--replace-missing", replace_missing, "map characters that the vocabulary lacks to '?'");
  cli.weights(weights);
  cli.flag("--json", json, "one JSON object on standard output");
  cli.footer(kFooter);
  if (!cli.parse(arguments)) return 0;
  if (!baseline.empty()) {
    if (!path.empty()) throw ConfigError("--baseline needs no run: leave " + path + " out");
    const Evaluation e = knowledge_baseline(baseline, data);
    if (json) {
      std::printf("%s\n", as_json("baseline " + baseline, "", e).c_str());
    } else {
      print_tables(e, {});
    }
    return 0;
  }
  if (path.empty()) throw ConfigError("give a run's folder to evaluate, or --baseline ANSWER; see 'qkv eval --help'");
  OpenedRun run = load_run(path, weights, changes);
  if (replace_missing && !run.task->replace_missing()) {
    throw ConfigError("task '" + std::string(run.folder.spec().name) +
                      "' refuses no characters: leave --replace-missing out");
  }
  const NoGrad no_grad;
  const Evaluation e = run.task->evaluate(data);
  if (json) {
    std::printf("%s\n", as_json(path, run.weights, e).c_str());
  } else {
    print_tables(e, run.folder.settings());
  }
  return 0;
}

}  // namespace qkv::app
