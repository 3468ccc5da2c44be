// Threads that cannot be started, that change while others compute, and that do not survive fork.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "io/temp_folder.h"
#include "qkv/qkv.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define QKV_THREAD_SANITIZER 1
#endif
#endif

namespace qkv {
namespace {

// No thread can be made while it lives: each would want a stack larger than the address space.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, size_t{1} << 47);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() { pthread_setattr_default_np(&before_); }

 private:
  pthread_attr_t before_;
};

int64_t sum_to(int64_t n) {
  std::atomic<int64_t> total{0};
  parallel_for(n, [&](int64_t i) { total += i + 1; });
  return total;
}

std::vector<float> product() {
  Rng rng(1);
  const Tensor out = matmul(Tensor::randn({300, 50}, rng), Tensor::randn({50, 60}, rng));
  return {out.f32(), out.f32() + out.numel()};
}

TEST(Threads, OneThatCannotBeMadeIsAnError) {
  set_num_threads(2);
  {
    const NoThreads none;
    const std::string message = testing::message_of<Error>([] { set_num_threads(4); });
    EXPECT_EQ(message.find("[threads] 4 threads wanted, the system gives 1"), 0u) << message;
    EXPECT_EQ(num_threads(), 2);
    EXPECT_EQ(sum_to(1000), 500500);
  }
  set_num_threads(4);
  EXPECT_EQ(num_threads(), 4);
  EXPECT_EQ(sum_to(1000), 500500);
}

TEST(Threads, TheirNumberMayChangeWhileOthersCompute) {
  set_num_threads(2);
  const std::vector<float> want = product();
  std::atomic<bool> stop{false};
  std::atomic<int64_t> runs{0}, wrong{0};
  std::vector<std::thread> computing;
  for (int i = 0; i < 2; ++i) {
    computing.emplace_back([&] {
      while (!stop) {
        wrong += product() != want;
        wrong += sum_to(100) != 5050;
        ++runs;
      }
    });
  }
  for (int i = 0; i < 60 || runs < 20; ++i) set_num_threads(1 + i % 4);
  stop = true;
  for (std::thread& t : computing) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, TheirNumberMayChangeInsideATask) {
  set_num_threads(2);
  std::atomic<int64_t> total{0};
  parallel_for(8, [&](int64_t i) {
    set_num_threads(2 + static_cast<int>(i % 3));
    total += i;
  });
  EXPECT_EQ(total, 28);
  EXPECT_EQ(sum_to(1000), 500500);
}

TEST(Threads, AChildOfForkComputesToo) {
#if defined(__SANITIZE_THREAD__) || defined(QKV_THREAD_SANITIZER)
  GTEST_SKIP() << "ThreadSanitizer allows no threads in a child";
#endif
  set_num_threads(3);
  const std::vector<float> want = product();
  for (const bool busy : {false, true}) {  // with another thread in the middle of a job
    std::atomic<bool> stop{!busy};
    std::thread other([&] {
      while (!stop) product();
    });
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // a hang ends the child, not the test
      const bool right = num_threads() == 3 && product() == want && sum_to(1000) == 500500;
      _exit(right ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    stop = true;
    other.join();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status << (busy ? ", busy" : "");
    EXPECT_EQ(product(), want);
  }
}

}  // namespace
}  // namespace qkv
