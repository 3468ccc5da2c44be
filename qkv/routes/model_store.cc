// Listing and loading runs.
#include "qkv/routes/model_store.h"

#include <algorithm>
#include <filesystem>

#include "qkv/base/error.h"
#include "qkv/io/file.h"
#include "qkv/routes/parts.h"

namespace qkv::routes {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> runs_below(const std::string& root) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root, error)) {
    if (temporary_owner(entry.path().filename().string()) != 0) continue;  // a run that is just being set up
    if (entry.is_directory(error) && fs::exists(entry.path() / "config.json", error)) {
      found.push_back(entry.path().string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string name_of_folder(const std::string& path) {
  const fs::path p = fs::path(path).lexically_normal();
  return (p.filename().empty() ? p.parent_path() : p).filename().string();
}

RunInfo describe(const std::string& path) {
  RunInfo info;
  info.path = path;
  try {
    const RunFolder folder = RunFolder::open(path);
    info.task = folder.spec().name;
    info.settings = folder.settings();
    info.checkpoints = folder.checkpoints();
  } catch (const Error& e) {
    info.error = e.what();
  }
  return info;
}

}  // namespace

ModelStore::ModelStore(std::vector<std::string> paths, std::string root)
    : paths_(std::move(paths)), root_(std::move(root)) {}

std::vector<RunInfo> ModelStore::list() const {
  std::vector<RunInfo> runs;
  for (const std::string& path : paths_.empty() ? runs_below(root_) : paths_) {
    RunInfo info = describe(path);
    info.id = name_of_folder(path);
    const auto taken = std::count_if(runs.begin(), runs.end(), [&](const RunInfo& r) {
      return r.id == info.id || r.id.rfind(info.id + "~", 0) == 0;
    });
    if (taken > 0) info.id += "~" + std::to_string(taken + 1);
    runs.push_back(std::move(info));
  }
  return runs;
}

RunInfo ModelStore::find(const std::string& id) const {
  for (RunInfo& run : list()) {
    if (run.id == id) return run;
  }
  throw RouteError(404, "no run '" + id + "'", "model");
}

std::shared_ptr<LoadedModel> ModelStore::open(const std::string& id, const std::string& checkpoint) {
  const RunInfo run = find(id);
  if (!run.error.empty()) throw IoError(run.error);
  if (run.checkpoints.empty()) throw RouteError(409, "run '" + id + "' has no checkpoint yet", "model");
  // Without a choice a run that is still training shows what it learns; a finished one, what it settled on.
  std::error_code error;
  const bool finished = fs::exists(run.path + "/result.json", error);
  const std::string newest = std::to_string(run.checkpoints.back());
  const std::string which = !checkpoint.empty() ? checkpoint : finished ? "chosen at " + newest : newest;
  const auto lock = held(mutex_);
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const auto& m) { return m->run == run.path && m->checkpoint == which; });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    return kept_.front();
  }
  while (!kept_.empty() && crowded()) forget_oldest();
  auto model = std::make_shared<LoadedModel>();
  model->run = run.path;
  model->checkpoint = which;
  const RunFolder folder = RunFolder::open(run.path);
  model->input = folder.spec().input;
  model->task = folder.make_task();
  const bool own_choice = checkpoint.empty() && finished;
  const std::vector<NamedParameter> parameters = parameters_of(*model->task);
  const std::string file = folder.load_weights(parameters, own_choice ? "" : which);
  model->weights = fs::path(file).parent_path().filename().string();
  model->weights.erase(0, std::min(model->weights.find_first_not_of('0'), model->weights.size() - 1));
  for (const NamedParameter& p : parameters) model->bytes += p.value.numel() * static_cast<int64_t>(sizeof(float));
  kept_.push_front(model);
  bytes_ += model->bytes;
  while (kept_.size() > kKept || (bytes_ > kKeptBytes && kept_.size() > 1)) forget_oldest();
  return model;
}

void ModelStore::forget_oldest() {
  bytes_ -= kept_.back()->bytes;
  kept_.pop_back();
}

}  // namespace qkv::routes
