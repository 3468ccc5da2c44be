// The recurrent encoder-decoder: construction, training pass, step-by-step decoding.
#include "qkv/models/seq2seq.h"

#include <algorithm>

#include "qkv/base/error.h"
#include "qkv/core/autograd.h"

namespace qkv {
namespace {

// Rows of a ragged [T, H, D] tensor for the sequences `keep`, in that order.
Tensor take_sequences(const Tensor& x, const Ragged& from, std::span<const int64_t> keep) {
  std::vector<int64_t> rows;
  for (int64_t b : keep) {
    for (int64_t i = from.begin(b); i < from.begin(b + 1); ++i) rows.push_back(i);
  }
  const Tensor flat = gather_rows(reshape(x, {x.dim(0), x.dim(1) * x.dim(2)}), rows);
  return reshape(flat, {flat.dim(0), x.dim(1), x.dim(2)});
}

AttentionPlan plan_for(const AttentionPlan& plan, std::span<const int64_t> keep) {
  if (!plan.defined()) return plan;
  AttentionPlan out = plan;
  std::vector<int64_t> lengths;
  for (int64_t b : keep) lengths.push_back(plan.memory.length(b));
  out.keys = take_sequences(plan.keys, plan.memory, keep);
  out.values = take_sequences(plan.values, plan.memory, keep);
  out.memory = Ragged(lengths);
  return out;
}

std::vector<RecurrentState> states_for(const std::vector<RecurrentState>& states, std::span<const int64_t> keep) {
  std::vector<RecurrentState> out;
  for (const RecurrentState& s : states) {
    out.push_back({gather_rows(s.h, keep), s.c.defined() ? gather_rows(s.c, keep) : Tensor()});
  }
  return out;
}

class Seq2SeqSteps final : public StepDecoder {
 public:
  Seq2SeqSteps(const Seq2Seq& model, const TokenBatch& source) : model_(model) {
    NoGrad guard;
    memory_ = model.encode(source, ctx_);
    for (int64_t b = 0; b < source.batch.sequences(); ++b) sentence_.push_back(b);
    whole_ = memory_.plan;
  }

  int64_t rows() const override { return static_cast<int64_t>(sentence_.size()); }

  Tensor step(std::span<const int64_t> tokens) override {
    NoGrad guard;
    const TokenBatch inputs({tokens.begin(), tokens.end()}, Ragged::equal(rows(), 1));
    std::vector<RecurrentState> states;
    const Tensor logits = model_.decode(memory_, inputs, ctx_, &states);
    memory_.initial = std::move(states);
    return logits;
  }

  void select(std::span<const int64_t> rows) override {
    NoGrad guard;
    std::vector<int64_t> sentence;
    for (int64_t r : rows) sentence.push_back(sentence_[static_cast<size_t>(r)]);
    memory_.initial = states_for(memory_.initial, rows);
    // Hypotheses of one sentence share its memory: it moves only when sentences do.
    if (sentence != sentence_) memory_.plan = plan_for(whole_, sentence);
    sentence_ = std::move(sentence);
  }

