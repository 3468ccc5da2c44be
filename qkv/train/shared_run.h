// A run on processes that do not see its folder, nor perhaps its data: both reach them from process 0.
#pragma once

#include <memory>
#include <string>

#include "qkv/train/run_folder.h"

namespace qkv {

/// Gives the other processes what they need to make the same task: settings, assets, and the files that settings name
/// where a process does not have the same ones on its own disk (XXH64). For process 0, while the others receive_run().
/// Throws IoError on all of them when data cannot be read or stored.
void share_run(Processes& processes, const RunFolder& run, const Task& task);

/// A run as another process than 0 has it.
struct SharedRun {
  std::string path;  // of process 0
  Settings settings;
  std::unique_ptr<Task> task;
  std::shared_ptr<void> files;  // what was received, removed when this goes
};
SharedRun receive_run(Processes& processes);

}  // namespace qkv
