// The extension module qkv._qkv.
#include <pybind11/pybind11.h>

#include "errors.h"
#include "parts.h"
#include "qkv/base/parallel.h"
#include "qkv/core/memory.h"
#include "qkv/kernels/simd_target.h"
#include "qkv/version.h"
#include "rule.h"
#include "torch_tensors.h"

namespace py = pybind11;

PYBIND11_MODULE(_qkv, m) {
  using namespace qkv::python;
  m.doc() = "qkv's library; the package qkv is its face.";
  m.attr("__version__") = QKV_VERSION;
  add_errors(m);
  add_attention(m);
  add_positions(m);
  add_explain(m);
  add_runs(m);
  add_training(m);
  add_lab(m);
  add_show(m);
  add_torch_tensors(m);
  m.def("num_threads", qkv::num_threads);
  m.def("set_num_threads", [](const py::object& n) {
    const int64_t wanted = whole_number_of(n, "n");
    if (wanted < 1 || wanted > 4096) throw qkv::ConfigError("set_num_threads: n must be from 1 to 4096");
    const py::gil_scoped_release release;
    qkv::set_num_threads(static_cast<int>(wanted));
  });
  m.def("release_memory", qkv::release_cached_memory);
  m.def("simd_target", qkv::kernels::simd_target);
}
