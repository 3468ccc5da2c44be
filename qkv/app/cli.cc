// Options parsed by CLI11, which sees nothing but text; limits, suggestions and help are the commands' own.
#include "qkv/app/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "qkv/app/completion.h"
#include "qkv/app/help.h"
#include "qkv/base/parallel.h"
#include "qkv/kernels/simd_target.h"

namespace qkv::app {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
T parsed(const std::string& name, const std::string& word, const char* kind, T low, T high) {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool number =
      error == std::errc() && end == word.data() + word.size() && !std::isnan(static_cast<double>(value));
  if (number && value >= low && value <= high) return value;
  const auto limit = [](T bound, T none) { return bound == none ? kInfinity : static_cast<double>(bound); };
  const double least = limit(low, std::numeric_limits<T>::lowest()), most = limit(high, std::numeric_limits<T>::max());
  throw ConfigError(name + ": '" + word + "' is not " + range_text(kind, std::isinf(least) ? -kInfinity : least, most));
}

bool is_word(const Option& option) { return option.name[0] != '-'; }

/// What other programs call by a longer name: "--batch-size" is "batch" here, "--learning-rate" is "lr"; what the page
/// calls a checkpoint are "weights". Empty: none.
std::string other_name(const std::string& option, const std::vector<std::string>& names) {
  std::string words = option.substr(std::min(option.find_first_not_of('-'), option.size())), initials;
  std::replace(words.begin(), words.end(), '_', '-');
  std::istringstream list(words);
  const auto known = [&](const std::string& word) {
    return std::find(names.begin(), names.end(), "--" + word) != names.end();
  };
  if (words.starts_with("checkpoint") && known("weights")) return "weights";
  for (std::string word; std::getline(list, word, '-');) {
    if (known(word)) return word;
    if (!word.empty()) initials += word[0];
  }
  return known(initials) ? initials : "";
}

}  // namespace

int64_t whole_number(const std::string& name, const std::string& word, int64_t low, int64_t high) {
  return parsed<int64_t>(name, word, "a whole number", low, high);
}

void refuse_gpu(const std::string& option) {
  for (const char* asked : {"--gpu", "--cuda", "--device"}) {
    if (!option.starts_with(asked)) continue;
    throw ConfigError("no option '" + option.substr(0, option.find('=')) + "': qkv runs on the CPU");
  }
}

bool wants_text(const Arguments& arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](const std::string& word) {
    return word == "--help" || word == "-h" || word == kManual || word == kNextWords;
  });
}

std::vector<std::string> comma_list(const std::string& text) {
  std::vector<std::string> values;
  std::istringstream list(text);
  for (std::string value; std::getline(list, value, ',');) values.push_back(value);
  return values;
}

Cli::Cli(std::string about, std::string name) : about_(std::move(about)), name_(std::move(name)) {}

Option& Cli::call(const std::string& name, const std::string& type, const std::string& help,
                  std::function<void(const std::string&)> take) {
  return options_.emplace_back(Option{name, type, help, std::move(take)});
}

Option& Cli::text(const std::string& name, std::string& value, const std::string& type, const std::string& help) {
  return call(name, type, help, [&value](const std::string& word) { value = word; });
}

Option& Cli::texts(const std::string& name, std::vector<std::string>& values, const std::string& type,
                   const std::string& help) {
  Option& option = call(name, type, help, [&values](const std::string& word) { values.push_back(word); });
  option.many = is_word(option);
  return option;
}

Option& Cli::flag(const std::string& name, bool& value, const std::string& help) {
  return call(name, "", help, [&value](const std::string& word) { value = word == "true"; });
}

Option& Cli::number(const std::string& name, double& value, const std::string& help, double low, double high) {
  return call(name, "X", help, [=, &value](const std::string& word) {
    value = parsed<double>(name, word, std::isinf(low) && std::isinf(high) ? "a finite number" : "a number", low, high);
  });
}

Option& Cli::choice(const std::string& name, std::string& value, const std::string& type, const std::string& help,
                    std::vector<std::string> names) {
  Option& option = call(name, type, help, [name, names, &value](const std::string& word) {
    if (std::find(names.begin(), names.end(), word) == names.end()) {
      throw ConfigError(name + ": '" + word + "' is not one of: " + listed(names) + did_you_mean(word, names));
    }
    value = word;
  });
  return option.among(std::move(names));
}

void Cli::settings(Settings& settings, const std::vector<std::string>& without) {
  for (const Setting& s : settings.all()) {
    if (std::find(without.begin(), without.end(), s.name) != without.end()) continue;
    std::string help = s.help;
    if (s.kind == SettingKind::choice) help += " (" + listed(s.choices, " or ") + ")";
    if (s.kind != SettingKind::flag && !s.value.empty()) help += " [" + s.value + "]";
    if (s.kind == SettingKind::flag && s.value == "true") help += " [on; --no-" + s.name + "]";
    const char* type = s.kind == SettingKind::flag      ? ""
                       : s.kind == SettingKind::integer ? "N"
                       : s.kind == SettingKind::number  ? "X"
                       : s.kind == SettingKind::choice  ? "KIND"
                       : s.kind == SettingKind::path    ? "PATH"
                                                        : "TEXT";
    call("--" + s.name, type, help, [&settings, name = s.name](const std::string& word) { settings.set(name, word); })
        .among(s.choices)
        .section = s.group;
  }
}

