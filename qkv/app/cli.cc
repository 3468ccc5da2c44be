// Option parsing shared by the commands.
#include "qkv/app/cli.h"

#include <algorithm>
#include <cstdio>

#include "qkv/base/error.h"
#include "qkv/base/parallel.h"

namespace qkv::app {

bool parse(CLI::App& cli, const Arguments& arguments) {
  const bool only_check = !arguments.empty() && arguments.back() == "--check";
  try {
    std::vector<std::string> reversed(arguments.rbegin() + (only_check ? 1 : 0), arguments.rend());  // last first
    cli.parse(reversed);
    return !only_check;
  } catch (const CLI::CallForHelp&) {
    std::fputs(cli.help("qkv").c_str(), stdout);
    return false;
  } catch (const CLI::ParseError& e) {
    std::string what = e.what();
    std::replace(what.begin(), what.end(), '\n', ' ');
    throw ConfigError(what + "; see 'qkv " + cli.get_name() + " --help'");
  }
}

void add_settings(CLI::App& cli, Settings& settings, const std::vector<std::string>& without) {
  for (const Setting& s : settings.all()) {
    const std::string name = s.name;
    if (std::find(without.begin(), without.end(), name) != without.end()) continue;
    if (s.kind == SettingKind::flag) {
      cli.add_flag_callback(
          "--" + name, [&settings, name] { settings.set(name, "true"); }, s.help);
      cli.add_flag_callback("--no-" + name, [&settings, name] { settings.set(name, "false"); })->group("");
      continue;
    }
    std::string help = s.help;
    if (s.kind == SettingKind::choice) {
      help += " (";
      for (size_t i = 0; i < s.choices.size(); ++i) help += (i > 0 ? "|" : "") + s.choices[i];
      help += ")";
    }
    if (!s.value.empty()) help += " [" + s.value + "]";
    cli.add_option_function<std::string>(
           "--" + name, [&settings, name](const std::string& value) { settings.set(name, value); }, help)
        ->type_name(s.kind == SettingKind::integer  ? "N"
                    : s.kind == SettingKind::number ? "X"
                                                    : "TEXT")
        ->take_last();
  }
}

void add_weights(CLI::App& cli, std::string& which) {
  cli.add_option("--weights", which,
                 "best, last, average or the step of a checkpoint [average if it was better than the best, else best]")
      ->type_name("WHICH");
}

void add_threads(CLI::App& cli) {
  cli.add_option_function<int>(
         "--threads", [](int n) { set_num_threads(n); }, "worker threads; no result depends on it [all cores]")
      ->check(CLI::Range(1, 1024).description(""))
      ->take_last()
      ->type_name("N");
}

}  // namespace qkv::app
