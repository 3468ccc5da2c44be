// qkv bench: how fast this machine is, how fast qkv is on it, and how fast PyTorch is doing the same work.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "qkv/app/bench/growth.h"
#include "qkv/app/bench/measure.h"
#include "qkv/app/bench/scale.h"
#include "qkv/app/cli.h"
#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/io/file.h"
#include "qkv/kernels/simd_target.h"
#include "qkv/version.h"
#include "qkv/view/terminal.h"
#include "qkv/view/text.h"

namespace qkv::app {
namespace {

using bench::BenchCase;
using bench::Limits;
using bench::Measured;

struct BenchOptions {
  std::string what = "all", only, python, target, out;
  std::vector<std::string> folders;
  bool json = false, quick = false, compiled = false;
  int rounds = 7;
  std::vector<int> threads;
};

std::optional<bench::PythonSetup> torch_setup(const BenchOptions& o) {
  const char* root = std::getenv("TRIXIE");
  bench::PythonSetup setup;
  setup.avx2 = o.target == "AVX2";
  if (!o.python.empty()) {
    setup.python = o.python;
  } else if (root && *root) {
    setup.root = root;
  } else {
    return std::nullopt;
  }
  return setup;
}

nlohmann::json row_of(const BenchCase& c, const Measured& m, const Limits& limits) {
  const double seconds = m.who[0].median();
  nlohmann::json row = {{"case", std::string(c.kind) + " " + c.name},
                        {"threads", limits.threads},
                        {"rate", m.work.items / seconds},
                        {"unit", m.work.unit},
                        {"gflops", m.work.flops / seconds / 1e9},
                        {"share_of_peak", m.work.flops / seconds / limits.flops}};
  if (!m.work.text.empty()) row["text"] = m.work.text;
  if (m.work.weights > 0) {
    row["read_gb_per_s"] = m.work.bytes() / seconds / 1e9;
    row["share_of_bandwidth"] = m.work.bytes() / seconds / m.bandwidth;
  }
  for (const bench::Contestant& who : m.who) {
    nlohmann::json& one = row["runs"][who.name];
    one["median_ms"] = who.median() * 1e3;
    one["least_ms"] = who.best() * 1e3;
    for (const double s : who.seconds) one["ms"].push_back(s * 1e3);
    one["memory_mib"] = who.memory / 1048576;
  }
  const std::vector<double> ratios = bench::ratios(m.who);
  if (!ratios.empty()) {
    row["ratio"] = {ratios.front(), ratios[ratios.size() / 2], ratios.back()};
    row["ratio_of_least"] = bench::least_ratio(m.who);
    row["ratio_to"] = bench::best_other(m.who)->name;
  }
  return row;
}

std::string three(double x) { return format_number(x, 3); }

/// The sizes that --quick makes of a case, which are not those of its title.
std::string sizes_text(const nlohmann::json& sizes) {
  std::string text = "tiny:";
  for (const auto& [name, value] : sizes.items()) {
    if (value.is_number_integer()) text += " " + name + " " + value.dump();
  }
  return text;
}

void print_row(const BenchOptions& o, const BenchCase& c, const Measured& m, const Limits& limits) {
  const double seconds = m.who[0].median();
  const auto [low, high] = std::minmax_element(m.who[0].seconds.begin(), m.who[0].seconds.end());
  const Terminal terminal = detect_terminal(STDOUT_FILENO);
  const auto print = [&](const std::string& text, const char* first, const char* rest) {
    std::fputs(wrapped(text, terminal.tty ? terminal.width : std::numeric_limits<int>::max(), first, rest).c_str(),
               stdout);
  };
  print(std::string(c.kind) + " " + c.name + ", " + std::to_string(limits.threads) + " thread" +
            (limits.threads == 1 ? "" : "s") + ": " +
            (o.quick && *c.sizes ? sizes_text(bench::sizes_of(c, true)) : c.title),
        "", "  ");
  if (!m.work.text.empty()) print("text: " + m.work.text, "  ", "  ");
  std::string line = three(seconds * 1e3) + " ms [" + three(*low * 1e3) + ", " + three(*high * 1e3) + "], " +
                     three(m.work.items / seconds) + " " + m.work.unit + "/s, " + three(m.work.flops / seconds / 1e9) +
                     " GFLOP/s, " + format_share(m.work.flops / seconds / limits.flops, 2) + " of the peak";
  if (m.work.weights > 0) {
    line += ", reads " + three(m.work.bytes() / seconds / 1e9) + " GB/s, " +
            format_share(m.work.bytes() / seconds / m.bandwidth, 2) + " of the most from " +
            three(m.work.weights / 1e6) + " MB";
  }
  print(line + ", " + three(std::round(m.who[0].memory / 1048576)) + " MiB", "  qkv  ", "       ");
  for (size_t i = 1; i < m.who.size(); ++i) {
    std::printf("  %s  %s ms, least %s  %.0f MiB\n", m.who[i].name.c_str(), three(m.who[i].median() * 1e3).c_str(),
                three(m.who[i].best() * 1e3).c_str(), m.who[i].memory / 1048576);
  }
  const std::vector<double> ratios = bench::ratios(m.who);
  if (!ratios.empty()) {
    std::printf("  %.2f times as fast as %s [%.2f, %.2f], %.2f by least times\n", ratios[ratios.size() / 2],
                bench::best_other(m.who)->name.c_str(), ratios.front(), ratios.back(), bench::least_ratio(m.who));
  }
}

bench::MeasureOptions options_of(const BenchOptions& o, const Limits& limits) {
  bench::MeasureOptions how;
  how.rounds = o.rounds;
  how.threads = limits.threads;
  how.slice = o.quick ? 0 : 0.2;
  how.folders = o.folders;
  how.torch = torch_setup(o);
  how.compiled = o.compiled;
  if (how.torch) how.torch->threads = limits.threads;
  return how;
}

/// Prints a case and keeps its row.
void show(const BenchOptions& o, const BenchCase& c, const Measured& m, const Limits& limits, nlohmann::json& rows) {
  rows.push_back(row_of(c, m, limits));
  if (o.json) {
    std::printf("%s\n", rows.back().dump().c_str());
  } else {
    print_row(o, c, m, limits);
  }
  std::fflush(stdout);
}

void run_cases(const BenchOptions& o, const Limits& limits, nlohmann::json& rows) {
  const bench::MeasureOptions how = options_of(o, limits);
  for (const BenchCase& c : bench::case_table()) {
    if (o.what != "all" && o.what != c.kind) continue;
    if (!o.only.empty() && o.only != c.name) continue;
    show(o, c, bench::measure(bench::sizes_of(c, o.quick), how), limits, rows);
  }
}

/// Sweeps over one size each; pictures go to --out.
void run_growth(const BenchOptions& o, const Limits& limits, nlohmann::json& rows) {
  const bench::MeasureOptions how = options_of(o, limits);
  const std::vector<bench::Sweep> sweeps = bench::sweeps(limits.threads, o.quick);
  std::vector<bench::Growth> all;
  for (const bench::Sweep& sweep : sweeps) {
    bench::Growth growth{&sweep, {}};
    for (const int value : sweep.values) {
      growth.measured.push_back(bench::measure_value(sweep, value, how));
      Limits by = limits;
      if (sweep.varied.empty()) by = {value, limits.flops * value / limits.threads, limits.bytes};
      const std::string name = sweep.name + ", " + sweep.axis + " " + std::to_string(value);
      const BenchCase c{"growth", name.c_str(), sweep.picture.c_str(), ""};
      show(o, c, growth.measured.back(), by, rows);
    }
    all.push_back(std::move(growth));
  }
  if (o.out.empty()) return;
  for (size_t i = 0; i < all.size();) {
    std::vector<const bench::Growth*> of;
    const std::string picture = all[i].sweep->picture;
    for (; i < all.size() && all[i].sweep->picture == picture; ++i) of.push_back(&all[i]);
    save_drawing(draw_plot(bench::growth_plot(of)), o.out + "/growth_" + picture + ".svg");
  }
}

/// The cases as bars, one per number of threads: how many times as fast as the best PyTorch, or without one the share
/// of the machine's multiply-adds.
BarChart chart_of(const nlohmann::json& rows) {
  BarChart chart{.title = "qkv against PyTorch", .group_title = "case", .y = Axis{.title = "times as fast"}};
  const bool compared = std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.contains("ratio"); });
  if (!compared) chart.title = "qkv against the machine", chart.y.title = "share of the FMA peak, %";
  std::map<int, std::map<std::string, double>> by_threads;
  for (const auto& row : rows) {
    const std::string name = row.at("case");
    if (std::find(chart.groups.begin(), chart.groups.end(), name) == chart.groups.end()) chart.groups.push_back(name);
    const double value = !compared               ? 100 * row.at("share_of_peak").get<double>()
                         : row.contains("ratio") ? row.at("ratio").at(1).get<double>()
                                                 : 0;
    by_threads[row.at("threads").get<int>()][name] = value;
  }
  for (auto& [threads, values] : by_threads) {
    Bars bars{.name = std::to_string(threads) + (threads == 1 ? " thread" : " threads")};
    for (const std::string& group : chart.groups) bars.values.push_back(values[group]);
    chart.series.push_back(std::move(bars));
  }
  chart.width = std::max(600.0, 60.0 * static_cast<double>(chart.groups.size()));
  return chart;
}

