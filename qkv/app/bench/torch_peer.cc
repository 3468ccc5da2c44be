// Starts PyTorch and exchanges lines with it.
#include "qkv/app/bench/torch_peer.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "qkv/io/json.h"

// The assembler reads the script; the program needs no file beside it.
__asm__(
    ".pushsection .rodata\n.global qkv_torch_peer\nqkv_torch_peer:\n"
    ".incbin \"" QKV_TORCH_PEER "\"\n.byte 0\n.popsection\n");
extern "C" const char qkv_torch_peer[];

namespace qkv::bench {
namespace fs = std::filesystem;
namespace {

// Directories of Debian's builds of BLAS, as seen from inside the root.
std::vector<fs::path> blas_folders(const TorchSetup& setup) {
  std::vector<fs::path> found;
  std::error_code none;
  const fs::path lib = fs::path(setup.root.empty() ? "/" : setup.root) / "usr" / "lib";
  for (const char* build : {"openblas-openmp", "blis-openmp"}) {
    for (const auto& arch : fs::directory_iterator(lib, none)) {
      if (fs::exists(arch.path() / build, none)) found.push_back("/usr/lib" / arch.path().filename() / build);
    }
  }
  return found;
}

std::vector<std::string> command_of(const TorchSetup& setup, const std::string& blas) {
  std::vector<std::string> words;
  if (!setup.root.empty()) words = {"chroot", setup.root};
  words.push_back("env");
  for (const fs::path& folder : blas_folders(setup)) {
    if (folder.filename() == blas) words.push_back("LD_LIBRARY_PATH=" + folder.string());
  }
  words.push_back("GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184");
  for (const char* name : {"OMP_NUM_THREADS=", "OPENBLAS_NUM_THREADS=", "BLIS_NUM_THREADS=", "MKL_NUM_THREADS="}) {
    words.push_back(name + std::to_string(setup.threads));
  }
  if (setup.avx2) {
    for (const char* setting : {"ATEN_CPU_CAPABILITY=avx2", "OPENBLAS_CORETYPE=Zen", "DNNL_MAX_CPU_ISA=AVX2",
                                "BLIS_ARCH_TYPE=haswell", "MKL_ENABLE_INSTRUCTIONS=AVX2"}) {
      words.push_back(setting);
    }
  }
  words.insert(words.end(), {setup.python, "-c", qkv_torch_peer});
  return words;
}

// Runs `words` with its input and output on the given descriptors; never returns.
[[noreturn]] void become(const std::vector<std::string>& words, int in, int out) {
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(127);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

std::vector<std::string> blas_builds(const TorchSetup& setup) {
  std::vector<std::string> names;
  for (const fs::path& folder : blas_folders(setup)) names.push_back(folder.filename());
  if (names.empty()) names.push_back("");
  return names;
}

TorchPeer::TorchPeer(const TorchSetup& setup, const std::string& blas)
    : name_(blas.empty() ? "PyTorch" : "PyTorch, " + blas.substr(0, blas.find('-'))) {
  // Closed in other children, or this one would never see the end of its input.
  int to[2] = {-1, -1}, from[2] = {-1, -1};
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) throw IoError("cannot make a pipe to PyTorch");
  std::signal(SIGPIPE, SIG_IGN);  // a process that ended shows as an empty answer
  const std::vector<std::string> words = command_of(setup, blas);
  pid_ = fork();
  if (pid_ == 0) {
    close(to[1]);
    close(from[0]);
    become(words, to[0], from[1]);
  }
  close(to[0]);
  close(from[1]);
  to_ = fdopen(to[1], "w");
  from_ = fdopen(from[0], "r");
}

TorchPeer::~TorchPeer() {
  std::fclose(to_);  // it ends at the end of its input
  std::fclose(from_);
  if (pid_ <= 0) return;
  for (int i = 0; i < 200; ++i) {  // two seconds to end
    if (waitpid(pid_, nullptr, WNOHANG) != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

double TorchPeer::ask(const std::string& request, const char* field) {
  std::fprintf(to_, "%s\n", request.c_str());
  std::fflush(to_);
  std::string answer;
  for (int c = std::fgetc(from_); c != EOF && c != '\n'; c = std::fgetc(from_)) answer.push_back(static_cast<char>(c));
  try {
    return JsonObject(parse_json(answer, {.where = "PyTorch"}), "PyTorch").number(field);
  } catch (const JsonError&) {
    throw IoError("PyTorch did not answer; try: PYTHON -c 'import torch' with the Python of --torch");
  }
}

double TorchPeer::build(const std::string& sizes) { return ask("case " + sizes, "parameters"); }
double TorchPeer::run(int64_t times) { return ask("run " + std::to_string(times), "seconds"); }
double TorchPeer::memory() { return ask("memory", "bytes"); }

}  // namespace qkv::bench
