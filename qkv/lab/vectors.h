// Small helpers the experiments share: random keys in f64, the library's inputs in f32, plain formulas for predictions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "qkv/core/tensor.h"
#include "qkv/ops/attention.h"

namespace qkv::lab {

/// Throws ConfigError when `count` orthogonal vectors do not fit into `dim` dimensions; `what` names them.
void check_orthogonal(int64_t count, int64_t dim, const std::string& what);

/// n orthonormal rows in random directions; f64 [n, d], n ≤ d.
Tensor orthonormal(int64_t n, int64_t d, Rng& rng);
/// N(0,1) draws; f64 [n, d].
Tensor gaussian(int64_t n, int64_t d, Rng& rng);
/// Row i of x [n, d] → [1, d].
Tensor row(const Tensor& x, int64_t i);
/// Rows of x [n, d] in another order → [order.size(), d].
Tensor reordered(const Tensor& x, std::span<const int64_t> order);
/// x [L, D] as one batch of the library's f32 input → [1, L, D].
Tensor batch_of_one(const Tensor& x);
/// A result [1, L, D] or [1, 1, L, D] as f64 [L, D].
Tensor unbatched(const Tensor& x);

double dot(const Tensor& a, const Tensor& b);
double norm(const Tensor& x);
/// Largest |element|.
double largest(const Tensor& x);
/// norm(a - b); the dtypes may differ.
double distance(const Tensor& a, const Tensor& b);
/// largest(a - b); the dtypes may differ.
double largest_difference(const Tensor& a, const Tensor& b);

/// The rule softmax(β q·k).
ScoreRule with_scale(double beta);

/// exp(z_i) / Σ exp(z_j), by plain loops.
std::vector<double> plain_softmax(std::vector<double> z);
/// -Σ p log p in nats.
double plain_entropy(std::span<const double> p);

/// "t = 2.5".
std::string at(const char* name, double value);

}  // namespace qkv::lab
