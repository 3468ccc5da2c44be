// Routes: requests in, library calls, JSON or .npy out.
#include "qkv/serve/api.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "qkv/base/error.h"
#include "qkv/io/npy.h"
#include "qkv/lab/experiment.h"

namespace qkv::serve {
namespace {

using Json = nlohmann::ordered_json;

HttpResponse json_response(const Json& body, int status = 200) {
  return {.status = status,
          .body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
          .headers = {{"Cache-Control", "no-store"}}};
}

HttpResponse npy_response(const Tensor& t) {
  const std::span<const float> values(t.f32(), static_cast<size_t>(t.numel()));
  const Bytes bytes = encode_npy(t.shape(), NpyType::kF32, std::as_bytes(values));
  HttpResponse r{.type = "application/octet-stream", .body = {}, .headers = {{"Cache-Control", "no-store"}}};
  r.body.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return r;
}

// A member of a request's object. Throws HttpError 400 naming the field.
std::string text_member(const Json& body, const char* name, const std::string& otherwise = "") {
  if (!body.is_object()) throw HttpError(400, "the request must be a JSON object");
  if (!body.contains(name) || body[name].is_null()) return otherwise;
  if (body[name].is_string()) return body[name];
  if (body[name].is_number_integer()) return std::to_string(body[name].get<int64_t>());
  throw HttpError(400, std::string("'") + name + "' must be text", name);
}

std::vector<std::pair<std::string, std::string>> settings_member(const Json& body) {
  std::vector<std::pair<std::string, std::string>> out;
  if (!body.is_object() || !body.contains("settings")) return out;
  if (!body["settings"].is_object()) throw HttpError(400, "'settings' must be an object", "settings");
  for (const auto& [name, value] : body["settings"].items()) {
    out.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return out;
}

Json settings_json(const Settings& settings) {
  static constexpr const char* kKinds[] = {"integer", "number", "text", "flag", "choice"};
  Json list = Json::array();
  for (const Setting& s : settings.all()) {
    Json one{{"name", s.name}, {"value", s.value}, {"help", s.help}, {"kind", kKinds[static_cast<int>(s.kind)]}};
    if (std::isfinite(s.low)) one["low"] = s.low;
    if (std::isfinite(s.high)) one["high"] = s.high;
    if (!s.choices.empty()) one["choices"] = s.choices;
    list.push_back(std::move(one));
  }
  return list;
}

Json run_json(const RunInfo& run, Trainings& trainings) {
  Json one{{"id", run.id}, {"task", run.task}, {"checkpoints", run.checkpoints}};
  if (!run.error.empty()) one["error"] = run.error;
  one["training"] = trainings.is_running(run.id);
  one["settings"] = settings_json(run.settings);
  return one;
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
                     {"columns", s.columns_are_target ? "target" : "source"}});
  }
  const TracedExample& e = trace.example();
  return {{"id", trace.id()},
          {"output", e.output},
          {"tokens", {{"source", e.source}, {"target", e.target}}},
          {"sites", sites}};
}

// "a:b" → {a, b}; absent → {0, whole}.
std::pair<int64_t, int64_t> range_of(const HttpRequest& r, const char* name, int64_t whole) {
  const std::string text = r.get(name);
  if (text.empty()) return {0, whole};
  long long a = 0, b = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%lld:%lld%c", &a, &b, &rest) != 2) {
    throw HttpError(400, "expected first:last, got '" + text + "'", name);
  }
  return {a, b};
}

MapWindow window_of(const HttpRequest& r, const TraceSite& site) {
  const auto [row_begin, row_end] = range_of(r, "rows", site.Lq);
  const auto [col_begin, col_end] = range_of(r, "cols", site.Lk);
  const std::string what = r.get("what", "weights");
  if (what != "weights" && what != "scores") throw HttpError(400, "what is weights or scores", "what");
  return {.layer = r.get_integer("layer", 0),
          .head = r.get_integer("head", 0),
          .row_begin = row_begin,
          .row_end = row_end,
          .col_begin = col_begin,
          .col_end = col_end,
          .pool = r.get_integer("pool", 1),
          .scores = what == "scores"};
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

// Records of metrics.jsonl from byte `from`, whole lines only; `next` is where to go on.
Json metrics_json(const std::string& folder, int64_t from) {
  constexpr int64_t kMost = 1 << 20;
  std::ifstream file(folder + "/metrics.jsonl", std::ios::binary);
  Json out{{"next", from}, {"records", Json::array()}};
  if (!file) return out;
  file.seekg(0, std::ios::end);
  const auto size = static_cast<int64_t>(file.tellg());
  if (from > size) from = 0;  // the run began again
  std::string text(static_cast<size_t>(std::min(kMost, size - from)), '\0');
  file.seekg(from);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    Json record = Json::parse(text.begin() + static_cast<int64_t>(begin), text.begin() + static_cast<int64_t>(end),
                              nullptr, false);
    if (!record.is_discarded()) out["records"].push_back(std::move(record));
    begin = end + 1;
  }
  out["next"] = from + static_cast<int64_t>(begin);
  out["more"] = from + static_cast<int64_t>(begin) < size;
  return out;
}

