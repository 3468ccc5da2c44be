// An experiment: a claim about attention, its formula, and what the library's own attention does, side by side.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/base/settings.h"
#include "qkv/lab/picture.h"

namespace qkv::lab {

/// How far a measurement may lie from its prediction.
enum class Kind : uint8_t {
  exact,        // the formula is the answer: 1e-5, of the value where that is above 1
  sampled,      // an average of random draws: three standard errors
  first_order,  // a linear approximation: a stated multiple of the step squared
  timed,        // a growth rate taken from a stopwatch: half a power, and nothing rests on it
};

}  // namespace qkv::lab

template <>
struct qkv::Names<qkv::lab::Kind> {
  static constexpr const char* what = "kind of row";
  static constexpr NameRow<lab::Kind> rows[] = {{lab::Kind::exact, "exact"},
                                                {lab::Kind::sampled, "sampled"},
                                                {lab::Kind::first_order, "first-order"},
                                                {lab::Kind::timed, "timed"}};
};

namespace qkv::lab {

/// One line of the table: what is predicted and what was measured at one point of a sweep.
struct Row {
  std::string at;        // the point: "t = 5"
  std::string quantity;  // what is compared: "weight of v_j"
  double predicted = 0, measured = 0;
  Kind kind = Kind::exact;
  double standard_error = 0;  // of `measured`; sampled rows only
  double tolerance = 0;       // the largest difference that counts as agreement

  double difference() const { return measured - predicted; }
  bool agrees() const;  // false for a NaN on either side
};

/// What an experiment found. Texts are plain UTF-8; formulas write x_{i} and e^{t} for sub- and superscripts.
struct Result {
  std::string claim;    // one sentence
  std::string formula;  // one line per formula
  std::vector<Row> rows;
  std::vector<std::string> notes;  // how to read it; the common wrong answer and how it fails
  std::vector<Picture> pictures;   // the first one alone tells the story

  void exact(std::string at, std::string quantity, double predicted, double measured);
  void sampled(std::string at, std::string quantity, double predicted, double measured, double standard_error);
  void first_order(std::string at, std::string quantity, double predicted, double measured, double bound);
  void timed(std::string at, std::string quantity, double predicted, double measured);
  void note(std::string text) { notes.push_back(std::move(text)); }

  /// Measurements (and three standard errors of them) of every row with this quantity, in order.
  std::vector<double> measured_of(std::string_view quantity) const;
  std::vector<double> reach_of(std::string_view quantity) const;
  /// Rows that do not agree, timed ones left out.
  int64_t disagreements() const;
};

/// A formula without its braces: "α_{a} = e^{βt}/2" → "α_a = e^(βt)/2".
std::string plain_formula(const std::string& formula);

/// One row of the table of experiments.
struct Experiment {
  const char* name;
  const char* summary;                 // one line
  Settings (*settings)();              // every parameter, with default, help and limits
  Result (*run)(const Settings& set);  // throws ConfigError where parameters contradict each other
};

/// All experiments in teaching order. A new one is one file and one row.
std::span<const Experiment> experiment_table();
/// Throws ConfigError listing the experiments that exist.
const Experiment& find_experiment(const std::string& name);

}  // namespace qkv::lab
