// Routes about traces: one input run through one model, and its maps.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "qkv/io/npy.h"
#include "qkv/routes/parts.h"
#include "qkv/tasks/traced_json.h"
#include "qkv/train/run_archive.h"

namespace qkv::routes {
namespace {

Response npy_response(const Tensor& t) {
  const std::span<const float> values(t.f32(), static_cast<size_t>(t.numel()));
  const Bytes bytes = encode_npy(t.shape(), NpyType::kF32, std::as_bytes(values));
  Response r{.type = "application/octet-stream", .body = {}, .headers = {{"Cache-Control", "no-store"}}};
  r.body.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return r;
}

Json trace_json(const Trace& trace) {
  Json sites = Json::array();
  for (const TraceSite& s : trace.sites()) {
    sites.push_back({{"id", s.id},
                     {"layers", s.layers.size()},
                     {"heads", s.H},
                     {"queries", s.Lq},
                     {"keys", s.Lk},
                     {"causal", s.causal},
                     {"rows", s.rows_are_target ? "target" : "source"},
                     {"columns", s.columns_are_target ? "target" : "source"},
                     {"scores", s.layers[0]->cell != nullptr}});
  }
  const TracedExample& e = trace.example();
  Json out{{"id", trace.id()},
           {"checkpoint", trace.weights()},
           {"output", e.output},
           {"tokens", {{"source", e.source}, {"target", e.target}}},
           {"sites", sites}};
  if (!e.candidates.empty()) out["candidates"] = candidates_json(e);
  if (!e.written.empty()) out["written"] = e.written;
  if (!e.written.empty()) out["first_written"] = e.first_written;
  if (!e.notice.empty()) out["notice"] = e.notice;
  if (trace.samples()) out["samples"] = true;
  if (e.picture) out["picture"] = picture_json(*e.picture);
  return out;
}

// "a:b" → {a, b}; absent → {0, whole}.
std::pair<int64_t, int64_t> range_of(const Request& r, const char* name, int64_t whole) {
  const std::string text = r.get(name);
  if (text.empty()) return {0, whole};
  int64_t first = 0, last = 0;
  const char* const end = text.data() + text.size();
  const auto [colon, bad_first] = std::from_chars(text.data(), end, first);
  const auto [rest, bad_last] = std::from_chars(std::min(colon + 1, end), end, last);
  if (bad_first != std::errc() || colon == end || *colon != ':' || bad_last != std::errc() || rest != end) {
    throw RouteError(400, "expected first:last, got '" + text + "'", name);
  }
  return {first, last};
}

MapWindow window_of(const Request& r, const TraceSite& site) {
  const auto [row_begin, row_end] = range_of(r, "rows", site.Lq);
  const auto [col_begin, col_end] = range_of(r, "cols", site.Lk);
  const std::string what = r.get("what", "weights");
  if (what != "weights" && what != "scores" && what != "rollout") {
    throw RouteError(400, "'what' must be weights, scores or rollout", "what");
  }
  return {.layer = r.get_integer("layer", 0),
          .head = r.get_integer("head", 0),
          .row_begin = row_begin,
          .row_end = row_end,
          .col_begin = col_begin,
          .col_end = col_end,
          .pool = r.get_integer("pool", 1),
          .kind = what == "scores"    ? MapKind::scores
                  : what == "rollout" ? MapKind::rollout
                                      : MapKind::weights};
}

Json figures_json(const Trace& trace, const TraceSite& site) {
  Json out{{"entropy", Json::array()},
           {"distance", Json::array()},
           {"largest", Json::array()},
           {"self", Json::array()},
           {"first", Json::array()}};
  for (const auto& layer : trace.figures(site)) {
    Json entropy, distance, largest, self, first;
    for (const HeadFigures& f : layer) {
      entropy.push_back(f.entropy);
      distance.push_back(f.distance);
      largest.push_back(f.largest);
      self.push_back(f.on_self);
      first.push_back(f.on_first);
    }
    out["entropy"].push_back(entropy);
    out["distance"].push_back(distance);
    out["largest"].push_back(largest);
    out["self"].push_back(self);
    out["first"].push_back(first);
  }
  return out;
}

// A score behind a mask is null.
Json finite(double v) { return std::isfinite(v) ? Json(v) : Json(); }

Json cell_json(const AttentionCell& c) {
  std::vector<double> contribution;
  for (const double v : c.value) contribution.push_back(c.weight * v);
  return {{"query", c.query},
          {"key", c.key},
          {"score_weight", c.score_weight},
          {"terms", c.terms},
          {"product", c.product},
          {"scale", c.scale},
          {"softcap", c.softcap},
          {"raw", c.raw},
          {"capped", c.capped},
          {"bias", finite(c.biased - c.capped)},
          {"score", finite(c.biased)},
          {"largest", finite(c.largest)},
          {"exponential", std::isfinite(c.biased) ? std::exp(c.biased - c.largest) : 0.0},
          {"total", c.total},
          {"normaliser", name_of(c.normaliser)},
          {"weight", c.weight},
          {"value", c.value},
          {"contribution", contribution},
          {"output", c.output}};
}

// "sample": {"temperature", "top_k", "top_p", "seed"}, each may be left out.
std::optional<SampleOptions> sample_member(const Json& body) {
  if (!body.is_object() || !body.contains("sample") || body["sample"].is_null()) return std::nullopt;
  if (!body["sample"].is_object()) throw RouteError(400, "'sample' must be an object", "sample");
  const JsonObject given = JsonObject(body, "the request").object("sample");
  SampleOptions how;
  if (given.has("temperature")) how.temperature = given.number("temperature", 0);
  if (given.has("top_k")) how.top_k = given.integer("top_k");
  if (given.has("top_p")) how.top_p = given.number("top_p", 0, 1);
  if (given.has("seed")) how.seed = static_cast<uint64_t>(given.integer("seed"));
  return how;
}

// The tokens an output is made to begin with.
std::vector<int64_t> beginning_member(const Json& body) {
  if (!body.is_object() || !body.contains("beginning")) return {};
  const Json& given = body["beginning"];
  const auto whole = [](const Json& id) { return id.is_number_integer(); };
  if (!given.is_array() || !std::all_of(given.begin(), given.end(), whole)) {
    throw RouteError(400, "'beginning' must be a list of tokens' numbers", "beginning");
  }
  return given.get<std::vector<int64_t>>();
}

// How many tokens are written; 0 when the request does not say.
int64_t length_member(const Json& body) {
  if (!body.is_object() || !body.contains("length")) return 0;
  if (!body["length"].is_number_integer()) throw RouteError(400, "'length' must be a whole number", "length");
  return body["length"].get<int64_t>();
}

}  // namespace

void add_trace_routes(Router& router, const Services& services) {
  ModelStore& models = services.models;
  TraceStore& traces = services.traces;
  router.add("GET", "/api/runs/{}/examples", [&](const Request& r) {
    const auto loaded = models.open(r.parts[0], r.get("checkpoint"));
    constexpr int64_t kExamples = 8;
    const auto lock = held(loaded->mutex);
    std::vector<std::string> inputs = packed_examples(loaded->run);
    if (inputs.empty()) inputs = loaded->model->examples(loaded->recorded ? 0 : kExamples);
    Json out{{"examples", inputs}};
    if (loaded->input == InputKind::picture) {
      for (const std::string& input : inputs) {
        const TracedExample e = loaded->model->trace(input);
        if (e.picture) out["pictures"].push_back(picture_json(*e.picture));
      }
    }
    return json_response(out);
  });
  router.add("POST", "/api/trace", [&](const Request& r) {
    const Json body = request_json(r);
    const auto trace = traces.make(
        {.model = text_member(body, "model"),
         .checkpoint = text_member(body, "checkpoint"),
         .input = text_member(body, "input"),
         .options = {
             .beginning = beginning_member(body), .sample = sample_member(body), .length = length_member(body)}});
    return json_response(trace_json(*trace));
  });
  router.add("GET", "/api/trace/{}/map", [&](const Request& r) {
    const auto trace = traces.find(r.parts[0]);
    const TraceSite& site = trace->site(r.get("site"));
    return npy_response(trace->map(site, window_of(r, site)));
  });
  router.add("GET", "/api/trace/{}/cell", [&](const Request& r) {
    const auto trace = traces.find(r.parts[0]);
    return json_response(cell_json(trace->cell(trace->site(r.get("site")), {.layer = r.get_integer("layer", 0),
                                                                            .head = r.get_integer("head", 0),
                                                                            .query = r.get_integer("query", 0),
                                                                            .key = r.get_integer("key", 0)})));
  });
  router.add("GET", "/api/trace/{}/thumbs", [&](const Request& r) {
    const auto trace = traces.find(r.parts[0]);
    return npy_response(trace->thumbnails(trace->site(r.get("site")), r.get_integer("size", 32)));
  });
  router.add("GET", "/api/trace/{}/figures", [&](const Request& r) {
    const auto trace = traces.find(r.parts[0]);
    return json_response(figures_json(*trace, trace->site(r.get("site"))));
  });
}

}  // namespace qkv::routes
