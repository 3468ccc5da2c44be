// The translation task: loss, BLEU, decoding with alignments, and examples worth a diagram.
#include "qkv/tasks/translate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/data/bleu.h"
#include "qkv/ops/ops.h"
#include "qkv/tasks/translation_data.h"
#include "qkv/tasks/translation_model.h"

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
    if (sources.back().empty()) sources.back().push_back(kUnknownId);  // a line of nothing still needs a token to see
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
        length_penalty_(s.get_number("length-penalty")) {}

  void visit(Visitor& see) override { model_->visit(see); }

  int64_t batches_in_epoch(int64_t epoch) override {
    plan(epoch);
    return static_cast<int64_t>(batches_.size());
  }
  BatchLoss train_batch(int64_t epoch, int64_t batch, Context& ctx) override;
  Metrics validate() override;
  Goal goal() const override {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    return bleu_ ? Goal{"bleu", true, kNever} : Goal{"loss", false, -kNever};
  }
  Evaluation evaluate(const std::string& data) override;
  std::vector<std::vector<Prediction>> predict(std::span<const std::string> inputs,
                                               const DecodeOptions& options) override;
  TracedExample trace(const std::string& input) override;
  std::vector<std::string> examples(int64_t n) override;
  void save_assets(const std::string& folder) const override { save_tokenizers(data_.tokenizers(), folder); }

 private:
  void plan(int64_t epoch);
  Likelihood likelihood(const ParallelSet& set) const;
  std::vector<std::vector<Hypothesis>> decode(const RaggedIds& sources, const DecodeOptions& options) const;
  std::vector<std::string> translate(std::span<const std::string> lines, const DecodeOptions& options) const;
  std::string text_of(std::span<const int64_t> ids) const { return data_.tokenizers().target->decode(ids); }
  /// Attention of one source and output, tokens as they are fed.
  TracedExample traced(const std::vector<int64_t>& source, const std::vector<int64_t>& output) const;
  std::string alignment(const std::vector<int64_t>& source, const std::vector<int64_t>& output) const;
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
};

void Translate::plan(int64_t epoch) {
  if (planned_epoch_ == epoch) return;
  batches_ = plan_batches(data_.train().costs(), {.tokens = batch_tokens_}, seed_, epoch);
  planned_epoch_ = epoch;
}

