// Who is told how long preparations of data take: reading a large text, making its tokens.
#pragma once

#include <cstdint>
#include <string>

namespace qkv {

/// Called by the thread that prepares.
class PreparationObserver {
 public:
  virtual ~PreparationObserver() = default;
  /// `done` of `total` bytes; a job ends with done = total.
  virtual void on_progress(const std::string& job, int64_t done, int64_t total) = 0;
  /// A line that a user should read.
  virtual void on_note(const std::string& note) = 0;
};

/// While it lives, this observer hears of what its thread prepares; without one nobody does.
class WatchPreparation {
 public:
  explicit WatchPreparation(PreparationObserver* observer);
  ~WatchPreparation();
  WatchPreparation(const WatchPreparation&) = delete;
  WatchPreparation& operator=(const WatchPreparation&) = delete;

 private:
  PreparationObserver* before_;
};

void tell_progress(const std::string& job, uint64_t done, uint64_t total);
void tell_note(const std::string& note);

}  // namespace qkv
