// Task images: it learns shapes, splits without overlap, classifies files, traces pictures and reports what it saw.
#include "qkv/tasks/images/images.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "io/temp_folder.h"
#include "qkv/base/base64.h"
#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/data/images.h"
#include "qkv/io/json.h"
#include "qkv/report/report.h"
#include "qkv/report/trace_maps.h"
#include "qkv/tasks/images/data.h"
#include "qkv/tasks/images/report.h"
#include "qkv/train/session.h"
#include "qkv/train/trainer.h"
#include "qkv/view/canvas.h"
#include "qkv/view/picture.h"
#include "support/settings.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::TempFolder;

Settings small(testing::Changes changes = {}) {
  return testing::changed(testing::changed(images_settings(), {{"data", "shapes"},
                                                               {"train-size", "300"},
                                                               {"validation-size", "50"},
                                                               {"patch", "7"},
                                                               {"width", "32"},
                                                               {"layers", "2"},
                                                               {"heads", "2"},
                                                               {"batch", "25"},
                                                               {"epochs", "2"},
                                                               {"warmup", "10"}}),
                          changes);
}

Drawing drawing_of(const Raster& raster) {
  return {static_cast<double>(raster.columns), static_cast<double>(raster.rows),
          [raster](Canvas& canvas) {
            canvas.image({0, 0, static_cast<double>(raster.columns), static_cast<double>(raster.rows)},
                         {static_cast<int>(raster.rows), static_cast<int>(raster.columns), raster.colors, {}});
          },
          ""};
}

Bytes pgm_of(const ImageSet& set, int64_t i) {
  std::string text = "P5\n" + std::to_string(set.width) + " " + std::to_string(set.height) + "\n255\n";
  text.append(set[i].begin(), set[i].end());
  const auto bytes = bytes_of(text);
  return {bytes.begin(), bytes.end()};
}
Bytes png_of(const ImageSet& set, int64_t i) { return to_png(drawing_of(raster_of(bitmap_of(set, i))), 1); }

TEST(Images, LearnsShapes) {
  const Settings s = small({{"train-size", "1500"},
                            {"validation-size", "200"},
                            {"epochs", "14"},
                            {"flip", "false"},
                            {"erase", "0"},
                            {"shift", "1"}});
  const auto task = make_images(s, "");
  EXPECT_NEAR(metric_of(task->validate(), "loss"), std::log(8.0), 0.5);
  const TrainResult result = Trainer(*task, trainer_options(s)).run();
  EXPECT_GE(metric_of(result.best, "accuracy"), 0.5) << "a guess is 0.125";

  // What validate() says is what predict() does, and evaluate() on the test set is near it.
  const Evaluation own = task->evaluate(""), test = task->evaluate("test");
  EXPECT_EQ(metric_of(own.metrics, "accuracy"), metric_of(task->validate(), "accuracy"));
  EXPECT_NEAR(metric_of(test.metrics, "accuracy"), metric_of(own.metrics, "accuracy"), 0.15);
  EXPECT_TRUE(std::isnan(metric_of(own.metrics, "mirrored_accuracy"))) << "only where mirror images were trained on";
  ASSERT_EQ(own.breakdowns.size(), 1u);
  EXPECT_EQ(own.breakdowns[0].labels[0], "circle");
  double right = 0, all = 0;
  for (size_t k = 0; k < 8; ++k) {
    right += own.breakdowns[0].y[k] * static_cast<double>(own.breakdowns[0].counts[k]);
    all += static_cast<double>(own.breakdowns[0].counts[k]);
  }
  EXPECT_EQ(all, 200);
  EXPECT_NEAR(right / all, metric_of(own.metrics, "accuracy"), 1e-9);
}

TEST(Images, SplitIsTheSameForEverySeedAndWithoutOverlap) {
  const TempFolder folder;
  const ImageData shapes = generate_shapes({.seed = 3, .train = 120, .test = 16});
  for (int64_t i = 0; i < shapes.train.size(); ++i) {
    const std::string label = folder / shapes.classes[static_cast<size_t>(shapes.train.labels[static_cast<size_t>(i)])];
    std::filesystem::create_directories(label);
    write_file_atomic(label + "/" + std::to_string(i) + ".png", png_of(shapes.train, i));
  }
  const Settings one = small({{"data", folder.path().c_str()}, {"train-size", "0"}, {"validation-size", "20"}});
  Settings two = one;
  two.set("seed", "2");
  ImageTaskData a(one, ""), b(two, "");
  EXPECT_EQ(a.validation().pixels, b.validation().pixels);
  EXPECT_EQ(a.validation().size(), 20);
  EXPECT_EQ(a.train().size() + a.validation().size() + a.test().size(), 120);
  std::set<std::string> seen;
  for (const ImageSet* set : {&a.train(), &a.validation(), &a.test()}) {
    for (int64_t i = 0; i < set->size(); ++i) seen.emplace((*set)[i].begin(), (*set)[i].end());
  }
  EXPECT_EQ(seen.size(), 120u);
  // The same folder given for evaluation is used whole, with the labels the model knows.
  const ImageSet other = a.read_other(folder.path());
  EXPECT_EQ(other.size(), 120);
}

