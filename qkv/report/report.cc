// The page a report becomes.
#include "qkv/report/report.h"

#include <cmath>

#include "qkv/report/report_style.h"
#include "qkv/view/text.h"

namespace qkv {
namespace {

// An inline <svg> has no XML declaration. It grows with the page's font on large screens and shrinks on small ones,
// but not below three fifths, where labels could no longer be read: there it scrolls.
std::string inline_svg(const Drawing& drawing, const std::string& prefix) {
  std::string svg = to_svg(drawing, prefix);
  svg.erase(0, svg.find("<svg "));
  svg.insert(5, "style=\"width:" + format_number(drawing.width / 17, 5) +
                    "rem;min-width:" + format_number(std::round(drawing.width * 0.6)) + "px\" ");
  return svg;
}

std::string element(const char* tag, const std::string& text, const std::string& attributes = "") {
  return std::string("<") + tag + attributes + ">" + escape_markup(text) + "</" + tag + ">\n";
}

/// Bytes of the letter or digit at i, Greek ones and a minus included; 0: there is none.
size_t letter_at(const std::string& text, size_t i) {
  const auto c = static_cast<unsigned char>(i < text.size() ? text[i] : 0);
  if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) return 1;
  if (c == 0xCE || c == 0xCF) return 2;
  return text.compare(i, 3, "−") == 0 ? 3 : 0;
}

/// Prose in which v_a, P_ij, e^(−βt) and the like have braces; a longer word after _ is part of a name.
std::string braced(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if ((text[i] != '_' && text[i] != '^') || i == 0) continue;
    size_t end = i + 1, letters = 0, skip = 0;
    if (end < text.size() && text[end] == '(') {
      end = text.find(')', end);
      skip = end == std::string::npos ? 0 : 1;
    } else {
      for (size_t n; (n = letter_at(text, end)) > 0; end += n) ++letters;
    }
    if (skip == 0 && (letters == 0 || (letters > 2 && text[i] == '_'))) continue;
    out += "{" + text.substr(i + 1 + skip, end - i - 1 - skip) + "}";
    i = end + skip - 1;
  }
  return out;
}

// Escaped text in which _{…} and ^{…}, nested or not, are sub- and superscripts; other braces stay.
std::string formula_markup(const std::string& text) {
  std::string out;
  std::vector<const char*> open;  // what each open brace closes with
  for (size_t i = 0; i < text.size(); ++i) {
    const bool brace = i + 1 < text.size() && text[i + 1] == '{';
    if (brace && (text[i] == '_' || text[i] == '^')) {
      out += text[i] == '_' ? "<sub>" : "<sup>";
      open.push_back(text[i] == '_' ? "</sub>" : "</sup>");
      ++i;
    } else if (text[i] == '{') {
      out += '{';
      open.push_back("}");
    } else if (text[i] == '}' && !open.empty()) {
      out += open.back();
      open.pop_back();
    } else {
      out += text[i];
    }
  }
  for (; !open.empty(); open.pop_back()) out += open.back();
  return out;
}

}  // namespace

Report::Report(std::string title, std::string subtitle) : title_(std::move(title)), subtitle_(std::move(subtitle)) {}

Report& Report::section(const std::string& title) {
  sections_.push_back(title);
  body_ += element("h2", title, " id=\"s" + std::to_string(sections_.size()) + "\"");
  return *this;
}

Report& Report::subsection(const std::string& title) {
  body_ += element("h3", title);
  return *this;
}

Report& Report::paragraph(const std::string& text) {
  body_ += prose(element("p", text));
  return *this;
}

std::string Report::prose(const std::string& markup) const {
  return formulas_ ? formula_markup(braced(markup)) : markup;
}

Report& Report::formula(const std::string& text) {
  body_ += "<p class=\"formula\">" + formula_markup(escape_markup(text)) + "</p>\n";
  return *this;
}

Report& Report::code(const std::string& text) {
  body_ += "<pre><code>" + escape_markup(text) + "</code></pre>\n";
  return *this;
}

Report& Report::list(const std::vector<std::string>& items) {
  body_ += "<ul>\n";
  for (const std::string& item : items) body_ += prose(element("li", item));
  body_ += "</ul>\n";
  return *this;
}

Report& Report::settings(const std::vector<std::pair<std::string, std::string>>& entries) {
  body_ += "<dl class=\"settings\">\n";
  for (const auto& [name, value] : entries) {
    body_ += "<div><dt>" + escape_markup(name) + "</dt><dd>" + escape_markup(value) + "</dd></div>\n";
  }
  body_ += "</dl>\n";
  return *this;
}

Report& Report::highlights(const std::vector<Highlight>& highlights) {
  body_ += "<div class=\"highlights\">\n";
  for (const Highlight& h : highlights) {
    body_ += "<div><span class=\"label\">" + escape_markup(h.label) + "</span><span class=\"value\">" +
             escape_markup(h.value) + "</span>";
    if (!h.note.empty()) body_ += "<span class=\"note\">" + escape_markup(h.note) + "</span>";
    body_ += "</div>\n";
  }
  body_ += "</div>\n";
  return *this;
}

Report& Report::table(const Table& table) {
  // Focusable, so that a wide table can be scrolled from the keyboard.
  body_ += "<div class=\"scroll\" tabindex=\"0\">" + prose(html_table(table)) + "</div>\n";
  return *this;
}

Report& Report::folded_table(const std::string& summary, const Table& content) {
  body_ += "<details><summary>" + escape_markup(summary) + "</summary>\n";
  table(content);
  body_ += "</details>\n";
  return *this;
}

std::string Report::figure_html(const Drawing& drawing, const std::string& caption) {
  if (!have_pictures()) return element("p", "(No picture in this build: " + drawing.description + ")");
  const std::string prefix = "f" + std::to_string(++figures_);
  const char* const kind = drawing.photographs ? " class=\"photographs\"" : "";
  std::string out = std::string("<figure") + kind + ">\n<div class=\"scroll\" tabindex=\"0\">" +
                    inline_svg(drawing, prefix) + "</div>\n";
  if (!caption.empty()) out += element("figcaption", caption);
  return out + "</figure>\n";
}

Report& Report::figure(const Drawing& drawing, const std::string& caption) {
  body_ += figure_html(drawing, caption);
  return *this;
}

Report& Report::figures(const std::vector<Drawing>& drawings) {
  body_ += "<div class=\"row\">\n";
  for (const Drawing& drawing : drawings) body_ += figure_html(drawing, "");
  body_ += "</div>\n";
  return *this;
}

std::string Report::html() const {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "img-src data:\">\n";
  out += element("title", title_) + "<style>\n" + kReportStyle + "</style>\n</head>\n<body>\n<header>\n";
  out += element("h1", title_);
  if (!subtitle_.empty()) out += element("p", subtitle_, " class=\"subtitle\"");
  out += "</header>\n";
  if (sections_.size() >= 3) {
    out += "<nav aria-label=\"Contents\"><ol>\n";
    for (size_t i = 0; i < sections_.size(); ++i) {
      out += "<li><a href=\"#s" + std::to_string(i + 1) + "\">" + escape_markup(sections_[i]) + "</a></li>\n";
    }
    out += "</ol></nav>\n";
  }
  return out + "<main>\n" + body_ + "</main>\n</body>\n</html>\n";
}

void Report::save(const std::string& path) const { write_file_atomic(path, html()); }

}  // namespace qkv
