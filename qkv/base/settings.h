// Settings: a task's or experiment's options, declared once with default, help and limits.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/base/names.h"

namespace qkv {

enum class SettingKind : uint8_t { integer, number, text, flag, choice, path };

/// One option. The command line, config.json, --help and the page all read this declaration.
struct Setting {
  std::string name;   // "hidden" → --hidden
  std::string value;  // the default, then what was set
  std::string help;
  SettingKind kind = SettingKind::text;
  double low = -std::numeric_limits<double>::infinity();  // limits of integer and number, inclusive
  double high = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices;
  bool given = false;      // set by somebody, so no preset changes it
  bool client = false;     // whether one who is not at this machine may set it (the page); never true of a path
  std::string group = "";  // what it is about: "data", "model", "training", "output"; empty where there are few
};

/// An ordered list of declared options. Every error is a ConfigError that names the option and what it accepts.
class Settings {
 public:
  /// What is declared from here on belongs to this group.
  Settings& group(std::string name);
  Settings& integer(std::string name, int64_t value, std::string help, double low = 0,
                    double high = std::numeric_limits<double>::infinity());
  Settings& number(std::string name, double value, std::string help, double low = 0,
                   double high = std::numeric_limits<double>::infinity());
  Settings& text(std::string name, std::string value, std::string help);
  /// A file or folder of this machine.
  Settings& path(std::string name, std::string value, std::string help);
  Settings& flag(std::string name, bool value, std::string help);
  Settings& choice(std::string name, std::string value, std::vector<std::string> choices, std::string help);
  /// One of the enumeration's names.
  template <class Enum>
  Settings& choice(std::string name, Enum value, std::string help) {
    return choice(std::move(name), name_of(value), choices<Enum>(), std::move(help));
  }

  /// While these options all have the value `choice`, the named option that nobody set has this default instead of its
  /// usual one; of several that apply, the last.
  Settings& when(std::vector<std::string> options, std::string_view choice, std::string_view name,
                 std::string_view value);

  /// Lets clients set these options; all others stay closed to them. Throws ConfigError for a path.
  Settings& open_to_clients(std::initializer_list<std::string_view> names);

  /// Sets a declared option from text, checking kind and limits.
  void set(std::string_view name, std::string_view value);
  /// The same on behalf of a client: throws ConfigError, listing what is open, for any other option.
  void set_by_client(std::string_view name, std::string_view value);
  /// Appends another list's declarations (names must be new).
  Settings& include(const Settings& other);

  bool has(std::string_view name) const;
  int64_t get_integer(std::string_view name) const;
  double get_number(std::string_view name) const;
  const std::string& get_text(std::string_view name) const;  // text, choice and path
  bool get_flag(std::string_view name) const;
  template <class Enum>
  Enum get(std::string_view name) const {
    return parse<Enum>(get_text(name));
  }

  const std::vector<Setting>& all() const { return all_; }

 private:
  Settings& declare(Setting setting);
  const Setting& find(std::string_view name, SettingKind kind) const;
  Setting& declared(std::string_view name);

  struct Preset {
    std::vector<std::string> options;
    std::string choice, name, value, usual;
  };
  bool applies(const Preset& preset);
  void settle(Setting& setting);
  std::vector<Setting> all_;
  std::vector<Preset> presets_;
  std::string group_;
};

}  // namespace qkv
