// The loop of updates, evaluations and checkpoints.
#include "qkv/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "qkv/base/clock.h"
#include "qkv/base/error.h"
#include "qkv/ops/ops.h"

namespace qkv {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double figure(const Metrics& metrics, const std::string& name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return value;
  }
  throw ConfigError("the task has no figure '" + name + "' to train for");
}

std::unique_ptr<Optimizer> make_optimizer(const TrainerOptions& o, const std::vector<NamedParameter>& parameters) {
  if (o.optimizer == OptimizerKind::sgd) {
    return std::make_unique<Sgd>(
        parameters, SgdOptions{.momentum = o.momentum, .weight_decay = o.weight_decay, .decay_vectors = false});
  }
  const AdamWOptions adam{
      .weight_decay = o.weight_decay, .l2 = o.optimizer == OptimizerKind::adam, .decay_vectors = false};
  if (o.optimizer == OptimizerKind::muon) return std::make_unique<Muon>(parameters, adam);
  return std::make_unique<AdamW>(parameters, adam);
}

std::vector<Tensor> values_of(const std::vector<NamedParameter>& parameters) {
  std::vector<Tensor> values;
  for (const NamedParameter& p : parameters) values.push_back(p.value);
  return values;
}

}  // namespace

void broadcast_tensors(Processes& processes, const std::vector<NamedParameter>& tensors) {
  if (processes.size() == 1) return;
  for (const NamedParameter& p : tensors) {
    Tensor t = p.value;
    const auto n = static_cast<size_t>(t.numel());
    processes.broadcast(t.dtype() == DType::f32 ? std::as_writable_bytes(std::span(t.f32(), n))
                                                : std::as_writable_bytes(std::span(t.f64(), n)));
  }
}

Trainer::Trainer(Task& task, const TrainerOptions& options, RunFolder* folder, TrainObserver* observer,
                 Processes& processes)
    : task_(task),
      options_(options),
      folder_(folder),
      observer_(observer),
      processes_(processes),
      parameters_(parameters_of(task)),
      optimizer_(make_optimizer(options, parameters_)),
      gradients_(processes, options.parts, values_of(parameters_)),
      goal_(task.goal()),
      higher_is_better_(metric_kind(goal_.metric).higher_is_better) {
  for (NamedParameter& p : parameters_) p.value.set_requires_grad(true);
  options_.keep = std::max(options_.keep, options_.average);
  state_.seed = options.seed;
  batches_ = task_.batches_in_epoch(0);
  if (batches_ < 1) throw ConfigError("the task has no batch to train on");
  const int64_t per_epoch = (batches_ + options_.accumulate - 1) / options_.accumulate;
  total_steps_ = options_.epochs * per_epoch;
  if (options_.steps > 0) total_steps_ = std::min(total_steps_, options_.steps);
}

void Trainer::resume() {
  if (folder_ == nullptr) throw ConfigError("a training without a folder has no checkpoint to continue from");
  const std::vector<int64_t> steps = folder_->checkpoints();
  if (steps.empty()) return;
  state_ = folder_->load(steps.back(), parameters_, *optimizer_);
  if (const int64_t n = task_.batches_in_epoch(state_.epoch); state_.batch >= n) {
    throw IoError(folder_->checkpoint_path(state_.step) + "/state.json: batch " + std::to_string(state_.batch) +
                  " of an epoch of " + std::to_string(n));
  }
  saved_step_ = state_.step;
  // What ended the run may have been a limit that is higher now.
  const bool more_epochs = state_.epoch < options_.epochs;
  const bool more_steps = options_.steps == 0 || state_.step < options_.steps;
  if ((state_.stopped == "epochs" || state_.stopped == "steps") && more_epochs && more_steps) state_.stopped.clear();
  for (const EvaluationRecord& r : folder_->history()) {
    if (r.step > state_.step) break;
    last_ = r;
    if (r.step == state_.best_step) best_metrics_ = r.validation;
  }
}

bool Trainer::at_end() const {
  return !state_.stopped.empty() || state_.epoch >= options_.epochs ||
         (options_.steps > 0 && state_.step >= options_.steps);
}

