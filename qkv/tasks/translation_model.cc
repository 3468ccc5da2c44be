// The two families of translation models behind one interface.
#include "qkv/tasks/translation_model.h"

#include "qkv/base/error.h"
#include "qkv/models/seq2seq.h"

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

std::vector<std::string> mechanisms() {
  std::vector<std::string> names;
  for (const AttentionSpec& spec : attention_table()) names.emplace_back(spec.name);
  return names;
}

Seq2SeqConfig recurrent_config(const Settings& s) {
  Seq2SeqConfig c;
  c.embedding = s.get_integer("embedding");
  c.hidden = s.get_integer("hidden");
  c.layers = s.get_integer("layers");
  c.cell = s.get_text("cell") == "lstm" ? CellKind::lstm : CellKind::gru;
  c.bidirectional = true;
  c.attention = s.get_text("attention");
  c.placement = s.get_text("placement") == "after" ? Placement::after : Placement::before;
  c.attention_config.heads = s.get_integer("heads");
  c.attention_config.key = s.get_integer("kq");
  c.attention_config.normaliser = normaliser_named(s.get_text("normaliser"));
  c.dropout = s.get_number("dropout");
  return c;
}

}  // namespace

void declare_translation_model(Settings& s) {
  constexpr double kWidest = 65536;
  s.choice("attention", "scaled-dot", mechanisms(), "how the decoder looks at the source")
      .choice("cell", "gru", {"gru", "lstm"}, "kind of recurrent layer")
      .choice("placement", "before", {"before", "after"}, "attend with the state before or after a step")
      .integer("embedding", 256, "width of a token's vector", 1, kWidest)
      .integer("hidden", 512, "width of the recurrent layers", 1, kWidest)
      .integer("layers", 1, "layers on either side", 1, 64)
      .integer("heads", 8, "heads of multi-head attention", 1, 1024)
      .integer("kq", 64, "width of projected queries and keys (recurrent model); 0: the query's", 0, kWidest)
      .choice("normaliser", "softmax", {"softmax", "sparsemax", "entmax15", "hard"}, "how scores become weights")
      .number("dropout", 0.3, "part of the activations dropped while training", 0, 0.95);
}

std::unique_ptr<TranslationModel> make_translation_model(const Settings& s, int64_t source_vocabulary,
                                                         int64_t target_vocabulary) {
  Rng rng = Rng(static_cast<uint64_t>(s.get_integer("seed"))).fork(kWeightStream);
  Seq2SeqConfig config = recurrent_config(s);
  config.source_vocabulary = source_vocabulary;
  config.target_vocabulary = target_vocabulary;
  return std::make_unique<RecurrentTranslation>(config, rng);
}

}  // namespace qkv
