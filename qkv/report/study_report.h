// The knowledge study on one page.
#pragma once

#include <string>
#include <vector>

#include "qkv/figures/figures.h"
#include "qkv/study/knowledge.h"

namespace qkv {

/// row, parameters, epochs read, machine hours, right answers: the state of each row.
Table study_table(const std::vector<StudyResult>& results, const Baseline& baseline);
/// folder/report.html: the table, accuracy over machine hours, and what the best model says about people it never read
/// about; `command` is what makes the same study again. Throws IoError.
void save_study_report(const StudyOptions& options, const std::vector<StudyResult>& results, const Baseline& baseline,
                       const std::string& command);

}  // namespace qkv
