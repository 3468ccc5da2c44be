// The attend command: attention on arrays saved from NumPy.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>

#include "qkv/app/attend/files.h"
#include "qkv/app/attend/map.h"
#include "qkv/app/attend/report.h"
#include "qkv/app/cli.h"
#include "qkv/base/error.h"

namespace qkv::app {
namespace {

constexpr int64_t kFreeStatistics = int64_t{1} << 24;  // scores; beyond, statistics only when asked for

const char* const kAbout =
    "Attention on arrays saved from NumPy: out = normaliser(scale · q kᵀ + bias) v.\n"
    "The meaning of every option is that of the ONNX operator Attention (opsets 23 to 25).\n"
    "Arrays are .npy files of float16, float32 or float64, computed and written in float32.";

const char* const kExamples =
    "Shapes: B batch, H query heads, Hkv key heads (H a multiple of Hkv), Lq queries, Lk keys.\n"
    "  q [B,H,Lq,D], k [B,Hkv,Lk,D], v [B,Hkv,Lk,Dv]   gives [B,H,Lq,Dv]\n"
    "  q [B,Lq,H·D], k [B,Lk,Hkv·D], v [B,Lk,Hkv·Dv]   gives [B,Lq,H·Dv] (with --heads, --kv-heads)\n"
    "A query that sees no key gives a row of zeros. Scores are always [B,H,Lq,Lk].\n"
    "\n"
    "Examples:\n"
    "  python3 -c \"import numpy as np; [np.save(n, np.random.randn(1, 2, 5, 8)) for n in 'qkv']\"\n"
    "  qkv attend --q q.npy --k k.npy --v v.npy --causal --out y.npy --map weights.png\n"
    "  python3 -c \"import numpy as np; print(np.load('y.npy').shape)\"\n"
    "\n"
    "  qkv attend --q q.npy --k k.npy --v v.npy --mask m.npy --scores s.npy --scores-stage weights\n"
    "  qkv attend --q q.npy --k k.npy --v v.npy --grad-out dy.npy --grad-q dq.npy --grad-k dk.npy\n"
    "  qkv attend --q step.npy --k new_k.npy --v new_v.npy --causal --past-k k.npy --past-v v.npy \\\n"
    "             --out y.npy --present-k k.npy --present-v v.npy";

struct Options {
  AttendPaths paths;
  AttendRequest request;
  double scale = 0, beta = 0;
  ScoreStage stage = ScoreStage::raw;
  bool json = false;
};

void add_files(Cli& cli, const char* group,
               const std::vector<std::tuple<const char*, std::string*, const char*>>& files) {
  for (const auto& [name, path, help] : files) cli.text(name, *path, "FILE", help).in(group);
}

void add_inputs(Cli& cli, AttendPaths& p, AttendRequest& r) {
  const char* group = "Arrays";
  const auto needed = [&](const char* name, std::string& path, const char* help) {
    const auto take = [&path](const std::string& word) {
      refuse_table(word);
      path = word;
    };
    cli.call(name, "FILE", help, take).in(group).required();
  };
  needed("--q", p.q, "queries");
  needed("--k", p.k, "keys");
  needed("--v", p.v, "values");
  add_files(cli, group,
            {{"--past-k", &p.past_k, "keys before k, [B,Hkv,P,D]; query 0 is then at key P"},
             {"--past-v", &p.past_v, "values before v, [B,Hkv,P,Dv]"}});
  cli.integer("--heads", r.heads, "query heads of [B,L,H·D] arrays [1]", 1, 1 << 30).in(group);
  cli.integer("--kv-heads", r.kv_heads, "key and value heads of such arrays [as --heads]", 1, 1 << 30).in(group);
}

void add_rule(Cli& cli, Options& o) {
  AttendRequest& r = o.request;
  const char* group = "Scores and weights";
  cli.number("--scale", o.scale, "factor of q·k [1/√D]").in(group);
  cli.number("--beta", o.beta, "the same under its other name, inverse temperature").in(group);
  cli.choice("--score", r.score).in(group);
  cli.number("--softcap", r.softcap, "c·tanh(z/c) on the scores, before masks; 0: none [0]").in(group);
  cli.choice("--normaliser", r.normaliser).in(group);
  group = "Which keys a query sees";
  cli.flag("--causal", r.causal, "query i sees key j only if j ≤ i + P").in(group);
  cli.integer("--window-left", r.window_left, "at most N keys back [all]", -1, 1 << 30).in(group);
  cli.integer("--window-right", r.window_right, "at most N keys ahead [all]", -1, 1 << 30).in(group);
  add_files(cli, group,
            {{"--mask", &o.paths.mask,
              "bool (True = takes part) or float (added), broadcast to [B,H,Lq,Lk]; keys past a shorter "
              "last axis are hidden"},
             {"--valid-lens", &o.paths.valid_lens, "number of visible keys, int [B] or [B,Lq]"},
             {"--kv-lens", &o.paths.kv_lens,
              "filled length of an external cache k, v, int [B]: hides the rest; the last query is at its "
              "end"}});
}

void add_outputs(Cli& cli, Options& o) {
  AttendPaths& p = o.paths;
  const char* group = "Results";
  add_files(cli, group,
            {{"--out", &p.out, "the output"},
             {"--present-k", &p.present_k, "past and new keys together, [B,Hkv,P+Lk,D]"},
             {"--present-v", &p.present_v, "past and new values together"},
             {"--scores", &p.scores, "scores or weights, [B,H,Lq,Lk]"}});
  cli.choice("--scores-stage", o.stage).in(group);
  add_files(
      cli, group,
      {{"--stats", &p.stats, "JSON: log-sum-exp, entropy, largest weight, its key and mean distance of every row"},
       {"--map", &p.map, "heat map of the weights, .png or .svg"}});
  add_files(cli, "Backward",
            {{"--grad-out", &p.grad_out, "gradient of the output, in its shape"},
             {"--grad-q", &p.grad_q, "gradient of q"},
             {"--grad-k", &p.grad_k, "gradient of k"},
             {"--grad-v", &p.grad_v, "gradient of v"}});
}

/// Arrays are written as NumPy reads them, whatever they are called.
void check_names(const Cli& cli, const AttendPaths& p) {
  const std::pair<const char*, const std::string*> arrays[] = {
      {"--out", &p.out},       {"--present-k", &p.present_k}, {"--present-v", &p.present_v}, {"--scores", &p.scores},
      {"--grad-q", &p.grad_q}, {"--grad-k", &p.grad_k},       {"--grad-v", &p.grad_v}};
  for (const auto& [name, path] : arrays) {
    const std::string ending = std::filesystem::path(*path).extension().string();
    if (cli.given(name) && !ending.empty() && ending != ".npy")
      throw ConfigError(std::string(name) + " " + *path + ": arrays are written as .npy files");
  }
}

void check_usage(const Cli& cli, const Options& o) {
  check_names(cli, o.paths);
  const auto given = [&](const char* name) { return cli.given(name); };
  const auto together = [&](const char* a, const char* b) {
    if (given(a) != given(b)) throw ConfigError(std::string(a) + " and " + b + " must be given together");
  };
  if (given("--scale") && given("--beta"))
    throw ConfigError("--scale and --beta are the same number; give one of them");
  // What is computed is float32.
  constexpr double kLargest = std::numeric_limits<float>::max(), kSmallest = std::numeric_limits<float>::min();
  const auto fits = [](double x) { return std::abs(x) <= kLargest; };
  if (!fits(o.scale)) throw ConfigError("--scale must be a finite number, at most 3.4e38");
  if (!fits(o.beta)) throw ConfigError("--beta must be a finite number, at most 3.4e38");
  const double cap = o.request.softcap;
  if (cap != 0 && !(fits(cap) && cap >= kSmallest)) {
    throw ConfigError("--softcap must be 0 or a number between 1.2e-38 and 3.4e38");
  }
  together("--past-k", "--past-v");
  if (given("--kv-lens") && given("--past-k")) {
    throw ConfigError("--kv-lens (an external cache) and --past-k cannot be combined");
  }
  if (given("--scores-stage") && !given("--scores")) throw ConfigError("--scores-stage needs --scores FILE");
  const bool wants_grad = given("--grad-q") || given("--grad-k") || given("--grad-v");
  if (wants_grad && !given("--grad-out")) throw ConfigError("gradients need --grad-out FILE, the output's gradient");
  if (given("--grad-out") && !wants_grad) {
    throw ConfigError("--grad-out needs --grad-q, --grad-k or --grad-v to say what to save");
  }
  if (given("--map")) check_map_path(o.paths.map);
  std::map<std::filesystem::path, std::string> files;  // by where a path leads: ./y.npy is y.npy
  for (const std::string& path : output_files(o.paths)) {
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::absolute(path, error);
    const auto [first, fresh] = files.emplace(std::filesystem::weakly_canonical(whole, error), path);
    if (!fresh) throw ConfigError("two results cannot share one file: " + first->second + " and " + path);
  }
}

void settle(const Cli& cli, Options& o) {
  if (cli.given("--scale")) o.request.scale = o.scale;
  if (cli.given("--beta")) o.request.scale = o.beta;
}

void compute(Options& o) {
  const std::vector<std::string> files = output_files(o.paths);
  check_writable(files);
  load_arrays(o.paths, o.request);
  const AttendResult result = compute_attend(o.request);
  const int64_t scores = result.q.dim(0) * result.q.dim(1) * result.q.dim(2) * result.k.dim(2);
  AttendExtras extras{.stage = o.stage, .stats_json = {}};
  AttendReport report{o.request, result, {}, files};
  if (!o.paths.stats.empty() || scores <= kFreeStatistics) {
    const AttentionStatistics stats = attention_statistics(result.q, result.k, result.rule);
    report.weights = summarise(stats);
    if (!o.paths.stats.empty()) extras.stats_json = stats_json(stats);
  }
  save_results(o.paths, result, extras);
  if (std::find(files.begin(), files.end(), "/dev/stdout") != files.end()) return;  // stdout carries an array
  std::fputs((o.json ? report_json(report) : report_text(report)).c_str(), stdout);
}

}  // namespace

int run_attend(const Arguments& arguments) {
  Cli cli(kAbout, "attend");
  Options options;
  add_inputs(cli, options.paths, options.request);
  add_rule(cli, options);
  add_outputs(cli, options);
  cli.flag("--json", options.json, "print the summary as JSON").in("Results");
  cli.footer(kExamples);
  if (!cli.parse(arguments)) return 0;
  check_usage(cli, options);
  settle(cli, options);
  compute(options);
  return 0;
}

}  // namespace qkv::app
