// Help in two columns, wrapped to the terminal.
#include "qkv/app/help.h"

#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "qkv/view/terminal.h"
#include "qkv/view/text.h"

namespace qkv::app {
namespace {

constexpr int kLeft = 28;  // columns of names

/// Words of `text` in lines of at most `width` columns, each but the first indented.
std::string wrapped(const std::string& text, int width, int indent) {
  std::istringstream words(text);
  std::string out;
  int column = 0;
  for (std::string word; words >> word;) {
    const int wide = display_width(word);
    if (column > 0 && column + 1 + wide > width) {
      out += "\n" + std::string(static_cast<size_t>(indent), ' ');
      column = 0;
    }
    out += (column > 0 ? " " : "") + word;
    column += (column > 0 ? 1 : 0) + wide;
  }
  return out;
}

std::string row(const std::string& left, const std::string& help, int width) {
  const std::string start = "  " + left;
  const bool fits = display_width(start) < kLeft;
  return (fits ? pad_right(start, kLeft) : start + "\n" + std::string(kLeft, ' ')) +
         wrapped(help, width - kLeft, kLeft) + "\n";
}

/// The sections in the order they are shown.
std::vector<std::string> sections(const std::vector<Option>& options) {
  std::vector<std::string> names;
  for (const char* first : {"data", "model", "training", "output"}) {
    if (std::any_of(options.begin(), options.end(), [&](const Option& o) { return o.section == first; }))
      names.emplace_back(first);
  }
  for (const Option& o : options) {
    if (!o.section.empty() && std::find(names.begin(), names.end(), o.section) == names.end())
      names.push_back(o.section);
  }
  names.emplace_back("");
  return names;
}

std::string titled(std::string section) {
  if (section.empty()) return "Options";
  if (section[0] >= 'a' && section[0] <= 'z') section[0] = static_cast<char>(section[0] - 'a' + 'A');
  return section;
}

}  // namespace

std::string help_text(const std::string& about, const std::string& name, const std::vector<Option>& options,
                      const std::string& footer) {
  const int width = std::clamp(detect_terminal(STDOUT_FILENO).width, 60, 110);
  std::string usage = "usage: qkv " + name, values;
  for (const Option& o : options) {
    if (o.name[0] == '-' || !o.shown) continue;
    const std::string word = o.many ? o.name + "..." : o.name;
    usage += o.must ? " " + word : " [" + word + "]";
    values += row(word, o.help, width);
  }
  std::string text = about + "\n\n" + usage + " [OPTIONS]\n" + (values.empty() ? "" : "\n" + values);
  for (const std::string& section : sections(options)) {
    text += "\n" + titled(section) + ":\n";
    for (const Option& o : options) {
      if (o.section != section || o.name[0] != '-' || !o.shown) continue;
      text += row(o.name + (o.type.empty() ? "" : " " + o.type), o.help + (o.must ? " (required)" : ""), width);
    }
    if (section.empty()) text += row("-h, --help", "this text", width);
  }
  if (!footer.empty()) text += "\n" + footer + (footer.ends_with('\n') ? "" : "\n");
  return text;
}

}  // namespace qkv::app
