// A comparison: one model for each attention mechanism, under one seed or several.
#pragma once

#include <string>
#include <vector>

#include "qkv/train/session.h"

namespace qkv {

struct CompareOptions {
  const TaskSpec* spec = nullptr;
  std::vector<std::string> mechanisms;  // values of the setting "attention"
  Settings settings;                    // of every run; "attention" is set by the mechanism
  std::string folder;                   // one run below it for each mechanism, and for each further seed
  int64_t seeds = 1;                    // runs of each mechanism: the seed of the settings, the next one, …
};

struct Comparison {
  std::vector<SessionResult> runs;  // those that finished, in the order of the mechanisms, seed by seed
  bool interrupted = false;         // by the observer: the same call continues
};

/// Throws ConfigError for a task without a choice of attention, and for mechanisms it does not have or that are named
/// twice.
void check(const CompareOptions& options);
/// Trains every mechanism; runs that are already in the folder continue. Throws what check and run_session do.
Comparison compare(const CompareOptions& options, RunsObserver* observer = nullptr);

/// The same on several processes that see one folder: each trains some of the runs alone. False when one was
/// interrupted; otherwise compare() then finds them all finished.
bool compare_apart(const CompareOptions& options, RunsObserver* observer, Processes& processes);

/// One JSON object on one line: task, seed, seeds, seconds, report, and result_json of every run.
std::string comparison_json(const CompareOptions& options, const Comparison& comparison);

}  // namespace qkv
