// Enumerations by name: one table each, which parsing, printing, help texts, errors and the page's choices read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "qkv/base/error.h"
#include "qkv/base/wording.h"

namespace qkv {

/// A value, its name on the command line, in files and in messages, and what a help text adds to the name.
template <class Enum>
struct NameRow {
  Enum value;
  const char* name;
  const char* meaning = "";
};

/// The table of an enumeration, specialised beside it: `what` is what a value is called in errors, `rows` has one row
/// for each value, in the order they are shown. Rows may be of another type that says more, with `value` and `name`.
template <class Enum>
struct Names;

/// "a, b, c", or with last = " or ": "a, b or c".
inline std::string listed(const std::vector<std::string>& names, const char* last = ", ") {
  std::string s;
  for (size_t i = 0; i < names.size(); ++i) s += (i == 0 ? "" : i + 1 == names.size() ? last : ", ") + names[i];
  return s;
}

/// Every name of the enumeration whose row `suits`.
template <class Enum, class Suits>
std::vector<std::string> choices(const Suits& suits) {
  std::vector<std::string> names;
  for (const auto& row : Names<Enum>::rows) {
    if (suits(row)) names.emplace_back(row.name);
  }
  return names;
}
/// Every name of the enumeration.
template <class Enum>
std::vector<std::string> choices() {
  return choices<Enum>([](const auto&) { return true; });
}

/// The row of a value.
template <class Enum>
constexpr const auto& row_of(Enum value) {
  for (const auto& row : Names<Enum>::rows) {
    if (row.value == value) return row;
  }
  throw Error(std::string("[names] a ") + Names<Enum>::what + " without a name");
}
/// The name of a value.
template <class Enum>
constexpr const char* name_of(Enum value) {
  return row_of(value).name;
}

/// "unknown task 'revers' (did you mean 'reverse'?); available: reverse, translate".
inline std::string unknown_name(const std::string& what, std::string_view name, const std::vector<std::string>& names) {
  return "unknown " + what + " '" + std::string(name) + "'" + did_you_mean(name, names) +
         "; available: " + listed(names);
}

/// The value of that name. Throws ConfigError listing the names there are.
template <class Enum>
Enum parse(std::string_view name) {
  for (const auto& row : Names<Enum>::rows) {
    if (row.name == name) return row.value;
  }
  throw ConfigError(unknown_name(Names<Enum>::what, name, choices<Enum>()));
}

}  // namespace qkv
