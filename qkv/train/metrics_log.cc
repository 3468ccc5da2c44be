// metrics.jsonl: one JSON object a line, and the same figures as TensorBoard scalars.
#include <chrono>

#include "qkv/base/error.h"
#include "qkv/io/json.h"
#include "qkv/train/run_folder.h"

namespace qkv {
namespace {

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string metrics_file(const std::string& folder) { return folder + "/metrics.jsonl"; }

EventScalar scalar(std::string tag, double value) { return {std::move(tag), static_cast<float>(value)}; }

}  // namespace

MetricsLog::MetricsLog(const std::string& folder, uint64_t keep_metrics, uint64_t keep_events)
    : metrics_(metrics_file(folder), keep_metrics),
      events_(folder + "/events.out.tfevents.qkv", wall_time(), keep_events) {}

void MetricsLog::add(const StepRecord& r) {
  const Json line{
      {"kind", "step"}, {"step", r.step}, {"loss", r.loss}, {"lr", r.lr}, {"gradient_norm", r.gradient_norm}};
  metrics_.append(line.dump() + "\n");
  events_.scalars(
      wall_time(), r.step,
      {scalar("train/batch_loss", r.loss), scalar("train/lr", r.lr), scalar("train/gradient_norm", r.gradient_norm)});
}

void MetricsLog::add(const EvaluationRecord& r) {
  Json validation = Json::object();
  std::vector<EventScalar> scalars{scalar("train/loss", r.train_loss),
                                   scalar("train/tokens_per_second", r.tokens_per_second)};
  for (const auto& [name, value] : r.validation) {
    validation[name] = figure_json(value);
    scalars.push_back(scalar("validation/" + name, value));
  }
  const Json line{{"kind", "evaluation"},
                  {"step", r.step},
                  {"epoch", r.epoch},
                  {"train_loss", r.train_loss},
                  {"lr", r.lr},
                  {"seconds", r.seconds},
                  {"cpu_seconds", r.cpu_seconds},
                  {"tokens_per_second", r.tokens_per_second},
                  {"validation", validation}};
  metrics_.append(line.dump() + "\n");
  events_.scalars(wall_time(), r.step, scalars);
}

void MetricsLog::sync() {
  metrics_.sync();
  events_.sync();
}

std::vector<EvaluationRecord> RunFolder::history() const {
  std::vector<EvaluationRecord> records;
  const std::string text = read_text(metrics_file(path_));
  // A line without its end is one that a killed run did not finish.
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    try {
      const Json json = parse_json(std::string_view(text).substr(begin, end - begin), {.where = metrics_file(path_)});
      const JsonObject line(json, metrics_file(path_));
      if (line.text("kind") != "evaluation") continue;
      EvaluationRecord r;
      r.step = line.integer("step");
      r.epoch = line.integer("epoch");
      r.train_loss = line.figure("train_loss");
      r.lr = line.number("lr");
      r.seconds = line.number("seconds", 0);
      r.cpu_seconds = line.has("cpu_seconds") ? line.number("cpu_seconds", 0) : 0.0;
      r.tokens_per_second = line.number("tokens_per_second", 0);
      const JsonObject validation = line.object("validation");
      for (const auto& member : validation.json().items()) {
        r.validation.emplace_back(member.key(), validation.figure(member.key().c_str()));
      }
      records.push_back(std::move(r));
    } catch (const JsonError& e) {
      throw IoError(metrics_file(path_) + ": damaged line at byte " + std::to_string(begin));
    }
  }
  return records;
}

}  // namespace qkv
