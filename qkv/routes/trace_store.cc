// Maps, thumbnails and figures of traced inputs.
#include "qkv/routes/trace_store.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "qkv/base/budget.h"
#include "qkv/core/autograd.h"
#include "qkv/routes/parts.h"
#include "qkv/tasks/rollout.h"

namespace qkv::routes {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kLongestRollout = 2048;
constexpr int64_t kMostCells = 5 << 20;             // of one map as it is sent: 20 MiB
constexpr int64_t kMostWeights = int64_t{1} << 31;  // computed for one answer

std::string hash_of(const std::string& text) {
  uint64_t h = 0;
  for (unsigned char c : text) h = mix64(h ^ c);
  char out[17];
  std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(h));
  return out;
}

void check(bool good, const char* what, const char* field) {
  if (!good) throw RouteError(400, what, field);
}

// Thumbnails, figures and rollouts look at every weight of a site.
void check_weights(const TraceSite& site, int64_t layers) {
  const double all = static_cast<double>(layers * site.H) * static_cast<double>(site.Lq * site.Lk);
  if (all <= static_cast<double>(kMostWeights)) return;
  throw RouteError(422,
                   "this needs " + std::to_string(layers) + " layers of " + std::to_string(site.H) + " heads of " +
                       std::to_string(site.Lq) + " x " + std::to_string(site.Lk) +
                       " weights; one answer takes at most " + std::to_string(kMostWeights) + " weights",
                   "site");
}

// The options as part of an id.
std::string spelled(const TraceOptions& options) {
  std::string text;
  for (const int64_t token : options.beginning) text += std::to_string(token) + ",";
  text += ";" + std::to_string(options.length);
  if (const auto& s = options.sample) {
    char how[128];  // every digit of the two numbers
    std::snprintf(how, sizeof how, ";%a;%lld;%a;%llu", s->temperature, static_cast<long long>(s->top_k), s->top_p,
                  static_cast<unsigned long long>(s->seed));
    text += how;
  }
  return text;
}

}  // namespace

Trace::Trace(std::string id, TracedExample example, std::string weights, bool samples)
    : id_(std::move(id)), weights_(std::move(weights)), samples_(samples), example_(std::move(example)) {
  for (const AttentionTrace& t : example_.attention) {
    auto found = std::find_if(sites_.begin(), sites_.end(), [&](const TraceSite& s) { return s.id == t.site; });
    if (found == sites_.end()) {
      TraceSite site;
      site.id = t.site;
      site.H = t.H;
      site.Lq = t.Lq;
      site.Lk = t.Lk;
      site.causal = t.causal;
      site.rows_are_target = example_.rows_are_target(t.site);
      site.columns_are_target = example_.columns_are_target(t.site);
      sites_.push_back(site);
      found = sites_.end() - 1;
    }
    found->layers.push_back(&t);
  }
}

int64_t Trace::vectors() const {
  int64_t n = 0;
  for (const AttentionTrace& t : example_.attention) n += t.H * (t.Lq + 2 * t.Lk);
  return n;
}

const TraceSite& Trace::site(const std::string& id) const {
  for (const TraceSite& s : sites_) {
    if (s.id == id || id.empty()) return s;
  }
  throw RouteError(400, "this model has no attention site '" + id + "'", "site");
}

// Rows [row_begin, row_end) of one head, all columns; NaN where hidden.
Tensor Trace::rows_of(const TraceSite& site, const MapWindow& w) const {
  const AttentionTrace& t = *site.layers[static_cast<size_t>(w.layer)];
  const ScoreWindow rows{.b = 0,
                         .h = w.head,
                         .row_begin = w.row_begin,
                         .row_end = w.row_end,
                         .stage = w.kind == MapKind::scores ? ScoreStage::biased : ScoreStage::weights};
  const NoGrad no_grad;
  Tensor values = t.scores(rows);
  float* p = values.f32();
  for (int64_t i = 0; i < values.dim(0); ++i) {
    for (int64_t j = 0; j < values.dim(1); ++j) {
      const bool hidden = site.causal && j > w.row_begin + i;
      if (hidden || std::isinf(p[i * values.dim(1) + j])) p[i * values.dim(1) + j] = kNan;
    }
  }
  return values;
}

template <class See>
void Trace::each_row(const TraceSite& site, const MapWindow& window, See&& see) const {
  constexpr int64_t kRows = 256;  // at a time, so a long map never lies in memory whole
  for (int64_t begin = window.row_begin; begin < window.row_end; begin += kRows) {
    check_budget();
    MapWindow part = window;
    part.row_begin = begin;
    part.row_end = std::min(begin + kRows, window.row_end);
    const Tensor rows = rows_of(site, part);  // [part, Lk]
    for (int64_t i = begin; i < part.row_end; ++i) see(i, rows.f32() + (i - begin) * site.Lk);
  }
}

