// A task: data, model and loss behind one interface, so that the trainer and the commands know no model.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/base/error.h"
#include "qkv/base/settings.h"
#include "qkv/dist/agreement.h"
#include "qkv/figures/figures.h"
#include "qkv/nn/context.h"
#include "qkv/nn/module.h"
#include "qkv/tasks/metrics.h"
#include "qkv/tasks/prediction.h"

namespace qkv {

/// One of the groups that the sequences of a batch are divided into, balanced by their tokens; unsaid, all of them.
struct BatchPart {
  int64_t index = 0, count = 1;
};

/// What one batch, or a part of it, gives the trainer.
struct BatchLoss {
  Tensor loss = {};     // [], mean over its targets, recorded; undefined for a part without sequences
  int64_t targets = 0;  // how many targets that mean is over
  int64_t tokens = 0;   // tokens read, for the rate
};

/// Which validation figure decides early stopping and the best checkpoint.
struct Goal {
  std::string metric = "loss";
  double stop_at = 0;  // training ends when the figure reaches this (use ±infinity for never)
};

/// One figure for each of several groups of cases: exact match by length, accuracy by class.
struct Breakdown {
  std::string name = {};    // "exact_match_by_length"
  std::string by = {};      // "length"
  std::string metric = {};  // "exact_match"
  std::vector<double> x = {}, y = {};
  std::vector<int64_t> counts = {};      // cases in each group
  double trained_to = 0;                 // groups above this were never trained on (0: no such border)
  std::vector<std::string> labels = {};  // names of the groups, where x only numbers them
};

/// One input with what should have come out and what did.
struct Case {
  std::string input = {}, expected = {}, predicted = {};
};

/// What evaluation on a data set gives.
struct Evaluation {
  Metrics metrics = {};  // "loss" is always among them
  std::vector<Breakdown> breakdowns = {};
  std::vector<Case> errors = {};        // some that came out wrong, at most about twenty
  std::vector<std::string> notes = {};  // lines to print under the figures: signatures, what was skipped
};

/// A picture a model saw, and the grid of patches that became its tokens.
struct TracedPicture : Bitmap {
  int64_t patch_rows = 0, patch_columns = 0;  // tokens after the class token, row by row
  int64_t first_patch = 1;                    // index of the first patch among the tokens
};

/// A token that might have come next, and how likely the model held it.
struct TracedCandidate {
  std::string token = {};
  double probability = 0;
  int64_t id = 0;
};

/// One input run through the model with its attention: what maps, reports and the page show.
struct TracedExample {
  std::vector<std::string> source = {}, target = {};  // tokens; target is what the model produced
  std::string output = {};
  std::vector<AttentionTrace> attention = {};
  std::optional<TracedPicture> picture = {};
  std::vector<std::vector<TracedCandidate>> candidates = {};  // per token written: the likeliest, best first
  std::vector<int64_t> written = {};  // ids of the tokens written, where a trace may be made to begin with others
  int64_t first_written = 0;          // where they begin among their tokens: `target`, or `source` where that is empty
  std::string notice = {};            // what a reader must know, as a sentence: the input was cut

  /// Whether the rows (columns) of a site's attention are tokens of `target`; else they are of `source`.
  static bool rows_are_target(std::string_view site) {
    return site == "decoder" || site == "cross" || site == "alignment";
  }
  static bool columns_are_target(std::string_view site) { return site == "decoder"; }
  /// The tokens of the rows (columns), as many as there are: numbers where the tokens end.
  std::vector<std::string> row_tokens(const AttentionTrace& trace) const;
  std::vector<std::string> column_tokens(const AttentionTrace& trace) const;
};

/// What a trace is made to do in place of what the model would do by itself.
struct TraceOptions {
  std::vector<int64_t> beginning = {};       // tokens the output begins with, whatever the model would have chosen
  std::optional<SampleOptions> sample = {};  // draw the tokens; for tasks that sample
  int64_t length = 0;                        // tokens to write; 0: the usual number; for tasks that sample
};

/// What a task works on, one at a time.
enum class InputKind : uint8_t {
  text,      // a line of it
  question,  // a line that asks, or the name of whom is asked about
  picture,   // a PNG's path, "data:image/png;base64,…", or "val:17" and "test:17", the number of one of its own
};
template <>
struct Names<InputKind> {
  static constexpr const char* what = "kind of input";
  static constexpr NameRow<InputKind> rows[] = {
      {InputKind::text, "text"}, {InputKind::question, "question"}, {InputKind::picture, "picture"}};
};
/// Whether an input is what it says and names no file of this machine: only such ones are taken from clients.
bool names_no_file(InputKind kind, std::string_view input);

/// What shows where it looks: a task with its weights, or what was recorded of one.
class Traceable {
 public:
  virtual ~Traceable() = default;

