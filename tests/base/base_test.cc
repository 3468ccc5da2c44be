// Shapes, random numbers, settings and the thread pool.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <set>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "qkv/base/base64.h"
#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/base/read_number.h"
#include "qkv/base/rng.h"
#include "qkv/base/settings.h"
#include "qkv/base/shape.h"
#include "qkv/base/wording.h"

namespace qkv {
namespace {

TEST(Shape, StridesAndBroadcast) {
  const Shape s{2, 3, 4};
  EXPECT_EQ(s.contiguous_strides(), (Shape{12, 4, 1}));
  EXPECT_EQ(s.numel(), 24);
  EXPECT_EQ(s[-1], 4);
  EXPECT_EQ(s.str(), "[2,3,4]");
  EXPECT_EQ(broadcast("add", {5, 1, 4}, {3, 1}), (Shape{5, 3, 4}));
  EXPECT_EQ(Shape{}.numel(), 1);
}

TEST(ReadNumber, TakesTheLongestNumberAndNothingElse) {
  const auto read = [](const std::string& text) {
    double value = -7;
    const char* const end = read_number(text.data(), text.data() + text.size(), value);
    return std::pair(value, end - text.data());
  };
  EXPECT_EQ(read("1.5,2"), std::pair(1.5, std::ptrdiff_t{3}));
  EXPECT_EQ(read("-2e3;"), std::pair(-2000.0, std::ptrdiff_t{4}));
  EXPECT_EQ(read("0x10"), std::pair(0.0, std::ptrdiff_t{1}));
  EXPECT_EQ(read("0.1"), std::pair(0.1, std::ptrdiff_t{3}));
  for (const char* none : {"", " 1", "+1", "e5", ".", "-", "x", "1e999"}) EXPECT_EQ(read(none).second, 0) << none;
}

TEST(Base64, BothWays) {
  for (const std::string text : {"", "a", "ab", "abc", "\xff\x00z"}) {
    const std::string coded = encode_base64(std::as_bytes(std::span(text)));
    EXPECT_EQ(coded.size() % 4, 0u);
    const std::vector<std::byte> back = decode_base64(coded);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(back.data()), back.size()), text);
  }
  EXPECT_EQ(encode_base64(std::as_bytes(std::span("Man", 2))), "TWE=");
  EXPECT_THROW(decode_base64("A*A"), ConfigError);
}

TEST(Shape, BroadcastErrorNamesOpAndShapes) {
  try {
    broadcast("add", {2, 3}, {4});
    FAIL();
  } catch (const ShapeError& e) {
    EXPECT_STREQ(e.what(), "[add] shapes do not broadcast: [2,3] and [4]");
  }
}

TEST(Rng, DependsOnSeedAndCounterAlone) {
  Rng a(7), b(7), c(8);
  EXPECT_EQ(a.next(), b.next());
  EXPECT_NE(a.next(), c.next());
  Rng later(7, a.counter());
  EXPECT_EQ(a.next(), later.next());
  EXPECT_NE(Rng(7).fork(1).next(), Rng(7).fork(2).next());
}

