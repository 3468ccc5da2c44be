// Task "reverse": strings over a small alphabet, written backwards by a recurrent encoder-decoder.
#include "qkv/tasks/reverse.h"

#include <algorithm>
#include <map>

#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/data/batching.h"
#include "qkv/data/letter_strings.h"
#include "qkv/data/text_file.h"
#include "qkv/models/seq2seq.h"
#include "qkv/tasks/candidates.h"

namespace qkv {
namespace {

constexpr uint64_t kWeightStream = 1;
constexpr int64_t kEvaluationBatch = 256;
constexpr int64_t kLongerPerLength = 25;  // strings of each length beyond those trained on
constexpr size_t kErrorsShown = 20;
constexpr int64_t kSlack = 5;  // letters a prediction may be too long by, so that errors of length are seen

/// What decoding a list of strings gave.
struct Outcome {
  std::vector<LetterString> predicted;
  double loss = 0;  // per target, with the right letters fed
  int64_t letters = 0, letters_right = 0, exact = 0;

  double exact_match(size_t n) const {
    return static_cast<double>(exact) / static_cast<double>(std::max<size_t>(n, 1));
  }
  double character_accuracy() const {
    return static_cast<double>(letters_right) / static_cast<double>(std::max<int64_t>(letters, 1));
  }
};

LetterString backwards(const LetterString& s) { return {s.rbegin(), s.rend()}; }

class Reverse final : public Task {
 public:
  explicit Reverse(const Settings& s)
      : alphabet_(s.get_text("alphabet")),
        seed_(static_cast<uint64_t>(s.get_integer("seed"))),
        batch_(s.get_integer("batch")),
        max_length_(s.get_integer("max-length")) {
    data_options_ = {.letters = alphabet_.size(),
                     .min_length = s.get_integer("min-length"),
                     .max_length = max_length_,
                     .train = s.get_integer("train-size"),
                     .validation = s.get_integer("validation-size"),
                     .seed = seed_};
    if (data_options_.min_length > max_length_) {
      throw ConfigError("--min-length " + std::to_string(data_options_.min_length) + " is above --max-length " +
                        std::to_string(max_length_));
    }
    sets_ = make_letter_strings(data_options_);
    make_model(s);
  }

  void visit(Visitor& see) override { model_->visit(see); }

  int64_t batches_in_epoch(int64_t epoch) override {
    plan(epoch);
    return static_cast<int64_t>(batches_.size());
  }

  BatchLoss train_batch(int64_t epoch, int64_t batch, Context& ctx, const BatchPart& part) override {
    plan(epoch);
    const std::vector<int64_t>& all = batches_[static_cast<size_t>(batch)];
    const auto string = [&](int64_t i) { return sets_.train[static_cast<size_t>(all[static_cast<size_t>(i)])]; };
    std::vector<int64_t> costs;
    for (size_t i = 0; i < all.size(); ++i)
      costs.push_back(static_cast<int64_t>(string(static_cast<int64_t>(i)).size()));
    std::vector<LetterString> strings;
    for (const int64_t i : balanced_part(costs, part.index, part.count)) strings.push_back(string(i));
    return strings.empty() ? BatchLoss{} : loss_of(strings, ctx);
  }

  Metrics validate() override { return figures(sets_.validation, run(sets_.validation)); }

  Goal goal() const override { return {"exact_match", 1.0}; }

  Evaluation evaluate(const std::string& data) override;
  std::vector<std::vector<Prediction>> predict(std::span<const std::string> inputs,
                                               const DecodeOptions& options) override;
  TracedExample trace(const std::string& input) override { return trace_with(input, {}); }
  TracedExample trace_with(const std::string& input, const TraceOptions& how) override;
  std::vector<std::string> examples(int64_t n) override;

 private:
  void make_model(const Settings& s);
  void plan(int64_t epoch);
  int64_t begin() const { return alphabet_.size(); }
  int64_t end() const { return alphabet_.size() + 1; }
  BatchLoss loss_of(std::span<const LetterString> strings, Context& ctx) const;
  Tensor logits_of(std::span<const LetterString> sources, std::span<const LetterString> outputs, Context& ctx) const;
  Outcome run(std::span<const LetterString> strings) const;
  std::vector<std::vector<Hypothesis>> decode(std::span<const LetterString> strings, SearchOptions options) const;
  Metrics figures(std::span<const LetterString> strings, const Outcome& outcome) const {
    return {{"loss", outcome.loss},
            {"character_accuracy", outcome.character_accuracy()},
            {"exact_match", outcome.exact_match(strings.size())}};
  }
  void add_errors(Evaluation& to, std::span<const LetterString> strings, const Outcome& outcome, size_t most) const;

