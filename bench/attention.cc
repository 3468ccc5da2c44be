// Attention: the whole case table is verified, then the shapes people use are timed; useful GFLOP/s, share of the
// FMA peak, and with TRIXIE set the ratio to the best of PyTorch and ONNX Runtime, timed alternating with qkv's; where
// the Python there has qkv.torch, what a call through it costs more.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "qkv/app/bench/harness.h"
#include "qkv/app/bench/peer_process.h"
#include "qkv/base/parallel.h"
#include "qkv/io/json.h"
#include "qkv/kernels/machine.h"
#include "tests/attention_data.h"

namespace qkv::bench {
namespace {

using cases::AttentionCase;
using cases::AttentionData;

// Largest difference relative to the largest finite expected value.
double difference(const std::vector<float>& got, const std::vector<double>& want) {
  double worst = 0, top = 0.1;
  for (size_t i = 0; i < want.size(); ++i) {
    if (!std::isfinite(want[i])) continue;
    worst = std::max(worst, std::abs(static_cast<double>(got[i]) - want[i]));
    top = std::max(top, std::abs(want[i]));
  }
  return worst / top;
}

// Outputs and gradients of one case against the double-precision reference.
bool verify(const AttentionCase& c) {
  AttentionData<double> want(c);
  AttentionData<float> got(c);
  kernels::reference::attention_forward(want.in, want.outputs());
  kernels::reference::attention_backward(want.in, want.grads());
  kernels::attention_forward(got.in, got.outputs());
  kernels::attention_backward(got.in, got.grads());
  const double error = std::max({difference(got.out, want.out), difference(got.d_q, want.d_q),
                                 difference(got.d_k, want.d_k), difference(got.d_v, want.d_v)});
  if (error < 2e-5) return true;
  std::fprintf(stderr, "%s: off by %g of the largest value (allowed 2e-5)\n", c.name.c_str(), error);
  return false;
}

// The table, and every timed shape with its batch, heads and length cut down where the reference would take minutes.
bool verify_all() {
  bool right = true;
  std::vector<AttentionCase> table = cases::attention_cases();
  for (AttentionCase c : cases::timed_attention_cases()) {
    c.dims.B = std::min<int64_t>(c.dims.B, 2);
    c.dims.H = c.dims.Hkv = std::min<int64_t>(c.dims.H, 2);
    c.dims.Lq = std::min<int64_t>(c.dims.Lq, 512);
    c.dims.Lk = c.dims.Lq == 1 ? c.dims.Lk : c.dims.Lq;
    table.push_back(c);
  }
  for (const AttentionCase& c : table) right = verify(c) && right;
  if (right) std::fprintf(stderr, "%zu cases right\n", table.size());
  return right;
}

double useful_flops(const AttentionCase& c, const AttentionData<float>& data, bool both) {
  const auto [B, H, Hkv, Lq, Lk, D, Dv] = c.dims;
  double keys = static_cast<double>(B * Lk);
  if (c.causal) keys /= 2;
  if (c.window_left >= 0) keys = static_cast<double>(B * std::min(Lk, c.window_left + 1));
  if (!data.key_lens.empty()) keys = 0;
  for (const int64_t n : data.key_lens) keys += static_cast<double>(n);
  return (both ? 3.0 : 1.0) * 2.0 * keys * static_cast<double>(H * Lq * (D + Dv));
}

// One query against many keys is limited by how fast they can be read.
bool rotated(const AttentionCase& c) { return c.dims.Lq == 1 && c.dims.Lk >= 1024; }

// Keys and values beyond any cache, taken in turn, so that one query reads them from memory.
struct Rotation {
  explicit Rotation(const AttentionCase& c) : sets(rotated(c) ? 40 : 1) {
    size = static_cast<size_t>(c.dims.B * c.dims.Hkv * c.dims.Lk * c.dims.D);
    if (sets > 1) k.assign(size * static_cast<size_t>(sets), 0.01f), v = k;
  }
  void next(AttentionData<float>& data) {
    if (sets == 1) return;
    turn = (turn + 1) % sets;
    data.in.k.data = k.data() + size * static_cast<size_t>(turn);
    data.in.v.data = v.data() + size * static_cast<size_t>(turn);
  }
  int sets, turn = 0;
  size_t size = 0;
  std::vector<float> k, v;
};

const char* const kPython = "qkv.torch";

// A call through Python against one from C++.
struct PythonCost {
  double share = 0, microseconds = 0;  // of the C++ call's speed that is left; what is added
  bool small() const { return share >= 0.95 || microseconds <= 15; }
};
struct PythonCosts {
  PythonCost median, least;
};

// Takes the calls through Python out of the contestants.
std::optional<PythonCosts> python_costs(std::vector<Contestant>& all) {
  const auto found = std::find_if(all.begin(), all.end(), [](const Contestant& who) { return who.name == kPython; });
  if (found == all.end()) return std::nullopt;
  const auto cost = [](double python, double cpp) { return PythonCost{cpp / python, (python - cpp) * 1e6}; };
  const PythonCosts costs{cost(found->median(), all[0].median()), cost(found->best(), all[0].best())};
  all.erase(found);
  return costs;
}

class Bench {
 public:
  Bench(const Options& options, bool quick) : options_(options), quick_(quick) {}

