// What a knowledge model says about people it has read about and about people who do not exist, for its report.
#pragma once

#include <string>
#include <vector>

#include "qkv/tasks/task.h"

namespace qkv {

/// One person asked about.
struct AskedPerson {
  std::string name, answer;
  double confidence = 0;   // probability of the whole answer
  std::string place = {};  // the right answer; empty for a stranger
};

/// Names by how much they are alike.
class NearestNames {
 public:
  /// `states`: one row per name, what the model thinks when it is about to answer.
  NearestNames(std::vector<std::string> names, std::vector<std::vector<float>> states);

  /// The names that need the fewest letters changed, nearest first.
  std::vector<std::string> spelt_like(const std::string& name, size_t n) const;
  /// The names in whose state the model is most nearly (cosine, the mean taken off).
  std::vector<std::string> taken_for(std::vector<float> state, size_t n) const;

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<float>> states_;
  std::vector<float> mean_;
};

/// Letters to insert, remove or replace to make b of a (Levenshtein), in characters.
int64_t letters_changed(const std::string& a, const std::string& b);

struct PeopleReport {
  std::vector<AskedPerson> trained, asked, strangers;
  std::vector<std::vector<float>> stranger_states;
};
/// Confidence of right, wrong and impossible answers side by side; then every stranger with the names nearest to it.
Section people_section(const PeopleReport& people, const NearestNames& nearest);

/// Where each character of the answer looks in the question: one map per layer, mean over its heads.
Section question_maps(const std::vector<TracedExample>& examples);

}  // namespace qkv
