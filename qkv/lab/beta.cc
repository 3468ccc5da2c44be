// Experiment: the inverse temperature β takes attention from uniform to one-hot, and 1/√d keeps it steady over d.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "qkv/base/error.h"
#include "qkv/base/utf8.h"
#include "qkv/lab/experiments.h"
#include "qkv/lab/gaussian.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

// How often each of the letters a to z occurs, scaled to length 1: similar spelling, similar vector. [n, 26]
Tensor letter_vectors(const std::vector<std::string>& words) {
  const auto n = static_cast<int64_t>(words.size());
  Tensor x = Tensor::zeros({n, 26}, DType::f64);
  for (int64_t i = 0; i < n; ++i) {
    double* const counts = x.f64() + i * 26;
    double squares = 0;
    for (const char c : words[static_cast<size_t>(i)]) {
      const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      if (lower >= 'a' && lower <= 'z') counts[lower - 'a'] += 1;
    }
    for (int j = 0; j < 26; ++j) squares += counts[j] * counts[j];
    if (squares == 0) throw ConfigError("'" + words[static_cast<size_t>(i)] + "' has no letter between a and z");
    for (int j = 0; j < 26; ++j) counts[j] /= std::sqrt(squares);
  }
  return x;
}

// One query over some keys, as the library gets them.
struct Lookup {
  std::string name;
  Tensor q, k;  // f32 [1, 1, d], [1, m, d]

  // softmax(β q·k) by plain loops.
  std::vector<double> weights(double beta) const {
    std::vector<double> z;
    for (int64_t i = 0; i < k.dim(1); ++i) z.push_back(beta * dot(q, slice(k, 1, i, i + 1)));
    return plain_softmax(z);
  }
};

std::vector<double> betas_of(double top) {
  std::vector<double> betas = {0, 0.001 * top, 0.01 * top, 0.1 * top, top};
  if (std::find(betas.begin(), betas.end(), 1.0) == betas.end()) betas.push_back(1);
  std::sort(betas.begin(), betas.end());
  return betas;
}

void sweep_beta(Result& r, const Lookup& lookup, double top) {
  for (const double beta : betas_of(top)) {
    const std::vector<double> p = lookup.weights(beta);
    const AttentionStatistics found = attention_statistics(lookup.q, lookup.k, with_scale(beta));
    const std::string point = at((lookup.name + " keys, β").c_str(), beta);
    r.exact(point, "entropy, " + lookup.name + " keys", plain_entropy(p), found.entropy.item());
    r.exact(point, "largest weight", *std::max_element(p.begin(), p.end()), found.max_weight.item());
  }
}

// The two wrong answers, on the words: β = 1 is not hard, and a minus sign looks for the least similar.
void show_wrong_answers(Result& r, const Lookup& lookup, const std::vector<std::string>& words,
                        const std::string& query) {
  const std::vector<double> p = lookup.weights(1);
  const auto best = std::max_element(p.begin(), p.end()) - p.begin();
  const auto worst = std::min_element(p.begin(), p.end()) - p.begin();
  const auto winner = [&](double beta) {
    return attention_statistics(lookup.q, lookup.k, with_scale(beta)).argmax.item();
  };
  r.exact("e^(+βz), β = 10", "index of the word that wins", static_cast<double>(best), winner(10));
  r.exact("e^(−βz), β = 10", "index of the word that wins", static_cast<double>(worst), winner(-10));
  ScoreRule hard = with_scale(1);
  hard.normaliser = Normaliser::hard;
  r.exact("hard (β → ∞)", "entropy (nats)", 0, attention_statistics(lookup.q, lookup.k, hard).entropy.item());
  char text[300];
  std::snprintf(
      text, sizeof text,
      "Common wrong answer: \"β = 1 gives hard attention\". At β = 1 the best word, '%.60s', gets %.1f%% of the "
      "weight; hard attention is the limit β → ∞.",
      words[static_cast<size_t>(best)].c_str(), 100 * p[static_cast<size_t>(best)]);
  r.note(text);
  std::snprintf(
      text, sizeof text,
      "Common wrong answer: softargmax with a minus sign, e^(−βz). It looks up '%.60s' and finds '%.60s', the "
      "least similar word.",
      query.c_str(), words[static_cast<size_t>(worst)].c_str());
  r.note(text);
}