TEST(Rng, MomentsOfUniformAndNormal) {
  Rng rng(3);
  double sum = 0, square = 0, normal_sum = 0, normal_square = 0;
  constexpr int kDraws = 200000;
  std::vector<int> counts(7);
  for (int i = 0; i < kDraws; ++i) {
    const double u = rng.uniform(), n = rng.normal();
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += u;
    square += u * u;
    normal_sum += n;
    normal_square += n * n;
    ++counts[static_cast<size_t>(rng.below(7))];
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
  EXPECT_NEAR(square / kDraws, 1.0 / 3, 0.005);
  EXPECT_NEAR(normal_sum / kDraws, 0, 0.01);
  EXPECT_NEAR(normal_square / kDraws, 1, 0.02);
  for (int c : counts) EXPECT_NEAR(c, kDraws / 7.0, 600);
}

TEST(Parallel, EveryTaskOnceForAnyThreadCount) {
  for (int threads : {1, 2, 3, 5}) {
    set_num_threads(threads);
    EXPECT_EQ(num_threads(), threads);
    for (int64_t n : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
      parallel_for(n, [&](int64_t i) { hits[static_cast<size_t>(i)]++; });
      for (auto& h : hits) EXPECT_EQ(h, 1);
    }
  }
}

TEST(Parallel, ThreadsHelpOneThatIsBusy) {
  set_num_threads(2);
  constexpr int kTasks = 8;
  std::atomic<int> done{0};
  parallel_for(kTasks, [&](int64_t i) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    // Whoever has the first task waits for all others, those of its own range, too.
    while (i == 0 && done < kTasks - 1 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    if (i == 0) {
      EXPECT_EQ(done, kTasks - 1);
    }
    done++;
  });
  EXPECT_EQ(done, kTasks);
}

TEST(Parallel, NestedCallsAndExceptions) {
  set_num_threads(3);
  std::atomic<int> inner{0};
  parallel_for(8, [&](int64_t) { parallel_for(4, [&](int64_t) { inner++; }); });
  EXPECT_EQ(inner, 32);
  EXPECT_THROW(parallel_for(16,
                            [](int64_t i) {
                              if (i == 11) throw std::runtime_error("task");
                            }),
               std::runtime_error);
  std::atomic<int> after{0};
  parallel_for(16, [&](int64_t) { after++; });  // the pool still works
  EXPECT_EQ(after, 16);
}

TEST(Parallel, PhasesRunOneAfterAnother) {
  const int before = num_threads();
  const std::vector<int64_t> tasks{5, 0, 1, 200, 2};
  for (const int threads : {1, 2, 3, 9}) {
    set_num_threads(threads);
    for (int round = 0; round < 200; ++round) {
      std::vector<std::atomic<int>> ran(200 * tasks.size());
      std::atomic<int> early{0};
      const std::span<const int64_t> all(tasks);
      parallel_phases(all, [&](size_t phase, int64_t i) {
        for (size_t p = 0; p < phase; ++p) {
          for (int64_t j = 0; j < tasks[p]; ++j) early += ran[p * 200 + static_cast<size_t>(j)].load() != 1;
        }
        ++ran[phase * 200 + static_cast<size_t>(i)];
      });
      int64_t total = 0;
      for (const auto& n : ran) total += n.load();
      EXPECT_EQ(total, 208);
      EXPECT_EQ(early.load(), 0);
    }
    EXPECT_THROW(parallel_phases(tasks,
                                 [](size_t phase, int64_t i) {
                                   if (phase == 3 && i == 7) throw Error("seven");
                                 }),
                 Error);
  }
  set_num_threads(before);
}

TEST(Parallel, BlocksCoverTheRange) {
  std::vector<int> seen(1003);
  parallel_blocks(1003, 100, [&](int64_t begin, int64_t end) {
    EXPECT_LE(end - begin, 100);
    for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
  });
  for (int s : seen) EXPECT_EQ(s, 1);
}

TEST(Settings, DeclareSetGet) {
  Settings s;
  s.integer("hidden", 128, "width", 1)
      .number("lr", 1e-3, "rate")
      .flag("tied", false, "")
      .choice("cell", "lstm", {"lstm", "gru"}, "");
  s.set("hidden", "64");
  s.set("lr", "0.5");
  s.set("tied", "true");
  s.set("cell", "gru");
  EXPECT_EQ(s.get_integer("hidden"), 64);
  EXPECT_DOUBLE_EQ(s.get_number("lr"), 0.5);
  EXPECT_TRUE(s.get_flag("tied"));
  EXPECT_EQ(s.get_text("cell"), "gru");
}

TEST(Settings, APresetChangesWhatNobodySet) {
  Settings s;
  s.choice("model", "a", {"a", "b", "c"}, "").integer("layers", 1, "").number("lr", 1, "");
  s.when({"model"}, "b", "layers", "3").when({"model"}, "b", "lr", "0.5").when({"model"}, "c", "lr", "0.25");
  s.set("model", "b");
  EXPECT_EQ(s.get_integer("layers"), 3);
  EXPECT_EQ(s.get_number("lr"), 0.5);
  s.set("lr", "2");
  s.set("model", "c");
  EXPECT_EQ(s.get_integer("layers"), 1);
  EXPECT_EQ(s.get_number("lr"), 2);
  EXPECT_THROW(s.when({"model"}, "b", "width", "3"), ConfigError);
  EXPECT_THROW(s.when({"model"}, "b", "layers", "many"), ConfigError);
}

TEST(Settings, APresetHoldsWhileSeveralOptionsAreAsItSays) {
  Settings s;
  s.choice("model", "a", {"a", "b"}, "").path("data", "", "").path("file", "", "").integer("width", 512, "");
  s.when({"model"}, "b", "width", "256").when({"data", "file"}, "", "width", "64");
  EXPECT_EQ(s.get_integer("width"), 64);  // nothing was given: the small one, at once
  s.set("model", "b");
  EXPECT_EQ(s.get_integer("width"), 64);  // of two that hold, the last
  s.set("file", "x.txt");
  EXPECT_EQ(s.get_integer("width"), 256);
  s.set("model", "a");
  EXPECT_EQ(s.get_integer("width"), 512);
  s.set("width", "7");
  s.set("file", "");
  EXPECT_EQ(s.get_integer("width"), 7);
}

TEST(Settings, BelongToTheGroupTheyWereDeclaredIn) {
  Settings s;
  s.integer("a", 1, "").group("data").integer("b", 1, "").group("model").integer("c", 1, "");
  EXPECT_EQ(s.all()[0].group, "");
  EXPECT_EQ(s.all()[1].group, "data");
  EXPECT_EQ(s.all()[2].group, "model");
  Settings more;
  more.group("training").include(s);
  EXPECT_EQ(more.all()[2].group, "model");
}

TEST(Wording, TheNearestNameIsOneThatSomebodyCouldHaveMeant) {
  const std::vector<std::string> names{"train", "compare", "study", "eval", "scaled-dot", "dot"};
  EXPECT_EQ(nearest_name("tarin", names), "train");
  EXPECT_EQ(nearest_name("trian", names), "train");
  EXPECT_EQ(nearest_name("comparee", names), "compare");
  EXPECT_EQ(nearest_name("comp", names), "compare");
  EXPECT_EQ(nearest_name("Train", names), "train");
  EXPECT_EQ(nearest_name("dott", names), "dot");
  EXPECT_EQ(nearest_name("scaled_dot", names), "scaled-dot");
  EXPECT_EQ(nearest_name("x", names), "");
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name("banana", names), "");
  EXPECT_EQ(nearest_name(std::string(1000000, 't'), names), "");
  EXPECT_EQ(did_you_mean("evla", names), " (did you mean 'eval'?)");
  EXPECT_EQ(did_you_mean("banana", names), "");
}

