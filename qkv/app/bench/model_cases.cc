// Training steps and decoding as bench cases, on the project's own models.
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "qkv/app/bench/cases.h"
#include "qkv/app/bench/model_sizes.h"
#include "qkv/base/error.h"
#include "qkv/models/gpt.h"
#include "qkv/models/seq2seq.h"
#include "qkv/models/transformer.h"
#include "qkv/models/vit.h"
#include "qkv/optim/optimizer.h"

namespace qkv::bench {
namespace {

using Sizes = nlohmann::json;

int64_t size(const Sizes& s, const char* name) { return s.at(name).get<int64_t>(); }

}  // namespace

double layer_flops(double width, double inner, double keys) {
  return 2 * (4 * width * width + 2 * width * inner) + 4 * keys * width;
}

GptConfig gpt_config(const nlohmann::json& s) {
  GptConfig c;
  c.vocabulary = size(s, "vocabulary");
  c.block = size(s, "block");
  c.width = size(s, "width");
  c.heads = size(s, "heads");
  c.layers = size(s, "layers");
  c.dropout = s.at("dropout");
  return c;
}

TransformerConfig transformer_config(const nlohmann::json& s) {
  TransformerConfig c;
  c.source_vocabulary = c.target_vocabulary = size(s, "vocabulary");
  c.width = size(s, "width");
  c.heads = size(s, "heads");
  c.inner = size(s, "inner");
  c.encoder_layers = c.decoder_layers = size(s, "layers");
  c.pre_norm = false;
  c.positions = Positions::learned;
  c.longest = size(s, "block");
  c.tying = Tying::none;
  c.dropout = s.at("dropout");
  return c;
}

Work training_work(Training training) {
  Work work;
  for (const NamedParameter& p : training.parameters) work.parameters += p.value.numel();
  work.items = training.tokens;
  work.unit = "tokens";
  work.flops = 3 * training.flops;  // each product of the forward pass has two in the backward pass
  auto optimizer = std::make_shared<AdamW>(training.parameters);
  work.run = [optimizer, step = uint64_t{0}, losses = std::move(training.losses)]() mutable {
    for (const auto& loss : losses) {
      Context ctx(1, step++);
      optimizer->zero_grad();
      loss(ctx).backward();
      optimizer->step(1e-4);
    }
  };
  return work;
}

namespace {

std::vector<int64_t> random_ids(int64_t n, int64_t vocabulary, Rng& rng) {
  std::vector<int64_t> ids(static_cast<size_t>(n));
  for (int64_t& id : ids) id = rng.below(vocabulary);
  return ids;
}

TokenBatch random_batch(int64_t batch, int64_t length, int64_t vocabulary, Rng& rng) {
  return {random_ids(batch * length, vocabulary, rng), Ragged::equal(batch, length)};
}

Training gpt_training(const Sizes& s, Rng& rng) {
  const int64_t B = size(s, "batch"), L = size(s, "length");
  const GptConfig c = gpt_config(s);
  auto model = std::make_shared<Gpt>(c, rng);
  Training t{.parameters = parameters(*model)};
  t.tokens = static_cast<double>(B * L);
  const auto C = static_cast<double>(c.width);
  t.flops = t.tokens * (static_cast<double>(c.layers) * layer_flops(C, 4 * C, static_cast<double>(L + 1) / 2) +
                        2 * C * static_cast<double>(c.vocabulary));
  t.losses.emplace_back([model, targets = random_ids(B * L, c.vocabulary, rng),
                         inputs = random_batch(B, L, c.vocabulary, rng)](Context& ctx) {
    return cross_entropy(model->forward(inputs, ctx), targets);
  });
  return t;
}

Training recurrent_training(const Seq2SeqConfig& c, const Sizes& s, Rng& rng) {
  const int64_t B = size(s, "batch"), L = size(s, "length");
  auto model = std::make_shared<Seq2Seq>(c, rng);
  Training t{.parameters = parameters(*model)};
  t.tokens = static_cast<double>(B * L);
  for (const NamedParameter& p : t.parameters) {  // every weight meets every token, the bridge every sentence
    if (p.value.rank() < 2 || p.name.find("embedding") != std::string::npos) continue;
    const double rows = p.name.find("bridge") != std::string::npos ? static_cast<double>(B) : t.tokens;
    t.flops += 2 * rows * static_cast<double>(p.value.numel());
  }
  const double memory = static_cast<double>(c.hidden) * (c.bidirectional ? 2 : 1);
  t.flops += 2 * t.tokens * static_cast<double>(L) * (static_cast<double>(c.hidden) + memory);
  t.losses.emplace_back([model, targets = random_ids(B * L, c.target_vocabulary, rng),
                         source = random_batch(B, L, c.source_vocabulary, rng),
                         inputs = random_batch(B, L, c.target_vocabulary, rng)](Context& ctx) {
    return cross_entropy(model->forward(source, inputs, ctx), targets);
  });
  return t;
}

Training lstm_training(const Sizes& s, Rng& rng) {
  Seq2SeqConfig c;
  c.source_vocabulary = c.target_vocabulary = size(s, "vocabulary");
  c.embedding = size(s, "embedding");
  c.hidden = size(s, "hidden");
  return recurrent_training(c, s, rng);
}

Training gru_training(const Sizes& s, Rng& rng) {
  Seq2SeqConfig c;
  c.source_vocabulary = size(s, "source");
  c.target_vocabulary = size(s, "target");
  c.embedding = size(s, "embedding");
  c.hidden = size(s, "hidden");
  c.cell = CellKind::gru;
  c.bidirectional = true;
  c.attention = "general";
  c.attention_config.scale = 1 / std::sqrt(static_cast<double>(c.hidden));
  c.placement = Placement::before;
  return recurrent_training(c, s, rng);
}

Training transformer_training(const Sizes& s, Rng& rng) {
  const int64_t B = size(s, "batch"), L = size(s, "length"), V = size(s, "vocabulary");
  const TransformerConfig c = transformer_config(s);
  auto model = std::make_shared<Transformer>(c, rng);
  Training t{.parameters = parameters(*model)};
  t.tokens = static_cast<double>(B * L);
  const auto C = static_cast<double>(c.width), inner = static_cast<double>(c.inner), keys = static_cast<double>(L);
  const double encoder = layer_flops(C, inner, keys), decoder = layer_flops(C, inner, (keys + 1) / 2);
  const double cross = 8 * C * C + 4 * keys * C;
  t.flops =
      t.tokens * (static_cast<double>(c.encoder_layers) * (encoder + decoder + cross) + 2 * C * static_cast<double>(V));
  t.losses.emplace_back([model, targets = random_ids(B * L, V, rng), source = random_batch(B, L, V, rng),
                         inputs = random_batch(B, L, V, rng)](Context& ctx) {
    return cross_entropy(model->forward(source, inputs, ctx), targets);
  });
  return t;
}

Training vit_training(const Sizes& s, Rng& rng) {
  VitConfig c;
  c.patch = size(s, "patch");
  c.width = size(s, "width");
  c.heads = size(s, "heads");
  c.layers = size(s, "layers");
  c.classes = size(s, "classes");
  const int64_t B = size(s, "batch");
  auto model = std::make_shared<Vit>(c, rng);
  Training t{.parameters = parameters(*model)};
  t.tokens = static_cast<double>(B * model->tokens());
  const auto C = static_cast<double>(c.width), keys = static_cast<double>(model->tokens());
  // The last layer needs the keys and values of every token, and the rest for the class token alone.
  const double keys_and_values = 4 * C * C, last = layer_flops(C, 4 * C, keys) - keys_and_values;
  t.flops = t.tokens * (static_cast<double>(c.layers - 1) * layer_flops(C, 4 * C, keys) + keys_and_values +
                        2 * C * static_cast<double>(c.patch * c.patch)) +
            static_cast<double>(B) * last;
  t.losses.emplace_back([model, targets = random_ids(B, c.classes, rng),
                         images = Tensor::randn({B, c.height, c.image_width}, rng)](Context& ctx) {
    return cross_entropy(model->forward(images, ctx), targets);
  });
  return t;
}

// Decoding reads every weight but the embeddings once per token.
void count_decoding(const std::vector<NamedParameter>& parameters, int64_t steps, Work& work) {
  double read = 0;
  for (const NamedParameter& p : parameters) {
    work.parameters += p.value.numel();
    const bool used = p.value.rank() == 2 && p.name.find("embed") == std::string::npos &&
                      p.name.find("source") == std::string::npos && p.name.find("target") == std::string::npos &&
                      p.name.find("encoder") == std::string::npos && p.name.find("key_value") == std::string::npos;
    if (used) read += static_cast<double>(p.value.numel());
  }
  work.items = static_cast<double>(steps);
  work.unit = "tokens";
  work.flops = 2 * read * work.items;
  work.weights = 4 * read;
}

constexpr int64_t kNoEnd = -1;  // no token ends the text before its length

}  // namespace

Work build_training(const nlohmann::json& s) {
  Rng rng(1);
  const std::string model = s.at("model");
  if (model == "gpt") return training_work(gpt_training(s, rng));
  if (model == "lstm") return training_work(lstm_training(s, rng));
  if (model == "gru") return training_work(gru_training(s, rng));
  if (model == "transformer") return training_work(transformer_training(s, rng));
  if (model == "vit") return training_work(vit_training(s, rng));
  throw ConfigError("[bench] unknown model '" + model + "'");
}

Work build_decoding(const nlohmann::json& s) {
  Rng rng(1);
  const int64_t L = size(s, "length"), V = size(s, "vocabulary"), steps = size(s, "steps");
  Work work;
  SearchOptions options;
  options.end = kNoEnd;
  options.max_lengths = {steps};
  if (s.at("model") == "gpt") {
    auto model = std::make_shared<Gpt>(gpt_config(s), rng);
    count_decoding(parameters(*model), steps, work);
    const std::vector<int64_t> prompt = random_ids(L, V, rng);
    options.first = {prompt.back()};
    work.run = [model, prompt, options] { search(*model->start({&prompt, 1}), options); };
  } else {
    auto model = std::make_shared<Transformer>(transformer_config(s), rng);
    count_decoding(parameters(*model), steps, work);
    work.run = [model, source = random_batch(1, L, V, rng), options] { search(*model->start(source), options); };
  }
  return work;
}

}  // namespace qkv::bench
