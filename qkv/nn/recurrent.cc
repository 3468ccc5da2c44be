// Stacks recurrent ops into LSTM and GRU modules.
#include "qkv/nn/recurrent.h"

#include <cmath>

#include "qkv/base/error.h"

namespace qkv {

RecurrentWeights recurrent_weights(CellKind cell, int64_t input, int64_t hidden, Rng& rng) {
  check_size("[recurrent] input width", input);
  check_size("[recurrent] hidden width", hidden);
  const int64_t G = (cell == CellKind::lstm ? 4 : 3) * hidden;
  const double bound = 1.0 / std::sqrt(static_cast<double>(hidden));
  const auto draw = [&](const Shape& shape) { return parameter(Tensor::uniform(shape, rng, -bound, bound)); };
  RecurrentWeights w;
  w.w_ih = draw({G, input});
  w.w_hh = draw({G, hidden});
  w.b_ih = draw({G});
  w.b_hh = draw({G});
  if (cell == CellKind::lstm) {
    for (int64_t j = hidden; j < 2 * hidden; ++j) {
      w.b_ih.f32()[j] = 1;
      w.b_hh.f32()[j] = 0;
    }
  }
  return w;
}

void visit_weights(Visitor& see, const std::string& prefix, const std::string& suffix, RecurrentWeights& weights) {
  see(prefix + "weight_ih" + suffix, weights.w_ih);
  see(prefix + "weight_hh" + suffix, weights.w_hh);
  see(prefix + "bias_ih" + suffix, weights.b_ih);
  see(prefix + "bias_hh" + suffix, weights.b_hh);
}

Recurrent::Recurrent(const RecurrentConfig& config, Rng& rng) : config_(config), dropout_(config.dropout) {
  check_size("[recurrent] layers", config.layers);
  for (int64_t l = 0; l < config.layers; ++l) {
    const int64_t input = l == 0 ? config.input : width();
    forward_.push_back(recurrent_weights(config.cell, input, config.hidden, rng));
    if (config.bidirectional) backward_.push_back(recurrent_weights(config.cell, input, config.hidden, rng));
  }
}

RecurrentOutput Recurrent::forward(const RecurrentInput& x, const Ragged& batch, Context& ctx,
                                   const std::vector<RecurrentState>& initial) const {
  if (!initial.empty() && initial.size() != forward_.size()) {
    throw ShapeError("[recurrent] " + std::to_string(initial.size()) + " initial states for " +
                     std::to_string(forward_.size()) + " layers");
  }
  RecurrentOutput result;
  RecurrentInput at = x;
  for (size_t l = 0; l < forward_.size(); ++l) {
    if (l > 0) at = dropout_.forward(at.rows, ctx);
    const RecurrentResult ahead =
        recurrent(config_.cell, at, batch, forward_[l], initial.empty() ? RecurrentState{} : initial[l]);
    result.forward.push_back(ahead.state);
    if (config_.bidirectional) {
      const RecurrentResult back = recurrent(config_.cell, at, batch, backward_[l], {}, true);
      result.backward.push_back(back.state);
      at = concat({ahead.out, back.out}, 1);
    } else {
      at = ahead.out;
    }
  }
  result.out = at.rows;
  return result;
}

void Recurrent::visit(Visitor& see) {
  for (size_t l = 0; l < forward_.size(); ++l) {
    const std::string suffix = "_l" + std::to_string(l);
    visit_weights(see, "", suffix, forward_[l]);
    if (config_.bidirectional) visit_weights(see, "", suffix + "_reverse", backward_[l]);
  }
}

}  // namespace qkv
