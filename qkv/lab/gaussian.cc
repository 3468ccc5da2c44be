// Averages over a normal distribution by quadrature.
#include "qkv/lab/gaussian.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "qkv/base/budget.h"

namespace qkv::lab {
namespace {

// The positive half of the eight Gauss-Legendre nodes on [-1, 1].
constexpr QuadratureNode kLegendre8[] = {{0.1834346424956498, 0.3626837833783620},
                                         {0.5255324099163290, 0.3137066458778873},
                                         {0.7966664774136267, 0.2223810344533745},
                                         {0.9602898564975363, 0.1012285362903763}};
constexpr double kReach = 9;  // standard deviations; beyond lies 2e-19 of the mass

}  // namespace

std::vector<QuadratureNode> interval_nodes(double low, double high, int panels) {
  std::vector<QuadratureNode> nodes;
  const double half = (high - low) / (2 * panels);
  for (int p = 0; p < panels; ++p) {
    const double centre = low + (2 * p + 1) * half;
    for (int i = 3; i >= 0; --i) nodes.push_back({centre - half * kLegendre8[i].x, half * kLegendre8[i].weight});
    for (int i = 0; i < 4; ++i) nodes.push_back({centre + half * kLegendre8[i].x, half * kLegendre8[i].weight});
  }
  return nodes;
}

std::vector<QuadratureNode> normal_nodes(double mean, double sd, int panels) {
  if (sd <= 0) return {{mean, 1}};
  const double low = mean - kReach * sd, high = mean + kReach * sd;
  std::vector<QuadratureNode> nodes;
  if (low < 0 && high > 0) {
    const int below = std::clamp(static_cast<int>(panels * -low / (high - low)), 1, panels);
    nodes = interval_nodes(low, 0, below);
    const auto above = interval_nodes(0, high, std::max(1, panels - below));
    nodes.insert(nodes.end(), above.begin(), above.end());
  } else {
    nodes = interval_nodes(low, high, panels);
  }
  for (QuadratureNode& n : nodes) {
    const double z = (n.x - mean) / sd;
    n.weight *= std::exp(-z * z / 2) / (sd * std::sqrt(2 * std::numbers::pi));
  }
  return nodes;
}

double mean_entropy_of_normal_scores(double sigma, int m) {
  if (sigma <= 0) return std::log(m);
  // On the scale u = log s everything is a convolution of smooth functions with a Gaussian, for which equal steps
  // converge faster than any power of the step.
  const double step = std::min(0.25, sigma / 4);
  const int reach = static_cast<int>(std::ceil(kReach * sigma / step));
  const int first = -reach - static_cast<int>(40 / step), last = reach + static_cast<int>(6 / step);
  std::vector<double> bell, edge, bump;  // N(0,σ²)·step; e^{-s}; s e^{-s}
  for (int k = -reach; k <= reach; ++k) {
    const double z = k * step / sigma;
    bell.push_back(step / sigma / std::sqrt(2 * std::numbers::pi) * std::exp(-z * z / 2));
  }
  for (int i = first - reach; i <= last + reach; ++i) {
    const double s = std::exp(i * step);
    edge.push_back(std::exp(-s));
    bump.push_back(std::exp(i * step - s));
  }
  double log_sum = 0, mean_score = 0;
  for (int i = first; i <= last; ++i) {
    check_budget();
    const auto from = static_cast<size_t>(i - first);  // where the window u + y, |y| ≤ reach, begins
    double phi = 0, slope = 0;
    for (size_t k = 0; k < bell.size(); ++k) {
      const double y = (static_cast<double>(k) - reach) * step;
      phi += bell[k] * edge[from + k];
      slope += bell[k] * y * bump[from + k];
    }
    log_sum += step * (edge[from + static_cast<size_t>(reach)] - std::pow(phi, m));
    mean_score += step * m * slope * std::pow(phi, m - 1);
  }
  return log_sum - mean_score;  // entropy = log Z - Σ p z
}

}  // namespace qkv::lab
