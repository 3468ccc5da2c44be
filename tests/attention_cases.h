// The one table of attention cases: tests verify every row, benches time the rows that carry a shape people use.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "qkv/base/rng.h"
#include "qkv/kernels/attention.h"
#include "qkv/kernels/dropout.h"

namespace qkv::cases {

enum class Lens { none, batch, query };  // valid lengths: none, [B], [B,Lq]
enum class Array {
  none,
  full,
  heads,
  keys,
  rows,
  short_rows,
  flat
};                                         // [B,H,Lq,Lk] [1,H,Lq,Lk] [B,1,1,Lk] [B,H,Lq,1] fewer keys, [1,1,Lq,Lk]
enum class Poison { none, unseen, seen };  // NaN and Inf where no query looks; NaN in keys that some queries see

/// One row of the table. Lengths are drawn per sequence when `packed` or `lens` ask for them.
struct AttentionCase {
  std::string name;
  kernels::AttentionDims dims;
  double scale = 0;  // 0: 1/√D
  double softcap = 0;
  bool causal = false;
  int64_t offset = 0;
  bool batch_offsets = false;
  int64_t window_left = -1, window_right = -1;
  Lens lens = Lens::none;
  Array mask = Array::none, bias = Array::none;
  bool bias_hides = false;  // some entries of -inf
  kernels::Normaliser normaliser = kernels::Normaliser::softmax;
  bool additive = false;
  double dropout = 0;
  bool packed = false;
  bool heads_last = false;  // [B, L, H, D] instead of [B, H, L, D]
  bool integers = false;    // small whole numbers, so that scores and ties are exact
  Poison poison = Poison::none;
};

inline std::vector<AttentionCase> attention_cases() {
  using kernels::Normaliser;
  std::vector<AttentionCase> t;
  const auto add = [&](AttentionCase c) { t.push_back(std::move(c)); };
  add({.name = "one", .dims = {1, 1, 1, 1, 1, 1, 1}});
  add({.name = "odd", .dims = {2, 3, 3, 17, 17, 5, 7}});
  add({.name = "tall", .dims = {1, 2, 2, 100, 3, 16, 16}});
  add({.name = "wide", .dims = {1, 2, 2, 3, 100, 16, 16}});
  add({.name = "one query", .dims = {2, 2, 2, 1, 257, 64, 64}});
  add({.name = "one query long", .dims = {1, 1, 1, 1, 4500, 8, 8}});
  add({.name = "chunks", .dims = {1, 1, 1, 70, 4200, 8, 12}});
  add({.name = "31", .dims = {1, 2, 2, 31, 33, 32, 32}});
  add({.name = "63x65", .dims = {2, 1, 1, 63, 65, 33, 31}});
  add({.name = "65x63", .dims = {2, 1, 1, 65, 63, 64, 64}});
  add({.name = "129", .dims = {1, 2, 2, 129, 129, 32, 32}});
  add({.name = "257", .dims = {1, 1, 1, 257, 257, 64, 64}});
  add({.name = "wide heads", .dims = {1, 1, 1, 33, 40, 130, 200}});
  add({.name = "heads last", .dims = {2, 4, 4, 65, 65, 16, 16}, .heads_last = true});
  add({.name = "grouped", .dims = {2, 6, 2, 31, 47, 16, 20}});
  add({.name = "grouped long", .dims = {1, 4, 2, 100, 130, 16, 16}, .causal = true});
  add({.name = "grouped one query", .dims = {2, 8, 2, 1, 200, 32, 32}});
  add({.name = "scale", .dims = {1, 2, 2, 17, 17, 8, 8}, .scale = 1.5});
  add({.name = "softcap", .dims = {1, 2, 2, 33, 65, 16, 16}, .scale = 2, .softcap = 3});
  for (const int64_t n : {1, 3, 17, 32, 64, 100, 128, 200, 257}) {
    add({.name = "causal " + std::to_string(n), .dims = {1, 2, 2, n, n, 16, 16}, .causal = true});
  }
  add({.name = "causal offset", .dims = {1, 2, 2, 33, 100, 16, 16}, .causal = true, .offset = 67});
  add({.name = "causal negative offset", .dims = {1, 2, 2, 70, 100, 16, 16}, .causal = true, .offset = -40});
  add({.name = "causal batch offsets", .dims = {3, 2, 2, 33, 100, 16, 16}, .causal = true, .batch_offsets = true});
  add({.name = "window left", .dims = {1, 2, 2, 200, 200, 16, 16}, .causal = true, .window_left = 20});
  add({.name = "window both", .dims = {1, 2, 2, 150, 300, 16, 16}, .window_left = 5, .window_right = 9});
  add({.name = "window right only", .dims = {1, 1, 1, 70, 300, 16, 16}, .window_right = 130});
  add({.name = "window past the end", .dims = {1, 1, 1, 130, 40, 8, 8}, .window_left = 10, .window_right = 3});
  add({.name = "lens", .dims = {4, 2, 2, 33, 150, 16, 16}, .lens = Lens::batch});
  add({.name = "lens 128", .dims = {4, 2, 2, 128, 128, 32, 32}, .lens = Lens::batch});
  add({.name = "lens chunks", .dims = {3, 1, 1, 20, 1500, 8, 8}, .lens = Lens::batch});
  add({.name = "lens causal", .dims = {4, 2, 2, 100, 100, 16, 16}, .causal = true, .lens = Lens::batch});
  add({.name = "lens per query", .dims = {3, 2, 2, 65, 140, 16, 16}, .lens = Lens::query});
  add({.name = "mask", .dims = {2, 2, 2, 65, 140, 16, 16}, .mask = Array::full});
  add({.name = "mask keys", .dims = {3, 2, 2, 65, 140, 16, 16}, .mask = Array::keys});
  add({.name = "mask short", .dims = {2, 2, 2, 20, 140, 16, 16}, .mask = Array::short_rows});
  add({.name = "bias", .dims = {2, 2, 2, 65, 140, 16, 16}, .bias = Array::full});
  add({.name = "bias heads", .dims = {3, 2, 2, 65, 40, 16, 16}, .bias = Array::heads});
  add({.name = "bias flat", .dims = {3, 2, 2, 35, 200, 16, 16}, .bias = Array::flat});
  add({.name = "bias keys", .dims = {2, 4, 2, 35, 140, 16, 16}, .bias = Array::keys});
  add({.name = "bias rows", .dims = {2, 2, 2, 65, 300, 16, 16}, .bias = Array::rows});
  add({.name = "bias hides", .dims = {2, 2, 2, 65, 140, 16, 16}, .bias = Array::full, .bias_hides = true});
  add({.name = "bias short", .dims = {2, 2, 2, 33, 140, 16, 16}, .bias = Array::short_rows});
  add({.name = "dropout", .dims = {2, 2, 2, 65, 140, 16, 16}, .dropout = 0.3});
  add({.name = "dropout causal", .dims = {2, 2, 1, 140, 140, 16, 16}, .causal = true, .dropout = 0.1});
  add({.name = "packed", .dims = {5, 2, 2, 70, 90, 16, 16}, .packed = true});
  add({.name = "packed causal",
       .dims = {5, 4, 2, 150, 150, 16, 20},
       .causal = true,
       .packed = true,
       .heads_last = true});
  add({.name = "packed bias dropout",
       .dims = {4, 2, 2, 70, 90, 16, 16},
       .bias = Array::heads,
       .dropout = 0.2,
       .packed = true});
  add({.name = "everything",
       .dims = {3, 4, 2, 140, 300, 24, 20},
       .scale = 0.7,
       .softcap = 4,
       .causal = true,
       .batch_offsets = true,
       .window_left = 150,
       .lens = Lens::batch,
       .mask = Array::full,
       .bias = Array::full,
       .bias_hides = true,
       .dropout = 0.2,
       .heads_last = true});
  add({.name = "poison causal", .dims = {2, 2, 2, 70, 100, 16, 16}, .causal = true, .poison = Poison::unseen});
  add({.name = "poison lens", .dims = {4, 2, 1, 65, 150, 16, 16}, .lens = Lens::batch, .poison = Poison::unseen});
  add({.name = "poison mask", .dims = {2, 2, 2, 65, 140, 16, 13}, .mask = Array::keys, .poison = Poison::unseen});
  add({.name = "poison bias",
       .dims = {2, 1, 1, 33, 70, 16, 16},
       .bias = Array::full,
       .bias_hides = true,
       .poison = Poison::unseen});
  add({.name = "poison window",
       .dims = {1, 2, 2, 100, 400, 16, 16},
       .window_left = 3,
       .window_right = 3,
       .poison = Poison::unseen});
  add({.name = "poison seen", .dims = {2, 2, 2, 150, 150, 16, 16}, .causal = true, .poison = Poison::seen});
  add({.name = "poison seen mask", .dims = {1, 2, 2, 65, 140, 16, 16}, .mask = Array::full, .poison = Poison::seen});
  const auto other = [&](const std::string& name, Normaliser n) {
    add({.name = name, .dims = {2, 2, 2, 33, 70, 16, 16}, .scale = 1, .normaliser = n});
    add({.name = name + " one query", .dims = {3, 2, 2, 1, 31, 16, 16}, .normaliser = n});
    add({.name = name + " rules",
         .dims = {3, 4, 2, 70, 150, 16, 12},
         .softcap = 5,
         .causal = true,
         .offset = 20,
         .window_left = 60,
         .lens = Lens::batch,
         .mask = Array::full,
         .bias = Array::heads,
         .normaliser = n,
         .dropout = 0.2});
    add({.name = name + " packed", .dims = {4, 2, 2, 40, 40, 16, 16}, .causal = true, .normaliser = n, .packed = true});
    add({.name = name + " poison seen",
         .dims = {2, 2, 2, 60, 60, 16, 16},
         .causal = true,
         .normaliser = n,
         .poison = Poison::seen});
    add({.name = name + " poison",
         .dims = {2, 2, 2, 40, 60, 16, 16},
         .causal = true,
         .normaliser = n,
         .poison = Poison::unseen});
  };
  other("sparsemax", Normaliser::sparsemax);
  other("entmax15", Normaliser::entmax15);
  add({.name = "hard", .dims = {2, 2, 2, 33, 70, 4, 16}, .scale = 1, .normaliser = Normaliser::hard, .integers = true});
  add({.name = "hard rules",
       .dims = {2, 4, 2, 40, 150, 4, 12},
       .scale = 0.5,
       .causal = true,
       .offset = 30,
       .lens = Lens::batch,
       .mask = Array::full,
       .normaliser = Normaliser::hard,
       .dropout = 0.2,
       .integers = true});
  add({.name = "additive", .dims = {2, 1, 1, 17, 31, 24, 16}, .scale = 1, .additive = true});
  add({.name = "additive one query",
       .dims = {5, 1, 1, 1, 15, 37, 16},
       .scale = 1,
       .lens = Lens::batch,
       .additive = true});
  add({.name = "additive rules",
       .dims = {2, 4, 2, 70, 140, 9, 12},
       .scale = 1.5,
       .softcap = 3,
       .causal = true,
       .offset = 5,
       .lens = Lens::batch,
       .mask = Array::full,
       .bias = Array::full,
       .additive = true,
       .dropout = 0.2});
  add({.name = "additive packed", .dims = {4, 1, 1, 30, 50, 16, 16}, .scale = 1, .additive = true, .packed = true});
  add({.name = "additive poison",
       .dims = {2, 1, 1, 40, 60, 16, 16},
       .causal = true,
       .additive = true,
       .poison = Poison::unseen});
  add({.name = "additive sparsemax",
       .dims = {2, 1, 1, 17, 31, 24, 16},
       .scale = 1,
       .normaliser = Normaliser::sparsemax,
       .additive = true});
  return t;
}

/// Buffers of one case in T. The same case gives the same numbers (rounded to float) for float and double.
template <class T>
class AttentionData {
 public:
  explicit AttentionData(const AttentionCase& c) : c_(c), rng_(7) {
    const auto [B, H, Hkv, Lq, Lk, D, Dv] = c.dims;
    in.dims = c.dims;
    draw_offsets();
    const int64_t rows_q = c.packed ? q_offsets.back() : B * Lq, rows_k = c.packed ? k_offsets.back() : B * Lk;
    q = normal(rows_q * H * D);
    k = normal(rows_k * Hkv * D);
    v = normal(rows_k * Hkv * Dv);
    d_out = normal(rows_q * H * Dv);
    out.assign(d_out.size(), T{9});
    lse.assign(static_cast<size_t>(rows_q * H), T{9});
    d_q.assign(q.size(), T{9});
    d_k.assign(k.size(), T{9});
    d_v.assign(v.size(), T{9});
    in.q = {q.data()};
    in.k = {k.data()};
    in.v = {v.data()};
    set_strides(in.q, H, Lq, rows_q, D);
    set_strides(in.k, Hkv, Lk, rows_k, D);
    set_strides(in.v, Hkv, Lk, rows_k, Dv);
    draw_rule();
    poison();
  }