  Alphabet alphabet_;
  uint64_t seed_;
  int64_t batch_, max_length_;
  LetterStringOptions data_options_;
  LetterStringSets sets_;
  std::unique_ptr<Seq2Seq> model_;
  int64_t planned_epoch_ = -1;
  std::vector<std::vector<int64_t>> batches_;
};

void Reverse::make_model(const Settings& s) {
  Seq2SeqConfig config;
  config.source_vocabulary = alphabet_.size();
  config.target_vocabulary = alphabet_.size() + 2;
  config.embedding = s.get_integer("embedding");
  config.hidden = s.get_integer("hidden");
  config.layers = s.get_integer("layers");
  config.cell = s.get<CellKind>("cell");
  config.attention = s.get_text("attention");
  config.attention_config.heads = s.get_integer("heads");
  config.attention_config.key = s.get_integer("kq");
  config.attention_config.normaliser = s.get<Normaliser>("normaliser");
  config.attention_config.block = 2 * max_length_ + kSlack + 1;
  config.dropout = s.get_number("dropout");
  Rng rng = Rng(seed_).fork(kWeightStream);
  model_ = std::make_unique<Seq2Seq>(config, rng);
}

void Reverse::plan(int64_t epoch) {
  if (planned_epoch_ == epoch) return;
  std::vector<int64_t> costs;
  for (const LetterString& s : sets_.train) costs.push_back(static_cast<int64_t>(s.size()));
  // Neighbours in length share a batch, so that its recurrent steps stay full to the end.
  const BatchPlan how{.tokens = int64_t{1} << 40, .max_examples = batch_, .pool = 16 * batch_};
  batches_ = plan_batches(costs, how, seed_, epoch);
  planned_epoch_ = epoch;
}

Tensor Reverse::logits_of(std::span<const LetterString> sources, std::span<const LetterString> outputs,
                          Context& ctx) const {
  std::vector<LetterString> inputs;
  for (const LetterString& s : outputs) {
    inputs.push_back({begin()});
    inputs.back().insert(inputs.back().end(), s.begin(), s.end());
  }
  return model_->forward(TokenBatch(sources), TokenBatch(inputs), ctx);  // [T, letters + 2]
}

BatchLoss Reverse::loss_of(std::span<const LetterString> strings, Context& ctx) const {
  std::vector<LetterString> outputs;
  std::vector<int64_t> targets;
  int64_t tokens = 0;
  for (const LetterString& s : strings) {
    outputs.push_back(backwards(s));
    targets.insert(targets.end(), outputs.back().begin(), outputs.back().end());
    targets.push_back(end());
    tokens += 2 * static_cast<int64_t>(s.size()) + 1;
  }
  const Tensor loss = cross_entropy(logits_of(strings, outputs, ctx), targets);
  return {loss, static_cast<int64_t>(targets.size()), tokens};
}

std::vector<std::vector<Hypothesis>> Reverse::decode(std::span<const LetterString> strings,
                                                     SearchOptions options) const {
  const NoGrad no_grad;
  options.begin = begin();
  options.end = end();
  const auto decoder = model_->start(TokenBatch(strings));
  return search(*decoder, options);
}

Outcome Reverse::run(std::span<const LetterString> strings) const {
  const NoGrad no_grad;
  Outcome outcome;
  double loss_sum = 0;
  int64_t targets = 0;
  const auto batches = static_cast<int64_t>((strings.size() + kEvaluationBatch - 1) / kEvaluationBatch);
  using Part = std::tuple<double, int64_t, std::vector<LetterString>>;
  for (auto& [nats, counted, found] : share_out<Part>(processes(), batches, [&](int64_t batch) {
         const auto first = static_cast<size_t>(batch * kEvaluationBatch);
         const auto part = strings.subspan(first, std::min<size_t>(kEvaluationBatch, strings.size() - first));
         Context ctx;
         const BatchLoss loss = loss_of(part, ctx);
         SearchOptions options;
         for (const LetterString& s : part) options.max_lengths.push_back(static_cast<int64_t>(s.size()) + kSlack);
         std::vector<LetterString> written;
         for (auto& hypotheses : decode(part, options)) written.push_back(std::move(hypotheses.front().tokens));
         return Part{loss.loss.item() * static_cast<double>(loss.targets), loss.targets, std::move(written)};
       })) {
    loss_sum += nats;
    targets += counted;
    for (LetterString& got : found) {
      const LetterString wanted = backwards(strings[outcome.predicted.size()]);
      for (size_t k = 0; k < wanted.size(); ++k) outcome.letters_right += k < got.size() && got[k] == wanted[k];
      outcome.letters += static_cast<int64_t>(wanted.size());
      outcome.exact += got == wanted;
      outcome.predicted.push_back(std::move(got));
    }
  }
  outcome.loss = loss_sum / static_cast<double>(std::max<int64_t>(targets, 1));
  return outcome;
}

void Reverse::add_errors(Evaluation& to, std::span<const LetterString> strings, const Outcome& outcome,
                         size_t most) const {
  size_t added = 0;
  for (size_t i = 0; i < strings.size() && added < most; ++i) {
    const LetterString wanted = backwards(strings[i]);
    if (outcome.predicted[i] == wanted) continue;
    to.errors.push_back(
        {alphabet_.decode(strings[i]), alphabet_.decode(wanted), alphabet_.decode(outcome.predicted[i])});
    ++added;
  }
}

Evaluation Reverse::evaluate(const std::string& data) {
  std::vector<LetterString> strings = sets_.validation;
  if (!data.empty()) {
    strings.clear();
    int64_t line = 0;
    for (const std::string& text : read_lines(data)) {
      ++line;
      if (text.empty()) continue;
      try {
        strings.push_back(alphabet_.encode(text));
      } catch (const ConfigError& e) {
        throw IoError(data + ":" + std::to_string(line) + ": " + e.what());
      }
    }
    if (strings.empty()) throw IoError(data + ": no string to evaluate");
  }
  Evaluation result;
  std::map<size_t, std::pair<int64_t, int64_t>> by_length;  // length → exact, all
  const auto count = [&](std::span<const LetterString> list, const Outcome& outcome) {
    for (size_t i = 0; i < list.size(); ++i) {
      by_length[list[i].size()].first += outcome.predicted[i] == backwards(list[i]);
      ++by_length[list[i].size()].second;
    }
  };
  const Outcome outcome = run(strings);
  result.metrics = figures(strings, outcome);
  count(strings, outcome);
  add_errors(result, strings, outcome, kErrorsShown / 2);
  if (data.empty()) {
    const auto longer = strings_of_lengths(data_options_, max_length_ + 1, 2 * max_length_, kLongerPerLength);
    const Outcome beyond = run(longer);
    result.metrics.emplace_back("longer_exact_match", beyond.exact_match(longer.size()));
    result.metrics.emplace_back("longer_character_accuracy", beyond.character_accuracy());
    count(longer, beyond);
    add_errors(result, longer, beyond, kErrorsShown - result.errors.size());
  }
  Breakdown lengths{
      .name = "exact_match_by_length", .by = "length", .metric = "exact_match", .x = {}, .y = {}, .counts = {}};
  lengths.trained_to = static_cast<double>(max_length_);
  for (const auto& [length, n] : by_length) {
    lengths.x.push_back(static_cast<double>(length));
    lengths.y.push_back(static_cast<double>(n.first) / static_cast<double>(n.second));
    lengths.counts.push_back(n.second);
  }
  result.breakdowns.push_back(std::move(lengths));
  return result;
}

std::vector<std::vector<Prediction>> Reverse::predict(std::span<const std::string> inputs,
                                                      const DecodeOptions& options) {
  std::vector<LetterString> strings;
  SearchOptions how{
      .beam = options.beam, .n_best = options.n_best, .length_penalty = options.length_penalty, .max_lengths = {}};
  for (const std::string& input : inputs) {
    strings.push_back(alphabet_.encode(input));
    const auto own = 2 * static_cast<int64_t>(strings.back().size()) + kSlack;
    how.max_lengths.push_back(options.max_length > 0 ? options.max_length : own);
  }
  std::vector<std::vector<Prediction>> all;
  if (strings.empty()) return all;
  for (const auto& hypotheses : decode(strings, how)) {
    all.emplace_back();
    for (const Hypothesis& h : hypotheses) all.back().push_back({alphabet_.decode(h.tokens), h.log_probability, {}});
  }
  return all;
}

TracedExample Reverse::trace_with(const std::string& input, const TraceOptions& how) {
  const NoGrad no_grad;
  const std::vector<LetterString> source{alphabet_.encode(input)};
  SearchOptions options;
  options.max_lengths = {2 * static_cast<int64_t>(source[0].size()) + kSlack};
  options.forced = how.beginning;
  const Hypothesis best = decode(source, options)[0].front();
  TracedExample example;
  example.output = alphabet_.decode(best.tokens);
  for (const int64_t id : source[0]) example.source.push_back(alphabet_.letter(id));
  // One row per token written; the row after the last letter is the one that chose to end.
  LetterString shown;
  for (const int64_t id : best.tokens) {
    shown.push_back(id);
    example.target.push_back(id < alphabet_.size() ? alphabet_.letter(id) : "?");
  }
  example.written = shown;
  if (best.complete) {
    example.target.emplace_back("end");
    example.written.push_back(end());
  } else {
    shown.pop_back();
  }
  TraceList traces;
  Context ctx;
  ctx.trace = &traces;
  const Tensor logits = logits_of(source, std::vector<LetterString>{shown}, ctx);
  example.attention = traces.traces();
  example.candidates = likeliest(logits, kCandidates, [this](int64_t id) {
    return id < alphabet_.size() ? alphabet_.letter(id) : id == end() ? "end" : "begin";
  });
  return example;
}

std::vector<std::string> Reverse::examples(int64_t n) {
  // From long to short: attention shows best where there is much to look at.
  std::vector<const LetterString*> order;
  for (const LetterString& s : sets_.validation) order.push_back(&s);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->size() > b->size(); });
  std::vector<std::string> found;
  const auto wanted = static_cast<size_t>(std::clamp<int64_t>(n, 0, static_cast<int64_t>(order.size())));
  for (size_t i = 0; i < wanted; ++i) found.push_back(alphabet_.decode(*order[i * order.size() / wanted]));
  return found;
}

}  // namespace

