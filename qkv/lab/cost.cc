// Experiment: work, sequential steps and path length of self-attention and of a recurrent layer, measured.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string_view>

#include "qkv/base/clock.h"
#include "qkv/base/parallel.h"
#include "qkv/lab/experiments.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

constexpr int64_t kBatch = 16;  // sequences in the timed recurrent runs, so that arithmetic outweighs calls

// h_t = max(0, W h_{t-1} + x_t), the plainest recurrent layer; x has one [B, d] per step.
Tensor recurrent(const std::vector<Tensor>& x, const Tensor& weight) {
  Tensor h = Tensor::zeros(x[0].shape());
  for (const Tensor& step : x) h = relu(linear(h, weight) + step);
  return h;  // [B, d]
}

std::vector<Tensor> make_steps(int64_t n, int64_t batch, int64_t d, Rng& rng) {
  std::vector<Tensor> steps;
  for (int64_t i = 0; i < n; ++i) steps.push_back(Tensor::randn({batch, d}, rng));
  return steps;
}

struct Timing {
  std::vector<double> size, seconds;
  // c·x^power with the c that fits best on logarithmic axes.
  double fitted(double x, double power) const {
    double height = 0;
    for (size_t i = 0; i < size.size(); ++i) height += std::log(seconds[i]) - power * std::log(size[i]);
    return std::exp(height / static_cast<double>(size.size())) * std::pow(x, power);
  }
  // Least-squares slope of log time over log size: the power with which the time grows.
  double power() const {
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (size_t i = 0; i < size.size(); ++i) {
      const double x = std::log(size[i]), y = std::log(seconds[i]);
      sx += x, sy += y, sxx += x * x, sxy += x * y;
    }
    const auto n = static_cast<double>(size.size());
    return (n * sxy - sx * sy) / (n * sxx - sx * sx);
  }
};

// Nested parallel calls run inline, so everything fn does happens on the thread that runs it.
template <class Fn>
void on_one_thread(Fn&& fn) {
  parallel_for(2, [&](int64_t task) {
    if (task == 0) fn();
  });
}

// Times run(size) for the largest size and halves of it. The sizes take turns, and each keeps its shortest run: the one
// the rest of the machine disturbed least.
template <class Prepare>
Timing sweep(int64_t largest_size, int points, Prepare&& prepare) {
  constexpr int kRounds = 9;
  Timing t;
  std::vector<std::function<void()>> runs;
  for (int i = points - 1; i >= 0; --i) {
    const int64_t size = std::max<int64_t>(1, largest_size >> i);
    t.size.push_back(static_cast<double>(size));
    t.seconds.push_back(std::numeric_limits<double>::infinity());
    runs.push_back(prepare(size));
  }
  on_one_thread([&] {
    const NoGrad no_grad;
    for (int round = 0; round < kRounds; ++round) {
      for (size_t i = 0; i < runs.size(); ++i) {
        const double start = thread_seconds();
        runs[i]();
        t.seconds[i] = std::min(t.seconds[i], thread_seconds() - start);
      }
    }
  });
  return t;
}

std::function<void()> attention_run(int64_t n, int64_t d, int64_t window, Rng& rng) {
  const Tensor x = Tensor::randn({1, n, d}, rng);
  ScoreRule rule;
  rule.window_left = rule.window_right = window;
  return [=] { attention(x, x, x, rule); };
}

std::function<void()> recurrent_run(int64_t n, int64_t d, Rng& rng) {
  const std::vector<Tensor> x = make_steps(n, kBatch, d, rng);
  const Tensor weight = Tensor::randn({d, d}, rng, 1 / std::sqrt(static_cast<double>(d)));
  return [=] { recurrent(x, weight); };
}

// Longest and shortest way from `from` to `to` through the recorded operations, counting those named `op`.
struct Ways {
  int64_t longest = -1, shortest = -1;  // -1: no way
};
Ways ways_through(const Tensor& to, const Tensor& from, std::string_view op) {
  std::map<uint64_t, std::pair<const Node*, Ways>> nodes;  // by order: a node's inputs come before it
  std::vector<const Node*> open = {to.node().get()};
  while (!open.empty()) {
    const Node* const node = open.back();
    open.pop_back();
    if (!node || !nodes.emplace(node->order, std::pair(node, Ways{})).second) continue;
    for (const Tensor& input : node->inputs) {
      if (input.defined() && input.node()) open.push_back(input.node().get());
    }
  }
  for (auto& [order, entry] : nodes) {
    auto& [node, ways] = entry;
    for (const Tensor& input : node->inputs) {
      if (!input.defined()) continue;
      Ways before;
      if (input.same_as(from)) before = {0, 0};
      if (input.node()) before = nodes.at(input.node()->order).second;
      if (before.longest < 0) continue;
      ways.longest = std::max(ways.longest, before.longest);
      ways.shortest = ways.shortest < 0 ? before.shortest : std::min(ways.shortest, before.shortest);
    }
    if (ways.longest >= 0 && node->op == op) {
      ++ways.longest;
      ++ways.shortest;
    }
  }
  return to.node() ? nodes.at(to.node()->order).second : Ways{};
}

