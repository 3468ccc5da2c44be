// A progress bar with rate and time left; plain lines when the output is not a terminal, nothing for short jobs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "qkv/view/terminal.h"

namespace qkv {

struct ProgressOptions {
  Terminal terminal = {};
  std::string unit = {};                             // "tokens": shown in the rate; empty: no rate
  double quiet_seconds = 2;                          // jobs shorter than this print nothing
  double redraw_seconds = 0.1;                       // on a terminal
  double line_seconds = 15;                          // elsewhere
  std::function<double()> now = {};                  // seconds; default: a steady clock
  std::function<void(std::string_view)> write = {};  // default: standard error
};

/// On a terminal one line is rewritten in place; the destructor and finish() remove it.
class Progress {
 public:
  /// total ≤ 0: unknown, so no bar and no time left.
  Progress(std::string label, int64_t total, ProgressOptions options);
  /// For standard error, whatever it is.
  Progress(std::string label, int64_t total, std::string unit = "");
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Cheap when called often. `note` is shown at the end of the line ("loss 0.123").
  void update(int64_t done, std::string_view note = "");
  /// Counts from here on, for jobs that continue where an earlier one stopped.
  void start_at(int64_t done);
  /// Removes the line, so that something else can be printed; the next update() brings it back.
  void clear();
  void finish();

 private:
  std::string line(int64_t done, std::string_view note, double elapsed) const;

  std::string label_;
  int64_t total_, first_ = 0;
  ProgressOptions options_;
  double start_, last_ = -1;
  bool visible_ = false;
};

/// "0:07", "12:30", "1:02:03".
std::string format_duration(double seconds);
/// "950", "12.3k", "4.56M".
std::string format_count(double count);

}  // namespace qkv
