// What a training shows in the terminal, and how Ctrl-C reaches it.
#pragma once

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "qkv/data/preparation.h"
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

/// Says nothing, and lets a signal end the training: for processes other than the first.
class SilentObserver final : public TrainObserver {
 public:
  bool wants_stop() override { return interrupt_.signal() != 0; }
  int signal() const { return interrupt_.signal(); }

 private:
  InterruptGuard interrupt_;
};

/// Progress lines and notes on standard error of what is prepared before a command can begin.
class PreparationConsole final : public PreparationObserver {
 public:
  void on_progress(const std::string& job, int64_t done, int64_t total) override;
  void on_note(const std::string& note) override;

 private:
  std::string job_;
  std::unique_ptr<Progress> progress_;
};

/// How much a training says: a line for every evaluation, or a progress line alone.
enum class Detail : uint8_t { lines, brief };

/// A progress bar on standard error, how long it will take, and one line for every evaluation.
class ConsoleObserver final : public TrainObserver {
 public:
  /// Lines go to `out` (standard output, or standard error where that must stay clean); `opening` is the first, said
  /// once training is under way. `trainings` like this one are to come, this one included; 0 says nothing of the time.
  ConsoleObserver(std::string label, std::string opening, std::FILE* out, Detail detail = Detail::lines,
                  int64_t trainings = 1)
      : label_(std::move(label)), opening_(std::move(opening)), out_(out), detail_(detail), trainings_(trainings) {}

  void on_step(const StepReport& report) override;
  void on_evaluation(const EvaluationRecord& record) override;
  bool wants_stop() override;
  int signal() const { return interrupt_.signal(); }
  bool trained() const { return progress_ != nullptr; }  // by one update at least

 private:
  void say_how_long(const StepReport& report);
  void print_evaluation(const EvaluationRecord& record);

  std::string label_, opening_;
  std::FILE* out_;
  Detail detail_;
  int64_t trainings_, first_step_ = -1;
  bool headed_ = false;  // the head of the table of evaluations was printed
  InterruptGuard interrupt_;
  std::unique_ptr<Progress> progress_;
  StepReport last_;
};

/// Shows several trainings, one after the other, and writes the report of each when it ends.
class RunsConsole final : public RunsObserver {
 public:
  /// `opening` is said once, with what the first task has to say about its data, and how long all `trainings` will
  /// take; empty and 0: none of it.
  RunsConsole(std::string opening, std::FILE* out, int64_t trainings = 0)
      : opening_(std::move(opening)), out_(out), trainings_(trainings) {}

  TrainObserver* on_start(const std::string& label, const RunFolder& run, Task& task) override;
  void on_result(const RunFolder& run, Task& task, const SessionResult& result) override;
  int signal() const { return console_ ? console_->signal() : 0; }
  const std::vector<ReportedRun>& reported() const { return reported_; }

 private:
  std::string opening_, label_;
  std::FILE* out_;
  int64_t trainings_;
  std::unique_ptr<ConsoleObserver> console_;
  std::vector<ReportedRun> reported_;
};

/// Of runs that several processes train side by side, those of this one: the first process shows that it is at work,
/// the others say nothing; the results are shown when all are there.
class ApartObserver final : public RunsObserver {
 public:
  /// `console` null: nothing is shown.
  explicit ApartObserver(RunsConsole* console) : console_(console) {}
  TrainObserver* on_start(const std::string& label, const RunFolder& run, Task& task) override {
    if (console_ != nullptr) return console_->on_start(label, run, task);
    return &silent_;
  }
  int signal() const { return console_ != nullptr ? console_->signal() : silent_.signal(); }

 private:
  RunsConsole* console_;
  SilentObserver silent_;
};

}  // namespace qkv::app
