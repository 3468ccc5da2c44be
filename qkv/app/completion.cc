// Completion of a command line, one word at a time.
#include "qkv/app/completion.h"

#include <algorithm>

#include "qkv/train/run_tree.h"

namespace qkv::app {
namespace {

std::string lines_of(const Arguments& words) {
  std::string text;
  for (const std::string& word : words) text += word + "\n";
  return text;
}

std::string values_of(const Option& option) {
  if (option.name != "RUN" && option.type != "RUN") return lines_of(option.choices);
  std::string text;
  for (const FoundRun& run : find_runs("runs")) {
    if (run.path.find('\n') == std::string::npos) text += run.path + "\n";
  }
  return text;
}

}  // namespace

std::string next_words(const std::vector<Option>& options, const Arguments& before) {
  const Option* waiting = nullptr;
  size_t place = 0;  // of the next value without a name
  for (const std::string& word : before) {
    const bool value = waiting != nullptr, named = word.starts_with("-");
    waiting = nullptr;
    if (value) continue;
    if (!named) ++place;
    for (const Option& o : options) {
      if (named && o.name == word && !o.type.empty()) waiting = &o;
    }
  }
  if (waiting != nullptr) return values_of(*waiting);
  std::string text, names = "--help\n";
  size_t at = 0;
  for (const Option& o : options) {
    if (o.name[0] != '-') {
      const size_t mine = at++;
      if (o.many ? place >= mine : place == mine) text += values_of(o);
    } else if (o.shown) {
      names += o.name + "\n";
    }
  }
  return text + names;
}

}  // namespace qkv::app
