// Parsing by nlohmann's SAX interface into a tree whose depth is bounded, and the getters that read it.
#include "qkv/io/json.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "qkv/base/budget.h"
#include "qkv/base/wording.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

// Builds the tree itself: nlohmann's own builder knows no depth limit, keeps the last of two equal names, and looks
// through all names of an ordered object for each that it adds.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(size_t most_depth) : most_depth_(most_depth) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (!open_.back().names.insert(name).second) return refuse("has " + quoted_name(name) + " twice");
    key_ = std::move(name);
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  Json take() { return std::move(root_); }
  /// What is wrong with text that is JSON; empty for text that is not.
  const std::string& problem() const { return problem_; }

 private:
  struct Level {
    Json* value;
    std::set<std::string> names;
  };
  bool refuse(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  Json* place(Json value) {
    constexpr size_t kOften = 1 << 12;
    if (++values_ % kOften == 0) check_budget();
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back().value;
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    auto& members = static_cast<Json::object_t::Container&>(parent.get_ref<Json::object_t&>());
    return &members.emplace_back(std::move(key_), std::move(value)).second;
  }
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json empty) {
    if (open_.size() == most_depth_) {
      return refuse("nested too deeply; at most " + std::to_string(most_depth_) + " levels are read");
    }
    open_.push_back({place(std::move(empty)), {}});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  size_t most_depth_, values_ = 0;
  Json root_;
  std::vector<Level> open_;
  std::string key_, problem_;
};

}  // namespace

Json parse_json(std::string_view text, const JsonSource& source) {
  if (text.size() > source.most_bytes) {
    throw JsonError(source.where + ": " + std::to_string(text.size()) + " bytes, more than the " +
                    std::to_string(source.most_bytes) + " allowed");
  }
  Builder builder(source.most_depth);
  if (Json::sax_parse(text, &builder)) return builder.take();
  throw JsonError(source.where + ": " + (builder.problem().empty() ? "not " + source.what : builder.problem()));
}

Json read_json(const std::string& path, const std::string& what, uint64_t most_bytes) {
  return parse_json(read_text(path, most_bytes), {.where = path, .what = what, .most_bytes = most_bytes});
}

std::string quoted_name(std::string_view name) {
  size_t shown = std::min<size_t>(name.size(), 120);
  while (shown > 0 && shown < name.size() && (name[shown] & 0xc0) == 0x80) --shown;  // not within a character
  std::string out;
  for (const char c : name.substr(0, shown)) out += (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) ? '?' : c;
  return "'" + out + (shown < name.size() ? "...'" : "'");
}

std::string json_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json figure_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

JsonObject::JsonObject(const Json& value, std::string where, std::string prefix)
    : value_(&value), where_(std::move(where)), prefix_(std::move(prefix)) {
  if (value.is_object()) return;
  throw JsonError(where_ + ": " + (prefix_.empty() ? "" : quoted_name(prefix_.substr(0, prefix_.size() - 1)) + " is ") +
                  "not a JSON object");
}

const Json& JsonObject::at(const char* name) const {
  const auto found = value_->find(name);
  if (found == value_->end()) throw JsonError(where_ + ": " + quoted_name(prefix_ + name) + " is missing");
  return *found;
}

void JsonObject::refuse(const std::string& name, const Json& value, const std::string& expected) const {
  std::string shown = value.is_array() ? "a list" : value.is_object() ? "an object" : "";
  if (value.is_string()) shown = quoted_name(value.get_ref<const std::string&>().substr(0, 40));
  if (shown.empty()) shown = value.dump();
  throw JsonError(where_ + ": " + quoted_name(prefix_ + name) + " is " + shown + ", expected " + expected);
}

int64_t JsonObject::integer(const char* name, int64_t low, int64_t high) const {
  const Json& value = at(name);
  const bool fits = value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= kMost);
  if (fits && value.get<int64_t>() >= low && value.get<int64_t>() <= high) return value.get<int64_t>();
  refuse(name, value,
         range_text("a whole number", static_cast<double>(low), high == kMost ? kInfinity : static_cast<double>(high)));
}

double JsonObject::checked(const std::string& name, const Json& value, double low, double high) const {
  const double number = value.is_number() ? value.get<double>() : std::nan("");
  if (!std::isfinite(number) || number < low || number > high) refuse(name, value, range_text("a number", low, high));
  return number;
}

double JsonObject::number(const char* name, double low, double high) const {
  return checked(name, at(name), low, high);
}

double JsonObject::figure_in(const std::string& name, const Json& value) const {
  if (value.is_null() || value == "NaN") return std::nan("");
  if (value == "Infinity" || value == "-Infinity") return value == "Infinity" ? kInfinity : -kInfinity;
  return checked(name, value, -kInfinity, kInfinity);
}

double JsonObject::figure(const char* name) const { return figure_in(name, at(name)); }

std::vector<std::pair<std::string, double>> JsonObject::figures() const {
  std::vector<std::pair<std::string, double>> out;
  for (const auto& member : value_->items()) out.emplace_back(member.key(), figure_in(member.key(), member.value()));
  return out;
}

bool JsonObject::flag(const char* name) const {
  const Json& value = at(name);
  if (!value.is_boolean()) refuse(name, value, "true or false");
  return value.get<bool>();
}

const std::string& JsonObject::text(const char* name) const {
  const Json& value = at(name);
  if (!value.is_string()) refuse(name, value, "text");
  return value.get_ref<const std::string&>();
}

const Json& JsonObject::list(const char* name) const {
  const Json& value = at(name);
  if (!value.is_array()) refuse(name, value, "a list");
  return value;
}

std::vector<std::string> JsonObject::texts(const char* name) const {
  std::vector<std::string> out;
  for (const Json& value : list(name)) {
    if (!value.is_string()) refuse(name, value, "a list of texts");
    out.push_back(value.get<std::string>());
  }
  return out;
}

std::vector<double> JsonObject::numbers(const char* name, double low, double high) const {
  std::vector<double> out;
  for (const Json& value : list(name)) out.push_back(checked(name, value, low, high));
  return out;
}

JsonObject JsonObject::object(const char* name) const { return {at(name), where_, prefix_ + name + "."}; }

std::vector<JsonObject> JsonObject::objects(const char* name) const {
  std::vector<JsonObject> out;
  for (const Json& value : list(name)) out.push_back({value, where_, prefix_ + name + "."});
  return out;
}

}  // namespace qkv