TEST(Images, ReadsEveryKindOfInputAlike) {
  const TempFolder folder;
  const auto task = make_images(small(), "");
  ImageTaskData data(small(), "");
  const Bytes png = png_of(data.validation(), 7);
  write_file_atomic(folder / "seven.png", png);
  const std::vector<std::string> inputs{
      "val:7", folder / "seven.png", "data:image/png;base64," + encode_base64(png),
      "data:image/x-portable-anymap;base64," + encode_base64(pgm_of(data.validation(), 7))};
  const auto answers = task->predict(inputs, {.n_best = 3});
  ASSERT_EQ(answers.size(), 4u);
  for (const auto& a : answers) {
    ASSERT_EQ(a.size(), 3u);
    EXPECT_EQ(a[0].text, answers[0][0].text);
    ASSERT_TRUE(a[0].probability.has_value());
    EXPECT_EQ(*a[0].probability, *answers[0][0].probability);
    EXPECT_NEAR(a[0].score, std::log(*a[0].probability), 1e-12);
    EXPECT_GE(*a[0].probability, *a[1].probability);
    EXPECT_GE(*a[1].probability, *a[2].probability);
  }
}

TEST(Images, RefusesWhatItCannotRead) {
  const TempFolder folder;
  const auto task = make_images(small(), "");
  const auto error = [&](const std::string& input) { return message_of<Error>([&] { task->trace(input); }); };
  EXPECT_EQ(error("val:50"), "no image val:50: they are numbered val:0 to val:49");
  EXPECT_EQ(error("val:x"), "no image val:x: they are numbered val:0 to val:49");
  EXPECT_NE(error("nowhere.png").find("nowhere.png"), std::string::npos);
  EXPECT_NE(error("data:image/gif;base64,AA").find("data:image/png;base64,"), std::string::npos);
  EXPECT_NE(error("data:image/x-portable-anymap;base64,UDUK").find("P5"), std::string::npos);
  EXPECT_NE(error("data:image/png;base64,A*A").find("base64"), std::string::npos);
  const Raster wide{.rows = 4, .columns = 5, .colors = std::vector<Rgb>(20)};
  write_file_atomic(folder / "wide.png", to_png(drawing_of(wide), 1));
  EXPECT_EQ(error(folder / "wide.png"), "cannot use " + (folder / "wide.png") + ": it is 4x5, the model reads 28x28");
  EXPECT_NE(message_of<ConfigError>([] {
              make_images(small({{"patch", "5"}}), "");
            }).find("patches of 5"),
            std::string::npos);
  EXPECT_NE(message_of<ConfigError>([] {
              make_images(small({{"train-size", "4"}}), "");
            }).find("only 4 training"),
            std::string::npos);
  EXPECT_NE(message_of<IoError>([] {
              make_images(small({{"data", "no/such/folder"}}), "");
            }).find("no/such/folder"),
            std::string::npos);
}

TEST(Images, CutsAnImageOfAnySizeIntoAFewPatchesWhenNotToldHow) {
  const auto patches_of = [](int rows, int columns) {
    const TempFolder folder;
    for (const char* name : {"/a/", "/b/"}) {
      make_folders(folder.path() + name);
      for (int i = 0; i < 5; ++i) {
        const Raster grey{
            .rows = rows, .columns = columns, .colors = std::vector<Rgb>(static_cast<size_t>(rows * columns))};
        write_file_atomic(folder.path() + name + std::to_string(i) + ".png", to_png(drawing_of(grey), 1));
      }
    }
    const auto task = make_images(small({{"data", folder.path().c_str()}, {"train-size", "0"}, {"patch", "0"}}), "");
    const TracedExample e = task->trace("val:0");
    return std::pair(e.picture->patch_rows, e.picture->patch_columns);
  };
  EXPECT_EQ(patches_of(28, 28), std::pair(int64_t{4}, int64_t{4}));
  EXPECT_EQ(patches_of(32, 64), std::pair(int64_t{4}, int64_t{8}));
  EXPECT_EQ(patches_of(96, 96), std::pair(int64_t{6}, int64_t{6}));
  EXPECT_EQ(patches_of(11, 11), std::pair(int64_t{11}, int64_t{11}));
}

