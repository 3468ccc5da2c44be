// Optimizers: AdamW, Adam, SGD and Muon with PyTorch's semantics, one pass over all parameters per step.
#pragma once

#include <string>
#include <vector>

#include "qkv/base/names.h"
#include "qkv/core/parameter.h"

namespace qkv {

/// Updates a fixed list of parameters from their gradients. A parameter without a gradient is passed over and keeps
/// its own step count, as in PyTorch. No result depends on the number of threads.
class Optimizer {
 public:
  explicit Optimizer(std::vector<NamedParameter> parameters);
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update at learning rate lr with every gradient multiplied by grad_scale (clipping, accumulation).
  void step(double lr, double grad_scale = 1);
  /// Forgets all gradients.
  void zero_grad();

  const std::vector<NamedParameter>& parameters() const { return parameters_; }
  /// Everything a checkpoint must hold, sharing memory with the optimizer: "steps" [parameters] in f64, then one
  /// tensor per parameter and moment ("m.encoder.weight"). Loading is copy_from into these.
  std::vector<NamedParameter> state() const;

 protected:
  /// Adds one zeroed moment per parameter under `prefix`; returns its index for moment().
  size_t add_moment(const char* prefix);
  /// That moment of one parameter.
  const Tensor& moment(size_t index, size_t parameter) const { return moments_[index].tensors[parameter]; }

  /// Elements [begin, end) of one parameter: what one thread updates at a time.
  struct Block {
    size_t parameter = 0;
    int64_t begin = 0, end = 0;
  };
  /// The arguments of step(), and how many steps this parameter has had, this one included.
  struct Update {
    double lr = 0, grad_scale = 1;
    int64_t step = 1;
  };
  /// Called once per step before the blocks are updated: may replace a parameter's gradient (undefined: it has none) by
  /// a direction computed from the whole of it.
  virtual void prepare(std::vector<Tensor>& /*grads*/, double /*grad_scale*/) const {}
  /// Changes one block of a parameter (and of its moments); grad is the parameter's whole gradient, contiguous.
  virtual void update(const Block& block, const Tensor& grad, const Update& how) const = 0;

 private:
  struct Moment {
    std::string prefix;
    std::vector<Tensor> tensors;
  };

  std::vector<NamedParameter> parameters_;
  std::vector<Block> blocks_;
  std::vector<Moment> moments_;
  Tensor steps_;  // [parameters], f64
};

/// Constants of AdamW; the learning rate is an argument of step().
struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  bool l2 = false;            // torch.optim.Adam: decay enters the gradient
  bool decay_vectors = true;  // false: biases and norms (rank < 2) are not decayed
};

/// torch.optim.AdamW (or Adam, see l2). At a parameter's step t, with g = grad_scale · grad:
///   p -= lr·weight_decay·p;  m = β1 m + (1-β1) g;  v = β2 v + (1-β2) g²
///   p -= lr/(1-β1ᵗ) · m / (√v/√(1-β2ᵗ) + eps)
class AdamW : public Optimizer {
 public:
  /// Throws ConfigError on a value outside its range.
  AdamW(std::vector<NamedParameter> parameters, const AdamWOptions& options = {});

 protected:
  void update(const Block& block, const Tensor& grad, const Update& how) const override;
  const AdamWOptions& options() const { return options_; }

 private:
  AdamWOptions options_;
};

/// Constants of Sgd; the learning rate is an argument of step().
struct SgdOptions {
  double momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
  bool decay_vectors = true;
};

/// torch.optim.SGD.
class Sgd final : public Optimizer {
 public:
  /// Throws ConfigError on a value outside its range, or Nesterov without momentum or with dampening.
  Sgd(std::vector<NamedParameter> parameters, const SgdOptions& options = {});

 private:
  void update(const Block& block, const Tensor& grad, const Update& how) const override;
  SgdOptions options_;
};

/// Muon (torch.optim.Muon with adjust_lr_fn "match_rms_adamw"): the update of a matrix inside the model has all its
/// singular values near 1, so that what is rarely seen is learnt as fast as what is common. At g = grad_scale · grad:
///   m = μ m + (1-μ) g;  u = μ m + (1-μ) g;  p -= lr·weight_decay·p;  p -= lr · 0.2·√max(rows, columns) · orthogonal(u)
/// The parameters that are no `is_inner_matrix` are updated by AdamW, at the same learning rate.
class Muon final : public AdamW {
 public:
  /// The options are those of AdamW; weight_decay counts for all. Throws ConfigError on a value outside its range, and
  /// on parameters that are not f32.
  Muon(std::vector<NamedParameter> parameters, const AdamWOptions& options = {}, double momentum = 0.95);

 private:
  void prepare(std::vector<Tensor>& grads, double grad_scale) const override;
  void update(const Block& block, const Tensor& grad, const Update& how) const override;
  double momentum_;
  std::vector<bool> takes_;  // by parameter
};

/// A matrix inside a model: rank 2, and by its name neither a table of embeddings or positions ("embed…", "tokens",
/// "positions") nor the last layer ("head", "output").
bool is_inner_matrix(const NamedParameter& parameter);

/// The orthogonal matrix nearest to x [R, C], f32, roughly: five Newton-Schulz steps bring its singular values to 0.7
/// to 1.2. Throws ShapeError unless rank is 2.
Tensor orthogonal(const Tensor& x);

/// The optimizers by name; Adam is AdamW with l2.
enum class OptimizerKind : uint8_t { adamw, adam, sgd, muon };
template <>
struct Names<OptimizerKind> {
  static constexpr const char* what = "optimizer";
  static constexpr NameRow<OptimizerKind> rows[] = {{OptimizerKind::adamw, "adamw"},
                                                    {OptimizerKind::adam, "adam"},
                                                    {OptimizerKind::sgd, "sgd"},
                                                    {OptimizerKind::muon, "muon"}};
};

/// √Σ g² over all gradients, summed in double in a fixed order; NaN or Inf when a gradient holds one.
double gradient_norm(const std::vector<NamedParameter>& parameters);

/// The factor that brings a gradient of this norm within max_norm: min(1, max_norm/(norm + 1e-6)), as
/// torch.nn.utils.clip_grad_norm_; 1 when max_norm is 0 (no clipping).
double clip_factor(double norm, double max_norm);

}  // namespace qkv
