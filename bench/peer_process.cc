// Starts peer processes and exchanges lines with them.
#include "bench/peer_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace qkv::bench {
namespace fs = std::filesystem;

std::unique_ptr<PeerProcess> PeerProcess::start(const std::vector<std::string>& command) {
  int to[2], from[2];
  // Closed on exec: a peer that held another's pipe open would keep it from seeing the end of its input.
  if (command.empty() || pipe2(to, O_CLOEXEC) != 0) return nullptr;
  if (pipe2(from, O_CLOEXEC) != 0) {
    close(to[0]);
    close(to[1]);
    return nullptr;
  }
  signal(SIGPIPE, SIG_IGN);  // a peer that died shows as an empty answer
  const int pid = fork();
  if (pid == 0) {
    dup2(to[0], 0);
    dup2(from[1], 1);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(127);
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  if (pid < 0) {
    close(to[1]);
    close(from[0]);
    return nullptr;
  }
  return std::unique_ptr<PeerProcess>(new PeerProcess(pid, fdopen(to[1], "w"), fdopen(from[0], "r")));
}

PeerProcess::~PeerProcess() {
  std::fclose(to_);  // it ends at the end of its input
  std::fclose(from_);
  waitpid(pid_, nullptr, 0);
}

std::string PeerProcess::ask(const std::string& request) {
  std::fprintf(to_, "%s\n", request.c_str());
  std::fflush(to_);
  std::string answer;
  for (int c = std::fgetc(from_); c != EOF && c != '\n'; c = std::fgetc(from_)) answer.push_back(static_cast<char>(c));
  return answer;
}

std::vector<std::string> peer_command(const std::string& script, const std::vector<std::string>& arguments) {
  const char* root = std::getenv("TRIXIE");
  if (!root || !*root) return {};
  const fs::path inside = fs::path("tmp") / "qkv_bench";
  std::error_code error;
  fs::create_directories(root / inside, error);
  fs::copy_file(fs::path(QKV_BENCH_PEERS) / script, root / inside / script, fs::copy_options::overwrite_existing,
                error);
  if (error) {
    std::fprintf(stderr, "no peers: cannot copy %s to %s/tmp (%s)\n", script.c_str(), root, error.message().c_str());
    return {};
  }
  std::vector<std::string> command = {"chroot", root, "env"};
  for (const auto& arch : fs::directory_iterator(fs::path(root) / "usr" / "lib", error)) {
    if (fs::exists(arch.path() / "openblas-openmp")) {
      command.push_back("LD_LIBRARY_PATH=/usr/lib/" + arch.path().filename().string() + "/openblas-openmp");
    }
  }
  command.push_back("GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184");
  command.push_back("python3");
  command.push_back((fs::path("/") / inside / script).string());
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace qkv::bench
