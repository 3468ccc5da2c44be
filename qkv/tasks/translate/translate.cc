// The translation task: loss, BLEU, decoding with alignments, and examples worth a diagram.
#include "qkv/tasks/translate/translate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/data/bleu.h"
#include "qkv/ops/ops.h"
#include "qkv/tasks/candidates.h"
#include "qkv/tasks/hypotheses.h"
#include "qkv/tasks/translate/alignment.h"
#include "qkv/tasks/translate/data.h"
#include "qkv/tasks/translate/examples.h"
#include "qkv/tasks/translate/model.h"

namespace qkv {
namespace {

constexpr int64_t kDecodingTokens = 4096;  // source tokens decoded at once
constexpr int64_t kExtraLength = 10;       // a translation may have 1.5 times the source's tokens and this many more
constexpr uint64_t kForcingStream = 22;
constexpr size_t kErrorsShown = 20;

/// Sums over a set of pairs, with the right tokens fed.
struct Likelihood {
  double nats = 0;
  int64_t tokens = 0, words = 0;
  double per_token() const { return nats / static_cast<double>(std::max<int64_t>(tokens, 1)); }
  double per_word() const { return nats / static_cast<double>(std::max<int64_t>(words, 1)); }
};

/// A batch as the model takes it.
struct PairBatch {
  TokenBatch source, inputs;
  std::vector<int64_t> targets;
};

PairBatch batch_of(const EncodedPairs& pairs, std::span<const int64_t> which) {
  std::vector<std::vector<int64_t>> sources, inputs;
  PairBatch batch;
  for (const int64_t i : which) {
    const auto s = pairs.source[i], t = pairs.target[i];
    sources.emplace_back(s.begin(), s.end());
    if (s.empty()) sources.back().push_back(kUnknownId);  // a line of nothing still needs a token to see
    inputs.push_back({kBeginId});
    inputs.back().insert(inputs.back().end(), t.begin(), t.end());
    batch.targets.insert(batch.targets.end(), t.begin(), t.end());
    batch.targets.push_back(kEndId);
  }
  batch.source = TokenBatch(sources);
  batch.inputs = TokenBatch(inputs);
  return batch;
}

class Translate final : public Task {
 public:
  Translate(const Settings& s, const std::string& assets)
      : data_(s, assets),
        model_(make_translation_model(s, data_.tokenizers().source->size(), data_.tokenizers().target->size())),
        seed_(static_cast<uint64_t>(s.get_integer("seed"))),
        batch_tokens_(s.get_integer("batch-tokens")),
        smoothing_(s.get_number("label-smoothing")),
        forcing_(s.get_number("teacher-forcing")),
        bleu_(s.get_flag("eval-bleu")),
        beam_(s.get_integer("beam")),
        length_penalty_(s.get_number("length-penalty")) {
    if (forcing_ < 1 && s.get_text("model") != "rnn") {
      throw ConfigError("--teacher-forcing below 1 needs --model rnn: a Transformer reads all target tokens at once");
    }
  }

  void visit(Visitor& see) override { model_->visit(see); }

  int64_t batches_in_epoch(int64_t epoch) override {
    plan(epoch);
    return static_cast<int64_t>(batches_.size());
  }
  BatchLoss train_batch(int64_t epoch, int64_t batch, Context& ctx, const BatchPart& part) override;
  Metrics validate() override;
  Goal goal() const override {
    constexpr double kPerfect = 99.99;  // but for rounding
    return bleu_ ? Goal{"bleu", kPerfect} : Goal{"loss", -std::numeric_limits<double>::infinity()};
  }
  Evaluation evaluate(const std::string& data) override;
  std::vector<std::vector<Prediction>> predict(std::span<const std::string> inputs,
                                               const DecodeOptions& options) override;
  TracedExample trace(const std::string& input) override { return trace_with(input, {}); }
  TracedExample trace_with(const std::string& input, const TraceOptions& how) override;
  std::vector<std::string> examples(int64_t n) override;
  std::string about_example(const std::string& input) const override;
  std::vector<std::string> notes() override;
  void save_assets(const std::string& folder) const override { save_tokenizers(data_.tokenizers(), folder); }

