// A run that is killed at random moments and resumed ends with the same bytes; so does one with other threads.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <chrono>
#include <filesystem>
#include <thread>

#include "app/run_program.h"
#include "qkv/base/rng.h"
#include "qkv/train/run_folder.h"
#include "support/paths.h"

namespace qkv {
namespace {

using testing::run_program;
using testing::TempFolder;

std::vector<std::string> training(const std::string& out, const char* threads) {
  return {
      "train",        "reverse", "--attention", "additive", "--train-size",       "240", "--validation-size", "30",
      "--max-length", "8",       "--hidden",    "24",       "--dropout",          "0.2", "--batch",           "16",
      "--epochs",     "3",       "--schedule",  "cosine",   "--checkpoint-every", "2",   "--threads",         threads,
      "--out",        out};
}

pid_t start(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  std::string program = qkv::testing::program();
  argv.push_back(program.data());
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  return pid;
}

/// Waits until the run has got past `step` (or ended), then `extra` milliseconds.
void wait_past(const std::string& run, pid_t pid, int64_t step, int64_t extra) {
  for (int i = 0; i < 3000; ++i) {
    std::error_code error;
    if (std::filesystem::exists(run + "/config.json", error)) {
      const auto steps = RunFolder::open(run).checkpoints();
      if (!steps.empty() && steps.back() >= step) break;
    }
    siginfo_t ended{};
    ::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT);
    if (ended.si_pid != 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(extra));
}

struct Final {
  std::string model, optimizer;
  std::vector<double> losses;
  friend bool operator==(const Final&, const Final&) = default;
};

Final final_of(const std::string& path) {
  const RunFolder run = RunFolder::open(path);
  const std::string last = run.checkpoint_path(run.checkpoints().back());
  Final f{read_text(last + "/model.safetensors"), read_text(last + "/optimizer.safetensors"), {}};
  for (const EvaluationRecord& r : run.history()) {
    f.losses.push_back(r.train_loss);
    for (const auto& metric : r.validation) f.losses.push_back(metric.second);
  }
  return f;
}

TEST(Resume, KilledThreeTimesAtRandomMomentsEndsWithTheSameBytes) {
  const TempFolder folder;
  ASSERT_EQ(run_program(training(folder / "whole", "1")).code, 0);
  const Final whole = final_of(folder / "whole");
  ASSERT_EQ(whole.losses.size(), 3u * 4);

  const std::string run = folder / "killed";
  Rng rng(static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()));
  int kills = 0;
  for (const int64_t step : {2, 14, 30}) {
    const std::vector<std::string> resume{"train", "--resume", run, "--threads", "2"};
    const pid_t pid = start(std::filesystem::exists(run) ? resume : training(run, "2"));
    ASSERT_GT(pid, 0);
    wait_past(run, pid, step, rng.below(120));
    ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    kills += WIFSIGNALED(status);
  }
  EXPECT_GE(kills, 1);
  const auto last = run_program({"train", "--resume", run});
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_TRUE(final_of(run) == whole);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run)) {
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << "left behind: " << entry.path();
  }
}

TEST(Resume, CtrlCSavesAndSaysHowToGoOn) {
  const TempFolder folder;
  ASSERT_EQ(run_program(training(folder / "whole", "2")).code, 0);
  const std::string run = folder / "stopped";
  int64_t step = 2;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::vector<std::string> resume{"train", "--resume", run};
    const pid_t pid = start(signal == SIGINT ? training(run, "1") : resume);
    wait_past(run, pid, step, 0);
    step += 12;
    ::kill(pid, signal);
    int status = 0;
    ::waitpid(pid, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_TRUE(WEXITSTATUS(status) == 128 + signal || WEXITSTATUS(status) == 0) << WEXITSTATUS(status);
  }
  ASSERT_EQ(run_program({"train", "--resume", run}).code, 0);
  EXPECT_TRUE(final_of(run) == final_of(folder / "whole"));
}

}  // namespace
}  // namespace qkv
