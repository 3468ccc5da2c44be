// Texts about a result of the attend command.
#include "qkv/app/attend/report.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <span>

#include "qkv/io/json.h"
#include "qkv/ops/ops.h"

namespace qkv::app {
namespace {

std::string number(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", x);
  return text;
}

// The double that prints as shortly as the float.
double shortest(float x) {
  if (!std::isfinite(x)) return x;
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, x).ptr;
  double y = 0;
  std::from_chars(text, end, y);
  return y;
}

Json shape_json(const Shape& shape) { return Json(std::vector<int64_t>(shape.begin(), shape.end())); }

// Nested lists of a [B,H,Lq] tensor.
template <class Convert>
Json nested(const Tensor& t, Convert&& convert) {
  const std::vector<float> values = t.to_vector();
  size_t at = 0;
  Json batches = Json::array();
  for (int64_t b = 0; b < t.dim(0); ++b) {
    Json heads = Json::array();
    for (int64_t h = 0; h < t.dim(1); ++h) {
      Json rows = Json::array();
      for (int64_t i = 0; i < t.dim(2); ++i) rows.push_back(convert(values[at++]));
      heads.push_back(std::move(rows));
    }
    batches.push_back(std::move(heads));
  }
  return batches;
}

Json summary_json(const WeightSummary& s) {
  return {{"rows", s.rows},
          {"empty_rows", s.empty_rows},
          {"mean_entropy", s.entropy},
          {"mean_max_weight", s.max_weight},
          {"mean_distance", s.mean_distance}};
}

std::string window_text(const ScoreRule& rule) {
  const auto side = [](int64_t n) { return n < 0 ? std::string("all") : std::to_string(n); };
  return "window " + side(rule.window_left) + " back, " + side(rule.window_right) + " ahead";
}

std::vector<std::string> rule_parts(const AttendReport& report) {
  const ScoreRule& rule = report.result.rule;
  std::vector<std::string> parts = {std::string(name_of(rule.normaliser)) + " of " + number(report.result.scale) +
                                    "·q·k"};
  if (rule.softcap > 0) parts.push_back("softcap " + number(rule.softcap));
  if (rule.causal) parts.emplace_back("causal");
  if (rule.window_left >= 0 || rule.window_right >= 0) parts.push_back(window_text(rule));
  if (rule.mask.defined()) parts.push_back("bool mask " + rule.mask.shape.str());
  if (rule.bias.defined()) parts.push_back("float mask " + rule.bias.shape().str());
  if (report.request.valid_lens.given()) parts.push_back("valid lengths " + report.request.valid_lens.shape.str());
  if (report.request.kv_lens.given()) parts.emplace_back("external cache lengths");
  if (rule.offset > 0) parts.push_back(std::to_string(rule.offset) + " past keys");
  return parts;
}

struct Range {
  double low = 0, mean = 0, high = 0;
  int64_t not_finite = 0;
};
Range range_of(const Tensor& any) {
  const Tensor t = contiguous(any);
  Range r;
  double sum = 0;
  int64_t count = 0;
  for (const float x : std::span<const float>(t.f32(), static_cast<size_t>(t.numel()))) {
    if (!std::isfinite(x)) {
      ++r.not_finite;
      continue;
    }
    r.low = count == 0 ? x : std::min<double>(r.low, x);
    r.high = count == 0 ? x : std::max<double>(r.high, x);
    sum += x;
    ++count;
  }
  if (count > 0) r.mean = sum / static_cast<double>(count);
  return r;
}

std::string range_text(const Tensor& t) {
  const Range r = range_of(t);
  std::string s = t.shape().str() + "  min " + number(r.low) + ", mean " + number(r.mean) + ", max " + number(r.high);
  if (r.not_finite > 0) s += ", " + std::to_string(r.not_finite) + " not finite";
  return s;
}

std::string line(const char* label, const std::string& text) {
  char head[32];
  std::snprintf(head, sizeof head, "%-9s", label);
  return head + text + "\n";
}

// The numbers themselves, when they fit on a screen.
std::string values_text(const Tensor& t) {
  constexpr int64_t kMostRows = 16, kMostColumns = 8;
  const int64_t columns = t.dim(-1), rows = t.numel() / columns;
  if (rows > kMostRows || columns > kMostColumns) return "";
  const std::vector<float> values = t.to_vector();
  std::string s;
  for (size_t i = 0; i < values.size(); ++i) {
    char text[40];
    std::snprintf(text, sizeof text, " %11.6g", static_cast<double>(values[i]));
    if (i % static_cast<size_t>(columns) == 0) s += "        ";
    s += text;
    if ((i + 1) % static_cast<size_t>(columns) == 0) s += "\n";
  }
  return s;
}

}  // namespace