  kernels::AttentionOutputs<T> outputs() {
    const auto [B, H, Hkv, Lq, Lk, D, Dv] = c_.dims;
    kernels::AttentionOutputs<T> o{{out.data()}, {lse.data()}};
    set_strides(o.out, H, Lq, rows_q(), Dv);
    set_strides(o.lse, H, Lq, rows_q(), 1);
    return o;
  }
  kernels::AttentionGrads<T> grads() {
    const auto [B, H, Hkv, Lq, Lk, D, Dv] = c_.dims;
    kernels::AttentionGrads<T> g;
    g.out = {out.data()};
    g.lse = {lse.data()};
    g.d_out = {d_out.data()};
    g.d_q = {d_q.data()};
    g.d_k = {d_k.data()};
    g.d_v = {d_v.data()};
    set_strides(g.out, H, Lq, rows_q(), Dv);
    set_strides(g.lse, H, Lq, rows_q(), 1);
    set_strides(g.d_out, H, Lq, rows_q(), Dv);
    set_strides(g.d_q, H, Lq, rows_q(), D);
    set_strides(g.d_k, Hkv, Lk, rows_k(), D);
    set_strides(g.d_v, Hkv, Lk, rows_k(), Dv);
    d_bias.assign(bias.size(), T{0});
    d_additive.assign(additive.size(), T{0});
    if (!bias.empty()) g.d_bias = d_bias.data();
    if (!additive.empty()) g.d_additive = d_additive.data();
    return g;
  }
  int64_t rows_q() const { return c_.packed ? q_offsets.back() : c_.dims.B * c_.dims.Lq; }
  int64_t rows_k() const { return c_.packed ? k_offsets.back() : c_.dims.B * c_.dims.Lk; }

