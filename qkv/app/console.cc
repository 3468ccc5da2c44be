// Progress, evaluation lines and interruption of a training.
#include "qkv/app/console.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "qkv/app/run_commands.h"
#include "qkv/core/autograd.h"
#include "qkv/report/metric_text.h"
#include "qkv/view/text.h"

namespace qkv::app {
namespace {

// A signal handler can reach nothing but static memory.
volatile std::sig_atomic_t received_signal = 0;

extern "C" void note_signal(int signal) {
  received_signal = signal;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGHUP, SIG_DFL);
}

/// "23 s", "4 min", "1.3 h".
std::string rough_duration(double seconds) {
  constexpr double kMinute = 60, kHour = 3600, kMany = 100;
  if (seconds < kMany) return format_number(std::ceil(seconds)) + " s";
  if (seconds < kMany * kMinute) return format_number(std::ceil(seconds / kMinute)) + " min";
  return format_number(seconds / kHour, 2) + " h";
}

}  // namespace

InterruptGuard::InterruptGuard() {
  received_signal = 0;
  struct sigaction action {};
  action.sa_handler = note_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, &before_int_);
  ::sigaction(SIGTERM, &action, &before_term_);
  ::sigaction(SIGHUP, nullptr, &before_hup_);
  if (before_hup_.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);  // nohup still means it
}

InterruptGuard::~InterruptGuard() {
  ::sigaction(SIGINT, &before_int_, nullptr);
  ::sigaction(SIGTERM, &before_term_, nullptr);
  ::sigaction(SIGHUP, &before_hup_, nullptr);
}

int InterruptGuard::signal() const { return received_signal; }

void PreparationConsole::on_progress(const std::string& job, int64_t done, int64_t total) {
  if (!progress_ || job_ != job) progress_ = std::make_unique<Progress>(job, total);
  job_ = job;
  progress_->update(done);
  if (done >= total) progress_.reset();
}

void PreparationConsole::on_note(const std::string& note) {
  if (progress_) progress_->clear();
  std::fprintf(stderr, "qkv: %s\n", note.c_str());
}

void ConsoleObserver::on_step(const StepReport& r) {
  last_ = r;
  if (!progress_) {
    if (!opening_.empty()) std::fprintf(out_, "%s\n", opening_.c_str());
    std::fflush(out_);  // before what progress writes to standard error
    progress_ = std::make_unique<Progress>(label_, r.total_steps);
    progress_->start_at(r.step - 1);
    first_step_ = r.step;
  }
  say_how_long(r);
  progress_->update(r.step, "epoch " + std::to_string(r.epoch) + "/" + std::to_string(r.epochs) + "  loss " +
                                format_number(r.loss, 3) + "  " + format_count(r.tokens_per_second) + " tokens/s");
}

void ConsoleObserver::say_how_long(const StepReport& r) {
  constexpr int64_t kWarm = 10, kMeasured = 30;  // updates before the measured ones, which are slower, and with them
  constexpr double kWorthSaying = 10;            // seconds
  if (trainings_ == 0 || r.step < first_step_ + (r.total_steps > 2 * kMeasured ? kMeasured : kWarm)) return;
  const double whole = r.seconds_left * static_cast<double>(r.total_steps - first_step_ + 1) /
                       static_cast<double>(std::max<int64_t>(1, r.total_steps - r.step));
  const int64_t trainings = std::exchange(trainings_, 0);
  if (whole < kWorthSaying) return;
  if (progress_) progress_->clear();
  std::string text = label_ + " will take up to " + rough_duration(whole) + ", judging by its first batches";
  if (trainings > 1) {
    // Mechanisms differ: one with attention takes up to about twice as long as one without.
    const auto n = static_cast<double>(trainings);
    text += trainings == 2 ? "; both trainings " : "; all " + std::to_string(trainings) + " trainings ";
    text += rough_duration(whole * n) + " to " + rough_duration(whole * (2 * n - 1)) + ", less where one stops early";
  }
  const Terminal terminal = detect_terminal(STDERR_FILENO);
  const int width = terminal.tty ? terminal.width : std::numeric_limits<int>::max();
  std::fputs(wrapped(text, width, "qkv: ", "     ").c_str(), stderr);
}

void ConsoleObserver::on_evaluation(const EvaluationRecord& r) {
  if (detail_ == Detail::brief) return;
  if (progress_) progress_->clear();
  print_evaluation(r);
  std::fflush(out_);
}

bool ConsoleObserver::wants_stop() {
  if (interrupt_.signal() == 0) return false;
  if (progress_) progress_->clear();  // what is said of the stop has a line of its own
  return true;
}

void ConsoleObserver::print_evaluation(const EvaluationRecord& r) {
  constexpr int kNumber = 10;
  const std::string epochs = std::to_string(last_.epochs);
  std::string line = pad_left(std::to_string(r.epoch) + "/" + epochs, std::max(7, 2 * display_width(epochs) + 1)) +
                     pad_left(format_number(r.train_loss, 3), kNumber);
  std::string groups = pad_left("training", display_width(line)) + pad_left("validation", kNumber + 2);
  std::string names = pad_left("epoch", display_width(line) - kNumber) + pad_left("loss", kNumber);
  for (const auto& [name, value] : r.validation) {
    const std::string label = metric_label(name);
    const int width = std::max(kNumber, display_width(label)) + 2;
    names += pad_left(label, width);
    line += pad_left(metric_text(name, value), width);
  }
  if (!std::exchange(headed_, true)) std::fprintf(out_, "%s\n%s\n", groups.c_str(), names.c_str());
  std::fprintf(out_, "%s\n", line.c_str());
}

TrainObserver* RunsConsole::on_start(const std::string& label, const RunFolder&, Task& task) {
  if (!opening_.empty()) print_notes(task);
  console_.reset();  // the previous signal handlers are restored
  label_ = label;
  console_ = std::make_unique<ConsoleObserver>(label, std::exchange(opening_, ""), out_, Detail::brief,
                                               std::exchange(trainings_, 0));
  return console_.get();
}

void RunsConsole::on_result(const RunFolder& run, Task& task, const SessionResult& result) {
  const NoGrad no_grad;
  const TrainState& state = result.training.state;
  const Goal goal = task.goal();
  const double value = metric_of(result.evaluation.metrics, goal.metric);
  std::fprintf(out_, "%s  %lld epoch%s in %s s", label_.c_str(), static_cast<long long>(state.epoch),
               state.epoch == 1 ? "" : "s", format_number(state.seconds, 3).c_str());
  if (!std::isnan(value)) {
    std::fprintf(out_, "  %s %s", metric_label(goal.metric).c_str(), metric_text(goal.metric, value).c_str());
  }
  std::fprintf(out_, "\n");
  std::fflush(out_);
  reported_.push_back(reported_run(run, task, result));
  save_run_report(task, reported_.back());
}

}  // namespace qkv::app
