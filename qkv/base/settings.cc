// Declared options: parsing, limits and look-up.
#include "qkv/base/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <type_traits>
#include <utility>

#include "qkv/base/error.h"
#include "qkv/base/read_number.h"
#include "qkv/base/utf8.h"

namespace qkv {
namespace {

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

[[noreturn]] void refuse(const Setting& s, std::string_view value, const std::string& expected) {
  constexpr size_t kShown = 120;  // a message is one line; some values come from files of others
  std::string text(value.substr(0, kShown));
  if (value.size() > kShown) {
    if (const int64_t cut = first_invalid_utf8(text); cut >= 0) text.resize(static_cast<size_t>(cut));
    text += "...";
  }
  throw ConfigError("--" + s.name + ": '" + text + "' is not " + expected);
}

template <class T>
T parsed(const Setting& s, std::string_view value, const char* kind) {
  T out{};
  const char *const first = value.data(), *const last = first + value.size();
  bool whole = !value.empty();
  if constexpr (std::is_same_v<T, double>) {
    whole = whole && read_number(first, last, out) == last;
  } else {
    const auto [end, error] = std::from_chars(first, last, out);
    whole = error == std::errc() && end == last;
  }
  const auto v = static_cast<double>(out);
  if (!whole || !std::isfinite(v) || v < s.low || v > s.high) refuse(s, value, range_text(kind, s.low, s.high));
  return out;
}

void check(const Setting& s, std::string_view value) {
  switch (s.kind) {
    case SettingKind::integer:
      parsed<int64_t>(s, value, "a whole number");
      break;
    case SettingKind::number:
      parsed<double>(s, value, "a number");
      break;
    case SettingKind::flag:
      if (value != "true" && value != "false") refuse(s, value, "true or false");
      break;
    case SettingKind::choice:
      for (const std::string& c : s.choices) {
        if (c == value) return;
      }
      refuse(s, value, "one of: " + listed(s.choices) + did_you_mean(value, s.choices));
    case SettingKind::text:
    case SettingKind::path:
      break;
  }
}

}  // namespace

Settings& Settings::declare(Setting setting) {
  if (has(setting.name)) throw ConfigError("setting '" + setting.name + "' declared twice");
  check(setting, setting.value);
  if (setting.group.empty()) setting.group = group_;
  all_.push_back(std::move(setting));
  return *this;
}

Settings& Settings::group(std::string name) {
  group_ = std::move(name);
  return *this;
}

Settings& Settings::integer(std::string name, int64_t value, std::string help, double low, double high) {
  return declare({std::move(name), std::to_string(value), std::move(help), SettingKind::integer, low, high, {}});
}
Settings& Settings::number(std::string name, double value, std::string help, double low, double high) {
  return declare({std::move(name), shown(value), std::move(help), SettingKind::number, low, high, {}});
}
Settings& Settings::text(std::string name, std::string value, std::string help) {
  return declare({.name = std::move(name), .value = std::move(value), .help = std::move(help), .choices = {}});
}
Settings& Settings::path(std::string name, std::string value, std::string help) {
  return declare({.name = std::move(name),
                  .value = std::move(value),
                  .help = std::move(help),
                  .kind = SettingKind::path,
                  .choices = {}});
}
Settings& Settings::flag(std::string name, bool value, std::string help) {
  return declare({.name = std::move(name),
                  .value = value ? "true" : "false",
                  .help = std::move(help),
                  .kind = SettingKind::flag,
                  .choices = {}});
}
Settings& Settings::choice(std::string name, std::string value, std::vector<std::string> choices, std::string help) {
  return declare({.name = std::move(name),
                  .value = std::move(value),
                  .help = std::move(help),
                  .kind = SettingKind::choice,
                  .choices = std::move(choices)});
}

Setting& Settings::declared(std::string_view name) {
  for (Setting& s : all_) {
    if (s.name == name) return s;
  }
  std::vector<std::string> names;
  for (const Setting& s : all_) names.push_back(s.name);
  throw ConfigError(unknown_name("setting", name, names));
}

Settings& Settings::when(std::vector<std::string> options, std::string_view choice, std::string_view name,
                         std::string_view value) {
  Setting& s = declared(name);
  check(s, value);
  s.given = false;
  const auto first = std::find_if(presets_.begin(), presets_.end(), [&](const Preset& p) { return p.name == name; });
  const std::string usual = first == presets_.end() ? s.value : first->usual;
  presets_.push_back({std::move(options), std::string(choice), s.name, std::string(value), usual});
  settle(s);
  return *this;
}

bool Settings::applies(const Preset& preset) {
  return std::all_of(preset.options.begin(), preset.options.end(),
                     [&](const std::string& option) { return declared(option).value == preset.choice; });
}

Settings& Settings::open_to_clients(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    Setting& s = declared(name);
    if (s.kind == SettingKind::path) throw ConfigError("setting '" + s.name + "' names a file: no client may set it");
    s.client = true;
  }
  return *this;
}

void Settings::set_by_client(std::string_view name, std::string_view value) {
  if (!declared(name).client) {
    std::vector<std::string> open;
    for (const Setting& s : all_) {
      if (s.client) open.push_back(s.name);
    }
    throw ConfigError("setting '" + std::string(name) + "' is not open to clients; those that are: " + listed(open));
  }
  set(name, value);
}

void Settings::set(std::string_view name, std::string_view value) {
  Setting& s = declared(name);
  check(s, value);
  s.value = value;
  s.given = true;
  for (const Preset& p : presets_) {
    if (std::find(p.options.begin(), p.options.end(), name) != p.options.end()) settle(declared(p.name));
  }
}

void Settings::settle(Setting& setting) {
  if (setting.given) return;
  bool usual = true;
  for (const Preset& p : presets_) {
    if (p.name != setting.name) continue;
    if (std::exchange(usual, false)) setting.value = p.usual;
    if (applies(p)) setting.value = p.value;
  }
}

Settings& Settings::include(const Settings& other) {
  for (const Setting& s : other.all_) declare(s);
  presets_.insert(presets_.end(), other.presets_.begin(), other.presets_.end());
  return *this;
}

bool Settings::has(std::string_view name) const {
  for (const Setting& s : all_) {
    if (s.name == name) return true;
  }
  return false;
}

const Setting& Settings::find(std::string_view name, SettingKind kind) const {
  for (const Setting& s : all_) {
    const bool texts = kind == SettingKind::text && (s.kind == SettingKind::choice || s.kind == SettingKind::path);
    if (s.name == name && (s.kind == kind || texts)) return s;
  }
  throw ConfigError("no setting '" + std::string(name) + "' of that kind");
}

int64_t Settings::get_integer(std::string_view name) const {
  const Setting& s = find(name, SettingKind::integer);
  return parsed<int64_t>(s, s.value, "a whole number");
}
double Settings::get_number(std::string_view name) const {
  const Setting& s = find(name, SettingKind::number);
  return parsed<double>(s, s.value, "a number");
}
const std::string& Settings::get_text(std::string_view name) const { return find(name, SettingKind::text).value; }
bool Settings::get_flag(std::string_view name) const { return find(name, SettingKind::flag).value == "true"; }

}  // namespace qkv
