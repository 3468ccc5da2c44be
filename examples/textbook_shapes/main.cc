// The shapes that readers of attention textbooks check, one line each.
#include <cstdio>

#include "qkv/models/seq2seq.h"
#include "qkv/nn/padded.h"

namespace {

void show(const char* what, const qkv::Tensor& t) { std::printf("%-26s %s\n", what, t.shape().str().c_str()); }

}  // namespace

int main() {
  using qkv::Tensor;
  qkv::Rng rng(1);
  qkv::Context ctx;

  const std::vector<int64_t> two{2, 3}, each{1, 3, 2, 4}, lens{2, 6}, heads_lens{3, 2};
  show("masked_softmax", qkv::masked_softmax(Tensor::randn({2, 2, 4}, rng), two));
  show("masked_softmax, by query", qkv::masked_softmax(Tensor::randn({2, 2, 4}, rng), each));

  const Tensor q = Tensor::randn({2, 1, 2}, rng), k = Tensor::randn({2, 10, 2}, rng),
               v = Tensor::randn({2, 10, 4}, rng);
  show("dot_product_attention", qkv::padded::dot_product_attention(q, k, v, lens));

  const qkv::padded::AdditiveAttention additive(20, 2, 8, rng);
  show("AdditiveAttention", additive.forward(Tensor::randn({2, 1, 20}, rng), k, v, lens));

  const qkv::padded::MultiHeadAttention heads(100, 5, rng);
  const Tensor x = Tensor::randn({2, 4, 100}, rng), y = Tensor::randn({2, 6, 100}, rng);
  show("MultiHeadAttention", heads.forward(x, y, y, heads_lens, ctx));
  show("transpose_qkv", qkv::padded::transpose_qkv(x, 5));
  show("transpose_output", qkv::padded::transpose_output(qkv::padded::transpose_qkv(x, 5), 5));

  const qkv::padded::PositionalEncoding positions(32, 60);
  show("PositionalEncoding", positions.forward(Tensor::zeros({1, 60, 32}), ctx));

  qkv::Seq2SeqConfig config;  // a GRU decoder that attends with its state before every step
  config.source_vocabulary = config.target_vocabulary = 10;
  config.embedding = 8;
  config.hidden = 16;
  config.layers = 2;
  config.cell = qkv::CellKind::gru;
  config.attention = "additive";
  config.placement = qkv::Placement::before;
  const qkv::Seq2Seq model(config, rng);
  const qkv::TokenBatch tokens(std::vector<int64_t>(4 * 7, 0), qkv::Ragged::equal(4, 7));
  const qkv::Seq2Seq::Memory memory = model.encode(tokens, ctx);
  show("attention decoder", qkv::reshape(model.decode(memory, tokens, ctx), {4, 7, -1}));
  show("  encoder outputs", qkv::reshape(memory.states, {4, 7, -1}));
  show("  hidden, of each layer", memory.initial[0].h);
}
