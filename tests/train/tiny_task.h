// A task small enough to train in milliseconds: a noisy linear map with dropout, for tests of the trainer.
#pragma once

#include <cmath>
#include <functional>
#include <limits>

#include "qkv/nn/context.h"
#include "qkv/ops/ops.h"
#include "qkv/tasks/task.h"

namespace qkv::testing {

class TinyTask final : public Task {
 public:
  explicit TinyTask(const Settings& s)
      : batch_(s.get_integer("batch")),
        seed_(static_cast<uint64_t>(s.get_integer("seed"))),
        nan_at_(s.get_integer("nan-at")),
        stop_at_(s.get_number("stop-at")) {
    Rng rng = Rng(seed_).fork(1);
    weight_ = Tensor::randn({2, 6}, rng, 0.1);
    bias_ = Tensor::zeros({2});
    Rng truth(77);
    truth_ = Tensor::randn({2, 6}, truth);
  }

  void visit(Visitor& see) override {
    see("weight", weight_);
    see("bias", bias_);
  }
  int64_t batches_in_epoch(int64_t) override { return 7; }
  BatchLoss train_batch(int64_t epoch, int64_t batch, Context& ctx, const BatchPart& part = {}) override {
    Rng rng = Rng(seed_).fork(static_cast<uint64_t>(100 + epoch * 7 + batch));
    std::vector<int64_t> rows;
    for (int64_t i = part.index; i < batch_; i += part.count) rows.push_back(i);
    if (rows.empty()) return {};
    const auto n = static_cast<int64_t>(rows.size());
    Tensor loss = error_of(rng, &ctx, rows);
    if (++batches_seen == nan_at_) loss = affine(loss, std::numeric_limits<double>::quiet_NaN());
    return {loss, n * 2, n};
  }
  Metrics validate() override {
    Rng rng = Rng(seed_).fork(2);
    const double loss = error_of(rng, nullptr).item();
    return {{"loss", loss}, {"score", 1 / (1 + loss)}};
  }
  Goal goal() const override { return {"loss", stop_at_}; }
  Evaluation evaluate(const std::string&) override { return {validate(), {}, {}, {}}; }
  std::vector<std::vector<Prediction>> predict(std::span<const std::string>, const DecodeOptions&) override {
    return {};
  }
  TracedExample trace(const std::string&) override { return {}; }
  std::vector<std::string> examples(int64_t) override { return {}; }
  void save_assets(const std::string&) const override { on_save_assets(); }

  int64_t batches_seen = 0;
  std::function<void()> on_save_assets = [] {};

 private:
  Tensor error_of(Rng& rng, Context* ctx, const std::vector<int64_t>& rows = {}) {
    Tensor x = Tensor::randn({batch_, 6}, rng);
    if (!rows.empty()) x = gather_rows(x, rows);
    const Tensor wanted = linear(x, truth_);
    const Tensor seen = ctx != nullptr ? dropout(x, 0.1, ctx->next_seed()) : x;
    const Tensor d = linear(seen, weight_, bias_) - wanted;
    return mean(d * d);
  }
  int64_t batch_;
  uint64_t seed_;
  int64_t nan_at_;
  double stop_at_;
  Tensor weight_, bias_, truth_;
};

inline Settings tiny_settings() {
  Settings s = training_settings();
  s.integer("nan-at", 0, "batch of this session whose loss is NaN; 0: none");
  s.number("stop-at", -1, "validation loss that ends training", -1);
  s.set("batch", "16");
  s.set("epochs", "4");
  s.set("lr", "0.05");
  s.set("log-every", "3");
  return s;
}

inline std::unique_ptr<Task> make_tiny(const Settings& s, const std::string&) { return std::make_unique<TinyTask>(s); }

inline const TaskSpec& tiny_spec() {
  static const TaskSpec spec{"tiny", "a test", tiny_settings, make_tiny};
  return spec;
}
inline const TaskSpec& find_tiny(const std::string&) { return tiny_spec(); }

}  // namespace qkv::testing
