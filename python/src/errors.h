// qkv's exceptions in Python: each keeps its sentence and is also the built-in exception that callers expect.
#pragma once

#include <pybind11/pybind11.h>

#include "qkv/base/error.h"

namespace qkv::python {

/// An argument of a type that the call does not take.
class DTypeError : public Error {
 public:
  using Error::Error;
};

void add_errors(pybind11::module_& m);

}  // namespace qkv::python
