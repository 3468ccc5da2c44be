// Experiment: the inverse temperature β takes attention from uniform to one-hot, and 1/√d keeps it steady over d.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "qkv/base/error.h"
#include "qkv/lab/experiments.h"
#include "qkv/lab/gaussian.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c != ' ' && c != ',') {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// How often each of the letters a to z occurs, scaled to length 1: similar spelling, similar vector. [n, 26]
Tensor letter_vectors(const std::vector<std::string>& words) {
  const auto n = static_cast<int64_t>(words.size());
  const Tensor x = Tensor::zeros({n, 26}, DType::f64);
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

// Entropy and largest weight of one query [1, d] over keys [m, d], predicted by plain loops on the same f32 inputs.
void compare_sharpness(Result& r, const std::string& at, const Tensor& q, const Tensor& k, double beta) {
  const Tensor q32 = batch_of_one(q), k32 = batch_of_one(k);
  std::vector<double> z;
  for (int64_t i = 0; i < k.dim(0); ++i) z.push_back(beta * dot(q32, row(reshape(k32, k.shape()), i)));
  const std::vector<double> p = plain_softmax(z);
  const AttentionStatistics found = attention_statistics(q32, k32, with_scale(beta));
  r.exact(at, "entropy (nats)", plain_entropy(p), found.entropy.item());
  r.exact(at, "largest weight", *std::max_element(p.begin(), p.end()), found.max_weight.item());
}

void sweep_beta(Result& r, const std::string& which, const Tensor& q, const Tensor& k, double top) {
  for (const double share : {0.0, 0.001, 0.01, 0.1, 1.0}) {
    compare_sharpness(r, at((which + " keys, β").c_str(), share * top), q, k, share * top);
  }
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
  const Tensor q = Tensor::randn({n, 1, d}, rng);  // [n, 1, d]
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
  const std::vector<std::string> words = split_words(set.get_text("words"));
  if (words.size() < 2) throw ConfigError("--words: give at least two words, separated by commas");
  if (static_cast<double>(set.get_integer("samples") * set.get_integer("keys") * d_max) > 2e8) {
    throw ConfigError("--samples x --keys x --dim is above 200 million; lower one of them");
  }
  Result r;
  r.claim =
      "β sets how hard attention is: β → 0 spreads the weight evenly (entropy ln m), β → ∞ puts all of it on the best "
      "key (entropy 0), and β = 1/√d keeps the same hardness however large d is.";
  r.formula =
      "α_{i} = e^{β q·k_{i}} / Σ_{j} e^{β q·k_{j}},  entropy −Σ α_{i} ln α_{i}\n"
      "unit-variance q and k:  Var(q·k) = d,  so  Var(q·k/√d) = 1";
  Rng rng(static_cast<uint64_t>(set.get_integer("seed")));
  const Tensor random_keys = gaussian(set.get_integer("keys"), 64, rng), random_query = gaussian(1, 64, rng);
  sweep_beta(r, "random", random_query * 0.125, random_keys, top);
  const Tensor keys = letter_vectors(words), query = letter_vectors({set.get_text("query")});
  sweep_beta(r, "word", query, keys, top);

  // The two wrong answers, on the words: β = 1 is not hard, and a minus sign looks for the least similar.
  compare_sharpness(r, "word keys, β = 1", query, keys, 1);
  std::vector<double> z;
  for (int64_t i = 0; i < keys.dim(0); ++i) z.push_back(dot(query, row(keys, i)));
  const auto best = std::max_element(z.begin(), z.end()) - z.begin(), worst = std::min_element(z.begin(), z.end()) - z.begin();
  const auto chosen = [&](double beta) {
    return attention_statistics(batch_of_one(query), batch_of_one(keys), with_scale(beta)).argmax.item();
  };
  r.exact("word keys, e^{+βz}", "index of the winner", double(best), chosen(10));
  r.exact("word keys, e^{−βz}", "index of the winner", double(worst), chosen(-10));
  for (const int64_t part : {64, 16, 4, 1}) compare_dimension(r, d_max / part, set);

  ScoreRule hard = with_scale(1);
  hard.normaliser = Normaliser::hard;
  r.exact("word keys, hard", "entropy (nats)", 0,
          attention_statistics(batch_of_one(query), batch_of_one(keys), hard).entropy.item());
  const std::vector<double> soft = plain_softmax(z);
  char text[300];
  std::snprintf(text, sizeof text,
                "Common wrong answer: \"β = 1 gives hard attention\". At β = 1 the best word, '%s', gets %.1f %% of the "
                "weight; hard attention is the limit β → ∞.",
                words[static_cast<size_t>(best)].c_str(), 100 * soft[static_cast<size_t>(best)]);
  r.note(text);
  std::snprintf(text, sizeof text,
                "Common wrong answer: softargmax with a minus sign, e^{−βz}. It looks up '%s' and finds '%s', the least "
                "similar word.",
                set.get_text("query").c_str(), words[static_cast<size_t>(worst)].c_str());
  r.note(text);
  r.note("With β = 1 the entropy falls as d grows, because the scores grow as √d; with β = 1/√d it does not move.");
  return r;
}

}  // namespace qkv::lab
