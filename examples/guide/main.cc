// The pieces that docs/CPP.md quotes, each run and checked.
#include <qkv/qkv.h>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>

using namespace qkv;

void expect(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "guide: %s\n", what);
  std::exit(1);
}

void tensors() {
  Rng rng(1);
  const Tensor a = Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor b = Tensor::randn({3, 4}, rng);
  const Tensor c = matmul(a, b) / 2 + 1;  // [2, 4]
  std::cout << c << '\n';
  std::cout << transpose(a, 0, 1) << '\n';  // a view, no copy
  const float first = a.f32()[0];
  expect(first == 1 && c.shape() == Shape{2, 4}, "tensors");
}

void attend() {
  Rng rng(1);
  const Tensor q = Tensor::randn({2, 8, 16, 64}, rng);  // [B, H, Lq, D]
  const Tensor k = Tensor::randn({2, 2, 16, 64}, rng);  // [B, Hkv, Lk, D]: four query heads share one of these
  const Tensor v = Tensor::randn({2, 2, 16, 64}, rng);
  const Tensor all = attention(q, k, v);
  const Tensor causal = attention(q, k, v, {.causal = true, .window_left = 8});
  const Tensor padded = attention(q, k, v, {.key_lens = {16, 9}});  // sequence 1 has 9 keys
  const Tensor sparse = attention(q, k, v, {.normaliser = Normaliser::sparsemax});
  const Tensor map = attention_score_array(q, k, {.causal = true});  // [B, H, Lq, Lk], recomputed on request
  expect(all.shape() == causal.shape() && padded.shape() == sparse.shape(), "attention");
  expect(map.at({0, 0, 0, 1}) == 0, "causal weights");
}

void gradients() {
  Rng rng(1);
  Tensor w = Tensor::randn({4, 3}, rng).set_requires_grad(true);
  const Tensor x = Tensor::randn({5, 3}, rng);
  mean(tanh(linear(x, w))).backward();
  std::cout << w.grad() << '\n';

  const auto square = [](const std::vector<Tensor>& in) { return in[0] * in[0]; };
  const GradCheckResult result = grad_check(square, {x});
  expect(result.ok, result.message.c_str());
}

class TwoLayers {
 public:
  TwoLayers(int64_t in, int64_t hidden, int64_t out, Rng& rng) : first_(in, hidden, rng), second_(hidden, out, rng) {}

  Tensor forward(const Tensor& x) const { return second_.forward(first_.forward(x, Act::relu)); }
  void visit(Visitor& see) {
    see("first", first_);
    see("second", second_);
  }

 private:
  Linear first_, second_;
};

void modules() {
  Rng rng(1);
  TwoLayers model(3, 16, 2, rng);
  for (const NamedParameter& p : parameters(model)) std::cout << p.name << ' ' << p.value.shape().str() << '\n';
  expect(parameter_count(model) == 3 * 16 + 16 + 16 * 2 + 2, "parameters");

  const std::string path = (std::filesystem::temp_directory_path() / "qkv_guide.safetensors").string();
  save_parameters(path, parameters(model));
  TwoLayers other(3, 16, 2, rng);
  load_parameters(path, parameters(other));  // IoError when names, shapes or dtypes differ
  const Tensor x = Tensor::randn({1, 3}, rng);
  expect(model.forward(x).to_vector() == other.forward(x).to_vector(), "saved and loaded");
  std::filesystem::remove(path);
}

void looking() {
  Rng rng(1);
  GptConfig config;
  config.vocabulary = 10;
  config.width = 32;
  config.layers = 2;
  const Gpt model(config, rng);
  const TokenBatch tokens({3, 1, 4, 1, 5}, Ragged{5});  // one sequence of five tokens

  TraceList list;
  Context ctx;
  ctx.trace = &list;
  model.forward(tokens, ctx);
  for (const AttentionTrace& trace : list.traces()) {
    const Tensor weights = trace.scores({.b = 0, .h = 0, .row_begin = 0, .row_end = trace.Lq});  // [Lq, Lk] of head 0
    std::cout << trace.site << " layer " << trace.layer << '\n' << weights << '\n';
  }
  expect(list.traces().size() == 2, "traces");

  NoGrad guard;
  const std::vector<std::vector<int64_t>> prompts{{3, 1, 4}};
  const std::unique_ptr<StepDecoder> decoder = model.start(prompts);
  const auto best = search(*decoder, {.end = 0, .first = {4}, .beam = 3, .max_lengths = {8}});
  std::cout << best[0][0].tokens.size() << " tokens, log p " << best[0][0].log_probability << '\n';

  Rng dice(7);
  const std::unique_ptr<StepDecoder> writer = model.start(prompts);
  int64_t token = 4;
  for (int i = 0; i < 5; ++i) {
    token = sample_token(writer->step({&token, 1}).to_vector(), {.temperature = 0.8, .top_p = 0.9}, dice);
  }
  expect(token >= 0 && token < 10, "sampling");
}

void memory_of_others() {
  auto* numbers = new float[6]{1, 2, 3, 4, 5, 6};
  const Tensor t = Tensor::adopt(numbers, {2, 3}, [](void* p) { delete[] static_cast<float*>(p); });
  expect(sum(t).item() == 21, "adopted memory");
}

void threads_and_errors() {
  set_num_threads(2);  // the same bits with any number
  try {
    attention(Tensor::zeros({1, 2, 3}), Tensor::zeros({1, 2, 4}), Tensor::zeros({1, 2, 4}));
  } catch (const ShapeError& e) {
    std::cout << e.what() << '\n';  // [attention] head sizes differ: q=[1,2,3], k=[1,2,4], v=[1,2,4]; …
  }
}

int main() {
  tensors();
  attend();
  gradients();
  modules();
  looking();
  memory_of_others();
  threads_and_errors();
}
