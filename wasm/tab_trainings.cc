// Ordering trainings, and training in pieces.
#include "wasm/tab_trainings.h"

#include <chrono>
#include <filesystem>

#include "qkv/base/error.h"
#include "qkv/io/file.h"
#include "qkv/io/json.h"
#include "qkv/routes/router.h"

namespace qkv::wasm {
namespace {

namespace fs = std::filesystem;

// What a run's settings say its data are; in this tab a file of that name, until the run carries a copy.
constexpr const char* kPasted = "pasted text";

using routes::RouteError;

}  // namespace

std::string TabTrainings::start(const routes::TrainingOrder& order) {
  if (!running_.empty()) throw RouteError(503, "a training already runs in this tab; wait for it, or stop it");
  const TaskSpec& spec = find_task(order.task);
  Settings settings = spec.settings();
  for (const auto& [name, value] : order.settings) {
    if (name == "from") throw RouteError(400, "a tab starts no training from another run's weights", name);
    settings.set(name, value);
  }
  const std::string path = free_folder(root_ + "/" + order.task);
  make_folders(root_);
  RunFolder::create(path, spec, settings, *make_new_task(spec, settings));
  const std::string id = path.substr(root_.size() + 1);
  failures_.erase(id);
  running_.insert(id);
  orders_.push_back("train " + id);
  return id;
}

std::string TabTrainings::keep_text(const std::string& text) {
  write_file_atomic(kPasted, bytes_of(text));
  return kPasted;
}

void TabTrainings::stop(const std::string& id) {
  if (!is_running(id)) throw RouteError(404, "no training '" + id + "' was started here", "id");
  orders_.push_back("stop " + id);
}

std::string TabTrainings::next_order() {
  if (orders_.empty()) return "";
  const std::string next = std::move(orders_.front());
  orders_.pop_front();
  return next;
}

void TabTrainings::ended(const std::string& id, const std::string& failure) {
  running_.erase(id);
  if (!failure.empty()) failures_[id] = failure;
}

TabTraining::TabTraining(std::string path)
    : path_(std::move(path)), run_([this] {
        RunFolder folder = RunFolder::open(path_);
        auto task = folder.make_task();
        return OpenedRun{std::move(folder), std::move(task), ""};
      }()) {
  session_ = std::make_unique<Session>(SessionPlace{&run_.folder, run_.folder.settings(), one_process()}, *run_.task,
                                       &observer_);
  known_ = files();
}

bool TabTraining::advance(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    if (session_->advance()) continue;
    write_result(run_.folder, session_->finish());
    return false;
  } while (Clock::now() < until);
  return true;
}

std::map<std::string, std::string> TabTraining::files() const {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(path_)) {
    if (!entry.is_regular_file()) continue;
    const auto time = entry.last_write_time().time_since_epoch().count();
    all[entry.path().string().substr(path_.size() + 1)] =
        std::to_string(entry.file_size()) + " " + std::to_string(static_cast<int64_t>(time));
  }
  return all;
}

std::string TabTraining::news() {
  const std::vector<int64_t> steps = run_.folder.checkpoints();
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    fs::remove(run_.folder.checkpoint_path(steps[i]) + "/optimizer.safetensors");
  }
  const std::map<std::string, std::string> now = files();
  Json changed = Json::array(), removed = Json::array();
  for (const auto& [name, stamp] : now) {
    const auto before = known_.find(name);
    if (before == known_.end() || before->second != stamp) changed.push_back(name);
  }
  for (const auto& [name, stamp] : known_) {
    if (now.count(name) == 0) removed.push_back(name);
  }
  known_ = now;
  const StepReport& r = observer_.last;
  return json_text({{"changed", changed},
                    {"removed", removed},
                    {"progress", {{"step", r.step}, {"steps", r.total_steps}, {"seconds_left", r.seconds_left}}}});
}

}  // namespace qkv::wasm