  bool run() {
    if (!verify_all()) return false;
    for (const int threads : options_.threads) {
      limits_ = measure_limits(threads, options_.json);
      set_num_threads(threads);
      start_peers();
      header();
      for (const AttentionCase& c : cases::timed_attention_cases()) {
        run_case(c, false);
        if (!rotated(c)) run_case(c, true);
      }
    }
    return true;
  }

 private:
  // PyTorch and ONNX Runtime inside the directory $TRIXIE, a Debian root that has them; none when it is not set.
  void start_peers() {
    peers_.clear();
    const char* root = std::getenv("TRIXIE");
    if (!root || !*root) return;
    std::ifstream file(QKV_BENCH_PEERS "/attention_peers.py");
    const std::string script{std::istreambuf_iterator<char>(file), {}};
    const PythonSetup setup{.root = root, .threads = limits_.threads, .avx2 = options_.target == "AVX2"};
    for (const char* kind : {"torch", "ort", kPython}) {
      if (kind == kPython && !options_.target.empty()) continue;  // it takes the machine's best
      peers_.push_back(std::make_unique<PeerProcess>(
          python_command(setup, blas_builds(setup).front(), script, {kind, std::to_string(limits_.threads)})));
    }
  }

  void header() const {
    if (options_.json) return;
    std::printf("\n%-44s %7s %10s %8s %5s", "case", "threads", "ms", "GFLOP/s", "peak");
    if (!peers_.empty()) std::printf("   ratio to the best peer [spread]   peers, ms");
    std::printf("\n");
  }

  void run_case(const AttentionCase& c, bool both) {
    const auto [B, H, Hkv, Lq, Lk, D, Dv] = c.dims;
    const std::string name = (both ? "both " : "forward ") + c.name;
    if (name.find(options_.only) == std::string::npos || (quick_ && Lq > 2048)) return;
    AttentionData<float> data(c);
    Rotation rotation(c);
    const auto outputs = data.outputs();
    const auto grads = data.grads();
    std::vector<Contestant> all;
    const auto call = [&] {
      rotation.next(data);
      kernels::attention_forward(data.in, outputs);
      if (both) kernels::attention_backward(data.in, grads);
    };
    all.push_back({"qkv", [&](int64_t times) { return seconds_of(call, times); }});
    add_peers(c, both, data, rotation.sets, all);
    const double bytes = 4.0 * static_cast<double>(B * Hkv * Lk * (D + Dv));
    std::vector<double> reading;  // seconds to read as much without computing, each round
    // The threads of the one before spin on for a while: those of ONNX Runtime for 30 ms, at full load.
    take_turns(
        all, {.rounds = Lq >= 8192 ? std::min(3, options_.rounds) : options_.rounds,
              .slice = Lq >= 2048 ? 0.01 : 0.1,  // a process that slept needs some calls until it is at its speed
              .rest = 0.05,
              .after_round = [&] {
                if (!rotated(c)) return;
                reading.push_back(bytes / kernels::measure_read_bandwidth(limits_.threads, kernels::kBeyondCaches, 1));
              }});
    report(name, useful_flops(c, data, both), bytes, all, reading);
  }

