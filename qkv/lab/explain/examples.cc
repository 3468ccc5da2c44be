// The built-in examples, small enough to follow by hand.
#include "qkv/base/error.h"
#include "qkv/lab/explain/explain.h"

namespace qkv::lab {

ExplainInput builtin_example(const std::string& name) {
  const Tensor x = Tensor::from({-2, 1, .5, 1, 1.5, -.5, -1.5, 1, -.5, -2, -2.5, 1.5}, {4, 3}, DType::f64);
  ExplainInput in;
  in.q = in.k = in.v = {"X", x};
  if (name == "query") {
    in.title = "One query on four keys that are also the values";
    in.q = {"q", Tensor::from({-2, 1, -1}, {1, 3}, DType::f64)};
    return in;
  }
  if (name == "self") {
    in.title = "Self-attention of four tokens, one head";
    in.w_q = Tensor::from({1, -1.5, 0, 2, -.5, -1}, {3, 2}, DType::f64);
    in.w_k = Tensor::from({-1.5, -1, 2.5, 0, .5, -1}, {3, 2}, DType::f64);
    in.w_v = Tensor::from({1, 2.5, -.5, -2, 0, -1}, {3, 2}, DType::f64);
    return in;
  }
  if (name == "heads") {
    in.title = "Self-attention of four tokens, two heads";
    in.w_q = Tensor::from({1, -1.5, 1, 1, 0, 2, 1, 1, -.5, -1, 1, 1}, {3, 4}, DType::f64);
    in.w_k = Tensor::from({-1.5, -1, 1, 1, 2.5, 0, 1, 1, .5, -1, 1, 1}, {3, 4}, DType::f64);
    in.w_v = Tensor::from({1, 2.5, 1, 1, -.5, -2, 1, 1, 0, -1, 1, 1}, {3, 4}, DType::f64);
    in.w_o = Tensor::from({-1, 1.5, 2, 0, -1, -2, 1, -1.5, 0, 2, 0, 1}, {4, 3}, DType::f64);
    in.heads = 2;
    return in;
  }
  throw ConfigError("--example: '" + name + "' is not one of: query, self, heads");
}

}  // namespace qkv::lab
