// The figures of runs as tables and curves, of one run alone or of several side by side.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qkv/train/session.h"
#include "qkv/view/heatmap.h"
#include "qkv/view/plot.h"
#include "qkv/view/table.h"

namespace qkv {

/// Everything a report shows of one run.
struct ReportedRun {
  const TaskSpec* spec = nullptr;
  SessionResult result;
  Settings settings;
  Goal goal;
  std::vector<EvaluationRecord> history;
  struct Example {
    std::string input, output;
    std::string why;  // it was chosen; may be empty
    std::vector<HeatMap> maps;
    std::optional<Drawing> over_picture = {};  // the maps laid over the picture the model saw
  };
  std::vector<Example> examples;  // empty for a model without attention
  std::string simd = {};          // the instruction set it began with
};

/// One row per run: parameters, epochs, mean and variance of the losses over the epochs, the final figures, seconds.
Table result_table(const std::vector<ReportedRun>& runs);
/// One row per mechanism, for runs that differ in attention and seed alone: mean and variance over the seeds of the
/// last validation loss, of the mean loss over the epochs, and of the goal's figure.
Table seed_table(const std::vector<ReportedRun>& runs);
/// What the two variances say.
inline constexpr const char* kAboutVariances =
    "The variance over the epochs belongs to one run: it is large where the loss came down far, so a model that learns "
    "more has more of it. The variance over the seeds compares runs that differ in nothing else: that one means "
    "instability.";
/// Rows become columns: for few runs with many figures.
Table transposed(const Table& table);
/// Training (dashed) and validation loss over the epochs, one colour per run.
Plot loss_plot(const std::vector<ReportedRun>& runs);
/// The goal's figure over the epochs.
Plot goal_plot(const std::vector<ReportedRun>& runs);
/// One plot per breakdown ("exact match by length"), one line per run; bars where the groups have names.
std::vector<Drawing> breakdown_plots(const std::vector<ReportedRun>& runs);

/// The runs of the first seed, of runs in the order of a Comparison.
std::vector<ReportedRun> first_seed_of(const std::vector<ReportedRun>& runs, int64_t seeds);

/// Mean and variance of a curve over the evaluations of a run.
struct Spread {
  double mean = 0, variance = 0;
};
Spread spread_of(const std::vector<double>& values);

}  // namespace qkv
