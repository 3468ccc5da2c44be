// Buffers for a case of the attention table.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "attention_cases.h"
#include "qkv/base/rng.h"
#include "qkv/kernels/attention/attention.h"
#include "qkv/kernels/dropout.h"

namespace qkv::cases {

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
    kernels::ScoreArgs<T>& r = in.rule;
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
      for (int64_t i = 0; i < B * (per_query ? Lq : 1); ++i)
        key_lens.push_back(c_.least_len + rng_.below(Lk + 1 - c_.least_len));
      key_lens[0] = Lk;
      if (c_.least_len == 0) key_lens.back() = 0;  // nothing but empty rows
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
      r.dropout_threshold = kernels::weight_dropout_threshold(c_.dropout);
      r.keep_scale = static_cast<T>(static_cast<float>(1 / (1 - c_.dropout)));
    }
  }

  bool sees(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const kernels::ScoreArgs<T>& r = in.rule;
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
