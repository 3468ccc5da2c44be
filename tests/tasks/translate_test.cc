// Task translate with both families: it learns, resumes to the same bits, decodes, aligns and reports odd data.
#include "qkv/tasks/translate/translate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/core/autograd.h"
#include "qkv/data/bleu.h"
#include "qkv/report/trace_maps.h"
#include "qkv/train/session.h"
#include "qkv/train/trainer.h"
#include "support/settings.h"

namespace qkv {
namespace {

using testing::Changes;
using testing::message_of;
using testing::TempFolder;

Settings small(const char* model, Changes changes = {}) {
  return testing::changed(testing::changed(translate_settings(), {{"model", model},
                                                                  {"generated-size", "400"},
                                                                  {"tokenizer", "word"},
                                                                  {"width", "32"},
                                                                  {"inner", "64"},
                                                                  {"heads", "2"},
                                                                  {"layers", "1"},
                                                                  {"embedding", "24"},
                                                                  {"hidden", "32"},
                                                                  {"kq", "16"},
                                                                  {"batch-tokens", "512"},
                                                                  {"dropout", "0.1"},
                                                                  {"schedule", "constant"},
                                                                  {"warmup", "10"},
                                                                  {"lr", "0.01"},
                                                                  {"epochs", "2"},
                                                                  {"average", "0"},
                                                                  {"eval-bleu", "false"}}),
                          changes);
}

std::vector<float> weights_of(Task& task) {
  std::vector<float> all;
  for (const NamedParameter& p : parameters_of(task)) {
    const std::vector<float> v = p.value.to_vector();
    all.insert(all.end(), v.begin(), v.end());
  }
  return all;
}

struct StopAfter final : TrainObserver {
  explicit StopAfter(int64_t n) : left(n) {}
  bool wants_stop() override { return --left <= 0; }
  int64_t left;
};

/// One trained Transformer, shared by the tests that only look at it.
Task& trained() {
  static const std::unique_ptr<Task> task = [] {
    const Settings s = small("transformer", {{"epochs", "6"}, {"beam", "3"}});
    auto made = make_translate(s, "");
    Trainer(*made, trainer_options(s)).run();
    return made;
  }();
  return *task;
}

TEST(Translate, BothFamiliesLearn) {
  for (const char* model : {"rnn", "transformer"}) {
    const Settings s = small(model);
    const auto task = make_translate(s, "");
    const double before = metric_of(task->validate(), "loss");
    const TrainResult result = Trainer(*task, trainer_options(s)).run();
    EXPECT_LT(metric_of(result.validation, "loss"), 0.7 * before) << model;
  }
}

TEST(Translate, EveryVariantOfTheTransformerTrains) {
  for (const Changes changes : {Changes{{"norm", "post"}, {"positions", "rotary"}, {"tying", "output"}},
                                Changes{{"positions", "learned"}, {"longest", "6"}, {"tying", "none"}},
                                Changes{{"joint", "false"}, {"positions", "alibi"}, {"normaliser", "entmax15"}},
                                Changes{{"attention", "scaled-dot"}, {"self-attention", "additive"}},
                                Changes{{"attention", "mean"}, {"self-attention", "synthesizer"}}}) {
    Settings s = small("transformer", {{"steps", "25"}});
    for (const auto& [name, value] : changes) s.set(name, value);
    const auto task = make_translate(s, "");
    const double before = metric_of(task->validate(), "loss");
    const TrainResult result = Trainer(*task, trainer_options(s)).run();
    EXPECT_LT(metric_of(result.validation, "loss"), 0.9 * before) << changes.begin()->second;
    const std::vector<std::string> inputs = task->examples(2);
    EXPECT_EQ(task->predict(inputs, {.beam = 2}).size(), 2u);
  }
}

TEST(Translate, ResumesToTheSameBitsWithAnyThreads) {
  for (const char* model : {"rnn", "transformer"}) {
    const Settings s =
        small(model, {{"steps", "9"}, {"tokenizer", "unigram"}, {"vocabulary", "200"}, {"sampling", "0.3"}});
    const TaskSpec& spec = find_task("translate");
    const TempFolder folder;
    const auto whole = make_translate(s, "");
    RunFolder whole_run = RunFolder::create(folder / "whole", spec, s, *whole);
    set_num_threads(2);
    Trainer(*whole, trainer_options(s), &whole_run).run();
    set_num_threads(1);
    const auto first = make_translate(s, "");
    RunFolder run = RunFolder::create(folder / "parts", spec, s, *first);
    StopAfter stop(4);
    EXPECT_TRUE(Trainer(*first, trainer_options(s), &run, &stop).run().interrupted);
    const auto second = RunFolder::open(folder / "parts").make_task();  // from its files alone
    Trainer trainer(*second, trainer_options(s), &run);
    trainer.resume();
    EXPECT_EQ(trainer.run().state.step, 9);
    EXPECT_EQ(weights_of(*second), weights_of(*whole)) << model;
    set_num_threads(0);
  }
}

TEST(Translate, FiguresAreWhatTheySay) {
  Task& task = trained();
  const NoGrad no_grad;
  const Evaluation e = task.evaluate("");
  const double loss = metric_of(e.metrics, "loss");
  EXPECT_NEAR(metric_of(e.metrics, "perplexity"), std::exp(loss), 1e-9 * std::exp(loss));
  EXPECT_GT(metric_of(e.metrics, "loss_per_word"), loss);  // a word may be several tokens, never less than one
  EXPECT_GE(metric_of(e.metrics, "bleu"), 0);
  ASSERT_EQ(e.notes.size(), 2u);
  EXPECT_NE(e.notes[0].find("BLEU = "), std::string::npos);
  EXPECT_NE(e.notes[1].find("tok:13a|smooth:exp"), std::string::npos);
  EXPECT_NE(e.notes[1].find("beam 3"), std::string::npos);
  EXPECT_FALSE(e.errors.empty());
  EXPECT_LE(e.errors.size(), 20u);
}

TEST(Translate, EvaluatesFilesInTheirOrder) {
  const TempFolder folder;
  Task& task = trained();
  const NoGrad no_grad;
  const std::vector<std::string> lines = task.examples(12);
  std::string source, target;
  std::vector<std::string> outputs;
  for (const auto& candidates : task.predict(lines, {.beam = 3, .length_penalty = 1})) {
    outputs.push_back(candidates.front().text);
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    source += lines[i] + "\n";
    target += outputs[i] + "\n";
  }
  write_file_atomic(folder / "a.de", std::string_view(source));
  write_file_atomic(folder / "a.en", std::string_view(target));
  // Compared with the task's own output, BLEU is perfect only if every line found its partner.
  const Evaluation e = task.evaluate(folder / "a.de," + (folder / "a.en"));
  EXPECT_NEAR(metric_of(e.metrics, "bleu"), 100, 1e-9);
  EXPECT_TRUE(e.errors.empty());
  write_file_atomic(folder / "a.en", std::string_view("one line\n"));
  const auto evaluate = [&] { task.evaluate(folder / "a.de," + (folder / "a.en")); };
  EXPECT_NE(message_of<IoError>(evaluate).find("has 12 lines"), std::string::npos);
}

TEST(Translate, CandidatesComeBestFirstWithAlignments) {
  Task& task = trained();
  const NoGrad no_grad;
  std::vector<std::string> lines = task.examples(3);
  lines.insert(lines.begin() + 1, "");  // nothing in, nothing out
  const auto all = task.predict(lines, {.beam = 4, .n_best = 3, .align = true});
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[1].front().text, "");
  EXPECT_EQ(all[1].front().alignment, "");
  for (const size_t i : {0, 2, 3}) {
    ASSERT_EQ(all[i].size(), 3u);
    EXPECT_GE(all[i][0].score, all[i][1].score);
    EXPECT_LT(all[i][0].score, 0);
    EXPECT_NE(all[i][0].text, all[i][1].text);
    const std::string& links = all[i][0].alignment;
    const auto words = [](const std::string& text) { return 1 + std::count(text.begin(), text.end(), ' '); };
    std::set<int64_t> aligned;
    for (size_t at = 0; at < links.size();) {
      size_t used = 0;
      const int64_t s = std::stoll(links.substr(at), &used);
      ASSERT_EQ(links[at + used], '-') << links;
      at += used + 1;
      const int64_t t = std::stoll(links.substr(at), &used);
      at += used + 1;
      EXPECT_LT(s, words(lines[i])) << links;
      aligned.insert(t);
    }
    EXPECT_EQ(static_cast<int64_t>(aligned.size()), words(all[i][0].text)) << links << "\n" << all[i][0].text;
  }
}

TEST(Translate, ExamplesAreDistinctAndSayWhy) {
  Task& task = trained();
  const NoGrad no_grad;
  const std::vector<std::string> inputs = task.examples(10);
  ASSERT_EQ(inputs.size(), 10u);
  std::set<std::string> reasons;
  for (const std::string& input : inputs) reasons.insert(task.about_example(input));
  EXPECT_EQ(reasons.size(), 10u);
  for (const char* why : {"nearly in order", "most out of order", "the longest", "the worst translation"}) {
    EXPECT_TRUE(reasons.contains(why)) << why;
  }
  EXPECT_EQ(task.about_example("nobody chose this"), "");
}

TEST(Translate, ManyHeadsAreSummedUpInOneMap) {
  Task& task = trained();
  const NoGrad no_grad;
  const TracedExample traced = task.trace(task.examples(1)[0]);
  const std::vector<HeatMap> maps = maps_of(traced);
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_EQ(maps[0].rows, static_cast<int64_t>(traced.target.size()));
  EXPECT_EQ(maps[0].columns, static_cast<int64_t>(traced.source.size()));
  EXPECT_EQ(maps[0].row_labels, traced.target);
  const std::vector<HeatMap> heads = maps_of(traced, {.site = "cross"});
  ASSERT_EQ(heads.size(), 2u);
  for (size_t i = 0; i < maps[0].values.size(); ++i) {
    EXPECT_NEAR(maps[0].values[i], (heads[0].values[i] + heads[1].values[i]) / 2, 1e-6);
  }
  EXPECT_THROW(task.trace(""), ConfigError);
}

TEST(Translate, OddLinesAreCountedWithFileAndLine) {
  const TempFolder folder;
  const auto write = [&](const char* name, std::string text) {
    write_file_atomic(folder / name, std::string_view(text));
  };
  std::string source, target;
  for (int i = 0; i < 30; ++i) {
    source += "ein kleiner Hund\n";
    target += "a small dog\n";
  }
  std::string many;
  for (int i = 0; i < 60; ++i) many += "wau ";
  write("train.de", source + "\n" + "ein \xff Hund\n" + many + "\n");
  write("train.en", target + "empty before\n" + "a dog\n" + "woof\n");
  write("val.de", "ein Hund\n");
  write("val.en", "a dog\n");
  Settings s = small("transformer", {{"tokenizer", "word"}, {"max-tokens", "40"}});
  s.set("data", folder.path());
  const auto task = make_translate(s, "");
  ASSERT_EQ(task->notes().size(), 1u);
  const std::string note = task->notes()[0];
  EXPECT_NE(note.find("skipped 3 lines"), std::string::npos) << note;
  EXPECT_NE(note.find("train.de:31 empty"), std::string::npos) << note;
  EXPECT_NE(note.find("train.de:32 not UTF-8"), std::string::npos) << note;
  EXPECT_NE(note.find("train.de:33 too long"), std::string::npos) << note;
}

TEST(Translate, WrongChoicesAreRefused) {
  const auto message = [](const char* model, Changes changes) {
    return message_of<ConfigError>([&] { make_translate(small(model, changes), ""); });
  };
  EXPECT_NE(message("transformer", {{"teacher-forcing", "0.5"}}).find("--model rnn"), std::string::npos);
  EXPECT_NE(message("transformer", {{"attention", "none"}}).find("'none'"), std::string::npos);
  EXPECT_NE(message("transformer", {{"heads", "5"}}).find("heads"), std::string::npos);
  EXPECT_NE(message("transformer", {{"positions", "rotary"}, {"self-attention", "dot"}}).find("rotary"),
            std::string::npos);
  EXPECT_NE(message("rnn", {{"train-src", "a.de"}}).find("must be given together"), std::string::npos);
  EXPECT_NE(message("rnn", {{"train-src", "a.de"}, {"train-tgt", "a.en"}}).find("--val-src"), std::string::npos);
  EXPECT_THROW(make_translate(small("rnn", {{"data", "/nowhere"}}), ""), IoError);
}

TEST(Translate, EachFamilyHasItsDefaults) {
  Settings s = translate_settings();
  EXPECT_EQ(s.get_text("attention"), "scaled-dot");
  s.set("layers", "2");
  s.set("model", "transformer");
  EXPECT_EQ(s.get_text("attention"), "multi-head");
  EXPECT_EQ(s.get_integer("layers"), 2);  // given by the user
}

}  // namespace
}  // namespace qkv