  kernels::AttentionInputs<T> in;
  std::vector<T> q, k, v, bias, additive, d_out;
  std::vector<T> out, lse, d_q, d_k, d_v, d_bias, d_additive;
  std::vector<int64_t> q_offsets, k_offsets, key_lens, batch_offsets;
  std::vector<uint8_t> mask;

 private:
  std::vector<T> normal(int64_t n) {
    std::vector<T> x(static_cast<size_t>(n));
    for (T& e : x) {
      e = c_.integers ? static_cast<T>(rng_.below(3)) - 1 : static_cast<T>(static_cast<float>(rng_.normal()));
    }
    return x;
  }

  template <class S>
  void set_strides(S& s, int64_t heads, int64_t length, int64_t rows, int64_t width) const {
    s.l_stride = c_.heads_last ? heads * width : width;
    s.h_stride = c_.heads_last ? width : width * (c_.packed ? rows : length);
    s.b_stride = c_.packed ? 0 : heads * length * width;
  }

  void draw_offsets() {
    if (!c_.packed) return;
    q_offsets = {0};
    k_offsets = {0};
    for (int64_t b = 0; b < c_.dims.B; ++b) {
      // The first sequence has the full length, one is empty, the others are anything between.
      const int64_t Lq = b == 0 ? c_.dims.Lq : b == 2 ? 0 : 1 + rng_.below(c_.dims.Lq);
      const int64_t Lk = b == 0 ? c_.dims.Lk : b == 2 ? 3 : 1 + rng_.below(c_.dims.Lk);
      q_offsets.push_back(q_offsets.back() + Lq);
      k_offsets.push_back(k_offsets.back() + Lk);
    }
    in.q_offsets = q_offsets.data();
    in.k_offsets = k_offsets.data();
  }

