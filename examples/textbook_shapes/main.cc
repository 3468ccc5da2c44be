// The attention classes of textbooks and courses with qkv, one function each: docs/TEXTBOOK.md shows their lines.
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "qkv/nn/padded.h"

namespace {

using namespace qkv;
using namespace qkv::padded;

void check(bool good, const std::string& what) {
  if (!good) throw std::runtime_error("not so: " + what);
}

void check_shape(const Tensor& t, const std::string& wanted) {
  check(t.shape().str() == wanted, "the shape is " + t.shape().str() + ", not " + wanted);
  std::printf("  %s\n", wanted.c_str());
}

void show_masked_softmax() {
  Rng rng(1);
  const Tensor x = Tensor::randn({2, 2, 4}, rng);
  const std::vector<int64_t> a_sequence{2, 3}, a_query{1, 3, 2, 4};  // [2, 3] and [[1, 3], [2, 4]]
  const Tensor w = masked_softmax(x, a_sequence), each = masked_softmax(x, a_query);
  check_shape(w, "[2,2,4]");
  check_shape(each, "[2,2,4]");
  check(w.at({0, 1, 2}) == 0 && w.at({0, 1, 3}) == 0, "nothing past length 2");
  check(w.at({0, 1, 1}) > 0, "something before it");
  check(each.at({0, 0, 0}) == 1, "a query that sees one key gives it everything");
  for (const double total : sum(w, 2).to_doubles()) check(std::abs(total - 1) < 1e-6, "rows sum to 1");
}

void show_dot_product_attention() {
  Rng rng(1);
  Context ctx;  // Context(seed, step) trains: dropout acts
  const Tensor q = Tensor::randn({2, 1, 2}, rng), k = Tensor::randn({2, 10, 2}, rng);
  const Tensor v = Tensor::randn({2, 10, 4}, rng);
  const std::vector<int64_t> lens{2, 6};
  const DotProductAttention attention(0.5);  // dropout of the weights
  check_shape(attention.forward(q, k, v, lens, ctx), "[2,1,4]");
  check_shape(attention.weights(q, k, lens), "[2,1,10]");
  const Tensor z = attention_score_array(q, k, {}, ScoreStage::raw);  // q kᵀ/√d, [2, 1, 1, 10]
  const double plain = q.at({0, 0, 0}) * k.at({0, 3, 0}) + q.at({0, 0, 1}) * k.at({0, 3, 1});
  check(std::abs(z.at({0, 0, 0, 3}) - plain / std::sqrt(2.0)) < 1e-6, "the scores are divided by √d");
}

void show_additive_attention() {
  Rng rng(1);
  Context ctx;
  const Tensor q = Tensor::randn({2, 1, 20}, rng), k = Tensor::randn({2, 10, 2}, rng);
  const Tensor v = Tensor::randn({2, 10, 4}, rng);
  const std::vector<int64_t> lens{2, 6};
  const AdditiveAttention attention(20, 2, 8, rng, 0.1);  // widths of queries, keys and the hidden layer; dropout
  check_shape(attention.forward(q, k, v, lens, ctx), "[2,1,4]");
  check_shape(attention.weights(q, k, lens), "[2,1,10]");
}

void show_attention_decoder() {
  Rng rng(1);
  Context ctx;
  const std::vector<int64_t> source(4 * 7, 0), target(4 * 7, 0);  // 4 sequences of 7 tokens
  const Embedding words(10, 8, rng);
  const Gru encoder(8, 16, rng, 2);  // two layers
  const RecurrentOutput encoded = encoder.forward(words.forward(source), Ragged::equal(4, 7), ctx);
  Seq2SeqAttentionDecoder::State state;
  state.encoder_outputs = reshape(encoded.out, {4, 7, 16});
  state.hidden = concat({reshape(encoded.forward[0].h, {1, 4, 16}), reshape(encoded.forward[1].h, {1, 4, 16})}, 0);

  const Seq2SeqAttentionDecoder decoder({.vocabulary = 10, .embedding = 8, .hidden = 16, .layers = 2}, rng);
  const Seq2SeqAttentionDecoder::Decoded out = decoder.forward(target, state, ctx);
  check_shape(out.logits, "[4,7,10]");
  check_shape(out.state.encoder_outputs, "[4,7,16]");
  check_shape(out.state.hidden, "[2,4,16]");
  check_shape(out.weights, "[4,7,7]");

  const std::vector<int64_t> next(4, 0);  // one more token for each sequence, from where it stopped
  check_shape(decoder.forward(next, out.state, ctx).logits, "[4,1,10]");
}

void show_multi_head_attention() {
  Rng rng(1);
  Context ctx;
  const MultiHeadAttention attention(100, 5, rng, 0.5);
  const Tensor x = Tensor::randn({2, 4, 100}, rng), y = Tensor::randn({2, 6, 100}, rng);
  const std::vector<int64_t> lens{3, 2};
  check_shape(attention.forward(x, y, y, lens, ctx), "[2,4,100]");
  check_shape(attention.weights(x, y, lens), "[2,5,4,6]");
  const Tensor heads = transpose_qkv(x, 5);
  check_shape(heads, "[10,4,20]");
  check(heads.at({5 + 2, 3, 7}) == x.at({1, 3, 2 * 20 + 7}), "head 2 of sequence 1 is columns 40 to 59 of it");
  check(transpose_output(heads, 5).to_vector() == x.to_vector(), "transpose_output is the inverse");
}

void show_positional_encoding() {
  Context ctx;
  const PositionalEncoding positions(32, 60, 0);  // width, longest, dropout
  const Tensor x = Tensor::zeros({1, 60, 32});
  const Tensor& p = positions.table();
  check_shape(positions.forward(x, ctx), "[1,60,32]");
  check(p.at({0, 6}) == 0 && p.at({0, 7}) == 1, "position 0 is 0, 1, 0, 1, …");
  check(std::abs(p.at({9, 6}) - std::sin(9 / std::pow(10000.0, 6.0 / 32))) < 1e-6, "even columns are sines");
  check(std::abs(p.at({9, 7}) - std::cos(9 / std::pow(10000.0, 6.0 / 32))) < 1e-6, "odd ones cosines");
  const Tensor row = slice(p, 0, 17, 18);
  check(std::abs(sum(row * row).item() - 16) < 1e-4, "each of the 16 pairs has length 1");
}

void show_dot_prod_attention() {
  Rng rng(1);
  const Tensor s = Tensor::randn({3, 5, 16}, rng), h = Tensor::randn({3, 7, 16}, rng);  // decoder and encoder states
  const Linear combine(32, 16, rng);                                                    // W_c
  const ScoreRule unscaled{.scale = 1.0, .key_lens = {7, 4, 6}};
  const Tensor c = attention(s, h, h, unscaled);                               // Σ a_ts h_s, [3, 5, 16]
  const Tensor out = combine.forward(concat({c, s}, 2), Act::tanh);            // tanh(W_c [c ; s])
  const Tensor a = reshape(attention_score_array(s, h, unscaled), {3, 5, 7});  // the map
  check_shape(out, "[3,5,16]");
  check_shape(a, "[3,5,7]");
}

void show_single_query_attention() {
  Rng rng(1);
  Context ctx;
  const int64_t B = 3, L = 7, dec = 20, enc = 2 * 12, kq = 64;  // the encoder has two directions
  const Tensor s = Tensor::randn({B, dec}, rng), h = Tensor::randn({B, L, enc}, rng);
  const Linear to_query(dec, kq, rng), to_key(enc, kq, rng), to_value(enc, enc, rng);
  const Tensor q = reshape(to_query.forward(s), {B, 1, kq});
  const std::vector<int64_t> lens{7, 4, 6};
  const DotProductAttention attention;
  const Tensor context = reshape(attention.forward(q, to_key.forward(h), to_value.forward(h), lens, ctx), {B, enc});
  const Tensor weights = reshape(attention.weights(q, to_key.forward(h), lens), {B, L});
  check_shape(context, "[3,24]");
  check_shape(weights, "[3,7]");
}

}  // namespace

int main() {
  const std::pair<const char*, void (*)()> all[] = {
      {"masked_softmax", show_masked_softmax},
      {"DotProductAttention", show_dot_product_attention},
      {"AdditiveAttention", show_additive_attention},
      {"Seq2SeqAttentionDecoder", show_attention_decoder},
      {"MultiHeadAttention", show_multi_head_attention},
      {"PositionalEncoding", show_positional_encoding},
      {"DotProdAttention", show_dot_prod_attention},
      {"SingleQueryScaledDotProductAttention", show_single_query_attention}};
  try {
    for (const auto& [name, run] : all) {
      std::printf("%s\n", name);
      run();
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
