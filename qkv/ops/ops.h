// Every differentiable operation of qkv: contracts here, forward and backward together in one function each.
//
// All ops accept f32 and f64 (one dtype per call) and strided inputs, return new contiguous tensors unless called
// a view, and throw ShapeError naming the op and the shapes. f64 runs the plain reference kernels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "qkv/base/activation.h"
#include "qkv/core/autograd.h"
#include "qkv/core/tensor.h"

namespace qkv {

// ---- Elementwise, with NumPy broadcasting -----------------------------------------------------------------------
Tensor add(const Tensor& a, const Tensor& b);  // a + b
Tensor sub(const Tensor& a, const Tensor& b);  // a - b
Tensor mul(const Tensor& a, const Tensor& b);  // a · b
Tensor div(const Tensor& a, const Tensor& b);  // a / b
/// scale·x + shift.
Tensor affine(const Tensor& x, double scale, double shift = 0);
Tensor exp(const Tensor& x);      // eˣ
Tensor log(const Tensor& x);      // natural logarithm
Tensor tanh(const Tensor& x);     // hyperbolic tangent
Tensor sigmoid(const Tensor& x);  // 1/(1 + e⁻ˣ)
Tensor relu(const Tensor& x);     // max(x, 0)
/// x·Φ(x), the exact (erf) form.
Tensor gelu(const Tensor& x);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator-(const Tensor& a) { return affine(a, -1); }
inline Tensor operator+(const Tensor& a, double s) { return affine(a, 1, s); }
inline Tensor operator+(double s, const Tensor& a) { return affine(a, 1, s); }
inline Tensor operator-(const Tensor& a, double s) { return affine(a, 1, -s); }
inline Tensor operator-(double s, const Tensor& a) { return affine(a, -1, s); }
inline Tensor operator*(const Tensor& a, double s) { return affine(a, s); }
inline Tensor operator*(double s, const Tensor& a) { return affine(a, s); }
inline Tensor operator/(const Tensor& a, double s) { return div(a, Tensor::full({}, s, a.dtype())); }
inline Tensor operator/(double s, const Tensor& a) { return div(Tensor::full({}, s, a.dtype()), a); }

/// Each element is zeroed with probability p and otherwise multiplied by 1/(1-p). The choice depends on (seed,
/// element index) alone. p = 0 returns x.
Tensor dropout(const Tensor& x, double p, uint64_t seed);

/// residual + dropout(x, p, seed), in one pass.
Tensor dropout_add(const Tensor& x, const Tensor& residual, double p, uint64_t seed);

// ---- Reductions --------------------------------------------------------------------------------------------------
Tensor sum(const Tensor& x);   // of all elements, shape []
Tensor mean(const Tensor& x);  // of all elements, shape []
/// Sum over one axis, which is removed (or kept as size 1).
Tensor sum(const Tensor& x, int axis, bool keep_axis = false);
/// Mean over one axis.
Tensor mean(const Tensor& x, int axis, bool keep_axis = false);
/// x summed over the axes along which `shape` broadcasts to x's shape.
Tensor sum_to(const Tensor& x, const Shape& shape);

// ---- Shape -------------------------------------------------------------------------------------------------------
/// Same elements, another shape; one size may be -1. A view when the strides allow it.
Tensor reshape(const Tensor& x, const Shape& shape);
/// Axes in a new order; a view.
Tensor permute(const Tensor& x, std::initializer_list<int> axes);
/// Two axes swapped; a view.
Tensor transpose(const Tensor& x, int axis_a, int axis_b);
/// Elements [begin, end) of one axis; a view. Negative positions count from the end.
Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t end);
/// Tensors joined along an existing axis.
Tensor concat(const std::vector<Tensor>& parts, int axis);
/// x itself when contiguous, otherwise a copy.
Tensor contiguous(const Tensor& x);
/// x repeated along axes of size 1 (a view with stride 0).
Tensor expand(const Tensor& x, const Shape& shape);

// ---- Products ----------------------------------------------------------------------------------------------------
/// a [..., M, K] · b [..., K, N] → [..., M, N]; leading axes broadcast.
Tensor matmul(const Tensor& a, const Tensor& b);

/// act(x Wᵀ + bias): x [..., I], weight [O, I], bias [O] or undefined → [..., O]. One pass over the output.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, Act act = Act::none);

// ---- Rows --------------------------------------------------------------------------------------------------------
Tensor softmax(const Tensor& x);      // over the last axis
Tensor log_softmax(const Tensor& x);  // log softmax(x), over the last axis
/// softmax over the last axis of x [B, Lq, Lk] with weights at positions ≥ the valid length exactly 0 and the others
/// summing to 1; a length of 0 gives a zero row. lens holds B lengths, or B·Lq for one per row.
Tensor masked_softmax(const Tensor& x, std::span<const int64_t> lens);
/// (x - mean)/√(var + eps)·gamma + beta over the last axis, gamma and beta [C].
Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps = 1e-5);

/// What a residual block passes on.
struct SumAndNorm {
  Tensor sum, norm;
};
/// s = x + residual and layer_norm(s), in one pass.
SumAndNorm add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& gamma, const Tensor& beta,
                          double eps = 1e-5);

/// Variants of the loss.
struct CrossEntropyOptions {
  double label_smoothing = 0;  // (1-s)·one-hot + s/V
  int64_t ignore = -1;         // targets equal to this count nothing
};
/// Mean over counted rows of -log softmax(logits)[target]: logits [..., V], one target per row → []. No counted
/// row gives 0 with zero gradient. Throws ShapeError on a target outside [0, V).
Tensor cross_entropy(const Tensor& logits, std::span<const int64_t> targets, const CrossEntropyOptions& options = {});

// ---- Look-up -----------------------------------------------------------------------------------------------------
/// Rows of table [V, C] by index → [ids.size(), C]. Throws ShapeError on an index outside the table.
Tensor embedding(const Tensor& table, std::span<const int64_t> ids);
/// Rows of x [N, C] in a new order, repeats allowed → [rows.size(), C]. An index of -1 gives a zero row.
Tensor gather_rows(const Tensor& x, std::span<const int64_t> rows);

}  // namespace qkv
