// The trainer on a tiny task: learning, accumulation, stopping, and resuming to the same bits.
#include "qkv/train/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "dist/threads_as_processes.h"
#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/train/session.h"
#include "train/tiny_task.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using testing::find_tiny;
using testing::message_of;
using testing::tiny_settings;
using testing::tiny_spec;
using testing::TinyTask;

std::vector<float> weights(Task& task) {
  std::vector<float> all;
  for (const NamedParameter& p : parameters_of(task)) {
    const std::vector<float> v = p.value.to_vector();
    all.insert(all.end(), v.begin(), v.end());
  }
  return all;
}

Settings with(std::initializer_list<std::pair<const char*, const char*>> changes) {
  Settings s = tiny_settings();
  for (const auto& [name, value] : changes) s.set(name, value);
  return s;
}

std::vector<float> trained(const Settings& s) {
  TinyTask task(s);
  Trainer(task, trainer_options(s)).run();
  return weights(task);
}

struct StopAfter final : TrainObserver {
  explicit StopAfter(int64_t n) : left(n) {}
  bool wants_stop() override { return --left <= 0; }
  int64_t left;
};

TEST(Trainer, Learns) {
  const Settings s = with({{"epochs", "20"}});
  TinyTask task(s);
  const double before = task.validate().front().second;
  const TrainResult result = Trainer(task, trainer_options(s)).run();
  EXPECT_LT(result.validation.front().second, before / 10);
  EXPECT_EQ(result.state.step, 140);
  EXPECT_EQ(result.state.epoch, 20);
  EXPECT_EQ(result.state.stopped, "epochs");
  EXPECT_EQ(result.state.evaluations, 20);
  EXPECT_EQ(result.state.tokens, 140 * 16);
}

TEST(Trainer, SameBitsForAnyNumberOfThreadsAndEveryOptimizer) {
  const int before = num_threads();
  for (const char* optimizer : {"adamw", "adam", "sgd"}) {
    const Settings s = with({{"optimizer", optimizer}, {"schedule", "cosine"}, {"warmup", "5"}});
    set_num_threads(1);
    const std::vector<float> one = trained(s);
    set_num_threads(2);
    EXPECT_EQ(one, trained(s)) << optimizer;
    EXPECT_NE(one, trained(with({{"optimizer", optimizer}, {"seed", "2"}})));
  }
  set_num_threads(before);
}

TEST(Trainer, ResumesToTheSameBitsFromAnyStep) {
  const Settings s = with({{"schedule", "linear"}, {"patience", "3"}, {"eval-every", "5"}, {"accumulate", "2"}});
  const std::vector<float> whole = trained(s);
  for (const int64_t cut : {1, 4, 5, 9, 15}) {
    const testing::TempFolder temp;
    const std::string path = temp / "run";
    TrainResult first;
    {
      TinyTask task(s);
      RunFolder run = RunFolder::create(path, tiny_spec(), s, task);
      StopAfter stop(cut);
      first = Trainer(task, trainer_options(s), &run, &stop).run();
      EXPECT_TRUE(first.interrupted);
      EXPECT_EQ(first.state.step, cut);
    }
    RunFolder run = RunFolder::open(path, find_tiny);
    TinyTask task(run.settings());
    Trainer trainer(task, trainer_options(run.settings()), &run);
    trainer.resume();
    const TrainResult second = trainer.run();
    EXPECT_FALSE(second.interrupted);
    EXPECT_EQ(weights(task), whole) << "cut at " << cut;
    // The metrics are those of one uninterrupted run: no line lost, none twice.
    const auto history = run.history();
    ASSERT_EQ(history.size(), 4u);
    for (size_t i = 0; i + 1 < history.size(); ++i) EXPECT_EQ(history[i].step, static_cast<int64_t>(5 * (i + 1)));
    EXPECT_EQ(history.back().step, 16);
  }
}

TEST(Trainer, MetricsWrittenAfterTheCheckpointAreDropped) {
  const Settings s = with({{"epochs", "2"}, {"log-every", "1"}});
  const testing::TempFolder temp;
  TinyTask task(s);
  RunFolder run = RunFolder::create(temp / "run", tiny_spec(), s, task);
  StopAfter stop(3);
  Trainer(task, trainer_options(s), &run, &stop).run();
  AppendFile file(temp / "run/metrics.jsonl", fs::file_size(temp / "run/metrics.jsonl"));
  file.append("{\"kind\":\"evaluation\", torn by a ki");
  TinyTask again(s);
  Trainer trainer(again, trainer_options(s), &run);
  trainer.resume();
  trainer.run();
  EXPECT_EQ(run.history().size(), 2u);
  const std::string text = read_text(temp / "run/metrics.jsonl");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 14 + 2);
}