 private:
  const Seq2Seq& model_;
  Context ctx_;
  Seq2Seq::Memory memory_;
  AttentionPlan whole_;            // of all sentences
  std::vector<int64_t> sentence_;  // of each row
};

}  // namespace

Seq2Seq::Seq2Seq(const Seq2SeqConfig& config, Rng& rng)
    : config_(config),
      source_embedding_(config.source_vocabulary, config.embedding, rng),
      target_embedding_(config.target_vocabulary, config.embedding, rng),
      encoder_({config.cell, config.embedding, config.hidden, config.layers, config.bidirectional, config.dropout},
               rng),
      dropout_(config.dropout) {
  if (config.bidirectional) {
    for (int64_t l = 0; l < config.layers; ++l) {
      bridge_h_.emplace_back(2 * config.hidden, config.hidden, rng);
      if (config.cell == CellKind::lstm) bridge_c_.emplace_back(2 * config.hidden, config.hidden, rng);
    }
  }
  AttentionConfig attention = config.attention_config;
  attention.query = config.hidden;
  attention.memory = encoder_.width();
  attention.self = false;
  attention_ = config.attention.make(attention, rng);
  const bool before = config.placement == Placement::before;
  const int64_t width = attention_->width(), input = config.embedding + (before ? width : 0);
  for (int64_t l = 0; l < config.layers; ++l) {
    decoder_.push_back(recurrent_weights(config.cell, l == 0 ? input : config.hidden, config.hidden, rng));
  }
  if (!before && width > 0) combine_ = Linear(width + config.hidden, config.hidden, rng);
  const int64_t read = before ? config.hidden + width + config.embedding : config.hidden;
  output_ = Linear(read, config.target_vocabulary, rng);
}

void Seq2Seq::visit(Visitor& see) {
  see("source_embedding", source_embedding_);
  see("target_embedding", target_embedding_);
  see("encoder", encoder_);
  see("bridge_h", bridge_h_);
  see("bridge_c", bridge_c_);
  see("attention", attention_);
  for (size_t l = 0; l < decoder_.size(); ++l) visit_weights(see, "decoder.", "_l" + std::to_string(l), decoder_[l]);
  if (combine_.defined()) see("combine", combine_);
  see("output", output_);
}

std::vector<RecurrentState> Seq2Seq::bridge(const RecurrentOutput& encoded) const {
  if (!config_.bidirectional) return encoded.forward;
  std::vector<RecurrentState> states;
  for (size_t l = 0; l < encoded.forward.size(); ++l) {
    const auto join = [&](const Tensor& ahead, const Tensor& back, const Linear& map, Act act) {
      return map.forward(concat({ahead, back}, 1), act);
    };
    RecurrentState s;
    s.h = join(encoded.forward[l].h, encoded.backward[l].h, bridge_h_[l], Act::tanh);
    if (config_.cell == CellKind::lstm) {
      s.c = join(encoded.forward[l].c, encoded.backward[l].c, bridge_c_[l], Act::none);
    }
    states.push_back(s);
  }
  return states;
}

RecurrentInput Seq2Seq::read(const Embedding& table, const std::vector<int64_t>& ids, Context& ctx) const {
  if (dropout_.p() > 0 && ctx.training()) return dropout_.forward(table.forward(ids), ctx);
  return {table.table(), ids};
}

Seq2Seq::Memory Seq2Seq::encode(const TokenBatch& source, Context& ctx) const {
  const RecurrentOutput encoded = encoder_.forward(read(source_embedding_, source.ids, ctx), source.batch, ctx);
  return {encoded.out, source.batch, attention_->plan(encoded.out, source.batch, ctx), bridge(encoded)};
}

Tensor Seq2Seq::readout(const Tensor& s, const Tensor& context, const Tensor& x, Context& ctx) const {
  Tensor read = s;  // [Tt, H]
  if (config_.placement == Placement::before) {
    read = context.defined() ? concat({s, context, x}, 1) : concat({s, x}, 1);
  } else if (combine_.defined()) {
    read = combine_.forward(concat({context, s}, 1), Act::tanh);
  }
  return output_.forward(dropout_.forward(read, ctx));  // [Tt, V]
}

Tensor Seq2Seq::decode(const Memory& memory, const TokenBatch& inputs, Context& ctx,
                       std::vector<RecurrentState>* states) const {
  const int64_t sentences = memory.initial[0].h.dim(0);
  if (inputs.batch.sequences() != sentences) {
    throw ShapeError("[seq2seq] " + std::to_string(inputs.batch.sequences()) + " targets for " +
                     std::to_string(sentences) + " sources");
  }
  AttentionCall call;
  call.queries = inputs.batch;
  call.memory = memory.plan.memory;
  const bool before = config_.placement == Placement::before, attends = memory.plan.defined();
  const Tensor x = before ? dropout_.forward(target_embedding_.forward(inputs.ids), ctx) : Tensor();  // [Tt, E]
  if (before && attends) {
    const double drop = ctx.training() ? config_.dropout : 0;
    const DecoderCells cells{config_.cell, decoder_, drop, drop > 0 ? ctx.next_seed() : 0};
    const DecoderResult run = recurrent_decoder(x, inputs.batch, cells, memory.plan, memory.initial);
    trace_attention(run.queries, {memory.plan.keys, memory.plan.values}, memory.plan.rule, call, ctx);
    if (states) *states = run.state;
    return readout(run.out, run.context, x, ctx);
  }
  RecurrentInput s = before ? RecurrentInput(x) : read(target_embedding_, inputs.ids, ctx);
  if (states) states->clear();
  for (size_t l = 0; l < decoder_.size(); ++l) {
    if (l > 0) s = dropout_.forward(s.rows, ctx);
    const RecurrentResult layer = recurrent(config_.cell, s, inputs.batch, decoder_[l], memory.initial[l]);
    s = layer.out;
    if (states) states->push_back(layer.state);
  }
  return readout(s.rows, attends ? attend(s.rows, memory.plan, call, ctx) : Tensor(), x, ctx);
}

Tensor Seq2Seq::forward(const TokenBatch& source, const TokenBatch& inputs, Context& ctx) const {
  return decode(encode(source, ctx), inputs, ctx);
}

TokenBatch Seq2Seq::mixed_inputs(const TokenBatch& source, const TokenBatch& inputs, double ratio, Rng& rng) const {
  if (!(ratio >= 0 && ratio <= 1)) throw ConfigError("the teacher-forcing ratio must be between 0 and 1");
  TokenBatch mixed = inputs;
  if (ratio == 1) return mixed;
  NoGrad guard;
  Seq2SeqSteps steps(*this, source);
  const int64_t sentences = inputs.batch.sequences();
  std::vector<int64_t> rows;  // the sentence of each live row
  for (int64_t b = 0; b < sentences; ++b) rows.push_back(b);
  for (int64_t t = 0; t + 1 < inputs.batch.longest(); ++t) {
    std::vector<int64_t> keep, next, tokens;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (inputs.batch.length(rows[i]) <= t + 1) continue;
      keep.push_back(static_cast<int64_t>(i));
      next.push_back(rows[i]);
    }
    if (keep.size() != rows.size()) steps.select(keep);
    rows = next;
    for (int64_t b : rows) tokens.push_back(mixed.ids[static_cast<size_t>(inputs.batch.begin(b) + t)]);
    const Tensor logits = steps.step(tokens);  // [rows, V]
    const int64_t V = logits.dim(1);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rng.uniform() < ratio) continue;
      const float* row = logits.f32() + static_cast<int64_t>(i) * V;
      mixed.ids[static_cast<size_t>(inputs.batch.begin(rows[i]) + t + 1)] = std::max_element(row, row + V) - row;
    }
  }
  return mixed;
}

std::unique_ptr<StepDecoder> Seq2Seq::start(const TokenBatch& source) const {
  return std::make_unique<Seq2SeqSteps>(*this, source);
}

}  // namespace qkv