  void add_peers(const AttentionCase& c, bool both, const AttentionData<float>& data, int sets,
                 std::vector<Contestant>& all) {
    if (!c.plain()) return;
    const nlohmann::json request = {{"pass", both ? "both" : "forward"},
                                    {"B", c.dims.B},
                                    {"H", c.dims.H},
                                    {"Lq", c.dims.Lq},
                                    {"Lk", c.dims.Lk},
                                    {"D", c.dims.D},
                                    {"causal", c.causal},
                                    {"lens", data.key_lens},
                                    {"sets", sets}};
    for (const auto& peer : peers_) {
      const std::string answer = peer->ask("case " + request.dump());
      if (answer.empty()) continue;
      const Json ways = parse_json(answer, {.where = "the peer's answer"});
      for (const std::string way : ways) {
        all.push_back({way, [&peer, way](int64_t times) {
                         const std::string seconds = peer->ask("run " + way + " " + std::to_string(times));
                         return seconds.empty() ? 1e9 : std::strtod(seconds.c_str(), nullptr);
                       }});
      }
    }
  }

  void report(const std::string& name, double flops, double bytes, std::vector<Contestant> all,
              const std::vector<double>& reading) const {
    const std::optional<PythonCosts> python = python_costs(all);
    const std::vector<double> ratio = ratios(all);
    const std::vector<double> share = reading.empty() ? reading : ratios(reading, all[0].seconds);
    const double best = all[0].best();
    const auto spread = [](const std::vector<double>& sorted) {
      return nlohmann::json{sorted.front(), sorted[sorted.size() / 2], sorted.back()};
    };
    if (options_.json) {
      nlohmann::json row = {
          {"case", "attention " + name}, {"threads", limits_.threads}, {"gflops", flops / best / 1e9}};
      for (const Contestant& who : all) {
        row["best_ms"][who.name] = who.best() * 1e3;
        row["median_ms"][who.name] = who.median() * 1e3;
      }
      if (!ratio.empty()) row["ratio"] = spread(ratio);
      if (!share.empty()) row["share_of_read_bandwidth"] = spread(share);
      if (python) {
        const auto cost = [](const PythonCost& c) {
          return nlohmann::json{{"speed", c.share}, {"us_more", c.microseconds}, {"ok", c.small()}};
        };
        row[kPython] = {{"median", cost(python->median)}, {"least", cost(python->least)}};
      }
      std::printf("%s\n", row.dump().c_str());
    } else {
      std::printf("%-44s %7d %10.4f", name.c_str(), limits_.threads, best * 1e3);
      if (!share.empty()) {
        std::printf(" %5.1f GB/s, %.0f%% [%.0f, %.0f] of the read bandwidth", bytes / best / 1e9,
                    100 * share[share.size() / 2], 100 * share.front(), 100 * share.back());
      } else {
        std::printf(" %8.1f %4.0f%%", flops / best / 1e9, 100 * flops / best / limits_.flops);
      }
      if (!ratio.empty()) {
        std::printf("   %5.2f [%.2f, %.2f]  ", ratio[ratio.size() / 2], ratio.front(), ratio.back());
        for (size_t i = 1; i < all.size(); ++i) std::printf("  %s %.4f", all[i].name.c_str(), all[i].best() * 1e3);
      }
      if (python) {
        const PythonCost &median = python->median, &least = python->least;
        std::printf("   %s median %+.1f us, %.0f%% of C++; least %+.1f us, %.0f%%%s", kPython, median.microseconds,
                    100 * median.share, least.microseconds, 100 * least.share,
                    median.small() ? "" : (least.small() ? "  (median over)" : "  MORE THAN 5% AND 15 us"));
      }
      std::printf("\n");
    }
    std::fflush(stdout);
  }

  Options options_;
  bool quick_;
  Limits limits_;
  std::vector<std::unique_ptr<PeerProcess>> peers_;
};

}  // namespace
}  // namespace qkv::bench

int main(int argc, char** argv) {
  // --quick leaves out the longest sequences; the other options are those of every bench.
  std::vector<char*> rest;
  bool quick = false;
  for (int i = 0; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) {
      quick = true;
    } else {
      rest.push_back(argv[i]);
    }
  }
  const auto options = qkv::bench::parse_options(static_cast<int>(rest.size()), rest.data(),
                                                 "bench_attention [--quick]: verifies attention, then times it");
  return qkv::bench::Bench(options, quick).run() ? 0 : 1;
}
