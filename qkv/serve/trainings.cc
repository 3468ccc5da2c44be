// Starting and stopping training processes.
#include "qkv/serve/trainings.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "qkv/base/error.h"
#include "qkv/serve/http_server.h"
#include "qkv/tasks/task.h"
#include "qkv/train/run_folder.h"

extern char** environ;

namespace qkv::serve {

Trainings::~Trainings() {
  for (const auto& [id, pid] : running_) ::kill(pid, SIGINT);
  for (const auto& [id, pid] : running_) ::waitpid(pid, nullptr, 0);
}

void Trainings::forget_finished() {
  for (auto it = running_.begin(); it != running_.end();) {
    it = ::waitpid(it->second, nullptr, WNOHANG) == it->second ? running_.erase(it) : std::next(it);
  }
}

std::string Trainings::start(const std::string& task,
                             const std::vector<std::pair<std::string, std::string>>& settings) {
  const TaskSpec& spec = find_task(task);
  Settings checked = spec.settings();
  for (const auto& [name, value] : settings) checked.set(name, value);
  std::lock_guard lock(mutex_);
  forget_finished();
  if (running_.size() >= kMost) throw HttpError(503, "two trainings already run; wait for one, or stop it");
  const std::string folder = free_folder(root_ + "/" + task);
  std::vector<std::string> words{"qkv", "train", task, "--out", folder};
  for (const auto& [name, value] : settings) {
    words.push_back("--" + name);
    words.push_back(value);
  }
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  // Its output goes nowhere: the page reads the run's metrics.
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, "/proc/self/exe", &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw Error("could not start the training");
  const std::string id = std::filesystem::path(folder).filename().string();
  running_[id] = pid;
  return id;
}

void Trainings::stop(const std::string& id) {
  std::lock_guard lock(mutex_);
  forget_finished();
  const auto found = running_.find(id);
  if (found == running_.end()) throw HttpError(404, "no training '" + id + "' was started here", "id");
  ::kill(found->second, SIGINT);
}

bool Trainings::is_running(const std::string& id) {
  std::lock_guard lock(mutex_);
  forget_finished();
  return running_.count(id) > 0;
}

}  // namespace qkv::serve