Settings reverse_settings() {
  constexpr double kMostLength = 1000, kMostStrings = 1e7, kWidest = 65536;
  Settings s = training_settings();
  s.group("data")
      .text("alphabet", "abcd", "the letters strings are made of")
      .integer("min-length", 1, "shortest string", 1, kMostLength)
      .integer("max-length", 20, "longest string trained on; evaluation goes to twice that", 1, kMostLength)
      .integer("train-size", 10000, "strings to train on", 1, kMostStrings)
      .integer("validation-size", 1000, "strings to validate with, none of them trained on", 1, kMostStrings)
      .group("model")
      .choice("attention", "dot", attention_names(false), "attention of the decoder to the source")
      .integer("hidden", 48, "width of the recurrent layers", 1, kWidest)
      .integer("embedding", 16, "width of the letter embeddings", 1, kWidest)
      .integer("layers", 1, "recurrent layers on either side", 1, 64)
      .choice("cell", CellKind::lstm, "kind of recurrent layer")
      .integer("heads", 4, "heads of multi-head attention", 1, 1024)
      .integer("kq", 0, "width of projected queries and keys; 0: the hidden width", 0, kWidest)
      .choice("normaliser", Normaliser::softmax, "normaliser of the attention weights")
      .number("dropout", 0, "dropout rate while training", 0, 0.95)
      .open_to_clients({"attention", "alphabet", "min-length", "max-length", "train-size", "validation-size", "hidden",
                        "embedding", "layers", "cell", "heads", "kq", "normaliser", "dropout"});
  s.set("epochs", "30");
  s.set("lr", "0.004");
  s.set("weight-decay", "0.1");  // without it two of five seeds keep a wrong string: docs/RESULTS.md
  s.set("schedule", "cosine");
  s.set("final-lr", "0.05");
  return s;
}

std::unique_ptr<Task> make_reverse(const Settings& settings, const std::string&) {
  return std::make_unique<Reverse>(settings);
}

}  // namespace qkv