Json experiment_json(const lab::Result& result) {
  Json rows = Json::array();
  for (const lab::Row& r : result.rows) {
    rows.push_back({{"at", r.at},
                    {"quantity", r.quantity},
                    {"predicted", r.predicted},
                    {"measured", r.measured},
                    {"kind", lab::name_of(r.kind)},
                    {"standard_error", r.standard_error},
                    {"tolerance", r.tolerance},
                    {"agrees", r.agrees()}});
  }
  return {{"claim", result.claim}, {"formula", result.formula}, {"rows", rows}, {"notes", result.notes}};
}

void add_model_routes(HttpServer& server, ModelStore& models, TraceStore& traces) {
  server.get("/api/runs/([^/]+)/examples", [&](const HttpRequest& r) {
    const auto model = models.open(r.parts[0], r.get("checkpoint"));
    std::lock_guard lock(model->mutex);
    return json_response({{"examples", model->task->examples(8)}});
  });
  server.post("/api/trace", [&](const HttpRequest& r) {
    const Json body = Json::parse(r.body);
    const auto trace =
        traces.make(text_member(body, "model"), text_member(body, "checkpoint"), text_member(body, "input"));
    return json_response(trace_json(*trace));
  });
  server.get("/api/trace/([0-9a-f]+)/map", [&](const HttpRequest& r) {
    const auto trace = traces.find(r.parts[0]);
    const TraceSite& site = trace->site(r.get("site"));
    return npy_response(trace->map(site, window_of(r, site)));
  });
  server.get("/api/trace/([0-9a-f]+)/thumbs", [&](const HttpRequest& r) {
    const auto trace = traces.find(r.parts[0]);
    return npy_response(trace->thumbnails(trace->site(r.get("site")), r.get_integer("size", 32)));
  });
  server.get("/api/trace/([0-9a-f]+)/figures", [&](const HttpRequest& r) {
    const auto trace = traces.find(r.parts[0]);
    return json_response(figures_json(*trace, trace->site(r.get("site"))));
  });
}

void add_run_routes(HttpServer& server, ModelStore& models, Trainings& trainings) {
  server.get("/api/runs", [&](const HttpRequest&) {
    Json list = Json::array();
    for (const RunInfo& run : models.list()) list.push_back(run_json(run, trainings));
    return json_response({{"root", models.root()}, {"runs", list}});
  });
  server.post("/api/runs", [&](const HttpRequest& r) {
    const Json body = Json::parse(r.body);
    return json_response({{"id", trainings.start(text_member(body, "task", "reverse"), settings_member(body))}}, 201);
  });
  server.remove("/api/runs/([^/]+)", [&](const HttpRequest& r) {
    trainings.stop(r.parts[0]);
    return json_response({{"stopping", r.parts[0]}});
  });
  server.get("/api/runs/([^/]+)/metrics", [&](const HttpRequest& r) {
    const RunInfo run = models.find(r.parts[0]);
    Json out = metrics_json(run.path, std::max<int64_t>(0, r.get_integer("from", 0)));
    out["checkpoints"] = run.checkpoints;
    out["training"] = trainings.is_running(run.id);
    return json_response(out);
  });
}

void add_lab_routes(HttpServer& server) {
  server.get("/api/lab", [](const HttpRequest&) {
    Json list = Json::array();
    for (const lab::Experiment& e : lab::experiment_table()) {
      list.push_back({{"name", e.name}, {"summary", e.summary}, {"settings", settings_json(e.settings())}});
    }
    return json_response({{"experiments", list}});
  });
  server.post("/api/lab/([a-z0-9-]+)", [](const HttpRequest& r) {
    const lab::Experiment& e = lab::find_experiment(r.parts[0]);
    Settings settings = e.settings();
    if (!r.body.empty()) {
      for (const auto& [name, value] : settings_member(Json::parse(r.body))) settings.set(name, value);
    }
    return json_response(experiment_json(e.run(settings)));
  });
}

}  // namespace

void add_api(HttpServer& server, ModelStore& models, TraceStore& traces, Trainings& trainings) {
  add_model_routes(server, models, traces);
  add_run_routes(server, models, trainings);
  add_lab_routes(server);
}

}  // namespace qkv::serve
