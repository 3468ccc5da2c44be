// Trainings started from the page: each is the program's own `train` command in a process of its own.
#pragma once

#include <sys/types.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace qkv::serve {

class Trainings {
 public:
  /// Runs are written below `root`.
  explicit Trainings(std::string root) : root_(std::move(root)) {}
  /// Ends what is still running (each saves and can be resumed).
  ~Trainings();
  Trainings(const Trainings&) = delete;
  Trainings& operator=(const Trainings&) = delete;

  /// Starts `qkv train TASK --NAME VALUE …` and returns the run's id. Throws ConfigError on settings the task does not
  /// have, HttpError 503 when kMost already run.
  std::string start(const std::string& task, const std::vector<std::pair<std::string, std::string>>& settings);
  /// Asks one to save and stop. Throws HttpError 404 for a run that was not started here.
  void stop(const std::string& id);
  bool is_running(const std::string& id);

 private:
  static constexpr size_t kMost = 2;
  void forget_finished();
  std::string root_;
  std::mutex mutex_;
  std::map<std::string, pid_t> running_;
};

}  // namespace qkv::serve
