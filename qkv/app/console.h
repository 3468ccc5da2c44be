// What a training shows in the terminal, and how Ctrl-C reaches it.
#pragma once

#include <csignal>
#include <memory>
#include <string>

#include "qkv/report/run_report.h"
#include "qkv/train/trainer.h"
#include "qkv/view/progress.h"

namespace qkv::app {

/// While it lives, the first SIGINT, SIGTERM or SIGHUP is noted instead of ending the program; the second ends it.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// The signal that came, or 0.
  int signal() const;

 private:
  struct sigaction before_int_, before_term_, before_hup_;
};

/// A progress bar on standard error and one line for every evaluation.
class ConsoleObserver final : public TrainObserver {
 public:
  /// Lines go to `out` (standard output, or standard error where that must stay clean); `opening` is the first, said
  /// once training is under way.
  ConsoleObserver(std::string label, std::string opening, std::FILE* out)
      : label_(std::move(label)), opening_(std::move(opening)), out_(out) {}

  void on_step(const StepReport& report) override;
  void on_evaluation(const EvaluationRecord& record) override;
  bool wants_stop() override { return interrupt_.signal() != 0; }
  int signal() const { return interrupt_.signal(); }

 private:
  std::string label_, opening_;
  std::FILE* out_;
  InterruptGuard interrupt_;
  std::unique_ptr<Progress> progress_;
  StepReport last_;
};

/// Shows several trainings, one after the other, and writes the report of each when it ends.
class RunsConsole final : public RunsObserver {
 public:
  /// `opening` is said once, with what the first task has to say about its data; empty: neither.
  RunsConsole(std::string opening, std::FILE* out) : opening_(std::move(opening)), out_(out) {}

  TrainObserver* on_start(const std::string& label, const RunFolder& run, Task& task) override;
  void on_result(const RunFolder& run, Task& task, const SessionResult& result) override;
  int signal() const { return console_ ? console_->signal() : 0; }
  const std::vector<ReportedRun>& reported() const { return reported_; }

 private:
  std::string opening_;
  std::FILE* out_;
  std::unique_ptr<ConsoleObserver> console_;
  std::vector<ReportedRun> reported_;
};

}  // namespace qkv::app