 private:
  void plan(int64_t epoch);
  Likelihood likelihood(const ParallelSet& set) const;
  std::vector<std::vector<Hypothesis>> decode(const RaggedIds& sources, const DecodeOptions& options,
                                              const std::vector<int64_t>& beginning = {}) const;
  std::vector<std::string> translate(std::span<const std::string> lines, const DecodeOptions& options) const;
  std::string text_of(std::span<const int64_t> ids) const { return data_.tokenizers().target->decode(ids); }
  /// Attention of one source and output, tokens as they are fed.
  TracedExample traced(const std::vector<int64_t>& source, const std::vector<int64_t>& output) const;
  std::string alignment(const std::vector<int64_t>& source, const std::vector<int64_t>& output) const;
  LookedAt looked_at(int64_t index, const std::vector<int64_t>& source, const Hypothesis& found);
  Metrics figures(const ParallelSet& set, const Likelihood& l, const std::vector<std::string>& outputs) const;

  TranslationData data_;
  std::unique_ptr<TranslationModel> model_;
  uint64_t seed_;
  int64_t batch_tokens_;
  double smoothing_, forcing_;
  bool bleu_;
  int64_t beam_;
  double length_penalty_;
  int64_t planned_epoch_ = -1;
  std::vector<std::vector<int64_t>> batches_;
  std::vector<std::pair<std::string, std::string>> chosen_;  // inputs and why they were chosen
};

void Translate::plan(int64_t epoch) {
  if (planned_epoch_ == epoch) return;
  batches_ = plan_batches(data_.train().costs(), {.tokens = batch_tokens_}, seed_, epoch);
  planned_epoch_ = epoch;
}

BatchLoss Translate::train_batch(int64_t epoch, int64_t batch, Context& ctx, const BatchPart& part) {
  plan(epoch);
  const std::vector<int64_t>& whole = batches_[static_cast<size_t>(batch)];
  const EncodedPairs& encoded = data_.train();
  std::vector<int64_t> costs, pairs;
  for (const int64_t i : whole) costs.push_back(encoded.source.length(i) + encoded.target.length(i) + 1);
  for (const int64_t i : balanced_part(costs, part.index, part.count)) pairs.push_back(whole[static_cast<size_t>(i)]);
  if (pairs.empty()) return {};
  PairBatch b;
  if (data_.samples()) {
    std::vector<int64_t> all(pairs.size());
    std::iota(all.begin(), all.end(), int64_t{0});
    b = batch_of(data_.sampled(pairs, epoch), all);
  } else {
    b = batch_of(encoded, pairs);
  }
  if (forcing_ < 1) {
    Rng rng = Rng(ctx.next_seed()).fork(kForcingStream);
    b.inputs = model_->mixed_inputs(b.source, b.inputs, forcing_, rng);
  }
  const Tensor logits = model_->forward(b.source, b.inputs, ctx);  // [T, V]
  const auto n = static_cast<int64_t>(b.targets.size());
  return {cross_entropy(logits, b.targets, {.label_smoothing = smoothing_}), n,
          n + static_cast<int64_t>(b.source.ids.size())};
}

Likelihood Translate::likelihood(const ParallelSet& set) const {
  const NoGrad no_grad;
  const EncodedPairs pairs = data_.encode(set);
  const auto batches = plan_batches_in_order(pairs.costs(), {.tokens = batch_tokens_});
  using Part = std::tuple<double, int64_t>;
  Likelihood sum;
  for (const auto& [nats, tokens] : share_out<Part>(processes(), static_cast<int64_t>(batches.size()), [&](int64_t i) {
         const PairBatch b = batch_of(pairs, batches[static_cast<size_t>(i)]);
         Context ctx;
         const double loss = cross_entropy(model_->forward(b.source, b.inputs, ctx), b.targets).item();
         return Part{loss * static_cast<double>(b.targets.size()), static_cast<int64_t>(b.targets.size())};
       })) {
    sum.nats += nats;
    sum.tokens += tokens;
  }
  // The end of a sentence counts as a word, as it does as a token.
  for (const std::string& line : set.target) sum.words += static_cast<int64_t>(words_of_line(line).size()) + 1;
  return sum;
}

std::vector<std::vector<Hypothesis>> Translate::decode(const RaggedIds& sources, const DecodeOptions& options,
                                                       const std::vector<int64_t>& beginning) const {
  const NoGrad no_grad;
  // Nothing is translated by nothing, and takes no part in the search.
  std::vector<std::vector<Hypothesis>> found(static_cast<size_t>(sources.size()), {Hypothesis{}});
  std::vector<int64_t> costs, some;
  for (int64_t i = 0; i < sources.size(); ++i) {
    if (sources.length(i) == 0) continue;
    some.push_back(i);
    costs.push_back((sources.length(i) + 1) * options.beam);
  }
  const auto batches = plan_batches_in_order(costs, {.tokens = kDecodingTokens});
  using Part = std::vector<std::vector<Hypothesis>>;
  std::vector<Part> parts = share_out<Part>(processes(), static_cast<int64_t>(batches.size()), [&](int64_t batch) {
    std::vector<std::vector<int64_t>> inputs;
    SearchOptions how{.begin = kBeginId,
                      .end = kEndId,
                      .beam = options.beam,
                      .n_best = options.n_best,
                      .length_penalty = options.length_penalty,
                      .forced = beginning,
                      .max_lengths = {}};
    for (const int64_t k : batches[static_cast<size_t>(batch)]) {
      const auto source = sources[some[static_cast<size_t>(k)]];
      inputs.emplace_back(source.begin(), source.end());
      const auto own = static_cast<int64_t>(source.size()) * 3 / 2 + kExtraLength;
      how.max_lengths.push_back(options.max_length > 0 ? options.max_length : own);
    }
    const auto decoder = model_->start(TokenBatch(inputs));
    return search(*decoder, how);
  });
  for (size_t b = 0; b < batches.size(); ++b) {
    for (size_t k = 0; k < batches[b].size(); ++k) {
      found[static_cast<size_t>(some[static_cast<size_t>(batches[b][k])])] = std::move(parts[b][k]);
    }
  }
  return found;
}

std::vector<std::string> Translate::translate(std::span<const std::string> lines, const DecodeOptions& options) const {
  RaggedIds sources;
  for (const std::string& line : lines) sources.push_back(data_.tokenizers().source->encode(line));
  std::vector<std::string> outputs;
  for (const auto& best : decode(sources, options)) outputs.push_back(text_of(best.front().tokens));
  return outputs;
}

Metrics Translate::figures(const ParallelSet& set, const Likelihood& l, const std::vector<std::string>& outputs) const {
  Metrics m{{"loss", l.per_token()}, {"loss_per_word", l.per_word()}, {"perplexity", std::exp(l.per_token())}};
  if (!outputs.empty()) m.emplace_back("bleu", corpus_bleu(outputs, set.target).score);
  return m;
}

Metrics Translate::validate() {
  const ParallelSet& val = data_.corpus().val;
  return figures(val, likelihood(val), bleu_ ? translate(val.source, {}) : std::vector<std::string>{});
}

/// BLEU of one sentence: orders that it is too short for do not count.
double sentence_bleu(const std::string& output, const std::string& reference) {
  return corpus_bleu(std::span(&output, 1), std::vector<std::string>{reference}, true).score;
}

Evaluation Translate::evaluate(const std::string& data) {
  Evaluation result;
  LineReport left_out;
  std::vector<std::pair<double, Case>> wrong;
  for (const ParallelSet& set : data_.evaluation_sets(data, left_out)) {
    const std::vector<std::string> outputs = translate(set.source, {.beam = beam_, .length_penalty = length_penalty_});
    const std::string prefix = result.metrics.empty() ? "" : set.name + "_";
    for (const auto& [name, value] : figures(set, likelihood(set), outputs)) {
      result.metrics.emplace_back(prefix + name, value);
    }
    result.notes.push_back(set.name + ": " + corpus_bleu(outputs, set.target).text());
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == set.target[i]) continue;
      wrong.emplace_back(sentence_bleu(outputs[i], set.target[i]), Case{set.source[i], set.target[i], outputs[i]});
    }
  }
  std::stable_sort(wrong.begin(), wrong.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < wrong.size() && i < kErrorsShown; ++i) result.errors.push_back(std::move(wrong[i].second));
  result.notes.push_back(std::string(kBleuSignature) + ", beam " + std::to_string(beam_));
  if (left_out.total() > 0) result.notes.push_back(left_out.summary());
  return result;
}

