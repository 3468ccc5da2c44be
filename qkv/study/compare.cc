// Training one model for each mechanism.
#include "qkv/study/compare.h"

#include <algorithm>

#include "qkv/base/error.h"
#include "qkv/io/json.h"

namespace qkv {
namespace {

Settings settings_of(const CompareOptions& options, const std::string& mechanism, int64_t further = 0) {
  Settings settings = options.settings;
  settings.set("attention", mechanism);
  if (further > 0) settings.set("seed", std::to_string(options.settings.get_integer("seed") + further));
  return settings;
}

/// Trains one mechanism with the seed `further` steps after the first; false when it was interrupted.
bool run_one(const CompareOptions& options, const std::string& mechanism, int64_t further, Comparison& comparison,
             RunsObserver* observer) {
  const Settings settings = settings_of(options, mechanism, further);
  const std::string seed = std::to_string(settings.get_integer("seed"));
  const std::string path = options.folder + "/" + mechanism + (further > 0 ? "-seed-" + seed : "");
  OpenedRun run = open_or_create(path, *options.spec, settings);
  SessionResult result = run_watched(run, options.seeds > 1 ? mechanism + ", seed " + seed : mechanism, observer);
  comparison.interrupted = result.training.interrupted;
  if (!comparison.interrupted) comparison.runs.push_back(std::move(result));
  return !comparison.interrupted;
}

}  // namespace

void check(const CompareOptions& options) {
  if (!options.settings.has("attention")) {
    throw ConfigError("task '" + std::string(options.spec->name) + "' has no choice of attention to compare");
  }
  for (auto m = options.mechanisms.begin(); m != options.mechanisms.end(); ++m) {
    settings_of(options, *m);
    if (std::find(options.mechanisms.begin(), m, *m) != m)
      throw ConfigError("--attention: '" + *m + "' is given twice");
  }
}

Comparison compare(const CompareOptions& options, RunsObserver* observer) {
  check(options);
  make_folders(options.folder);
  Comparison comparison;
  for (const std::string& mechanism : options.mechanisms) {
    for (int64_t further = 0; further < options.seeds; ++further) {
      if (!run_one(options, mechanism, further, comparison, observer)) return comparison;
    }
  }
  return comparison;
}

bool compare_apart(const CompareOptions& options, RunsObserver* observer, Processes& processes) {
  check(options);
  Comparison mine;
  int64_t run = 0;
  for (const std::string& mechanism : options.mechanisms) {
    for (int64_t further = 0; further < options.seeds; ++further, ++run) {
      if (mine.interrupted || run % processes.size() != processes.rank()) continue;
      run_one(options, mechanism, further, mine, observer);
    }
  }
  return !any_of(processes, mine.interrupted);
}

std::string comparison_json(const CompareOptions& options, const Comparison& comparison) {
  Json list = Json::array();
  double seconds = 0;
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    const SessionResult& r = comparison.runs[i];
    const Settings settings = settings_of(options, r.label, static_cast<int64_t>(i) % options.seeds);
    list.push_back(parse_json(result_json(r, settings), {.where = r.run}));
    seconds += r.training.state.seconds;
  }
  return Json{{"task", options.spec->name}, {"seed", options.settings.get_integer("seed")}, {"seeds", options.seeds},
              {"seconds", seconds},         {"report", options.folder + "/report.html"},    {"runs", list}}
      .dump();
}

}  // namespace qkv
