// Traced inputs: one input run through one model, whose attention is handed out window by window.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "qkv/routes/model_store.h"

namespace qkv::routes {

/// Attention of one kind: its layers, each with H heads of Lq x Lk.
struct TraceSite {
  std::string id;
  std::vector<const AttentionTrace*> layers;
  int64_t H = 0, Lq = 0, Lk = 0;
  bool causal = false;
  bool rows_are_target = false, columns_are_target = false;
};

/// What a map shows.
enum class MapKind : uint8_t {
  weights,
  scores,   // what the normaliser is given
  rollout,  // from the first layer through this one: attention_rollout
};

/// A rectangle of one head's map; pool > 1 takes the largest of pool x pool cells.
struct MapWindow {
  int64_t layer = 0, head = 0;
  int64_t row_begin = 0, row_end = 0, col_begin = 0, col_end = 0, pool = 1;
  MapKind kind = MapKind::weights;
};

/// One cell of one head's map.
struct CellPlace {
  int64_t layer = 0, head = 0, query = 0, key = 0;
};

/// Figures of one head over all rows that see a key.
struct HeadFigures {
  double entropy = 0;                // as a share of ln(visible keys)
  double distance = 0;               // mean |i - j| under the weights
  double largest = 0;                // mean of the rows' largest weights
  double on_self = 0, on_first = 0;  // mean weight on the diagonal and on key 0
};

/// One traced input. Immutable after construction; the closures inside recompute weights from kept q and k.
class Trace {
 public:
  Trace(std::string id, TracedExample example, std::string weights = "", bool samples = false);

  const std::string& id() const { return id_; }
  /// The checkpoint the weights came from.
  const std::string& weights() const { return weights_; }
  /// Whether its model draws tokens when asked to.
  bool samples() const { return samples_; }
  const TracedExample& example() const { return example_; }
  const std::vector<TraceSite>& sites() const { return sites_; }
  /// Queries, keys and values it keeps, of all heads and layers.
  int64_t vectors() const;
  /// Throws RouteError 400 naming the field.
  const TraceSite& site(const std::string& id) const;
  /// [rows, cols] after pooling; NaN where a key is hidden.
  Tensor map(const TraceSite& site, const MapWindow& window) const;
  /// [L, H, size, size], the largest weight of each block.
  Tensor thumbnails(const TraceSite& site, int64_t size) const;
  std::vector<std::vector<HeadFigures>> figures(const TraceSite& site) const;  // [layer][head]
  /// Throws RouteError 400 for a place outside the site, 422 where weights have no queries and keys behind them.
  AttentionCell cell(const TraceSite& site, const CellPlace& place) const;

 private:
  Tensor rows_of(const TraceSite& site, const MapWindow& window) const;
  /// see(i, weights) for each row of the window, all columns.
  template <class See>
  void each_row(const TraceSite& site, const MapWindow& window, See&& see) const;
  /// [Lq, Lk]; every row sums to 1. Throws RouteError 400 for a site whose queries are not its keys.
  Tensor rollout(const TraceSite& site, int64_t layers) const;
  void check_head(const TraceSite& site, int64_t layer, int64_t head) const;
  std::string id_, weights_;
  bool samples_ = false;
  TracedExample example_;
  std::vector<TraceSite> sites_;
};

/// What to trace: an input through a checkpoint of a run ("": the run's choice), its output written as told.
struct TraceRequest {
  std::string model, checkpoint, input;
  TraceOptions options = {};
};

/// The last traces, by id, as many as a budget of attended tokens allows; an id is a hash of the request.
class TraceStore {
 public:
  /// Longest text; a longer one would keep the server busy for minutes.
  static constexpr size_t kLongestText = 16384;
  explicit TraceStore(ModelStore& models) : models_(models) {}

  /// Throws RouteError naming the field, and what the task throws on an input it cannot read.
  std::shared_ptr<const Trace> make(const TraceRequest& request);
  /// Throws RouteError 404 when it is no longer kept: ask again with the input.
  std::shared_ptr<const Trace> find(const std::string& id);

 private:
  static constexpr size_t kLongestBeginning = 1024;
  static constexpr int64_t kLongestOutput = 1024;
  void forget_while_crowded();
  // Queries, keys and values of all heads together, some 64 MiB: a few inputs of thousands of tokens, or kMost
  // sentences.
  static constexpr int64_t kKeptVectors = 1 << 19;
  static constexpr size_t kMost = 128;
  ModelStore& models_;
  std::mutex mutex_;
  std::list<std::shared_ptr<const Trace>> kept_;  // the last one used first
  int64_t vectors_ = 0;                           // of all that are kept
};

}  // namespace qkv::routes