void check_only(const BenchOptions& o) {
  if (o.only.empty()) return;
  std::vector<std::string> names;
  for (const BenchCase& c : bench::case_table()) {
    if (o.what != "all" && o.what != c.kind) continue;
    if (o.only == c.name) return;
    names.emplace_back(c.name);
  }
  throw ConfigError("--only: " + unknown_name("case", o.only, names));
}

}  // namespace

int run_bench(const Arguments& arguments) {
  if (!arguments.empty() && arguments[0] == "scale") return run_bench_scale({arguments.begin() + 1, arguments.end()});
  BenchOptions o;
  Cli cli("how fast the machine is, how fast qkv is on it, and PyTorch beside it", "bench");
  cli.choice("WHAT", o.what, "KIND",
             "train, epoch, decode, attention, gemm, all of these, growth over sizes, or scale over processes [all]",
             {"train", "epoch", "decode", "attention", "gemm", "all", "growth"});
  cli.call("--threads", "N,N", "thread counts, as in 1,2 [1 and all cores]", [&o](const std::string& list) {
    o.threads.clear();
    for (const std::string& n : comma_list(list)) {
      o.threads.push_back(static_cast<int>(whole_number("--threads", n, 1, kMostThreads)));
    }
  });
  cli.text("--torch", o.python, "PYTHON", "a Python with torch, measured turn by turn with qkv");
  cli.text("--only", o.only, "CASE", "one case, by its name");
  cli.call("--data", "DIR", "text of the epochs: Multi30k's layout, or wiki.txt in it; may be repeated [generated]",
           [&o](const std::string& folder) {
             if (!std::filesystem::is_directory(folder)) throw ConfigError("--data: there is no folder " + folder);
             o.folders.push_back(folder);
           });
  cli.integer("--rounds", o.rounds, "timing rounds [7]", 5, 1000);
  cli.choice("--target", o.target, "NAME", "instruction set, as AVX2; PyTorch is held to it too [the best]",
             kernels::simd_targets());
  cli.flag("--compile", o.compiled, "a step of compiled PyTorch beside the others (needs a compiler next to it)");
  cli.text("--out", o.out, "DIR", "a folder for bench.json with all rows and for the pictures [none]");
  cli.flag("--quick", o.quick, "tiny sizes: whether it works, not how fast it is");
  cli.flag("--json", o.json, "one JSON object per line");
  if (!cli.parse(arguments)) return 0;
  check_only(o);
  if (!o.out.empty()) make_folders(o.out);
  if (!o.target.empty()) kernels::force_simd_target(o.target);
  if (o.threads.empty()) {
    if (o.what != "growth") o.threads = {1};
    if (o.threads.empty() || num_threads() > 1) o.threads.push_back(num_threads());
  }
  nlohmann::json all = {
      {"version", QKV_VERSION}, {"target", kernels::simd_target()}, {"rows", nlohmann::json::array()}};
  for (const int threads : o.threads) {
    set_num_threads(threads);
    const Limits limits = bench::measure_limits(threads, o.json);
    all["limits"].push_back(
        {{"threads", threads}, {"gflops", limits.flops / 1e9}, {"read_gb_per_s", limits.bytes / 1e9}});
    o.what == "growth" ? run_growth(o, limits, all["rows"]) : run_cases(o, limits, all["rows"]);
  }
  if (o.out.empty()) return 0;
  write_file_atomic(o.out + "/bench.json", all.dump(1) + "\n");
  if (o.what != "growth") save_drawing(draw_bars(chart_of(all["rows"])), o.out + "/bench.svg");
  return 0;
}

}  // namespace qkv::app
