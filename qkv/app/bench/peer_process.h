// A peer library in a process of its own, driven by lines over a pipe, and how a Python with PyTorch is started.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace qkv::bench {

/// Starts a command and talks to it: one line out, one line back. Ends it when destroyed, by force after two seconds.
class PeerProcess {
 public:
  /// Throws IoError when no pipe or process can be made.
  explicit PeerProcess(const std::vector<std::string>& command);
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  /// The answer to one request; empty when the process is gone.
  std::string ask(const std::string& request);

 private:
  int pid_ = -1;
  std::FILE *to_ = nullptr, *from_ = nullptr;
};

/// Where to find Python and how to start it.
struct PythonSetup {
  std::string python = "python3";  // an interpreter that can import torch
  std::string root;                // a directory tree to enter with chroot first; empty: none
  int threads = 1;
  bool avx2 = false;  // no wider vectors than AVX2
};

/// A build of BLAS that Python can be started with.
struct Blas {
  std::string name;                      // "OpenBLAS"; empty: whatever that Python takes by itself
  std::vector<std::string> environment;  // NAME=VALUE
};
/// Those of Debian's packages found beside that Python, best for training first; the nameless one when there is none.
std::vector<Blas> blas_builds(const PythonSetup& setup);
/// The widest vectors that PyTorch and every BLAS take, as NAME=VALUE: AVX2, or all that the processor has. OpenBLAS
/// and BLIS do not take AVX-512 by themselves on AMD's, at half of the speed.
std::vector<std::string> vector_settings(bool avx2);

/// The command that runs a script, given as its text, with that build of BLAS and a malloc that keeps large blocks.
std::vector<std::string> python_command(const PythonSetup& setup, const Blas& blas, const std::string& script,
                                        const std::vector<std::string>& arguments = {});

}  // namespace qkv::bench
