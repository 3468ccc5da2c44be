// The specification of attention: one row at a time, plain loops, every sum in double.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "qkv/kernels/attention/visibility.h"
#include "qkv/kernels/dropout.h"

namespace qkv::kernels::reference {
namespace {

constexpr double kNegInf = -std::numeric_limits<double>::infinity();

// One query row: every stage of its scores over the keys of its sequence.
struct Row {
  int64_t h = 0, i = 0;
  bool empty = true;
  double lse = kNegInf;                   // log-sum-exp, threshold or maximum, by normaliser
  std::vector<char> visible;              // [Lk]
  std::vector<double> raw, capped, z, p;  // [Lk]; z and p are only set where visible
};

template <class T>
double raw_score(const AttentionInputs<T>& in, const Sequence& s, const Row& row, int64_t j) {
  const int64_t group = in.dims.H / in.dims.Hkv;
  const T* q = in.q.row(s.b, row.h, s.q_begin + row.i);
  const T* k = in.k.row(s.b, row.h / group, s.k_begin + j);
  double sum = 0;
  for (int64_t d = 0; d < in.dims.D; ++d) {
    if (in.rule.additive) {
      sum +=
          static_cast<double>(in.rule.additive[d]) * std::tanh(static_cast<double>(q[d]) + static_cast<double>(k[d]));
    } else {
      sum += static_cast<double>(q[d]) * static_cast<double>(k[d]);
    }
  }
  return sum * static_cast<double>(in.rule.scale);
}

double cap(double z, double softcap) { return softcap > 0 ? softcap * std::tanh(z / softcap) : z; }

// The visible scores in decreasing order.
std::vector<double> sorted_scores(const Row& row) {
  std::vector<double> sorted;
  for (size_t j = 0; j < row.z.size(); ++j) {
    if (row.visible[j]) sorted.push_back(row.z[j]);
  }
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  return sorted;
}

void softmax(Row& row) {
  double top = kNegInf, sum = 0;
  for (size_t j = 0; j < row.z.size(); ++j) {
    if (row.visible[j]) top = std::max(top, row.z[j]);
  }
  for (size_t j = 0; j < row.z.size(); ++j) {
    if (row.visible[j]) sum += std::exp(row.z[j] - top);
  }
  row.lse = top + std::log(sum);
  for (size_t j = 0; j < row.z.size(); ++j) {
    if (row.visible[j]) row.p[j] = std::exp(row.z[j] - top) / sum;
  }
}

// p = max(0, z - τ) with τ such that Σ p = 1: the largest support whose smallest member stays positive.
void sparsemax(Row& row) {
  double sum = 0, tau = 0, count = 0;
  for (const double z : sorted_scores(row)) {
    if (1 + (count + 1) * z <= sum + z) break;
    sum += z;
    count += 1;
    tau = (sum - 1) / count;
  }
  row.lse = tau;
  for (size_t j = 0; j < row.z.size(); ++j) {
    if (row.visible[j]) row.p[j] = std::max(0.0, row.z[j] - tau);
  }
}

// p = max(0, z/2 - τ)² with τ such that Σ p = 1. Over the c largest, with mean m and mean square m2 of z/2,
// τ = m - sqrt(max(0, (1 - c (m2 - m²)) / c)); the support is the largest c with τ ≤ z_c / 2.
void entmax15(Row& row) {
  const std::vector<double> sorted = sorted_scores(row);
  const double top = sorted.empty() ? 0 : sorted[0] / 2;  // centred, so that the squares do not cancel
  double sum = 0, squares = 0, count = 0, tau = -1;
  for (const double z : sorted) {
    const double x = z / 2 - top;
    sum += x;
    squares += x * x;
    count += 1;
    const double mean = sum / count;
    const double candidate = mean - std::sqrt(std::max(0.0, (1 - (squares - sum * mean)) / count));
    if (candidate > x) break;
    tau = candidate;
  }
  row.lse = tau + top;
  for (size_t j = 0; j < row.z.size(); ++j) {
    if (!row.visible[j]) continue;
    const double root = std::max(0.0, row.z[j] / 2 - top - tau);
    row.p[j] = root * root;
  }
}

void hard(Row& row) {
  double top = kNegInf, ties = 0;
  for (size_t j = 0; j < row.z.size(); ++j) {
    if (!row.visible[j] || row.z[j] < top) continue;
    ties = row.z[j] > top ? 1 : ties + 1;
    top = row.z[j];
  }
  row.lse = top;
  for (size_t j = 0; j < row.z.size(); ++j) {
    if (row.visible[j]) row.p[j] = row.z[j] == top ? 1 / ties : 0;
  }
}

template <class T>
void compute_row(const AttentionInputs<T>& in, const Sequence& s, int64_t h, int64_t i, Row& row) {
  const auto Lk = static_cast<size_t>(s.Lk);
  row = Row{h,
            i,
            true,
            kNegInf,
            std::vector<char>(Lk),
            std::vector<double>(Lk),
            std::vector<double>(Lk),
            std::vector<double>(Lk, kNegInf),
            std::vector<double>(Lk)};
  const KeyRange range = key_range(in.rule, s, i);
  for (int64_t j = range.lo; j < range.hi; ++j) {
    if (key_hidden(in.rule, s, h, i, j)) continue;
    const auto at = static_cast<size_t>(j);
    row.empty = false;
    row.visible[at] = 1;
    row.raw[at] = raw_score(in, s, row, j);
    row.capped[at] = cap(row.raw[at], static_cast<double>(in.rule.softcap));
    row.z[at] = row.capped[at];
    if (in.rule.bias.data) row.z[at] += static_cast<double>(in.rule.bias.row(s.b, h, i)[j * in.rule.bias.k_stride]);
  }
  if (row.empty) return;
  if (std::any_of(row.z.begin(), row.z.end(), [](double z) { return std::isnan(z); })) {
    row.lse = std::numeric_limits<double>::quiet_NaN();
    for (size_t j = 0; j < Lk; ++j) row.p[j] = row.visible[j] ? row.lse : 0;
    return;
  }
  switch (in.rule.normaliser) {
    case Normaliser::softmax:
      return softmax(row);
    case Normaliser::sparsemax:
      return sparsemax(row);
    case Normaliser::entmax15:
      return entmax15(row);
    case Normaliser::hard:
      return hard(row);
  }
}

// 0 for a dropped weight, 1/(1-p) for a kept one.
template <class T>
double kept(const AttentionInputs<T>& in, const Sequence& s, const Row& row, int64_t j) {
  const ScoreArgs<T>& rule = in.rule;
  if (rule.dropout_threshold == 0) return 1;
  const auto plane = static_cast<uint64_t>(s.b * in.dims.H + row.h);
  const bool keep = weight_dropout_keeps(rule.dropout_seed, plane, static_cast<uint64_t>(row.i),
                                         static_cast<uint32_t>(j), rule.dropout_threshold);
  return keep ? static_cast<double>(rule.keep_scale) : 0;
}

// Calls fn(sequence, row) for every query row of the batch.
template <class T, class Fn>
void for_each_row(const AttentionInputs<T>& in, Fn&& fn) {
  Row row;
  for (int64_t b = 0; b < in.dims.B; ++b) {
    const Sequence s = sequence_of(in, b);
    for (int64_t h = 0; h < in.dims.H; ++h) {
      for (int64_t i = 0; i < s.Lq; ++i) {
        compute_row(in, s, h, i, row);
        fn(s, row);
      }
    }
  }
}

// dz from dp, the gradient of the weights, by normaliser; both over the visible keys.
void normaliser_backward(Normaliser normaliser, const Row& row, const std::vector<double>& dp,
                         std::vector<double>& dz) {
  // Softmax: g = p. Sparsemax: g = [p > 0]. Entmax15: g = √p. Always dz = g (dp - Σ g dp / Σ g).
  double weight = 0, sum = 0;
  const auto g = [&](size_t j) {
    if (!row.visible[j] || normaliser == Normaliser::hard) return 0.0;
    if (normaliser == Normaliser::softmax || std::isnan(row.p[j])) return row.p[j];
    return normaliser == Normaliser::sparsemax ? static_cast<double>(row.p[j] > 0) : std::sqrt(row.p[j]);
  };
  for (size_t j = 0; j < dz.size(); ++j) {
    if (g(j) == 0) continue;
    weight += g(j);
    sum += g(j) * dp[j];
  }
  for (size_t j = 0; j < dz.size(); ++j) dz[j] = g(j) == 0 ? 0 : g(j) * (dp[j] - sum / weight);
}

// Gradients in double; written back once at the end, so that f32 results are rounded once.
template <class T>
class Backward {
 public:
  Backward(const AttentionInputs<T>& in, const AttentionGrads<T>& grads) : in_(in), grads_(grads) {
    if (grads.d_additive) d_additive_.assign(static_cast<size_t>(in.dims.D), 0.0);
  }

