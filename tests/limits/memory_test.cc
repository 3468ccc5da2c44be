// When memory ends: the Nth allocation of a computation fails, for every N, and the same computation afterwards, on the
// same threads, gives the same bits.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <limits>
#include <new>
#include <thread>

#include "qkv/lab/experiment.h"
#include "qkv/qkv.h"

namespace {

enum class Failing { none, once, from_then_on };
std::atomic<Failing> failing{Failing::none};
std::atomic<int64_t> left{0};  // allocations that still succeed

bool fails() {
  const Failing how = failing.load(std::memory_order_relaxed);
  if (how == Failing::none) return false;
  const int64_t before = left.fetch_sub(1);
  return how == Failing::once ? before == 0 : before <= 0;
}

void* checked(void* p) {
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

void* operator new(size_t n) { return checked(fails() ? nullptr : std::malloc(n == 0 ? 1 : n)); }
void* operator new(size_t n, std::align_val_t align) {
  const auto a = static_cast<size_t>(align);
  return checked(fails() ? nullptr : std::aligned_alloc(a, (n + a - 1) / a * a));
}
void* operator new(size_t n, const std::nothrow_t&) noexcept {
  try {
    return operator new(n);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new(size_t n, std::align_val_t align, const std::nothrow_t&) noexcept {
  try {
    return operator new(n, align);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
__attribute__((noinline)) void operator delete(void* p) noexcept { std::free(p); }
__attribute__((noinline)) void operator delete(void* p, size_t) noexcept { std::free(p); }
__attribute__((noinline)) void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
__attribute__((noinline)) void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }

namespace qkv {
namespace {

using Bits = std::vector<float>;

void append(Bits& bits, const Tensor& t) {
  const Tensor whole = contiguous(t);
  bits.insert(bits.end(), whole.f32(), whole.f32() + whole.numel());
}

// One run in which the allocation after `n` others fails. Whether there were that many.
bool failed_run(Failing how, int64_t n, const std::function<Bits()>& compute, const Bits& want) {
  Bits got;
  bool threw = false, as_promised = true;
  left = n;
  failing = how;
  try {
    got = compute();
  } catch (const std::bad_alloc&) {
    threw = true;
  } catch (const Error&) {  // the threads could not be started
    threw = true;
  } catch (...) {
    as_promised = false;
  }
  failing = Failing::none;
  EXPECT_TRUE(as_promised) << "something else was thrown for want of allocation " << n;
  EXPECT_TRUE(threw || got == want) << "other bits after allocation " << n << " failed";
  return left < 0;
}

// Fails every `step`th allocation, first once, then with all that follow. Every run starts with new threads and an
// empty cache, so that scratch memory is asked for again.
void expect_survives(const std::function<Bits()>& compute, int64_t step = 1) {
  const Bits want = compute();
  ASSERT_FALSE(want.empty());
  for (const Failing how : {Failing::once, Failing::from_then_on}) {
    bool more = true;
    int64_t n = 0;
    for (; more && n < 100000 && !testing::Test::HasFailure(); n += step) {
      std::thread([&] {
        set_num_threads(1);
        release_cached_memory();
        more = failed_run(how, n, compute, want);
        EXPECT_EQ(compute(), want) << "after allocation " << n << " had failed";
      }).join();
    }
    EXPECT_GT(n, 10);
    EXPECT_FALSE(more);
  }
}

struct Sizes {
  int64_t B = 1, H = 2, Lq = 70, Lk = 70, D = 20;
};

// Forward, gradients and, on request, statistics and scores.
std::function<Bits()> attending(const Sizes& s, const ScoreRule& rule_in, bool maps = false) {
  return [=] {
    set_num_threads(3);
    Rng rng(1);
    const auto leaf = [&](const Shape& shape) {
      Tensor t = Tensor::randn(shape, rng);
      t.set_requires_grad(true);
      return t;
    };
    ScoreRule rule = rule_in;
    const Tensor q = leaf({s.B, s.H, s.Lq, s.D}), k = leaf({s.B, s.H, s.Lk, s.D}), v = leaf({s.B, s.H, s.Lk, s.D});
    if (rule.additive.defined()) rule.additive = leaf({s.D});
    Bits bits;
    const Tensor out = attention(q, k, v, rule);
    sum(out).backward();
    append(bits, out);
    for (const Tensor& t : {q, k, v}) append(bits, t.grad());
    if (maps) {
      append(bits, attention_statistics(q.detach(), k.detach(), rule).entropy);
      append(bits, attention_score_array(q.detach(), k.detach(), rule));
    }
    return bits;
  };
}

TEST(OutOfMemory, SoftmaxAttention) {
  expect_survives(attending({}, {}));
  expect_survives(attending({.Lq = 3, .Lk = 1200, .D = 16}, {.causal = true, .offset = 1197}), 3);
}

TEST(OutOfMemory, ChunksOfManyKeys) {
  const NoGrad no_grad;
  expect_survives([] {
    const NoGrad guard;
    set_num_threads(3);
    Rng rng(1);
    Bits bits;
    append(bits, attention(Tensor::randn({1, 1, 1, 8}, rng), Tensor::randn({1, 1, 5000, 8}, rng),
                           Tensor::randn({1, 1, 5000, 8}, rng)));
    return bits;
  });
}

TEST(OutOfMemory, OtherNormalisersAndScores) {
  for (const Normaliser n : {Normaliser::sparsemax, Normaliser::entmax15}) {
    expect_survives(attending({}, {.softcap = 3, .normaliser = n}, true), 5);
  }
  expect_survives(attending({.Lq = 30}, {.additive = Tensor::zeros({20})}), 5);
}

TEST(OutOfMemory, Products) {
  struct Product {
    int64_t M, K, N;
  };
  for (const auto& [M, K, N] : {Product{3, 300, 70}, {60, 40, 70}, {270, 20, 60}, {260, 8, 2050}}) {
    expect_survives([M = M, K = K, N = N] {
      set_num_threads(3);
      Rng rng(2);
      Tensor a = Tensor::randn({M, K}, rng), b = Tensor::randn({K, N}, rng), w = Tensor::randn({N, K}, rng);
      for (Tensor* t : {&a, &b, &w}) t->set_requires_grad(true);
      const Tensor out = matmul(a, b) + linear(a, w, {}, Act::gelu);
      sum(out).backward();
      Bits bits;
      for (const Tensor& t : {out, a.grad(), b.grad(), w.grad()}) append(bits, t);
      return bits;
    });
  }
}

TEST(OutOfMemory, TrainingStepOfAGpt) {
  expect_survives(
      [] {
        set_num_threads(3);
        Rng rng(3);
        Gpt model({.vocabulary = 11, .block = 8, .width = 16, .heads = 2, .layers = 1, .dropout = 0.1}, rng);
        AdamW optimizer(parameters(model));
        Context ctx(4, 1);
        const TokenBatch tokens(std::vector<std::vector<int64_t>>{{1, 2, 3, 4}, {5, 6}});
        const std::vector<int64_t> next{2, 3, 4, 5, 6, 7};
        cross_entropy(model.forward(tokens, ctx), next).backward();
        optimizer.step(1e-3, clip_factor(gradient_norm(optimizer.parameters()), 1));
        Bits bits;
        for (const NamedParameter& p : parameters(model)) append(bits, p.value.detach());
        return bits;
      },
      3);
}

TEST(OutOfMemory, TrainingStepOfATranslator) {
  expect_survives(
      [] {
        set_num_threads(3);
        Rng rng(5);
        Seq2SeqConfig config;
        config.source_vocabulary = config.target_vocabulary = 9;
        config.embedding = 8;
        config.hidden = 12;
        config.attention = "additive";
        config.placement = Placement::before;
        Seq2Seq model(config, rng);
        Context ctx;
        const TokenBatch source(std::vector<std::vector<int64_t>>{{1, 2, 3}, {4, 5}});
        const std::vector<int64_t> target{1, 2, 3, 4, 5};
        cross_entropy(model.forward(source, source, ctx), target).backward();
        Bits bits;
        for (const NamedParameter& p : parameters(model)) append(bits, p.value.grad());
        return bits;
      },
      3);
}

// How many allocations a computation makes.
int64_t allocations_of(const std::function<void()>& compute) {
  constexpr int64_t kMany = int64_t{1} << 40;
  left = kMany;
  failing = Failing::once;
  compute();
  failing = Failing::none;
  return kMany - left;
}

GptConfig writing_gpt(Positions positions) {
  GptConfig config{.vocabulary = 9, .block = 64, .width = 8, .heads = 2, .kv_heads = 1, .layers = 2};
  config.positions = positions;
  return config;
}

TEST(OutOfMemory, Writing) {
  expect_survives([] {
    set_num_threads(3);
    Rng rng(1);
    const Gpt model(writing_gpt(Positions::rotary), rng);
    const std::vector<std::vector<int64_t>> prompts{{1, 2, 3}, {4}};
    const auto steps = model.start(prompts);
    Bits bits;
    append(bits, steps->step(std::vector<int64_t>{3, 4}));
    steps->select(std::vector<int64_t>{0, 0, 1});
    append(bits, steps->step(std::vector<int64_t>{5, 6, 7}));
    return bits;
  });
}

// Only a new page of the cache asks for memory, and a thread that comes to its first task for what it works in.
TEST(Memory, ATokenAsksForNone) {
  for (const Positions positions :
       {Positions::none, Positions::sinusoidal, Positions::learned, Positions::rotary, Positions::alibi}) {
    for (const int threads : {1, 2}) {
      set_num_threads(threads);
      Rng rng(1);
      const Gpt model(writing_gpt(positions), rng);
      const std::vector<std::vector<int64_t>> prompts{{1}, {2}};
      const auto steps = model.start(prompts);
      const std::vector<int64_t> tokens{3, 4};
      steps->step(tokens);
      steps->step(tokens);
      const int64_t made = allocations_of([&] {
        for (int64_t i = 2; i < KvCache::kPage; ++i) steps->step(tokens);
      });
      EXPECT_LE(made, threads == 1 ? 0 : 4) << name_of(positions) << ", " << threads << " threads";
    }
  }
}

// A failure inside the making of a picture frees every part of it once.
TEST(OutOfMemory, Experiments) {
  constexpr int64_t kEvenly = 3, kLast = 400, kBetween = 47;  // pictures come last
  for (const lab::Experiment& e : lab::experiment_table()) {
    if (std::string_view(e.name) == "cost") continue;  // takes a stopwatch's time
    const int64_t all = allocations_of([&] { e.run(e.settings()); });
    std::vector<int64_t> which;
    for (int64_t i = 0; i < kEvenly; ++i) which.push_back(all * i / kEvenly);
    for (int64_t n = std::max<int64_t>(0, all - kLast); n < all; n += kBetween) which.push_back(n);
    for (const int64_t n : which) {
      left = n;
      failing = Failing::once;
      try {
        e.run(e.settings());
      } catch (const std::bad_alloc&) {
      }
      failing = Failing::none;
    }
  }
}

TEST(OutOfMemory, SizesBeyondMemoryAreRefused) {
  EXPECT_THROW(Tensor::empty({int64_t{1} << 40, int64_t{1} << 40}), ShapeError);
  EXPECT_THROW(Tensor::empty({0, int64_t{1} << 40, int64_t{1} << 40}), ShapeError);
  EXPECT_THROW(Storage(std::numeric_limits<size_t>::max() - 100), std::bad_alloc);
}

// A block that the cache keeps is given back when the system has no more.
TEST(OutOfMemory, TheCacheGivesBackBeforeAnAllocationFails) {
  { const Tensor t = Tensor::empty({1 << 20}); }
  ASSERT_GE(memory_use().cached, int64_t{4} << 20);
  left = 0;
  failing = Failing::once;
  { const Storage block(size_t{64} << 20); }
  failing = Failing::none;
  EXPECT_LT(left, 0);
  EXPECT_EQ(memory_use().cached, int64_t{64} << 20);
}

}  // namespace
}  // namespace qkv