TEST(Trainer, AccumulationEqualsOneLargeBatch) {
  // Two batches of 8 as one update: the loss of the group is the mean over all 16 examples.
  const Settings s = with({{"batch", "8"}, {"accumulate", "7"}, {"steps", "1"}, {"optimizer", "sgd"}, {"clip", "0"}});
  TinyTask task(s);
  const std::vector<float> start = weights(task);
  Trainer(task, trainer_options(s)).run();
  TinyTask reference(s);
  Context ctx(1, 0);
  Tensor total;
  for (int64_t b = 0; b < 7; ++b) {
    const Tensor loss = affine(reference.train_batch(0, b, ctx).loss, 1.0 / 7);
    total = total.defined() ? total + loss : loss;
  }
  // No gradient is recorded until asked for: do it by hand once more with gradients on.
  auto parameters = parameters_of(reference);
  for (auto& p : parameters) p.value.set_requires_grad(true);
  Context again(1, 0);
  Tensor sum;
  for (int64_t b = 0; b < 7; ++b) {
    const Tensor loss = affine(reference.train_batch(0, b, again).loss, 1.0 / 7);
    sum = sum.defined() ? sum + loss : loss;
  }
  EXPECT_FLOAT_EQ(static_cast<float>(sum.item()), static_cast<float>(total.item()));
  sum.backward();
  Sgd sgd(parameters, {.momentum = 0.9, .weight_decay = 0.01, .decay_vectors = false});
  sgd.step(0.05);
  const std::vector<float> got = weights(task), wanted = weights(reference);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], wanted[i], 1e-6);
    EXPECT_NE(got[i], start[i]);
  }
}

std::vector<float> trained_on(int processes, const Settings& s, std::vector<ProcessShare>* shares = nullptr) {
  std::vector<float> first;
  testing::as_processes(processes, [&](Processes& all) {
    TinyTask task(s);
    const TrainResult result = Trainer(task, trainer_options(s), nullptr, nullptr, all).run();
    if (all.rank() == 0) {
      first = weights(task);
      if (shares != nullptr) *shares = result.shares;
    }
    const std::vector<float> mine = weights(task);
    for (const std::string& other : all.gather(packed(mine))) EXPECT_EQ(unpacked<std::vector<float>>(other), mine);
  });
  return first;
}

TEST(Trainer, PartsGiveTheSameBitsOnAnyNumberOfProcesses) {
  for (const char* accumulate : {"1", "3"}) {
    const Settings s = with({{"parts", "8"}, {"accumulate", accumulate}, {"batch", "12"}});
    const std::vector<float> one = trained(s);
    for (const int processes : {2, 3, 4, 8}) {
      std::vector<ProcessShare> shares;
      EXPECT_EQ(trained_on(processes, s, &shares), one) << processes;
      ASSERT_EQ(shares.size(), static_cast<size_t>(processes));
      for (const ProcessShare& share : shares) EXPECT_GT(share.parts, 0);
    }
    // Another division, other draws and roundings; but the same learning.
    EXPECT_NE(one, trained(with({{"accumulate", accumulate}, {"batch", "12"}})));
  }
}

TEST(Trainer, MorePartsThanSequencesAreNoHarm) {
  const Settings s = with({{"parts", "8"}, {"batch", "3"}});
  EXPECT_EQ(trained_on(8, s), trained(s));
}

TEST(Trainer, NotANumberInOneProcessStopsAllWithOneMessage) {
  const Settings s = with({{"parts", "4"}, {"nan-at", "9"}});
  testing::as_processes(4, [&](Processes& all) {
    Settings mine = s;
    if (all.rank() != 2) mine.set("nan-at", "0");
    TinyTask task(mine);
    Trainer trainer(task, trainer_options(s), nullptr, nullptr, all);
    EXPECT_EQ(
        message_of<Error>([&] { trainer.run(); }),
        "training stopped at step 9: the loss is NaN; try a smaller --lr or --clip; no checkpoint had been saved");
  });
}

TEST(Trainer, ResumesOnAnotherNumberOfProcesses) {
  const Settings s = with({{"parts", "4"}, {"average", "2"}});
  const testing::TempFolder temp;
  const auto session = [&](int processes, int64_t stop_at) {
    std::vector<float> first;
    testing::as_processes(processes, [&](Processes& all) {
      TinyTask task(s);
      std::optional<RunFolder> run;
      agree_on_first(all, [&] {
        run = fs::exists(temp / "run") ? RunFolder::open(temp / "run", find_tiny)
                                       : RunFolder::create(temp / "run", tiny_spec(), s, task);
      });
      StopAfter stop(all.rank() == processes - 1 ? stop_at : 1000);
      Trainer trainer(task, trainer_options(s), run ? &*run : nullptr, &stop, all);
      if (run) trainer.resume();
      trainer.run();
      if (all.rank() == 0) first = weights(task);
    });
    return first;
  };
  session(3, 9);
  session(2, 10);
  const std::vector<float> resumed = session(4, 1000);
  const testing::TempFolder whole;
  TinyTask task(s);
  RunFolder run = RunFolder::create(whole / "run", tiny_spec(), s, task);
  Trainer(task, trainer_options(s), &run).run();
  EXPECT_EQ(resumed, weights(task));
  EXPECT_EQ(read_text(whole / "run/checkpoints/00000028/optimizer.safetensors"),
            read_text(temp / "run/checkpoints/00000028/optimizer.safetensors"));
}