void Trainer::open_log() {
  if (folder_ == nullptr) return;
  log_ = std::make_unique<MetricsLog>(folder_->path(), state_.metrics_bytes, state_.events_bytes);
  // Nothing can refuse this training any more.
  folder_->store_changes();
  folder_->remove_average();
  folder_->prune(state_, options_.keep);
}

void Trainer::share_weights() { broadcast_tensors(processes_, parameters_); }

void Trainer::share_start() {
  const bool first = processes_.rank() == 0;
  state_ = parse_state(broadcast_text(processes_, first ? state_text(state_) : ""), "the state of process 0");
  writing_ = !broadcast_text(processes_, first && folder_ != nullptr ? "writing" : "").empty();
  if (!first) saved_step_ = state_.step > 0 ? state_.step : -1;
  share_weights();
  broadcast_tensors(processes_, optimizer_->state());
}

bool Trainer::stop_wanted() { return any_of(processes_, observer_ != nullptr && observer_->wants_stop()); }

TrainResult Trainer::run() {
  begin();
  while (advance()) {
  }
  return finish();
}

void Trainer::begin() {
  agree(processes_, [&] { open_log(); });
  if (processes_.size() > 1) share_start();
  writing_ = writing_ || folder_ != nullptr;
  interrupted_ = false;
  started_ = now();
  cpu_started_ = process_seconds();
  seconds_before_ = state_.seconds;
  cpu_seconds_before_ = state_.cpu_seconds;
  first_step_ = state_.step;
  batches_ = task_.batches_in_epoch(state_.epoch);
}

bool Trainer::advance() {
  if (at_end() || interrupted_) return false;
  update();
  const bool epoch_ended = state_.batch == 0;
  const bool due = options_.eval_every > 0 ? state_.step % options_.eval_every == 0 : epoch_ended;
  if (due || at_end()) evaluate();
  const bool save_due = options_.checkpoint_every > 0 && state_.step % options_.checkpoint_every == 0;
  if (due || save_due || at_end()) checkpoint();
  if (at_end()) return false;
  interrupted_ = stop_wanted();
  if (interrupted_) checkpoint();
  return !interrupted_;
}

TrainResult Trainer::finish() {
  TrainResult result;
  result.interrupted = interrupted_;
  if (!interrupted_ && options_.average > 1) average_checkpoints(result);
  result.state = state_;
  result.loss = last_.train_loss;
  result.validation = last_.validation;
  result.best = best_metrics_;
  using Share = std::tuple<int64_t, double, double>;
  for (const std::string& text : processes_.gather(packed(Share{share_.parts, share_.computed, share_.waited}))) {
    const auto [parts, computed, waited] = unpacked<Share>(text);
    result.shares.push_back({parts, computed, waited});
  }
  return result;
}

Trainer::Group Trainer::train_part(int64_t part) {
  const auto step = static_cast<uint64_t>(state_.step);
  Context ctx =
      options_.parts == 1 ? Context(options_.seed, step) : Context(options_.seed, step, static_cast<uint64_t>(part));
  const int64_t end = std::min(state_.batch + options_.accumulate, batches_);
  const bool alone = options_.parts == 1 && end - state_.batch == 1;
  Group group;
  optimizer_->zero_grad();
  for (int64_t batch = state_.batch; batch < end; ++batch) {
    const BatchLoss got = task_.train_batch(state_.epoch, batch, ctx, {part, options_.parts});
    if (got.targets == 0) continue;
    const double loss = got.loss.item();
    group.loss += loss * static_cast<double>(got.targets);
    group.targets += got.targets;
    group.tokens += got.tokens;
    if (!std::isfinite(loss)) return group;
    // Σ targets·loss over the update, divided by all its targets, is the loss of one large batch.
    (alone ? got.loss : affine(got.loss, static_cast<double>(got.targets))).backward();
  }
  std::vector<Tensor> gradients;
  for (const NamedParameter& p : parameters_) gradients.push_back(p.value.grad());
  optimizer_->zero_grad();
  gradients_.add(std::move(gradients));
  ++share_.parts;
  return group;
}

