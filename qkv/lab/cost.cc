// Experiment: work, sequential steps and path length of self-attention and of a recurrent layer, measured.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>

#include "qkv/lab/experiments.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

// h_t = tanh(W h_{t-1} + x_t), the plainest recurrent layer; x is a list of rows [1, d].
Tensor recurrent(const std::vector<Tensor>& x, const Tensor& weight) {
  Tensor h = Tensor::zeros({1, weight.dim(0)});
  for (const Tensor& step : x) h = tanh(linear(h, weight) + step);
  return h;  // [1, d]
}

std::vector<Tensor> make_rows(int64_t n, int64_t d, Rng& rng) {
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < n; ++i) rows.push_back(Tensor::randn({1, d}, rng));
  return rows;
}

// Shortest of several runs, in seconds: the one the rest of the machine disturbed least.
template <class Fn>
double best_time(Fn&& run) {
  using Clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::infinity(), spent = 0;
  for (int i = 0; i < 20 && (i < 3 || spent < 0.05); ++i) {
    const auto start = Clock::now();
    run();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::min(best, seconds);
    spent += seconds;
  }
  return best;
}

struct Timing {
  std::vector<double> size, seconds;
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

double attention_time(int64_t n, int64_t d, int64_t window, Rng& rng) {
  const Tensor x = Tensor::randn({1, n, d}, rng);
  ScoreRule rule;
  rule.window_left = rule.window_right = window;
  return best_time([&] { attention(x, x, x, rule); });
}

double recurrent_time(int64_t n, int64_t d, Rng& rng) {
  const std::vector<Tensor> x = make_rows(n, d, rng);
  const Tensor weight = Tensor::randn({d, d}, rng, 1 / std::sqrt(double(d)));
  return best_time([&] { recurrent(x, weight); });
}

template <class Fn>
Timing sweep(int64_t largest_size, int points, Fn&& time_of) {
  Timing t;
  for (int i = points - 1; i >= 0; --i) {
    const int64_t size = std::max<int64_t>(1, largest_size >> i);
    t.size.push_back(double(size));
    t.seconds.push_back(time_of(size));
  }
  return t;
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
  std::vector<Tensor> x = make_rows(n, d, rng);
  for (Tensor& t : x) t.set_requires_grad(true);
  Tensor weight = Tensor::randn({d, d}, rng, 1 / std::sqrt(double(d)));
  const Tensor all = reshape(concat(x, 0), {1, n, d});
  const Tensor last = slice(attention(all, all, all), 1, n - 1, n);  // [1, 1, d]
  const Tensor state = recurrent(x, weight);                         // [1, d]
  r.exact(at("n", double(n)), "attention: steps one after another", 1,
          double(ways_through(last, x[0], "attention").longest));
  r.exact(at("n", double(n)), "attention: path from first to last", 1,
          double(ways_through(last, x[0], "attention").shortest));
  r.exact(at("n", double(n)), "RNN: steps one after another", double(n),
          double(ways_through(state, x[0], "tanh").longest));
  r.exact(at("n", double(n)), "RNN: path from first to last", double(n),
          double(ways_through(state, x[0], "tanh").shortest));
}

// Measured dots, and a line of the predicted power through the last of them.
void draw(Result& r, const char* title, const char* axis, const std::vector<std::pair<const Timing*, std::string>>& all,
          const std::vector<double>& powers) {
  Plot plot{.title = title,
            .caption = "Dots: the shortest of several runs. Lines: the predicted power, through the last dot.",
            .x = {.title = axis, .log = true},
            .y = {.title = "seconds", .log = true}};
  for (size_t i = 0; i < all.size(); ++i) {
    const Timing& t = *all[i].first;
    const int color = static_cast<int>(i);
    plot.series.push_back(curve(all[i].second, {t.size.front(), t.size.back(), true}, color,
                                [&](double x) { return t.seconds.back() * std::pow(x / t.size.back(), powers[i]); }));
    plot.series.push_back(dots("", t.size, t.seconds, color));
  }
  r.pictures.push_back(plot);
}

}  // namespace

Settings cost_settings() {
  Settings s;
  s.integer("length", 2048, "largest length n of the sweep over lengths", 64, 16384)
      .integer("dim", 64, "width d of the sweep over lengths", 1, 1024)
      .integer("window", 32, "keys on either side for windowed attention", 0, 1024)
      .integer("widest", 512, "largest width of the sweep over widths", 16, 2048)
      .integer("seed", 1, "of the inputs");
  return s;
}

Result run_cost(const Settings& set) {
  const int64_t n = set.get_integer("length"), d = set.get_integer("dim"), widest = set.get_integer("widest"),
                window = set.get_integer("window");
  Rng rng(static_cast<uint64_t>(set.get_integer("seed")));
  Result r;
  r.claim =
      "Self-attention costs n²d work but one sequential step and a path of one step between any two positions; an RNN "
      "costs nd² work, n steps one after another and a path of n.";
  r.formula =
      "self-attention:  O(n^{2}d) work, O(1) steps, O(1) path;   windowed (w keys):  O(nwd) work\n"
      "RNN:  O(nd^{2}) work, O(n) steps, O(n) path";
  for (const int64_t length : {n / 32, n / 16, n / 8}) compare_paths(r, length, std::min<int64_t>(d, 16), rng);
  const NoGrad no_grad;
  const Timing by_n = sweep(n, 4, [&](int64_t m) { return attention_time(m, d, -1, rng); });
  const Timing by_n_window = sweep(n, 4, [&](int64_t m) { return attention_time(m, d, window, rng); });
  const Timing by_n_rnn = sweep(n, 4, [&](int64_t m) { return recurrent_time(m, d, rng); });
  const int64_t short_n = std::max<int64_t>(16, n / 8);
  const Timing by_d = sweep(widest, 4, [&](int64_t w) { return attention_time(short_n, w, -1, rng); });
  const Timing by_d_rnn = sweep(widest, 3, [&](int64_t w) { return recurrent_time(short_n / 4, w, rng); });
  r.timed("n up to " + std::to_string(n), "attention: power of n", 2, by_n.power());
  r.timed("n up to " + std::to_string(n), "windowed attention: power of n", 1, by_n_window.power());
  r.timed("n up to " + std::to_string(n), "RNN: power of n", 1, by_n_rnn.power());
  r.timed("d up to " + std::to_string(widest), "attention: power of d", 1, by_d.power());
  r.timed("d up to " + std::to_string(widest), "RNN: power of d", 2, by_d_rnn.power());
  draw(r, "Time over the length", "length n",
       {{&by_n, "attention, n²"}, {&by_n_window, "windowed attention, n"}, {&by_n_rnn, "RNN, n"}}, {2, 1, 1});
  draw(r, "Time over the width", "width d", {{&by_d, "attention, d"}, {&by_d_rnn, "RNN, d²"}}, {1, 2});
  r.note(
      "Steps and paths are counted in the recorded operations themselves; the powers are slopes of log time, which "
      "caches, vector units and the cost of starting an operation bend.");
  r.note(
      "Attention is the cheaper of the two while n < d, and the only one of the two that a parallel machine can do in "
      "one go; beyond that the window (or a longer path) has to pay for the square.");
  return r;
}

}  // namespace qkv::lab
