// Options, loss and evaluation of decoder-only language models.
#include "qkv/tasks/language_model.h"

#include "qkv/core/autograd.h"
#include "qkv/nn/attention.h"
#include "qkv/ops/ops.h"

namespace qkv {
namespace {

constexpr uint64_t kWeightStream = 1;
constexpr size_t kEvaluationTokens = 4096;

std::vector<std::string> self_mechanisms() {
  std::vector<std::string> names;
  for (const AttentionSpec& spec : attention_table()) {
    if (spec.in_self) names.emplace_back(spec.name);
  }
  return names;
}

}  // namespace

void declare_gpt(Settings& s) {
  constexpr double kWidest = 65536;
  s.choice("attention", "multi-head", self_mechanisms(), "how a token looks at those before it")
      .choice("positions", "learned", {"none", "sinusoidal", "learned", "rotary", "alibi"}, "how order is known")
      .integer("layers", 4, "layers", 1, 256)
      .integer("heads", 8, "heads of each layer", 1, 1024)
      .integer("width", 256, "width of a token's vector", 1, kWidest)
      .integer("block", 128, "longest sequence", 8, 1e6)
      .flag("tied", false, "one table for the tokens read and the scores of those written")
      .number("dropout", 0, "part of the activations dropped while training", 0, 0.95);
}

Gpt make_gpt(const Settings& s, int64_t vocabulary) {
  GptConfig c;
  c.vocabulary = vocabulary;
  c.block = s.get_integer("block");
  c.width = s.get_integer("width");
  c.heads = s.get_integer("heads");
  c.layers = s.get_integer("layers");
  c.positions = positions_named(s.get_text("positions"));
  c.attention = s.get_text("attention");
  c.tied = s.get_flag("tied");
  c.dropout = s.get_number("dropout");
  Rng rng = Rng(static_cast<uint64_t>(s.get_integer("seed"))).fork(kWeightStream);
  return Gpt(c, rng);
}

BatchLoss language_loss(const Gpt& model, std::span<const LanguageExample> examples, Context& ctx) {
  std::vector<int64_t> ids, lengths, rows, targets;
  for (const LanguageExample& e : examples) {
    for (size_t i = 0; i < e.target.size(); ++i) {
      if (e.target[i] == LanguageExample::kNoTarget) continue;
      rows.push_back(static_cast<int64_t>(ids.size() + i));
      targets.push_back(e.target[i]);
    }
    ids.insert(ids.end(), e.input.begin(), e.input.end());
    lengths.push_back(static_cast<int64_t>(e.input.size()));
  }
  const auto tokens = static_cast<int64_t>(ids.size());
  const auto counted = static_cast<int64_t>(targets.size());
  Tensor hidden = model.hidden(TokenBatch(std::move(ids), Ragged(lengths)), ctx);  // [T, C]
  if (counted < tokens) hidden = gather_rows(hidden, rows);                        // [targets, C]
  return {cross_entropy(model.logits(hidden), targets), counted, tokens};
}

MeanLoss mean_loss(const Gpt& model, std::span<const LanguageExample> examples) {
  const NoGrad no_grad;
  MeanLoss sum;
  for (size_t first = 0, last = 0; first < examples.size(); first = last) {
    for (size_t tokens = 0; last < examples.size() && (last == first || tokens < kEvaluationTokens); ++last) {
      tokens += examples[last].input.size();
    }
    Context ctx;
    const BatchLoss loss = language_loss(model, examples.subspan(first, last - first), ctx);
    sum.nats += loss.loss.item() * static_cast<double>(loss.targets);
    sum.targets += loss.targets;
  }
  return sum;
}

}  // namespace qkv
