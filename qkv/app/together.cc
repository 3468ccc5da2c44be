// Joining, comparing what was started, and ending as one.
#include "qkv/app/together.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <string_view>

#include "qkv/app/cli.h"
#include "qkv/app/errors.h"
#include "qkv/app/run_commands.h"
#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/dist/agreement.h"
#include "qkv/dist/host.h"
#include "qkv/dist/launch.h"
#include "qkv/dist/watch.h"
#include "qkv/io/checksum.h"
#include "qkv/kernels/simd_target.h"
#include "qkv/version.h"

namespace qkv::app {
namespace {

/// Standard output and error of the processes that have nothing to say; the real error stays for the last line of all.
class Silence {
 public:
  explicit Silence(bool silent) : error_(::dup(STDERR_FILENO)) {
    const int null = silent ? ::open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
    if (null < 0) return;
    ::dup2(null, STDOUT_FILENO);
    ::dup2(null, STDERR_FILENO);
    ::close(null);
  }
  /// One line, from any thread.
  void say(const std::string& what) const {
    const std::string line = "qkv: " + what + "\n";
    if (::write(error_, line.data(), line.size()) < 0) return;
  }

 private:
  int error_;
};

/// What must be the same on all processes, as (name, value).
std::vector<std::tuple<std::string, std::string>> identity(const Arguments& arguments) {
  std::string words;
  for (const std::string& word : without_option(arguments, "--threads")) words += (words.empty() ? "" : " ") + word;
  const bool chosen = !option_value(arguments, "--target").empty();
  return {{"version of qkv", QKV_VERSION},
          {"build of qkv", std::to_string(xxh64(read_file("/proc/self/exe")))},
          {"command", "'" + words + "'"},
          {"instruction set", chosen ? option_value(arguments, "--target") : kernels::simd_target()}};
}

void refuse_differences(Processes& processes, const Arguments& arguments) {
  using Identity = std::tuple<std::string, std::vector<std::tuple<std::string, std::string>>>;
  const std::vector<std::string> all = gather_agreed(processes, [&] {
    return packed(Identity{host_name(), identity(arguments)});
  });
  agree(processes, [&] {
    const auto [first_host, expected] = unpacked<Identity>(all[0]);
    for (size_t r = 1; r < all.size(); ++r) {
      const auto [host, found] = unpacked<Identity>(all[r]);
      for (size_t i = 0; i < expected.size(); ++i) {
        const auto& [what, wanted] = expected[i];
        const std::string& got = std::get<1>(found[i]);
        if (got == wanted) continue;
        throw ConfigError("process " + std::to_string(r) + " on " + host + " has another " + what +
                          " than process 0 on " + first_host + ": " + got + ", not " + wanted +
                          "; start all of them alike");
      }
    }
  });
}

/// The options that every command has, for processes that do not read the others.
void take_common(const Arguments& arguments) {
  if (const std::string threads = option_value(arguments, "--threads"); !threads.empty()) {
    set_num_threads(static_cast<int>(whole_number("--threads", threads, 1, kMostThreads)));
  }
  if (const std::string target = option_value(arguments, "--target"); !target.empty()) {
    if (!kernels::force_simd_target(target)) throw ConfigError("--target: this processor has no '" + target + "'");
  }
}

std::string lost_line(const Peer& gone, const std::string& command) {
  const std::string who = gone.rank < 0 ? "the launcher has ended"
                                        : "process " + std::to_string(gone.rank) + " on " + gone.host + " (pid " +
                                              std::to_string(gone.pid) + ") has ended";
  return who + ", so all stop" + (command.empty() ? "" : "; continue with: " + command);
}

/// Whether this one of the living processes on its machine speaks of the one that is gone.
bool speaks(const std::vector<Peer>& peers, const Peer& gone, int rank) {
  for (const Peer& p : peers) {
    if (p.rank != gone.rank && p.host == peers[static_cast<size_t>(rank)].host) return p.rank == rank;
  }
  return true;
}

/// Before all have joined, a launcher that ends them (because one of them died) is all that is heard of it.
extern "C" void say_not_started(int) {
  constexpr std::string_view line = "qkv: the launcher stopped all processes before each of them had started\n";
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) std::_Exit(1);
  std::_Exit(1);
}

int work_as_one(Processes& processes, const Arguments& arguments, const std::function<int(Crew&)>& work) {
  // A launcher that ends all because one is gone leaves a second: time for the watch to say which.
  std::signal(SIGTERM, SIG_IGN);
  const int rank = processes.rank();
  Crew crew(processes);
  const Silence silence(rank != 0);
  const std::vector<Peer> peers = gather_peers(processes);
  set_num_threads(threads_of(peers, rank));
  std::unique_ptr<Watch> watch;
  try {
    refuse_differences(processes, arguments);
    agree(processes, [&] {
      if (rank != 0) take_common(arguments);
    });
    watch = std::make_unique<Watch>(peers, rank, [&](const Peer& gone) {
      if (speaks(peers, gone, rank)) silence.say(lost_line(gone, crew.how_to_continue()));
      std::_Exit(1);
    });
    const int code = work(crew);
    watch->stop();
    processes.leave();
    return code;
  } catch (const std::exception& e) {
    if (watch) watch->stop();
    if (dynamic_cast<const AgreedError*>(&e) != nullptr) {
      if (rank == 0) print_error(e);
      processes.leave();  // the launcher ends the others as soon as one has: process 0 has spoken by now
    } else {
      silence.say((rank == 0 ? "" : process_name(rank) + ": ") + e.what());
      processes.abort(error_code(e));
    }
    return error_code(e);
  }
}

}  // namespace

void Crew::continue_with(const std::string& command) {
  const std::lock_guard lock(mutex_);
  command_ = command;
}

std::string Crew::how_to_continue() {
  const std::lock_guard lock(mutex_);
  return command_;
}

int together(const Arguments& arguments, const std::function<int(Crew&)>& work) {
  const auto before =
      launched_rank() == 0 && launched_processes() > 1 ? std::signal(SIGTERM, say_not_started) : SIG_ERR;
  const std::unique_ptr<Processes> processes = join_launched();
  if (before != SIG_ERR) std::signal(SIGTERM, before);
  if (processes) return work_as_one(*processes, arguments, work);
  Crew alone(one_process());
  return work(alone);
}

int exit_code(Processes& processes, bool interrupted, int signal) {
  int highest = 0;
  for (const std::string& text : processes.gather(packed(signal))) highest = std::max(highest, unpacked<int>(text));
  return interrupted ? 128 + highest : 0;
}

std::string same_folder(Processes& processes, const std::string& folder, const std::string& record) {
  const std::string shared = broadcast_text(processes, folder);
  agree(processes, [&] {
    std::error_code error;
    if (std::filesystem::exists(shared + "/" + record, error)) return;
    throw IoError("cannot see " + shared + "; runs side by side need a folder that all processes share");
  });
  return shared;
}

}  // namespace qkv::app
