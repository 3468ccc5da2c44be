// The two families of translation models behind one interface.
#include "qkv/tasks/translate/model.h"

#include "qkv/base/error.h"
#include "qkv/models/seq2seq.h"
#include "qkv/models/transformer.h"

namespace qkv {
namespace {

constexpr uint64_t kWeightStream = 1;

class RecurrentTranslation final : public TranslationModel {
 public:
  RecurrentTranslation(const Seq2SeqConfig& config, Rng& rng) : model_(config, rng) {}
  void visit(Visitor& see) override { model_.visit(see); }
  Tensor forward(const TokenBatch& source, const TokenBatch& inputs, Context& ctx) const override {
    return model_.forward(source, inputs, ctx);
  }
  TokenBatch mixed_inputs(const TokenBatch& source, const TokenBatch& inputs, double ratio, Rng& rng) const override {
    return model_.mixed_inputs(source, inputs, ratio, rng);
  }
  std::unique_ptr<StepDecoder> start(const TokenBatch& source) const override { return model_.start(source); }

 private:
  Seq2Seq model_;
};

class TransformerTranslation final : public TranslationModel {
 public:
  TransformerTranslation(const TransformerConfig& config, Rng& rng) : model_(config, rng) {}
  void visit(Visitor& see) override { model_.visit(see); }
  Tensor forward(const TokenBatch& source, const TokenBatch& inputs, Context& ctx) const override {
    return model_.forward(source, inputs, ctx);
  }
  std::unique_ptr<StepDecoder> start(const TokenBatch& source) const override { return model_.start(source); }

 private:
  Transformer model_;
};

Seq2SeqConfig recurrent_config(const Settings& s) {
  Seq2SeqConfig c;
  c.embedding = s.get_integer("embedding");
  c.hidden = s.get_integer("hidden");
  c.layers = s.get_integer("layers");
  c.cell = s.get<CellKind>("cell");
  c.bidirectional = true;
  c.attention = s.get_text("attention");
  c.placement = s.get<Placement>("placement");
  c.attention_config.heads = s.get_integer("heads");
  c.attention_config.key = s.get_integer("kq");
  c.attention_config.normaliser = s.get<Normaliser>("normaliser");
  c.dropout = s.get_number("dropout");
  return c;
}

TransformerConfig transformer_config(const Settings& s) {
  TransformerConfig c;
  c.width = s.get_integer("width");
  c.heads = s.get_integer("heads");
  c.inner = s.get_integer("inner");
  c.encoder_layers = c.decoder_layers = s.get_integer("layers");
  c.pre_norm = s.get_text("norm") == "pre";
  c.positions = s.get<Positions>("positions");
  c.longest = s.get_integer("longest");
  c.tying = s.get<Tying>("tying");
  c.self_attention = s.get_text("self-attention");
  c.cross_attention = s.get_text("attention");
  c.normaliser = s.get<Normaliser>("normaliser");
  c.dropout = s.get_number("dropout");
  return c;
}

}  // namespace

TokenBatch TranslationModel::mixed_inputs(const TokenBatch&, const TokenBatch&, double, Rng&) const {
  throw ConfigError("--teacher-forcing below 1 needs --model rnn: a Transformer reads all target tokens at once");
}

void declare_translation_model(Settings& s) {
  constexpr double kWidest = 65536;
  s.group("model")
      .choice("model", "rnn", {"rnn", "transformer"}, "family of the model; each has its own defaults")
      .choice("attention", "scaled-dot", attention_names(false), "attention of the decoder to the source")
      .integer("layers", 1, "layers on either side", 1, 64)
      .integer("heads", 8, "heads of multi-head attention", 1, 1024)
      .choice("normaliser", Normaliser::softmax, "normaliser of the attention weights")
      .number("dropout", 0.4, "dropout rate while training", 0, 0.95);
  s.choice("cell", CellKind::gru, "rnn: kind of recurrent layer")
      .choice("placement", Placement::before, "rnn: attend with the state before or after a step")
      .integer("embedding", 256, "rnn: width of the token embeddings", 1, kWidest)
      .integer("hidden", 512, "rnn: width of the recurrent layers", 1, kWidest)
      .integer("kq", 64, "rnn: width of projected queries and keys; 0: the query's", 0, kWidest);
  s.integer("width", 256, "transformer: width of the token embeddings", 1, kWidest)
      .integer("inner", 1024, "transformer: width inside the feed-forward blocks", 1, kWidest)
      .choice("self-attention", "multi-head", attention_names(true), "transformer: self-attention of both sides")
      .choice("norm", "pre", {"pre", "post"}, "transformer: layer norm before each sublayer or after it")
      .choice("positions", Positions::sinusoidal, "transformer: positional encoding")
      .integer("longest", 512, "transformer: number of learned positions; later tokens share the last one", 1, 100000)
      .choice(
          "tying", Tying::all,
          "transformer: share one embedding table between source, target and output, between target and output, or not")
      .open_to_clients({"model", "attention", "layers", "heads", "normaliser", "dropout", "cell", "placement",
                        "embedding", "hidden", "kq", "width", "inner", "self-attention", "norm", "positions", "longest",
                        "tying"});
  s.when({"model"}, "transformer", "attention", "multi-head").when({"model"}, "transformer", "layers", "3");
  s.when({"model"}, "transformer", "dropout", "0.3");
}

std::unique_ptr<TranslationModel> make_translation_model(const Settings& s, int64_t source_vocabulary,
                                                         int64_t target_vocabulary) {
  Rng rng = Rng(static_cast<uint64_t>(s.get_integer("seed"))).fork(kWeightStream);
  if (s.get_text("model") == "transformer") {
    TransformerConfig config = transformer_config(s);
    config.source_vocabulary = source_vocabulary;
    config.target_vocabulary = target_vocabulary;
    if (!s.get_flag("joint") && config.tying == Tying::all) config.tying = Tying::output;
    return std::make_unique<TransformerTranslation>(config, rng);
  }
  Seq2SeqConfig config = recurrent_config(s);
  config.source_vocabulary = source_vocabulary;
  config.target_vocabulary = target_vocabulary;
  return std::make_unique<RecurrentTranslation>(config, rng);
}

}  // namespace qkv
