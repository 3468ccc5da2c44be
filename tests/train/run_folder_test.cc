// Run folders: created whole, opened without trust, pruned, and clear about every kind of damage.
#include "qkv/train/run_folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/io/json.h"
#include "qkv/io/parameters_file.h"
#include "qkv/train/session.h"
#include "qkv/train/trainer.h"
#include "train/tiny_task.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using testing::find_tiny;
using testing::message_of;
using testing::TempFolder;
using testing::tiny_settings;
using testing::tiny_spec;
using testing::TinyTask;

/// A finished run of four epochs (checkpoints at 21 and 28, the best among them).
struct Finished {
  Settings settings = tiny_settings();
  TempFolder temp;
  std::string path = temp / "run";
  TinyTask task{settings};
  RunFolder run = RunFolder::create(path, tiny_spec(), settings, task);
  TrainResult result = Trainer(task, trainer_options(settings), &run).run();

  std::string resume_error() {
    TinyTask fresh(settings);
    RunFolder again = RunFolder::open(path, find_tiny);
    Trainer trainer(fresh, trainer_options(settings), &again);
    return message_of<IoError>([&] { trainer.resume(); });
  }
};

TEST(RunFolder, HoldsEverythingNeededToRepeat) {
  Finished f;
  for (const char* name :
       {"config.json", "metrics.jsonl", "events.out.tfevents.qkv", "checkpoints/00000028/model.safetensors",
        "checkpoints/00000028/optimizer.safetensors", "checkpoints/00000028/state.json"}) {
    EXPECT_TRUE(fs::exists(f.path + "/" + name)) << name;
  }
  const RunFolder again = RunFolder::open(f.path, find_tiny);
  ASSERT_EQ(again.settings().all().size(), f.settings.all().size());
  for (size_t i = 0; i < f.settings.all().size(); ++i) {
    const Setting &a = f.settings.all()[i], &b = again.settings().all()[i];
    EXPECT_EQ(a.name, b.name);
    if (a.kind == SettingKind::number) {
      EXPECT_EQ(f.settings.get_number(a.name), again.settings().get_number(a.name));
    } else {
      EXPECT_EQ(a.value, b.value);
    }
  }
  const auto history = again.history();
  ASSERT_EQ(history.size(), 4u);
  EXPECT_EQ(history.back().validation, f.result.validation);
}

TEST(RunFolder, KeepsTheLastAndTheBest) {
  Settings s = tiny_settings();
  s.set("keep", "2");
  s.set("epochs", "6");
  s.set("eval-every", "3");
  const TempFolder temp;
  TinyTask task(s);
  RunFolder run = RunFolder::create(temp / "run", tiny_spec(), s, task);
  TrainState state;
  const std::vector<NamedParameter> model = parameters_of(task);
  const AdamW optimizer(model);
  state.best_step = 2;
  for (state.step = 1; state.step <= 6; ++state.step) run.save(state, model, optimizer, 2);
  EXPECT_EQ(run.checkpoints(), (std::vector<int64_t>{2, 5, 6}));
  EXPECT_EQ(run.load_weights(model), run.checkpoint_path(2) + "/model.safetensors");
}

TEST(RunFolder, RefusesToOverwrite) {
  Finished f;
  EXPECT_EQ(message_of<IoError>([&] { RunFolder::create(f.path, tiny_spec(), f.settings, f.task); }),
            "cannot start a run in " + f.path + ": it holds a run; continue it with --resume " + f.path +
                " or choose another --out");
  const TempFolder other;
  write_file_atomic(other / "letter.txt", std::string_view("dear"));
  EXPECT_EQ(message_of<IoError>([&] { RunFolder::create(other.path(), tiny_spec(), f.settings, f.task); }),
            "cannot start a run in " + other.path() + ": the folder is not empty; choose another --out");
  EXPECT_EQ(free_folder(f.path), f.path + "-2");
  const TempFolder empty;
  RunFolder::create(empty.path(), tiny_spec(), f.settings, f.task);
  EXPECT_TRUE(fs::exists(empty / "config.json"));
}