void draw_sweep(Result& r, const std::vector<Lookup>& lookups, double top) {
  if (top <= 0) return;
  Plot plot{.title = "From soft to hard: entropy of the weights over β",
            .caption = "ln m on the left, 0 on the right. Lines: predicted; dots: measured.",
            .x = Axis{.title = "β", .log = true},
            .y = Axis{.title = "entropy (nats)", .low = 0.0}};
  for (size_t i = 0; i < lookups.size(); ++i) {
    const Lookup& l = lookups[i];
    const int color = static_cast<int>(i);
    plot.series.push_back(curve(l.name + " keys, m = " + std::to_string(l.k.dim(1)), {top * 1e-4, top, true}, color,
                                [&](double beta) { return plain_entropy(l.weights(beta)); }));
    std::vector<double> x = betas_of(top), y = r.measured_of("entropy, " + l.name + " keys");
    plot.series.push_back(dots("", {x.begin() + 1, x.end()}, {y.begin() + 1, y.end()}, color));  // 0 has no logarithm
  }
  plot.guides.push_back({.at = 1, .label = "β = 1", .vertical = true});
  r.pictures.push_back(plot);
}

void draw_words(Result& r, const Lookup& lookup, const std::vector<std::string>& words, const std::string& query) {
  HeatMap map{
      .title = "weights", .row_title = "β", .column_title = "word", .columns = static_cast<int64_t>(words.size())};
  map.column_labels = words;
  for (const double beta : {-10.0, 0.0, 1.0, 3.0, 10.0, 30.0}) {
    const auto weights = attention_score_array(lookup.q, lookup.k, with_scale(beta)).to_vector();
    map.values.insert(map.values.end(), weights.begin(), weights.end());
    map.row_labels.push_back(at("β", beta));
    ++map.rows;
  }
  map.numbers = true;
  r.pictures.push_back(
      Maps{"A soft dictionary: looking up '" + query + "' by its letters",
           {map},
           1,
           "With β < 0 (the minus sign) the least alike win; at β = 1 nothing is decided; β = 30 is hard."});
}

// Mean and standard error of n numbers.
std::pair<double, double> mean_and_error(const std::vector<double>& x) {
  double total = 0, squares = 0;
  for (const double v : x) total += v;
  const double n = static_cast<double>(x.size()), mean = total / n;
  for (const double v : x) squares += (v - mean) * (v - mean);
  return {mean, std::sqrt(squares / (n - 1) / n)};
}

// One draw: q of length √d in a random direction, m keys of N(0, I). Then every score is N(0, d), independently.
void compare_dimension(Result& r, int64_t d, const Settings& set) {
  const int64_t m = set.get_integer("keys"), n = set.get_integer("samples");
  const double root = std::sqrt(static_cast<double>(d));
  Rng rng = Rng(static_cast<uint64_t>(set.get_integer("seed"))).fork(static_cast<uint64_t>(d));
  const Tensor k = Tensor::randn({n, m, d}, rng);  // [n, m, d]
  Tensor q = Tensor::randn({n, 1, d}, rng);        // [n, 1, d]
  for (int64_t s = 0; s < n; ++s) {
    float* const x = q.f32() + s * d;
    double squares = 0;
    for (int64_t c = 0; c < d; ++c) squares += double(x[c]) * double(x[c]);
    for (int64_t c = 0; c < d; ++c) x[c] = static_cast<float>(x[c] * root / std::sqrt(squares));
  }
  std::vector<double> squares = attention_score_array(q, k, with_scale(1), ScoreStage::raw).to_doubles();
  for (double& z : squares) z = z * z / static_cast<double>(d);
  const auto [variance, variance_error] = mean_and_error(squares);
  r.sampled(at("d", double(d)), "variance of q·k, over d", 1, variance, variance_error);
  const auto entropy = [&](const char* name, double beta) {
    const auto [mean, error] = mean_and_error(attention_statistics(q, k, with_scale(beta)).entropy.to_doubles());
    r.sampled(at("d", double(d)), name, mean_entropy_of_normal_scores(beta * root, static_cast<int>(m)), mean, error);
  };
  entropy("entropy with β = 1", 1);
  entropy("entropy with β = 1/√d", 1 / root);
}

