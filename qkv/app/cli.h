// The options of a command: commands declare their options here, and get help, suggestions and errors of one
// line. Only cli.cc includes CLI11, the parser.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "qkv/app/command.h"
#include "qkv/base/names.h"
#include "qkv/base/settings.h"

namespace qkv::app {

/// One declared option. What help, suggestions and errors say of it is read from here.
struct Option {
  std::string name;  // "--out"; or "RUN", a value that stands without a name
  std::string type;  // how the help names the value: "FILE"; empty: a flag
  std::string help;
  std::function<void(const std::string&)> take;  // gets each value, or "true" and "false" of a flag; throws ConfigError
  std::vector<std::string> choices = {};         // values it may have, where they have names
  std::string section = "";                      // of the help; empty: the last one, "Options"
  bool must = false;                             // wrong usage without it
  bool many = false;                             // a value without a name that takes all that follow
  bool shown = true;                             // in the help
  size_t count = 0;                              // how often it was given

  Option& in(const char* s) {
    section = s;
    return *this;
  }
  Option& required() {
    must = true;
    return *this;
  }
  Option& hidden() {
    shown = false;
    return *this;
  }
  Option& among(std::vector<std::string> names) {
    choices = std::move(names);
    return *this;
  }
};

constexpr int64_t kMostThreads = 1024;

/// The number that an option's value says. Throws ConfigError naming the option and what it accepts.
int64_t whole_number(const std::string& name, const std::string& word, int64_t low, int64_t high);

/// As a command's last argument: what the manual says of it is printed (kManual), or the words that may come next,
/// which the shell completes (kNextWords).
inline constexpr const char *kManual = "--manual", *kNextWords = "--next-words";
/// Throws ConfigError for an option that asks for a GPU, as people who come from elsewhere do.
void refuse_gpu(const std::string& option);
/// Whether they only ask for a text: --help, the manual's part or the next words.
bool wants_text(const Arguments& arguments);
/// The values of "a,b,c".
std::vector<std::string> comma_list(const std::string& text);

/// The options of one command. Every command also has --help, --threads and --target (unless it declares its own), and
/// takes --check at the end to have its options checked and no more. Of an option given twice the last counts.
class Cli {
 public:
  /// `name` is what follows "qkv": "train", "lab copy". Its help ends with `footer`.
  Cli(std::string about, std::string name);

  Option& text(const std::string& name, std::string& value, const std::string& type, const std::string& help);
  /// May be given several times; without a name it takes all values that follow.
  Option& texts(const std::string& name, std::vector<std::string>& values, const std::string& type,
                const std::string& help);
  Option& flag(const std::string& name, bool& value, const std::string& help);
  Option& call(const std::string& name, const std::string& type, const std::string& help,
               std::function<void(const std::string&)> take);
  template <class Integer>
  Option& integer(const std::string& name, Integer& value, const std::string& help, int64_t low, int64_t high) {
    return call(name, "N", help, [=, &value](const std::string& word) {
      value = static_cast<Integer>(whole_number(name, word, low, high));
    });
  }
  Option& number(const std::string& name, double& value, const std::string& help,
                 double low = -std::numeric_limits<double>::infinity(),
                 double high = std::numeric_limits<double>::infinity());
  /// One of these names.
  Option& choice(const std::string& name, std::string& value, const std::string& type, const std::string& help,
                 std::vector<std::string> names);
  /// One of the names of an enumeration; the help says which, what they mean and the default.
  template <class Enum>
  Option& choice(const std::string& name, Enum& value) {
    std::vector<std::string> meanings;
    for (const NameRow<Enum>& row : Names<Enum>::rows) {
      meanings.push_back(*row.meaning ? std::string(row.name) + " (" + row.meaning + ")" : row.name);
    }
    return call(name, "KIND", listed(meanings, " or ") + " [" + name_of(value) + "]",
                [&value](const std::string& word) { value = qkv::parse<Enum>(word); })
        .among(choices<Enum>());
  }
  /// One option for each setting (--name VALUE; flags as --name and --no-name), but for those named in `without`, in
  /// the sections their groups name.
  void settings(Settings& settings, const std::vector<std::string>& without = {});
  /// --weights WHICH, the checkpoint of a run to use.
  void weights(std::string& which);
  void footer(std::string text) { footer_ = std::move(text); }

  /// Reads `arguments`. Returns false when there is nothing to run: after printing a text that was asked for, or with
  /// --check. Throws ConfigError, which names the help that lists the options, on wrong usage.
  bool parse(const Arguments& arguments);
  bool given(const std::string& name) const;
  const std::vector<Option>& options() const { return options_; }
  std::string help() const;

 private:
  Option* find(const std::string& name);
  void add_common();
  std::vector<std::string> split(const Arguments& arguments, std::vector<std::vector<std::string>>& values) const;
  void refuse_unknown(const std::vector<std::string>& words) const;
  void take_values(const std::vector<std::vector<std::string>>& values);
  [[noreturn]] void refuse(const std::string& what) const;

  std::string about_, name_, footer_;
  std::vector<Option> options_;
};

}  // namespace qkv::app
