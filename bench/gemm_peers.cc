// Loads OpenBLAS, BLIS, MKL and oneDNN by name and calls their C interfaces.
#include "bench/gemm_peers.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "qkv/app/bench/peer_process.h"

namespace qkv::bench {
namespace {

using Cblas = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
using Dnnl = int (*)(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t, float,
                     float*, int64_t);

template <class F>
F symbol(void* library, const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}

// Each library keeps its own copy of the BLAS names.
void* open(const std::string& name) { return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); }

void add_cblas(std::vector<Peer>& peers, const char* name, const char* file, const char* set_threads, int threads) {
  void* library = open(file);
  if (!library) return;
  if (const auto set = symbol<void (*)(int)>(library, set_threads)) set(threads);
  const auto sgemm = symbol<Cblas>(library, "cblas_sgemm");
  if (!sgemm) return;
  constexpr int kRowMajor = 101, kNo = 111, kYes = 112;
  peers.push_back({name, [sgemm](const kernels::GemmArgs& g) {
                     sgemm(kRowMajor, g.a_transposed ? kYes : kNo, g.b_transposed ? kYes : kNo, static_cast<int>(g.M),
                           static_cast<int>(g.N), static_cast<int>(g.K), 1.0f, g.a, static_cast<int>(g.lda), g.b,
                           static_cast<int>(g.ldb), 0.0f, g.c, static_cast<int>(g.ldc));
                   }});
}

// A library that takes more threads than it was told to has no more processors for them.
void hold_to_processors(int count) {
  cpu_set_t all, some;
  CPU_ZERO(&some);
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE && count > 0; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    CPU_SET(cpu, &some);
    --count;
  }
  sched_setaffinity(0, sizeof some, &some);
}

}  // namespace

void rerun_under_trixie(char** argv, const Options& options) {
  const char* tree = std::getenv("TRIXIE");
  if (!tree || std::getenv("QKV_BENCH_PEERS")) return;
  const std::string root = tree, libraries = root + "/usr/lib/x86_64-linux-gnu";
  const std::string loader = root + "/lib64/ld-linux-x86-64.so.2";
  if (!std::filesystem::exists(loader)) {
    std::fprintf(stderr, "TRIXIE: %s does not exist; timing without peers\n", loader.c_str());
    return;
  }
  const std::string path = libraries + "/openblas-openmp:" + libraries + "/blis-openmp:" + libraries;
  setenv("QKV_BENCH_PEERS", "1", 1);
  setenv("GOMP_SPINCOUNT", "20000", 0);  // idle peers' threads must not take time from the next contestant
  setenv("MKL_THREADING_LAYER", "GNU", 0);
  setenv("MKL_INTERFACE_LAYER", "GNU,LP64", 0);
  for (const std::string& setting : vector_settings(options.target == "AVX2")) {
    putenv(strdup(setting.c_str()));  // kept by the environment
  }
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  bool right = true;
  for (const int threads : options.threads) {
    const std::string count = std::to_string(threads);
    std::vector<const char*> args = {loader.c_str(), "--library-path", path.c_str(), self.c_str()};
    for (char** a = argv + 1; *a; ++a) args.push_back(*a);
    args.insert(args.end(), {"--threads", count.c_str(), nullptr});
    const pid_t child = fork();
    if (child == 0) {
      hold_to_processors(threads);
      setenv("OMP_NUM_THREADS", count.c_str(), 1);
      execv(loader.c_str(), const_cast<char* const*>(args.data()));
      std::perror("TRIXIE: cannot run the tree's loader");
      _exit(1);
    }
    int status = 1;
    right = child > 0 && waitpid(child, &status, 0) == child && status == 0 && right;
  }
  std::exit(right ? 0 : 1);
}

std::vector<Peer> load_peers(int threads) {
  std::vector<Peer> peers;
  if (!std::getenv("QKV_BENCH_PEERS")) return peers;
  add_cblas(peers, "OpenBLAS", "libopenblas.so.0", "openblas_set_num_threads", threads);
  add_cblas(peers, "BLIS", "libblis.so.4", "bli_thread_set_num_threads", threads);
  add_cblas(peers, "MKL", "libmkl_rt.so", "MKL_Set_Num_Threads", threads);
  if (void* omp = open("libgomp.so.1"))
    if (const auto set = symbol<void (*)(int)>(omp, "omp_set_num_threads")) set(threads);
  for (const char* file : {"libdnnl.so.3.12", "libdnnl.so.3.7", "libdnnl.so.3.6", "libdnnl.so.3"}) {
    void* library = open(file);
    const auto sgemm = library ? symbol<Dnnl>(library, "dnnl_sgemm") : nullptr;
    if (!sgemm) continue;
    peers.push_back({"oneDNN", [sgemm](const kernels::GemmArgs& g) {
                       sgemm(g.a_transposed ? 'T' : 'N', g.b_transposed ? 'T' : 'N', g.M, g.N, g.K, 1.0f, g.a, g.lda,
                             g.b, g.ldb, 0.0f, g.c, g.ldc);
                     }});
    break;
  }
  return peers;
}

}  // namespace qkv::bench
