// Options, loss and evaluation of decoder-only language models.
#include "qkv/tasks/language_model.h"

#include <algorithm>

#include "qkv/core/autograd.h"
#include "qkv/nn/attention.h"
#include "qkv/ops/ops.h"
#include "qkv/tasks/candidates.h"

namespace qkv {
namespace {

constexpr uint64_t kWeightStream = 1;
constexpr int64_t kEvaluationTokens = 4096;

/// Rows of the hidden states and what should follow each.
struct Targets {
  std::vector<int64_t> rows, ids;
  int64_t size() const { return static_cast<int64_t>(rows.size()); }
};

}  // namespace

void declare_gpt(Settings& s) {
  constexpr double kWidest = 65536;
  s.group("model")
      .choice("attention", "multi-head", attention_names(true), "self-attention of the tokens")
      .choice("positions", Positions::learned, "positional encoding")
      .integer("layers", 4, "layers", 1, 256)
      .integer("heads", 8, "heads of each layer", 1, 1024)
      .integer("width", 256, "width of the token embeddings", 1, kWidest)
      .integer("block", 128, "longest sequence", 8, 1e6)
      .flag("tied", false, "share the embedding table with the output layer")
      .number("dropout", 0, "dropout rate while training", 0, 0.95)
      .open_to_clients({"attention", "positions", "layers", "heads", "width", "block", "tied", "dropout"});
}

Gpt make_gpt(const Settings& s, int64_t vocabulary) {
  GptConfig c;
  c.vocabulary = vocabulary;
  c.block = s.get_integer("block");
  c.width = s.get_integer("width");
  c.heads = s.get_integer("heads");
  c.layers = s.get_integer("layers");
  c.positions = s.get<Positions>("positions");
  c.attention = s.get_text("attention");
  c.tied = s.get_flag("tied");
  c.dropout = s.get_number("dropout");
  Rng rng = Rng(static_cast<uint64_t>(s.get_integer("seed"))).fork(kWeightStream);
  return Gpt(c, rng);
}

BatchLoss language_loss(const Gpt& model, std::span<const LanguageExample> examples, Context& ctx, double span_weight) {
  if (examples.empty()) return {};
  std::vector<int64_t> ids, lengths;
  Targets plain, hidden_part;
  for (const LanguageExample& e : examples) {
    // What was hidden comes after the last mask.
    const auto last = std::find(e.input.rbegin(), e.input.rend(), CharVocabulary::kMask);
    const auto hidden_from =
        span_weight == 1 || last == e.input.rend() ? e.input.size() : static_cast<size_t>(e.input.rend() - last) - 1;
    for (size_t i = 0; i < e.target.size(); ++i) {
      if (e.target[i] == LanguageExample::kNoTarget) continue;
      Targets& to = i < hidden_from ? plain : hidden_part;
      to.rows.push_back(static_cast<int64_t>(ids.size() + i));
      to.ids.push_back(e.target[i]);
    }
    ids.insert(ids.end(), e.input.begin(), e.input.end());
    lengths.push_back(static_cast<int64_t>(e.input.size()));
  }
  const auto tokens = static_cast<int64_t>(ids.size());
  const int64_t counted = plain.size() + hidden_part.size();
  const Tensor all = model.hidden(TokenBatch(std::move(ids), Ragged(lengths)), ctx);  // [T, C]
  if (hidden_part.size() == 0) {
    const Tensor rows = counted < tokens ? gather_rows(all, plain.rows) : all;  // [targets, C]
    return {cross_entropy(model.logits(rows), plain.ids), counted, tokens};
  }
  const double weight = span_weight * static_cast<double>(hidden_part.size());
  const double share = weight / (weight + static_cast<double>(plain.size()));
  Tensor loss = affine(cross_entropy(model.logits(gather_rows(all, hidden_part.rows)), hidden_part.ids), share);
  if (plain.size() > 0) {
    loss = loss + affine(cross_entropy(model.logits(gather_rows(all, plain.rows)), plain.ids), 1 - share);
  }
  return {loss, counted, tokens};
}

MeanLoss mean_loss(const Gpt& model, std::span<const LanguageExample> examples, Processes& processes) {
  const auto at = [&](int64_t i) { return examples.begin() + static_cast<std::ptrdiff_t>(i); };
  return mean_loss(
      model, static_cast<int64_t>(examples.size()),
      [&](int64_t i) { return static_cast<int64_t>(at(i)->input.size()); },
      [&](int64_t first, int64_t last) { return std::vector<LanguageExample>(at(first), at(last)); }, processes);
}

MeanLoss mean_loss(const Gpt& model, int64_t n, const std::function<int64_t(int64_t)>& length,
                   const std::function<std::vector<LanguageExample>(int64_t, int64_t)>& make, Processes& processes) {
  const NoGrad no_grad;
  std::vector<int64_t> cuts{0};
  for (int64_t last = 0; last < n; cuts.push_back(last)) {
    const int64_t first = last;
    for (int64_t tokens = 0; last < n && (last == first || tokens < kEvaluationTokens); ++last) tokens += length(last);
  }
  using Part = std::tuple<double, int64_t>;
  MeanLoss sum;
  for (const auto& [nats, targets] : share_out<Part>(processes, static_cast<int64_t>(cuts.size()) - 1, [&](int64_t i) {
         const std::vector<LanguageExample> some = make(cuts[static_cast<size_t>(i)], cuts[static_cast<size_t>(i) + 1]);
         Context ctx;
         const BatchLoss loss = language_loss(model, some, ctx);
         return Part{loss.loss.item() * static_cast<double>(loss.targets), loss.targets};
       })) {
    sum.nats += nats;
    sum.targets += targets;
  }
  return sum;
}

TracedExample trace_reading(const Gpt& model, const std::vector<int64_t>& ids,
                            const std::function<std::string(int64_t)>& name) {
  const NoGrad no_grad;
  TracedExample example;
  for (const int64_t id : ids) example.source.push_back(name(id));
  TraceList traces;
  Context ctx;
  ctx.trace = &traces;
  const Tensor logits = model.forward(TokenBatch(std::vector<std::vector<int64_t>>{ids}), ctx);
  example.attention = traces.traces();
  example.candidates = likeliest(logits, kCandidates, name);
  return example;
}

}  // namespace qkv
