// Experiment: a small example worked through, every intermediate value by plain loops and by the library.
#include <cmath>

#include "qkv/lab/experiments.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

using Matrix = std::vector<std::vector<double>>;

const Matrix kX = {{-2, 1, 0.5}, {1, 1.5, -0.5}, {-1.5, 1, -0.5}, {-2, -2.5, 1.5}};
const Matrix kQuery = {{-2, 1, -1}};
const Matrix kWq = {{1, -1.5}, {0, 2}, {-0.5, -1}};
const Matrix kWk = {{-1.5, -1}, {2.5, 0}, {0.5, -1}};
const Matrix kWv = {{1, 2.5}, {-0.5, -2}, {0, -1}};
const Matrix kOnes = {{1, 1}, {1, 1}, {1, 1}};
const Matrix kWo = {{-1, 1.5, 2}, {0, -1, -2}, {1, -1.5, 0}, {2, 0, 1}};

// The prediction: school-book loops that share nothing with the library.
Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.size(), std::vector<double>(b[0].size()));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b[0].size(); ++j) {
      for (size_t k = 0; k < b.size(); ++k) c[i][j] += a[i][k] * b[k][j];
    }
  }
  return c;
}

Matrix turned(const Matrix& a) {
  Matrix t(a[0].size(), std::vector<double>(a.size()));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a[0].size(); ++j) t[j][i] = a[i][j];
  }
  return t;
}

Matrix scaled_scores(const Matrix& q, const Matrix& k) {
  Matrix z = product(q, turned(k));
  for (auto& line : z) {
    for (double& x : line) x /= std::sqrt(static_cast<double>(k[0].size()));
  }
  return z;
}

Matrix row_softmax(Matrix z) {
  for (auto& line : z) line = plain_softmax(line);
  return z;
}

Tensor tensor(const Matrix& m) {
  std::vector<double> flat;
  for (const auto& line : m) flat.insert(flat.end(), line.begin(), line.end());
  return Tensor::from(flat, {static_cast<int64_t>(m.size()), static_cast<int64_t>(m[0].size())});
}

// One row of the table per element.
void compare(Result& r, const std::string& step, const char* name, const Matrix& predicted, const Tensor& measured) {
  for (size_t i = 0; i < predicted.size(); ++i) {
    for (size_t j = 0; j < predicted[0].size(); ++j) {
      const std::string which = std::string(name) + "[" + std::to_string(i) + "," + std::to_string(j) + "]";
      r.exact(step, which, predicted[i][j], measured.at({static_cast<int64_t>(i), static_cast<int64_t>(j)}));
    }
  }
}

struct Attended {
  Matrix predicted;
  Tensor measured;  // [L, Dv]
};

// softmax(q kᵀ/√d) v, step by step.
Attended attend(Result& r, const std::string& step, const Matrix& q, const Matrix& k, const Matrix& v) {
  const Tensor tq = batch_of_one(tensor(q)), tk = batch_of_one(tensor(k)), tv = batch_of_one(tensor(v));
  const Matrix z = scaled_scores(q, k), p = row_softmax(z), h = product(p, v);
  compare(r, step, "scores", z, unbatched(attention_score_array(tq, tk, {}, ScoreStage::raw)));
  compare(r, step, "weights", p, unbatched(attention_score_array(tq, tk, {})));
  HeatMap map = weight_map(step, attention_score_array(tq, tk, {}));
  map.numbers = true;
  if (r.pictures.empty()) r.pictures.push_back(Maps{"The weights of each part", {}, 3, ""});
  std::get<Maps>(r.pictures[0]).maps.push_back(map);
  const Tensor out = unbatched(attention(tq, tk, tv));
  compare(r, step, "output", h, out);
  return {h, out};
}

Attended head(Result& r, const std::string& step, const Matrix& wq, const Matrix& wk, const Matrix& wv) {
  const Matrix q = product(kX, wq), k = product(kX, wk), v = product(kX, wv);
  const Tensor x = batch_of_one(tensor(kX));
  const auto projected = [&](const Matrix& w) { return unbatched(linear(x, tensor(turned(w)).to(DType::f32))); };
  compare(r, step, "Q", q, projected(wq));
  compare(r, step, "K", k, projected(wk));
  compare(r, step, "V", v, projected(wv));
  return attend(r, step, q, k, v);
}

}  // namespace

Settings worked_settings() {
  Settings s;
  s.choice("part", "all", {"all", "query", "one-head", "two-heads"}, "which part of the example to show");
  return s;
}

Result run_worked(const Settings& set) {
  const std::string& part = set.get_text("part");
  Result r;
  r.claim = "Every intermediate value of a small example, by hand and by the library: one query, one head, two heads.";
  r.formula =
      "weights = softmax(QK^{T}/√d),  output = weights·V\n"
      "Q = XW_{Q},  K = XW_{K},  V = XW_{V};   two heads:  Z = [head 1, head 2] W_{O}";
  if (part == "all" || part == "query") attend(r, "1. one query", kQuery, kX, kX);
  if (part == "all" || part == "one-head") head(r, "2. one head", kWq, kWk, kWv);
  if (part == "all" || part == "two-heads") {
    Result hidden;  // head 1 is part 2; shown there
    const Attended one = head(part == "all" ? hidden : r, "3. head 1", kWq, kWk, kWv);
    const Attended two = head(r, "3. head 2 (all ones)", kOnes, kOnes, kOnes);
    Matrix joined = one.predicted;
    for (size_t i = 0; i < joined.size(); ++i) {
      joined[i].insert(joined[i].end(), two.predicted[i].begin(), two.predicted[i].end());
    }
    const Tensor heads = concat({one.measured, two.measured}, 1).to(DType::f32);  // [4, 4]
    compare(r, "3. two heads", "Z", product(joined, kWo), linear(heads, tensor(turned(kWo)).to(DType::f32)));
  }
  r.note(
      "X = [−2 1 .5; 1 1.5 −.5; −1.5 1 −.5; −2 −2.5 1.5], q = [−2 1 −1]; one head: W_Q = [1 −1.5; 0 2; −.5 −1], "
      "W_K = [−1.5 −1; 2.5 0; .5 −1], W_V = [1 2.5; −.5 −2; 0 −1]; two heads: the matrices of head 2 are all ones, and "
      "W_O = [−1 1.5 2; 0 −1 −2; 1 −1.5 0; 2 0 1].");
  return r;
}

}  // namespace qkv::lab