Trainer::Group Trainer::accumulate_gradients() {
  using Part = std::tuple<double, int64_t, int64_t>;
  const double begun = now();
  double computed = begun;
  const std::vector<std::string> all = gather_agreed(processes_, [&] {
    std::vector<Part> mine;
    for (int64_t part = gradients_.own().begin; part < gradients_.own().end; ++part) {
      const Group group = train_part(part);
      mine.emplace_back(group.loss, group.targets, group.tokens);
      if (!std::isfinite(group.loss)) break;
    }
    computed = now();
    return packed(mine);
  });
  Group update;
  for (const std::string& parts : all) {
    for (const auto& [loss, targets, tokens] : unpacked<std::vector<Part>>(parts)) {
      if (!std::isfinite(loss)) stop_on_nonfinite("the loss", loss, state_.step + 1);
      update.loss += loss;
      update.targets += targets;
      update.tokens += tokens;
    }
  }
  const std::vector<Tensor> sum = gradients_.total();
  for (size_t i = 0; i < sum.size(); ++i) parameters_[i].value.set_grad(sum[i]);
  const int64_t end = std::min(state_.batch + options_.accumulate, batches_);
  const bool alone = options_.parts == 1 && end - state_.batch == 1;
  update.scale = alone ? 1.0 : 1.0 / static_cast<double>(std::max<int64_t>(update.targets, 1));
  state_.batch = end;
  share_.computed += computed - begun;
  share_.waited += now() - computed;
  return update;
}

void Trainer::update() {
  const Group group = accumulate_gradients();
  const double norm = gradient_norm(parameters_) * group.scale;
  if (!std::isfinite(norm)) stop_on_nonfinite("the gradient's norm", norm, state_.step + 1);
  const Schedule schedule{options_.schedule, options_.lr, options_.warmup, total_steps_, options_.final_lr};
  const double lr = learning_rate(schedule, state_.step);
  optimizer_->step(lr, group.scale * clip_factor(norm, options_.clip));
  optimizer_->zero_grad();
  ++state_.step;
  state_.tokens += group.tokens;
  state_.loss_sum += group.loss;
  state_.loss_targets += group.targets;
  last_.lr = lr;
  if (state_.batch >= batches_) {
    state_.batch = 0;
    ++state_.epoch;
    if (state_.epoch < options_.epochs) batches_ = task_.batches_in_epoch(state_.epoch);
  }
  if (state_.step % options_.log_every == 0) {
    const double loss = group.loss / static_cast<double>(std::max<int64_t>(group.targets, 1));
    agree(processes_, [&] {
      if (log_) log_->add(StepRecord{state_.step, loss, lr, norm});
    });
  }
  report(group.tokens);
}

double Trainer::seconds_here() const { return now() - started_; }

double Trainer::cpu_seconds_here() {
  double sum = 0;
  for (const std::string& text : processes_.gather(packed(process_seconds() - cpu_started_)))
    sum += unpacked<double>(text);
  return sum;
}

void Trainer::report(int64_t tokens) {
  tokens_here_ += tokens;
  if (observer_ == nullptr) return;
  const double seconds = seconds_here();
  StepReport r;
  r.step = state_.step;
  r.total_steps = total_steps_;
  r.epoch = std::min(state_.batch == 0 ? state_.epoch : state_.epoch + 1, options_.epochs);
  r.epochs = options_.epochs;
  r.loss = state_.loss_sum / static_cast<double>(std::max<int64_t>(state_.loss_targets, 1));
  r.tokens_per_second = static_cast<double>(tokens_here_) / std::max(seconds, 1e-9);
  r.seconds_left = seconds * static_cast<double>(total_steps_ - state_.step) /
                   static_cast<double>(std::max<int64_t>(state_.step - first_step_, 1));
  observer_->on_step(r);
}

bool Trainer::better(double value) const {
  if (state_.best_step < 0) return true;
  return higher_is_better_ ? value > state_.best : value < state_.best;
}

