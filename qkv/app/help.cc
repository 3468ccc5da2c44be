// Help in two columns, wrapped to the terminal, and the same in roff for the manual.
#include "qkv/app/help.h"

#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "qkv/view/terminal.h"
#include "qkv/view/text.h"

namespace qkv::app {
namespace {

constexpr int kLeft = 28;         // columns of names
constexpr int kManualWidth = 72;  // man indents by 7 and ends before the 80th column

std::string row(const std::string& left, const std::string& help, int width) {
  const std::string start = "  " + left;
  const bool fits = display_width(start) < kLeft;
  const std::string space(kLeft, ' ');
  return fits ? wrapped(help, width, pad_right(start, kLeft), space)
              : start + "\n" + wrapped(help, width, space, space);
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

std::string value_word(const Option& o) { return o.many ? o.name + "..." : o.name; }
std::string option_words(const Option& o) { return o.name + (o.type.empty() ? "" : " " + o.type); }
std::string option_help(const Option& o) { return o.help + (o.must ? " (required)" : ""); }

std::string usage_of(const std::string& name, const std::vector<Option>& options) {
  std::string usage = "qkv " + name;
  for (const Option& o : options) {
    if (o.name[0] == '-' || !o.shown) continue;
    const std::string word = value_word(o);
    usage += o.must ? " " + word : " [" + word + "]";
  }
  return usage + " [OPTIONS]";
}

/// Where "  command  what it does" begins to say what it does; 0: the line is none of these.
size_t meaning_at(const std::string& line) {
  if (!line.starts_with("  ")) return 0;
  const size_t gap = line.find("  ", line.find_first_not_of(' '));
  return gap == std::string::npos ? 0 : line.find_first_not_of(' ', gap);
}

/// `text` in lines of this width: prose is wrapped; where what a command does has no room beside it, the rest goes
/// below, in its column or, where that is too narrow, a little further right than the command. Commands stay whole.
std::string fitted(const std::string& text, int width) {
  constexpr int kNarrow = 24;
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    const size_t at = meaning_at(line);
    const std::string command = line.substr(0, at), meaning = line.substr(at);
    if (display_width(line) <= width || (at == 0 && line.starts_with(' '))) {
      out += line + "\n";
    } else if (const int column = display_width(command); at > 0 && column > width - kNarrow) {
      out += command.substr(0, command.find_last_not_of(' ') + 1) + "\n" + wrapped(meaning, width, "      ", "      ");
    } else {
      out += wrapped(meaning, width, command, std::string(static_cast<size_t>(column), ' '));
    }
  }
  return out;
}

/// Lines that stay as they are.
std::string roff_lines(const std::string& text) { return text.empty() ? "" : ".PP\n.nf\n" + roff(text) + "\n.fi\n"; }

}  // namespace

std::string help_text(const std::string& about, const std::string& name, const std::vector<Option>& options,
                      const std::string& footer) {
  const int width = std::clamp(detect_terminal(STDOUT_FILENO).width, 60, 110);
  std::string values;
  for (const Option& o : options) {
    if (o.name[0] != '-' && o.shown) values += row(value_word(o), o.help, width);
  }
  std::string text =
      fitted(about, width) + "\nusage: " + usage_of(name, options) + "\n" + (values.empty() ? "" : "\n" + values);
  for (const std::string& section : sections(options)) {
    text += "\n" + (section.empty() ? "Options" : capitalised(section)) + ":\n";
    for (const Option& o : options) {
      if (o.section != section || o.name[0] != '-' || !o.shown) continue;
      text += row(option_words(o), option_help(o), width);
    }
    if (section.empty()) text += row("-h, --help", "this text", width);
  }
  if (!footer.empty()) text += "\n" + fitted(footer, width);
  return text;
}

std::string roff(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '.' || c == '\'') && (i == 0 || text[i - 1] == '\n')) out += "\\&";
    out += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  }
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

std::string roff_row(const std::string& left, const std::string& text) {
  return ".TP\n\\fB" + roff(left) + "\\fR\n" + roff(text) + "\n";
}

std::string manual_text(const std::string& about, const std::string& name, const std::vector<Option>& options,
                        const std::string& footer) {
  const size_t more = std::min(about.find("\n\n"), about.size());
  std::string text = ".SS \"" + roff(usage_of(name, options)) + "\"\n" + roff(about.substr(0, more)) + "\n" +
                     roff_lines(about.substr(more));
  for (const Option& o : options) {
    if (o.name[0] != '-' && o.shown) text += roff_row(value_word(o), o.help);
  }
  for (const std::string& section : sections(options)) {
    std::string rows;
    for (const Option& o : options) {
      if (o.section == section && o.name[0] == '-' && o.shown) rows += roff_row(option_words(o), option_help(o));
    }
    if (!rows.empty()) text += ".PP\n\\fI" + (section.empty() ? "Options" : capitalised(section)) + "\\fR\n" + rows;
  }
  return text + roff_lines(fitted(footer, kManualWidth));
}

}  // namespace qkv::app
