// Writing and reading state.json.
#include "qkv/train/train_state.h"

#include "qkv/io/json.h"

namespace qkv {

std::string state_text(const TrainState& s) {
  const Json json{{"step", s.step},
                  {"epoch", s.epoch},
                  {"batch", s.batch},
                  {"tokens", s.tokens},
                  {"seconds", s.seconds},
                  {"cpu_seconds", s.cpu_seconds},
                  {"loss_sum", s.loss_sum},
                  {"loss_targets", s.loss_targets},
                  {"evaluations", s.evaluations},
                  {"evaluations_since_best", s.evaluations_since_best},
                  {"best_step", s.best_step},
                  {"best", figure_json(s.best)},
                  {"stopped", s.stopped},
                  {"rng", {{"seed", s.seed}, {"counter", s.step}}},
                  {"metrics_bytes", s.metrics_bytes},
                  {"events_bytes", s.events_bytes}};
  return json.dump(2) + "\n";
}

TrainState parse_state(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, {.where = file, .what = "the state of a training"});
  const JsonObject j(json, file);
  // A limit such that no sum or product of two of them overflows where it is used.
  constexpr int64_t kMost = int64_t{1} << 62;
  TrainState s;
  s.step = j.integer("step", 0, kMost);
  s.epoch = j.integer("epoch", 0, kMost);
  s.batch = j.integer("batch", 0, kMost);
  s.tokens = j.integer("tokens", 0, kMost);
  s.seconds = j.number("seconds", 0);
  s.cpu_seconds = j.has("cpu_seconds") ? j.number("cpu_seconds", 0) : 0.0;
  s.loss_sum = j.number("loss_sum");
  s.loss_targets = j.integer("loss_targets", 0, kMost);
  s.evaluations = j.integer("evaluations", 0, kMost);
  s.evaluations_since_best = j.integer("evaluations_since_best", 0, s.evaluations);
  s.best_step = j.integer("best_step", -1, s.step);
  s.best = j.figure("best");
  s.stopped = j.text("stopped");
  s.seed = static_cast<uint64_t>(j.object("rng").integer("seed"));
  s.metrics_bytes = static_cast<uint64_t>(j.integer("metrics_bytes", 0, kMost));
  s.events_bytes = static_cast<uint64_t>(j.integer("events_bytes", 0, kMost));
  return s;
}

}  // namespace qkv
