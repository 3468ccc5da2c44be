// What several threads do at once, for ThreadSanitizer to watch: the pool, attention, trainings; the results are one
// thread's.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "qkv/base/parallel.h"
#include "qkv/data/tokenizer.h"
#include "qkv/ops/attention.h"
#include "qkv/ops/ops.h"
#include "qkv/train/session.h"
#include "qkv/train/trainer.h"
#include "support/settings.h"

namespace qkv {
namespace {

constexpr int kThreads = 3;

/// Runs fn(0), fn(1), … each on a thread of its own.
void together(const std::function<void(int)>& fn) {
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(fn, i);
  for (std::thread& t : threads) t.join();
}

/// As many threads as a test asks for, on any machine.
class Threads : public ::testing::Test {
 protected:
  void SetUp() override { set_num_threads(4); }
  void TearDown() override { set_num_threads(before_); }
  int before_ = num_threads();
};

TEST_F(Threads, ThePoolServesAllWhoCall) {
  together([](int) {
    for (int round = 0; round < 50; ++round) {
      std::vector<int> seen(100, 0);
      parallel_for(100, [&](int64_t i) { ++seen[static_cast<size_t>(i)]; });
      for (const int n : seen) EXPECT_EQ(n, 1);
    }
  });
}

// Plain numbers: a phase that began before the one before it had ended would be a race.
TEST_F(Threads, APhaseSeesWhatTheOneBeforeWrote) {
  together([](int) {
    const std::vector<int64_t> tasks(20, 8);
    for (int round = 0; round < 50; ++round) {
      std::vector<int64_t> now(8, 1), before(8, 1);
      parallel_phases(tasks, [&](size_t phase, int64_t i) {
        const std::vector<int64_t>& from = phase % 2 == 0 ? before : now;
        (phase % 2 == 0 ? now : before)[static_cast<size_t>(i)] = from[0] + from[static_cast<size_t>(7 - i)];
      });
      EXPECT_EQ(before, std::vector<int64_t>(8, int64_t{1} << 20));
    }
  });
}

TEST_F(Threads, TheirNumberMayChangeMeanwhile) {
  std::atomic<bool> stop{false};
  std::thread changer([&] {
    for (int n = 1; !stop; n = n % 5 + 1) {
      set_num_threads(n);
      std::this_thread::yield();
    }
  });
  together([](int) {
    for (int round = 0; round < 100; ++round) {
      std::atomic<int64_t> sum{0};
      parallel_for(50, [&](int64_t i) { sum += i; });
      EXPECT_EQ(sum, 49 * 50 / 2);
    }
  });
  stop = true;
  changer.join();
}

std::vector<double> attention_gradients() {
  Rng rng(3);
  Tensor q = Tensor::randn({2, 2, 40, 8}, rng), k = Tensor::randn({2, 2, 70, 8}, rng);
  Tensor v = Tensor::randn({2, 2, 70, 8}, rng);
  for (Tensor* t : {&q, &k, &v}) t->set_requires_grad(true);
  const Tensor out = attention(q, k, v);
  mean(out * out).backward();
  std::vector<double> all = out.to_doubles();
  for (const Tensor& t : {q, k, v}) {
    const std::vector<double> gradient = t.grad().to_doubles();
    all.insert(all.end(), gradient.begin(), gradient.end());
  }
  return all;
}

TEST_F(Threads, AttentionAtOnceIsAttentionAlone) {
  const std::vector<double> alone = attention_gradients();
  together([&](int) {
    for (int round = 0; round < 3; ++round) EXPECT_EQ(attention_gradients(), alone);
  });
}

double trained_loss() {
  const Settings settings = testing::changed(find_task("reverse").settings(), {{"train-size", "64"},
                                                                               {"validation-size", "16"},
                                                                               {"max-length", "6"},
                                                                               {"hidden", "16"},
                                                                               {"embedding", "8"},
                                                                               {"batch", "32"},
                                                                               {"attention", "multi-head"},
                                                                               {"epochs", "1"}});
  const auto task = find_task("reverse").make(settings, "");
  return Trainer(*task, trainer_options(settings)).run().loss;
}

TEST_F(Threads, TrainingsAtOnceAreTrainingsAlone) {
  const double alone = trained_loss();
  together([&](int) { EXPECT_EQ(trained_loss(), alone); });
}

TEST_F(Threads, LinesAreEncodedSideBySide) {
  const std::vector<std::string> lines(300, "zwei Hunde laufen, ein Hund nicht");
  const auto tokenizer = train_tokenizer(lines, {.kind = "word"});
  const RaggedIds alone = encode_lines(*tokenizer, lines, {});
  together([&](int) { EXPECT_EQ(encode_lines(*tokenizer, lines, {}).ids, alone.ids); });
}

}  // namespace
}  // namespace qkv