void Trainer::evaluate() {
  const NoGrad no_grad;
  last_.validation = task_.validate();
  const double loss = figure(last_.validation, "loss");
  if (!std::isfinite(loss)) stop_on_nonfinite("the validation loss", loss, state_.step);
  last_.step = state_.step;
  last_.epoch = state_.epoch;
  last_.train_loss = state_.loss_sum / static_cast<double>(std::max<int64_t>(state_.loss_targets, 1));
  last_.seconds = seconds_before_ + seconds_here();
  last_.cpu_seconds = cpu_seconds_before_ + cpu_seconds_here();
  last_.tokens_per_second = static_cast<double>(tokens_here_) / std::max(seconds_here(), 1e-9);
  state_.loss_sum = 0;
  state_.loss_targets = 0;
  ++state_.evaluations;
  const double value = figure(last_.validation, goal_.metric);
  if (better(value)) {
    state_.best = value;
    state_.best_step = state_.step;
    state_.evaluations_since_best = 0;
    best_metrics_ = last_.validation;
  } else {
    ++state_.evaluations_since_best;
  }
  if (higher_is_better_ ? value >= goal_.stop_at : value <= goal_.stop_at) {
    state_.stopped = "goal";
  } else if (options_.patience > 0 && state_.evaluations_since_best >= options_.patience) {
    state_.stopped = "patience";
  } else if (state_.epoch >= options_.epochs) {
    state_.stopped = "epochs";
  } else if (options_.steps > 0 && state_.step >= options_.steps) {
    state_.stopped = "steps";
  }
  agree(processes_, [&] {
    if (log_) log_->add(last_);
  });
  if (observer_ != nullptr) observer_->on_evaluation(last_);
}

void Trainer::checkpoint() {
  state_.seconds = seconds_before_ + seconds_here();
  state_.cpu_seconds = cpu_seconds_before_ + cpu_seconds_here();
  if (!writing_ || saved_step_ == state_.step) return;
  agree(processes_, [&] {
    if (folder_ == nullptr) return;
    log_->sync();
    state_.metrics_bytes = log_->metrics_bytes();
    state_.events_bytes = log_->events_bytes();
    folder_->save(state_, parameters_, *optimizer_, options_.keep);
  });
  saved_step_ = state_.step;
}

void Trainer::average_checkpoints(TrainResult& result) {
  if (!writing_) return;
  agree(processes_, [&] {
    if (folder_ != nullptr) load_average();
  });
  share_weights();
  const NoGrad no_grad;
  result.averaged = task_.validate();
  agree(processes_, [&] {
    if (folder_ != nullptr) folder_->save_average(parameters_, better(figure(*result.averaged, goal_.metric)));
  });
}

void Trainer::load_average() {
  std::vector<int64_t> steps = folder_->checkpoints();
  if (static_cast<int64_t>(steps.size()) > options_.average) {
    steps.erase(steps.begin(), steps.end() - static_cast<std::ptrdiff_t>(options_.average));
  }
  std::vector<Tensor> sums;
  for (const NamedParameter& p : parameters_) sums.push_back(Tensor::zeros(p.value.shape(), DType::f64));
  for (const int64_t step : steps) {
    folder_->load_weights(parameters_, std::to_string(step));
    for (size_t i = 0; i < sums.size(); ++i) {
      const Tensor value = parameters_[i].value.to(DType::f64);
      for (int64_t k = 0; k < value.numel(); ++k) sums[i].f64()[k] += value.f64()[k];
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    for (int64_t k = 0; k < sums[i].numel(); ++k) sums[i].f64()[k] /= static_cast<double>(steps.size());
    parameters_[i].value.copy_from(sums[i].to(parameters_[i].value.dtype()));
  }
}

void Trainer::stop_on_nonfinite(const std::string& what, double value, int64_t step) {
  std::string last = "no checkpoint had been saved";
  if (folder_ != nullptr) {
    const std::vector<int64_t> steps = folder_->checkpoints();
    if (!steps.empty()) last = "the last good checkpoint is " + folder_->checkpoint_path(steps.back());
  }
  const Error error("training stopped at step " + std::to_string(step) + ": " + what + " is " +
                    (std::isnan(value) ? "NaN" : "infinite") + "; try a smaller --lr or --clip; " + last);
  agree(processes_, [&] { throw error; });
  throw error;
}

}  // namespace qkv
