// Figures about classified images, and their sections of a report.
#include "qkv/tasks/images/report.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "qkv/view/heatmap.h"
#include "qkv/view/picture.h"
#include "qkv/view/report.h"
#include "qkv/view/text.h"

namespace qkv {
namespace {

constexpr size_t kMistakesShown = 24;
constexpr int kMistakeColumns = 8;
constexpr int64_t kMostPatches = 256;  // beyond, a grid of grids shows nothing
constexpr int64_t kPatchCell = 3;      // pixels of a patch in that grid
constexpr double kPositionsSide = 400;
constexpr size_t kPairsShown = 10;

std::span<const float> row_of(const Classified& c, int64_t i) {
  return std::span(c.probabilities).subspan(static_cast<size_t>(i * c.classes), static_cast<size_t>(c.classes));
}

void add_confusion(Report& report, const ImageReport& shown) {
  report.section("Confusion");
  report.paragraph("Each row is a class as labelled, each column what the model took it for, in shares of the row.");
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
  report.figure(draw_heatmap(map));
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.count > b.count; });
  if (pairs.size() > kPairsShown) pairs.resize(kPairsShown);
  Table table{.header = {"labelled", "taken for", "images"}};
  for (const Pair& p : pairs) {
    table.rows.push_back({shown.classes[p.label], shown.classes[p.taken], std::to_string(p.count)});
  }
  if (!pairs.empty()) report.folded_table("The most frequent confusions", table);
}

Raster raster_of_image(const ImageSet& set, int64_t i) {
  const int64_t plane = set.height * set.width;
  const std::span<const uint8_t> image = set[i];
  std::vector<uint8_t> bytes;  // [height, width, channels]
  for (int64_t k = 0; k < plane; ++k) {
    for (int64_t c = 0; c < set.channels; ++c) bytes.push_back(image[static_cast<size_t>(c * plane + k)]);
  }
  return raster_of(bytes, set.height, set.width, set.channels);
}

void add_mistakes(Report& report, const ImageReport& shown) {
  const std::vector<int64_t> wrong = shown.result.confident_mistakes(kMistakesShown);
  if (wrong.empty()) return;
  report.section("The most confident mistakes");
  report.paragraph("Images the model was surest about and got wrong: what it said, and what they are labelled.");
  std::vector<Tile> tiles;
  for (const int64_t i : wrong) {
    const std::string& said = shown.classes[static_cast<size_t>(shown.result.predicted(i))];
    const std::string& label = shown.classes[static_cast<size_t>(shown.result.labels[static_cast<size_t>(i)])];
    tiles.push_back({said + " " + format_number(100 * shown.result.confidence(i), 3) + "%\nnot " + label,
                     raster_of_image(shown.images, i)});
  }
  report.figure(draw_tiles("", tiles, kMistakeColumns));
}

void add_positions(Report& report, const PositionGrid& grid) {
  const int64_t patches = grid.rows * grid.columns;
  if (patches > kMostPatches) return;
  report.section(grid.learned ? "What it learnt about places" : "What it is told about places");
  report.paragraph(
      std::string(
          "One small picture for each patch, in its place: how alike the position added to it and the one added "
          "to every other patch are (cosine; the darker the more alike).") +
      (grid.learned ? " Nobody told the model that patches form rows and columns." : ""));
  const std::vector<float> similar = position_similarities(grid);
  const int64_t inner_h = grid.rows * kPatchCell + 1, inner_w = grid.columns * kPatchCell + 1;
  Raster raster{.rows = grid.rows * inner_h, .columns = grid.columns * inner_w};
  raster.colors.assign(static_cast<size_t>(raster.rows * raster.columns), kPaper);
  for (int64_t y = 0; y < raster.rows; ++y) {
    for (int64_t x = 0; x < raster.columns; ++x) {
      const int64_t down = y % inner_h / kPatchCell, across = x % inner_w / kPatchCell;
      if (down >= grid.rows || across >= grid.columns) continue;  // the line between two small pictures
      const int64_t a = y / inner_h * grid.columns + x / inner_w, b = down * grid.columns + across;
      const double t = 0.5 + 0.5 * similar[static_cast<size_t>(a * patches + b)];
      raster.colors[static_cast<size_t>(y * raster.columns + x)] = color_at(sequential_map(), t);
    }
  }
  report.figure(draw_tiles("", {{"", std::move(raster)}}, 1, kPositionsSide));
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

void add_image_report(Report& report, const ImageReport& shown) {
  add_confusion(report, shown);
  add_mistakes(report, shown);
  add_positions(report, shown.grid);
}

}  // namespace qkv
