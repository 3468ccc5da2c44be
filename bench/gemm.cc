// Matrix products: every case is verified, then timed; GFLOP/s, share of the FMA peak, and with TRIXIE set the
// ratio to the best of OpenBLAS, BLIS, MKL and oneDNN, timed alternating with qkv's.
#include "qkv/kernels/gemm/gemm.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/gemm_peers.h"
#include "qkv/app/bench/harness.h"
#include "qkv/base/parallel.h"
#include "qkv/base/rng.h"

namespace qkv::bench {
namespace {

using kernels::GemmArgs;

// M, K, N and the layout: NN (activations by weights), NT (weights stored [out, in], or scores), TN (weight
// gradients).
struct Case {
  int64_t M, K, N;
  const char* layout;
};
constexpr Case kCases[] = {
    {512, 512, 512, "NN"},   {2048, 2048, 2048, "NN"}, {4096, 256, 256, "NN"},  {4096, 256, 1024, "NN"},
    {4096, 1024, 256, "NN"}, {128, 256, 768, "NN"},    {64, 512, 2048, "NN"},   {32, 64, 256, "NN"},
    {8, 256, 1024, "NN"},    {1, 256, 1024, "NN"},     {1, 2048, 2048, "NN"},   {4096, 256, 1024, "NT"},
    {128, 256, 768, "NT"},   {64, 512, 2048, "NT"},    {32, 64, 256, "NT"},     {128, 64, 128, "NT"},
    {8, 256, 1024, "NT"},    {1, 256, 1024, "NT"},     {1, 2048, 2048, "NT"},   {128, 128, 64, "NN"},
    {256, 4096, 1024, "TN"}, {1024, 4096, 256, "TN"},  {256, 16384, 256, "TN"}, {100, 100, 100, "NN"},
    {4096, 256, 65, "NN"},   {20, 256, 8000, "NT"},    {1280, 512, 8000, "NT"},
};

// An array on a cache line's boundary, as tensors are.
class Aligned {
 public:
  explicit Aligned(int64_t n) : memory_(static_cast<size_t>(n) + 16), size_(n) {
    void* p = memory_.data();
    size_t room = memory_.size() * sizeof(float);
    data_ = static_cast<float*>(std::align(64, static_cast<size_t>(n) * sizeof(float), p, room));
  }
  float* data() { return data_; }
  const float* data() const { return data_; }
  float* begin() { return data_; }
  float* end() { return data_ + size_; }

 private:
  std::vector<float> memory_;
  int64_t size_;
  float* data_;
};

struct Problem {
  Aligned a, b, c;
  GemmArgs args;

  explicit Problem(const Case& s) : a(s.M * s.K), b(s.K * s.N), c(s.M * s.N) {
    const bool ta = s.layout[0] == 'T', tb = s.layout[1] == 'T';
    Rng rng(1);
    for (Aligned* matrix : {&a, &b})
      for (float& x : *matrix) x = static_cast<float>(2 * rng.uniform() - 1);
    args = {.M = s.M,
            .N = s.N,
            .K = s.K,
            .a = a.data(),
            .lda = ta ? s.M : s.K,
            .a_transposed = ta,
            .b = b.data(),
            .ldb = tb ? s.K : s.N,
            .b_transposed = tb,
            .c = c.data(),
            .ldc = s.N};
  }

