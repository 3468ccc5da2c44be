// A trained tensor with its name: what optimizers and files work on.
#pragma once

#include <string>

#include "qkv/core/tensor.h"

namespace qkv {

/// A parameter of a module, or a part of an optimizer's state, under its dotted path ("encoder.0.query.weight").
struct NamedParameter {
  std::string name;
  Tensor value;  // shares memory with its owner's
};

}  // namespace qkv
