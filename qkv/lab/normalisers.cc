// Experiment: the same scores through softmax, 1.5-entmax, sparsemax and hard attention, with β as the slider.
#include <algorithm>
#include <cmath>
#include <functional>

#include "qkv/base/error.h"
#include "qkv/base/read_number.h"
#include "qkv/lab/experiments.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"
#include "qkv/view/text.h"

namespace qkv::lab {
namespace {

// Weight of the first of two keys whose scores differ by x ≥ 0.
double softmax_of_two(double x) { return 1 / (1 + std::exp(-x)); }
double sparsemax_of_two(double x) { return std::min(1.0, (1 + x) / 2); }
double entmax15_of_two(double x) {  // √p - √(1-p) = x/2
  if (x >= 2) return 1;
  const double root = (x / 2 + std::sqrt(2 - x * x / 4)) / 2;
  return root * root;
}
double hard_of_two(double x) { return x > 0 ? 1 : 0.5; }

// p_i = shape(z_i - τ) with τ found by bisection so that Σ p = 1: another way than the kernels' sorting.
std::vector<double> by_bisection(const std::vector<double>& z, const std::function<double(double)>& shape) {
  double high = *std::max_element(z.begin(), z.end()), low = high - 2;  // the best key's p is between 0 and 1
  for (int step = 0; step < 200; ++step) {
    const double middle = (low + high) / 2;
    double total = 0;
    for (const double x : z) total += shape(x - middle);
    (total > 1 ? low : high) = middle;
  }
  std::vector<double> p;
  for (const double x : z) p.push_back(shape(x - low));
  return p;
}

std::vector<double> plain_sparsemax(const std::vector<double>& z) {
  return by_bisection(z, [](double x) { return std::max(0.0, x); });
}
std::vector<double> plain_entmax15(const std::vector<double>& z) {
  return by_bisection(z, [](double x) { return x > 0 ? x * x / 4 : 0; });
}
std::vector<double> plain_hard(const std::vector<double>& z) {
  const double top = *std::max_element(z.begin(), z.end());
  const double ties = double(std::count(z.begin(), z.end(), top));
  std::vector<double> p;
  for (const double x : z) p.push_back(x == top ? 1 / ties : 0);
  return p;
}

// What the experiment compares: the library's weights with these two.
struct Compared {
  Normaliser normaliser;
  double (*of_two)(double x);
  std::vector<double> (*plain)(const std::vector<double>& z);

