// A result for its readers: terminal, report and drawing.
#include "qkv/lab/present.h"

#include <algorithm>
#include <cmath>

#include "qkv/view/text.h"

namespace qkv::lab {
namespace {

std::string judged(const Row& row) {
  const char* const mark = row.agrees() ? "\u00a0✓" : "\u00a0✗";
  switch (row.kind) {
    case Kind::exact:
      return std::string("exact") + mark;
    case Kind::sampled:
      if (row.standard_error <= 0) return std::string("exact") + mark;
      return format_number(std::abs(row.difference()) / row.standard_error, 2) + "\u00a0s.e." + mark;
    case Kind::first_order:
      return "≤ " + format_number(row.tolerance, 2) + mark;
    case Kind::timed:
      return "stopwatch";
  }
  return "";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  size_t at = 0;
  while (at <= text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// Charts that stand side by side are a little smaller than a single one.
std::vector<Drawing> draw_all(const Result& result) {
  const auto charts = std::count_if(result.pictures.begin(), result.pictures.end(),
                                    [](const Picture& p) { return std::holds_alternative<Plot>(p); });
  std::vector<Drawing> drawings;
  for (Picture picture : result.pictures) {
    if (auto* plot = std::get_if<Plot>(&picture); plot && charts > 1) plot->width = 450;
    drawings.push_back(draw_picture(picture));
  }
  return drawings;
}

}  // namespace

Table result_table(const Result& result) {
  Table table{.header = {"at", "what", "predicted", "measured", "difference", "judged"}};
  std::string before;
  for (const Row& row : result.rows) {
    const int digits = row.kind == Kind::exact ? 6 : 4;  // a sampled figure has no more to say
    table.rows.push_back({row.at == before ? "" : row.at, row.quantity, format_number(row.predicted, digits),
                          format_number(row.measured, digits), format_number(row.difference(), 2), judged(row)});
    before = row.at;
  }
  return table;
}

std::string verdict(const Result& result) {
  const auto timed =
      std::count_if(result.rows.begin(), result.rows.end(), [](const Row& row) { return row.kind == Kind::timed; });
  const auto judged_rows = static_cast<int64_t>(result.rows.size()) - timed, wrong = result.disagreements();
  std::string text = wrong == 0 ? "All " + std::to_string(judged_rows) + " rows agree"
                                : std::to_string(wrong) + " of " + std::to_string(judged_rows) + " rows do not agree";
  if (timed > 0) text += "; " + std::to_string(timed) + " more come from a stopwatch";
  return text + ".";
}

std::string terminal_result(const Experiment& experiment, const Result& result, const Terminal& terminal) {
  const int width = std::clamp(terminal.width, 40, 120);
  std::string out = wrapped(result.claim, width, std::string(experiment.name) + ": ", "  ") + "\n";
  for (const std::string& line : lines_of(plain_formula(result.formula))) out += wrapped(line, width, "  ", "      ");
  out += "\n" + terminal_table(result_table(result), terminal) + verdict(result) + "\n\n";
  for (const Picture& picture : result.pictures) out += terminal_picture(picture, terminal) + "\n";
  for (const std::string& note : result.notes) out += wrapped(note, width, "- ", "  ");
  return out;
}

void add_to_report(Report& report, const Experiment& experiment, const Settings& set, const Result& result) {
  constexpr size_t kFold = 20;  // longer tables are folded away
  report.section(std::string(experiment.name) + ": " + experiment.summary).paragraph(result.claim);
  for (const std::string& line : lines_of(result.formula)) report.formula(line);
  report.figures(draw_all(result));
  if (result.rows.size() > kFold) {
    report.folded_table(verdict(result) + " Show them.", result_table(result));
  } else {
    report.table(result_table(result)).paragraph(verdict(result));
  }
  report.list(result.notes);
  std::vector<std::pair<std::string, std::string>> entries;
  for (const Setting& s : set.all()) entries.emplace_back(s.name, s.value);
  report.settings(entries);
}

Drawing draw_result(const Experiment& experiment, const Result& result) {
  std::vector<Drawing> drawings = draw_all(result);
  if (drawings.size() == 1) return drawings[0];
  const int columns = drawings[0].width + drawings[1].width < 1100 ? 2 : 1;
  return arrange(experiment.summary, std::move(drawings), columns);
}

}  // namespace qkv::lab
