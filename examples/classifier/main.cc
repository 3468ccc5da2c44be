// A Transformer classifier trained with AdamW on data it makes: the first token says which letter is asked for.
#include <qkv/qkv.h>
#include <algorithm>
#include <cstdio>

using namespace qkv;

constexpr int64_t kLetters = 8, kLength = 10, kWidth = 32, kBatch = 64, kSteps = 300;

struct Example {
  TokenBatch tokens;
  std::vector<int64_t> classes;  // [B]
};

Example make_batch(Rng& rng) {
  std::vector<int64_t> ids, classes;
  for (int64_t b = 0; b < kBatch; ++b) {
    const int64_t asked = 1 + rng.below(kLength - 1);
    ids.push_back(kLetters + asked);
    for (int64_t i = 1; i < kLength; ++i) ids.push_back(rng.below(kLetters));
    classes.push_back(ids[static_cast<size_t>(b * kLength + asked)]);
  }
  return {TokenBatch(ids, Ragged::equal(kBatch, kLength)), classes};
}

struct Classifier {
  EmbeddedTokens embed;
  TransformerStack stack;
  Linear head;

  explicit Classifier(Rng& rng)
      : embed({.vocabulary = kLetters + kLength, .width = kWidth, .positions = Positions::sinusoidal, .stddev = 1},
              rng),
        stack({.width = kWidth, .heads = 4, .inner = 2 * kWidth, .layers = 2, .dropout = 0.05}, rng),
        head(kWidth, kLetters, rng) {}

  void visit(Visitor& see) {
    see("embed", embed);
    see("stack", stack);
    see("head", head);
  }

  Tensor forward(const TokenBatch& tokens, Context& ctx) const {
    const Tensor x = embed.forward(tokens.ids, tokens.batch.positions(), ctx);         // [B·L, C]
    const Tensor h = stack.forward(x, tokens.batch, "self", ctx);                      // [B·L, C]
    return head.forward(slice(reshape(h, {kBatch, kLength * kWidth}), 1, 0, kWidth));  // read at the first token
  }
};

int main() {
  Rng rng(1), data(2);
  Classifier model(rng);
  AdamW optimizer(parameters(model), {.weight_decay = 0.01});
  const Schedule schedule{.kind = ScheduleKind::cosine, .peak = 5e-3, .warmup = 20, .total = kSteps};
  for (int64_t step = 0; step < kSteps; ++step) {
    const Example batch = make_batch(data);
    Context ctx(/*seed=*/1, static_cast<uint64_t>(step));  // training: dropout is on
    const Tensor loss = cross_entropy(model.forward(batch.tokens, ctx), batch.classes);
    loss.backward();
    optimizer.step(learning_rate(schedule, step), clip_factor(gradient_norm(optimizer.parameters()), 1.0));
    optimizer.zero_grad();
    if (step % 100 == 0) std::printf("step %d: loss %.3f\n", static_cast<int>(step), loss.item());
  }

  NoGrad guard;
  Context use;  // no dropout
  const Example test = make_batch(data);
  const std::vector<float> logits = model.forward(test.tokens, use).to_vector();
  int64_t right = 0;
  for (int64_t b = 0; b < kBatch; ++b) {
    const float* row = logits.data() + b * kLetters;
    right += std::max_element(row, row + kLetters) - row == test.classes[static_cast<size_t>(b)];
  }
  std::printf("%d of %d right\n", static_cast<int>(right), static_cast<int>(kBatch));
  return right > 60 ? 0 : 1;
}