  // Largest error over rows of C spread over the whole, each against the specification.
  double error() const {
    double worst = 0;
    for (int64_t n = 0; n < 5; ++n) {
      const int64_t i = n * (args.M - 1) / 4;
      std::vector<float> row(static_cast<size_t>(args.N));
      GemmArgs one = args;
      one.M = 1;
      one.a += args.a_transposed ? i : i * args.lda;
      one.c = row.data();
      kernels::reference::gemm(one);
      for (int64_t j = 0; j < args.N; ++j)
        worst = std::max(worst, static_cast<double>(std::abs(row[static_cast<size_t>(j)] - args.c[i * args.ldc + j])));
    }
    return worst;
  }
};

/// False when qkv's product is wrong. Adds the ratio of least times to `ratios` where there are peers.
bool run_case(const Case& s, const Options& options, const Limits& limits, const std::vector<Peer>& peers,
              std::vector<double>& ratios) {
  const std::string name =
      std::string(s.layout) + " " + std::to_string(s.M) + "," + std::to_string(s.K) + "," + std::to_string(s.N);
  if (name.find(options.only) == std::string::npos) return true;
  Problem p(s);
  std::vector<Contestant> who;
  const auto add = [&](const std::string& by, const std::function<void()>& call) {
    who.push_back({by, [call](int64_t times) { return seconds_of(call, times); }});
  };
  add("qkv", [&] { kernels::gemm(p.args); });
  for (const auto& peer : peers) add(peer.name, [&] { peer.gemm(p.args); });
  for (const Contestant& r : who) {
    std::fill(p.c.begin(), p.c.end(), 0.0f);
    r.run(1);
    const double error = p.error(), allowed = 3e-6 * std::sqrt(static_cast<double>(s.K)) + 1e-6;
    if (error <= allowed) continue;
    std::fprintf(stderr, "%s: %s is off by %g (allowed %g)\n", name.c_str(), r.name.c_str(), error, allowed);
    if (r.name == "qkv") return false;
  }
  take_turns(who, {.rounds = options.rounds, .slice = 0.005});
  const double work = 2.0 * static_cast<double>(s.M) * static_cast<double>(s.K) * static_cast<double>(s.N) / 1e9;
  const double mine = work / who[0].best();
  if (who.size() > 1) ratios.push_back(least_ratio(who));
  if (options.json) {
    for (const Contestant& one : who)
      std::printf(
          "{\"case\":\"gemm %s\",\"threads\":%d,\"who\":\"%s\",\"best_ms\":%.6f,\"median_ms\":%.6f,\"gflops\":%.2f}\n",
          name.c_str(), limits.threads, one.name.c_str(), one.best() * 1e3, one.median() * 1e3, work / one.best());
  } else {
    std::printf("%-20s %7d %10.4f %8.1f %5.0f%%", name.c_str(), limits.threads, who[0].best() * 1e3, mine,
                100 * mine / (limits.flops / 1e9));
    for (size_t i = 1; i < who.size(); ++i) std::printf(" %9.1f", work / who[i].best());
    if (who.size() > 1) std::printf("   %5.2f  %5.2f", ratios.back(), best_other(who)->median() / who[0].median());
    std::printf("\n");
  }
  std::fflush(stdout);
  return true;
}

int run(const Options& options) {
  bool right = true;
  for (const int threads : options.threads) {
    const Limits l = measure_limits(threads, options.json);
    set_num_threads(threads);
    const auto peers = load_peers(l.threads);
    if (!options.json) {
      std::printf("\n%-20s %7s %10s %8s %6s", "M,K,N", "threads", "ms", "GFLOP/s", "peak");
      for (const auto& p : peers) std::printf(" %9s", p.name.c_str());
      if (peers.size() > 0) std::printf("   ratio  median ratio (to the best of them)");
      std::printf("\n");
    }
    std::vector<double> ratios;
    for (const Case& s : kCases) right = run_case(s, options, l, peers, ratios) && right;
    if (ratios.empty()) continue;
    double sum = 0;
    for (const double r : ratios) sum += std::log(r);
    const double mean = std::exp(sum / static_cast<double>(ratios.size()));
    std::printf(options.json ? "{\"case\":\"gemm\",\"threads\":%d,\"geometric_mean_ratio\":%.4f}\n"
                             : "%d threads: geometric mean of the ratios %.3f\n",
                threads, mean);
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace qkv::bench

int main(int argc, char** argv) {
  const auto options = qkv::bench::parse_options(argc, argv, "bench_gemm: verifies and times matrix products");
  qkv::bench::rerun_under_trixie(argv, options);
  return qkv::bench::run(options);
}