std::vector<std::string> Translate::notes() {
  data_.train();  // only then is it known which pairs are too long
  const std::string left_out = data_.corpus().report.summary();
  return left_out.empty() ? std::vector<std::string>{} : std::vector<std::string>{left_out};
}

std::vector<std::vector<Prediction>> Translate::predict(std::span<const std::string> inputs,
                                                        const DecodeOptions& options) {
  RaggedIds sources;
  for (const std::string& line : inputs) sources.push_back(data_.tokenizers().source->encode(line));
  std::vector<std::vector<Prediction>> all;
  const auto found = decode(sources, options);
  for (size_t i = 0; i < found.size(); ++i) {
    all.emplace_back();
    for (const Hypothesis& h : found[i]) {
      Prediction p{text_of(h.tokens), h.log_probability, ""};
      const auto source = sources[static_cast<int64_t>(i)];
      if (options.align) p.alignment = alignment({source.begin(), source.end()}, h.tokens);
      all.back().push_back(std::move(p));
    }
  }
  return all;
}

TracedExample Translate::traced(const std::vector<int64_t>& source, const std::vector<int64_t>& output) const {
  const NoGrad no_grad;
  TracedExample example;
  for (const int64_t id : source) example.source.push_back(data_.tokenizers().source->piece(id));
  for (const int64_t id : output) example.target.push_back(data_.tokenizers().target->piece(id));
  example.target.push_back(data_.tokenizers().target->piece(kEndId));
  example.output = text_of(output);
  example.written = output;
  example.written.push_back(kEndId);
  // One row per token written: the row before it was fed chose it, the last one chose to end.
  std::vector<int64_t> inputs{kBeginId};
  inputs.insert(inputs.end(), output.begin(), output.end());
  TraceList traces;
  Context ctx;
  ctx.trace = &traces;
  const Tensor logits = model_->forward(TokenBatch(std::vector<std::vector<int64_t>>{source}),
                                        TokenBatch(std::vector<std::vector<int64_t>>{inputs}), ctx);
  example.attention = traces.traces();
  // Of one head alone, the summary would be a copy.
  const bool several = example.attention.size() > 1 || (!example.attention.empty() && example.attention[0].H > 1);
  const AlignmentWeights weights = several ? alignment_weights(example.attention) : AlignmentWeights{};
  if (!weights.empty()) example.attention.insert(example.attention.begin(), alignment_trace(weights));
  example.candidates =
      likeliest(logits, kCandidates, [this](int64_t id) { return data_.tokenizers().target->piece(id); });
  return example;
}

