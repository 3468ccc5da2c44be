// The keyword arguments that every attention function shares, as a ScoreRule.
#pragma once

#include <string>

#include "arrays.h"

namespace qkv::python {

/// The names of the keyword arguments, in the order rule_of takes their values.
py::tuple rule_names();
/// The rule that these values say; arrays among them are borrowed. Throws DTypeError, ConfigError.
ScoreRule rule_of(const py::tuple& values, Borrowed& arrays);

/// Values with a sentence of their own when they are of another type.
double number_of(const py::object& value, const char* name);
int64_t whole_number_of(const py::object& value, const char* name);
bool flag_of(const py::object& value, const char* name);
std::string text_of(const py::object& value, const char* name);

}  // namespace qkv::python
