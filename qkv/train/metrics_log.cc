// metrics.jsonl: one JSON object a line, and the same figures as TensorBoard scalars.
#include <chrono>
#include <nlohmann/json.hpp>

#include "qkv/base/error.h"
#include "qkv/train/run_folder.h"

namespace qkv {
namespace {

using Json = nlohmann::ordered_json;

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
    validation[name] = value;
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
      const Json line = Json::parse(text.substr(begin, end - begin));
      if (line.at("kind") != "evaluation") continue;
      EvaluationRecord r;
      line.at("step").get_to(r.step);
      line.at("epoch").get_to(r.epoch);
      line.at("train_loss").get_to(r.train_loss);
      line.at("lr").get_to(r.lr);
      line.at("seconds").get_to(r.seconds);
      r.cpu_seconds = line.value("cpu_seconds", 0.0);
      line.at("tokens_per_second").get_to(r.tokens_per_second);
      for (const auto& [name, value] : line.at("validation").items()) {
        r.validation.emplace_back(name, value.get<double>());
      }
      records.push_back(std::move(r));
    } catch (const Json::exception&) {
      throw IoError(metrics_file(path_) + ": damaged line at byte " + std::to_string(begin));
    }
  }
  return records;
}

}  // namespace qkv
