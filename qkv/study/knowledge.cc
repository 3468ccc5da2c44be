// Training the rows of the knowledge study, a part at a time.
#include "qkv/study/knowledge.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <thread>

#include "qkv/base/error.h"
#include "qkv/io/json.h"
#include "qkv/tasks/knowledge/data.h"

namespace qkv {
namespace {

constexpr double kProcessors = 2;  // of the machine whose hours are counted
constexpr double kSecondsPerHour = 3600;

constexpr StudyRow kRows[] = {{"none", "multi-head", "learned", false},
                              {"vanilla", "multi-head", "learned", true},
                              {"synthesizer", "synthesizer", "learned", true},
                              {"rotary", "multi-head", "rotary", true}};

/// Stops a training at a given update, to finetune from there; somebody else may watch and stop it as well.
class UntilStep final : public TrainObserver {
 public:
  UntilStep(TrainObserver* watching, int64_t step) : watching_(watching), step_(step) {}
  void on_step(const StepReport& report) override {
    now_ = report.step;
    if (watching_ != nullptr) watching_->on_step(report);
  }
  void on_evaluation(const EvaluationRecord& record) override {
    if (watching_ != nullptr) watching_->on_evaluation(record);
  }
  bool wants_stop() override { return (watching_ != nullptr && watching_->wants_stop()) || now_ >= step_; }

