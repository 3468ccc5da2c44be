// The runs the page can look at: listed from folders, loaded when asked for, a few kept in memory.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "qkv/tasks/task.h"
#include "qkv/train/run_folder.h"
#include "qkv/train/run_tree.h"

namespace qkv::routes {

/// One run as the list shows it. A run that cannot be read has an error instead of figures.
struct RunInfo {
  std::string id;  // where it is below the root ("compare-reverse/dot"), or below a folder that was named
  std::string path;
  std::string group;  // the comparison or study it belongs to, named as an id is; "" for a run alone
  std::string task;
  std::string error;
  std::vector<int64_t> checkpoints;
  bool recorded = false;  // it answers from recordings; its model is not there
  Settings settings;
};

/// What answers for one checkpoint of a run: its task with the weights, or its recordings. Hold `mutex` while using it.
struct LoadedModel {
  std::timed_mutex mutex;
  std::string run, checkpoint;
  InputKind input = InputKind::text;
  std::string weights;  // the folder they came from: a step's number or "average"
  int64_t bytes = 0;    // of the parameters, or of what was recorded
  bool recorded = false;
  std::unique_ptr<Traceable> model;
};

class ModelStore {
 public:
  /// `paths` are runs, or folders of runs; when empty, every run below `root` is listed, new ones as they appear.
  ModelStore(std::vector<std::string> paths, std::string root);
  /// Others look too, who may read nothing but runs and these data sets: from now on runs that hold links are not
  /// listed, and those that read other data are not opened.
  void show_to_others(const std::map<std::string, std::string>& data_sets);

  std::vector<RunInfo> list() const;
  /// Throws RouteError 404 for an unknown run.
  RunInfo find(const std::string& id) const;
  /// The run's task with the weights of `checkpoint`; "" takes those that `qkv map` would, and the newest of a run that
  /// is not finished. Throws RouteError, IoError.
  std::shared_ptr<LoadedModel> open(const std::string& id, const std::string& checkpoint);
  const std::string& root() const { return root_; }

 private:
  static constexpr size_t kKept = 6;
  static constexpr int64_t kKeptBytes = 128 << 20;
  std::vector<FoundRun> found() const;
  void check_data(const std::string& id, const std::string& path) const;
  void forget_oldest();
  std::vector<std::string> paths_;
  std::string root_;
  std::optional<std::vector<std::string>> shown_data_;  // whole paths; only with others who look
  std::timed_mutex mutex_;
  std::list<std::shared_ptr<LoadedModel>> kept_;  // most recent first
  int64_t bytes_ = 0;                             // of all that are kept
};

}  // namespace qkv::routes
