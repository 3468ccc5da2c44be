// Routes about runs: the list, starting and stopping trainings, metrics.
#include <algorithm>
#include <fstream>

#include "qkv/serve/api_parts.h"

namespace qkv::serve {
namespace {

Json run_json(const RunInfo& run, Trainings& trainings) {
  Json one{{"id", run.id}, {"task", run.task}, {"checkpoints", run.checkpoints}};
  if (!run.error.empty()) one["error"] = run.error;
  one["training"] = trainings.is_running(run.id);
  one["settings"] = settings_json(run.settings);
  return one;
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
    try {
      out["records"].push_back(parse_json(std::string_view(text).substr(begin, end - begin), {.where = "metrics"}));
    } catch (const JsonError&) {
      // A damaged line is left out.
    }
    begin = end + 1;
  }
  out["next"] = from + static_cast<int64_t>(begin);
  out["more"] = from + static_cast<int64_t>(begin) < size;
  return out;
}

}  // namespace

void add_run_routes(HttpServer& server, ModelStore& models, Trainings& trainings) {
  server.get(
      "/api/runs",
      [&](const HttpRequest&) {
        Json list = Json::array();
        for (const RunInfo& run : models.list()) list.push_back(run_json(run, trainings));
        return json_response({{"root", models.root()}, {"runs", list}});
      },
      Work::light);
  server.post("/api/runs", [&](const HttpRequest& r) {
    const Json body = request_json(r);
    return json_response({{"id", trainings.start(text_member(body, "task", "reverse"), settings_member(body))}}, 201);
  });
  server.remove("/api/runs/([^/]+)", [&](const HttpRequest& r) {
    trainings.stop(r.parts[0]);
    return json_response({{"stopping", r.parts[0]}});
  });
  server.get(
      "/api/runs/([^/]+)/metrics",
      [&](const HttpRequest& r) {
        const RunInfo run = models.find(r.parts[0]);
        Json out = metrics_json(run.path, std::max<int64_t>(0, r.get_integer("from", 0)));
        out["checkpoints"] = run.checkpoints;
        out["training"] = trainings.is_running(run.id);
        return json_response(out);
      },
      Work::light);
}

}  // namespace qkv::serve
