// What a heat map means: checks, scales, the sentence about it, and its table.
#include "qkv/view/heatmap.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "qkv/base/error.h"
#include "qkv/view/text.h"

namespace qkv {
namespace {

size_t cell(const HeatMap& map, int64_t row, int64_t column) { return static_cast<size_t>(row * map.columns + column); }

bool is_hidden(const HeatMap& map, size_t i) { return !map.hidden.empty() && map.hidden[i] != 0; }

std::string label(const std::vector<std::string>& labels, int64_t i) {
  return labels.empty() ? std::to_string(i) : valid_utf8(labels[static_cast<size_t>(i)]);
}

std::string csv_value(const HeatMap& map, size_t i) {
  return is_hidden(map, i) ? "masked" : format_number(map.values[i], 9);
}

void check_count(const char* what, size_t count, int64_t expected, bool may_be_empty) {
  if (count == static_cast<size_t>(expected) || (may_be_empty && count == 0)) return;
  throw ShapeError(std::string("[heat map] ") + std::to_string(count) + " " + what + ", expected " +
                   std::to_string(expected));
}

}  // namespace

void check_map(const HeatMap& map) {
  if (map.rows <= 0 || map.columns <= 0) {
    throw ShapeError("[heat map] nothing to draw: " + std::to_string(map.rows) + " rows and " +
                     std::to_string(map.columns) + " columns");
  }
  check_count("values", map.values.size(), map.rows * map.columns, false);
  check_count("mask values", map.hidden.size(), map.rows * map.columns, true);
  check_count("row labels", map.row_labels.size(), map.rows, true);
  check_count("column labels", map.column_labels.size(), map.columns, true);
}

Shades::Shades(const HeatMap& map) : map_(map) {
  check_map(map);
  if (map.scale == MapScale::kRow) row_high_.assign(static_cast<size_t>(map.rows), 0.0);
  double smallest = std::numeric_limits<double>::infinity(), largest = -smallest;
  for (int64_t r = 0; r < map.rows; ++r) {
    for (int64_t c = 0; c < map.columns; ++c) {
      const size_t i = cell(map, r, c);
      if (is_hidden(map, i) || !std::isfinite(map.values[i])) continue;
      const double value = map.values[i];
      smallest = std::min(smallest, value);
      largest = std::max(largest, value);
      if (!row_high_.empty()) row_high_[static_cast<size_t>(r)] = std::max(row_high_[static_cast<size_t>(r)], value);
    }
  }
  if (smallest <= largest && map.scale == MapScale::kAuto) {
    low_ = smallest;
    high_ = largest;
  } else if (smallest <= largest && map.scale == MapScale::kCentered) {
    high_ = std::max(std::abs(smallest), std::abs(largest));
    low_ = -high_;
  }
  if (map.range) std::tie(low_, high_) = *map.range;
  if (!(low_ < high_)) high_ = low_ + 1;
}

std::optional<double> Shades::at(int64_t row, int64_t column) const {
  const size_t i = cell(map_, row, column);
  const double value = map_.values[i];
  if (is_hidden(map_, i) || std::isnan(value)) return std::nullopt;
  double low = low_, high = high_;
  if (!row_high_.empty() && !map_.range) {
    low = 0;
    high = row_high_[static_cast<size_t>(row)];
    if (high <= 0) return 0.0;
  }
  return std::clamp((value - low) / (high - low), 0.0, 1.0);
}

std::string describe_weights(const HeatMap& map) {
  check_map(map);
  double peaks = 0, spread = 0;
  int64_t rows = 0, wide_rows = 0, masked = 0;
  for (int64_t r = 0; r < map.rows; ++r) {
    double peak = 0, sum = 0, entropy = 0;
    int64_t visible = 0;
    for (int64_t c = 0; c < map.columns; ++c) {
      const size_t i = cell(map, r, c);
      if (is_hidden(map, i)) {
        ++masked;
        continue;
      }
      ++visible;
      const double w = map.values[i];
      if (!(w > 0)) continue;
      peak = std::max(peak, w);
      sum += w;
      entropy -= w * std::log(w);
    }
    if (sum <= 0) continue;
    ++rows;
    peaks += peak;
    if (visible > 1) {
      ++wide_rows;
      spread += entropy / std::log(static_cast<double>(visible));
    }
  }
  if (rows == 0) return "Every cell is masked or zero.";
  std::string text = "Largest weight in a row: " + format_number(peaks / static_cast<double>(rows), 2) + " on average";
  if (wide_rows > 0) {
    text += "; entropy: " + format_number(100 * spread / static_cast<double>(wide_rows), 2) + "% of an even spread";
  }
  if (masked > 0) {
    text += "; " + std::to_string(masked) + " of " + std::to_string(map.rows * map.columns) + " cells masked";
  }
  return text + ".";
}

std::string heatmap_csv(const HeatMap& map) {
  check_map(map);
  std::string out = csv_field(valid_utf8(map.row_title) + " \\ " + valid_utf8(map.column_title));
  for (int64_t c = 0; c < map.columns; ++c) out += "," + csv_field(label(map.column_labels, c));
  out += "\n";
  for (int64_t r = 0; r < map.rows; ++r) {
    out += csv_field(label(map.row_labels, r));
    for (int64_t c = 0; c < map.columns; ++c) out += "," + csv_value(map, cell(map, r, c));
    out += "\n";
  }
  return out;
}

std::string heatmaps_csv(const std::vector<HeatMap>& maps) {
  std::string out = "map,row,row_label,column,column_label,value\n";
  for (const HeatMap& map : maps) {
    check_map(map);
    const std::string title = csv_field(valid_utf8(map.title));
    for (int64_t r = 0; r < map.rows; ++r) {
      for (int64_t c = 0; c < map.columns; ++c) {
        out += title + "," + std::to_string(r) + "," + csv_field(label(map.row_labels, r)) + "," + std::to_string(c) +
               "," + csv_field(label(map.column_labels, c)) + "," + csv_value(map, cell(map, r, c)) + "\n";
      }
    }
  }
  return out;
}

void save_heatmap(const HeatMap& map, const std::string& path) {
  check_map(map);
  if (path.ends_with(".csv")) return write_file_atomic(path, heatmap_csv(map));
  save_drawing(draw_heatmap(map), path);
}

void save_heatmaps(const std::string& title, const std::vector<HeatMap>& maps, int columns, const std::string& path) {
  if (path.ends_with(".csv")) return write_file_atomic(path, heatmaps_csv(maps));
  save_drawing(draw_heatmaps(title, maps, columns), path);
}

}  // namespace qkv
