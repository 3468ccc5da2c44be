// What a translation task needs from a model, whichever family it is of.
#pragma once

#include <memory>

#include "qkv/base/settings.h"
#include "qkv/models/decoding.h"
#include "qkv/models/tokens.h"
#include "qkv/nn/context.h"
#include "qkv/nn/module.h"

namespace qkv {

class TranslationModel {
 public:
  virtual ~TranslationModel() = default;
  virtual void visit(Visitor& see) = 0;
  /// Logits of every target position, [Tt, V]; `inputs` are the targets shifted right.
  virtual Tensor forward(const TokenBatch& source, const TokenBatch& inputs, Context& ctx) const = 0;
  /// `inputs` with some tokens replaced by the model's own guesses (teacher forcing below 1). Throws ConfigError where
  /// the family cannot.
  virtual TokenBatch mixed_inputs(const TokenBatch& source, const TokenBatch& inputs, double ratio, Rng& rng) const;
  virtual std::unique_ptr<StepDecoder> start(const TokenBatch& source) const = 0;
};

/// The options of both families.
void declare_translation_model(Settings& settings);
/// The family and sizes the settings name. Throws ConfigError.
std::unique_ptr<TranslationModel> make_translation_model(const Settings& settings, int64_t source_vocabulary,
                                                         int64_t target_vocabulary);

}  // namespace qkv
