// Runs the program with a fault of fail_nth or a limit on its memory, and keeps how it ended and what it said.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "io/temp_folder.h"
#include "qkv/io/file.h"
#include "support/paths.h"

namespace qkv::testing {

using Words = std::vector<std::string>;

struct Fault {
  std::string what;            // QKV_FAULT, or "syscall:N:kill"; empty: none
  uint64_t address_space = 0;  // in bytes; 0: no limit
};

struct Ending {
  int code = -1;      // of a program that ended by itself
  int signal = 0;     // that ended it
  int64_t calls = 0;  // that may change files, of one that was traced
  std::string err;    // standard error
};

inline constexpr const char* kSyscall = "syscall:";

/// Whether the traced child enters a system call that may change what is in a folder.
inline bool changes_files(pid_t pid) {
  __ptrace_syscall_info info{};
  ::ptrace(static_cast<__ptrace_request>(PTRACE_GET_SYSCALL_INFO), pid, sizeof(info), &info);
  if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return false;
  switch (info.entry.nr) {
    case SYS_openat:
      return (info.entry.args[2] & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0;
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
      return info.entry.args[0] > 2;
#ifdef SYS_open
    case SYS_open:
      return (info.entry.args[1] & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0;
    case SYS_rename:
    case SYS_mkdir:
    case SYS_rmdir:
    case SYS_unlink:
    case SYS_link:
    case SYS_symlink:
#endif
#ifdef SYS_renameat
    case SYS_renameat:
#endif
    case SYS_renameat2:
    case SYS_mkdirat:
    case SYS_unlinkat:
    case SYS_linkat:
    case SYS_symlinkat:
    case SYS_truncate:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_copy_file_range:
    case SYS_sendfile:
      return true;
    default:
      return false;
  }
}

/// Waits for a child that asked to be traced, and kills it when its first thread enters its `n`th system call that may
/// change files: between two of these a kill leaves the same files. Its status; `n` becomes the calls it made.
inline int kill_at_syscall(pid_t pid, int64_t& n) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  ::ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  int64_t changes = 0;
  int deliver = 0;
  while (WIFSTOPPED(status)) {
    ::ptrace(PTRACE_SYSCALL, pid, 0, deliver);
    ::waitpid(pid, &status, 0);
    const bool call = WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80);
    deliver = WIFSTOPPED(status) && !call && WSTOPSIG(status) != SIGTRAP ? WSTOPSIG(status) : 0;
    if (call && changes_files(pid) && ++changes == n) ::kill(pid, SIGKILL);
  }
  n = changes;
  return status;
}

/// The calls of each kind that fail_nth counts.
inline constexpr std::array<const char*, 5> kFaultKinds{"write", "fsync", "rename", "open", "malloc"};
using FaultCounts = std::array<int64_t, 5>;

inline constexpr unsigned kMostSeconds = 180;  // a machine may be asleep for a minute

inline Ending run_faulty(Words arguments, const Fault& fault, FaultCounts* counts = nullptr) {
  const TempFolder folder;
  const std::string err = folder / "err", counted = folder / "counts";
  arguments.insert(arguments.begin(), program());
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  const bool traced = fault.what.rfind(kSyscall, 0) == 0;
  int64_t number = traced ? std::stoll(fault.what.substr(std::string(kSyscall).size())) : 0;
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(::open("/dev/null", O_RDWR), 0);
    ::dup2(0, 1);
    ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
    ::setenv("LD_PRELOAD", fault_library().c_str(), 1);
    if (!fault.what.empty()) ::setenv("QKV_FAULT", fault.what.c_str(), 1);
    if (counts != nullptr) ::setenv("QKV_FAULT_COUNTS", counted.c_str(), 1);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    if (fault.address_space > 0) {
      const rlimit limit{fault.address_space, fault.address_space};
      ::setrlimit(RLIMIT_AS, &limit);
    }
    ::alarm(kMostSeconds);  // a program that hangs ends by SIGALRM
    if (traced) ::ptrace(PTRACE_TRACEME, 0, 0, 0);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  if (traced) {
    status = kill_at_syscall(pid, number);
  } else {
    ::waitpid(pid, &status, 0);
  }
  if (counts != nullptr) {
    std::istringstream numbers(read_text(counted));
    for (int64_t& n : *counts) numbers >> n;
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0, number,
          read_text(err)};
}

/// What was said, without the lines of progress that a run of more than some seconds writes.
inline std::string without_progress(const std::string& err) {
  std::istringstream lines(err);
  std::string line, rest;
  while (std::getline(lines, line)) {
    if (line.find("%  ") == std::string::npos) rest += line + (lines.eof() ? "" : "\n");
  }
  return rest;
}

/// 0; or 1 or 2 with one message of one line. Anything else (abort, crash, silence) is a fault of the program.
inline void expect_clean_ending(const Ending& end, const std::string& what) {
  EXPECT_EQ(end.signal, 0) << what << "\n" << end.err;
  if (end.signal != 0 || end.code == 0) return;
  EXPECT_TRUE(end.code == 1 || end.code == 2) << what << ": exit code " << end.code << "\n" << end.err;
  const std::string said = without_progress(end.err);
  EXPECT_EQ(said.rfind("qkv: ", 0), 0u) << what << "\n" << end.err;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << what << "\n" << end.err;
}

/// Up to `most` numbers from 1 to n, evenly spread; up to `many` of them when QKV_FAULTS=all.
inline std::vector<int64_t> points_of(int64_t n, int64_t most, int64_t many) {
  const char* all = std::getenv("QKV_FAULTS");
  if (all != nullptr && std::string(all) == "all") most = many;
  std::vector<int64_t> points;
  for (int64_t i = 0; i < std::min(n, most); ++i) points.push_back(1 + i * n / std::min(n, most));
  return points;
}

/// What a killed or failed process may leave for a while, but not after a later success.
inline void expect_no_temporaries(const std::string& folder, const std::string& what) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << what << " left " << entry.path();
  }
}

}  // namespace qkv::testing
