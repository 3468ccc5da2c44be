// Figures about classified images, and what a report shows of them.
#include "qkv/tasks/images/report.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "qkv/figures/number.h"

namespace qkv {
namespace {

constexpr size_t kMistakesShown = 24;
constexpr int kMistakeColumns = 8;
constexpr int64_t kMostPatches = 256;  // beyond, a grid of grids shows nothing
constexpr size_t kPairsShown = 10;

std::span<const float> row_of(const Classified& c, int64_t i) {
  return std::span(c.probabilities).subspan(static_cast<size_t>(i * c.classes), static_cast<size_t>(c.classes));
}

Section confusion_section(const ImageReport& shown) {
  const auto counts = shown.result.confusion();
  HeatMap map;
  map.rows = map.columns = static_cast<int64_t>(counts.size());
  map.row_labels = map.column_labels = shown.classes;
  map.row_title = "labelled";
  map.column_title = "taken for";
  map.value_title = "share";
  map.numbers = true;
  struct Pair {
    size_t label, taken;
    int64_t count;
  };
  std::vector<Pair> pairs;
  for (size_t i = 0; i < counts.size(); ++i) {
    int64_t all = 0;
    for (const int64_t n : counts[i]) all += n;
    for (size_t j = 0; j < counts.size(); ++j) {
      map.values.push_back(static_cast<float>(counts[i][j]) / static_cast<float>(std::max<int64_t>(all, 1)));
      if (i != j && counts[i][j] > 0) pairs.push_back({i, j, counts[i][j]});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.count > b.count; });
  if (pairs.size() > kPairsShown) pairs.resize(kPairsShown);
  Table table{.header = {"labelled", "taken for", "images"}};
  for (const Pair& p : pairs) {
    table.rows.push_back({shown.classes[p.label], shown.classes[p.taken], std::to_string(p.count)});
  }
  Section section{"Confusion",
                  {"Each row is a class as labelled, each column what the model took it for, in shares of the row.",
                   Maps{.maps = {std::move(map)}}}};
  if (!pairs.empty()) section.parts.emplace_back(FoldedTable{"The most frequent confusions", std::move(table)});
  return section;
}

Section mistakes_section(const ImageReport& shown, const std::vector<int64_t>& wrong) {
  Gallery gallery{.columns = kMistakeColumns};
  for (const int64_t i : wrong) {
    const std::string& said = shown.classes[static_cast<size_t>(shown.result.predicted(i))];
    const std::string& label = shown.classes[static_cast<size_t>(shown.result.labels[static_cast<size_t>(i)])];
    gallery.pictures.emplace_back(said + " " + format_share(shown.result.confidence(i), 3) + "\nnot " + label,
                                  bitmap_of(shown.images, i));
  }
  return {"The most confident mistakes",
          {"Images the model was surest about and got wrong: what it said, and what they are labelled.",
           std::move(gallery)}};
}

Section positions_section(const PositionGrid& grid) {
  return {grid.learned ? "What it learnt about places" : "What its fixed positions say about places",
          {std::string(
               "One small picture for each patch, in its place: how alike the position added to it and the one added "
               "to every other patch are (cosine; the stronger the colour, the more alike).") +
               (grid.learned ? " Nobody told the model that patches form rows and columns." : ""),
           SimilarityGrid{grid.rows, grid.columns, position_similarities(grid)}}};
}

}  // namespace

int64_t Classified::predicted(int64_t i) const {
  const std::span<const float> p = row_of(*this, i);
  return std::max_element(p.begin(), p.end()) - p.begin();
}

double Classified::confidence(int64_t i) const { return row_of(*this, i)[static_cast<size_t>(predicted(i))]; }

double Classified::accuracy() const {
  int64_t right = 0;
  for (size_t i = 0; i < labels.size(); ++i) right += predicted(static_cast<int64_t>(i)) == labels[i];
  return static_cast<double>(right) / static_cast<double>(std::max<size_t>(labels.size(), 1));
}

double Classified::loss() const {
  constexpr double kLeast = 1e-30;  // a probability that became 0 in single precision is not infinitely wrong
  double sum = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const double p = row_of(*this, static_cast<int64_t>(i))[static_cast<size_t>(labels[i])];
    sum -= std::log(std::max(p, kLeast));
  }
  return sum / static_cast<double>(std::max<size_t>(labels.size(), 1));
}

std::vector<std::vector<int64_t>> Classified::confusion() const {
  const auto n = static_cast<size_t>(classes);
  std::vector<std::vector<int64_t>> counts(n, std::vector<int64_t>(n, 0));
  for (size_t i = 0; i < labels.size(); ++i) {
    ++counts[static_cast<size_t>(labels[i])][static_cast<size_t>(predicted(static_cast<int64_t>(i)))];
  }
  return counts;
}

std::vector<int64_t> Classified::confident_mistakes(size_t most) const {
  std::vector<int64_t> wrong;
  for (int64_t i = 0; i < static_cast<int64_t>(labels.size()); ++i) {
    if (predicted(i) != labels[static_cast<size_t>(i)]) wrong.push_back(i);
  }
  std::stable_sort(wrong.begin(), wrong.end(), [&](int64_t a, int64_t b) { return confidence(a) > confidence(b); });
  if (wrong.size() > most) wrong.resize(most);
  return wrong;
}

std::vector<float> position_similarities(const PositionGrid& grid) {
  const int64_t n = grid.rows * grid.columns, C = grid.positions.dim(1);
  const std::vector<double> values = grid.positions.to_doubles();
  const auto row = [&](int64_t patch) {
    return std::span(values).subspan(static_cast<size_t>((grid.first_patch + patch) * C), static_cast<size_t>(C));
  };
  const auto dot = [](std::span<const double> a, std::span<const double> b) {
    double sum = 0;
    for (size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
    return sum;
  };
  std::vector<float> similar;
  for (int64_t a = 0; a < n; ++a) {
    for (int64_t b = 0; b < n; ++b) {
      const double lengths = std::sqrt(dot(row(a), row(a)) * dot(row(b), row(b)));
      similar.push_back(static_cast<float>(lengths > 0 ? dot(row(a), row(b)) / lengths : 0));
    }
  }
  return similar;
}

Bitmap bitmap_of(const ImageSet& set, int64_t i) {
  Bitmap bitmap{.width = set.width, .height = set.height, .channels = set.channels};
  const int64_t plane = set.height * set.width;
  const std::span<const uint8_t> image = set[i];
  for (int64_t k = 0; k < plane; ++k) {
    for (int64_t c = 0; c < set.channels; ++c) bitmap.pixels.push_back(image[static_cast<size_t>(c * plane + k)]);
  }
  return bitmap;
}

std::vector<Section> image_sections(const ImageReport& shown) {
  std::vector<Section> sections{confusion_section(shown)};
  const std::vector<int64_t> wrong = shown.result.confident_mistakes(kMistakesShown);
  if (!wrong.empty()) sections.push_back(mistakes_section(shown, wrong));
  if (shown.grid.rows * shown.grid.columns <= kMostPatches) sections.push_back(positions_section(shown.grid));
  return sections;
}

}  // namespace qkv
