// What the module consists of, one file each.
#pragma once

#include <pybind11/pybind11.h>

namespace qkv::python {

void add_attention(pybind11::module_& m);
void add_positions(pybind11::module_& m);
void add_explain(pybind11::module_& m);
void add_runs(pybind11::module_& m);
void add_training(pybind11::module_& m);
void add_lab(pybind11::module_& m);
void add_show(pybind11::module_& m);

}  // namespace qkv::python
