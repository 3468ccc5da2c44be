// A run's folder: configuration, assets, metrics and checkpoints, each visible complete or not at all.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "qkv/tasks/task.h"
#include "qkv/train/checkpoints.h"
#include "qkv/train/metrics_log.h"

namespace qkv {

using FindTask = const TaskSpec& (*)(const std::string& name);

/// runs/NAME/: creating, opening and locking it, with its checkpoints.
class RunFolder : public Checkpoints {
 public:
  /// Makes the folder with config.json and what save_assets writes, and locks it before anybody else can see it.
  /// Throws IoError when something is already there, also when another process made it in the meantime.
  static RunFolder create(const std::string& path, const TaskSpec& spec, const Settings& settings, const Task& assets);
  /// Throws the IoError of create() before any work is done: something is there, or the path is not UTF-8 (JSON and the
  /// report could not name it).
  static void refuse_existing(const std::string& path);
  /// Throws IoError when there is no run, or one that this program cannot read.
  static RunFolder open(const std::string& path, FindTask find = find_task);

  const std::string& path() const { return path_; }
  const TaskSpec& spec() const { return *spec_; }
  const Settings& settings() const { return settings_; }
  /// The SIMD target the run began with: another one gives results as good, but not the same bits.
  const std::string& simd() const { return simd_; }
  /// The run's task with its assets (or with other settings than the run's own); weights are fresh. Throws IoError when
  /// an asset is damaged.
  std::unique_ptr<Task> make_task() const { return make_task(settings_); }
  std::unique_ptr<Task> make_task(const Settings& settings) const;
  /// Changes one setting (resuming with more epochs); the file keeps the old one until store_changes().
  void change(const std::string& name, const std::string& value);
  void store_changes();

  /// Refuses a second process that trains here (until this object goes), and removes what a killed one left.
  void lock();

  /// The evaluations up to the newest checkpoint: what comes after it is cut off when the run continues.
  std::vector<EvaluationRecord> history() const;

 private:
  struct Lock;
  friend std::shared_ptr<void> lock_folder(const std::string& path);
  RunFolder(std::string path, const TaskSpec* spec, Settings settings, std::string simd);

  std::string path_;
  const TaskSpec* spec_;
  Settings settings_;
  std::string simd_;
  bool changed_ = false;
  std::shared_ptr<Lock> lock_;
};

/// Throws IoError "cannot PURPOSE: …" when there is a link below this folder: what continues in it, or packs it, would
/// read and write elsewhere.
void refuse_links(const std::string& folder, const std::string& purpose = "continue");

/// While the pointer lives, no other process can train in this folder. Throws IoError when one does.
std::shared_ptr<void> lock_folder(const std::string& path);

/// All parameters of a task.
std::vector<NamedParameter> parameters_of(Task& task);

/// Makes a folder of several runs that holds one record, FOLDER/NAME. Throws the IoError of RunFolder::create() when
/// another process made it in the meantime.
void claim_folder(const std::string& folder, const std::string& name, const std::string& text);
/// Removes a folder this process made unless there is a checkpoint below it: what was refused leaves nothing behind.
void remove_untrained(const std::string& folder);

/// A free folder name: `wanted`, or wanted-2, wanted-3, … when taken.
std::string free_folder(const std::string& wanted);

}  // namespace qkv