  template <class A>
  int64_t set_array(Array shape, A& array) {
    const auto [B, H, Hkv, Lq, Lk, D, Dv] = c_.dims;
    array.cols = shape == Array::short_rows ? Lk * 2 / 3 : Lk;
    array.k_stride = shape == Array::rows ? 0 : 1;
    const int64_t row = shape == Array::rows ? 1 : array.cols;
    array.q_stride = shape == Array::keys ? 0 : row;
    const int64_t plane = shape == Array::keys ? row : row * Lq;
    array.h_stride = shape == Array::keys || shape == Array::flat ? 0 : plane;
    const int64_t planes = array.h_stride == 0 ? plane : plane * H;
    array.b_stride = shape == Array::heads || shape == Array::flat ? 0 : planes;
    return array.b_stride == 0 ? planes : planes * B;
  }

  void draw_rule() {
    const auto [B, H, Hkv, Lq, Lk, D, Dv] = c_.dims;
    kernels::ScoreRule<T>& r = in.rule;
    r.scale = static_cast<T>(static_cast<float>(c_.scale > 0 ? c_.scale : 1 / std::sqrt(static_cast<double>(D))));
    r.softcap = static_cast<T>(c_.softcap);
    r.causal = c_.causal;
    r.offset = c_.offset;
    r.window_left = c_.window_left;
    r.window_right = c_.window_right;
    r.normaliser = c_.normaliser;
    if (c_.batch_offsets) {
      for (int64_t b = 0; b < B; ++b) batch_offsets.push_back(rng_.below(Lk) - Lk / 4);
      r.batch_offsets = batch_offsets.data();
    }
    if (c_.lens != Lens::none) {
      const bool per_query = c_.lens == Lens::query;
      for (int64_t i = 0; i < B * (per_query ? Lq : 1); ++i) key_lens.push_back(rng_.below(Lk + 1));
      key_lens[0] = Lk;
      key_lens.back() = 0;  // a whole empty row
      r.key_lens = key_lens.data();
      r.lens_b_stride = per_query ? Lq : 1;
      r.lens_q_stride = per_query ? 1 : 0;
    }
    if (c_.mask != Array::none) {
      mask.resize(static_cast<size_t>(set_array(c_.mask, r.mask)));
      for (uint8_t& m : mask) m = rng_.below(10) < 6;
      r.mask.data = mask.data();
      for (int64_t j = 0; j < r.mask.cols; ++j) mask[static_cast<size_t>(j)] = 0;  // the first row sees nothing
    }
    if (c_.bias != Array::none) {
      bias = normal(set_array(c_.bias, r.bias));
      for (T& x : bias) {
        if (c_.bias_hides && rng_.below(4) == 0) x = -std::numeric_limits<T>::infinity();
      }
      r.bias.data = bias.data();
    }
    if (c_.additive) {
      additive = normal(D);
      r.additive = additive.data();
    }
    if (c_.dropout > 0) {
      r.dropout_seed = 42;
      r.dropout_threshold = kernels::dropout_threshold(c_.dropout);
      r.keep_scale = static_cast<T>(static_cast<float>(1 / (1 - c_.dropout)));
    }
  }

