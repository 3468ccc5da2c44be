// Creating, opening and locking a run's folder.
#include "qkv/train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "qkv/base/budget.h"
#include "qkv/base/error.h"
#include "qkv/base/utf8.h"
#include "qkv/core/memory.h"
#include "qkv/io/checksum.h"
#include "qkv/io/folder.h"
#include "qkv/io/json.h"
#include "qkv/kernels/simd_target.h"
#include "qkv/train/run_tree.h"
#include "qkv/version.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kConfigLimit = uint64_t{1} << 20;

Json to_json(const Setting& s) {
  if (first_invalid_utf8(s.value) >= 0) throw ConfigError("--" + s.name + ": '" + s.value + "' is not UTF-8");
  switch (s.kind) {
    case SettingKind::integer:
      return std::stoll(s.value);
    case SettingKind::number:
      return std::stod(s.value);
    case SettingKind::flag:
      return s.value == "true";
    case SettingKind::text:
    case SettingKind::choice:
    case SettingKind::path:
      break;
  }
  return s.value;
}

std::string config_text(const std::string& task, const Settings& settings, const std::string& simd) {
  Json values = Json::object();
  for (const Setting& s : settings.all()) values[s.name] = to_json(s);
  const Json config{{"qkv", QKV_VERSION}, {"task", task}, {"simd", simd}, {"settings", values}};
  return config.dump(2) + "\n";
}

/// What save_assets() wrote.
std::vector<std::string> asset_names(const std::string& folder) {
  int error = 0;
  std::vector<std::string> names = names_in(folder, error);
  if (error != 0) throw IoError("cannot read " + folder + ": " + std::generic_category().message(error));
  std::erase(names, "config.json");
  std::sort(names.begin(), names.end());
  return names;
}

/// "" for nothing there or an empty folder, otherwise what is in the way and what to do.
std::string in_the_way(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return "";
  if (!fs::is_directory(status)) return "it is a file; choose another --out";
  const FolderRow& holds = row_of(folder_kind(path));
  if (*holds.command != 0) {
    return std::string("it holds a ") + holds.name + "; continue it with 'qkv " + holds.command + " --resume " + path +
           "' or choose another --out";
  }
  return fs::is_empty(path, error) && !error ? "" : "the folder is not empty; choose another --out";
}

[[noreturn]] void refuse_taken(const std::string& path) {
  RunFolder::refuse_existing(path);
  throw IoError("cannot start a run in " + path + ": another process uses it; choose another --out");
}

}  // namespace

/// A lock on a folder, not on its name: it stays with the folder when that is renamed.
struct RunFolder::Lock {
  Lock(const std::string& folder, const std::string& shown) {
    fd_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd_ < 0) throw IoError("cannot lock " + shown + ": " + std::generic_category().message(errno));
    // A file system without locks (some network ones) is used without.
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(fd_);
      throw IoError("another process is training in " + shown + "; wait for it or stop it first");
    }
  }
  ~Lock() { ::close(fd_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int fd_ = -1;
};

RunFolder::RunFolder(std::string path, const TaskSpec* spec, Settings settings, std::string simd)
    : Checkpoints(path), path_(std::move(path)), spec_(spec), settings_(std::move(settings)), simd_(std::move(simd)) {}

RunFolder RunFolder::create(const std::string& path, const TaskSpec& spec, const Settings& settings,
                            const Task& assets) {
  refuse_existing(path);
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty()) make_folders(parent.string());
  const std::string simd = kernels::simd_target();
  AtomicFolder building(path);
  building.write("config.json", config_text(spec.name, settings, simd));
  assets.save_assets(building.file(""));
  if (const std::vector<std::string> names = asset_names(building.path()); !names.empty()) {
    Checksums::write(building.path(), names);
  }
  make_folders(building.file("checkpoints"));
  RunFolder run{path, &spec, settings, simd};
  run.lock_ = std::make_shared<Lock>(building.path(), path);
  if (!building.commit_new()) refuse_taken(path);
  return run;
}

void RunFolder::refuse_existing(const std::string& path) {
  if (first_invalid_utf8(path) >= 0) {
    throw ConfigError("cannot start a run in " + path + ": the name is not UTF-8; choose another --out");
  }
  remove_leftovers(path);  // of a process that was killed as it began here
  const std::string obstacle = in_the_way(path);
  if (obstacle.empty()) return;
  throw IoError("cannot start a run in " + path + ": " + obstacle);
}

