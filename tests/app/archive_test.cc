// Runs that come as one file, and the site that is made of them, as a user asks for them.
#include <gtest/gtest.h>

#include <filesystem>

#include "app/run_program.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using testing::expect_refused;
using testing::run_program;
using testing::TempFolder;

TEST(Archives, ARunPackedByTarIsAddedAndOpens) {
  const TempFolder folder;
  const std::string run = folder / "small";
  ASSERT_EQ(run_program({"train", "reverse", "--train-size", "256", "--validation-size", "32", "--hidden", "8",
                         "--max-length", "4", "--epochs", "1", "--out", run})
                .code,
            0);
  ASSERT_EQ(std::system(("tar cf " + (folder / "a.tar") + " -C " + folder.path() + " small").c_str()), 0);
  const auto added = run_program({"runs", "add", folder / "a.tar", "--root", folder / "runs"});
  ASSERT_EQ(added.code, 0) << added.err;
  EXPECT_NE(added.out.find("is now " + (folder / "runs/small")), std::string::npos) << added.out;
  const auto there = run_program({"predict", folder / "runs/small", "abcd"});
  EXPECT_EQ(there.code, 0) << there.err;
  EXPECT_EQ(there.out, run_program({"predict", run, "abcd"}).out);
  write_file_atomic(folder / "b.tar", std::string_view("no archive at all"));
  expect_refused({"runs", "add", folder / "b.tar", "--root", folder / "runs"}, 1, "b.tar: not an uncompressed .tar");
}

TEST(Archives, ASiteNeedsThePageForTheBrowser) {
  const TempFolder folder;
  expect_refused({"site", "--out", folder / "site"}, 1, "use './run site', which builds it");
  expect_refused({"site", "--page", folder.path(), "--out", folder / "site"}, 1, "has no index.html");
  expect_refused({"site"}, 2, "--out DIR or --single FILE.html");
  expect_refused({"site", "--out", folder / "site", "--single", folder / "site.html"}, 2, "cannot be combined");
  expect_refused({"site", "--single", folder / "site.html"}, 1, "use './run site', which builds it");
  EXPECT_EQ(folder.entries(), 0);
}

TEST(Archives, ARunCannotMakeItsReaderReadADevice) {
  const TempFolder folder;
  const std::string run = folder / "run", config = run + "/config.json";
  const std::vector<std::string> train{"train",   "text", "--layers", "1", "--heads",          "1",   "--width", "8",
                                       "--steps", "1",    "--warmup", "0", "--generated-size", "100", "--out",   run};
  ASSERT_EQ(run_program(train).code, 0);
  std::string text = read_text(config);
  const std::string none = R"("data": "")";
  write_file_atomic(config, text.replace(text.find(none), none.size(), R"("data": "/dev/null")"));
  expect_refused({"eval", run}, 1, "cannot read /dev/null: it is a pipe or a device");
  expect_refused({"train", "text", "--data", "/dev/null"}, 1, "too few");  // the user names it, and it is read
}

TEST(Archives, ASiteReplacesNothingButASite) {
  const TempFolder folder;
  const std::string page = folder / "page", site = folder / "site";
  fs::create_directories(page);
  for (const char* name : {"index.html", "app.js", "app.css", "worker.js", "offline.js", "qkv.wasm", "licences.txt"}) {
    write_file_atomic(page + "/" + name, std::string_view("page"));
  }
  write_file_atomic(page + "/single.html", std::string_view("page"));
  fs::create_directories(site + "/.git");
  write_file_atomic(site + "/site.json", std::string_view("{}"));
  write_file_atomic(site + "/.git/config", std::string_view("kept"));
  expect_refused({"site", "--page", page, "--out", site}, 1, ".git/config is no part of it");
  EXPECT_EQ(read_text(site + "/.git/config"), "kept");
  fs::remove_all(site + "/.git");
  write_file_atomic(site + "/index.html", std::string_view("a page of its own"));
  expect_refused({"site", "--page", page, "--out", site}, 1, "site.json is no part of it");
  write_file_atomic(site + "/site.json", std::string_view(R"({"qkv": "0.1.0", "runs": [{"file": "runs/a.tar"}]})"));
  fs::create_directories(site + "/runs");
  write_file_atomic(site + "/runs/a.tar", std::string_view("listed"));
  write_file_atomic(site + "/runs/b.tar", std::string_view("a backup"));
  expect_refused({"site", "--page", page, "--out", site}, 1, "runs/b.tar is no part of it");
  fs::remove(site + "/runs/b.tar");
  const auto made = run_program({"site", "--page", page, "--out", site});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(run_program({"site", "--page", page, "--out", site, "runs/none"}).code, 1);
  EXPECT_TRUE(fs::exists(site + "/runs/reverse.tar"));
}

}  // namespace
}  // namespace qkv
