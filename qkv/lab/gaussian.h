// Averages over a normal distribution by quadrature: the exact side of the sampled experiments.
#pragma once

#include <vector>

namespace qkv::lab {

struct QuadratureNode {
  double x = 0, weight = 0;  // E[f(X)] ≈ Σ weight·f(x)
};

/// Nodes for X ~ N(mean, sd²): Gauss-Legendre over mean ± 9 sd, panels that never straddle 0, so that the nodes with
/// x < 0 average over the negative draws alone. A single node for sd = 0.
std::vector<QuadratureNode> normal_nodes(double mean, double sd, int panels);

/// Gauss-Legendre nodes on [low, high] cut into equal panels; the weights sum to high - low.
std::vector<QuadratureNode> interval_nodes(double low, double high, int panels);

/// Mean entropy (nats) of softmax(σ·z) over m independent z ~ N(0,1): ln m at σ = 0, near 0 for large σ.
/// From E log Σe^{σz} = ∫ (e^{-s} - φ(s)^m)/s ds and its derivative in σ, with φ(s) = E e^{-s e^{σz}}.
double mean_entropy_of_normal_scores(double sigma, int m);

}  // namespace qkv::lab
