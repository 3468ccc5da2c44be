// Out of memory anywhere is one line and exit code 1: address space from too little to enough, and single failed
// mallocs.
#include <gtest/gtest.h>

#include <memory>

#include "faults/faulty_program.h"

namespace qkv {
namespace {

using testing::Ending;
using testing::expect_clean_ending;
using testing::FaultCounts;
using testing::points_of;
using testing::run_faulty;
using testing::TempFolder;
using testing::Words;

Words training(const std::string& out) {
  return {"train",   "reverse", "--train-size", "40", "--validation-size", "8", "--max-length", "4", "--hidden", "8",
          "--batch", "8",       "--epochs",     "1",  "--threads",         "2", "--out",        out};
}

class NoMemory : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempFolder>();
    ASSERT_EQ(run_faulty(training(*folder_ / "run"), {}).code, 0);
  }
  static void TearDownTestSuite() { folder_.reset(); }
  void TearDown() override { std::filesystem::remove_all(*folder_ / "new"); }

  static std::vector<Words> commands() {
    const std::string run = *folder_ / "run";
    return {{"explain"},
            {"lab", "copy"},
            {"predict", run, "abcd"},
            {"eval", run},
            {"map", run, "--input", "abcd", "--out", *folder_ / "map.csv"},
            {"map", run, "--input", "abcd", "--out", *folder_ / "map.svg"},
            training(*folder_ / "new")};
  }
  inline static std::unique_ptr<TempFolder> folder_;
};

/// The least address space with which the program is loaded, to 64 KiB. Below it the system's loader, and just below
/// it GLib and GnuTLS, end the process before any of its own code.
uint64_t least_space() {
  const auto ends = [](uint64_t bytes) { return run_faulty({"--version"}, {"", bytes}); };
  uint64_t bytes = uint64_t{8} << 20;
  while (ends(bytes).code != 0) bytes += uint64_t{4} << 20;
  bytes -= uint64_t{4} << 20;
  for (;; bytes += uint64_t{64} << 10) {
    const Ending end = ends(bytes);
    const bool loaded = end.code == 0 || (end.code == 1 && end.err.rfind("qkv: ", 0) == 0);
    if (loaded) return bytes + (uint64_t{256} << 10);  // where libraries come to lie differs from run to run
  }
}

TEST_F(NoMemory, AddressSpaceFromTooLittleToEnough) {
  const uint64_t least = least_space();
  int refused_in_all = 0;
  for (const Words& command : commands()) {
    int refused = 0, done = 0;
    for (uint64_t level = 0; level < 48 && done < 3; ++level) {
      std::filesystem::remove_all(*folder_ / "new");
      const uint64_t kib = (least >> 10) + 32 * level + 128 * level * level;
      const Ending end = run_faulty(command, {"", kib << 10});
      expect_clean_ending(end, command[0] + " with " + std::to_string(kib) + " KiB");
      ++(end.code == 0 ? done : refused);
    }
    refused_in_all += refused;
    EXPECT_GT(done, 0) << command[0];
  }
  EXPECT_GT(refused_in_all, 0);  // the smallest commands need no more than the start on some machines
}

TEST_F(NoMemory, OneMallocFails) {
  for (const Words& command : commands()) {
    std::filesystem::remove_all(*folder_ / "new");
    FaultCounts counts{};
    ASSERT_EQ(run_faulty(command, {}, &counts).code, 0);
    for (const char* how : {"once", "on"}) {
      for (const int64_t n : points_of(counts[4], 12, 400)) {
        std::filesystem::remove_all(*folder_ / "new");
        const std::string what = "malloc:" + std::to_string(n) + ":" + how;
        expect_clean_ending(run_faulty(command, {what, 0}), command[0] + " " + what);
      }
    }
  }
}

}  // namespace
}  // namespace qkv
