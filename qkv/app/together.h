// A command on the processes that a launcher started: process 0 speaks, an error of one ends all.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "qkv/app/command.h"
#include "qkv/dist/processes.h"

namespace qkv::app {

/// What a command knows of the processes it runs on.
class Crew {
 public:
  explicit Crew(Processes& processes) : processes_(processes) {}

  Processes& processes() { return processes_; }
  bool first() const { return processes_.rank() == 0; }
  bool alone() const { return processes_.size() == 1; }

  /// The command that continues, for the line that says that a process is gone.
  void continue_with(const std::string& command);
  std::string how_to_continue();

 private:
  Processes& processes_;
  std::mutex mutex_;
  std::string command_;
};

/// Runs `work` on every process, joined with the others where a launcher started several with the same arguments; those
/// other than process 0 print nothing. Returns the exit code; of several processes the error is printed here, in one
/// line. Throws what `work` does on a process alone.
int together(const Arguments& arguments, const std::function<int(Crew&)>& work);

/// The exit code of all processes: that of a signal when one came to any of them.
int exit_code(Processes& processes, bool interrupted, int signal);

/// The folder of several runs, as process 0 names it. Throws IoError on all processes when one of them does not see
/// the record in it.
std::string same_folder(Processes& processes, const std::string& folder, const std::string& record);

}  // namespace qkv::app
