// The options that every task's training shares.
#include "qkv/optim/optimizer.h"
#include "qkv/optim/schedule.h"
#include "qkv/tasks/task.h"

namespace qkv {

Settings training_settings() {
  constexpr double kMost = 1e9;
  Settings s;
  s.group("training")
      .integer("seed", 1, "seed of data, weights, order and dropout", 0)
      .integer("epochs", 10, "passes over the training data", 1, kMost)
      .integer("steps", 0, "stop after this many updates; 0: no limit", 0)
      .integer("batch", 64, "examples in a batch", 1, kMost)
      .integer("accumulate", 1, "batches per update (gradient accumulation)", 1, kMost)
      .integer("parts", 1,
               "groups (a power of two) that the sequences of an update are divided into; up to this many processes "
               "share them, and any number gives the same bits",
               1, 65536)
      .choice("optimizer", OptimizerKind::adamw, "optimizer")
      .number("lr", 1e-3, "peak learning rate", 0, 1e3)
      .number("weight-decay", 0.01, "weight decay of matrices", 0, 1e3)
      .number("momentum", 0.9, "momentum of sgd", 0, 1)
      .number("clip", 1, "gradients are clipped to this norm; 0: no clipping", 0)
      .choice("schedule", ScheduleKind::constant, "schedule of the learning rate after the warm-up")
      .integer("warmup", 0, "updates of linear warm-up", 0, kMost)
      .number("final-lr", 0, "where linear and cosine end, as a fraction of --lr", 0, 1)
      .integer("eval-every", 0, "updates between evaluations; 0: once per epoch", 0, kMost)
      .integer("average", 0, "average the weights of this many last checkpoints at the end; 0: no", 0, kMost)
      .integer("patience", 0, "stop after this many evaluations without a new best; 0: no", 0, kMost)
      .path("from", "", "start from the weights and the vocabulary of this run instead of random ones")
      .text("from-weights", "", "which of its weights: best, last, average or a step [average, else best]")
      .group("output")
      .integer("checkpoint-every", 0, "updates between checkpoints; 0: after each evaluation only", 0, kMost)
      .integer("keep", 2, "newest checkpoints kept besides the best", 1, kMost)
      .integer("log-every", 20, "updates between lines of metrics.jsonl", 1, kMost)
      .open_to_clients({"seed", "epochs", "steps", "batch", "accumulate", "optimizer", "lr", "weight-decay", "momentum",
                        "clip", "schedule", "warmup", "final-lr", "eval-every", "checkpoint-every", "keep",
                        "patience"});
  return s;
}

}  // namespace qkv
