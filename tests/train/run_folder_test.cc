// Run folders: created whole, opened without trust, pruned, and clear about every kind of damage.
#include "qkv/train/run_folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/io/json.h"
#include "qkv/io/parameters_file.h"
#include "qkv/train/run_tree.h"
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
    return message_of<IoError>([&] {
      TinyTask fresh(settings);
      RunFolder again = RunFolder::open(path, find_tiny);
      Trainer(fresh, trainer_options(settings), &again).resume();
    });
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
            "cannot start a run in " + f.path + ": it holds a run; continue it with 'qkv train --resume " + f.path +
                "' or choose another --out");
  const TempFolder study;
  write_file_atomic(study / kStudyRecord, std::string_view("{}"));
  EXPECT_EQ(message_of<IoError>([&] { RunFolder::create(study.path(), tiny_spec(), f.settings, f.task); }),
            "cannot start a run in " + study.path() + ": it holds a study; continue it with 'qkv study --resume " +
                study.path() + "' or choose another --out");
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
  const std::string offer = "; remove " + last + " to continue from step 21";
  fs::remove(last + "/CHECKSUMS");  // as in a run of 0.1
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

TEST(RunFolder, AFileFarLargerThanItsModelIsNotRead) {
  if (sizeof(size_t) == 4) GTEST_SKIP() << "files there are in memory";
  Finished f;
  const std::string last = f.run.checkpoint_path(28);
  for (const char* name : {"/optimizer.safetensors", "/model.safetensors"}) {
    fs::resize_file(last + name, uint64_t{1} << 40);
    EXPECT_EQ(f.resume_error().find("cannot read " + last + name + ": 1099511627776 bytes, more than the "), 0u)
        << f.resume_error();
  }
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

TEST(RunFolder, EveryChangedByteOfACheckpointIsNoticed) {
  Finished f;
  const std::string last = f.run.checkpoint_path(28);
  EXPECT_EQ(f.resume_error(), "");
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "state.json", "CHECKSUMS"}) {
    const std::string path = last + "/" + name, good = read_text(path);
    for (size_t i = 0; i < good.size(); i += 1 + good.size() / 97) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 1);
      write_file_atomic(path, std::string_view(bad));
      EXPECT_EQ(f.resume_error().find(last + "/"), 0u) << name << " byte " << i << ": " << f.resume_error();
    }
    write_file_atomic(path, std::string_view(good));
  }
  fs::remove(last + "/CHECKSUMS");
  EXPECT_EQ(f.resume_error(), "");
}

TEST(RunFolder, WeightsThatAreNotFiniteAreNamed) {
  Finished f;
  const std::string model = f.run.checkpoint_path(28) + "/model.safetensors";
  fs::remove(f.run.checkpoint_path(28) + "/CHECKSUMS");
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    Tensor weight = Tensor::zeros({2, 6});
    weight.f32()[7] = static_cast<float>(bad);
    save_parameters(model, {{"weight", weight}, {"bias", Tensor::zeros({2})}});
    const std::string message = message_of<IoError>([&] { f.run.load_weights(parameters_of(f.task), "last"); });
    EXPECT_EQ(message.find(model + ": tensor 'weight' holds numbers that are not finite"), 0u) << message;
  }
}

// Both processes found nothing there; while one built its folder, the other trained.
TEST(RunFolder, OfTwoThatStartOneWins) {
  Finished f;
  const std::string path = f.temp / "other";
  std::optional<RunFolder> first;
  TinyTask slow(f.settings);
  slow.on_save_assets = [&] { first.emplace(RunFolder::create(path, tiny_spec(), f.settings, f.task)); };
  EXPECT_NE(message_of<IoError>([&] { RunFolder::create(path, tiny_spec(), f.settings, slow); }).find("it holds a run"),
            std::string::npos);
  ASSERT_TRUE(first.has_value());
  EXPECT_TRUE(fs::exists(path + "/config.json"));
  EXPECT_EQ(f.temp.entries(), 2);
  RunFolder third = RunFolder::open(path, find_tiny);
  EXPECT_NE(message_of<IoError>([&] { third.lock(); }).find("another process is training"), std::string::npos);
  first.reset();
  third.lock();
}

TEST(RunFolder, ARefusedResumeChangesNothing) {
  Finished f;
  const std::string config = read_text(f.path + "/config.json");
  f.run.save_average(parameters_of(f.task), true);
  fs::resize_file(f.run.checkpoint_path(28) + "/optimizer.safetensors", 100);
  RunFolder again = RunFolder::open(f.path, find_tiny);
  again.change("epochs", "9");
  TinyTask fresh(again.settings());
  Trainer trainer(fresh, trainer_options(again.settings()), &again);
  EXPECT_NE(message_of<IoError>([&] { trainer.resume(); }), "");
  EXPECT_EQ(read_text(f.path + "/config.json"), config);
  EXPECT_TRUE(fs::exists(f.path + "/checkpoints/average/model.safetensors"));
}

