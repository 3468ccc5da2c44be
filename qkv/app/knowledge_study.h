// The knowledge study: every row trained, finetuned from several moments of its reading, and shown on one page.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "qkv/train/session.h"
#include "qkv/view/table.h"

namespace qkv::app {

/// One row of the study.
struct StudyRow {
  std::string name;  // "none", "pretrained", "synthesizer", "rotary"
  std::string attention = "multi-head", positions = "learned";
  bool reads = true;
};
/// Throws ConfigError listing the rows that exist.
StudyRow study_row(const std::string& name);
/// All of them, in the order of the table.
std::vector<std::string> study_row_names();

struct StudyOptions {
  std::string folder;
  std::vector<std::string> rows;
  Settings reading;           // of stage "pretrain"; attention and positions are set by the row
  int64_t answer_epochs = 3;  // of the finetuning
  int64_t alone_epochs = 75;  // of the row that reads nothing
  int64_t moments = 4;        // how often on the way a row is finetuned and asked
  std::string command;        // for the report
};

/// The recipe of the study on real data, or on the generated corpus when `data` is empty (a smaller model).
Settings study_reading(const std::string& data);

/// What one finetuning gave.
struct StudyPoint {
  int64_t epochs = 0;                  // read
  double machine_hours = 0;            // spent reading: processor time over two cores
  std::optional<double> reading_loss;  // of the last evaluation before; none when it read nothing or was not evaluated
  double exact_match = 0, held_match = 0;  // on dev, and on the training pairs kept back
  std::string run;                         // the finetuned run
};
struct StudyResult {
  std::string row;
  int64_t parameters = 0;
  std::vector<StudyPoint> points;
};

/// Goes on where the folder's runs stand; a finished part is read, not repeated. 0 when done, or the signal that
/// stopped it (everything is saved). Writes results.json after every part.
int run_knowledge_study(const StudyOptions& options, std::FILE* out);
/// What results.json holds: every row of this and of earlier sessions. Throws IoError when it is damaged.
std::vector<StudyResult> study_results(const std::string& folder);

/// The most common place among the training pairs, and how far it goes on dev.
struct Baseline {
  std::string answer;
  double exact_match = 0;
  std::optional<double> open_book;  // right answers of names looked up in each text, where the recipe uses such names
};
Baseline study_baseline(const StudyOptions& options);

/// row, parameters, epochs read, machine hours, right answers: where each row stands.
Table study_table(const std::vector<StudyResult>& results, const Baseline& baseline);
/// folder/report.html: the table, accuracy over machine hours, and what the best model says about people it never read
/// about. Throws IoError.
void save_study_report(const StudyOptions& options, const std::vector<StudyResult>& results, const Baseline& baseline);
/// One JSON object on one line.
std::string study_json(const StudyOptions& options, const std::vector<StudyResult>& results);

}  // namespace qkv::app
