// Processes that are threads of the test: the same interface, so that sums and agreement are tested without a launcher.
#pragma once

#include <algorithm>
#include <barrier>
#include <exception>
#include <thread>

#include "qkv/dist/processes.h"

namespace qkv::testing {

/// What the threads show one another between two barriers.
struct Table {
  explicit Table(int size) : texts(static_cast<size_t>(size)), numbers(texts.size()), counts(texts.size()), all(size) {}
  std::vector<std::string_view> texts;
  std::vector<const float*> numbers;
  std::vector<std::span<const int64_t>> counts;
  std::span<std::byte> first;
  std::barrier<> all;
};

class ThreadProcess final : public Processes {
 public:
  ThreadProcess(Table& table, int rank) : table_(table), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(table_.texts.size()); }
  void broadcast(std::span<std::byte> bytes) override {
    if (rank_ == 0) table_.first = bytes;
    table_.all.arrive_and_wait();
    if (rank_ != 0) std::copy(table_.first.begin(), table_.first.end(), bytes.begin());
    table_.all.arrive_and_wait();
  }
  std::vector<std::string> gather(std::string_view mine) override {
    table_.texts[at()] = mine;
    table_.all.arrive_and_wait();
    const std::vector<std::string> all(table_.texts.begin(), table_.texts.end());
    table_.all.arrive_and_wait();
    return all;
  }
  void exchange(std::span<const float> out, std::span<const int64_t> give, std::span<float> in,
                std::span<const int64_t> take) override {
    table_.numbers[at()] = out.data();
    table_.counts[at()] = give;
    table_.all.arrive_and_wait();
    float* to = in.data();
    for (size_t r = 0; r < table_.numbers.size(); ++r) {
      const float* from = table_.numbers[r];
      for (size_t k = 0; k < at(); ++k) from += table_.counts[r][k];
      if (table_.counts[r][at()] != take[r]) throw std::logic_error("give and take differ");
      to = std::copy_n(from, take[r], to);
    }
    table_.all.arrive_and_wait();
  }
  void complete(std::span<float> all, std::span<const int64_t> counts) override {
    table_.numbers[at()] = all.data();
    table_.all.arrive_and_wait();
    int64_t begin = 0;
    for (size_t r = 0; r < counts.size(); begin += counts[r], ++r) {
      if (r != at()) std::copy_n(table_.numbers[r] + begin, counts[r], all.data() + begin);
    }
    table_.all.arrive_and_wait();
  }
  void leave() override {}
  void abort(int) override { std::terminate(); }

 private:
  size_t at() const { return static_cast<size_t>(rank_); }
  Table& table_;
  int rank_;
};

/// Calls work(processes) on `size` threads and waits for all.
template <class Work>
void as_processes(int size, const Work& work) {
  Table table(size);
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      ThreadProcess process(table, r);
      work(process);
    });
  }
  for (std::thread& t : threads) t.join();
}

}  // namespace qkv::testing
