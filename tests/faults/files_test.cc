// Every write, fsync, rename and open that can fail, and every system call at which a kill can come: the last good
// checkpoint loads, what is resumed ends with the same bytes, and nothing half-written stays.
#include <gtest/gtest.h>

#include "faults/faulty_program.h"
#include "qkv/train/run_folder.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using testing::Ending;
using testing::expect_clean_ending;
using testing::expect_no_temporaries;
using testing::FaultCounts;
using testing::points_of;
using testing::run_faulty;
using testing::TempFolder;
using testing::Words;

constexpr int64_t kPoints = 5, kAll = 1000;  // of each kind and way; with QKV_FAULTS=all, all there are

struct Attack {
  std::string what;
  bool kills;
};

/// Every kind of call that fails once, and kills at each kind and at any system call.
std::vector<Attack> attacks(const FaultCounts& counts, int64_t system_calls, int64_t points) {
  std::vector<Attack> all;
  for (size_t kind = 0; kind < 4; ++kind) {
    EXPECT_GT(counts[kind], 0) << testing::kFaultKinds[kind];
    const std::string name = testing::kFaultKinds[kind];
    for (const int64_t n : points_of(counts[kind], points, kAll)) {
      all.push_back({name + ":" + std::to_string(n) + ":once", false});
      all.push_back({name + ":" + std::to_string(n) + ":kill", true});
    }
  }
  for (const int64_t n : points_of(system_calls, 2 * points, kAll)) {
    all.push_back({testing::kSyscall + std::to_string(n) + ":kill", true});
  }
  return all;
}

/// The system calls of a command from its start to its end.
int64_t system_calls(const Words& command) {
  const Ending end = run_faulty(command, {testing::kSyscall + std::string("1000000000"), 0});
  EXPECT_EQ(end.code, 0) << end.err;
  return end.calls;
}

Words small(Words command) {
  for (const char* word :
       {"--train-size", "40", "--validation-size", "8", "--max-length", "4", "--hidden",           "8",
        "--embedding",  "4",  "--batch",           "8", "--epochs",     "2", "--checkpoint-every", "3",
        "--average",    "2",  "--threads",         "1"}) {
    command.emplace_back(word);
  }
  return command;
}

/// The bytes that must not depend on what happened on the way.
std::string result_of(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().string();
    if (name.ends_with("/model.safetensors") || name.ends_with("/optimizer.safetensors")) files.push_back(name);
  }
  std::sort(files.begin(), files.end());
  std::string all;
  for (const std::string& file : files) all += file.substr(folder.size()) + "\n" + read_text(file);
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename() != "config.json") continue;
    for (const EvaluationRecord& r : RunFolder::open(entry.path().parent_path().string()).history()) {
      all += std::to_string(r.step) + " " + std::to_string(r.train_loss) + "\n";
    }
  }
  return all;
}

/// Every checkpoint that is visible loads.
void expect_checkpoints_load(const std::string& folder, const std::string& what) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename() != "config.json" || entry.path().string().find(".tmp-") != std::string::npos) continue;
    const RunFolder run = RunFolder::open(entry.path().parent_path().string());
    const auto task = run.make_task();
    for (const int64_t step : run.checkpoints()) {
      EXPECT_NO_THROW(run.load_weights(parameters_of(*task), std::to_string(step))) << what;
      EXPECT_NO_THROW(run.load_state(step)) << what;
    }
  }
}

/// Walks the faults over a command that writes into FOLDER/run; `resume` continues it from when there is a `record`.
void walk(const Words& command, const Words& resume, const char* record, const TempFolder& folder) {
  const std::string run = folder / "run", started = run + "/" + record;
  const auto with_out = [&](Words words) {
    words.insert(words.end(), {"--out", run});
    return words;
  };
  FaultCounts counts{};
  ASSERT_EQ(run_faulty(with_out(command), {}, &counts).code, 0);
  const std::string expected = result_of(run);
  ASSERT_FALSE(expected.empty());
  fs::remove_all(run);
  for (const auto& [what, kills] : attacks(counts, system_calls(with_out(command)), kPoints)) {
    fs::remove_all(run);
    const Ending end = run_faulty(with_out(command), {what, 0});
    if (kills) {
      // Progress is written by the clock, so a run may end before it has made as many system calls as the one counted.
      const bool ended = what.starts_with(testing::kSyscall) && end.code == 0;
      EXPECT_TRUE(end.signal == SIGKILL || ended) << what;
    } else {
      expect_clean_ending(end, what);
    }
    if (fs::exists(run)) expect_checkpoints_load(run, what);
    // The same fault again while resuming, then in peace.
    if (fs::exists(started)) run_faulty(resume, {what, 0});
    const Ending last = run_faulty(fs::exists(started) ? resume : with_out(command), {});
    ASSERT_EQ(last.code, 0) << what << "\n" << last.err;
    EXPECT_TRUE(result_of(run) == expected) << what;
    expect_no_temporaries(folder.path(), what);
  }
}

TEST(FileFaults, Training) {
  const TempFolder folder;
  walk(small({"train", "reverse"}), {"train", "--resume", folder / "run", "--threads", "1"}, "config.json", folder);
}

TEST(FileFaults, Comparison) {
  const TempFolder folder;
  walk(small({"compare", "reverse", "--attention", "none,dot"}),
       {"compare", "--resume", folder / "run", "--threads", "1"}, "compare.json", folder);
}

TEST(FileFaults, Study) {
  const TempFolder folder;
  const Words command{"study",   "knowledge", "--rows",   "none", "--alone-epochs", "1",  "--width",   "8",
                      "--heads", "2",         "--layers", "1",    "--batch",        "64", "--threads", "1"};
  walk(command, {"study", "--resume", folder / "run", "--threads", "1"}, "study.json", folder);
}

/// Walks the faults over a command that writes `out` alone.
void walk_file(const Words& command, const std::string& out) {
  FaultCounts counts{};
  ASSERT_EQ(run_faulty(command, {}, &counts).code, 0) << out;
  const std::string whole = read_text(out);
  for (const auto& [what, kills] : attacks(counts, system_calls(command), 2)) {
    write_file_atomic(out, std::string_view("before"));
    const Ending end = run_faulty(command, {what, 0});
    if (!kills) expect_clean_ending(end, what + " " + out);
    const std::string found = read_text(out);
    EXPECT_TRUE(found == whole || (found == "before" && end.code != 0)) << what << " " << out << "\n" << found;
  }
  ASSERT_EQ(run_faulty(command, {}).code, 0);
  EXPECT_EQ(read_text(out), whole);
  expect_no_temporaries(fs::path(out).parent_path(), out);
}

TEST(FileFaults, WrittenFilesAreWholeOrAsBefore) {
  const TempFolder folder;
  Words train = small({"train", "reverse", "--out", folder / "run"});
  ASSERT_EQ(run_faulty(train, {}).code, 0);
  for (const char* ending : {".svg", ".png", ".html", ".csv"}) {
    const std::string out = folder / ("map" + std::string(ending));
    walk_file({"map", folder / "run", "--input", "abcd", "--out", out, "--threads", "1"}, out);
  }
  const std::string arrays = testing::fixtures() + "/attend/double.", out = folder / "out.npy";
  walk_file({"attend", "--q", arrays + "q.npy", "--k", arrays + "k.npy", "--v", arrays + "v.npy", "--out", out}, out);
}

}  // namespace
}  // namespace qkv