Tensor Trace::rollout(const TraceSite& site, int64_t layers) const {
  check(site.Lq == site.Lk && site.rows_are_target == site.columns_are_target,
        "a rollout needs self-attention: its queries are its keys", "what");
  if (site.Lq > kLongestRollout) {
    throw RouteError(422,
                     "a rollout of " + std::to_string(site.Lq) + " tokens takes too long; at most " +
                         std::to_string(kLongestRollout) + " tokens",
                     "what");
  }
  check_weights(site, layers);
  return attention_rollout(std::span(site.layers).first(static_cast<size_t>(layers)));
}

void Trace::check_head(const TraceSite& site, int64_t layer, int64_t head) const {
  check(layer >= 0 && layer < static_cast<int64_t>(site.layers.size()), "no such layer", "layer");
  check(head >= 0 && head < site.H, "no such head", "head");
}

AttentionCell Trace::cell(const TraceSite& site, const CellPlace& place) const {
  check_head(site, place.layer, place.head);
  check(place.query >= 0 && place.query < site.Lq, "no such query", "query");
  check(place.key >= 0 && place.key < site.Lk, "no such key", "key");
  const AttentionTrace& t = *site.layers[static_cast<size_t>(place.layer)];
  if (!t.cell) throw RouteError(422, "these weights have no queries and keys behind them", "site");
  return t.cell(0, place.head, place.query, place.key);
}

Tensor Trace::map(const TraceSite& site, const MapWindow& w) const {
  check_head(site, w.layer, w.head);
  check(w.row_begin >= 0 && w.row_begin <= w.row_end && w.row_end <= site.Lq, "rows outside the map", "rows");
  check(w.col_begin >= 0 && w.col_begin <= w.col_end && w.col_end <= site.Lk, "columns outside the map", "cols");
  check(w.pool >= 1 && w.pool <= 4096, "pool must be between 1 and 4096", "pool");
  const int64_t rows = (w.row_end - w.row_begin + w.pool - 1) / w.pool;
  const int64_t cols = (w.col_end - w.col_begin + w.pool - 1) / w.pool;
  if (rows * cols > kMostCells) {
    throw RouteError(413,
                     "a map of " + std::to_string(rows) + " x " + std::to_string(cols) +
                         " cells is too large; at most " + std::to_string(kMostCells) +
                         " are sent at once: ask for fewer rows, or with a larger pool",
                     "pool");
  }
  Tensor out = Tensor::full({rows, cols}, kNan);
  const auto take = [&](int64_t i, const float* row) {
    float* to = out.f32() + (i - w.row_begin) / w.pool * cols;
    for (int64_t j = w.col_begin; j < w.col_end; ++j) {
      float& cell = to[(j - w.col_begin) / w.pool];
      if (!std::isnan(row[j]) && !(cell >= row[j])) cell = row[j];
    }
  };
  if (w.kind == MapKind::rollout) {
    const Tensor whole = rollout(site, w.layer + 1);
    for (int64_t i = w.row_begin; i < w.row_end; ++i) take(i, whole.f32() + i * site.Lk);
  } else {
    each_row(site, w, take);
  }
  return out;
}

Tensor Trace::thumbnails(const TraceSite& site, int64_t size) const {
  check(size >= 1 && size <= 128, "size must be between 1 and 128", "size");
  const auto L = static_cast<int64_t>(site.layers.size());
  Tensor out = Tensor::zeros({L, site.H, size, size});
  check_weights(site, L);
  // Small maps are enlarged, large ones pooled: every cell covers at least one weight.
  const auto covered = [size](int64_t cell, int64_t length) {
    const int64_t first = cell * length / size;
    return std::pair(first, std::min(length, std::max(first + 1, (cell + 1) * length / size)));
  };
  for (int64_t l = 0; l < L; ++l) {
    for (int64_t h = 0; h < site.H; ++h) {
      for (int64_t i = 0; i < size; ++i) {
        float* to = out.f32() + ((l * site.H + h) * size + i) * size;
        const auto [begin, end] = covered(i, site.Lq);
        each_row(site, {.layer = l, .head = h, .row_begin = begin, .row_end = end}, [&](int64_t, const float* row) {
          for (int64_t j = 0; j < size; ++j) {
            const auto [first, last] = covered(j, site.Lk);
            for (int64_t b = first; b < last; ++b) {
              if (row[b] > to[j]) to[j] = row[b];
            }
          }
        });
      }
    }
  }
  return out;
}

