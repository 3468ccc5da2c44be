// Sums, agreement and sharing among processes, which here are threads.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

#include "dist/threads_as_processes.h"
#include "qkv/base/processors.h"
#include "qkv/base/rng.h"
#include "qkv/dist/agreement.h"
#include "qkv/dist/host.h"
#include "qkv/dist/launch.h"
#include "qkv/dist/tree_sum.h"
#include "qkv/dist/watch.h"

namespace qkv {
namespace {

using testing::as_processes;

const std::vector<Shape> kShapes{{3, 5}, {7}, {1}, {2, 2, 2}};

std::vector<Tensor> like() {
  std::vector<Tensor> tensors;
  for (const Shape& shape : kShapes) tensors.push_back(Tensor::zeros(shape));
  return tensors;
}

/// Tensor 2 is in part 1 alone, tensor 3 in none.
std::vector<Tensor> part(int64_t p) {
  Rng rng(static_cast<uint64_t>(p + 1));
  std::vector<Tensor> tensors;
  for (size_t t = 0; t < kShapes.size(); ++t) {
    const Tensor random = Tensor::randn(kShapes[t], rng, t == 0 ? 1e6 : 1);
    tensors.push_back(t == 3 || (t == 2 && p != 1) ? Tensor() : random);
  }
  return tensors;
}

std::vector<float> tree(int64_t begin, int64_t end, size_t tensor) {
  if (end - begin == 1) return part(begin)[tensor].to_vector();
  std::vector<float> left = tree(begin, (begin + end) / 2, tensor), right = tree((begin + end) / 2, end, tensor);
  for (size_t i = 0; i < left.size(); ++i) left[i] += right[i];
  return left;
}

TEST(TreeSum, IsTheSameTreeForAnyNumberOfProcesses) {
  for (const int64_t parts : {1, 2, 8, 16}) {
    for (int size = 1; size <= parts; ++size) {
      as_processes(size, [&](Processes& processes) {
        TreeSum sum(processes, parts, like());
        for (int round = 0; round < 2; ++round) {
          for (int64_t p = sum.own().begin; p < sum.own().end; ++p) sum.add(part(p));
          const std::vector<Tensor> total = sum.total();
          ASSERT_EQ(total.size(), kShapes.size());
          EXPECT_EQ(total[0].to_vector(), tree(0, parts, 0)) << parts << " on " << size;
          EXPECT_EQ(total[1].to_vector(), tree(0, parts, 1)) << parts << " on " << size;
          EXPECT_EQ(total[2].defined(), parts > 1);
          if (parts > 1) {
            EXPECT_EQ(total[2].to_vector(), part(1)[2].to_vector());
          }
          EXPECT_FALSE(total[3].defined());
          EXPECT_EQ(total[0].shape().str(), kShapes[0].str());
        }
      });
    }
  }
}

TEST(TreeSum, IsNotTheSumFromLeftToRight) {
  TreeSum sum(one_process(), 4, like());
  for (int64_t p = 0; p < 4; ++p) sum.add(part(p));
  std::vector<float> plain = part(0)[0].to_vector();
  for (int64_t p = 1; p < 4; ++p) {
    const std::vector<float> more = part(p)[0].to_vector();
    for (size_t i = 0; i < plain.size(); ++i) plain[i] += more[i];
  }
  EXPECT_NE(sum.total()[0].to_vector(), plain);
}

TEST(TreeSum, RefusesWhatCannotBeShared) {
  EXPECT_THROW(TreeSum(one_process(), 3, like()), ConfigError);
  as_processes(3, [](Processes& processes) {
    try {
      TreeSum(processes, 2, like());
      FAIL() << "three processes took two parts";
    } catch (const ConfigError& e) {
      EXPECT_EQ(std::string(e.what()),
                "--parts 2 can be shared by at most 2 processes, and 3 were started; start fewer, or a new run with "
                "more --parts");
    }
  });
}

TEST(Agreement, AnErrorOfOneIsAnErrorOfAll) {
  as_processes(3, [](Processes& processes) {
    const auto refuse = [&](int rank) {
      agree(processes, [&] {
        if (processes.rank() == rank) throw ConfigError("no such thing");
      });
    };
    try {
      refuse(2);
      FAIL() << "went on";
    } catch (const ConfigError& e) {
      EXPECT_EQ(std::string(e.what()), "process 2 on " + host_name() + ": no such thing");
      EXPECT_NE(dynamic_cast<const AgreedError*>(&e), nullptr);
    }
    try {
      refuse(0);
      FAIL() << "went on";
    } catch (const ConfigError& e) {
      EXPECT_EQ(std::string(e.what()), "no such thing");
    }
    EXPECT_EQ(gather_agreed(processes, [&] { return std::string(1, static_cast<char>('a' + processes.rank())); }),
              (std::vector<std::string>{"a", "b", "c"}));
  });
}

TEST(Agreement, WorkIsSharedAndComesBackInOrder) {
  std::atomic<int> calls{0};
  using Part = std::tuple<int64_t, std::vector<std::string>>;
  as_processes(3, [&](Processes& processes) {
    const std::vector<Part> all = share_out<Part>(processes, 7, [&](int64_t i) {
      ++calls;
      return Part{i * i, {std::to_string(i), ""}};
    });
    ASSERT_EQ(all.size(), 7u);
    for (int64_t i = 0; i < 7; ++i) EXPECT_EQ(all[static_cast<size_t>(i)], (Part{i * i, {std::to_string(i), ""}}));
  });
  EXPECT_EQ(calls, 7);
}

TEST(Agreement, TextsOfProcess0ReachAll) {
  as_processes(2, [](Processes& processes) {
    EXPECT_EQ(broadcast_text(processes, processes.rank() == 0 ? "of the first" : "mine"), "of the first");
  });
}

TEST(Pack, GivesBackWhatWentIn) {
  using Value = std::tuple<double, std::vector<std::vector<int64_t>>, std::string, bool>;
  const Value value{0.1, {{1, -2}, {}, {3}}, std::string("a\0b", 3), true};
  EXPECT_EQ(unpacked<Value>(packed(value)), value);
  EXPECT_THROW(unpacked<Value>(packed(value).substr(0, 9)), std::length_error);
}

TEST(Hosts, ProcessorsAreSharedByThoseWhoRunOnTheSameOnes) {
  const int all = usable_processors();
  std::vector<Peer> peers{{0, "a", 1, {0, 1}}, {1, "a", 2, {0, 1}}, {2, "a", 3, {5}}, {3, "b", 4, {0, 1}}};
  EXPECT_EQ(threads_of(peers, 0), std::max(1, all / 2));
  EXPECT_EQ(threads_of(peers, 2), all);
  EXPECT_EQ(threads_of(peers, 3), all);
}

TEST(Launch, AProcessAloneLoadsNothing) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "PMIX_RANK"}) unsetenv(name);
  EXPECT_EQ(launched_processes(), 1);
  EXPECT_EQ(join_launched(), nullptr);
  setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
  EXPECT_EQ(join_launched(), nullptr);
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  EXPECT_EQ(launched_processes(), 4);
  unsetenv("OMPI_COMM_WORLD_SIZE");
}

TEST(Watch, SaysWhichProcessIsGone) {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  std::atomic<int> gone{-2};
  const std::string host = host_name();
  const std::vector<Peer> peers{
      {0, host, getpid(), {}}, {1, host, getppid(), {}}, {2, host, child, {}}, {3, "another machine", 1 << 30, {}}};
  Watch watch(peers, 0, [&](const Peer& peer) { gone = peer.rank; });
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  EXPECT_EQ(gone, -2);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (int i = 0; i < 100 && gone == -2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(gone, 2);
}

}  // namespace
}  // namespace qkv
