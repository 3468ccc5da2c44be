// LSTM and GRU steps against plain loops, and the plain loops against differences.
#include "qkv/kernels/gates.h"

#include "kernels/kernel_testing.h"

namespace qkv::kernels {
namespace {

template <class T>
struct Lstm {
  int64_t rows, H;
  std::vector<T> gates, c_prev, c, h, d_h, d_c, d_gates, d_c_prev;
  bool state;

  Lstm(int64_t r, int64_t width, bool with_state) : rows(r), H(width), state(with_state) {
    gates = random_values<T>(rows * 4 * H, 1, 2);
    c_prev = random_values<T>(rows * H, 2);
    d_h = random_values<T>(rows * H, 3);
    d_c = random_values<T>(rows * H, 4);
    c = d_c_prev = std::vector<T>(c_prev.size());
    h = std::vector<T>(c_prev.size() * 2);  // rows of h lie in a matrix twice as wide
    d_gates = std::vector<T>(gates.size());
  }
  LstmStep<T> forward() {
    return {.rows = rows,
            .H = H,
            .gates = {gates.data(), 4 * H},
            .c_prev = {state ? c_prev.data() : nullptr, H},
            .c = {c.data(), H},
            .h = {h.data(), 2 * H}};
  }
  LstmStepBackward<T> backward() {
    return {.rows = rows,
            .H = H,
            .gates = {gates.data(), 4 * H},
            .c_prev = {state ? c_prev.data() : nullptr, H},
            .c = {c.data(), H},
            .d_h = {d_h.data(), H},
            .d_c = {state ? d_c.data() : nullptr, H},
            .d_gates = {d_gates.data(), 4 * H},
            .d_c_prev = {d_c_prev.data(), H}};
  }
};

template <class T>
struct Gru {
  int64_t rows, H;
  std::vector<T> x_gates, h_gates, h_prev, saved, h, d_h, d_x_gates, d_h_gates, d_h_prev;
  bool state;