TEST(Wording, RangesAreAsPeopleWriteThem) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(range_text("a whole number", 1, 65536), "a whole number between 1 and 65,536");
  EXPECT_EQ(range_text("a whole number", 1, 1e9), "a whole number between 1 and 1,000,000,000");
  EXPECT_EQ(range_text("a number", 1e-6, 1), "a number between 0.000001 and 1");
  EXPECT_EQ(range_text("a number", 0, kInfinity), "a number of at least 0");
  EXPECT_EQ(range_text("a number", -kInfinity, 9999), "a number of at most 9999");
  EXPECT_EQ(range_text("a number", -kInfinity, kInfinity), "a number");
  EXPECT_EQ(plain_number(-12345.5), "-12,345.5");
  EXPECT_EQ(plain_number(100000), "100,000");
  EXPECT_EQ(plain_number(1e20), "1e+20");
}

TEST(Settings, ClientsSetOnlyWhatIsOpenedToThemAndNeverAPath) {
  Settings s;
  s.integer("width", 8, "").text("name", "", "").path("data", "", "").open_to_clients({"width"});
  s.set_by_client("width", "16");
  EXPECT_EQ(s.get_integer("width"), 16);
  for (const char* closed : {"name", "data", "other"}) EXPECT_THROW(s.set_by_client(closed, "x"), ConfigError);
  EXPECT_THROW(s.set_by_client("width", "-1"), ConfigError);
  EXPECT_THROW(s.open_to_clients({"data"}), ConfigError);
  EXPECT_EQ(s.get_text("data"), "");
  Settings all;
  all.include(s);
  EXPECT_TRUE(all.all()[0].client);
}

TEST(Settings, RefusalsNameTheOptionAndWhatItAccepts) {
  Settings s;
  s.integer("hidden", 128, "width", 1, 4096).choice("cell", "lstm", {"lstm", "gru"}, "");
  const auto message = [&](const char* name, const char* value) -> std::string {
    try {
      s.set(name, value);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message("hidden", "0"), "--hidden: '0' is not a whole number between 1 and 4096");
  EXPECT_EQ(message("hidden", "12x"), "--hidden: '12x' is not a whole number between 1 and 4096");
  EXPECT_EQ(message("cell", "rnn"), "--cell: 'rnn' is not one of: lstm, gru");
  EXPECT_EQ(message("cell", (std::string(119, 'a') + "ü").c_str()),
            "--cell: '" + std::string(119, 'a') + "...' is not one of: lstm, gru");
  EXPECT_EQ(message("width", "3"), "unknown setting 'width'; available: hidden, cell");
  EXPECT_EQ(s.get_integer("hidden"), 128);
}

}  // namespace
}  // namespace qkv
