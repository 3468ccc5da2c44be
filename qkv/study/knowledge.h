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

/// How the texts are read.
enum class Recipe : uint8_t {
  course,     // with a random span hidden, and nothing else: what courses ask for
  questions,  // mostly as the question that each text answers, with the place that a small model finds in it
};
template <>
struct Names<Recipe> {
  static constexpr const char* what = "recipe";
  static constexpr NameRow<Recipe> rows[] = {{Recipe::course, "course"}, {Recipe::questions, "questions"}};
};

/// The training pairs, read after the texts.
struct Finetuning {
  int64_t epochs = 0, alone_epochs = 75;  // of a row that has read, and of the one that reads nothing
  int64_t batch = 0;                      // 0: that of the reading
  double lr = 0, alone_lr = 6e-4;         // falling to 0
};

struct StudyOptions {
  std::string folder;
  Recipe recipe = Recipe::course;
  std::vector<std::string> rows;  // names of the table
  Settings reading;               // of stage "pretrain"; attention and positions are set by the row
  Finetuning finetuning;
  int64_t moments = 4;  // how often along the way a row is finetuned and asked
};

/// Reading and finetuning of a recipe on real data, or on the generated corpus when `data` is empty (a smaller model).
StudyOptions study_options(Recipe recipe, const std::string& data);

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

/// Continues the folder's runs; a finished part is read, not repeated. False when the observer stopped it
/// (everything is saved, and the same call continues). Writes results.json after every part.
bool run_knowledge_study(const StudyOptions& options, RunsObserver* observer = nullptr);
/// The same on several processes that see one folder: each trains some of the rows alone. False when one was stopped;
/// otherwise run_knowledge_study() then finds every part finished.
bool run_study_apart(const StudyOptions& options, RunsObserver* observer, Processes& processes);
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
