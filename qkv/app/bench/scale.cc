// Time per update for processes × threads, what of it is waiting, and how well the processors are used.
#include "qkv/app/bench/scale.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "qkv/app/cli.h"
#include "qkv/app/together.h"
#include "qkv/base/parallel.h"
#include "qkv/base/processors.h"
#include "qkv/train/session.h"

namespace qkv::app {
namespace {

struct ScaleOptions {
  int64_t updates = 8, parts = 0, threads = 0;
  bool quick = false, json = false;
};

struct Case {
  const char *name, *task;
  std::vector<std::pair<const char*, const char*>> settings, tiny;
};

const Case kCases[] = {
    {"gpt",
     "text",
     {{"width", "256"},
      {"layers", "4"},
      {"heads", "8"},
      {"block", "128"},
      {"batch", "128"},
      {"generated-size", "5000"}},
     {{"width", "16"}, {"layers", "1"}, {"heads", "2"}, {"batch", "8"}, {"generated-size", "200"}}},
    {"transformer",
     "translate",
     {{"model", "transformer"}, {"width", "256"}, {"heads", "8"}, {"inner", "1024"}, {"batch-tokens", "5120"}},
     {{"width", "16"}, {"heads", "2"}, {"inner", "32"}, {"batch-tokens", "500"}, {"generated-size", "200"}}},
};

/// Times the updates and stops after enough of them; the first two warm up.
class Timer final : public TrainObserver {
 public:
  explicit Timer(int64_t updates) : left_(updates + 2) {}
  void on_step(const StepReport&) override {
    const auto now = std::chrono::steady_clock::now();
    if (seconds_.capacity() == 0) seconds_.reserve(static_cast<size_t>(left_));
    if (++steps_ > 2) seconds_.push_back(std::chrono::duration<double>(now - last_).count());
    last_ = now;
  }
  bool wants_stop() override { return --left_ <= 0; }
  double median() {
    std::sort(seconds_.begin(), seconds_.end());
    return seconds_.empty() ? 0 : seconds_[seconds_.size() / 2];
  }

 private:
  int64_t left_, steps_ = 0;
  std::chrono::steady_clock::time_point last_;
  std::vector<double> seconds_;
};

struct Row {
  int processes = 1, threads = 1;
  double seconds = 0, waiting = 0;  // per update; share of it
};

Row measured(const Case& c, const ScaleOptions& o, int threads, Processes& processes) {
  Settings settings = find_task(c.task).settings();
  for (const auto& [name, value] : c.settings) settings.set(name, value);
  for (const auto& [name, value] : o.quick ? c.tiny : decltype(c.tiny){}) settings.set(name, value);
  settings.set("epochs", "1000");
  settings.set("parts", std::to_string(o.parts));
  const auto task = find_task(c.task).make(settings, "");
  set_num_threads(threads);
  Timer timer(o.updates);
  const TrainResult result = Trainer(*task, trainer_options(settings), nullptr, &timer, processes).run();
  double computed = 0, waited = 0;
  for (const ProcessShare& s : result.shares) computed += s.computed, waited += s.waited;
  return {processes.size(), threads, timer.median(), waited / std::max(computed + waited, 1e-9)};
}

void print_row(const Case& c, const ScaleOptions& o, const Row& row, double one) {
  const double efficiency = one / (row.seconds * row.processes * row.threads);
  if (o.json) {
    const nlohmann::json line = {{"case", c.name},
                                 {"parts", o.parts},
                                 {"processes", row.processes},
                                 {"threads", row.threads},
                                 {"ms_per_update", row.seconds * 1e3},
                                 {"waiting", row.waiting},
                                 {"efficiency", efficiency}};
    std::printf("%s\n", line.dump().c_str());
  } else {
    std::printf("%-12s %4d process%s x %d thread%s  %8.1f ms per update  %3.0f%% waiting  efficiency %3.0f%%\n", c.name,
                row.processes, row.processes == 1 ? "  " : "es", row.threads, row.threads == 1 ? " " : "s",
                row.seconds * 1e3, 100 * row.waiting, 100 * efficiency);
  }
  std::fflush(stdout);
}

/// First the first process alone, while the others wait, then all.
void measure_case(const Case& c, const ScaleOptions& o, Crew& crew) {
  Processes& processes = crew.processes();
  const int own = o.threads > 0 ? static_cast<int>(o.threads) : num_threads();
  const int most = std::min(own * processes.size(), usable_processors());
  double one = 0;
  agree_on_first(processes, [&] {
    const Row alone = measured(c, o, 1, one_process());
    one = alone.seconds;
    print_row(c, o, alone, one);
    if (most > 1) print_row(c, o, measured(c, o, most, one_process()), one);
  });
  if (crew.alone()) return;
  const Row row = measured(c, o, own, processes);
  if (crew.first()) print_row(c, o, row, one);
}

}  // namespace

int run_bench_scale(const Arguments& arguments) {
  return together(arguments, [&](Crew& crew) {
    ScaleOptions o;
    bool go = false;
    agree(crew.processes(), [&] {
      Cli cli("The same updates on one process and on all that a launcher started: time, waiting, efficiency.",
              "bench scale");
      cli.integer("--updates", o.updates, "updates measured [8]", 1, 1000);
      cli.integer("--parts", o.parts, "parts of each update [the next power of two of the processes]", 1, 65536);
      cli.integer("--threads", o.threads, "threads of each process [its share of the processors]", 1, kMostThreads);
      cli.flag("--quick", o.quick, "tiny sizes: whether it works, not how fast it is");
      cli.flag("--json", o.json, "one JSON object per line");
      cli.footer("Examples:\n  mpirun -n 4 qkv bench scale       one process against four\n");
      go = cli.parse(arguments);
      if (o.parts == 0) o.parts = std::bit_ceil(static_cast<unsigned>(crew.processes().size()));
      check_parts(o.parts, crew.processes().size());
    });
    if (!go) return 0;
    for (const Case& c : kCases) measure_case(c, o, crew);
    return 0;
  });
}

}  // namespace qkv::app