void draw_dimensions(Result& r, const std::vector<double>& dims, int m) {
  const Range range{dims.front(), dims.back(), true};
  const char *const plain = "entropy with β = 1", *const scaled = "entropy with β = 1/√d";
  r.pictures.push_back(
      Plot{.title = "Why β = 1/√d: the entropy over the dimension",
           .caption = "Random keys, m = " + std::to_string(m) +
                      ". Lines: predicted by quadrature; dots: measured, with three standard errors.",
           .x = Axis{.title = "dimension d", .log = true},
           .y = Axis{.title = "mean entropy (nats)", .low = 0.0},
           .series = {curve("β = 1/√d", range, 0, [&](double) { return mean_entropy_of_normal_scores(1, m); }),
                      dots("", dims, r.measured_of(scaled), 0, r.reach_of(scaled)),
                      Series{.name = "β = 1", .x = dims, .y = {}, .color = 1},
                      dots("", dims, r.measured_of(plain), 1, r.reach_of(plain))}});
  Plot& plot = std::get<Plot>(r.pictures.back());
  Series& line = plot.series[2];
  line.x.clear();
  for (int i = 0; i <= 16; ++i) {
    line.x.push_back(dims.front() * std::pow(dims.back() / dims.front(), i / 16.0));
    line.y.push_back(mean_entropy_of_normal_scores(std::sqrt(line.x.back()), m));
  }
}

}  // namespace

Settings beta_settings() {
  Settings s;
  s.number("beta", 100, "largest β of the sweep", 0, 1000)
      .integer("keys", 32, "number of random keys", 2, 512)
      .integer("dim", 256, "largest dimension of the random keys; the sweep takes 1/64, 1/16, 1/4 and all of it", 64,
               1024)
      .integer("samples", 256, "draws for each dimension", 20, 10000)
      .text("words", "attention,query,key,value,head,mask,softmax,score", "real keys: words, as their letter counts")
      .text("query", "atentoin", "the query: a word to look up")
      .integer("seed", 1, "of the random keys");
  return s;
}

Result run_beta(const Settings& set) {
  const int64_t d_max = set.get_integer("dim");
  const double top = set.get_number("beta");
  std::string listed_words = set.get_text("words");
  std::replace(listed_words.begin(), listed_words.end(), ',', ' ');
  const std::vector<std::string_view> parts = split_words(listed_words);
  const std::vector<std::string> words(parts.begin(), parts.end());
  if (words.size() < 2) throw ConfigError("--words: give at least two words, separated by commas");
  if (static_cast<double>(set.get_integer("samples") * set.get_integer("keys") * d_max) > 2e8) {
    throw ConfigError("--samples x --keys x --dim is above 200 million; lower one of them");
  }
  Result r;
  r.claim =
      "β sets how hard attention is: β → 0 spreads the weight evenly (entropy ln m), β → ∞ puts all of it on the "
      "best key (entropy 0), and β = 1/√d keeps the same hardness however large d is.";
  r.formula =
      "α_{i} = e^{β q·k_{i}} / Σ_{j} e^{β q·k_{j}},  entropy −Σ α_{i} ln α_{i}\n"
      "entries of q and k with mean 0 and variance 1:  Var(q·k) = d,  so  Var(q·k/√d) = 1";
  Rng rng(static_cast<uint64_t>(set.get_integer("seed")));
  const Tensor keys = gaussian(set.get_integer("keys"), 64, rng), query = gaussian(1, 64, rng) * 0.125;
  const Lookup random{"random", batch_of_one(query), batch_of_one(keys)};
  const Lookup word{"word", batch_of_one(letter_vectors({set.get_text("query")})), batch_of_one(letter_vectors(words))};
  sweep_beta(r, random, top);
  sweep_beta(r, word, top);
  show_wrong_answers(r, word, words, set.get_text("query"));
  std::vector<double> dims;
  for (const int64_t part : {64, 16, 4, 1}) {
    const int64_t d = d_max / part;
    dims.push_back(static_cast<double>(d));
    compare_dimension(r, d, set);
  }
  draw_sweep(r, {random, word}, top);
  draw_dimensions(r, dims, static_cast<int>(set.get_integer("keys")));
  draw_words(r, word, words, set.get_text("query"));
  r.note(
      "With β = 1 the entropy falls as d grows, because the scores grow as √d; with β = 1/√d it does not move. "
      "Here q has length √d exactly; a random q comes to the same as d grows.");
  return r;
}

}  // namespace qkv::lab