  void run() {
    for (int64_t b = 0; b < in_.dims.B; ++b) {
      const Sequence s = sequence_of(in_, b);
      for (int64_t kv = 0; kv < in_.dims.Hkv; ++kv) key_head(s, kv);
    }
    for (size_t d = 0; d < d_additive_.size(); ++d) grads_.d_additive[d] += static_cast<T>(d_additive_[d]);
  }

 private:
  void key_head(const Sequence& s, int64_t kv) {
    const auto [B, H, Hkv, Lq, Lk, D, Dv] = in_.dims;
    d_k_.assign(static_cast<size_t>(s.Lk * D), 0.0);
    d_v_.assign(static_cast<size_t>(s.Lk * Dv), 0.0);
    for (int64_t h = kv * (H / Hkv); h < (kv + 1) * (H / Hkv); ++h) {
      for (int64_t i = 0; i < s.Lq; ++i) query_row(s, h, i);
    }
    for (int64_t j = 0; j < s.Lk; ++j) {
      write(grads_.d_k, s.b, kv, s.k_begin + j, d_k_.data() + j * D, D);
      write(grads_.d_v, s.b, kv, s.k_begin + j, d_v_.data() + j * Dv, Dv);
    }
  }

  void query_row(const Sequence& s, int64_t h, int64_t i) {
    const int64_t D = in_.dims.D, Dv = in_.dims.Dv, kv = h / (in_.dims.H / in_.dims.Hkv);
    d_q_.assign(static_cast<size_t>(D), 0.0);
    compute_row(in_, s, h, i, row_);
    if (!row_.empty) {
      dp_.assign(row_.z.size(), 0.0);
      dz_.assign(row_.z.size(), 0.0);
      const T* d_out = grads_.d_out.row(s.b, h, s.q_begin + i);
      for (int64_t j = 0; j < s.Lk; ++j) {
        const auto at = static_cast<size_t>(j);
        if (!row_.visible[at]) continue;
        const T* v = in_.v.row(s.b, kv, s.k_begin + j);
        const double keep = kept(in_, s, row_, j);
        if (keep == 0) continue;
        for (int64_t d = 0; d < Dv; ++d) {
          dp_[at] += keep * static_cast<double>(d_out[d]) * static_cast<double>(v[d]);
          if (row_.p[at] != 0)
            d_v_[static_cast<size_t>(j * Dv + d)] += keep * row_.p[at] * static_cast<double>(d_out[d]);
        }
      }
      normaliser_backward(in_.rule.normaliser, row_, dp_, dz_);
      for (int64_t j = 0; j < s.Lk; ++j) {
        if (row_.visible[static_cast<size_t>(j)]) score_backward(s, j);
      }
    }
    write(grads_.d_q, s.b, h, s.q_begin + i, d_q_.data(), D);
  }

