// Creating, opening and locking a run's folder.
#include "qkv/train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "qkv/base/error.h"
#include "qkv/io/json.h"
#include "qkv/kernels/simd_target.h"
#include "qkv/version.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kConfigLimit = uint64_t{1} << 20;

Json to_json(const Setting& s) {
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

/// "" for nothing there or an empty folder, otherwise what is in the way.
std::string in_the_way(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return "";
  if (!fs::is_directory(status)) return "it is a file";
  if (fs::exists(path + "/config.json", error)) return "it holds a run";
  return fs::is_empty(path, error) && !error ? "" : "the folder is not empty";
}

}  // namespace

struct RunFolder::Lock {
  int fd = -1;
  ~Lock() {
    if (fd >= 0) ::close(fd);
  }
};

RunFolder::RunFolder(std::string path, const TaskSpec* spec, Settings settings, std::string simd)
    : path_(std::move(path)), spec_(spec), settings_(std::move(settings)), simd_(std::move(simd)) {}

RunFolder RunFolder::create(const std::string& path, const TaskSpec& spec, const Settings& settings,
                            const Task& assets) {
  refuse_existing(path);
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty()) make_folders(parent.string());
  const std::string simd = kernels::simd_target();
  AtomicFolder building(path);
  building.write("config.json", config_text(spec.name, settings, simd));
  assets.save_assets(building.file(""));
  fs::create_directory(building.file("checkpoints"));
  building.commit();
  return {path, &spec, settings, simd};
}

void RunFolder::refuse_existing(const std::string& path) {
  const std::string obstacle = in_the_way(path);
  if (obstacle.empty()) return;
  throw IoError("cannot start a run in " + path + ": " + obstacle +
                (obstacle == "it holds a run" ? "; continue it with --resume " + path + " or choose another --out"
                                              : "; choose another --out"));
}

RunFolder RunFolder::open(const std::string& path, FindTask find) {
  const std::string file = path + "/config.json";
  if (std::error_code error; !fs::exists(file, error)) {
    throw IoError("no run in " + path + ": there is no config.json; runs are made with 'qkv train TASK --out " + path +
                  "'");
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

void RunFolder::change(const std::string& name, const std::string& value) {
  settings_.set(name, value);
  write_file_atomic(path_ + "/config.json", config_text(spec_->name, settings_, simd_));
}

void RunFolder::lock() {
  auto lock = std::make_shared<Lock>();
  lock->fd = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock->fd >= 0 && ::flock(lock->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw IoError("another process is training in " + path_ + "; wait for it or stop it first");
  }
  lock_ = std::move(lock);
  remove_leftovers(path_);
  remove_leftovers(path_ + "/checkpoints");
}

std::vector<NamedParameter> parameters_of(Task& task) { return parameters(task); }

std::string free_folder(const std::string& wanted) {
  std::string name = wanted;
  for (int k = 2; !in_the_way(name).empty(); ++k) name = wanted + "-" + std::to_string(k);
  return name;
}

}  // namespace qkv
