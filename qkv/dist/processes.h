// The processes that work on one training: who they are and what they can tell one another. MPI is one way, loaded on
// request; a process alone is its own twin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

/// Every call is made by all processes, in the same order, from one thread each. A process that ends without leave()
/// ends the others.
class Processes {
 public:
  virtual ~Processes() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The bytes of process 0, on all of them; every process gives as many.
  virtual void broadcast(std::span<std::byte> bytes) = 0;
  /// What every process gave, by rank, on all of them.
  virtual std::vector<std::string> gather(std::string_view mine) = 0;
  /// The first give[0] numbers of `out` go to process 0, the next give[1] to process 1, …; `in` is filled with the
  /// take[0] numbers of process 0, the take[1] of process 1, ….
  virtual void exchange(std::span<const float> out, std::span<const int64_t> give, std::span<float> in,
                        std::span<const int64_t> take) = 0;
  /// `all` is made of counts[0] numbers that process 0 has, counts[1] of process 1, …; after it all have them all.
  virtual void complete(std::span<float> all, std::span<const int64_t> counts) = 0;

  /// Waits for all and ends what this object began: nothing may be called after it.
  virtual void leave() = 0;
  /// Ends all processes now.
  virtual void abort(int code) = 0;
};

/// A process alone.
class OneProcess final : public Processes {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void broadcast(std::span<std::byte>) override {}
  std::vector<std::string> gather(std::string_view mine) override { return {std::string(mine)}; }
  void exchange(std::span<const float> out, std::span<const int64_t> give, std::span<float> in,
                std::span<const int64_t> take) override;
  void complete(std::span<float>, std::span<const int64_t>) override {}
  void leave() override {}
  void abort(int code) override;
};
/// A process alone: the default.
Processes& one_process();

/// The text of process 0, on all of them.
std::string broadcast_text(Processes& processes, std::string text);

/// The part of 0 … n-1 that process `rank` of `size` has when each gets a stretch of them.
struct Stretch {
  int64_t begin = 0, end = 0;
};
inline Stretch stretch_of(int64_t n, int rank, int size) { return {n * rank / size, n * (rank + 1) / size}; }

}  // namespace qkv