std::vector<std::vector<HeadFigures>> Trace::figures(const TraceSite& site) const {
  check_weights(site, static_cast<int64_t>(site.layers.size()));
  std::vector<std::vector<HeadFigures>> all(site.layers.size());
  for (size_t l = 0; l < site.layers.size(); ++l) {
    for (int64_t h = 0; h < site.H; ++h) {
      HeadFigures f;
      int64_t counted = 0;
      const MapWindow whole{.layer = static_cast<int64_t>(l), .head = h, .row_end = site.Lq};
      each_row(site, whole, [&](int64_t i, const float* row) {
        double entropy = 0, distance = 0, largest = 0, total = 0;
        int64_t visible = 0;
        for (int64_t j = 0; j < site.Lk; ++j) {
          if (std::isnan(row[j])) continue;
          const auto p = static_cast<double>(row[j]);
          ++visible;
          total += p;
          if (p > 0) entropy -= p * std::log(p);
          distance += p * static_cast<double>(std::abs(i - j));
          largest = std::max(largest, p);
        }
        if (total == 0) return;
        ++counted;
        f.entropy += visible > 1 ? entropy / std::log(static_cast<double>(visible)) : 0;
        f.distance += distance;
        f.largest += largest;
        if (i < site.Lk && !std::isnan(row[i])) f.on_self += static_cast<double>(row[i]);
        if (!std::isnan(row[0])) f.on_first += static_cast<double>(row[0]);
      });
      const double share = counted == 0 ? 0 : 1.0 / static_cast<double>(counted);
      for (double* x : {&f.entropy, &f.distance, &f.largest, &f.on_self, &f.on_first}) *x *= share;
      all[l].push_back(f);
    }
  }
  return all;
}

std::shared_ptr<const Trace> TraceStore::make(const TraceRequest& request) {
  const auto& [model, checkpoint, input, options] = request;
  check(!model.empty(), "'model' is missing: name a run", "model");
  check(!input.empty(), "'input' is missing: give the model something to work on", "input");
  const std::shared_ptr<LoadedModel> loaded = models_.open(model, checkpoint);
  // A path would let whoever reaches the page read files of this machine.
  check(names_no_file(loaded->input, input),
        "a picture is data:image/png;base64,…, the same as x-portable-anymap, or val:NUMBER", "input");
  // A picture is bounded by the body it comes in.
  if (loaded->input != InputKind::picture && input.size() > kLongestText) {
    throw RouteError(400,
                     "the input has " + std::to_string(input.size()) + " bytes; at most " +
                         std::to_string(kLongestText) + " are taken",
                     "input");
  }
  check(options.beginning.size() <= kLongestBeginning, "'beginning' has more than 1024 tokens", "beginning");
  check(options.length >= 0 && options.length <= kLongestOutput, "'length' must be between 1 and 1024", "length");
  const bool samples = loaded->model->samples();
  check(samples || (!options.sample && options.length == 0), "this model draws no tokens", "sample");
  const std::string id = hash_of(loaded->run + '\0' + loaded->checkpoint + '\0' + input + '\0' + spelled(options));
  {
    std::lock_guard lock(mutex_);
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const auto& t) { return t->id() == id; });
    if (found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
      return kept_.front();
    }
  }
  std::shared_ptr<const Trace> trace;
  {
    forget_while_crowded();
    const auto lock = held(loaded->mutex);
    try {
      trace = std::make_shared<const Trace>(id, loaded->model->trace_with(input, options), loaded->weights, samples);
    } catch (const ConfigError& e) {
      throw RouteError(400, e.what(), "input");
    }
  }
  std::lock_guard lock(mutex_);
  kept_.push_front(trace);
  vectors_ += trace->vectors();
  while (kept_.size() > kMost || (vectors_ > kKeptVectors && kept_.size() > 1)) {
    vectors_ -= kept_.back()->vectors();
    kept_.pop_back();
  }
  return trace;
}

void TraceStore::forget_while_crowded() {
  std::lock_guard lock(mutex_);
  while (!kept_.empty() && crowded()) {
    vectors_ -= kept_.back()->vectors();
    kept_.pop_back();
  }
}

std::shared_ptr<const Trace> TraceStore::find(const std::string& id) {
  std::lock_guard lock(mutex_);
  for (const auto& t : kept_) {
    if (t->id() == id) return t;
  }
  throw RouteError(404, "this trace is no longer kept; send the input again", "id");
}

}  // namespace qkv::routes