BatchLoss Translate::train_batch(int64_t epoch, int64_t batch, Context& ctx) {
  plan(epoch);
  const std::vector<int64_t>& pairs = batches_[static_cast<size_t>(batch)];
  PairBatch b;
  if (data_.samples()) {
    std::vector<int64_t> all(pairs.size());
    std::iota(all.begin(), all.end(), int64_t{0});
    b = batch_of(data_.sampled(pairs, epoch), all);
  } else {
    b = batch_of(data_.train(), pairs);
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
  Likelihood sum;
  for (const auto& which : plan_batches_in_order(pairs.costs(), {.tokens = batch_tokens_})) {
    const PairBatch b = batch_of(pairs, which);
    Context ctx;
    const double loss = cross_entropy(model_->forward(b.source, b.inputs, ctx), b.targets).item();
    sum.nats += loss * static_cast<double>(b.targets.size());
    sum.tokens += static_cast<int64_t>(b.targets.size());
  }
  // The end of a sentence counts as a word, as it does as a token.
  for (const std::string& line : set.target) sum.words += static_cast<int64_t>(words_of_line(line).size()) + 1;
  return sum;
}

std::vector<std::vector<Hypothesis>> Translate::decode(const RaggedIds& sources, const DecodeOptions& options) const {
  const NoGrad no_grad;
  std::vector<int64_t> costs;
  for (int64_t i = 0; i < sources.size(); ++i) costs.push_back((sources.length(i) + 1) * options.beam);
  std::vector<std::vector<Hypothesis>> found(static_cast<size_t>(sources.size()));
  for (const auto& which : plan_batches_in_order(costs, {.tokens = kDecodingTokens})) {
    std::vector<std::vector<int64_t>> batch;
    SearchOptions how{.begin = kBeginId,
                      .end = kEndId,
                      .beam = options.beam,
                      .n_best = options.n_best,
                      .length_penalty = options.length_penalty,
                      .max_lengths = {}};
    for (const int64_t i : which) {
      batch.emplace_back(sources[i].begin(), sources[i].end());
      if (batch.back().empty()) batch.back().push_back(kUnknownId);
      const int64_t own = sources.length(i) * 3 / 2 + kExtraLength;
      how.max_lengths.push_back(options.max_length > 0 ? options.max_length : own);
    }
    const auto decoder = model_->start(TokenBatch(batch));
    auto part = search(*decoder, how);
    for (size_t k = 0; k < which.size(); ++k) found[static_cast<size_t>(which[k])] = std::move(part[k]);
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

Evaluation Translate::evaluate(const std::string& data) {
  Evaluation result;
  for (const ParallelSet& set : data_.evaluation_sets(data)) {
    const std::vector<std::string> outputs = translate(set.source, {.beam = beam_, .length_penalty = length_penalty_});
    const std::string prefix = result.metrics.empty() ? "" : set.name + "_";
    for (const auto& [name, value] : figures(set, likelihood(set), outputs)) {
      result.metrics.emplace_back(prefix + name, value);
    }
    result.notes.push_back(set.name + ": " + corpus_bleu(outputs, set.target).text());
    for (size_t i = 0; i < outputs.size() && result.errors.size() < kErrorsShown; ++i) {
      if (outputs[i] != set.target[i]) result.errors.push_back({set.source[i], set.target[i], outputs[i]});
    }
  }
  result.notes.push_back(bleu_signature());
  return result;
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
  // One row a token written: the row before it was fed chose it, the last one chose to end.
  std::vector<int64_t> inputs{kBeginId};
  inputs.insert(inputs.end(), output.begin(), output.end());
  TraceList traces;
  Context ctx;
  ctx.trace = &traces;
  model_->forward(TokenBatch(std::vector<std::vector<int64_t>>{source}),
                  TokenBatch(std::vector<std::vector<int64_t>>{inputs}), ctx);
  example.attention = traces.traces();
  return example;
}

TracedExample Translate::trace(const std::string& input) {
  std::vector<int64_t> source = data_.tokenizers().source->encode(input);
  if (source.empty()) throw ConfigError("nothing to translate: the input is empty");
  RaggedIds one;
  one.push_back(source);
  return traced(source, decode(one, {})[0].front().tokens);
}

/// The word each piece belongs to: a new word begins at a piece that opens one ("▁").
std::vector<int64_t> word_of_piece(const Tokenizer& tokenizer, const std::vector<int64_t>& ids) {
  std::vector<int64_t> words;
  int64_t word = -1;
  const bool subwords = tokenizer.kind() == "unigram" || tokenizer.kind() == "bpe";
  for (const int64_t id : ids) {
    if (word < 0 || !subwords || tokenizer.piece(id).rfind("▁", 0) == 0) ++word;
    words.push_back(word);
  }
  return words;
}

/// Mean weights over the heads of the last cross-attention, [target, source].
std::vector<std::vector<double>> cross_weights(const TracedExample& example) {
  const AttentionTrace* last = nullptr;
  for (const AttentionTrace& t : example.attention) {
    if (t.site == "cross") last = &t;
  }
  std::vector<std::vector<double>> mean;
  if (last == nullptr) return mean;
  mean.assign(static_cast<size_t>(last->Lq), std::vector<double>(static_cast<size_t>(last->Lk), 0.0));
  for (int64_t h = 0; h < last->H; ++h) {
    const std::vector<double> w = last->scores({.h = h, .row_end = last->Lq}).to_doubles();
    for (size_t i = 0; i < w.size(); ++i) {
      mean[i / static_cast<size_t>(last->Lk)][i % static_cast<size_t>(last->Lk)] += w[i] / static_cast<double>(last->H);
    }
  }
  return mean;
}

std::string Translate::alignment(const std::vector<int64_t>& source, const std::vector<int64_t>& output) const {
  if (source.empty() || output.empty()) return "";
  const auto weights = cross_weights(traced(source, output));
  const std::vector<int64_t> source_word = word_of_piece(*data_.tokenizers().source, source);
  const std::vector<int64_t> target_word = word_of_piece(*data_.tokenizers().target, output);
  std::vector<std::pair<int64_t, int64_t>> links;
  for (size_t t = 0; t < output.size() && t < weights.size(); ++t) {
    const auto best = std::max_element(weights[t].begin(), weights[t].end()) - weights[t].begin();
    links.emplace_back(source_word[static_cast<size_t>(best)], target_word[t]);
  }
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  std::string text;
  for (const auto& [s, t] : links) text += (text.empty() ? "" : " ") + std::to_string(s) + "-" + std::to_string(t);
  return text;
}

std::vector<std::string> Translate::examples(int64_t n) {
  // Looked for among the first validation sentences: the most and the least in order, the longest and the shortest, the
  // surest and the least sure; then from the front.
  constexpr size_t kLookedAt = 48;
  const ParallelSet& val = data_.corpus().val;
  const size_t count = std::min(kLookedAt, val.source.size());
  struct Looked {
    size_t index;
    double disorder, sureness, length;
  };
  std::vector<Looked> looked;
  for (size_t i = 0; i < count; ++i) {
    const TracedExample e = trace(val.source[i]);
    const auto weights = cross_weights(e);
    double backwards = 0, sure = 0;
    int64_t before = 0;
    for (const auto& row : weights) {
      const auto best = std::max_element(row.begin(), row.end());
      const int64_t here = best - row.begin();
      backwards += here < before ? static_cast<double>(before - here) : 0;
      sure += *best;
      before = here;
    }
    const auto rows = static_cast<double>(std::max<size_t>(weights.size(), 1));
    looked.push_back({i, backwards / rows, sure / rows, static_cast<double>(e.source.size())});
  }
  std::vector<std::string> chosen;
  const auto take = [&](const auto& better) {
    if (static_cast<int64_t>(chosen.size()) >= n || looked.empty()) return;
    const auto best = std::min_element(looked.begin(), looked.end(), better);
    chosen.push_back(val.source[best->index]);
    looked.erase(best);
  };
  while (static_cast<int64_t>(chosen.size()) < n && !looked.empty()) {
    take([](const Looked& a, const Looked& b) { return a.disorder > b.disorder; });
    take([](const Looked& a, const Looked& b) { return a.disorder < b.disorder; });
    take([](const Looked& a, const Looked& b) { return a.length > b.length; });
    take([](const Looked& a, const Looked& b) { return a.sureness < b.sureness; });
    take([](const Looked& a, const Looked& b) { return a.sureness > b.sureness; });
    take([](const Looked& a, const Looked& b) { return a.index < b.index; });
  }
  return chosen;
}

}  // namespace

Settings translate_settings() {
  Settings s = training_settings();
  declare_translation_model(s);
  declare_translation_data(s);
  s.integer("batch-tokens", 4096, "source and target tokens in a batch", 1, 1e7)
      .number("label-smoothing", 0.1, "part of the target spread over the vocabulary", 0, 0.9)
      .number("teacher-forcing", 1, "probability that the decoder is fed the right token (recurrent model)", 0, 1)
      .flag("eval-bleu", true, "translate the validation set at each evaluation and keep the best by BLEU")
      .integer("beam", 5, "hypotheses kept when a test set is translated", 1, 100)
      .number("length-penalty", 1, "alpha of the length penalty there", 0, 10);
  s.set("epochs", "20");
  s.set("lr", "0.001");
  s.set("schedule", "inverse-sqrt");
  s.set("warmup", "1000");
  s.set("weight-decay", "0.0001");
  return s;
}

std::unique_ptr<Task> make_translate(const Settings& settings, const std::string& assets) {
  return std::make_unique<Translate>(settings, assets);
}

}  // namespace qkv