TEST(RunFolder, DamageIsNamedAndTheCheckpointBeforeIsOffered) {
  Finished f;
  const std::string last = f.run.checkpoint_path(28), model = last + "/model.safetensors";
  const std::string offer = "; remove " + last + " to go on from step 21";
  fs::resize_file(model, fs::file_size(model) - 5);
  EXPECT_NE(f.resume_error().find(model), std::string::npos);
  EXPECT_NE(f.resume_error().find(offer), std::string::npos);

  Tensor weight = Tensor::zeros({2, 6}), bias = Tensor::zeros({2}), wide = Tensor::zeros({2, 7});
  save_parameters(model, {{"weight", weight}});
  EXPECT_EQ(f.resume_error(), model + ": tensor 'bias' is missing; the file belongs to another model" + offer);
  save_parameters(model, {{"weight", wide}, {"bias", bias}});
  EXPECT_EQ(f.resume_error(), model + ": tensor 'weight' is F32 [2,7], the model has F32 [2,6]" + offer);
  save_parameters(model, {{"weight", weight.to(DType::f64)}, {"bias", bias}});
  EXPECT_EQ(f.resume_error(), model + ": tensor 'weight' is F64 [2,6], the model has F32 [2,6]" + offer);
  save_parameters(model, {{"weight", weight}, {"bias", bias}, {"gate", bias}});
  EXPECT_EQ(f.resume_error(), model + ": tensor 'gate' has no place in this model" + offer);
  save_parameters(model, {{"weight", weight}, {"bias", bias}});
  EXPECT_EQ(f.resume_error(), "");

  write_file_atomic(last + "/state.json", std::string_view("{\"step\":"));
  EXPECT_EQ(f.resume_error(), last + "/state.json: not the state of a training" + offer);
  fs::remove_all(last);
  EXPECT_EQ(f.resume_error(), "");
}

