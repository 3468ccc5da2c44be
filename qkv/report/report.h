// Reports: one self-contained HTML file with text, tables and inline pictures.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "qkv/figures/figures.h"
#include "qkv/view/drawing.h"
#include "qkv/view/table.h"

namespace qkv {

/// A number that deserves to be seen first.
struct Highlight {
  std::string label, value, note = {};
};

/// Builds a page from top to bottom. All text is plain and escaped here; nothing is loaded from elsewhere, so the file
/// can be mailed. Same calls, same bytes.
class Report {
 public:
  explicit Report(std::string title, std::string subtitle = "");

  /// From here on v_a, e^(βt) and the like are set as formulas in paragraphs, lists and tables.
  Report& with_formulas() {
    formulas_ = true;
    return *this;
  }
  /// A heading; with three or more of them the page begins with a list of contents.
  Report& section(const std::string& title);
  Report& subsection(const std::string& title);
  Report& paragraph(const std::string& text);
  /// Set apart: a formula, in which x_{i} and e^{t} become sub- and superscripts.
  Report& formula(const std::string& text);
  /// Set apart and in monospace: a command, an excerpt.
  Report& code(const std::string& text);
  Report& list(const std::vector<std::string>& items);
  /// Names and values in a compact grid: a configuration.
  Report& settings(const std::vector<std::pair<std::string, std::string>>& entries);
  Report& highlights(const std::vector<Highlight>& highlights);
  Report& table(const Table& table);
  /// Behind a line to click on, for what only some readers want.
  Report& folded_table(const std::string& summary, const Table& table);
  /// A whole section of plain data, drawn here.
  Report& add(const Section& section);
  /// Inline SVG, with the caption under it.
  Report& figure(const Drawing& drawing, const std::string& caption = "");
  /// Side by side where the window is wide enough.
  Report& figures(const std::vector<Drawing>& drawings);

  std::string html() const;
  /// Throws IoError.
  void save(const std::string& path) const;

 private:
  std::string prose(const std::string& markup) const;
  std::string figure_html(const Drawing& drawing, const std::string& caption);

  std::string title_, subtitle_, body_;
  std::vector<std::string> sections_;
  int figures_ = 0;
  bool formulas_ = false;
};

}  // namespace qkv
