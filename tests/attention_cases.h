// The one table of attention cases: tests verify every row, benches time the rows that carry a shape people use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/kernels/attention/attention.h"

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
  std::string name = {};
  kernels::AttentionDims dims = {};
  double scale = 0;  // 0: 1/√D
  double softcap = 0;
  bool causal = false;
  int64_t offset = 0;
  bool batch_offsets = false;
  int64_t window_left = -1, window_right = -1;
  Lens lens = Lens::none;
  Array mask = Array::none, bias = Array::none;
  bool bias_hides = false;  // some entries of -inf
  Normaliser normaliser = Normaliser::softmax;
  bool additive = false;
  double dropout = 0;
  bool packed = false;
  bool heads_last = false;  // [B, L, H, D] instead of [B, H, L, D]
  bool integers = false;    // small whole numbers, so that scores and ties are exact
  Poison poison = Poison::none;
  int64_t least_len = 0;  // of the valid lengths drawn

  /// Nothing but full, causal or key padding: what other libraries can be asked for too.
  bool plain() const {
    return window_left < 0 && window_right < 0 && mask == Array::none && bias == Array::none && dropout == 0 &&
           softcap == 0 && dims.H == dims.Hkv && !packed && !additive && normaliser == Normaliser::softmax;
  }
};

inline std::vector<AttentionCase> attention_cases() {
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

/// Shapes people use, for timing: names are batch × heads × length × width.
inline std::vector<AttentionCase> timed_attention_cases() {
  std::vector<AttentionCase> t;
  const auto name = [](const kernels::AttentionDims& d, const char* rule) {
    return std::to_string(d.B) + "x" + std::to_string(d.H) + "x" + std::to_string(d.Lq) + "x" + std::to_string(d.D) +
           " " + rule;
  };
  const auto add = [&](const kernels::AttentionDims& d, const char* rule, AttentionCase c) {
    c.dims = d;
    c.name = name(d, rule);
    t.push_back(std::move(c));
  };
  for (const int64_t n : {512, 2048, 8192}) {
    add({1, 8, 8, n, n, 64, 64}, "full", {});
    add({1, 8, 8, n, n, 64, 64}, "causal", {.causal = true});
  }
  const kernels::AttentionDims small{32, 8, 8, 128, 128, 32, 32}, tiny{64, 4, 4, 32, 32, 32, 32};
  add(small, "full", {});
  add(small, "causal", {.causal = true});
  add(small, "key padding", {.lens = Lens::batch, .least_len = 16});
  add(tiny, "full", {});
  add(tiny, "causal", {.causal = true});
  add({1, 8, 8, 1, 4096, 64, 64}, "against 4096 keys", {});
  const kernels::AttentionDims usual{1, 8, 8, 512, 512, 64, 64};
  add(usual, "dropout 0.1", {.dropout = 0.1});
  add(small, "dropout 0.1", {.dropout = 0.1});
  add(usual, "bias", {.bias = Array::heads});
  add(usual, "mask", {.mask = Array::full});
  add(usual, "softcap", {.softcap = 30});
  add({1, 8, 8, 2048, 2048, 64, 64}, "window 256", {.causal = true, .window_left = 255});
  add({1, 8, 2, 512, 512, 64, 64}, "grouped by 4", {});
  add({1, 8, 8, 512, 512, 64, 64}, "sparsemax", {.normaliser = Normaliser::sparsemax});
  add({128, 1, 1, 1, 20, 256, 512}, "additive, one query", {.scale = 1, .additive = true});
  return t;
}

}  // namespace qkv::cases