  Gru(int64_t r, int64_t width, bool with_state) : rows(r), H(width), state(with_state) {
    x_gates = random_values<T>(rows * 3 * H, 5, 2);
    h_gates = random_values<T>(rows * 3 * H, 6, 2);
    h_prev = random_values<T>(rows * H, 7);
    d_h = random_values<T>(rows * H, 8);
    h = d_h_prev = std::vector<T>(h_prev.size());
    saved = std::vector<T>(h_prev.size() * 4);
    d_x_gates = d_h_gates = std::vector<T>(x_gates.size());
  }
  GruStep<T> forward() {
    return {.rows = rows,
            .H = H,
            .x_gates = {x_gates.data(), 3 * H},
            .h_gates = {h_gates.data(), 3 * H},
            .h_prev = {state ? h_prev.data() : nullptr, H},
            .saved = {saved.data(), 4 * H},
            .h = {h.data(), H}};
  }
  GruStepBackward<T> backward() {
    return {.rows = rows,
            .H = H,
            .saved = {saved.data(), 4 * H},
            .h_prev = {state ? h_prev.data() : nullptr, H},
            .d_h = {d_h.data(), H},
            .d_x_gates = {d_x_gates.data(), 3 * H},
            .d_h_gates = {d_h_gates.data(), 3 * H},
            .d_h_prev = {d_h_prev.data(), H}};
  }
};

struct Size {
  int64_t rows, H;
};
constexpr Size kSizes[] = {{1, 1}, {3, 5}, {2, 16}, {7, 33}, {70, 100}};

class GatesTest : public EveryTarget {};

TEST_P(GatesTest, LstmMatchesPlainLoops) {
  for (const auto [rows, H] : kSizes)
    for (const bool state : {false, true}) {
      Lstm<float> fast(rows, H, state);
      Lstm<double> plain(rows, H, state);
      lstm_step(fast.forward());
      reference::lstm_step(plain.forward());
      expect_close(fast.gates, plain.gates, 1e-6, 1e-7, "gates");
      expect_close(fast.c, plain.c, 1e-6, 1e-6, "c");
      expect_close(fast.h, plain.h, 2e-6, 1e-6, "h");
      lstm_step_backward(fast.backward());
      reference::lstm_step_backward(plain.backward());
      expect_close(fast.d_gates, plain.d_gates, 1e-5, 2e-6, "d_gates");
      expect_close(fast.d_c_prev, plain.d_c_prev, 1e-5, 1e-6, "d_c_prev");
    }
}

TEST_P(GatesTest, GruMatchesPlainLoops) {
  for (const auto [rows, H] : kSizes)
    for (const bool state : {false, true}) {
      Gru<float> fast(rows, H, state);
      Gru<double> plain(rows, H, state);
      gru_step(fast.forward());
      reference::gru_step(plain.forward());
      expect_close(fast.saved, plain.saved, 2e-6, 1e-6, "saved");
      expect_close(fast.h, plain.h, 2e-6, 1e-6, "h");
      gru_step_backward(fast.backward());
      reference::gru_step_backward(plain.backward());
      expect_close(fast.d_x_gates, plain.d_x_gates, 1e-5, 2e-6, "d_x_gates");
      expect_close(fast.d_h_gates, plain.d_h_gates, 1e-5, 2e-6, "d_h_gates");
      expect_close(fast.d_h_prev, plain.d_h_prev, 1e-5, 1e-6, "d_h_prev");
    }
}

TEST_P(GatesTest, SameBitsForAnyNumberOfThreads) {
  expect_same_bits_for_any_threads([] {
    Lstm<float> l(200, 40, true);
    lstm_step(l.forward());
    lstm_step_backward(l.backward());
    Gru<float> g(200, 40, true);
    gru_step(g.forward());
    gru_step_backward(g.backward());
    std::vector<float> all;
    for (const auto* v : {&l.h, &l.c, &l.d_gates, &g.h, &g.d_x_gates, &g.d_h_gates})
      all.insert(all.end(), v->begin(), v->end());
    return all;
  });
}

INSTANTIATE_TEST_SUITE_P(Targets, GatesTest, testing::ValuesIn(simd_targets()), target_name);

double difference(double& x, const std::function<double()>& value) {
  const double h = 1e-6, kept = x;
  x = kept + h;
  const double up = value();
  x = kept - h;
  const double down = value();
  x = kept;
  return (up - down) / (2 * h);
}

TEST(GatesReference, LstmGradientMatchesDifferences) {
  Lstm<double> l(2, 3, true);
  const auto inputs = l.gates;
  auto leaf = inputs;
  const auto value = [&] {
    l.gates = leaf;  // forward replaces them
    reference::lstm_step(l.forward());
    double total = 0;
    for (int64_t r = 0; r < 2; ++r)
      for (int64_t j = 0; j < 3; ++j) {
        const auto at = static_cast<size_t>(r * 3 + j);
        total += l.h[static_cast<size_t>(r * 6 + j)] * l.d_h[at] + l.c[at] * l.d_c[at];
      }
    return total;
  };
  value();
  reference::lstm_step_backward(l.backward());
  for (size_t i = 0; i < leaf.size(); ++i) EXPECT_NEAR(l.d_gates[i], difference(leaf[i], value), 1e-7);
  for (size_t i = 0; i < l.c_prev.size(); ++i) EXPECT_NEAR(l.d_c_prev[i], difference(l.c_prev[i], value), 1e-7);
}

TEST(GatesReference, GruGradientMatchesDifferences) {
  Gru<double> g(2, 3, true);
  const auto value = [&] {
    reference::gru_step(g.forward());
    double total = 0;
    for (size_t i = 0; i < g.h.size(); ++i) total += g.h[i] * g.d_h[i];
    return total;
  };
  value();
  reference::gru_step_backward(g.backward());
  for (size_t i = 0; i < g.x_gates.size(); ++i) {
    EXPECT_NEAR(g.d_x_gates[i], difference(g.x_gates[i], value), 1e-7);
    EXPECT_NEAR(g.d_h_gates[i], difference(g.h_gates[i], value), 1e-7);
  }
  for (size_t i = 0; i < g.h_prev.size(); ++i) EXPECT_NEAR(g.d_h_prev[i], difference(g.h_prev[i], value), 1e-7);
}

}  // namespace
}  // namespace qkv::kernels