TEST(Trainer, StopsEarly) {
  Settings s = with({{"epochs", "50"}, {"stop-at", "0.5"}});
  TinyTask task(s);
  TrainResult result = Trainer(task, trainer_options(s)).run();
  EXPECT_EQ(result.state.stopped, "goal");
  EXPECT_LT(result.state.epoch, 50);
  EXPECT_LE(result.validation.front().second, 0.5);

  s = with({{"epochs", "50"}, {"lr", "0"}, {"weight-decay", "0"}, {"patience", "3"}});
  TinyTask still(s);
  result = Trainer(still, trainer_options(s)).run();
  EXPECT_EQ(result.state.stopped, "patience");
  EXPECT_EQ(result.state.epoch, 4);
  EXPECT_EQ(result.state.best_step, 7);
}

TEST(Trainer, NotANumberStopsNamesTheStepAndKeepsTheCheckpoint) {
  const Settings s = with({{"nan-at", "12"}});
  const testing::TempFolder temp;
  TinyTask task(s);
  RunFolder run = RunFolder::create(temp / "run", tiny_spec(), s, task);
  const std::string message = message_of<Error>([&] { Trainer(task, trainer_options(s), &run).run(); });
  EXPECT_EQ(message,
            "training stopped at step 12: the loss is NaN; try a smaller --lr or --clip; the last good "
            "checkpoint is " +
                temp / "run/checkpoints/00000007");
  EXPECT_EQ(run.checkpoints(), std::vector<int64_t>{7});
  // And it can be resumed from there: the sick batch of this test counts per session.
  const Settings healthy = with({});
  TinyTask again(healthy);
  Trainer trainer(again, trainer_options(healthy), &run);
  trainer.resume();
  trainer.run();
  EXPECT_EQ(weights(again), trained(healthy));
}

TEST(Trainer, AveragesTheLastCheckpoints) {
  const Settings s = with({{"average", "3"}, {"keep", "1"}});
  const testing::TempFolder temp;
  TinyTask task(s);
  RunFolder run = RunFolder::create(temp / "run", tiny_spec(), s, task);
  const TrainResult result = Trainer(task, trainer_options(s), &run).run();
  ASSERT_TRUE(result.averaged.has_value());
  TinyTask probe(s);
  std::vector<double> mean(14, 0.0);
  for (const char* step : {"14", "21", "28"}) {
    run.load_weights(parameters_of(probe), step);
    const std::vector<float> w = weights(probe);
    for (size_t i = 0; i < w.size(); ++i) mean[i] += static_cast<double>(w[i]) / 3;
  }
  const std::string file = run.load_weights(parameters_of(probe), "average");
  EXPECT_EQ(file, temp / "run/checkpoints/average/model.safetensors");
  const std::vector<float> averaged = weights(probe);
  for (size_t i = 0; i < mean.size(); ++i) EXPECT_NEAR(averaged[i], mean[i], 1e-7);
  // Unasked, it is taken only where it is better than the best checkpoint; here the loss still falls at the end.
  ASSERT_GT(result.averaged->front().second, result.best.front().second);
  EXPECT_EQ(run.load_weights(parameters_of(probe)), temp / "run/checkpoints/00000028/model.safetensors");
  run.save_average(parameters_of(probe), true);
  EXPECT_EQ(run.load_weights(parameters_of(probe)), file);
}

TEST(Trainer, MoreEpochsOnResume) {
  const Settings s = with({});
  const testing::TempFolder temp;
  {
    TinyTask task(s);
    RunFolder run = RunFolder::create(temp / "run", tiny_spec(), s, task);
    Trainer(task, trainer_options(s), &run).run();
  }
  RunFolder run = RunFolder::open(temp / "run", find_tiny);
  run.change("epochs", "6");
  TinyTask task(run.settings());
  Trainer trainer(task, trainer_options(run.settings()), &run);
  trainer.resume();
  EXPECT_EQ(trainer.run().state.epoch, 6);
  EXPECT_EQ(weights(task), trained(with({{"epochs", "6"}})));
  EXPECT_EQ(RunFolder::open(temp / "run", find_tiny).settings().get_integer("epochs"), 6);
}

TEST(Trainer, ContinuesOnlyWhereThereIsAFolder) {
  const auto task = testing::make_tiny(testing::tiny_settings(), "");
  Trainer trainer(*task, {});
  EXPECT_THROW(trainer.resume(), ConfigError);
}

}  // namespace
}  // namespace qkv
