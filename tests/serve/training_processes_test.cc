// Trainings as processes: they start or say why not, stop when told, and do not outlive the server.
#include "qkv/serve/training_processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <thread>

#include "io/temp_folder.h"
#include "qkv/io/file.h"
#include "qkv/routes/router.h"
#include "support/paths.h"

namespace qkv::serve {
namespace {

using routes::RouteError;
using routes::TrainingOrder;
using namespace std::chrono_literals;

/// Learns nothing, so that it never has learnt enough.
const TrainingOrder kLong{.task = "reverse",
                          .settings = {{"epochs", "100000"}, {"train-size", "256"}, {"hidden", "16"}, {"lr", "0"}}};

template <class Condition>
bool within(std::chrono::seconds limit, Condition&& condition) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < until) {
    if (condition()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

class TrainingProcessesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::program().empty()) GTEST_SKIP() << "built without the program";
  }
  bool has_checkpoint(const std::string& id) const {
    std::error_code error;
    const std::string path = folder_ / (id + "/checkpoints");
    return std::filesystem::exists(path, error) && !std::filesystem::is_empty(path, error);
  }
  testing::TempFolder folder_;
  TrainingProcesses trainings_{folder_.path(), testing::program()};
};

TEST_F(TrainingProcessesTest, StopsWhenToldWithWhatItHasLearntSaved) {
  // As in a server whose threads leave signals to one of them, started by a shell that ignores interrupts.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  const auto old = ::signal(SIGTERM, SIG_IGN);
  const std::string id = trainings_.start(kLong);
  ::signal(SIGTERM, old);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_TRUE(trainings_.is_running(id));
  EXPECT_TRUE(within(20s, [&] { return has_checkpoint(id); }));
  trainings_.stop(id);
  EXPECT_TRUE(within(10s, [&] { return !trainings_.is_running(id); }));
  EXPECT_TRUE(trainings_.failures().empty());
  EXPECT_THROW(trainings_.stop(id), RouteError);
}

TEST_F(TrainingProcessesTest, OneThatDoesNotStopEndsWhenToldAgain) {
  const std::string script = folder_ / "busy";
  write_file_atomic(script, std::string_view("#!/bin/sh\n"
                                             "for a; do case $a in --out=*) mkdir ${a#--out=};"
                                             " echo {} >${a#--out=}/config.json;; esac; done\n"
                                             "trap 'trap - TERM' TERM\n"
                                             "while :; do sleep 0.05; done\n"));
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  TrainingProcesses busy(folder_.path(), script);
  const std::string id = busy.start(kLong);
  busy.stop(id);
  busy.stop(id);  // too soon: it may be saving
  std::this_thread::sleep_for(5200ms);
  EXPECT_TRUE(busy.is_running(id));
  busy.stop(id);
  EXPECT_TRUE(within(10s, [&] { return !busy.is_running(id); }));
}

TEST_F(TrainingProcessesTest, AStartThatFailsSaysWhy) {
  const auto refusal = [&](const TrainingOrder& order) {
    try {
      trainings_.start(order);
    } catch (const RouteError& e) {
      return std::pair(e.status(), std::string(e.what()));
    }
    return std::pair(201, std::string());
  };
  const auto [status, what] = refusal({.task = "reverse", .settings = {{"min-length", "9"}, {"max-length", "3"}}});
  EXPECT_EQ(status, 422);
  EXPECT_FALSE(what.empty());
  EXPECT_EQ(what.find('\n'), std::string::npos);
  EXPECT_EQ(what.find("qkv: "), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  // A value that looks like an option is a value.
  const auto [refused, why] =
      refusal({.task = "reverse", .settings = {{"alphabet", "--out=" + folder_ / "elsewhere"}}});
  EXPECT_EQ(refused, 422);
  EXPECT_NE(why.find("alphabet"), std::string::npos) << why;
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(TrainingProcessesTest, FlagsMayBeTurnedOff) {
  const std::string id = trainings_.start(
      {.task = "translate",
       .settings = {{"joint", "false"}, {"generated-size", "100"}, {"vocabulary", "200"}, {"epochs", "1"}}});
  EXPECT_TRUE(within(20s, [&] { return std::filesystem::exists(folder_ / (id + "/config.json")); }));
  trainings_.stop(id);
}

TEST_F(TrainingProcessesTest, TwoStartsAtOnceAreTwoRuns) {
  auto first = std::async(std::launch::async, [&] { return trainings_.start(kLong); });
  auto second = std::async(std::launch::async, [&] { return trainings_.start(kLong); });
  EXPECT_NE(first.get(), second.get());
  EXPECT_THROW(trainings_.start(kLong), RouteError);  // two at a time
  const auto begun = std::chrono::steady_clock::now();
  trainings_.stop_all(2300ms);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 3s);
  EXPECT_FALSE(trainings_.is_running("reverse"));
  EXPECT_THROW(trainings_.start(kLong), RouteError);
}

TEST_F(TrainingProcessesTest, DoesNotOutliveAServerThatWasKilled) {
  const pid_t server = ::fork();
  if (server == 0) {
    TrainingProcesses own(folder_.path(), testing::program());
    own.start(kLong);
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(server, nullptr, 0);
  // It saves and stops: from then on nothing is added to its metrics.
  const std::string metrics = folder_ / "reverse/metrics.jsonl";
  const auto size = [&] {
    std::error_code error;
    const auto n = std::filesystem::file_size(metrics, error);
    return error ? 0 : n;
  };
  EXPECT_TRUE(within(10s, [&] {
    const auto before = size();
    std::this_thread::sleep_for(400ms);
    return size() == before;
  }));
}

}  // namespace
}  // namespace qkv::serve
