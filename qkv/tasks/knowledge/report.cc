// Tables and maps of what a knowledge model answers.
#include "qkv/tasks/knowledge/report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/base/names.h"
#include "qkv/base/utf8.h"
#include "qkv/figures/number.h"

namespace qkv {
namespace {

constexpr size_t kNearest = 3;

std::string percent(double share) { return format_share(share, 3); }

void add_group(Table& table, const std::string& title, const std::vector<AskedPerson>& people, bool right) {
  double confidence = 0, most = 0;
  int64_t n = 0;
  for (const AskedPerson& p : people) {
    if (!p.place.empty() && (p.answer == p.place) != right) continue;
    confidence += p.confidence;
    most = std::max(most, p.confidence);
    ++n;
  }
  if (n == 0) return;
  table.rows.push_back({title, std::to_string(n), percent(confidence / static_cast<double>(n)), percent(most)});
}

}  // namespace

int64_t letters_changed(const std::string& a, const std::string& b) {
  const std::u32string x = utf8_to_code_points(a), y = utf8_to_code_points(b);
  std::vector<int64_t> row(y.size() + 1);
  std::iota(row.begin(), row.end(), int64_t{0});
  for (size_t i = 0; i < x.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i) + 1;
    for (size_t j = 0; j < y.size(); ++j) {
      const int64_t replaced = diagonal + (x[i] == y[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

NearestNames::NearestNames(std::vector<std::string> names, std::vector<std::vector<float>> states)
    : names_(std::move(names)), states_(std::move(states)) {
  if (states_.empty()) return;
  mean_.assign(states_[0].size(), 0.0F);
  for (const auto& s : states_) {
    for (size_t k = 0; k < s.size(); ++k) mean_[k] += s[k] / static_cast<float>(states_.size());
  }
  for (auto& s : states_) {
    for (size_t k = 0; k < s.size(); ++k) s[k] -= mean_[k];
  }
}

std::vector<std::string> NearestNames::spelt_like(const std::string& name, size_t n) const {
  std::vector<std::pair<int64_t, size_t>> order;
  for (size_t i = 0; i < names_.size(); ++i) order.emplace_back(letters_changed(name, names_[i]), i);
  n = std::min(n, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), order.end());
  std::vector<std::string> found;
  for (size_t i = 0; i < n; ++i) found.push_back(names_[order[i].second]);
  return found;
}

std::vector<std::string> NearestNames::taken_for(std::vector<float> state, size_t n) const {
  for (size_t k = 0; k < state.size() && k < mean_.size(); ++k) state[k] -= mean_[k];
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < states_.size(); ++i) {
    double product = 0, square = 0;
    for (size_t k = 0; k < state.size(); ++k) {
      product += static_cast<double>(state[k]) * states_[i][k];
      square += static_cast<double>(states_[i][k]) * states_[i][k];
    }
    order.emplace_back(-product / std::sqrt(std::max(square, 1e-30)), i);
  }
  n = std::min(n, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), order.end());
  std::vector<std::string> found;
  for (size_t i = 0; i < n; ++i) found.push_back(names_[order[i].second]);
  return found;
}

Section people_section(const PeopleReport& people, const NearestNames& nearest) {
  Section section{"People it never read about", {}};
  section.parts.emplace_back(
      "Asked about somebody who does not exist, the model answers just as fluently: a place comes out, spelt rightly. "
      "What differs is how sure it is. The names nearest to the invented one, by spelling and by the state the model "
      "is in before it answers, show what it goes by: it takes the stranger for somebody else.");
  Table groups{.header = {"asked about", "people", "mean confidence", "highest"}};
  add_group(groups, "training people, right", people.trained, true);
  add_group(groups, "training people, wrong", people.trained, false);
  add_group(groups, "people read about, right", people.asked, true);
  add_group(groups, "people read about, wrong", people.asked, false);
  add_group(groups, "people who do not exist", people.strangers, false);
  section.parts.emplace_back(std::move(groups));
  Table table{.header = {"invented name", "answer", "confidence", "spelt like", "taken for"}};
  for (size_t i = 0; i < people.strangers.size(); ++i) {
    const AskedPerson& p = people.strangers[i];
    table.rows.push_back({p.name, p.answer, percent(p.confidence), listed(nearest.spelt_like(p.name, kNearest)),
                          listed(nearest.taken_for(people.stranger_states[i], kNearest))});
  }
  section.parts.emplace_back(std::move(table));
  return section;
}

Section question_maps(const std::vector<TracedExample>& examples) {
  Section section{"Which characters the answer looks at", {}};
  section.parts.emplace_back(
      "One row per character of the answer as it is chosen (the first row is the mark ⁇ that ends the question), one "
      "column per character of the question; mean over the heads of a layer. Rows need not sum to 1 here: the rest "
      "goes "
      "to the answer's own beginning, which is left out.");
  for (const TracedExample& e : examples) {
    const auto mark = std::find(e.source.begin(), e.source.end(), "⁇") - e.source.begin();
    std::vector<HeatMap> maps;
    for (const AttentionTrace& t : e.attention) {
      HeatMap map;
      map.title = "layer " + std::to_string(t.layer);
      map.row_title = "answer";
      map.column_title = "question";
      map.rows = t.Lq - mark;
      map.columns = mark + 1;
      map.values.assign(static_cast<size_t>(map.rows * map.columns), 0.0F);
      for (int64_t h = 0; h < t.H; ++h) {
        const std::vector<float> w = t.scores({.h = h, .row_begin = mark, .row_end = t.Lq}).to_vector();
        for (int64_t r = 0; r < map.rows; ++r) {
          for (int64_t c = 0; c < map.columns; ++c) {
            map.values[static_cast<size_t>(r * map.columns + c)] +=
                w[static_cast<size_t>(r * t.Lk + c)] / static_cast<float>(t.H);
          }
        }
      }
      map.row_labels.assign(e.source.begin() + mark, e.source.begin() + mark + map.rows);
      map.column_labels.assign(e.source.begin(), e.source.begin() + map.columns);
      map.scale = MapScale::kAuto;
      maps.push_back(std::move(map));
    }
    section.parts.emplace_back(Maps{e.output, std::move(maps), 2});
  }
  return section;
}

}  // namespace qkv
