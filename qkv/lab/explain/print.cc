// Explanations as aligned tables, JSON or LaTeX.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "qkv/base/error.h"
#include "qkv/base/read_number.h"
#include "qkv/io/json.h"
#include "qkv/lab/explain/explain.h"
#include "qkv/ops/ops.h"
#include "qkv/view/text.h"

namespace qkv::lab {
namespace {

// Given numbers as they were given, computed ones with `digits` decimals.
std::string cell(double x, bool given, int digits) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  char text[400];  // the longest double with 15 decimals
  if (given) {
    std::snprintf(text, sizeof text, "%.10g", x);
  } else {
    std::snprintf(text, sizeof text, "%.*f", digits, x);
  }
  // A zero reached from below would read -0.000000.
  if (text[0] == '-' &&
      std::none_of(text, text + std::char_traits<char>::length(text), [](char c) { return c >= '1' && c <= '9'; })) {
    return text + 1;
  }
  return text;
}

std::string table(const ExplainStep& step, int digits) {
  const Tensor& m = step.value;
  const int64_t rows = m.dim(0), columns = m.dim(1);
  std::vector<std::string> cells;
  size_t width = 0;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      cells.push_back(cell(m.at({i, j}), step.given, digits));
      width = std::max(width, cells.back().size());
    }
  }
  if (!step.columns.empty()) width = std::max(width, step.columns.size() + std::to_string(columns).size());
  const size_t label = step.rows.empty() ? 0 : step.rows.size() + std::to_string(rows).size();
  const auto padded = [](const std::string& s, size_t w) { return std::string(w - std::min(w, s.size()), ' ') + s; };
  std::string text;
  if (!step.columns.empty()) {
    text += std::string(4 + label, ' ');
    for (int64_t j = 0; j < columns; ++j) text += "  " + padded(step.columns + std::to_string(j + 1), width);
    text += "\n";
  }
  for (int64_t i = 0; i < rows; ++i) {
    text += "    ";
    if (label > 0) text += padded(step.rows + std::to_string(i + 1), label);
    for (int64_t j = 0; j < columns; ++j) text += "  " + padded(cells[static_cast<size_t>(i * columns + j)], width);
    text += "\n";
  }
  return text;
}

std::string heading(const ExplainStep& step, size_t number) {
  std::string text = std::to_string(number) + ". " + step.name;
  if (!step.formula.empty()) text += " = " + step.formula;
  text += "  " + step.value.shape().str();
  return step.note.empty() ? text : text + "  (" + step.note + ")";
}

std::string latex_cell(const std::string& cell) {
  if (cell == "-inf") return "-\\infty";
  if (cell == "inf") return "\\infty";
  return cell == "nan" ? "\\mathrm{NaN}" : cell;
}

std::string latex_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::string("%&#_${}").find(c) != std::string::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string latex_step(const ExplainStep& step, int digits) {
  std::string text = "\\[\n" + step.latex_name + " = ";
  if (!step.latex.empty()) text += step.latex + " = ";
  text += "\\begin{bmatrix}\n";
  for (int64_t i = 0; i < step.value.dim(0); ++i) {
    text += "  ";
    for (int64_t j = 0; j < step.value.dim(1); ++j) {
      text += (j > 0 ? " & " : "") + latex_cell(cell(step.value.at({i, j}), step.given, digits));
    }
    text += i + 1 < step.value.dim(0) ? " \\\\\n" : "\n";
  }
  return text + "\\end{bmatrix}\n\\]\n";
}

}  // namespace

std::string explanation_text(const Explanation& e, int digits) {
  constexpr int kWidth = 80;
  std::string text = wrapped(e.title, kWidth, "", "");
  const char* part = nullptr;
  size_t number = 0;
  for (const ExplainStep& step : e.steps) {
    const char* now = step.backward ? "Backward" : "Forward";
    if (part != now) text += std::string("\n") + now + "\n";
    part = now;
    text += "\n" + wrapped(heading(step, ++number), kWidth, "", "    ") + table(step, digits);
  }
  return text;
}

std::string explanation_json(const Explanation& e) {
  Json steps = Json::array();
  for (const ExplainStep& step : e.steps) {
    Json values = Json::array();
    for (int64_t i = 0; i < step.value.dim(0); ++i) {
      Json row = Json::array();
      for (int64_t j = 0; j < step.value.dim(1); ++j) row.push_back(step.value.at({i, j}));
      values.push_back(std::move(row));
    }
    steps.push_back({{"name", step.name},
                     {"formula", step.formula},
                     {"part", step.backward ? "backward" : "forward"},
                     {"given", step.given},
                     {"rows", step.rows},
                     {"columns", step.columns},
                     {"note", step.note},
                     {"shape", {step.value.dim(0), step.value.dim(1)}},
                     {"values", std::move(values)}});
  }
  // One step per line: readable, and still JSON.
  const Json head = {{"title", e.title}, {"scale", e.scale}, {"normaliser", e.normaliser}};
  std::string text = head.dump();
  text.back() = ',';
  text += "\n \"steps\": [";
  for (const Json& step : steps) text += (&step == &steps.front() ? "\n  " : ",\n  ") + step.dump();
  return text + "\n ]}\n";
}

std::string explanation_latex(const Explanation& e, int digits) {
  std::string text = "% needs \\usepackage{amsmath}\n\\paragraph{" + latex_escaped(e.title) + "}\n";
  int64_t widest = 0;
  for (const ExplainStep& step : e.steps) widest = std::max(widest, step.value.dim(1));
  if (widest > 10) text += "\\setcounter{MaxMatrixCols}{" + std::to_string(widest) + "}\n";
  for (const ExplainStep& step : e.steps) text += latex_step(step, digits);
  return text;
}

Tensor parse_matrix(const std::string& text, const std::string& what) {
  const auto refuse = [&](const std::string& why) {
    throw ConfigError(what + ": " + why + "; expected numbers like \"1,2;3,4\" (rows end with ;) or a .npy file");
  };
  std::vector<double> values;
  int64_t rows = 0, columns = -1, in_row = 0;
  const auto end_row = [&] {
    if (in_row == 0) refuse("row " + std::to_string(rows + 1) + " of '" + text + "' is empty");
    if (columns >= 0 && in_row != columns) refuse("the rows of '" + text + "' differ in length");
    columns = in_row;
    in_row = 0;
    ++rows;
  };
  const char* at = text.data();
  const char* const end = at + text.size();
  bool comma = false;  // a separator that still waits for its number
  while (at < end) {
    if (*at == ' ' || *at == '\t') {
      ++at;
    } else if (*at == ',') {
      if (comma || in_row == 0) refuse("a number is missing in '" + text + "'");
      comma = true;
      ++at;
    } else if (*at == ';') {
      if (comma) refuse("a number is missing in '" + text + "'");
      end_row();
      ++at;
    } else {
      double value = 0;
      const char* const next = read_number(at, end, value);
      if (next == at || (next < end && std::string(" \t,;").find(*next) == std::string::npos)) {
        refuse("'" + text + "' is not a matrix");
      }
      values.push_back(value);
      ++in_row;
      comma = false;
      at = next;
    }
  }
  if (comma) refuse("a number is missing in '" + text + "'");
  if (in_row > 0) end_row();
  if (rows == 0) refuse("no numbers");
  return Tensor::from(values, {rows, columns});
}

}  // namespace qkv::lab
