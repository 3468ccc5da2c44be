// The phases of a step, and what each does.
#include "qkv/nn/token_step.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/base/budget.h"
#include "qkv/base/parallel.h"

namespace qkv {
namespace {

const float* numbers(const Tensor& t) { return t.defined() ? t.f32() : nullptr; }

// Whether a product [in] → [out] can be computed from its weights as they lie.
bool fits(const Tensor& weight, const Tensor& bias, int64_t in, int64_t out) {
  const auto plain = [](const Tensor& t) { return t.dtype() == DType::f32 && t.is_contiguous(); };
  return weight.defined() && plain(weight) && weight.shape() == Shape{out, in} &&
         (!bias.defined() || (plain(bias) && bias.shape() == Shape{out}));
}

bool fits(const JointParts& p, int64_t width) {
  return fits(p.weight, p.bias, width, p.heads * p.D + p.kv_heads * (p.D + p.Dv)) &&
         fits(p.output_weight, p.output_bias, p.heads * p.Dv, width);
}

bool fits(const AttentionPlan& p, int64_t width) {
  const ScoreRule& r = p.rule;
  return p.defined() && !p.uniform && p.keys.strides()[2] == 1 && p.values.strides()[2] == 1 &&
         fits(p.query_weight, p.query_bias, width, p.heads * p.keys.dim(2)) &&
         fits(p.output_weight, p.output_bias, p.heads * p.values.dim(2), width) &&
         r.normaliser == Normaliser::softmax && r.softcap == 0 && r.dropout == 0 && !r.additive.defined() &&
         !r.mask.defined() && !r.bias.defined() && r.window_left < 0 && r.window_right < 0;
}

float scale_of(const std::optional<double>& scale, int64_t D) {
  return static_cast<float>(scale.value_or(1 / std::sqrt(static_cast<double>(D))));
}

// The pairs (x_j, x_{j+D/2}) turned by the angles of a position, cos and sin one after the other.
void turn(float* x, int64_t D, const float* cosines) {
  const int64_t half = D / 2;
  const float* sines = cosines + half;
  for (int64_t j = 0; j < half; ++j) {
    const float a = x[j], b = x[j + half];
    x[j] = a * cosines[j] - b * sines[j];
    x[j + half] = b * cosines[j] + a * sines[j];
  }
}

}  // namespace

std::unique_ptr<TokenStep> TokenStep::make(const TransformerStack& stack, const Tensor& head_weight,
                                           const Tensor& head_bias, const MemoryPlans& memory) {
  std::unique_ptr<TokenStep> step(new TokenStep(stack, head_weight, head_bias, memory));
  return step->knows_all() ? std::move(step) : nullptr;
}

bool TokenStep::knows_all() {
  const StackConfig& c = stack_.config();
  if (!c.causal || !c.final_norm || !fits(head_weight_, head_bias_, c.width, head_weight_.dim(0))) return false;
  for (const TransformerLayer& layer : stack_.layers()) {
    const std::optional<JointParts> s = layer.self->joint_parts();
    const Linear &inner = layer.feed_forward.inner(), &outer = layer.feed_forward.outer();
    if (!s || !fits(*s, c.width) || s->heads != c.heads || !fits(inner.weight(), inner.bias(), c.width, c.inner) ||
        !fits(outer.weight(), outer.bias(), c.inner, c.width)) {
      return false;
    }
    self_.push_back(*s);
    if (s->D != self_[0].D || s->positions != self_[0].positions) return false;  // one table for all
    wide_ = std::max({wide_, s->weight.dim(0), s->output_weight.dim(1)});
  }
  if (c.cross && memory_.size() != self_.size()) return false;
  for (const AttentionPlan& m : memory_) {
    if (!fits(m, c.width)) return false;
    wide_ = std::max({wide_, m.query_weight.dim(0), m.output_weight.dim(1)});
  }
  return true;
}

float* TokenStep::input(int64_t rows) {
  rows_ = rows;
  if (rows > most_rows_ || phases_.empty()) {
    most_rows_ = rows;
    plan();
  }
  return input_;
}

void TokenStep::add_product(const float* x, const Tensor& weight, const Tensor& bias, float* y, Act act) {
  const int64_t N = weight.dim(0), K = weight.dim(1);
  phases_.push_back({.kind = Kind::product,
                     .product = {.N = N,
                                 .K = K,
                                 .a = x,
                                 .lda = K,
                                 .b = numbers(weight),
                                 .ldb = K,
                                 .b_transposed = true,
                                 .c = y,
                                 .ldc = N,
                                 .bias = numbers(bias),
                                 .activation = act}});
}

// normed_ = norm(stream_), after what a sublayer gave was added to it.
void TokenStep::add_norm(const LayerNorm& norm, bool joins) {
  phases_.push_back({.kind = Kind::norm,
                     .norm = {.cols = stack_.config().width,
                              .eps = static_cast<float>(norm.eps()),
                              .x = joins ? added_ : stream_,
                              .residual = joins ? stream_ : nullptr,
                              .sum = joins ? stream_ : nullptr,
                              .gamma = numbers(norm.gamma()),
                              .beta = numbers(norm.beta()),
                              .y = normed_}});
}

void TokenStep::plan() {
  const StackConfig& c = stack_.config();
  const int64_t width = c.width, widths[] = {width, width, width, wide_, wide_, c.inner};
  float** const buffers[] = {&stream_, &normed_, &added_, &projected_, &context_, &inner_};
  const auto room = [&](int64_t w) { return (most_rows_ * w + 15) / 16 * 16; };
  int64_t total = 0;
  for (int64_t w : widths) total += room(w);
  block_ = Tensor::empty({total});
  float* at = block_.f32();
  for (size_t i = 0; i < std::size(widths); at += room(widths[i++])) *buffers[i] = at;
  input_ = stream_;

  phases_.clear();
  if (c.pre_norm) add_norm(stack_.layers()[0].self_norm, false);
  const float* from = c.pre_norm ? normed_ : stream_;
  for (size_t l = 0; l < self_.size(); ++l) plan_layer(l, from);
  if (!c.pre_norm) add_norm(stack_.final_norm(), false);
  add_product(normed_, head_weight_, head_bias_, nullptr);
}

// `from` is what a sublayer reads: the normalised stream, or (after each norm of a post-norm stack) the stream itself.
void TokenStep::plan_layer(size_t l, const float*& from) {
  const bool pre = stack_.config().pre_norm, last = l + 1 == self_.size();
  const TransformerLayer& layer = stack_.layers()[l];
  const auto join = [&](const LayerNorm& own, const LayerNorm& next) {
    add_norm(pre ? next : own, true);
    if (!pre) std::swap(stream_, normed_);
    from = pre ? normed_ : stream_;
  };
  const JointParts& s = self_[l];
  add_product(from, s.weight, s.bias, projected_);
  phases_.push_back({.kind = Kind::self, .layer = l});
  add_product(context_, s.output_weight, s.output_bias, added_);
  join(layer.self_norm, layer.cross ? layer.cross_norm : layer.feed_norm);
  if (layer.cross) {
    const AttentionPlan& m = memory_[l];
    add_product(from, m.query_weight, m.query_bias, projected_);
    phases_.push_back({.kind = Kind::memory, .layer = l});
    add_product(context_, m.output_weight, m.output_bias, added_);
    join(layer.cross_norm, layer.feed_norm);
  }
  const FeedForward& f = layer.feed_forward;
  add_product(from, f.inner().weight(), f.inner().bias(), inner_, f.act());
  add_product(inner_, f.outer().weight(), f.outer().bias(), added_);
  join(layer.feed_norm, last ? stack_.final_norm() : stack_.layers()[l + 1].self_norm);
}

// Tables for so many positions.
void TokenStep::reach(int64_t positions) {
  if (positions <= reached_) return;
  const int64_t n = std::max<int64_t>(64, 2 * positions), D = self_[0].D;
  if (const auto turned = row_of(self_[0].positions).turned) {
    std::vector<int64_t> all(static_cast<size_t>(n));
    std::iota(all.begin(), all.end(), int64_t{0});
    Tensor ones = Tensor::zeros({n, D});  // (1, 0) is turned into (cos, sin)
    for (int64_t i = 0; i < n; ++i) std::fill_n(ones.f32() + i * D, D / 2, 1.0f);
    turns_ = turned(ones, 1, D, all);
  }
  if (const auto bias = row_of(stack_.config().positions).bias) bias_ = bias(self_[0].heads, 1, n, n - 1);
  reached_ = n;
}

void TokenStep::make_room(StackCache& cache) {
  cache_ = &cache;
  places_.resize(self_.size() * static_cast<size_t>(rows_));
  int64_t longest = 0;
  for (int64_t r = 0; r < rows_; ++r) longest = std::max(longest, cache.lengths[static_cast<size_t>(r)] + 1);
  reach(longest);
  for (size_t l = 0, i = 0; l < self_.size(); ++l) {
    const auto bytes = static_cast<size_t>(self_[l].kv_heads * (self_[l].D + self_[l].Dv)) * sizeof(float);
    for (int64_t r = 0; r < rows_; ++r, ++i) {
      places_[i] = reinterpret_cast<float*>(cache.layers[l].room(r, cache.lengths[static_cast<size_t>(r)], bytes));
    }
  }
}

int64_t TokenStep::tasks_of(const Phase& p, int64_t threads) const {
  if (p.kind == Kind::product) return kernels::dot_parts(p.product, threads);
  if (p.kind == Kind::norm) return rows_;
  return rows_ * (p.kind == Kind::self ? self_[p.layer].kv_heads : memory_[p.layer].keys.dim(1));
}

void TokenStep::run_task(const Phase& p, int64_t task, int64_t tasks) const {
  switch (p.kind) {
    case Kind::product:
      return kernels::dot_part(p.product, task, tasks);
    case Kind::norm: {
      kernels::LayerNorm<float> row = p.norm;
      const int64_t before = task * row.cols;
      row.rows = 1;
      row.x += before;
      row.y += before;
      if (row.residual) row.residual += before, row.sum += before;
      return kernels::layer_norm(row);
    }
    case Kind::self:
      return attend_self(p.layer, task / self_[p.layer].kv_heads, task % self_[p.layer].kv_heads);
    case Kind::memory: {
      const int64_t kv_heads = memory_[p.layer].keys.dim(1);
      return attend_memory(p.layer, task / kv_heads, task % kv_heads);
    }
  }
}

// One key head of one row: its key and its queries get their positions, key and value go into the cache.
void TokenStep::attend_self(size_t l, int64_t row, int64_t kv) const {
  const JointParts& s = self_[l];
  const int64_t group = s.heads / s.kv_heads, at = cache_->lengths[static_cast<size_t>(row)];
  float* const joint = projected_ + row * s.weight.dim(0);
  float *q = joint + kv * group * s.D, *k = joint + (s.heads + kv) * s.D;
  const float* v = joint + (s.heads + s.kv_heads) * s.D + kv * s.Dv;
  if (turns_.defined()) {
    const float* angles = numbers(turns_) + at * s.D;
    for (int64_t h = 0; h < group; ++h) turn(q + h * s.D, s.D, angles);
    turn(k, s.D, angles);
  }
  const int64_t k_offset = kv * s.D, v_offset = s.kv_heads * s.D + kv * s.Dv, token = s.kv_heads * (s.D + s.Dv);
  float* const place = places_[l * static_cast<size_t>(rows_) + static_cast<size_t>(row)];
  std::copy_n(k, s.D, place + k_offset);
  std::copy_n(v, s.Dv, place + v_offset);
  const float* const* pages = cache_->layers[l].pages(row);
  kernels::attend_pages({.heads = group,
                         .D = s.D,
                         .Dv = s.Dv,
                         .keys = at + 1,
                         .q = q,
                         .page_rows = KvCache::kPage,
                         .k_pages = pages,
                         .v_pages = pages,
                         .k_offset = k_offset,
                         .v_offset = v_offset,
                         .k_stride = token,
                         .v_stride = token,
                         .scale = scale_of(s.scale, s.D),
                         .bias = bias_.defined() ? numbers(bias_) + (kv * group + 1) * reached_ - 1 - at : nullptr,
                         .bias_stride = reached_,
                         .out = context_ + (row * s.heads + kv * group) * s.Dv});
}

void TokenStep::attend_memory(size_t l, int64_t row, int64_t kv) const {
  const AttentionPlan& m = memory_[l];
  const int64_t group = m.heads / m.keys.dim(1), D = m.keys.dim(2), Dv = m.values.dim(2);
  const int64_t sequence = sequences_[static_cast<size_t>(row)], first = m.memory.begin(sequence);
  const float *k = m.keys.f32(), *v = m.values.f32();
  kernels::attend_pages({.heads = group,
                         .D = D,
                         .Dv = Dv,
                         .keys = m.memory.length(sequence),
                         .q = projected_ + (row * m.heads + kv * group) * D,
                         .page_rows = std::max<int64_t>(1, m.memory.length(sequence)),
                         .k_pages = &k,
                         .v_pages = &v,
                         .k_offset = first * m.keys.strides()[0] + kv * m.keys.strides()[1],
                         .v_offset = first * m.values.strides()[0] + kv * m.values.strides()[1],
                         .k_stride = m.keys.strides()[0],
                         .v_stride = m.values.strides()[0],
                         .scale = scale_of(m.rule.scale, D),
                         .out = context_ + (row * m.heads + kv * group) * Dv});
}

Tensor TokenStep::run(StackCache& cache, std::span<const int64_t> sequences) {
  check_budget();
  sequences_ = sequences;
  make_room(cache);
  const int64_t V = head_weight_.dim(0);
  if (!scores_.defined() || scores_.dim(0) != rows_ || !scores_.is_only_handle()) scores_ = Tensor::empty({rows_, V});
  phases_.back().product.c = scores_.f32();
  const bool few = rows_ <= kernels::kDotRows;
  tasks_.clear();
  for (Phase& p : phases_) {
    p.product.M = rows_;
    tasks_.push_back(tasks_of(p, num_threads()));
  }
  if (few) {
    parallel_phases(tasks_, [&](size_t p, int64_t task) { run_task(phases_[p], task, tasks_[p]); });
  } else {
    for (size_t p = 0; p < phases_.size(); ++p) {
      if (phases_[p].kind == Kind::product) {
        kernels::gemm(phases_[p].product);
      } else {
        parallel_for(tasks_[p], [&](int64_t task) { run_task(phases_[p], task, tasks_[p]); });
      }
    }
  }
  check_budget();
  for (int64_t& length : cache.lengths) ++length;
  return scores_;
}

}  // namespace qkv
