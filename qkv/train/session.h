// One training from start or checkpoint to result.json; several in a row, watched.
#pragma once

#include <string>
#include <vector>

#include "qkv/train/trainer.h"

namespace qkv {

/// The result of a run.
struct SessionResult {
  std::string run;          // its folder
  std::string task, label;  // label: the mechanism, or the task's name where there is no choice of one
  int64_t parameters = 0;
  TrainResult training;
  Evaluation evaluation;  // of the weights the run settled on; empty when interrupted
};

/// Settings of data and model that were not given for a new run are taken from the run that the setting "from" names;
/// where it names none, nothing changes. Throws IoError.
void take_from(Settings& settings);
/// A task for a new run: with the vocabulary of the run that the setting "from" names, where it names one.
/// Throws IoError, or ConfigError when that run is of another task.
std::unique_ptr<Task> make_new_task(const TaskSpec& spec, const Settings& settings);
/// The weights of the run that "from" names into the task; nothing when it is empty. Throws IoError naming both runs
/// when their models differ.
void load_start(Task& task, const Settings& settings);

/// What the options of training_settings() say.
TrainerOptions trainer_options(const Settings& settings);

/// Where a session takes place: process 0 has the folder.
struct SessionPlace {
  RunFolder* folder;
  const Settings& settings;
  Processes& processes;
};

/// A training in pieces, from start or checkpoint to its result: advance() while it is true, then finish().
class Session {
 public:
  /// Continues from the folder's newest checkpoint; begins as load_start says where there is none. Nothing is owned.
  Session(const SessionPlace& place, Task& task, TrainObserver* observer = nullptr);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  /// As Trainer::advance.
  bool advance();
  /// Evaluates the weights load_weights() picks; nothing when the observer stopped it. Call it once.
  SessionResult finish();

 private:
  SessionPlace place_;
  Task& task_;
  std::vector<NamedParameter> model_;
  std::unique_ptr<Trainer> trainer_;
};
/// result.json: that the run is finished, and with what figures. Nothing for one that was stopped.
void write_result(const RunFolder& folder, const SessionResult& result);

/// Trains in the folder (from its newest checkpoint when there is one, else as load_start says), then evaluates the
/// weights load_weights() picks and writes result.json. Interrupted, it only trains. Throws what Trainer::run does.
/// With several processes, process 0 calls it, and the others join_session() with a task of the same settings.
SessionResult run_session(RunFolder& folder, Task& task, TrainObserver* observer = nullptr,
                          Processes& processes = one_process());
SessionResult join_session(const Settings& settings, Task& task, TrainObserver* observer, Processes& processes);

/// A run with its task.
struct OpenedRun {
  RunFolder folder;
  std::unique_ptr<Task> task;
  std::string weights;  // the file its weights came from; empty: none were loaded
};
/// The run in that folder, or a new one of these settings where there is none; to train.
OpenedRun open_or_create(const std::string& path, const TaskSpec& spec, const Settings& settings);
/// A trained run, ready for use, with the weights that RunFolder::load_weights picks. `changes` replace settings that
/// its weights do not depend on. Throws ConfigError where it has none of that name, IoError.
OpenedRun load_run(const std::string& path, const std::string& weights,
                   const std::vector<std::pair<std::string, std::string>>& changes = {});

/// Watches several trainings, one after the other.
class RunsObserver {
 public:
  virtual ~RunsObserver() = default;
  /// A training begins or continues; the answer watches it and may stop it (null: nobody does).
  virtual TrainObserver* on_start(const std::string& label, const RunFolder& run, Task& task) {
    static_cast<void>(label), static_cast<void>(run), static_cast<void>(task);
    return nullptr;
  }
  /// A training finished; the task has the weights it settled on.
  virtual void on_result(const RunFolder& run, Task& task, const SessionResult& result) {
    static_cast<void>(run), static_cast<void>(task), static_cast<void>(result);
  }
};
/// run_session with the folder locked, watched from start to result.
SessionResult run_watched(OpenedRun& run, const std::string& label, RunsObserver* observer);

/// One JSON object on one line: run, task, attention, seed, parameters, epochs, steps, stopped, train_loss, every
/// figure of the evaluation, every breakdown as an object from group to figure, seconds.
std::string result_json(const SessionResult& result, const Settings& settings);

/// Group i of a breakdown as it is shown: its label, or its number.
std::string group_name(const Breakdown& breakdown, size_t i);

}  // namespace qkv
