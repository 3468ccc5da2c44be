// Listing and loading runs.
#include "qkv/routes/model_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include "qkv/base/error.h"
#include "qkv/io/folder.h"
#include "qkv/routes/parts.h"
#include "qkv/tasks/recordings.h"

namespace qkv::routes {
namespace {

namespace fs = std::filesystem;

std::string name_of_folder(const std::string& path) {
  const fs::path p = fs::path(path).lexically_normal();
  return (p.filename().empty() ? p.parent_path() : p).filename().string();
}

bool is_recorded(const std::string& run) {
  std::error_code error;
  return fs::exists(run + "/" + kRecordings, error);
}

RunInfo describe(const FoundRun& run) {
  RunInfo info;
  info.id = run.id;
  info.path = run.path;
  info.group = run.group;
  try {
    const RunFolder folder = RunFolder::open(run.path);
    info.task = folder.spec().name;
    info.settings = folder.settings();
    info.recorded = is_recorded(run.path);
    info.checkpoints = folder.checkpoints();
  } catch (const Error& e) {
    info.error = e.what();
  }
  return info;
}

void load_recordings(LoadedModel& model) {
  auto recordings = std::make_unique<Recordings>(Recordings::load(model.run + "/" + kRecordings));
  model.weights = recordings->weights();
  model.bytes = recordings->bytes();
  model.recorded = true;
  model.model = std::move(recordings);
}

/// `which` as RunFolder::load_weights takes it. Returns where the data are when no setting names them.
std::string load_task(LoadedModel& model, const RunFolder& folder, const std::string& which) {
  std::unique_ptr<Task> task = folder.make_task();
  const std::vector<NamedParameter> parameters = parameters_of(*task);
  model.weights = weights_name(folder.load_weights(parameters, which));
  for (const NamedParameter& p : parameters) model.bytes += p.value.numel() * static_cast<int64_t>(sizeof(float));
  std::string data = task->unnamed_data();
  model.model = std::move(task);
  return data;
}

bool holds_link(const FoundRun& run) {
  bool link = false;
  const int error = for_each_below(run.path, [&](const std::string&, mode_t mode) { link = link || S_ISLNK(mode); });
  return link || (error != 0 && error != ENOENT);  // ENOENT: a training removes old checkpoints
}

bool is_below(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

/// The runs in folders that were named, each below its folder's name.
std::vector<FoundRun> runs_in(const std::vector<std::string>& paths) {
  std::vector<FoundRun> all;
  std::set<std::string> names;
  for (const std::string& path : paths) {
    std::string name = name_of_folder(path);
    for (int k = 2; !names.insert(name).second; ++k) name = name_of_folder(path) + "~" + std::to_string(k);
    const FolderKind kind = folder_kind(path);
    const std::vector<FoundRun> inside = find_runs(path);
    if (inside.empty()) all.push_back({name, path, ""});  // a run, or what cannot be read
    for (const FoundRun& run : inside) {
      const std::string group = kind != FolderKind::other ? name : run.group.empty() ? "" : name + "/" + run.group;
      all.push_back({name + "/" + run.id, run.path, group});
    }
  }
  return all;
}

}  // namespace

ModelStore::ModelStore(std::vector<std::string> paths, std::string root)
    : paths_(std::move(paths)), root_(std::move(root)) {}

void ModelStore::show_to_others(const std::map<std::string, std::string>& data_sets) {
  shown_data_.emplace();
  for (const auto& [name, path] : data_sets) shown_data_->push_back(path);
}

std::vector<FoundRun> ModelStore::found() const {
  std::vector<FoundRun> all = paths_.empty() ? find_runs(root_) : runs_in(paths_);
  if (shown_data_) std::erase_if(all, holds_link);
  return all;
}

/// A run may come from someone else, and its configuration name anything as its data.
void ModelStore::check_data(const std::string& id, const std::string& path) const {
  std::error_code error;
  if (!shown_data_ || path.empty() || !fs::exists(path, error)) return;
  const fs::path whole = fs::canonical(path, error);
  const auto holds = [&](const std::string& shown) { return !error && is_below(whole, shown); };
  if (std::any_of(shown_data_->begin(), shown_data_->end(), holds)) return;
  throw RouteError(403, "the data of run '" + id + "' are not shown to others; start 'qkv serve' with --allow-data",
                   "model");
}

std::vector<RunInfo> ModelStore::list() const {
  std::vector<RunInfo> runs;
  for (const FoundRun& run : found()) runs.push_back(describe(run));
  return runs;
}

RunInfo ModelStore::find(const std::string& id) const {
  for (const FoundRun& run : found()) {
    if (run.id == id) return describe(run);
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
  for (const Setting& s : folder.settings().all()) {
    if (s.kind == SettingKind::path && s.name != "from") check_data(id, s.value);
  }
  model->input = folder.spec().input;
  if (run.recorded) {
    load_recordings(*model);
  } else {
    check_data(id, load_task(*model, folder, checkpoint.empty() && finished ? "" : which));
  }
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
