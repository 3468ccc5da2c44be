// Writing checkpoints in one visible step, reading them without trust, removing them without a moment of damage.
#include "qkv/train/checkpoints.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <span>
#include <system_error>

#include "qkv/base/error.h"
#include "qkv/io/checksum.h"
#include "qkv/io/folder.h"
#include "qkv/io/json.h"
#include "qkv/io/parameters_file.h"
#include "qkv/train/run_tree.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigits = 8;
constexpr uint64_t kStateLimit = uint64_t{1} << 20;
constexpr const char *kModel = "model.safetensors", *kOptimizer = "optimizer.safetensors", *kState = "state.json";

/// A checkpoint must never be half removed under its own name: it is renamed first, and what a kill leaves of it
/// then is cleared by remove_leftovers.
void discard(const std::string& folder) {
  const std::string doomed = folder + ".tmp-" + std::to_string(::getpid()) + "-0";
  std::error_code error;
  fs::rename(folder, doomed, error);
  if (!error) fs::remove_all(doomed, error);
}

/// The largest file that may hold these tensors, and some that do not fit them, which are named then.
uint64_t most_bytes(const std::vector<NamedParameter>& tensors) {
  constexpr uint64_t kHeader = uint64_t{64} << 20;
  uint64_t bytes = 0;
  for (const NamedParameter& p : tensors) bytes += static_cast<uint64_t>(p.value.numel()) * sizeof(double);
  return kHeader + 2 * bytes;
}

void load_checked(const std::string& folder, const char* name, const std::vector<NamedParameter>& tensors) {
  Bytes bytes = read_file(folder + "/" + name, most_bytes(tensors));
  const uint64_t sum = xxh64(bytes);
  // First, since it says more: what does not fit this model.
  load_parameters(SafetensorsFile::parse(std::move(bytes), folder + "/" + name), tensors);
  Checksums::load(folder).check(name, sum);
}

template <class T>
bool all_finite(std::span<const T> values) {
  bool finite = true;  // without a way out, so that the loop runs on vectors
  for (const T v : values) finite &= std::abs(v) <= std::numeric_limits<T>::max();
  return finite;
}

bool all_finite(const Tensor& t) {
  const Tensor dense = t.is_contiguous() ? t : t.clone();
  const auto n = static_cast<size_t>(t.numel());
  return t.dtype() == DType::f32 ? all_finite(std::span<const float>(dense.f32(), n))
                                 : all_finite(std::span<const double>(dense.f64(), n));
}