// Each of these numbers once crashed, trained forever or gave NaN.
TEST(RunFolder, NumbersOfAStateAreChecked) {
  Finished f;
  const std::string file = f.run.checkpoint_path(28) + "/state.json";
  const Json good = read_json(file, "state");
  const std::pair<const char*, Json> damages[] = {
      {"batch", -1},      {"epoch", 1e308},     {"step", -5},          {"seconds", -1},
      {"tokens", "many"}, {"best_step", 1000},  {"metrics_bytes", -1}, {"evaluations_since_best", 99},
      {"rng", 7},         {"stopped", nullptr}, {"loss_sum", Json()},  {"events_bytes", 18446744073709551615ull},
  };
  for (const auto& [name, value] : damages) {
    Json bad = good;
    bad[name] = value;
    write_file_atomic(file, std::string_view(bad.dump()));
    EXPECT_EQ(f.resume_error().find(file + ": '" + name + "' is "), 0u) << name << ": " << f.resume_error();
  }
  write_file_atomic(file, std::string_view(std::string(200'000, '[')));
  EXPECT_NE(f.resume_error().find("nested too deeply"), std::string::npos);
}

TEST(RunFolder, OpeningWhatIsNoRun) {
  const TempFolder temp;
  EXPECT_NE(message_of<IoError>([&] { RunFolder::open(temp / "nowhere", find_tiny); }).find("no run in"),
            std::string::npos);
  write_file_atomic(temp / "config.json", std::string_view("[1, 2"));
  EXPECT_EQ(message_of<IoError>([&] { RunFolder::open(temp.path(), find_tiny); }),
            temp / "config.json" + ": not the configuration of a run");
  write_file_atomic(temp / "config.json", std::string_view("{\"task\":\"tiny\",\"settings\":{\"epochs\":-3}}"));
  EXPECT_NE(message_of<IoError>([&] { RunFolder::open(temp.path(), find_tiny); }).find("--epochs"), std::string::npos);
  write_file_atomic(temp / "config.json", std::string_view("{\"task\":\"tiny\",\"settings\":{\"wings\":2}}"));
  EXPECT_NE(message_of<IoError>([&] { RunFolder::open(temp.path(), find_tiny); }).find("unknown setting 'wings'"),
            std::string::npos);
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  write_file_atomic(temp / "config.json",
                    std::string_view("{\"task\":\"tiny\",\"settings\":{\"epochs\":" + deep + "}}"));
  EXPECT_NE(message_of<IoError>([&] { RunFolder::open(temp.path(), find_tiny); }).find("nested too deeply"),
            std::string::npos);
  write_file_atomic(temp / "config.json", std::string_view("{\"task\":\"juggle\",\"settings\":{}}"));
  EXPECT_NE(message_of<IoError>([&] { RunFolder::open(temp.path()); }).find("unknown task 'juggle'"),
            std::string::npos);
}

TEST(RunFolder, OnlyOneProcessTrains) {
  Finished f;
  f.run.lock();
  RunFolder other = RunFolder::open(f.path, find_tiny);
  EXPECT_EQ(message_of<IoError>([&] { other.lock(); }),
            "another process is training in " + f.path + "; wait for it or stop it first");
}

TEST(RunFolder, LeftoversOfAKilledProcessGo) {
  Finished f;
  const std::string torn = f.path + "/checkpoints/00000035.tmp-999999999-0";  // beyond any process number
  fs::create_directory(torn);
  write_file_atomic(torn + "/model.safetensors", std::string_view("half"));
  EXPECT_EQ(f.run.checkpoints().back(), 28);
  f.run.lock();
  EXPECT_FALSE(fs::exists(torn));
}

TEST(RunFolder, AFullDiskLeavesTheLastCheckpoint) {
  Finished f;
  const auto before = f.run.checkpoints();
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{64, old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  TrainState state = f.result.state;
  state.step = 30;
  const AdamW optimizer(parameters_of(f.task));
  const std::string message = message_of<IoError>([&] { f.run.save(state, parameters_of(f.task), optimizer, 2); });
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(message, "cannot write " + f.run.checkpoint_path(30) +
                         "/model.safetensors: File too large; the last good checkpoint is " +
                         f.run.checkpoint_path(28));
  EXPECT_EQ(f.run.checkpoints(), before);
  EXPECT_EQ(f.resume_error(), "");
}

TEST(RunFolder, AnUnwritableFolderIsNamed) {
  if (::geteuid() == 0) GTEST_SKIP() << "root writes everywhere";
  Finished f;
  fs::permissions(f.path + "/checkpoints", fs::perms::owner_read | fs::perms::owner_exec);
  TrainState state = f.result.state;
  state.step = 30;
  const AdamW optimizer(parameters_of(f.task));
  EXPECT_NE(message_of<IoError>([&] { f.run.save(state, parameters_of(f.task), optimizer, 2); }).find("Permission"),
            std::string::npos);
  fs::permissions(f.path + "/checkpoints", fs::perms::owner_all);
}

TEST(RunFolder, WeightsByName) {
  Finished f;
  const auto model = parameters_of(f.task);
  EXPECT_EQ(f.run.load_weights(model, "last"), f.run.checkpoint_path(28) + "/model.safetensors");
  EXPECT_EQ(f.run.load_weights(model, "21"), f.run.checkpoint_path(21) + "/model.safetensors");
  EXPECT_EQ(f.run.load_weights(model, "best"), f.run.checkpoint_path(f.result.state.best_step) + "/model.safetensors");
  EXPECT_EQ(message_of<ConfigError>([&] { f.run.load_weights(model, "3"); }),
            "no weights '3' in " + f.path + "; there are: best, last, 21, 28");
  EXPECT_NE(message_of<ConfigError>([&] { f.run.load_weights(model, "average"); }).find("no averaged weights"),
            std::string::npos);
}

}  // namespace
}  // namespace qkv
