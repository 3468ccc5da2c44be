// Routes about runs: the list, starting and stopping trainings, metrics.
#include <algorithm>

#include "qkv/io/json.h"
#include "qkv/routes/parts.h"
#include "qkv/train/metrics_log.h"

namespace qkv::routes {
namespace {

Json run_json(const RunInfo& run, Trainings& trainings) {
  Json one{{"id", run.id}, {"task", run.task}, {"checkpoints", run.checkpoints}};
  if (run.recorded) one["recorded"] = true;
  if (!run.group.empty()) one["group"] = run.group;
  if (!run.error.empty()) one["error"] = run.error;
  for (const TaskSpec& task : task_table()) {
    if (run.task == task.name) one["input"] = name_of(task.input);
  }
  one["training"] = trainings.is_running(run.id);
  one["settings"] = settings_json(run.settings);
  return one;
}

// Records of metrics.jsonl from byte `from`; `next` is where the rest begins.
Json metrics_json(const std::string& folder, int64_t from) {
  const MetricsPart part = MetricsLog::part(folder, from);
  return {{"next", part.next}, {"records", part.records}, {"more", part.more}};
}

// The runs there are, and trainings that failed before or after they had one.
Json list_json(const Services& s) {
  Json list = Json::array();
  std::map<std::string, std::string> failures = s.trainings.failures();
  for (RunInfo& run : s.models.list()) {
    if (const auto failed = failures.find(run.id); failed != failures.end()) {
      if (run.error.empty()) run.error = failed->second;
      failures.erase(failed);
    }
    list.push_back(run_json(run, s.trainings));
  }
  for (const auto& [id, what] : failures) {
    RunInfo run;
    run.id = id;
    run.error = what;
    list.push_back(run_json(run, s.trainings));
  }
  Json data = Json::array();
  for (const auto& [name, path] : s.data_sets) data.push_back(name);
  return {{"root", s.models.root()}, {"read_only", s.read_only}, {"data_sets", data}, {"runs", list}};
}

// What a client orders: settings that the task leaves open to clients, a data set and a run by the names listed.
TrainingOrder order_of(const Json& body, const Services& s) {
  TrainingOrder order{.task = text_member(body, "task"), .settings = settings_member(body)};
  for (const auto& [name, value] : body.items()) {
    if (name != "task" && name != "settings" && name != "data" && name != "text" && name != "from")
      throw RouteError(400, "a training takes task, settings, data, text and from, not " + quoted_name(name), name);
  }
  if (order.task.empty()) throw RouteError(400, "give the task to train; GET /api/tasks lists them", "task");
  Settings checked = find_task(order.task).settings();
  for (const auto& [name, value] : order.settings) checked.set_by_client(name, value);
  if (const std::string name = text_member(body, "data"); !name.empty()) {
    const auto found = s.data_sets.find(name);
    if (found == s.data_sets.end()) {
      throw RouteError(400, "no data set '" + name + "'; 'qkv serve --allow-data DIR' makes one available", "data");
    }
    checked.set("data", found->second);
    order.settings.emplace_back("data", found->second);
  }
  if (const std::string text = text_member(body, "text"); !text.empty()) {
    if (!checked.has("carry")) throw RouteError(400, "task '" + order.task + "' learns from no text", "text");
    const std::string path = s.trainings.keep_text(text);
    order.settings.emplace_back("data", path);
    order.settings.emplace_back("carry", "true");
  }
  if (const std::string id = text_member(body, "from"); !id.empty()) {
    const std::string path = s.models.find(id).path;
    checked.set("from", path);
    order.settings.emplace_back("from", path);
  }
  return order;
}

// Every task that can be trained, with the settings a client may choose.
Json tasks_json() {
  Json list = Json::array();
  for (const TaskSpec& task : task_table()) {
    Json open = Json::array();
    for (Json& setting : settings_json(task.settings())) {
      if (setting["open"]) open.push_back(std::move(setting));
    }
    list.push_back({{"name", task.name}, {"summary", task.summary}, {"settings", std::move(open)}});
  }
  return {{"tasks", std::move(list)}};
}

void refuse_read_only(const Services& s) {
  if (s.read_only) {
    throw RouteError(403, "this server is read-only: on another machine's request nothing is started or stopped");
  }
}

}  // namespace

std::string Trainings::keep_text(const std::string& text) {
  static_cast<void>(text);
  throw RouteError(400, "this server takes no text; 'qkv serve --allow-data DIR' offers files of its own", "text");
}

void add_run_routes(Router& router, const Services& services) {
  router.add(
      "GET", "/api/runs", [s = services](const Request&) { return json_response(list_json(s)); }, Work::light);
  router.add("POST", "/api/runs", [s = services](const Request& r) {
    refuse_read_only(s);
    return json_response({{"id", s.trainings.start(order_of(request_json(r), s))}}, 201);
  });
  router.add(
      "GET", "/api/tasks", [](const Request&) { return json_response(tasks_json()); }, Work::light);
  router.add(
      "DELETE", "/api/runs/{}",
      [s = services](const Request& r) {
        refuse_read_only(s);
        s.trainings.stop(r.parts[0]);
        return json_response({{"stopping", r.parts[0]}});
      },
      Work::light);
  router.add(
      "GET", "/api/runs/{}/metrics",
      [s = services](const Request& r) {
        const RunInfo run = s.models.find(r.parts[0]);
        Json out = metrics_json(run.path, std::max<int64_t>(0, r.get_integer("from", 0)));
        out["checkpoints"] = run.checkpoints;
        out["training"] = s.trainings.is_running(run.id);
        return json_response(out);
      },
      Work::light);
}

}  // namespace qkv::routes