  const char* name() const { return name_of(normaliser); }
};
constexpr Compared kCompared[] = {
    {Normaliser::softmax, softmax_of_two, [](const std::vector<double>& z) { return plain_softmax(z); }},
    {Normaliser::entmax15, entmax15_of_two, plain_entmax15},
    {Normaliser::sparsemax, sparsemax_of_two, plain_sparsemax},
    {Normaliser::hard, hard_of_two, plain_hard}};

// The library's weights for given scores: q = [1] and k_i = [z_i], so that q·k_i = z_i.
std::vector<double> library_weights(Normaliser normaliser, const std::vector<double>& z, double beta) {
  ScoreRule rule = with_scale(beta);
  rule.normaliser = normaliser;
  const Tensor k = Tensor::from(std::span<const double>(z), {1, static_cast<int64_t>(z.size()), 1}).to(DType::f32);
  return attention_score_array(Tensor::full({1, 1, 1}, 1), k, rule).to_doubles();
}

std::vector<double> parse_scores(const std::string& text) {
  std::vector<double> z;
  const char *at = text.data(), *const end = at + text.size();
  while (at < end) {
    double value = 0;
    const char* const next = read_number(at, end, value);
    if (next == at || (next != end && *next != ',') || !(std::abs(value) <= 1000)) {
      throw ConfigError("--scores: '" + text + "' is not a list of numbers between -1000 and 1000, such as 2,1.5,-1");
    }
    z.push_back(value);
    at = next == end ? end : next + 1;
  }
  if (z.size() < 2) throw ConfigError("--scores: give at least two numbers, separated by commas");
  return z;
}

void draw(Result& r, const std::vector<double>& z, double beta) {
  Plot plot{.title = "Two keys: the weight of one as its score pulls ahead",
            .caption = "Lines: predicted; dots: measured.",
            .x = Axis{.title = "x, the difference of the scores"},
            .y = Axis{.title = "weight of the first key", .low = 0.0, .high = 1.0}};
  const std::vector<double> x = {-2.5, -1.5, -0.75, -0.25, 0, 0.25, 0.75, 1.5, 2.5};
  HeatMap map{.title = "weights", .row_title = "normaliser", .column_title = "score"};
  map.columns = static_cast<int64_t>(z.size());
  map.numbers = true;
  for (const double score : z) map.column_labels.push_back(format_number(score));
  int color = 0;
  for (const Compared& n : kCompared) {
    plot.series.push_back(
        curve(n.name(), {-3, 3}, color, [&](double d) { return d >= 0 ? n.of_two(d) : 1 - n.of_two(-d); }));
    std::vector<double> y;
    for (const double d : x) y.push_back(library_weights(n.normaliser, {d, 0}, 1)[0]);
    plot.series.push_back(dots("", x, y, color++));
    for (const double w : library_weights(n.normaliser, z, beta)) map.values.push_back(static_cast<float>(w));
    map.row_labels.push_back(n.name());
    ++map.rows;
  }
  r.pictures.push_back(plot);
  // Not hatched: a zero here is what the normaliser gave, and nothing was masked.
  r.pictures.push_back(
      Maps{"The same scores through each, " + at("β", beta),
           {map},
           1,
           "1.5-entmax, sparsemax and hard give exact zeros; softmax's small weights only look like it."});
}

}  // namespace

Settings normalisers_settings() {
  Settings s;
  s.text("scores", "2,1.5,1,0.25,-0.5,-1", "the scores q·k, separated by commas")
      .number("beta", 1, "the slider; the table also takes 0, ¼ and 4 times it", 0, 25);
  return s;
}

Result run_normalisers(const Settings& set) {
  const std::vector<double> z = parse_scores(set.get_text("scores"));
  Result r;
  r.claim =
      "Softmax never gives a key exactly nothing; 1.5-entmax and sparsemax do, and all of them go from uniform at "
      "β = 0 to hard attention as β grows.";
  r.formula =
      "softmax: p_{i} ∝ e^{βz_{i}};   1.5-entmax: p_{i} = max(0, βz_{i}/2 − τ)^{2};   sparsemax: p_{i} = max(0, "
      "βz_{i} − τ);   hard: one-hot (ties share)\n"
      "two keys, βz_{1} − βz_{2} = x:  sigmoid(x);   ¼(x/2 + √(2 − x^{2}/4))^{2} up to x = 2;   ½(1 + x) up to x = 1;  "
      " 1";
  for (const Compared& n : kCompared) {
    for (const double share : {0.0, 0.25, 1.0, 4.0}) {
      const double beta = share * set.get_number("beta");
      std::vector<double> scaled = z;
      for (double& x : scaled) x *= beta;
      const std::vector<double> p = n.plain(scaled), m = library_weights(n.normaliser, z, beta);
      double worst = 0;
      for (size_t i = 0; i < p.size(); ++i) worst = std::max(worst, std::abs(p[i] - m[i]));
      const std::string point = at((std::string(n.name()) + ", β").c_str(), beta);
      const auto support = [](const std::vector<double>& w) {
        return double(std::count_if(w.begin(), w.end(), [](double x) { return x > 1e-7; }));
      };
      r.exact(point, "largest weight", *std::max_element(p.begin(), p.end()), *std::max_element(m.begin(), m.end()));
      r.exact(point, "keys with weight above 1e-7", support(p), support(m));
      r.exact(point, "largest error over the keys", 0, worst);
    }
    for (const double x : {0.5, 1.0, 2.0}) {
      r.exact(at((std::string(n.name()) + ", two keys, x").c_str(), x), "weight of the better key", n.of_two(x),
              library_weights(n.normaliser, {x, 0}, 1)[0]);
    }
  }
  draw(r, z, set.get_number("beta"));
  r.note(
      "Sparse weights are exact zeros: such keys take no part in the output and get no gradient. Hard weights are "
      "constants to the gradient, so a model with hard attention cannot learn where to look by back-propagation "
      "alone.");
  return r;
}

}  // namespace qkv::lab