RunFolder RunFolder::open(const std::string& path, FindTask find) {
  const std::string file = path + "/config.json";
  if (std::error_code error; !fs::exists(file, error)) {
    throw IoError(not_a_run(path));
  }
  const Json json = read_json(file, "the configuration of a run", kConfigLimit);
  const JsonObject config(json, file);
  try {
    const TaskSpec& spec = find(config.text("task"));
    Settings settings = spec.settings();
    const JsonObject values = config.object("settings");
    for (const auto& [name, value] : values.json().items()) {
      settings.set(name, value.is_string() ? value.get<std::string>() : value.dump());
    }
    return {path, &spec, std::move(settings), config.has("simd") ? config.text("simd") : ""};
  } catch (const ConfigError& e) {
    throw IoError(file + ": " + e.what());
  }
}

std::unique_ptr<Task> RunFolder::make_task(const Settings& settings) const {
  Checksums::load(path_).check_all();
  const int64_t weights = weight_bytes();
  if (weights == 0 || current_budget() != nullptr) return spec_->make(settings, path_);
  // Settings may be anyone's: what they ask for is bounded by the weights that are there.
  const int64_t most = memory_use().live + 4 * weights + (int64_t{256} << 20);
  const Budget budget(std::chrono::hours(24), most);
  const BudgetScope scope(&budget);
  try {
    return spec_->make(settings, path_);
  } catch (const BudgetError&) {
    throw IoError(path_ + "/config.json: a model of these settings is larger than the run's weights");
  }
}

void RunFolder::change(const std::string& name, const std::string& value) {
  settings_.set(name, value);
  changed_ = true;
}

void RunFolder::store_changes() {
  if (changed_) write_file_atomic(path_ + "/config.json", config_text(spec_->name, settings_, simd_));
  changed_ = false;
}

void refuse_links(const std::string& folder, const std::string& purpose) {
  for_each_below(folder, [&](const std::string& path, mode_t mode) {
    if (!S_ISLNK(mode)) return;
    throw IoError("cannot " + purpose + ": " + path + " is a link; put what it names in its place");
  });
}

void RunFolder::lock() {
  refuse_links(path_);
  if (!lock_) lock_ = std::make_shared<Lock>(path_, path_);
  remove_leftovers(path_);
  remove_leftovers(path_ + "/checkpoints");
}

std::shared_ptr<void> lock_folder(const std::string& path) { return std::make_shared<RunFolder::Lock>(path, path); }

std::vector<EvaluationRecord> RunFolder::history() const {
  const std::vector<int64_t> steps = checkpoints();
  return steps.empty() ? std::vector<EvaluationRecord>()
                       : MetricsLog::evaluations(path_, load_state(steps.back()).metrics_bytes);
}

std::vector<NamedParameter> parameters_of(Task& task) { return parameters(task); }

void claim_folder(const std::string& folder, const std::string& name, const std::string& text) {
  if (temporary_owner(fs::path(folder + "/").lexically_normal().parent_path().filename().string()) != 0) {
    throw IoError("cannot write to " + folder + ": the name is that of a temporary folder; choose another --out");
  }
  std::error_code error;
  const bool ours = !fs::exists(folder, error);
  make_folders(folder);
  try {
    AtomicFile record(folder + "/" + name);
    record.write(text);
    if (!record.commit_new()) refuse_taken(folder);
  } catch (...) {
    if (ours) ::rmdir(folder.c_str());  // which leaves it to whoever has written into it
    throw;
  }
}

void remove_untrained(const std::string& folder) {
  bool trained = false;
  const int error = for_each_below(folder, [&](const std::string& path, mode_t) {
    trained = trained || fs::path(path).parent_path().filename() == "checkpoints";
  });
  if (error == 0 && !trained) remove_tree(folder);
}

std::string free_folder(const std::string& wanted) {
  std::string name = wanted;
  for (int k = 2; !in_the_way(name).empty(); ++k) name = wanted + "-" + std::to_string(k);
  return name;
}

}  // namespace qkv