  bool sees(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const kernels::ScoreRule<T>& r = in.rule;
    const int64_t p = i + (r.batch_offsets ? r.batch_offsets[b] : r.offset);
    if (r.key_lens && j >= r.key_lens[b * r.lens_b_stride + i * r.lens_q_stride]) return false;
    if (r.causal && j > p) return false;
    if (r.window_left >= 0 && j < p - r.window_left) return false;
    if (r.window_right >= 0 && j > p + r.window_right) return false;
    if (r.mask.data && (j >= r.mask.cols || r.mask.row(b, h, i)[j * r.mask.k_stride] == 0)) return false;
    return !r.bias.data || (j < r.bias.cols && std::isfinite(r.bias.row(b, h, i)[j * r.bias.k_stride]));
  }

  void poison() {
    const auto [B, H, Hkv, Lq, Lk, D, Dv] = c_.dims;
    const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
    for (int64_t b = 0; b < B && c_.poison != Poison::none; ++b) {
      for (int64_t h = 0; h < Hkv; ++h) {
        for (int64_t j = 0; j < Lk; ++j) {
          bool seen = false;
          for (int64_t g = h * (H / Hkv); g < (h + 1) * (H / Hkv); ++g) {
            for (int64_t i = 0; i < Lq; ++i) seen |= sees(b, g, i, j);
          }
          T* key = k.data() + b * in.k.b_stride + h * in.k.h_stride + j * in.k.l_stride;
          T* value = v.data() + b * in.v.b_stride + h * in.v.h_stride + j * in.v.l_stride;
          if (!seen) {
            std::fill(key, key + D, j % 2 ? nan : inf);
            std::fill(value, value + Dv, j % 2 ? -inf : nan);
          } else if (c_.poison == Poison::seen && j % 50 == 45) {
            key[D / 2] = h ? nan : key[D / 2];
            value[Dv / 2] = nan;
          }
        }
      }
    }
  }

  AttentionCase c_;
  Rng rng_;
};

}  // namespace qkv::cases
