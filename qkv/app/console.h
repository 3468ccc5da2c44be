// What a training shows in the terminal, and how Ctrl-C reaches it.
#pragma once

#include <csignal>
#include <memory>
#include <string>

#include "qkv/train/trainer.h"
#include "qkv/view/progress.h"

namespace qkv::app {

/// While it lives, the first SIGINT or SIGTERM is noted instead of ending the program; the second ends it.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// The signal that came, or 0.
  int signal() const;

 private:
  struct sigaction before_int_, before_term_;
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

}  // namespace qkv::app