/// Returns the file.
std::string load_model(const std::string& folder, const std::vector<NamedParameter>& model) {
  load_checked(folder, kModel, model);
  for (const NamedParameter& p : model) {
    if (!all_finite(p.value)) {
      throw IoError(
          folder + "/" + kModel + ": tensor " + quoted_name(p.name) +
          " holds numbers that are not finite; the training failed, try a smaller --lr or another checkpoint");
    }
  }
  return folder + "/" + kModel;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  if (const size_t at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

}  // namespace

std::vector<int64_t> Checkpoints::checkpoints() const {
  std::vector<int64_t> steps;
  const std::string folder = run_ + "/checkpoints";
  int error = 0;  // a run without that folder has no checkpoints
  for (const std::string& name : names_in(folder, error)) {
    int64_t step = -1;
    const auto [rest, bad] = std::from_chars(name.data(), name.data() + name.size(), step);
    if (bad == std::errc() && step >= 0 && folder + "/" + name == checkpoint_path(step)) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

int64_t Checkpoints::weight_bytes() const {
  std::error_code error;
  const std::vector<int64_t> steps = checkpoints();
  const std::string folder = steps.empty() ? average_path() : checkpoint_path(steps.back());
  const auto bytes = fs::file_size(folder + "/" + kModel, error);
  return error ? 0 : static_cast<int64_t>(std::min<uintmax_t>(bytes, uintmax_t{1} << 40));
}

std::string Checkpoints::checkpoint_path(int64_t step) const {
  std::string digits = std::to_string(step);
  if (digits.size() < kDigits) digits.insert(0, kDigits - digits.size(), '0');
  return run_ + "/checkpoints/" + digits;
}

void Checkpoints::save(const TrainState& state, const std::vector<NamedParameter>& model, const Optimizer& optimizer,
                       int64_t keep) const {
  const std::string target = checkpoint_path(state.step);
  std::string building;
  try {
    AtomicFolder folder(target);
    building = folder.path();
    save_parameters(folder.file(kModel), model, {{"format", "pt"}});
    save_parameters(folder.file(kOptimizer), optimizer.state());
    folder.write(kState, state_text(state));
    Checksums::write(building, {kModel, kOptimizer, kState});
    folder.commit();
  } catch (const IoError& e) {
    const std::vector<int64_t> good = checkpoints();
    const std::string what = building.empty() ? e.what() : replaced(e.what(), building, target);
    throw IoError(what + (good.empty() ? "; no checkpoint could be saved yet"
                                       : "; the last good checkpoint is " + checkpoint_path(good.back())));
  }
  prune(state, keep);
}

void Checkpoints::prune(const TrainState& state, int64_t keep) const {
  const std::vector<int64_t> steps = checkpoints();
  for (size_t i = 0; i + static_cast<size_t>(keep) < steps.size(); ++i) {
    if (steps[i] != state.best_step) discard(checkpoint_path(steps[i]));
  }
}

TrainState Checkpoints::load_state(int64_t step) const {
  const std::string folder = checkpoint_path(step);
  const std::string text = read_text(folder + "/" + kState, kStateLimit);
  const TrainState state = parse_state(text, folder + "/" + kState);
  Checksums::load(folder).check(kState, xxh64(bytes_of(text)));
  if (state.step == step) return state;
  throw IoError(folder + "/" + kState + ": it is of step " + std::to_string(state.step));
}

TrainState Checkpoints::load(int64_t step, const std::vector<NamedParameter>& model, Optimizer& optimizer) const {
  try {
    const TrainState state = load_state(step);
    load_model(checkpoint_path(step), model);
    load_checked(checkpoint_path(step), kOptimizer, optimizer.state());
    return state;
  } catch (const IoError& e) {
    const std::vector<int64_t> steps = checkpoints();
    const auto here = std::find(steps.begin(), steps.end(), step);
    if (here == steps.begin() || here == steps.end()) throw;
    throw IoError(std::string(e.what()) + "; remove " + checkpoint_path(step) + " to continue from step " +
                  std::to_string(*(here - 1)));
  }
}

void Checkpoints::save_average(const std::vector<NamedParameter>& model, bool preferred) const {
  AtomicFolder folder(average_path());
  save_parameters(folder.file(kModel), model, {{"format", "pt"}});
  folder.write(kState, Json{{"preferred", preferred}}.dump() + "\n");
  Checksums::write(folder.path(), {kModel, kState});
  folder.commit();
}

void Checkpoints::remove_average() const { discard(average_path()); }

bool Checkpoints::prefers_average() const {
  std::error_code error;
  const std::string file = average_path() + "/" + kState;
  if (!fs::exists(file, error)) return fs::exists(average_path(), error);
  return JsonObject(read_json(file, "the state of averaged weights", kStateLimit), file).flag("preferred");
}

std::string Checkpoints::load_weights(const std::vector<NamedParameter>& model, const std::string& which) const {
  const std::vector<int64_t> steps = checkpoints();
  std::error_code error;
  std::string folder;
  if (which == "average" || (which.empty() && prefers_average())) {
    folder = average_path();
    if (!fs::exists(folder, error)) throw ConfigError("run " + run_ + " has no averaged weights (see --average)");
  } else if (steps.empty()) {
    require_readable(run_ + "/checkpoints");
    throw IoError("run " + run_ + " has no checkpoint yet; continue it with 'qkv train --resume " + run_ + "'");
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
      throw ConfigError("no weights '" + which + "' in " + run_ + "; available: best, last" + all);
    }
    folder = checkpoint_path(step);
  }
  return load_model(folder, model);
}

std::string weights_name(const std::string& file) {
  std::string name = fs::path(file).parent_path().filename().string();
  return name.erase(0, std::min(name.find_first_not_of('0'), name.size() - 1));
}

}  // namespace qkv
