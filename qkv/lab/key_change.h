// What happens to the output when one key changes: the exact change, its first order, and the library's answer.
#pragma once

#include "qkv/core/tensor.h"
#include "qkv/lab/experiment.h"

namespace qkv::lab {

/// One query over m keys, in f64: the steps are small and their squares smaller.
struct KeyLookup {
  Tensor q, keys, values;  // [1, d], [m, d], [m, d]
  double beta = 1;
};

/// The change when key a becomes k_a + ε: H' − H = s·(v_a − H), with δ = β q·ε and α the weight of key a before.
struct KeyChange {
  double delta = 0, weight = 0;
  double exact = 0;        // s = α(e^δ − 1) / (1 + α(e^δ − 1))
  double first_order = 0;  // αδ
  double bound = 0;     // of |s − αδ|: δ²/(12√3 (1 − α)), from the largest second derivative of the sigmoid
  double measured = 0;  // s, from two calls of the library's attention
  double sideways = 0;  // length of the part of the measured change that is not along v_a − H
  double new_weight = 0;  // measured weight of key a afterwards
};
KeyChange change_key(const KeyLookup& lookup, int64_t a, const Tensor& epsilon);

/// The same over draws ε ~ N(0, σ²I): H' − H = s·(v_a − H) with δ ~ N(0, spread²), spread = βσ|q|.
struct RandomKeyChange {
  double spread = 0;
  double mean = 0, variance = 0;                        // of s, by quadrature over δ
  double second_order_mean = 0, mean_bound = 0;         // ½α(1 − 2α)·spread², and how far off it can be
  double first_order_variance = 0, variance_bound = 0;  // α²·spread², likewise
  double measured_mean = 0, measured_variance = 0, mean_error = 0, variance_error = 0;  // with standard errors
  double measured_total = 0;  // trace of the covariance of H' over |v_a − H|²
};
RandomKeyChange change_key_randomly(const KeyLookup& lookup, int64_t a, double sigma, int64_t draws, Rng& rng);

/// Rows of one change: exact, first order, and the first-order error over δ².
void compare_change(Result& r, const std::string& at, const KeyChange& change);

}  // namespace qkv::lab
