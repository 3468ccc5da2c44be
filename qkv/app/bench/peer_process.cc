// Starts peer processes and exchanges lines with them.
#include "qkv/app/bench/peer_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "qkv/base/error.h"

namespace qkv::bench {
namespace fs = std::filesystem;
namespace {

// Runs `words` with its input and output on the given descriptors; never returns.
[[noreturn]] void become(char* const* words, int in, int out) {
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(127);
  execvp(words[0], words);
  _exit(127);
}

// What Debian's packages put into the folder of an architecture's libraries, and how a program is made to take it
// (FILE is where it lies). MKL is preloaded since it is no build of libblas.so.3; its threads are OpenMP's, as
// PyTorch's.
struct BlasPackage {
  const char *name, *file;
  std::vector<std::string> environment;
};
const BlasPackage kBlasPackages[] = {
    {"OpenBLAS", "openblas-openmp", {"LD_LIBRARY_PATH=FILE"}},
    {"BLIS", "blis-openmp", {"LD_LIBRARY_PATH=FILE"}},
    {"MKL",
     "libmkl_rt.so",
     {"LD_PRELOAD=libgomp.so.1:FILE", "MKL_THREADING_LAYER=GNU", "MKL_INTERFACE_LAYER=GNU,LP64"}},
};

}  // namespace

PeerProcess::PeerProcess(const std::vector<std::string>& command) {
  // Closed on exec: a peer that held another's pipe open would keep it from seeing the end of its input.
  int to[2] = {-1, -1}, from[2] = {-1, -1};
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const bool pipes = pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0;
  std::signal(SIGPIPE, SIG_IGN);  // a peer that ended shows as an empty answer
  if (pipes) pid_ = fork();
  if (pid_ == 0) become(words.data(), to[0], from[1]);
  for (const int end : {to[0], from[1]}) close(end);
  if (pid_ < 0) {
    for (const int end : {to[1], from[0]}) close(end);
    throw IoError("cannot start " + (command.empty() ? std::string("a process") : command[0]) + " for comparison");
  }
  to_ = fdopen(to[1], "w");
  from_ = fdopen(from[0], "r");
}

PeerProcess::~PeerProcess() {
  std::fclose(to_);  // it ends at the end of its input
  std::fclose(from_);
  for (int i = 0; i < 200; ++i) {  // two seconds to end by itself
    if (waitpid(pid_, nullptr, WNOHANG) != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string PeerProcess::ask(const std::string& request) {
  std::fprintf(to_, "%s\n", request.c_str());
  std::fflush(to_);
  std::string answer;
  for (int c = std::fgetc(from_); c != EOF && c != '\n'; c = std::fgetc(from_)) answer.push_back(static_cast<char>(c));
  return answer;
}

std::vector<Blas> blas_builds(const PythonSetup& setup) {
  std::vector<Blas> builds;
  std::error_code none;
  for (const BlasPackage& package : kBlasPackages) {
    for (const auto& folder :
         fs::directory_iterator(fs::path(setup.root.empty() ? "/" : setup.root) / "usr/lib", none)) {
      if (!fs::exists(folder.path() / package.file, none)) continue;
      builds.push_back({package.name, package.environment});
      const std::string file = "/usr/lib" / folder.path().filename() / package.file;  // as seen from inside the root
      for (std::string& setting : builds.back().environment) {
        if (const size_t at = setting.find("FILE"); at != std::string::npos) setting.replace(at, 4, file);
      }
      break;
    }
  }
  if (builds.empty()) builds.emplace_back();
  return builds;
}

std::vector<std::string> vector_settings(bool avx2) {
  if (avx2) {
    return {"ATEN_CPU_CAPABILITY=avx2", "OPENBLAS_CORETYPE=Zen", "DNNL_MAX_CPU_ISA=AVX2", "BLIS_ARCH_TYPE=haswell",
            "MKL_ENABLE_INSTRUCTIONS=AVX2"};
  }
  std::ifstream file("/proc/cpuinfo");
  const std::string cpu((std::istreambuf_iterator<char>(file)), {});
  if (cpu.find("AuthenticAMD") == std::string::npos || cpu.find("avx512f") == std::string::npos) return {};
  return {"OPENBLAS_CORETYPE=SKYLAKEX", "BLIS_ARCH_TYPE=skx"};
}

std::vector<std::string> python_command(const PythonSetup& setup, const Blas& blas, const std::string& script,
                                        const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  if (!setup.root.empty()) words = {"chroot", setup.root};
  words.push_back("env");
  words.insert(words.end(), blas.environment.begin(), blas.environment.end());
  words.push_back("GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184");
  for (const char* name : {"OMP_NUM_THREADS=", "OPENBLAS_NUM_THREADS=", "BLIS_NUM_THREADS=", "MKL_NUM_THREADS="}) {
    words.push_back(name + std::to_string(setup.threads));
  }
  for (const std::string& setting : vector_settings(setup.avx2)) words.push_back(setting);
  words.insert(words.end(), {setup.python, "-c", script});
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

}  // namespace qkv::bench
