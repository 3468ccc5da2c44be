// Reports of runs: one of them alone, or several side by side, as one self-contained HTML page.
#pragma once

#include "qkv/report/run_figures.h"

namespace qkv {

/// Reads the folder's history and traces a few of the task's examples.
ReportedRun reported_run(const RunFolder& folder, Task& task, const SessionResult& result);

/// `sections`: what the task itself has to show (Task::report_sections), for a report of one run. Throws IoError.
void save_report(const std::string& path, const std::vector<ReportedRun>& runs,
                 const std::vector<Section>& sections = {});
/// folder/report.html of one run.
void save_run_report(Task& task, const ReportedRun& run);

/// folder/report.html and curves.svg of a comparison: the runs of the first seed, and a table over all seeds.
void save_comparison_report(const std::string& folder, const std::vector<ReportedRun>& runs, int64_t seeds);

}  // namespace qkv