void Cli::weights(std::string& which) {
  text("--weights", which, "WHICH",
       "best, last, average or the step of a checkpoint [average if it was better than the best, else best]")
      .among({"best", "last", "average"});
}

void Cli::add_common() {
  if (find("--threads") == nullptr) {
    call("--threads", "N", "worker threads; no result depends on it [all cores]", [](const std::string& word) {
      set_num_threads(static_cast<int>(whole_number("--threads", word, 1, kMostThreads)));
    });
  }
  if (find("--target") == nullptr) {
    const std::vector<std::string> targets = kernels::simd_targets();
    call("--target", "NAME",
         "instruction set: " + listed(targets, " or ") + "; the same one gives the same bits [" + targets.front() + "]",
         [targets](const std::string& word) {
           if (kernels::force_simd_target(word)) return;
           throw ConfigError("--target: '" + word + "' is not one that this processor has: " + listed(targets) +
                             did_you_mean(word, targets));
         })
        .among(targets);
  }
}

Option* Cli::find(const std::string& name) {
  const auto found = std::find_if(options_.begin(), options_.end(), [&](const Option& o) { return o.name == name; });
  return found == options_.end() ? nullptr : &*found;
}

bool Cli::given(const std::string& name) const {
  return std::any_of(options_.begin(), options_.end(), [&](const Option& o) { return o.name == name && o.count > 0; });
}

void Cli::refuse(const std::string& what) const {
  const std::string help = "'qkv " + name_ + " --help'";
  throw ConfigError(what.find(help) == std::string::npos ? what + "; see " + help : what);
}

std::vector<std::string> Cli::split(const Arguments& arguments, std::vector<std::vector<std::string>>& values) const {
  CLI::App cli;
  cli.set_help_flag("-h,--help");
  cli.allow_extras();
  values.resize(options_.size());
  std::vector<std::string> words(options_.size());
  std::vector<CLI::Option*> declared;
  for (size_t i = 0; i < options_.size(); ++i) {
    const Option& o = options_[i];
    if (o.type.empty()) {
      declared.push_back(cli.add_flag(o.name + ",!--no-" + o.name.substr(2)));
    } else if (is_word(o) && !o.many) {
      declared.push_back(cli.add_option(o.name, words[i]));  // a text and no list: the next word is another's
    } else {
      declared.push_back(cli.add_option(o.name, values[i])->allow_extra_args(is_word(o)));
    }
  }
  cli.parse(Arguments(arguments.rbegin(), arguments.rend()));  // which takes the last first
  for (size_t i = 0; i < options_.size(); ++i) {
    values[i] = declared[i]->results();
  }
  return cli.remaining();
}

void Cli::refuse_unknown(const std::vector<std::string>& words) const {
  if (words.empty()) return;
  const auto option = std::find_if(words.begin(), words.end(), [](const auto& word) { return word.starts_with("-"); });
  if (option == words.end()) refuse("'" + words[0] + "' is not expected here");
  const std::string name = option->substr(0, option->find('='));
  refuse_gpu(name);
  std::vector<std::string> names{"--help"};
  for (const Option& o : options_) {
    if (is_word(o)) continue;
    names.push_back(o.name);
    if (o.type.empty()) names.push_back("--no-" + o.name.substr(2));
  }
  const std::string near = did_you_mean(name, names), other = other_name(name, names);
  refuse("no option '" + name + "'" + (near.empty() && !other.empty() ? did_you_mean("--" + other, names) : near));
}

void Cli::take_values(const std::vector<std::vector<std::string>>& values) {
  for (size_t i = 0; i < options_.size(); ++i) {
    Option& o = options_[i];
    o.count = values[i].size();
    if (o.must && o.count == 0) refuse(o.name + " is required");
    for (const std::string& word : values[i]) {
      if (o.type == "FILE" && word.empty()) refuse(o.name + " needs a file name");
      o.take(word);
    }
  }
}

bool Cli::parse(const Arguments& arguments) {
  const std::string last = arguments.empty() ? "" : arguments.back();
  if (last == kManual) {  // where what all commands share, and this processor has, is said once
    std::fputs(manual_text(about_, name_, options_, footer_).c_str(), stdout);
    return false;
  }
  add_common();
  if (last == kNextWords) {
    std::fputs(next_words(options_, {arguments.begin(), arguments.end() - 1}).c_str(), stdout);
    return false;
  }
  const bool only_check = last == "--check";
  try {
    std::vector<std::vector<std::string>> values;
    refuse_unknown(split({arguments.begin(), arguments.end() - (only_check ? 1 : 0)}, values));
    take_values(values);
    return !only_check;
  } catch (const CLI::CallForHelp&) {
    std::fputs(help().c_str(), stdout);
    return false;
  } catch (const CLI::ArgumentMismatch& e) {
    const std::string what = e.what(), name = what.substr(0, what.find(':'));
    const Option* option = find(name);
    refuse(option == nullptr ? what : name + " needs a value: " + name + " " + option->type);
  } catch (const CLI::ParseError& e) {
    std::string what = e.what();
    std::replace(what.begin(), what.end(), '\n', ' ');
    refuse(what);
  } catch (const ConfigError& e) {
    refuse(e.what());
  }
}

std::string Cli::help() const { return help_text(about_, name_, options_, footer_); }

}  // namespace qkv::app
