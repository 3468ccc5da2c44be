// Trainings of a tab: each run's folder is made here and trained by a second worker, whose files come back.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "qkv/routes/trainings.h"
#include "qkv/train/session.h"

namespace qkv::wasm {

/// The routes' side: what was ordered, and what is known of it.
class TabTrainings final : public routes::Trainings {
 public:
  /// Runs are made below `root`.
  explicit TabTrainings(std::string root) : root_(std::move(root)) {}

  std::string start(const routes::TrainingOrder& order) override;
  std::string keep_text(const std::string& text) override;
  void stop(const std::string& id) override;
  bool is_running(const std::string& id) override { return running_.count(id) > 0; }
  std::map<std::string, std::string> failures() override { return failures_; }

  /// "train ID" or "stop ID" for the worker that trains, "" when there is nothing new.
  std::string next_order();
  /// A run that another visit left unfinished is trained again.
  void resume(const std::string& id) { running_.insert(id); }
  /// It is over: finished, stopped, or failed with a sentence.
  void ended(const std::string& id, const std::string& failure);

 private:
  std::string root_;
  std::set<std::string> running_;
  std::map<std::string, std::string> failures_;
  std::deque<std::string> orders_;
};

/// The other worker's side: one run, trained piece by piece, and the files that changed since they were last asked for.
class TabTraining {
 public:
  /// Throws what opening a run throws.
  explicit TabTraining(std::string path);

  /// Trains for about that long; false when nothing is left to do. Throws what a training throws.
  bool advance(double seconds);
  void stop() { observer_.stopped = true; }
  /// {"progress": …, "changed": [paths below the run], "removed": […]} since the last call. A checkpoint that is not
  /// the newest keeps only what shows it: its optimizer's state is removed.
  std::string news();

 private:
  struct Observer final : TrainObserver {
    void on_step(const StepReport& report) override { last = report; }
    bool wants_stop() override { return stopped; }
    StepReport last;
    bool stopped = false;
  };
  std::map<std::string, std::string> files() const;

  std::string path_;
  OpenedRun run_;
  Observer observer_;
  std::unique_ptr<Session> session_;
  std::map<std::string, std::string> known_;  // path → size and time, as a text that changes when the file does
};

}  // namespace qkv::wasm
