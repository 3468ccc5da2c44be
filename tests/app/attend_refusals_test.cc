// Bad input of the attend command: one line, the right exit code, and no file left.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "app/run_program.h"
#include "qkv/io/npy.h"

namespace qkv::app {
namespace {

using qkv::testing::expect_refused;
using qkv::testing::TempFolder;

// A folder with small arrays, and the command line that uses them unless overridden.
class AttendRefusals : public ::testing::Test {
 protected:
  void SetUp() override {
    floats("q", {1, 2, 3, 4});
    floats("k", {1, 2, 5, 4});
    floats("v", {1, 2, 5, 4});
  }

  std::string file(const std::string& name) const { return folder_ / name; }
  std::string floats(const std::string& name, const Shape& shape, float value = 1) {
    const std::vector<float> values(static_cast<size_t>(shape.numel()), value);
    save_npy(file(name), shape, values);
    return file(name);
  }
  std::string ints(const std::string& name, const std::vector<int64_t>& values) {
    save_npy(file(name), {static_cast<int64_t>(values.size())}, values);
    return file(name);
  }
  std::string text(const std::string& name, const std::string& content) {
    write_file_atomic(file(name), content);
    return file(name);
  }

  // Later options replace earlier ones of the same name.
  void refused(const std::vector<std::string>& more, int code, const std::string& part) {
    std::vector<std::string> arguments = {"attend"};
    std::vector<std::string> options = {"--q", file("q"), "--k", file("k"), "--v", file("v"), "--out", file("y.npy")};
    for (size_t i = 0; i < options.size(); i += 2) {
      bool replaced = false;
      for (const std::string& word : more) replaced = replaced || word == options[i];
      if (!replaced) arguments.insert(arguments.end(), {options[i], options[i + 1]});
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    const int files = folder_.entries();
    expect_refused(arguments, code, part);
    EXPECT_EQ(folder_.entries(), files) << "left a file: " << part;
    EXPECT_FALSE(std::filesystem::exists(file("y.npy")));
  }

  TempFolder folder_;
};

TEST_F(AttendRefusals, ShapesThatDoNotFit) {
  refused({"--k", floats("a", {1, 2, 5, 3})}, 1, "head sizes differ");
  refused({"--k", floats("b", {2, 2, 5, 4})}, 1, "batch sizes differ");
  refused({"--v", floats("c", {1, 2, 6, 4})}, 1, "keys and values differ");
  refused({"--k", floats("d", {1, 3, 5, 4}), "--v", file("d")}, 1, "multiple of key heads");
  refused({"--q", floats("e", {3, 4})}, 1, "expected three arrays");
  refused({"--q", floats("f", {1, 3, 8})}, 1, "expected three arrays");
  refused({"--heads", "3"}, 1, "--heads is 3");
  refused({"--mask", floats("g", {3, 6})}, 1, "does not broadcast");
  refused({"--mask", floats("h", {4, 3, 5})}, 1, "does not broadcast");
  floats("q3", {2, 3, 3, 4});
  floats("k3", {2, 3, 5, 4});
  refused({"--q", file("q3"), "--k", file("k3"), "--v", file("k3"), "--mask", floats("s", {2, 3, 5})}, 1,
          "reshape it to [2,1,3,5]");
  refused({"--past-k", floats("i", {1, 2, 7, 3}), "--past-v", floats("j", {1, 2, 7, 4})}, 1, "past-k");
  refused({"--past-k", floats("l", {1, 2, 7, 4}), "--past-v", floats("m", {1, 2, 6, 4})}, 1, "keys and values differ");
  refused({"--valid-lens", ints("n", {1, 2})}, 1, "--valid-lens has shape [2]");
  refused({"--valid-lens", ints("o", {6})}, 1, "holds 6");
  refused({"--kv-lens", ints("p", {-1})}, 1, "holds -1");
  refused({"--grad-out", floats("r", {1, 2, 3, 5}), "--grad-q", file("dq.npy")}, 1, "grad-out=[1,2,3,5]");
}

TEST_F(AttendRefusals, FlatArraysAndHeads) {
  const std::string q = floats("fq", {1, 3, 8}), k = floats("fk", {1, 5, 8});
  refused({"--q", q, "--k", k, "--v", k, "--heads", "3"}, 1, "cannot be cut into 3 heads");
  refused({"--q", q, "--k", k, "--v", k, "--kv-heads", "2"}, 2, "needs --heads");
}

TEST_F(AttendRefusals, EmptyArrays) {
  refused({"--q", floats("a", {1, 2, 0, 4})}, 1, "q is empty");
  refused({"--k", floats("b", {1, 2, 0, 4}), "--v", file("b")}, 1, "k is empty");
  refused({"--v", floats("c", {1, 2, 5, 0})}, 1, "v is empty");
  refused({"--mask", floats("d", {3, 0})}, 1, "is empty");
  refused({"--kv-lens", ints("e", {})}, 1, "is empty");
}

TEST_F(AttendRefusals, FilesThatAreNoArrays) {
  refused({"--q", file("missing.npy")}, 1, "No such file");
  refused({"--q", folder_.path()}, 1, "Is a directory");
  refused({"--q", text("empty", "")}, 1, "the file is empty");
  refused({"--q", text("words", "these are only words")}, 1, "not a .npy file");
  const std::string good = read_text(file("q"));
  refused({"--q", text("cut", good.substr(0, good.size() - 5))}, 1, "truncated");
  refused({"--q", text("cut_header", good.substr(0, 40))}, 1, "truncated");
  refused({"--q", text("long", good + "x")}, 1, "bytes after the array");
  std::string huge = good;
  huge[8] = huge[9] = '\xff';
  refused({"--q", text("huge_header", huge)}, 1, "huge_header");
}

TEST_F(AttendRefusals, DtypesThatDoNotFit) {
  std::string object = read_text(file("q"));
  object.replace(object.find("<f4"), 3, "|O8");
  refused({"--q", text("object", object)}, 1, "object dtype");
  const std::string lens = ints("lens", {3});
  refused({"--q", lens}, 1, "int64 array; expected float16");
  refused({"--mask", lens}, 1, "int64 mask");
  refused({"--kv-lens", floats("f", {1})}, 1, "lengths must be integers");
  refused({"--mask", floats("nan", {3, 5}, std::nanf(""))}, 1, "holds NaN");
  refused({"--mask", floats("inf", {3, 5}, HUGE_VALF)}, 1, "holds +inf");
}

TEST_F(AttendRefusals, OutputsThatCannotBeWritten) {
  refused({"--out", folder_ / "no/such/folder/y.npy"}, 1, "No such file");
  refused({"--scores", folder_.path()}, 1, "Is a directory");
  refused({"--present-k", "/dev/full"}, 1, "No space left");
  refused({"--map", folder_ / "no/m.png"}, 1, "No such file");
  if (::getuid() != 0) refused({"--stats", "/proc/version"}, 1, "cannot write");
}

TEST_F(AttendRefusals, NumbersBeyondFloatAndOneFileTwice) {
  refused({"--softcap", "1e300"}, 2, "--softcap must be 0 or a number between");
  refused({"--softcap", "1e-300"}, 2, "--softcap must be 0 or a number between");
  refused({"--scale", "1e39"}, 2, "--scale must be a finite number");
  refused({"--beta", "-1e39"}, 2, "--beta must be a finite number");
  refused({"--out", folder_ / "y.npy", "--scores", folder_ / "./y.npy"}, 2, "two results cannot share one file");
  refused({"--out", "none.npy", "--scores", "./none.npy"}, 2, "two results cannot share one file");
  text("old.npy", "old");
  std::filesystem::create_symlink("old.npy", folder_ / "link.npy");
  refused({"--out", folder_ / "old.npy", "--scores", folder_ / "link.npy"}, 2, "two results cannot share one file");
}

TEST_F(AttendRefusals, NonsenseOptions) {
  refused({"--scale", "1", "--beta", "1"}, 2, "give one of them");
  refused({"--scale", "much"}, 2, "--scale");
  refused({"--scale", "nan"}, 2, "finite");
  refused({"--beta", "1e999"}, 2, "--beta");
  refused({"--softcap", "-1"}, 2, "--softcap");
  refused({"--normaliser", "softplus"}, 2, "softplus");
  refused({"--score", "cosine"}, 2, "cosine");
  refused({"--heads", "0"}, 2, "--heads");
  refused({"--heads", "-2"}, 2, "--heads");
  refused({"--heads", "2.5"}, 2, "--heads");
  refused({"--window-left", "-2"}, 2, "--window-left");
  refused({"--threads", "0"}, 2, "--threads");
  refused({"--scores-stage", "weights"}, 2, "needs --scores");
  refused({"--scores", file("s"), "--scores-stage", "cooked"}, 2, "cooked");
  refused({"--past-k", file("k")}, 2, "must be given together");
  refused({"--past-k", file("k"), "--past-v", file("v"), "--kv-lens", ints("lens", {3})}, 2, "cannot be combined");
  refused({"--grad-q", file("dq")}, 2, "--grad-out");
  refused({"--grad-out", file("q")}, 2, "--grad-q");
  refused({"--map", file("m.jpg")}, 2, ".png or .svg");
  refused({"--scores", file("y.npy")}, 2, "share one file");
  refused({"--out", ""}, 2, "needs a file name");
  refused({"--out", "o.csv"}, 2, "--out o.csv: arrays are written as .npy files");
  refused({"--colour"}, 2, "--colour");
  refused({"stray"}, 2, "stray");
  refused({"--out"}, 2, "--out");
  expect_refused({"attend"}, 2, "--q is required");
  expect_refused({"attention"}, 2, "unknown command");
}

TEST_F(AttendRefusals, AnOlderResultSurvivesAFailure) {
  const std::string old = text("old.npy", "precious");
  expect_refused(
      {"attend", "--q", file("q"), "--k", file("k"), "--v", file("v"), "--out", old, "--present-k", "/dev/full"}, 1,
      "No space left");
  EXPECT_EQ(read_text(old), "precious");
}

}  // namespace
}  // namespace qkv::app
