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

}  // namespace
}  // namespace qkv