 private:
  TrainObserver* watching_;
  int64_t step_, now_ = 0;
};

/// Epochs after which a row is asked: total, and on the way total/2, total/4, …
std::vector<int64_t> moments_of(int64_t epochs, int64_t count) {
  std::vector<int64_t> all;
  for (int64_t k = 0; k < count && epochs >> k > 0; ++k) all.insert(all.begin(), epochs >> k);
  return all;
}

Settings answering(const Settings& reading, const Finetuning& how, bool alone) {
  Settings s = reading;
  s.set("stage", "finetune");
  s.set("optimizer", "adamw");  // Muon overwrites more of what was read: 12.6 % for AdamW's 24.0 % (docs/RESULTS.md)
  s.set("epochs", std::to_string(alone ? how.alone_epochs : how.epochs));
  s.set("steps", "0");
  if (how.batch > 0) s.set("batch", std::to_string(how.batch));
  char lr[32];
  std::snprintf(lr, sizeof lr, "%.12g", alone ? how.alone_lr : how.lr);
  s.set("lr", lr);
  s.set("schedule", "linear");
  s.set("final-lr", "0");
  s.set("warmup", "20");
  s.set("eval-every", "0");
  s.set("checkpoint-every", "0");
  s.set("keep", "1");
  return s;
}

// Version 0.1 called a row "pretrained" that is "vanilla" now; its studies continue in their folders.
constexpr const char* kEarlierName = "pretrained";
std::string current_name(const std::string& row) { return row == kEarlierName ? "vanilla" : row; }
std::string row_folder(const std::string& study, const std::string& row) {
  std::error_code error;
  const std::string before = study + "/" + kEarlierName;
  return row == current_name(kEarlierName) && std::filesystem::exists(before, error) ? before : study + "/" + row;
}

struct Part {
  const StudyOptions& options;
  RunsObserver* observer;
};

/// Trains an answering run to its end; false when the observer stopped it.
bool answer(const Part& part, const std::string& path, const Settings& settings, const std::string& label,
            StudyPoint& point) {
  point.run = path;
  std::error_code error;
  if (!std::filesystem::exists(path + "/result.json", error)) {
    OpenedRun run = open_or_create(path, find_task("knowledge"), settings);
    if (run_watched(run, label, part.observer).training.interrupted) return false;
  }
  const std::string file = path + "/result.json";
  point.exact_match = JsonObject(read_json(file, "the result of a run"), file).number("exact_match", 0, 1);
  const std::vector<EvaluationRecord> history = RunFolder::open(path).history();
  if (!history.empty()) point.held_match = metric_of(history.back().validation, "exact_match");
  return true;
}

int64_t parameters_in(const std::string& path) {
  std::unique_ptr<Task> task = RunFolder::open(path).make_task();
  int64_t n = 0;
  for (const NamedParameter& p : parameters_of(*task)) n += p.value.numel();
  return n;
}

/// Reads until `epoch`; the checkpoint to continue from, or nothing when the observer stopped it.
std::optional<int64_t> read_until(const Part& part, const std::string& path, const Settings& settings, int64_t epoch,
                                  const std::string& label, StudyPoint& point) {
  auto [run, task, weights] = open_or_create(path, find_task("knowledge"), settings);
  run.lock();
  if (run.settings().get_integer("epochs") != settings.get_integer("epochs")) {
    run.change("epochs", std::to_string(settings.get_integer("epochs")));
  }
  const int64_t step = epoch * task->batches_in_epoch(0);
  const std::vector<int64_t> saved = run.checkpoints();
  if (saved.empty() || saved.back() < step) {
    UntilStep until(part.observer != nullptr ? part.observer->on_start(label, run, *task) : nullptr, step);
    Trainer trainer(*task, trainer_options(run.settings()), &run, &until);
    trainer.resume();
    const TrainResult result = trainer.run();
    if (result.interrupted && result.state.step < step) return std::nullopt;
  }
  const TrainState state = run.load_state(run.checkpoints().back());
  point.epochs = state.epoch;
  point.machine_hours = state.cpu_seconds / kProcessors / kSecondsPerHour;
  for (const EvaluationRecord& r : run.history()) {
    if (r.step <= state.step) point.reading_loss = r.train_loss;
  }
  return state.step;
}

/// False when the observer stopped it.
bool run_row(const Part& part, const StudyRow& row, StudyResult& result, const std::function<void()>& changed) {
  Settings reading = part.options.reading;
  reading.set("attention", row.attention);
  reading.set("positions", row.positions);
  const std::string folder = row_folder(part.options.folder, row.name);
  if (!row.reads) {
    StudyPoint point;
    if (!answer(part, folder, answering(reading, part.options.finetuning, true), row.name, point)) return false;
    result.points = {point};
    result.parameters = parameters_in(folder);
    changed();
    return true;
  }
  for (const StudyResult& earlier : study_results(part.options.folder)) {
    if (earlier.row == row.name) result.points = earlier.points;
  }
  const std::string name = row.name;
  for (const int64_t epoch : moments_of(reading.get_integer("epochs"), part.options.moments)) {
    const auto known = [&](const StudyPoint& p) { return p.epochs >= epoch; };
    if (std::any_of(result.points.begin(), result.points.end(), known)) continue;
    StudyPoint point;
    const auto step = read_until(part, folder + "/reading", reading, epoch, name + " reads", point);
    if (!step) return false;
    Settings settings = answering(reading, part.options.finetuning, false);
    settings.set("from", folder + "/reading");
    settings.set("from-weights", std::to_string(*step));
    const std::string path = folder + "/answers-" + std::to_string(point.epochs);
    if (!answer(part, path, settings, name + " answers", point)) return false;
    result.points.push_back(point);
    result.parameters = parameters_in(folder + "/reading");
    changed();
  }
  if (result.parameters == 0) result.parameters = parameters_in(folder + "/reading");
  return true;
}

/// A row's results are written in no time, so nobody waits long.
std::shared_ptr<void> lock_when_free(const std::string& folder) {
  constexpr int kTries = 200;
  for (int i = 0; i < kTries; ++i) {
    try {
      return lock_folder(folder);
    } catch (const IoError&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
  }
  return lock_folder(folder);
}

}  // namespace

std::span<const StudyRow> study_rows() { return kRows; }

const StudyRow& study_row(const std::string& name) {
  std::vector<std::string> names;
  for (const StudyRow& row : kRows) {
    if (row.name == current_name(name)) return row;
    names.emplace_back(row.name);
  }
  throw ConfigError(unknown_name("row", name, names));
}

StudyOptions study_options(Recipe recipe, const std::string& data) {
  StudyOptions o;
  o.recipe = recipe;
  o.reading = find_task("knowledge").settings();
  const auto set = [&](std::initializer_list<std::pair<const char*, const char*>> values) {
    for (const auto& [name, value] : values) o.reading.set(name, value);
  };
  set({{"stage", "pretrain"}});
  o.reading.set("data", data);
  if (data.empty()) {
    set({{"width", "128"}, {"layers", "2"}, {"heads", "4"}, {"held", "30"}, {"epochs", "40"}, {"batch", "32"}});
    set({{"lr", "0.003"}});
  }
  if (recipe == Recipe::questions) {
    // What was taught word for word needs no more than the form of an answer, and gently.
    o.finetuning.epochs = 3;
    o.finetuning.lr = 2e-4;
    return o;
  }
  set({{"names", "0"}, {"answers", "0"}, {"ask", "0"}, {"questions", "0"}, {"span-weight", "1"}});
  // Orthogonal updates recall about as much after 40 epochs as AdamW's after 80; docs/RESULTS.md has both.
  set({{"optimizer", "muon"}, {"lr", "0.005"}, {"batch", "32"}, {"epochs", data.empty() ? "40" : "120"}});
  o.finetuning.epochs = data.empty() ? 20 : 10;
  o.finetuning.batch = data.empty() ? 0 : 256;
  o.finetuning.lr = 6e-4;
  return o;
}

Baseline study_baseline(const StudyOptions& options) {
  KnowledgeData data(options.reading, "");
  std::map<std::string, int64_t> counts;
  for (const Fact& f : data.corpus().train) ++counts[f.place];
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  Baseline b{most->first, constant_baseline(most->first, data.corpus().dev).percent() / 100, std::nullopt};
  if (const std::optional<Matches> open = data.open_book(data.corpus().dev)) b.open_book = open->percent() / 100;
  return b;
}

std::string study_json(const StudyOptions& options, const std::vector<StudyResult>& results) {
  Json rows = Json::array();
  for (const StudyResult& r : results) {
    Json points = Json::array();
    for (const StudyPoint& p : r.points) {
      points.push_back({{"epochs", p.epochs},
                        {"machine_hours", p.machine_hours},
                        {"reading_loss", p.reading_loss ? Json(*p.reading_loss) : Json()},
                        {"exact_match", p.exact_match},
                        {"held_match", p.held_match},
                        {"run", p.run}});
    }
    rows.push_back({{"row", r.row}, {"parameters", r.parameters}, {"points", points}});
  }
  return Json{{"task", "knowledge"},
              {"recipe", name_of(options.recipe)},
              {"report", options.folder + "/report.html"},
              {"rows", rows}}
      .dump();
}

std::vector<StudyResult> study_results(const std::string& folder) {
  std::vector<StudyResult> results;
  const std::string file = folder + "/results.json";
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return results;
  try {
    const Json all = read_json(file, "the results of a study");
    for (const JsonObject& r : JsonObject(all, file).objects("rows")) {
      results.push_back({current_name(r.text("row")), r.integer("parameters"), {}});
      for (const JsonObject& p : r.objects("points")) {
        StudyPoint point{p.integer("epochs"),     p.number("machine_hours", 0), std::nullopt,
                         p.figure("exact_match"), p.figure("held_match"),       p.text("run")};
        if (!p.json().at("reading_loss").is_null()) point.reading_loss = p.figure("reading_loss");
        results.back().points.push_back(std::move(point));
      }
    }
  } catch (const JsonError& e) {
    throw IoError(std::string(e.what()) + "; remove it, the runs beside it stay");
  }
  return results;
}

bool run_knowledge_study(const StudyOptions& options, RunsObserver* observer) {
  make_folders(options.folder);
  for (const std::string& name : options.rows) {
    StudyResult result{name, 0, {}};
    const auto changed = [&] {
      // Another process may be at work on another row: what it has written stays.
      const std::shared_ptr<void> lock = lock_when_free(options.folder);
      std::vector<StudyResult> all, before = study_results(options.folder);
      for (const StudyRow& row : kRows) {
        if (row.name == name) all.push_back(result);
        for (const StudyResult& r : before) {
          if (r.row == row.name && r.row != name) all.push_back(r);
        }
      }
      write_file_atomic(options.folder + "/results.json", study_json(options, all) + "\n");
    };
    if (!run_row({options, observer}, study_row(name), result, changed)) return false;
  }
  return true;
}

bool run_study_apart(const StudyOptions& options, RunsObserver* observer, Processes& processes) {
  StudyOptions mine = options;
  mine.rows.clear();
  for (size_t i = 0; i < options.rows.size(); ++i) {
    if (static_cast<int>(i) % processes.size() == processes.rank()) mine.rows.push_back(options.rows[i]);
  }
  return !any_of(processes, !run_knowledge_study(mine, observer));
}

}  // namespace qkv
