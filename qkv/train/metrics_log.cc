// Writing and reading metrics.jsonl.
#include "qkv/train/metrics_log.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "qkv/base/error.h"
#include "qkv/io/json.h"

namespace qkv {
namespace {

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string metrics_file(const std::string& folder) { return folder + "/metrics.jsonl"; }

EventScalar scalar(std::string tag, double value) { return {std::move(tag), static_cast<float>(value)}; }

EvaluationRecord evaluation_from(const JsonObject& line) {
  EvaluationRecord r;
  r.step = line.integer("step");
  r.epoch = line.integer("epoch");
  r.train_loss = line.figure("train_loss");
  r.lr = line.number("lr");
  r.seconds = line.number("seconds", 0);
  r.cpu_seconds = line.has("cpu_seconds") ? line.number("cpu_seconds", 0) : 0.0;
  r.tokens_per_second = line.number("tokens_per_second", 0);
  r.validation = line.object("validation").figures();
  return r;
}

/// Calls see(line, where it begins) for every line that has its end; returns where the rest begins.
template <class See>
size_t for_lines(std::string_view text, See&& see) {
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string_view::npos; begin = end + 1) {
    see(text.substr(begin, end - begin), begin);
  }
  return begin;
}

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

std::vector<EvaluationRecord> MetricsLog::parse(std::string_view text, const std::string& file) {
  std::vector<EvaluationRecord> records;
  for_lines(text, [&](std::string_view line, size_t begin) {
    try {
      const Json json = parse_json(line, {.where = file});
      const JsonObject object(json, file);
      if (object.text("kind") == "evaluation") records.push_back(evaluation_from(object));
    } catch (const JsonError&) {
      throw IoError(file + ": damaged line at byte " + std::to_string(begin));
    }
  });
  return records;
}

std::vector<EvaluationRecord> MetricsLog::evaluations(const std::string& folder, uint64_t bytes) {
  constexpr uint64_t kMost = uint64_t{256} << 20;  // millions of lines
  const std::string file = metrics_file(folder);
  if (bytes > kMost) {
    throw IoError("cannot read " + file + ": " + std::to_string(bytes) + " bytes, more than the " +
                  std::to_string(kMost) + " allowed");
  }
  return parse(read_part(file, 0, static_cast<size_t>(bytes)), file);
}

MetricsPart MetricsLog::part(const std::string& folder, int64_t from) {
  constexpr size_t kMost = size_t{1} << 20;
  MetricsPart part{.records = {}, .next = from, .more = false};
  const std::string file = metrics_file(folder);
  std::error_code error;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(file, error));
  if (error) return part;  // there is none yet
  if (from > size) from = 0;
  const std::string text = read_part(file, static_cast<uint64_t>(from), kMost);
  const size_t used = for_lines(text, [&](std::string_view line, size_t) {
    try {
      part.records.push_back(parse_json(line, {.where = file}));
    } catch (const JsonError&) {
      // The others are still worth showing.
    }
  });
  // A line that does not end within a part is not one of ours: it is skipped.
  part.next = from + static_cast<int64_t>(used == 0 && text.size() == kMost ? kMost : used);
  part.more = from + static_cast<int64_t>(text.size()) < size;
  return part;
}

}  // namespace qkv
