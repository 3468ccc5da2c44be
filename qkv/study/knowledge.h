// The knowledge study: every row trained, and finetuned from several moments of its reading.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qkv/train/session.h"

namespace qkv {

/// One row of the study.
struct StudyRow {
  const char* name;
  const char *attention, *positions;
  bool reads;
};
std::span<const StudyRow> study_rows();
/// Throws ConfigError listing the rows that exist.
const StudyRow& study_row(const std::string& name);

struct StudyOptions {
  std::string folder;
  std::vector<std::string> rows;  // names of the table
  Settings reading;               // of stage "pretrain"; attention and positions are set by the row
  int64_t answer_epochs = 3;      // of the finetuning
  int64_t alone_epochs = 75;      // of the row that reads nothing
  int64_t moments = 4;            // how often on the way a row is finetuned and asked
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

/// Continues where the folder's runs stand; a finished part is read, not repeated. False when the observer stopped it
/// (everything is saved, and the same call continues). Writes results.json after every part.
bool run_knowledge_study(const StudyOptions& options, RunsObserver* observer = nullptr);
/// What results.json holds: every row of this and of earlier sessions. Throws IoError when it is damaged.
std::vector<StudyResult> study_results(const std::string& folder);

/// The most common place among the training pairs, and how far it goes on dev.
struct Baseline {
  std::string answer;
  double exact_match = 0;
  std::optional<double> open_book;  // right answers of names looked up in each text, where the recipe uses such names
};
Baseline study_baseline(const StudyOptions& options);

/// One JSON object on one line.
std::string study_json(const StudyOptions& options, const std::vector<StudyResult>& results);

}  // namespace qkv