  // From dz of one (query, key) to the bias, the query, the key and the additive weights.
  void score_backward(const Sequence& s, int64_t j) {
    const ScoreArgs<T>& rule = in_.rule;
    const int64_t D = in_.dims.D, kv = row_.h / (in_.dims.H / in_.dims.Hkv);
    const auto at = static_cast<size_t>(j);
    double g = dz_[at];
    if (g == 0) return;
    if (grads_.d_bias) {
      const ScoreArray<T>& bias = rule.bias;
      grads_.d_bias[s.b * bias.b_stride + row_.h * bias.h_stride + row_.i * bias.q_stride + j * bias.k_stride] +=
          static_cast<T>(g);
    }
    if (rule.softcap > 0) {
      const double t = row_.capped[at] / static_cast<double>(rule.softcap);
      g *= 1 - t * t;
    }
    g *= static_cast<double>(rule.scale);
    const T* q = in_.q.row(s.b, row_.h, s.q_begin + row_.i);
    const T* k = in_.k.row(s.b, kv, s.k_begin + j);
    for (int64_t d = 0; d < D; ++d) {
      const auto dd = static_cast<size_t>(d);
      double& d_k = d_k_[static_cast<size_t>(j * D + d)];
      if (rule.additive) {
        const double t = std::tanh(static_cast<double>(q[d]) + static_cast<double>(k[d]));
        const double slope = g * static_cast<double>(rule.additive[d]) * (1 - t * t);
        d_q_[dd] += slope;
        d_k += slope;
        if (grads_.d_additive) d_additive_[dd] += g * t;
      } else {
        d_q_[dd] += g * static_cast<double>(k[d]);
        d_k += g * static_cast<double>(q[d]);
      }
    }
  }

