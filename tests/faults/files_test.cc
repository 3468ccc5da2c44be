// Every write, fsync, rename and open that can fail, and every system call before which a kill can come: the last good
// checkpoint loads, what is resumed ends with the same bytes, and nothing half-written stays.
#include <gtest/gtest.h>

#include <set>

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

constexpr int64_t kPoints = 5, kAll = 2000;  // of each kind and way; with QKV_FAULTS=all, all there are

struct Attack {
  std::string what;
  bool kills;
};

/// Every kind of call that fails once, and kills before any system call that changes files.
std::vector<Attack> attacks(const FaultCounts& counts, int64_t system_calls, int64_t points) {
  std::vector<Attack> all;
  for (size_t kind = 0; kind < 4; ++kind) {
    EXPECT_GT(counts[kind], 0) << testing::kFaultKinds[kind];
    const std::string name = testing::kFaultKinds[kind];
    for (const int64_t n : points_of(counts[kind], points, kAll)) {
      all.push_back({name + ":" + std::to_string(n) + ":once", false});
    }
  }
  for (const int64_t n : points_of(system_calls, 2 * points, kAll)) {
    all.push_back({testing::kSyscall + std::to_string(n) + ":kill", true});
  }
  return all;
}

/// The system calls of a command that may change files.
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

/// What a folder holds but for times and the random part of temporary names: two that are equal here are resumed
/// alike. Of a temporary file counts that it is there, since what opens a run removes it unread.
std::string state_of(const std::string& folder) {
  const auto without_numbers = [](std::string text) {
    std::erase_if(text, [](char c) { return std::string_view("0123456789.-+e").find(c) != std::string_view::npos; });
    return text;
  };
  std::vector<std::string> parts;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().string().substr(folder.size()), name = entry.path().filename().string();
    const size_t temporary = path.find(".tmp-");
    if (temporary != std::string::npos) {
      parts.push_back(path.substr(0, temporary) + (entry.is_directory() ? " folder" : " file"));
    } else if (entry.is_directory()) {
      parts.push_back(path);
    } else if (name.ends_with(".safetensors")) {
      parts.push_back(path + "\n" + read_text(entry.path()));
    } else if (name == "CHECKSUMS" || name.starts_with("events.")) {  // of numbers that depend on the time
      parts.push_back(path + "\n" + std::to_string(entry.file_size()));
    } else {
      parts.push_back(path + "\n" + without_numbers(read_text(entry.path())));
    }
  }
  std::sort(parts.begin(), parts.end());
  std::string all;
  for (const std::string& part : parts) all += part + '\0';
  return all;
}

/// Walks the faults over a command that writes a folder and can continue it when there is a `record` in it.
class Walk {
 public:
  Walk(Words command, const char* record)
      : command_(std::move(command)),
        resume_{command_[0], "--resume", run_, "--threads", "1"},
        started_(run_ + "/" + record) {
    command_.insert(command_.end(), {"--out", run_});
  }

  /// First over the command, then over continuing what a kill in its middle has left.
  void all() {
    ASSERT_EQ(run_faulty(command_, {}).code, 0);
    expected_ = result_of(run_);
    ASSERT_FALSE(expected_.empty());
    begin_with("");
    const int64_t calls = system_calls(command_);
    over(command_, "");

    const TempFolder half;
    begin_with("");
    run_faulty(command_, {testing::kSyscall + std::to_string(calls / 2) + ":kill", 0});
    ASSERT_TRUE(fs::exists(started_));
    fs::copy(folder_.path(), half.path(), fs::copy_options::recursive);
    over(resume_, half.path());
    std::printf("  %lld faults left %zu states\n", static_cast<long long>(faults_), states_.size());
  }

 private:
  /// The folder holds what `other` does, or nothing.
  void begin_with(const std::string& other) {
    for (const auto& entry : fs::directory_iterator(folder_.path())) fs::remove_all(entry.path());
    if (!other.empty()) fs::copy(other, folder_.path(), fs::copy_options::recursive);
  }

  void over(const Words& command, const std::string& before) {
    FaultCounts counts{};
    begin_with(before);
    ASSERT_EQ(run_faulty(command, {}, &counts).code, 0);
    begin_with(before);
    const int64_t calls = system_calls(command);
    for (const auto& [what, kills] : attacks(counts, calls, kPoints)) {
      begin_with(before);
      const Ending end = run_faulty(command, {what, 0});
      const std::string at = (command == resume_ ? "continuing, " : "") + what;
      if (kills) {
        // Progress is written by the clock, so a run may end before it has made as many calls as the one counted.
        EXPECT_TRUE(end.signal == SIGKILL || end.code == 0)
            << at << ": exit code " << end.code << ", signal " << end.signal << "\n"
            << end.err;
      } else {
        expect_clean_ending(end, at);
      }
      ++faults_;
      ASSERT_NO_FATAL_FAILURE(expect_good_end(at));
    }
  }

  /// What the fault has left loads, and is continued, or begun anew, to the same bytes.
  void expect_good_end(const std::string& what) {
    if (!states_.insert(state_of(folder_.path())).second) return;
    if (fs::exists(run_)) expect_checkpoints_load(run_, what);
    const Ending last = run_faulty(fs::exists(started_) ? resume_ : command_, {});
    ASSERT_EQ(last.code, 0) << what << "\n" << last.err;
    EXPECT_TRUE(result_of(run_) == expected_) << what;
    expect_no_temporaries(folder_.path(), what);
  }

  const TempFolder folder_;
  const std::string run_ = folder_ / "run";
  Words command_, resume_;
  std::string started_, expected_;
  std::set<std::string> states_;
  int64_t faults_ = 0;
};

TEST(FileFaults, Training) { Walk(small({"train", "reverse"}), "config.json").all(); }

TEST(FileFaults, Comparison) { Walk(small({"compare", "reverse", "--attention", "none,dot"}), "compare.json").all(); }

TEST(FileFaults, Study) {
  const Words command{"study",   "knowledge", "--rows",   "none", "--alone-epochs", "1",  "--width",   "8",
                      "--heads", "2",         "--layers", "1",    "--batch",        "64", "--threads", "1"};
  Walk(command, "study.json").all();
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