WeightSummary summarise(const AttentionStatistics& stats) {
  const std::vector<float> entropy = stats.entropy.to_vector(), largest = stats.max_weight.to_vector(),
                           argmax = stats.argmax.to_vector(), distance = stats.mean_distance.to_vector();
  WeightSummary s;
  s.rows = static_cast<int64_t>(argmax.size());
  for (size_t i = 0; i < argmax.size(); ++i) {
    if (argmax[i] < 0) {
      ++s.empty_rows;
      continue;
    }
    s.entropy += entropy[i];
    s.max_weight += largest[i];
    s.mean_distance += distance[i];
  }
  const double seeing = static_cast<double>(std::max<int64_t>(1, s.rows - s.empty_rows));
  s.entropy /= seeing;
  s.max_weight /= seeing;
  s.mean_distance /= seeing;
  return s;
}

std::string stats_json(const AttentionStatistics& stats) {
  Json json;
  json["shape"] = shape_json(stats.lse.shape());
  json["summary"] = summary_json(summarise(stats));
  json["lse"] = nested(stats.lse, shortest);
  json["entropy"] = nested(stats.entropy, shortest);
  json["max_weight"] = nested(stats.max_weight, shortest);
  json["argmax"] = nested(stats.argmax, [](float key) { return static_cast<int64_t>(key); });
  json["mean_distance"] = nested(stats.mean_distance, shortest);
  return json.dump() + "\n";
}

std::string report_text(const AttendReport& report) {
  const AttendResult& r = report.result;
  std::string text = line("q", r.q.shape().str() + "  k " + r.k.shape().str() + "  v " + r.v.shape().str());
  std::string rule;
  for (const std::string& part : rule_parts(report)) rule += (rule.empty() ? "" : ", ") + part;
  text += line("rule", rule);
  text += line("output", range_text(r.out));
  if (report.files.empty()) text += values_text(r.out);
  if (report.weights) {
    const WeightSummary& w = *report.weights;
    text += line("weights", "mean of " + std::to_string(w.rows - w.empty_rows) + " rows: entropy " + number(w.entropy) +
                                " nats (uniform over all keys " + number(std::log(static_cast<double>(r.k.dim(2)))) +
                                "), largest weight " + number(w.max_weight) + ", distance " + number(w.mean_distance) +
                                " keys");
    if (w.empty_rows > 0) text += line("", std::to_string(w.empty_rows) + " rows see no key: their output is zero");
  } else {
    text += line("weights", "statistics left out at this size; --stats FILE.json computes them");
  }
  if (r.d_q.defined()) {
    text += line("grad q", range_text(r.d_q));
    text += line("grad k", range_text(r.d_k));
    text += line("grad v", range_text(r.d_v));
  }
  std::string files;
  for (const std::string& file : report.files) files += (files.empty() ? "" : ", ") + file;
  return files.empty() ? text : text + line("wrote", files);
}

std::string report_json(const AttendReport& report) {
  const AttendResult& r = report.result;
  const Range range = range_of(r.out);
  Json json;
  json["q"] = shape_json(r.q.shape());
  json["k"] = shape_json(r.k.shape());
  json["v"] = shape_json(r.v.shape());
  json["scale"] = r.scale;
  json["rule"] = rule_parts(report);
  json["output"] = {{"shape", shape_json(r.out.shape())},
                    {"min", range.low},
                    {"mean", range.mean},
                    {"max", range.high},
                    {"not_finite", range.not_finite}};
  if (report.weights) json["weights"] = summary_json(*report.weights);
  json["files"] = report.files;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace qkv::app
