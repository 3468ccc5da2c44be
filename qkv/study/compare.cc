// Training one model for each mechanism.
#include "qkv/study/compare.h"

#include <algorithm>

#include "qkv/base/error.h"
#include "qkv/io/json.h"

namespace qkv {
namespace {

Settings settings_of(const CompareOptions& options, const std::string& mechanism) {
  Settings settings = options.settings;
  settings.set("attention", mechanism);
  return settings;
}

}  // namespace

void check(const CompareOptions& options) {
  if (!options.settings.has("attention")) {
    throw ConfigError("task '" + std::string(options.spec->name) + "' has no choice of attention to compare");
  }
  for (auto m = options.mechanisms.begin(); m != options.mechanisms.end(); ++m) {
    settings_of(options, *m);
    if (std::find(options.mechanisms.begin(), m, *m) != m)
      throw ConfigError("--attention: '" + *m + "' is there twice");
  }
}

Comparison compare(const CompareOptions& options, RunsObserver* observer) {
  check(options);
  make_folders(options.folder);
  Comparison comparison;
  for (const std::string& mechanism : options.mechanisms) {
    OpenedRun run = open_or_create(options.folder + "/" + mechanism, *options.spec, settings_of(options, mechanism));
    SessionResult result = run_watched(run, mechanism, observer);
    comparison.interrupted = result.training.interrupted;
    if (comparison.interrupted) break;
    comparison.runs.push_back(std::move(result));
  }
  return comparison;
}

std::string comparison_json(const CompareOptions& options, const Comparison& comparison) {
  Json list = Json::array();
  double seconds = 0;
  for (const SessionResult& r : comparison.runs) {
    list.push_back(parse_json(result_json(r, settings_of(options, r.label)), {.where = r.run}));
    seconds += r.training.state.seconds;
  }
  return Json{{"task", options.spec->name},
              {"seed", options.settings.get_integer("seed")},
              {"seconds", seconds},
              {"report", options.folder + "/report.html"},
              {"runs", list}}
      .dump();
}

}  // namespace qkv