TEST(RunFolder, DamageBeyondTheCheckpointIsCutOff) {
  Finished f;
  const auto history = f.run.history().size();
  const std::string file = f.path + "/metrics.jsonl";
  const std::string good = read_text(file);
  write_file_atomic(file, std::string_view(good + "{\"kind\": torn\n\xff\xff\n[[[[\n"));
  std::filesystem::resize_file(file, uint64_t{1} << 40);  // a hole: nobody could read so much
  EXPECT_EQ(f.run.history().size(), history);
  EXPECT_EQ(f.resume_error(), "");
  TinyTask fresh(f.settings);
  Trainer trainer(fresh, trainer_options(f.settings), &f.run);
  trainer.resume();
  trainer.run();
  EXPECT_EQ(read_text(file), good);
  std::string bad = good;
  bad[bad.find("\"step\"")] = 'X';
  write_file_atomic(file, std::string_view(bad));
  EXPECT_NE(f.resume_error().find("damaged line at byte "), std::string::npos) << f.resume_error();
}

TEST(RunFolder, APipeInPlaceOfAFileBlocksNobody) {
  for (const char* name : {"config.json", "metrics.jsonl", "checkpoints/00000028/model.safetensors",
                           "checkpoints/00000028/state.json", "checkpoints/00000028/CHECKSUMS"}) {
    Finished f;
    fs::remove(f.path + "/" + name);
    ASSERT_EQ(::mkfifo((f.path + "/" + name).c_str(), 0600), 0);
    EXPECT_NE(f.resume_error().find(std::string(name) + ": it is a pipe or a device"), std::string::npos)
        << f.resume_error();
  }
  Finished f;
  fs::remove(f.path + "/metrics.jsonl");
  ASSERT_EQ(::mkfifo((f.path + "/metrics.jsonl").c_str(), 0600), 0);
  EXPECT_NE(message_of<IoError>([&] { MetricsLog(f.path, 0, 0); }), "");
}

TEST(RunFolder, WhatContinuesDoesNotWriteThroughLinks) {
  for (const char* name : {"result.json", "report.html", "checkpoints", "checkpoints/00000028"}) {
    Finished f;
    const std::string elsewhere = f.temp / "elsewhere";
    fs::create_directory(elsewhere);
    if (fs::exists(f.path + "/" + name)) fs::rename(f.path + "/" + name, elsewhere + "/it");
    fs::create_symlink(elsewhere + "/it", f.path + "/" + name);
    const std::string said = message_of<IoError>([&] { RunFolder::open(f.path, find_tiny).lock(); });
    EXPECT_NE(said.find(std::string(name) + " is a link"), std::string::npos) << said;
  }
}

TEST(RunFolder, NamesThatJsonCannotHoldAreRefusedAtOnce) {
  Finished f;
  EXPECT_NE(message_of<ConfigError>([&] { RunFolder::refuse_existing(f.temp / "r\xff"); }).find("not UTF-8"),
            std::string::npos);
  Settings s = f.settings;
  s.text("data", "d\xfe", "a path");
  EXPECT_NE(message_of<ConfigError>([&] { RunFolder::create(f.temp / "x", tiny_spec(), s, f.task); }).find("--data"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(f.temp / "x"));
}

TEST(MetricsLog, InfiniteFiguresComeBack) {
  const TempFolder temp;
  const double infinity = std::numeric_limits<double>::infinity();
  EvaluationRecord r;
  r.step = 3;
  r.validation = {{"loss", 800.0}, {"perplexity", infinity}};
  MetricsLog(temp.path(), 0, 0).add(r);
  const auto read = MetricsLog::evaluations(temp.path(), 1 << 20);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].validation, r.validation);
  const auto old = MetricsLog::parse(  // as 0.1 wrote it
      "{\"kind\":\"evaluation\",\"step\":3,\"epoch\":1,\"train_loss\":1,\"lr\":1,\"seconds\":1,"
      "\"tokens_per_second\":1,\"validation\":{\"perplexity\":null}}\n",
      "m");
  EXPECT_TRUE(std::isnan(old.at(0).validation.at(0).second));
}

TEST(MetricsLog, IsReadInParts) {
  const TempFolder temp;
  EXPECT_EQ(MetricsLog::part(temp.path(), 0).next, 0);
  MetricsLog log(temp.path(), 0, 0);
  for (int64_t step = 1; step <= 20000; ++step) log.add(StepRecord{step, 1, 1, 1});
  AppendFile(temp / "metrics.jsonl", log.metrics_bytes()).append("not JSON\n" + std::string(3 << 20, 'x'));
  size_t records = 0;
  int64_t from = 0;
  for (MetricsPart part{{}, 0, true}; part.more; from = part.next) {
    part = MetricsLog::part(temp.path(), from);
    ASSERT_GE(part.next, from);
    records += part.records.size();
  }
  EXPECT_EQ(records, 20000u);
  EXPECT_EQ(MetricsLog::part(temp.path(), from + 1000000000).records.at(0).at("step"), 1);
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
            "no weights '3' in " + f.path + "; available: best, last, 21, 28");
  EXPECT_NE(message_of<ConfigError>([&] { f.run.load_weights(model, "average"); }).find("no averaged weights"),
            std::string::npos);
}

}  // namespace
}  // namespace qkv
