// The only JSON parser: with limits on size and depth, read through getters that check kind and range.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qkv/base/error.h"
#include "qkv/io/json_fwd.h"

namespace qkv {

/// Text that is not the JSON it should be. what() begins with where it came from.
class JsonError : public IoError {
 public:
  using IoError::IoError;
};

/// What is parsed: where it comes from and what it should be, for messages, and how much of it is taken.
struct JsonSource {
  std::string where;          // a path, or "the request"
  std::string what = "JSON";  // "WHERE: not WHAT" is what a syntax error says
  uint64_t most_bytes = uint64_t{1} << 24;
  size_t most_depth = 64;  // deeper values would end the process wherever they are copied, printed or destroyed
};

/// Throws JsonError: larger or deeper than allowed, not JSON, or an object with one name twice.
Json parse_json(std::string_view text, const JsonSource& source);
/// The same for a file; throws IoError when it cannot be read.
Json read_json(const std::string& path, const std::string& what, uint64_t most_bytes = uint64_t{1} << 24);

/// A name out of a file in quotes: on one line, of bounded length.
std::string quoted_name(std::string_view name);
/// A value as text, indented by `indent` spaces per level or on one line. Bytes that are not UTF-8 (a folder may have
/// any name) become U+FFFD.
std::string json_text(const Json& value, int indent = -1);
/// A figure as JSON holds it: "Infinity", "-Infinity" and "NaN" are strings, since JSON has no such numbers.
Json figure_json(double value);

/// One object of a parsed file. A getter throws JsonError "WHERE: 'rng.seed' is -1, expected …" when the member is
/// missing, of another kind or out of range. Refers to the value it was made from.
class JsonObject {
 public:
  static constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  JsonObject(const Json& value, std::string where) : JsonObject(value, std::move(where), "") {}

  bool has(const char* name) const { return value_->contains(name); }
  int64_t integer(const char* name, int64_t low = 0, int64_t high = kMost) const;
  /// Finite.
  double number(const char* name, double low = -kInfinity, double high = kInfinity) const;
  /// What figure_json() made; null, which older versions wrote for what is not finite, is NaN.
  double figure(const char* name) const;
  bool flag(const char* name) const;
  const std::string& text(const char* name) const;
  std::vector<std::string> texts(const char* name) const;
  std::vector<double> numbers(const char* name, double low = -kInfinity, double high = kInfinity) const;
  JsonObject object(const char* name) const;
  std::vector<JsonObject> objects(const char* name) const;
  /// Every member as a figure, in order.
  std::vector<std::pair<std::string, double>> figures() const;
  const Json& json() const { return *value_; }

 private:
  JsonObject(const Json& value, std::string where, std::string prefix);
  const Json& at(const char* name) const;
  const Json& list(const char* name) const;
  [[noreturn]] void refuse(const std::string& name, const Json& value, const std::string& expected) const;
  double checked(const std::string& name, const Json& value, double low, double high) const;
  double figure_in(const std::string& name, const Json& value) const;

  const Json* value_;
  std::string where_, prefix_;
};

}  // namespace qkv
