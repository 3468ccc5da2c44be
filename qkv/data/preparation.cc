// The observer of each thread.
#include "qkv/data/preparation.h"

#include <utility>

namespace qkv {
namespace {

thread_local PreparationObserver* watching = nullptr;

}  // namespace

WatchPreparation::WatchPreparation(PreparationObserver* observer) : before_(std::exchange(watching, observer)) {}
WatchPreparation::~WatchPreparation() { watching = before_; }

void tell_progress(const std::string& job, uint64_t done, uint64_t total) {
  if (watching != nullptr) watching->on_progress(job, static_cast<int64_t>(done), static_cast<int64_t>(total));
}

void tell_note(const std::string& note) {
  if (watching != nullptr) watching->on_note(note);
}

}  // namespace qkv