TEST(Images, TracesThePictureItSaw) {
  for (const char* pooling : {"class", "mean"}) {
    const auto task = make_images(small({{"pooling", pooling}}), "");
    ImageTaskData data(small(), "");
    const TracedExample e = task->trace("val:3");
    const int64_t first = std::string(pooling) == "class" ? 1 : 0;
    ASSERT_TRUE(e.picture);
    EXPECT_EQ(e.picture->pixels, std::vector<uint8_t>(data.validation()[3].begin(), data.validation()[3].end()));
    EXPECT_EQ(e.picture->patch_rows * e.picture->patch_columns, 16);
    EXPECT_EQ(e.picture->first_patch, first);
    EXPECT_EQ(static_cast<int64_t>(e.source.size()), first + 16);
    ASSERT_EQ(e.attention.size(), 2u);
    EXPECT_EQ(e.attention[1].Lq, first + 16);
    const std::vector<HeatMap> maps = maps_of(e);
    ASSERT_EQ(maps.size(), 1u + 2 * 2);
    for (const HeatMap& map : maps) {
      double sum = 0;
      for (const float w : map.values) sum += w;
      EXPECT_LE(sum, 1 + 1e-5) << map.title;
      EXPECT_GT(sum, first == 1 ? 0.2 : 1 - 1e-5) << map.title;
    }
  }
}

TEST(Images, OpenedAgainItNeedsNoData) {
  const TempFolder folder;
  const Settings s = small();
  const auto task = make_images(s, "");
  task->save_assets(folder.path());
  ImageTaskData data(s, "");
  write_file_atomic(folder / "p.png", png_of(data.validation(), 0));
  Settings gone = s;
  gone.set("data", "no/such/folder");
  const auto again = make_images(gone, folder.path());
  const std::vector<std::string> input{folder / "p.png"};
  EXPECT_EQ(again->predict(input, {})[0][0].text, task->predict(input, {})[0][0].text);
  write_file_atomic(folder / "images.json", std::string_view("{\"source\": 3"));
  EXPECT_EQ(message_of<IoError>([&] { make_images(s, folder.path()); }),
            folder / "images.json" + ": not the format of a run's images");
  for (const char* damage : {R"("channels": -1)", R"("height": 0)", R"("width": 1e308)", R"("width": 4294967296)",
                             R"("deviation": [0])", R"("mean": [1e9])", R"("classes": ["a", 3])"}) {
    task->save_assets(folder.path());
    Json json = read_json(folder / "images.json", "images");
    const Json change = parse_json("{" + std::string(damage) + "}", {.where = "change"});
    json.update(change);
    write_file_atomic(folder / "images.json", std::string_view(json.dump()));
    const std::string message = message_of<IoError>([&] { make_images(s, folder.path()); });
    EXPECT_NE(message.find("'" + change.items().begin().key() + "'"), std::string::npos) << damage << message;
  }
}

TEST(Images, ABatchIsTheSameForAnyNumberOfThreads) {
  const int before = num_threads();
  std::vector<double> losses;
  for (const char* cutmix : {"0", "1"}) {
    for (const int threads : {1, 2}) {
      set_num_threads(threads);
      const auto task = make_images(small({{"cutmix", cutmix}}), "");
      Context ctx(1, 0);
      losses.push_back(task->train_batch(3, 1, ctx).loss.item());
    }
  }
  set_num_threads(before);
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(losses[2], losses[3]);
  EXPECT_NE(losses[0], losses[2]) << "mixed images are other images";
}

TEST(Classified, FiguresAreWhatTheySay) {
  Classified c;
  c.classes = 3;
  c.labels = {0, 1, 2, 0};
  c.probabilities = {0.7f, 0.2f, 0.1f, 0.5f, 0.4f, 0.1f, 0.9f, 0.05f, 0.05f, 0.1f, 0.3f, 0.6f};
  EXPECT_EQ(c.accuracy(), 0.25);
  EXPECT_NEAR(c.loss(), -(std::log(0.7) + std::log(0.4) + std::log(0.05) + std::log(0.1)) / 4, 1e-6);
  EXPECT_EQ(c.confusion(), (std::vector<std::vector<int64_t>>{{1, 0, 1}, {1, 0, 0}, {1, 0, 0}}));
  EXPECT_EQ(c.confident_mistakes(2), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(c.confident_mistakes(9).size(), 3u);
}

TEST(Classified, PositionsAreComparedByAngle) {
  PositionGrid grid{.rows = 1, .columns = 3, .first_patch = 1};
  grid.positions = Tensor::from({9, 9, 2, 0, 0, 5, -1, 0}, {4, 2});
  EXPECT_EQ(position_similarities(grid), (std::vector<float>{1, 0, -1, 0, 1, 0, -1, 0, 1}));
}

TEST(Images, ReportShowsConfusionMistakesAndPlaces) {
  const auto task = make_images(small(), "");
  Report report("t");
  for (const Section& section : task->report_sections()) report.add(section);
  const std::string html = report.html();
  for (const char* part : {"Confusion", "The most confident mistakes", "What it learnt about places", "<svg"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace qkv
