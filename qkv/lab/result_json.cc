// A result as JSON.
#include <cmath>

#include "qkv/io/json.h"
#include "qkv/lab/present.h"

namespace qkv::lab {
namespace {

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json numbers(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double v : values) list.push_back(number(v));
  return list;
}

Json row_json(const Row& row) {
  Json json{{"at", row.at},
            {"quantity", row.quantity},
            {"kind", name_of(row.kind)},
            {"predicted", number(row.predicted)},
            {"measured", number(row.measured)},
            {"difference", number(row.difference())},
            {"tolerance", number(row.tolerance)},
            {"agrees", row.agrees()}};
  if (row.kind == Kind::sampled) json["standard_error"] = number(row.standard_error);
  return json;
}

Json axis_json(const Axis& axis) {
  return {{"title", axis.title},
          {"log", axis.log},
          {"low", axis.low ? number(*axis.low) : Json(nullptr)},
          {"high", axis.high ? number(*axis.high) : Json(nullptr)}};
}

Json plot_json(const Plot& plot) {
  Json series = Json::array(), guides = Json::array();
  for (const Series& s : plot.series) {
    series.push_back({{"name", s.name},
                      {"x", numbers(s.x)},
                      {"y", numbers(s.y)},
                      {"low", numbers(s.low)},
                      {"high", numbers(s.high)},
                      {"line", s.marks != Marks::kDots},
                      {"dots", s.marks != Marks::kLine},
                      {"dashed", s.dashed},
                      {"color", s.color}});
  }
  for (const Guide& g : plot.guides) guides.push_back({{"at", g.at}, {"label", g.label}, {"vertical", g.vertical}});
  return {{"type", "plot"},         {"title", plot.title}, {"caption", plot.caption}, {"x", axis_json(plot.x)},
          {"y", axis_json(plot.y)}, {"series", series},    {"guides", guides}};
}

Json map_json(const HeatMap& map) {
  const Shades shades(map);
  Json values = Json::array();
  for (const float v : map.values) values.push_back(number(static_cast<double>(v)));
  return {{"title", map.title},
          {"row_title", map.row_title},
          {"column_title", map.column_title},
          {"rows", map.rows},
          {"columns", map.columns},
          {"values", values},
          {"hidden", map.hidden},
          {"row_labels", map.row_labels},
          {"column_labels", map.column_labels},
          {"centered", map.scale == MapScale::kCentered},
          {"low", number(shades.low())},
          {"high", number(shades.high())}};
}

Json maps_json(const Maps& maps) {
  Json list = Json::array();
  for (const HeatMap& map : maps.maps) list.push_back(map_json(map));
  return {
      {"type", "maps"}, {"title", maps.title}, {"caption", maps.caption}, {"columns", maps.columns}, {"maps", list}};
}

Json settings_json(const Settings& set) {
  Json json = Json::object();
  for (const Setting& s : set.all()) {
    switch (s.kind) {
      case SettingKind::integer:
        json[s.name] = set.get_integer(s.name);
        break;
      case SettingKind::number:
        json[s.name] = set.get_number(s.name);
        break;
      case SettingKind::flag:
        json[s.name] = set.get_flag(s.name);
        break;
      default:
        json[s.name] = s.value;
    }
  }
  return json;
}

}  // namespace

std::string result_json(const Experiment& experiment, const Settings& set, const Result& result, bool pictures) {
  Json rows = Json::array();
  for (const Row& row : result.rows) rows.push_back(row_json(row));
  Json json{{"name", experiment.name},
            {"summary", experiment.summary},
            {"settings", settings_json(set)},
            {"claim", result.claim},
            {"formula", plain_formula(result.formula)},
            {"formula_markup", result.formula},
            {"rows", rows},
            {"notes", result.notes},
            {"agrees", result.disagreements() == 0}};
  if (pictures) {
    Json& list = json["pictures"] = Json::array();
    for (const Picture& p : result.pictures) {
      list.push_back(std::holds_alternative<Plot>(p) ? plot_json(std::get<Plot>(p)) : maps_json(std::get<Maps>(p)));
    }
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace qkv::lab