  static void write(const Strided<T>& to, int64_t b, int64_t h, int64_t l, const double* from, int64_t n) {
    if (!to.data) return;
    T* row = to.row(b, h, l);
    for (int64_t d = 0; d < n; ++d) row[d] = static_cast<T>(from[d]);
  }

  const AttentionInputs<T>& in_;
  const AttentionGrads<T>& grads_;
  Row row_;
  std::vector<double> d_q_, d_k_, d_v_, d_additive_, dp_, dz_;
};

}  // namespace

template <class T>
void attention_forward(const AttentionInputs<T>& in, const AttentionOutputs<T>& out) {
  const int64_t group = in.dims.H / in.dims.Hkv;
  std::vector<double> sum;
  for_each_row(in, [&](const Sequence& s, const Row& row) {
    sum.assign(static_cast<size_t>(in.dims.Dv), 0.0);
    for (int64_t j = 0; j < s.Lk; ++j) {
      const double weight =
          row.visible[static_cast<size_t>(j)] ? row.p[static_cast<size_t>(j)] * kept(in, s, row, j) : 0;
      if (weight == 0) continue;
      const T* v = in.v.row(s.b, row.h / group, s.k_begin + j);
      for (int64_t d = 0; d < in.dims.Dv; ++d) sum[static_cast<size_t>(d)] += weight * static_cast<double>(v[d]);
    }
    T* to = out.out.row(s.b, row.h, s.q_begin + row.i);
    for (int64_t d = 0; d < in.dims.Dv; ++d) to[d] = static_cast<T>(sum[static_cast<size_t>(d)]);
    if (out.lse.data) *out.lse.row(s.b, row.h, s.q_begin + row.i) = static_cast<T>(row.lse);
  });
}

template <class T>
void attention_backward(const AttentionInputs<T>& in, const AttentionGrads<T>& grads) {
  Backward<T>(in, grads).run();
}

template <class T>
void attention_scores(const AttentionInputs<T>& in, const ScoreWindow& window, T* scores) {
  const Sequence s = sequence_of(in, window.b);
  const bool biased = window.stage == ScoreStage::biased;
  Row row;
  for (int64_t i = window.row_begin; i < window.row_end; ++i) {
    compute_row(in, s, window.h, i, row);
    T* to = scores + (i - window.row_begin) * in.dims.Lk;
    std::fill(to, to + in.dims.Lk, biased ? -std::numeric_limits<T>::infinity() : T{0});
    for (int64_t j = 0; j < s.Lk; ++j) {
      const auto at = static_cast<size_t>(j);
      double value = 0;
      if (window.stage == ScoreStage::weights) {
        value = row.p[at];
      } else if (biased) {
        value = row.z[at];
      } else {
        value = raw_score(in, s, row, j);
        if (window.stage == ScoreStage::capped) value = cap(value, static_cast<double>(in.rule.softcap));
      }
      to[j] = static_cast<T>(value);
    }
  }
}

template <class T>
void attention_stats(const AttentionInputs<T>& in, const AttentionStats<T>& stats) {
  for_each_row(in, [&](const Sequence& s, const Row& row) {
    double entropy = 0, max_weight = 0, argmax = -1, distance = 0;
    for (int64_t j = 0; j < s.Lk; ++j) {
      const double p = row.p[static_cast<size_t>(j)];
      if (!row.visible[static_cast<size_t>(j)]) continue;
      if (argmax < 0 || p > max_weight) {
        max_weight = p;
        argmax = static_cast<double>(j);
      }
      if (p > 0) entropy -= p * std::log(p);
      distance += p * std::abs(static_cast<double>(row.i + s.offset - j));
    }
    const auto put = [&](const Strided<T>& to, double value) {
      if (to.data) *to.row(s.b, row.h, s.q_begin + row.i) = static_cast<T>(value);
    };
    put(stats.entropy, entropy);
    put(stats.max_weight, max_weight);
    put(stats.argmax, argmax);
    put(stats.mean_distance, distance);
    put(stats.lse, row.lse);
  });
}

#define QKV_INSTANTIATE(T)                                                                   \
  template void attention_forward<T>(const AttentionInputs<T>&, const AttentionOutputs<T>&); \
  template void attention_backward<T>(const AttentionInputs<T>&, const AttentionGrads<T>&);  \
  template void attention_scores<T>(const AttentionInputs<T>&, const ScoreWindow&, T*);      \
  template void attention_stats<T>(const AttentionInputs<T>&, const AttentionStats<T>&);
QKV_INSTANTIATE(float)
QKV_INSTANTIATE(double)
#undef QKV_INSTANTIATE

}  // namespace qkv::kernels::reference
