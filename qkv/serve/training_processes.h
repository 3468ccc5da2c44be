// Trainings started from the page: each is the program's own `train` command in a separate process.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>

#include "qkv/routes/trainings.h"
#include "qkv/serve/workers.h"

namespace qkv::serve {

class TrainingProcesses final : public routes::Trainings {
 public:
  /// Runs are written below `root` by this program, which gets these options too.
  explicit TrainingProcesses(std::string root, std::string program = "/proc/self/exe",
                             std::vector<std::string> options = {});
  /// Ends what is still running (each saves and can be resumed).
  ~TrainingProcesses() override;
  TrainingProcesses(const TrainingProcesses&) = delete;
  TrainingProcesses& operator=(const TrainingProcesses&) = delete;

  std::string start(const routes::TrainingOrder& order) override;
  /// Asked again after 5 seconds, a training that is still at it ends as it is: its checkpoints stay.
  void stop(const std::string& id) override;
  bool is_running(const std::string& id) override;
  std::map<std::string, std::string> failures() override;

  /// Asks all to save and stop, and ends those that have not done so after `patience`: their checkpoints stay. Nothing
  /// is started any more.
  void stop_all(std::chrono::milliseconds patience);

 private:
  struct Child {
    pid_t process = 0;
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> errors{nullptr, &std::fclose};  // what it says on standard error
    std::optional<std::chrono::steady_clock::time_point> told = {};                 // to stop
  };
  static constexpr size_t kMost = 2, kFailuresKept = 16;

  pid_t spawn(const std::vector<std::string>& words, int errors);
  std::string free_id(const std::string& task) const;
  void tell_to_stop(Child& child);
  void forget_finished();

  std::string root_, program_;
  std::vector<std::string> options_;
  Workers launcher_{1, 1, std::chrono::seconds(1)};  // the system ends a child with the thread that made it
  std::mutex mutex_;
  bool closed_ = false;
  std::map<std::string, Child> running_;
  std::map<std::string, std::string> failures_;
};

}  // namespace qkv::serve
