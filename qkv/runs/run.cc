// Runs for other programs: a loaded task behind a plain interface.
#include <algorithm>

#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/runs.h"
#include "qkv/train/session.h"

namespace qkv {

struct Run::Model {
  OpenedRun run;
  std::string task;
};

Run::Run(std::unique_ptr<Model> model) : model_(std::move(model)) {}
Run::Run(Run&&) noexcept = default;
Run& Run::operator=(Run&&) noexcept = default;
Run::~Run() = default;

const std::string& Run::task() const { return model_->task; }
const std::string& Run::weights() const { return model_->run.weights; }

std::vector<std::pair<std::string, std::string>> Run::settings() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const Setting& s : model_->run.folder.settings().all()) all.emplace_back(s.name, s.value);
  return all;
}

std::vector<NamedParameter> Run::parameters() { return parameters_of(*model_->run.task); }

Prediction Run::predict(const std::string& input, const DecodeOptions& options) {
  return predict(std::span(&input, 1), options)[0].at(0);
}

std::vector<std::vector<Prediction>> Run::predict(std::span<const std::string> inputs, const DecodeOptions& options) {
  if (options.sample && !model_->run.task->samples()) {
    throw ConfigError("task '" + task() + "' does not draw its answers: leave DecodeOptions::sample empty");
  }
  DecodeOptions how = options;
  if (how.beam >= 1) how.beam = std::max(how.beam, how.n_best);  // anything less is refused below
  const NoGrad no_grad;
  return model_->run.task->predict(inputs, how);
}

RunTrace Run::trace(const std::string& input) {
  const NoGrad no_grad;
  TracedExample example = model_->run.task->trace(input);
  RunTrace trace{example.source, example.target, example.output, {}};
  for (const AttentionTrace& a : example.attention) {
    RunAttention layer{
        a.site, a.layer, a.causal, example.row_tokens(a), example.column_tokens(a), Tensor::empty({a.H, a.Lq, a.Lk})};
    for (int64_t h = 0; h < a.H; ++h) {
      const std::vector<float> weights = a.scores({.b = 0, .h = h, .row_begin = 0, .row_end = a.Lq}).to_vector();
      std::copy(weights.begin(), weights.end(), layer.weights.f32() + h * a.Lq * a.Lk);
    }
    trace.attention.push_back(std::move(layer));
  }
  return trace;
}

std::vector<std::string> Run::examples(int64_t n) {
  const NoGrad no_grad;
  return model_->run.task->examples(n);
}

Run open_run(const std::string& path, const std::string& weights) {
  OpenedRun run = load_run(path, weights);
  std::string task = run.folder.spec().name;
  return Run(std::make_unique<Run::Model>(Run::Model{std::move(run), std::move(task)}));
}

}  // namespace qkv