void compare_paths(Result& r, int64_t n, int64_t d, Rng& rng) {
  std::vector<Tensor> x = make_steps(n, 1, d, rng);
  for (Tensor& t : x) t.set_requires_grad(true);
  Tensor weight = Tensor::randn({d, d}, rng, 1 / std::sqrt(double(d)));
  const Tensor all = reshape(concat(x, 0), {1, n, d});
  const Tensor last = slice(attention(all, all, all), 1, n - 1, n);  // [1, 1, d]
  const Tensor state = recurrent(x, weight);                         // [1, d]
  r.exact(at("n", double(n)), "attention: sequential steps", 1, double(ways_through(last, x[0], "attention").longest));
  r.exact(at("n", double(n)), "attention: path length", 1, double(ways_through(last, x[0], "attention").shortest));
  r.exact(at("n", double(n)), "RNN: sequential steps", double(n), double(ways_through(state, x[0], "relu").longest));
  r.exact(at("n", double(n)), "RNN: path length", double(n), double(ways_through(state, x[0], "relu").shortest));
}

// Measured dots, and a line of the predicted power through their middle.
void draw(Result& r, const char* title, const char* axis, const std::vector<std::pair<const Timing*, std::string>>& all,
          const std::vector<double>& powers) {
  Plot plot{.title = title,
            .caption = "Dots: the shortest of several runs. Lines: the predicted power, at the height that fits best.",
            .x = Axis{.title = axis, .log = true},
            .y = Axis{.title = "seconds of one thread", .log = true}};
  for (size_t i = 0; i < all.size(); ++i) {
    const Timing& t = *all[i].first;
    const int color = static_cast<int>(i);
    plot.series.push_back(curve(all[i].second, {t.size.front(), t.size.back(), true}, color,
                                [&](double x) { return t.fitted(x, powers[i]); }));
    plot.series.push_back(dots("", t.size, t.seconds, color));
  }
  r.pictures.push_back(plot);
}

}  // namespace

Settings cost_settings() {
  Settings s;
  s.integer("length", 1024, "largest length n of the sweep over lengths", 64, 16384)
      .integer("dim", 64, "width d of the sweep over lengths", 1, 1024)
      .integer("window", 32, "keys on either side for windowed attention", 0, 1024)
      .integer("widest", 1024, "largest width of the sweep over widths", 16, 2048)
      .integer("seed", 1, "of the inputs");
  return s;
}

Result run_cost(const Settings& set) {
  const int64_t n = set.get_integer("length"), d = set.get_integer("dim"), widest = set.get_integer("widest"),
                window = set.get_integer("window");
  Rng rng(static_cast<uint64_t>(set.get_integer("seed")));
  Result r;
  r.claim =
      "Self-attention costs n²d work but one sequential step and a path of one step between any two positions; an "
      "RNN costs nd² work, n steps one after another and a path of n.";
  r.formula =
      "self-attention:  O(n^{2}d) work, O(1) steps, O(1) path;   windowed (w keys):  O(n w d) work\n"
      "RNN:  O(nd^{2}) work, O(n) steps, O(n) path";
  for (const int64_t length : {n / 16, n / 8, n / 4}) compare_paths(r, length, std::min<int64_t>(d, 16), rng);
  const Timing by_n = sweep(n, 4, [&](int64_t m) { return attention_run(m, d, -1, rng); });
  const Timing by_n_window = sweep(n, 4, [&](int64_t m) { return attention_run(m, d, window, rng); });
  const Timing by_n_rnn = sweep(n, 4, [&](int64_t m) { return recurrent_run(m, d, rng); });
  const int64_t short_n = std::max<int64_t>(16, n / 4);
  const Timing by_d = sweep(widest, 4, [&](int64_t w) { return attention_run(short_n, w, -1, rng); });
  const Timing by_d_rnn =
      sweep(widest, 3, [&](int64_t w) { return recurrent_run(std::max<int64_t>(4, short_n / 8), w, rng); });
  r.timed("n up to " + std::to_string(n), "attention: power of n", 2, by_n.power());
  r.timed("n up to " + std::to_string(n), "windowed attention: power of n", 1, by_n_window.power());
  r.timed("n up to " + std::to_string(n), "RNN: power of n", 1, by_n_rnn.power());
  r.timed("d up to " + std::to_string(widest), "attention: power of d", 1, by_d.power());
  r.timed("d up to " + std::to_string(widest), "RNN: power of d", 2, by_d_rnn.power());
  draw(r, "Time over the length", "length n",
       {{&by_n, "attention, n²"}, {&by_n_window, "windowed attention, n"}, {&by_n_rnn, "RNN, n"}}, {2, 1, 1});
  draw(r, "Time over the width", "width d", {{&by_d, "attention, d"}, {&by_d_rnn, "RNN, d²"}}, {1, 2});
  r.note(
      "Steps and paths are counted in the recorded operations themselves; the powers are slopes of log time, "
      "which caches, vector units and the cost of starting an operation bend.");
  r.note(
      "Attention is the cheaper of the two while n < d (without its projections and the RNN's input matrix, which cost "
      "O(nd²) each), and the only one of the two that a parallel machine can "
      "do in one go; beyond that the window (or a longer path) has to pay for the square.");
  return r;
}

}  // namespace qkv::lab
