// Checkpoints of a run: written in one visible step, read without trust, pruned without a moment of damage.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "qkv/base/error.h"
#include "qkv/io/json.h"
#include "qkv/io/parameters_file.h"
#include "qkv/train/run_folder.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigits = 8;
constexpr uint64_t kStateLimit = uint64_t{1} << 20;

Json to_json(const TrainState& s) {
  return {{"step", s.step},
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
}

TrainState state_from(const JsonObject& j) {
  TrainState s;
  s.step = j.integer("step");
  s.epoch = j.integer("epoch");
  s.batch = j.integer("batch");
  s.tokens = j.integer("tokens");
  s.seconds = j.number("seconds", 0);
  s.cpu_seconds = j.has("cpu_seconds") ? j.number("cpu_seconds", 0) : 0.0;
  s.loss_sum = j.number("loss_sum");
  s.loss_targets = j.integer("loss_targets");
  s.evaluations = j.integer("evaluations");
  s.evaluations_since_best = j.integer("evaluations_since_best", 0, s.evaluations);
  s.best_step = j.integer("best_step", -1, s.step);
  s.best = j.figure("best");
  s.stopped = j.text("stopped");
  s.seed = static_cast<uint64_t>(j.object("rng").integer("seed"));
  s.metrics_bytes = static_cast<uint64_t>(j.integer("metrics_bytes"));
  s.events_bytes = static_cast<uint64_t>(j.integer("events_bytes"));
  return s;
}

/// A checkpoint must never be half removed under its own name: it is renamed first, and what a kill leaves of it
/// then is cleared by remove_leftovers.
void discard(const std::string& folder) {
  const std::string doomed = folder + ".tmp-" + std::to_string(::getpid()) + "-0";
  std::error_code error;
  fs::rename(folder, doomed, error);
  if (!error) fs::remove_all(doomed, error);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  if (const size_t at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

}  // namespace

std::vector<int64_t> RunFolder::checkpoints() const {
  std::vector<int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator it(path_ + "/checkpoints", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    int64_t step = 0;
    const auto [rest, bad] = std::from_chars(name.data(), name.data() + name.size(), step);
    if (bad == std::errc() && rest == name.data() + name.size() && name.size() >= kDigits) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::string RunFolder::checkpoint_path(int64_t step) const {
  std::string digits = std::to_string(step);
  if (digits.size() < kDigits) digits.insert(0, kDigits - digits.size(), '0');
  return path_ + "/checkpoints/" + digits;
}

void RunFolder::save(const TrainState& state, const std::vector<NamedParameter>& model, const Optimizer& optimizer,
                     int64_t keep) const {
  const std::string target = checkpoint_path(state.step);
  std::string building;
  try {
    AtomicFolder folder(target);
    building = folder.file("");
    save_parameters(folder.file("model.safetensors"), model, {{"format", "pt"}});
    save_parameters(folder.file("optimizer.safetensors"), optimizer.state());
    folder.write("state.json", to_json(state).dump(2) + "\n");
    folder.commit();
  } catch (const IoError& e) {
    const std::vector<int64_t> good = checkpoints();
    const std::string what = building.empty() ? e.what() : replaced(e.what(), building, target + "/");
    throw IoError(what + (good.empty() ? "; no checkpoint could be saved yet"
                                       : "; the last good checkpoint is " + checkpoint_path(good.back())));
  }
  const std::vector<int64_t> steps = checkpoints();
  for (size_t i = 0; i + static_cast<size_t>(keep) < steps.size(); ++i) {
    if (steps[i] != state.best_step) discard(checkpoint_path(steps[i]));
  }
}

TrainState RunFolder::load_state(int64_t step) const {
  const std::string file = checkpoint_path(step) + "/state.json";
  const Json state = read_json(file, "the state of a training", kStateLimit);
  return state_from({state, file});
}

TrainState RunFolder::load(int64_t step, const std::vector<NamedParameter>& model, Optimizer& optimizer) const {
  try {
    const TrainState state = load_state(step);
    load_parameters(checkpoint_path(step) + "/model.safetensors", model);
    load_parameters(checkpoint_path(step) + "/optimizer.safetensors", optimizer.state());
    return state;
  } catch (const IoError& e) {
    const std::vector<int64_t> steps = checkpoints();
    const auto here = std::find(steps.begin(), steps.end(), step);
    if (here == steps.begin() || here == steps.end()) throw;
    throw IoError(std::string(e.what()) + "; remove " + checkpoint_path(step) + " to go on from step " +
                  std::to_string(*(here - 1)));
  }
}

void RunFolder::save_average(const std::vector<NamedParameter>& model, bool preferred) const {
  AtomicFolder folder(average_path());
  save_parameters(folder.file("model.safetensors"), model, {{"format", "pt"}});
  folder.write("state.json", Json{{"preferred", preferred}}.dump() + "\n");
  folder.commit();
}

void RunFolder::remove_average() const { discard(average_path()); }

bool RunFolder::prefers_average() const {
  std::error_code error;
  const std::string file = average_path() + "/state.json";
  if (!fs::exists(file, error)) return fs::exists(average_path(), error);
  return JsonObject(read_json(file, "the state of averaged weights", kStateLimit), file).flag("preferred");
}

std::string RunFolder::load_weights(const std::vector<NamedParameter>& model, const std::string& which) const {
  const std::vector<int64_t> steps = checkpoints();
  std::error_code error;
  std::string folder;
  if (which == "average" || (which.empty() && prefers_average())) {
    folder = average_path();
    if (!fs::exists(folder, error)) throw ConfigError("run " + path_ + " has no averaged weights (see --average)");
  } else if (steps.empty()) {
    throw IoError("run " + path_ + " has no checkpoint yet; continue it with 'qkv train --resume " + path_ + "'");
  } else if (which.empty() || which == "best" || which == "last") {
    const int64_t best = load_state(steps.back()).best_step;
    const bool take_best = which != "last" && std::find(steps.begin(), steps.end(), best) != steps.end();
    folder = checkpoint_path(take_best ? best : steps.back());
  } else {
    int64_t step = -1;
    std::from_chars(which.data(), which.data() + which.size(), step);
    if (std::find(steps.begin(), steps.end(), step) == steps.end()) {
      std::string all;
      for (const int64_t s : steps) all += ", " + std::to_string(s);
      throw ConfigError("no weights '" + which + "' in " + path_ + "; there are: best, last" + all);
    }
    folder = checkpoint_path(step);
  }
  load_parameters(folder + "/model.safetensors", model);
  return folder + "/model.safetensors";
}

}  // namespace qkv
