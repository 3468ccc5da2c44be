// `qkv serve` as a process: how it ends, and what it shows to other machines.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "http_client.h"
#include "io/temp_folder.h"
#include "support/paths.h"

namespace qkv::serve {
namespace {

using testing::ask;
using testing::status_of;
using namespace std::chrono_literals;

/// The program with these words after `serve`, and what it prints first.
class Served {
 public:
  /// `address_space`: in bytes; 0: no limit.
  explicit Served(std::vector<std::string> words, uint64_t address_space = 0) {
    words.insert(words.begin(), {"qkv", "serve", "--port", "0"});
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    int ends[2];
    if (::pipe(ends) != 0) return;
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      const rlimit limit{address_space, address_space};
      if (address_space > 0) ::setrlimit(RLIMIT_AS, &limit);
      ::execv(testing::program().c_str(), argv.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    pollfd watched{ends[0], POLLIN, 0};
    char part[1024];
    while (said_.find('\n') == std::string::npos && ::poll(&watched, 1, 10000) > 0) {
      const ssize_t n = ::read(ends[0], part, sizeof part);
      if (n <= 0) break;
      said_.append(part, static_cast<size_t>(n));
    }
    ::close(ends[0]);
    const size_t at = said_.find(':', said_.find("http://") + 7);
    if (at != std::string::npos) port_ = std::stoi(said_.substr(at + 1));
  }
  ~Served() {
    if (process_ > 0) end(SIGKILL);
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  void send(int signal) const { ::kill(process_, signal); }
  /// Sends the signal and returns the exit code (-1: a signal ended it).
  int end(int signal) {
    send(signal);
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  const std::string& said() const { return said_; }
  int port() const { return port_; }

 private:
  pid_t process_ = -1;
  std::string said_;
  int port_ = 0;
};

const char* const kLong =
    R"({"task": "reverse", "settings": {"epochs": 100000, "lr": 0, "train-size": 256, "hidden": 16}})";

class ServeProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::program().empty()) GTEST_SKIP() << "built without the program";
  }
  testing::TempFolder folder_;
};

TEST_F(ServeProgramTest, ControlCEndsItInThreeSecondsWhateverRuns) {
  Served server({"--root", folder_.path()});
  ASSERT_GT(server.port(), 0) << server.said();
  EXPECT_EQ(status_of(ask(server.port(), "POST /api/runs", kLong)), 201);
  EXPECT_EQ(status_of(ask(server.port(), "POST /api/runs", kLong)), 201);
  std::thread busy(
      [port = server.port()] { ask(port, "POST /api/lab/cost", R"({"settings": {"length": 16384, "dim": 1024}})"); });
  std::this_thread::sleep_for(500ms);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(server.end(SIGINT), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 3s);
  busy.join();
  for (const char* run : {"reverse", "reverse-2"}) {
    EXPECT_FALSE(std::filesystem::is_empty(folder_ / (std::string(run) + "/checkpoints"))) << run;
  }
}

TEST_F(ServeProgramTest, AClosedTerminalEndsItUnlessNohupSaysOtherwise) {
  Served server({"--root", folder_.path()});
  EXPECT_EQ(server.end(SIGHUP), 0);
  const auto before = ::signal(SIGHUP, SIG_IGN);  // what nohup does, and a child inherits
  Served kept({"--root", folder_.path()});
  ::signal(SIGHUP, before);
  ASSERT_GT(kept.port(), 0) << kept.said();
  kept.send(SIGHUP);
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(status_of(ask(kept.port(), "GET /api/runs")), 200);
  EXPECT_EQ(kept.end(SIGTERM), 0);
}

TEST_F(ServeProgramTest, ATrainingThatIsToldToStopStops) {
  Served server({"--root", folder_.path()});
  EXPECT_EQ(status_of(ask(server.port(), "POST /api/runs", kLong)), 201);
  EXPECT_EQ(status_of(ask(server.port(), "DELETE /api/runs/reverse")), 200);
  std::string list;
  for (int i = 0; i < 500 && list.find("\"training\":false") == std::string::npos; ++i) {
    std::this_thread::sleep_for(20ms);
    list = ask(server.port(), "GET /api/runs");
  }
  EXPECT_NE(list.find("\"training\":false"), std::string::npos) << list;
  EXPECT_EQ(server.end(SIGTERM), 0);
}

TEST_F(ServeProgramTest, OtherMachinesLookWithATokenAndStartNothing) {
  Served server({"--root", folder_.path(), "--host", "0.0.0.0"});
  const size_t at = server.said().find("?token=");
  ASSERT_NE(at, std::string::npos) << server.said();
  const std::string token = server.said().substr(at, 7 + 32);
  EXPECT_NE(server.said().find("not encrypted"), std::string::npos) << server.said();
  EXPECT_EQ(status_of(ask(server.port(), "GET /api/runs")), 403);
  EXPECT_EQ(status_of(ask(server.port(), "GET /api/runs" + token)), 200);
  EXPECT_EQ(status_of(ask(server.port(), "POST /api/runs" + token, kLong)), 403);
  EXPECT_EQ(status_of(ask(server.port(), "DELETE /api/runs/reverse" + token)), 403);
  EXPECT_EQ(status_of(ask(server.port(), "POST /api/lab/copy" + token, "{}")), 200);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(ServeProgramTest, GoesOnWhenMemoryEnds) {
  if (testing::fault_library().empty()) GTEST_SKIP() << "a sanitizer needs the address space itself";
  std::string many = R"({"settings": {"a": [)";
  for (int i = 0; i < 150000; ++i) many += "[1],";
  many += "1]}}";
  int refused = 0;
  for (const uint64_t mib : {140, 180, 200, 220}) {
    Served server({"--root", folder_ / "runs"}, mib << 20);
    std::vector<std::thread> clients;
    std::atomic<int> answered{0}, without_memory{0};
    for (int c = 0; c < 6; ++c) {
      clients.emplace_back([&, c] {
        for (int i = 0; i < 6; ++i) {
          const int status = status_of((c + i) % 2 == 0 ? ask(server.port(), "POST /api/lab/copy", many)
                                                        : ask(server.port(), "POST /api/lab/two-heads", "{}"));
          if (status > 0) ++answered;
          if (status == 422 || status == 503) ++without_memory;
        }
      });
    }
    for (std::thread& t : clients) t.join();
    const int afterwards = status_of(ask(server.port(), "GET /api/lab"));
    EXPECT_TRUE(afterwards == 200 || afterwards == 503) << mib << " MiB: " << afterwards;
    EXPECT_GT(answered, 30) << mib << " MiB";
    refused += without_memory;
    EXPECT_EQ(server.end(SIGTERM), 0) << mib << " MiB";
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace qkv::serve