TracedExample Translate::trace_with(const std::string& input, const TraceOptions& how) {
  std::vector<int64_t> source = data_.tokenizers().source->encode(input);
  if (source.empty()) throw ConfigError("nothing to translate: the input is empty");
  RaggedIds one;
  one.push_back(source);
  return traced(source, decode(one, {}, how.beginning)[0].front().tokens);
}

std::string Translate::alignment(const std::vector<int64_t>& source, const std::vector<int64_t>& output) const {
  if (source.empty() || output.empty()) return "";
  return alignment_text(alignment_weights(traced(source, output).attention),
                        word_of_piece(*data_.tokenizers().source, source),
                        word_of_piece(*data_.tokenizers().target, output));
}

LookedAt Translate::looked_at(int64_t index, const std::vector<int64_t>& source, const Hypothesis& found) {
  const std::vector<int64_t>& output = found.tokens;
  LookedAt seen = look_at(alignment_weights(traced(source, output).attention));
  seen.ended = found.complete;
  seen.index = index;
  seen.tokens = static_cast<double>(source.size());
  seen.bleu = sentence_bleu(text_of(output), data_.corpus().val.target[static_cast<size_t>(index)]);
  return seen;
}

std::vector<std::string> Translate::examples(int64_t n) {
  constexpr int64_t kLookedAt = 200;
  const ParallelSet& val = data_.corpus().val;
  std::vector<std::vector<int64_t>> all;
  for (const std::string& line : val.source) all.push_back(data_.tokenizers().source->encode(line));
  // The first ones, and the longest of all.
  std::vector<int64_t> which(static_cast<size_t>(std::min(val.size(), std::max(n, kLookedAt))));
  std::iota(which.begin(), which.end(), int64_t{0});
  const auto longest =
      std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); }) -
      all.begin();
  if (longest >= static_cast<std::ptrdiff_t>(which.size())) which.push_back(longest);
  RaggedIds sources;
  for (const int64_t i : which) sources.push_back(all[static_cast<size_t>(i)]);
  const auto found = decode(sources, {});
  std::vector<LookedAt> seen;
  for (size_t k = 0; k < which.size(); ++k) {
    const std::vector<int64_t>& source = all[static_cast<size_t>(which[k])];
    if (!source.empty()) seen.push_back(looked_at(which[k], source, found[k].front()));
  }
  chosen_.clear();
  std::vector<std::string> inputs;
  for (const ChosenExample& e : choose_examples(std::move(seen), n)) {
    inputs.push_back(val.source[static_cast<size_t>(e.index)]);
    chosen_.emplace_back(inputs.back(), e.why);
  }
  return inputs;
}

