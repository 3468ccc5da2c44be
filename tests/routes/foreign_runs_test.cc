// Runs that came from someone else: what their configuration and their links name is not handed out.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "io/temp_folder.h"
#include "qkv/base/budget.h"
#include "qkv/io/file.h"
#include "qkv/routes/model_store.h"
#include "qkv/routes/router.h"
#include "qkv/train/run_folder.h"
#include "qkv/train/session.h"

namespace qkv::routes {
namespace {

namespace fs = std::filesystem;

class ForeignRuns : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<testing::TempFolder>();
    const TaskSpec& spec = find_task("text");
    Settings s = spec.settings();
    for (const auto& [name, value] : {std::pair{"layers", "1"},
                                      {"heads", "1"},
                                      {"width", "8"},
                                      {"generated-size", "100"},
                                      {"steps", "1"},
                                      {"warmup", "0"}}) {
      s.set(name, value);
    }
    const auto task = spec.make(s, "");
    RunFolder run = RunFolder::create(*folder_ / "own", spec, s, *task);
    run_session(run, *task);
    std::string text;
    for (int i = 0; i < 100; ++i) text += "a secret line\n";
    write_file_atomic(*secrets_ / "secret.txt", text);
    fs::create_symlink(*secrets_ / "secret.txt", *secrets_ / "link.txt");
    ASSERT_EQ(::mkfifo((*secrets_ / "pipe").c_str(), 0600), 0);
  }
  static void TearDownTestSuite() { folder_.reset(); }

  /// A copy of the run whose configuration names this as its data; its id.
  static std::string run_with_data(const std::string& data) {
    static int copies = 0;
    const std::string name = "run" + std::to_string(++copies), path = *folder_ / name;
    fs::copy(*folder_ / "own", path, fs::copy_options::recursive);
    replace(path + "/config.json", R"("data": "")", R"("data": ")" + data + '"');
    return name;
  }
  /// 200, or the status it is refused with, within the time and memory of a request.
  static int opened(ModelStore& store, const std::string& id) {
    const Budget budget(std::chrono::seconds(10), 384 << 20);
    const BudgetScope scope(&budget);
    try {
      return store.open(id, "")->model->examples(1).empty() ? 0 : 200;
    } catch (const RouteError& e) {
      return e.status();
    } catch (const IoError& e) {
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
      return 422;
    }
  }

  static void replace(const std::string& file, const std::string& from, const std::string& to) {
    std::string text = read_text(file);
    text.replace(text.find(from), from.size(), to);
    write_file_atomic(file, text);
  }

  static std::unique_ptr<testing::TempFolder> folder_, secrets_;
};
std::unique_ptr<testing::TempFolder> ForeignRuns::folder_;
std::unique_ptr<testing::TempFolder> ForeignRuns::secrets_ = std::make_unique<testing::TempFolder>();

TEST_F(ForeignRuns, DataThatDoNotEndAreNotRead) {
  ModelStore store({}, folder_->path());
  EXPECT_EQ(opened(store, "own"), 200);
  const std::string endless = *secrets_ / "endless.txt";
  write_file_atomic(endless, std::string_view("a line\n"));
  fs::resize_file(endless, uint64_t{8} << 30);
  for (const std::string& data : {std::string("/dev/zero"), *secrets_ / "pipe", endless}) {
    EXPECT_EQ(opened(store, run_with_data(data)), 422) << data;
  }
  EXPECT_EQ(opened(store, run_with_data(*secrets_ / "secret.txt")), 200);  // the server's user asks
}

TEST_F(ForeignRuns, OthersSeeNoDataButThoseTheyMay) {
  ModelStore store({}, folder_->path());
  store.show_to_others({});
  EXPECT_EQ(opened(store, "own"), 200);
  for (const char* name : {"/secret.txt", "/link.txt", "/./secret.txt", ""}) {
    EXPECT_EQ(opened(store, run_with_data(secrets_->path() + name)), 403) << name;
  }
  ModelStore allowed({}, folder_->path());
  allowed.show_to_others({{"secrets", fs::canonical(secrets_->path())}});
  EXPECT_EQ(opened(allowed, run_with_data(*secrets_ / "link.txt")), 200);
  EXPECT_EQ(opened(allowed, run_with_data("/etc/passwd")), 403);
  EXPECT_EQ(opened(allowed, run_with_data(secrets_->path() + "/../../etc/passwd")), 403);
}

TEST_F(ForeignRuns, WeightsThatFillTheMemoryAreNotRead) {
  const std::string id = run_with_data("");
  for (const auto& step : fs::directory_iterator(*folder_ / (id + "/checkpoints"))) {
    fs::resize_file(step.path() / "model.safetensors", uint64_t{8} << 30);
  }
  ModelStore store({}, folder_->path());
  EXPECT_EQ(opened(store, id), 422);
}

TEST_F(ForeignRuns, AModelLargerThanItsWeightsIsNotMade) {
  const std::string run = *folder_ / run_with_data("");
  replace(run + "/config.json", R"("width": 8)", R"("width": 4096)");
  replace(run + "/config.json", R"("layers": 1)", R"("layers": 2)");
  try {
    RunFolder::open(run).make_task();
    FAIL() << "a model of 1.6 GB was made for weights of a few KB";
  } catch (const IoError& e) {
    EXPECT_NE(std::string(e.what()).find("config.json: a model of these settings is larger"), std::string::npos);
  }
}

TEST_F(ForeignRuns, OthersDoNotSeeRunsThatHoldLinks) {
  const std::string id = run_with_data(""), metrics = *folder_ / (id + "/metrics.jsonl");
  fs::remove(metrics);
  fs::create_symlink(*secrets_ / "secret.txt", metrics);
  ModelStore store({}, folder_->path());
  EXPECT_EQ(store.find(id).id, id);
  store.show_to_others({});
  EXPECT_THROW(store.find(id), RouteError);
  EXPECT_EQ(store.find("own").id, "own");
}

}  // namespace
}  // namespace qkv::routes
