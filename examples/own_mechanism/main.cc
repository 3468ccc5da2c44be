// Strings reversed by an LSTM with a custom attention mechanism: the model takes the mechanism as a factory.
#include <cstdio>

#include "gaussian_attention.h"

namespace {

constexpr int64_t kLetters = 8, kBegin = kLetters, kBatch = 32, kSteps = 400;

struct Strings {
  qkv::TokenBatch source, inputs;  // the string; its reverse, shifted right after the begin token
  std::vector<int64_t> targets;    // the reverse
};

Strings make_strings(qkv::Rng& rng) {
  std::vector<std::vector<int64_t>> source(kBatch), inputs(kBatch);
  Strings made;
  for (size_t b = 0; b < kBatch; ++b) {
    const int64_t length = 3 + rng.below(6);
    for (int64_t i = 0; i < length; ++i) source[b].push_back(rng.below(kLetters));
    inputs[b].push_back(kBegin);
    for (auto letter = source[b].rbegin(); letter != source[b].rend(); ++letter) {
      inputs[b].push_back(*letter);
      made.targets.push_back(*letter);
    }
    inputs[b].pop_back();
  }
  made.source = qkv::TokenBatch(source);
  made.inputs = qkv::TokenBatch(inputs);
  return made;
}

double final_loss(const qkv::Mechanism& mechanism) {
  qkv::Rng rng(1), data(2);
  qkv::Seq2SeqConfig config;
  config.source_vocabulary = config.target_vocabulary = kLetters + 1;
  config.embedding = 16;
  config.hidden = 32;
  config.attention = mechanism;
  qkv::Seq2Seq model(config, rng);
  qkv::AdamW optimizer(qkv::parameters(model));
  double loss_value = 0;
  for (int64_t step = 0; step < kSteps; ++step) {
    const Strings batch = make_strings(data);
    qkv::Context ctx(1, static_cast<uint64_t>(step));
    const qkv::Tensor loss = qkv::cross_entropy(model.forward(batch.source, batch.inputs, ctx), batch.targets);
    loss.backward();
    optimizer.step(5e-3, qkv::clip_factor(qkv::gradient_norm(optimizer.parameters()), 1.0));
    optimizer.zero_grad();
    loss_value = loss.item();
  }
  return loss_value;
}

}  // namespace

int main() {
  const auto gaussian = [](const qkv::AttentionConfig& config, qkv::Rng& rng) {
    return std::make_unique<GaussianAttention>(config, rng);
  };
  const double without = final_loss("none"), with = final_loss(gaussian);
  std::printf("loss after %d steps: %.3f without attention, %.3f with it\n", static_cast<int>(kSteps), without, with);
  return with < 0.5 * without ? 0 : 1;
}