std::string Translate::about_example(const std::string& input) const {
  for (const auto& [chosen, why] : chosen_) {
    if (chosen == input) return why;
  }
  return "";
}

}  // namespace

Settings translate_settings() {
  Settings s = training_settings();
  declare_translation_model(s);
  declare_translation_data(s);
  s.group("training")
      .integer("batch-tokens", 4096, "source and target tokens in a batch", 1, 1e7)
      .number("label-smoothing", 0.1, "label smoothing: fraction of the target spread over the vocabulary", 0, 0.9)
      .number("teacher-forcing", 1,
              "teacher forcing: probability that the decoder is fed the right token (recurrent model)", 0, 1)
      .flag("eval-bleu", true, "translate the validation set at each evaluation and keep the best by BLEU")
      .group("output")
      .integer("beam", 5, "hypotheses kept when a test set is translated", 1, 100)
      .number("length-penalty", 1, "alpha of its length penalty", 0, 10)
      .open_to_clients({"batch-tokens", "label-smoothing", "teacher-forcing", "eval-bleu", "beam", "length-penalty"});
  for (const auto& [name, value] : {std::pair{"epochs", "16"},
                                    {"lr", "0.001"},
                                    {"schedule", "cosine"},
                                    {"final-lr", "0.05"},
                                    {"warmup", "500"},
                                    {"weight-decay", "0.0001"},
                                    {"checkpoint-every", "100"},
                                    {"average", "4"}}) {
    s.set(name, value);
  }
  s.when({"model"}, "transformer", "epochs", "40")
      .when({"model"}, "transformer", "warmup", "1000")
      .when({"model"}, "transformer", "average", "8");
  // The generated text is simple: a small model learns it in a minute.
  for (const auto& [name, value] :
       {std::pair{"hidden", "128"}, {"embedding", "64"}, {"width", "128"}, {"inner", "256"}, {"warmup", "100"}}) {
    s.when({"data", "train-src"}, "", name, value);
  }
  return s;
}

std::unique_ptr<Task> make_translate(const Settings& settings, const std::string& assets) {
  return std::make_unique<Translate>(settings, assets);
}

}  // namespace qkv
