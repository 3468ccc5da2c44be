// The exceptions' classes, and which of qkv's errors becomes which.
#include "errors.h"

#include <new>

namespace qkv::python {
namespace {

namespace py = pybind11;

// Live as long as the process: a translator may be called while the interpreter ends.
struct Classes {
  PyObject *error, *shape, *io, *config, *dtype;
};
Classes classes;

PyObject* add_class(py::module_& m, const char* name, const char* doc, const py::tuple& bases) {
  PyObject* made = PyErr_NewExceptionWithDoc((std::string("qkv.") + name).c_str(), doc, bases.ptr(), nullptr);
  if (made == nullptr) throw py::error_already_set();
  m.add_object(name, py::reinterpret_borrow<py::object>(made));
  return made;
}

void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const ShapeError& e) {
    PyErr_SetString(classes.shape, e.what());
  } catch (const IoError& e) {
    PyErr_SetString(classes.io, e.what());
  } catch (const ConfigError& e) {
    PyErr_SetString(classes.config, e.what());
  } catch (const DTypeError& e) {
    PyErr_SetString(classes.dtype, e.what());
  } catch (const Error& e) {
    PyErr_SetString(classes.error, e.what());
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError, kOutOfMemory);
  } catch (const std::length_error&) {  // more elements than any memory holds
    PyErr_SetString(PyExc_MemoryError, kOutOfMemory);
  }
}

}  // namespace

void add_errors(py::module_& m) {
  const auto type = [](PyObject* o) { return py::reinterpret_borrow<py::object>(o); };
  classes.error = add_class(m, "Error", "Every error qkv reports: one line that says what is wrong and what to do.",
                            py::make_tuple(type(PyExc_Exception)));
  const auto both = [&](PyObject* base) { return py::make_tuple(type(classes.error), type(base)); };
  classes.shape = add_class(m, "ShapeError", "Arrays whose shapes or dtypes do not fit.", both(PyExc_ValueError));
  classes.config = add_class(m, "ConfigError", "A setting that makes no sense.", both(PyExc_ValueError));
  classes.io = add_class(m, "IoError", "A file that is missing, damaged or cannot be written.", both(PyExc_OSError));
  classes.dtype = add_class(m, "DTypeError", "An argument of a type the call does not take.", both(PyExc_TypeError));
  py::register_exception_translator(translate);
}

}  // namespace qkv::python
