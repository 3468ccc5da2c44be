// Work that several processes do together: an error of one is an error of all, and each does its share.
#pragma once

#include <functional>

#include "qkv/base/error.h"
#include "qkv/dist/pack.h"
#include "qkv/dist/processes.h"

namespace qkv {

/// An error that all processes throw at the same place: process 0 speaks for them.
struct AgreedError {
  virtual ~AgreedError() = default;
};

/// What `work` gave on every process, by rank, on all of them. Where it threw on one, all throw what it threw there
/// (that of the lowest rank), an Error that is an AgreedError too and, of another than process 0, says which.
std::vector<std::string> gather_agreed(Processes& processes, const std::function<std::string()>& work);
/// The same for work that gives nothing.
void agree(Processes& processes, const std::function<void()>& work);
/// For work of process 0 alone, which the others wait for.
void agree_on_first(Processes& processes, const std::function<void()>& work);

/// Whether it is so on any process.
bool any_of(Processes& processes, bool here);

/// work(i) for every i of 0 … n-1, each on one process; the results of all, by i, on all of them. Throws as above.
template <class T>
std::vector<T> share_out(Processes& processes, int64_t n, const std::function<T(int64_t)>& work) {
  std::vector<T> all(static_cast<size_t>(n));
  const int size = processes.size();
  if (size == 1) {
    for (int64_t i = 0; i < n; ++i) all[static_cast<size_t>(i)] = work(i);
    return all;
  }
  // Neighbours are of similar length, so each takes one in turn.
  const std::vector<std::string> parts = gather_agreed(processes, [&] {
    std::string mine;
    for (int64_t i = processes.rank(); i < n; i += size) pack(mine, work(i));
    return mine;
  });
  for (int r = 0; r < size; ++r) {
    std::string_view from = parts[static_cast<size_t>(r)];
    for (int64_t i = r; i < n; i += size) unpack(from, all[static_cast<size_t>(i)]);
  }
  return all;
}

}  // namespace qkv