  /// Throws ConfigError on an input it cannot read.
  virtual TracedExample trace(const std::string& input) = 0;
  /// The same as `options` tell: what if it had said this, what if tokens were drawn? Throws ConfigError where nothing
  /// is written or drawn, and for tokens there are not.
  virtual TracedExample trace_with(const std::string& input, const TraceOptions& options) {
    if (!options.beginning.empty()) throw ConfigError("this model generates no text, so it takes no prefix");
    return trace(input);
  }
  /// Whether trace_with(), and predict() of a task, draw tokens when asked to.
  virtual bool samples() const { return false; }
  /// Inputs worth looking at; a task's are from its validation set.
  virtual std::vector<std::string> examples(int64_t n) = 0;
};

class Task : public Traceable {
 public:
  virtual void visit(Visitor& see) = 0;

  /// What takes long before the first batch: tokens of a large text. Nobody has to call it.
  virtual void prepare() {}
  /// Batches of epoch e; their order depends on (seed, e) alone, so a run resumes from (epoch, batch).
  virtual int64_t batches_in_epoch(int64_t epoch) = 0;
  virtual BatchLoss train_batch(int64_t epoch, int64_t batch, Context& ctx, const BatchPart& part = {}) = 0;
  /// Figures on the validation set; "loss" is always among them.
  virtual Metrics validate() = 0;
  virtual Goal goal() const = 0;

  /// Everything about a file or folder the user names; empty = the task's own validation or test data.
  /// Throws IoError on data that cannot be read or do not fit the task.
  virtual Evaluation evaluate(const std::string& data) = 0;
  /// One list of candidates per input, best first. Throws ConfigError on an input the task cannot read.
  virtual std::vector<std::vector<Prediction>> predict(std::span<const std::string> inputs,
                                                       const DecodeOptions& options) = 0;
  /// From now on maps what the vocabulary lacks to what it has, instead of refusing it; false where nothing is refused.
  virtual bool replace_missing() { return false; }
  /// Why examples() chose this input: "the longest"; empty where there is nothing to say.
  virtual std::string about_example(const std::string& input) const {
    static_cast<void>(input);
    return "";
  }
  /// Lines a user should read before training: what was left out of the data and where.
  virtual std::vector<std::string> notes() { return {}; }

  /// What only this task can show in a run's report, after its figures and before its maps.
  virtual std::vector<Section> report_sections() { return {}; }

  /// Files besides the weights that a run needs (tokenizer models); written once into / read from the run folder.
  virtual void save_assets(const std::string& folder) const { static_cast<void>(folder); }
  /// The file or folder of its data where no setting names it; empty: there is none.
  virtual std::string unnamed_data() const { return ""; }

  /// From now on validate() and evaluate() are called by all these processes, and each does its share.
  void work_with(Processes& processes) { processes_ = &processes; }

 protected:
  Processes& processes() const { return *processes_; }

 private:
  Processes* processes_ = &one_process();
};

/// One row of the table of tasks.
struct TaskSpec {
  const char* name;
  const char* summary;
  Settings (*settings)();  // every option of a run, training_settings() included, with this task's defaults
  /// Makes the task; assets is a run folder to read from, or empty for a new run.
  std::unique_ptr<Task> (*make)(const Settings& settings, const std::string& assets);
  InputKind input = InputKind::text;  // what predict and trace take
  const char* about = "";             // a paragraph for reports: what is learnt, and what to look for
  const char* examples = "";          // of qkv train, for its help: a command and what it does a line
};

/// All tasks. A new task is one file and one row here.
std::span<const TaskSpec> task_table();
/// Throws ConfigError listing the tasks that exist.
const TaskSpec& find_task(const std::string& name);

/// The options that every task's training has (tasks include these and may change the defaults): seed, epochs, steps,
/// batch, accumulate, parts, optimizer, lr, weight-decay, momentum, clip, schedule, warmup, final-lr, eval-every,
/// checkpoint-every, keep, average, patience, log-every, from, from-weights.
Settings training_settings();

}  // namespace qkv
