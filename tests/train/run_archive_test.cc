// A run as one file: packed small enough to publish, unpacked without trust, and the same run afterwards.
#include "qkv/train/run_archive.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/io/checksum.h"
#include "qkv/io/tar.h"
#include "qkv/train/session.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using testing::message_of;
using testing::TempFolder;

/// A reversal run with a checkpoint after each of its steps.
struct Trained {
  TempFolder temp;
  std::string path = temp / "small";
  Trained() {
    const TaskSpec& spec = find_task("reverse");
    Settings settings = spec.settings();
    for (const auto& [name, value] : {std::pair("train-size", "256"),
                                      {"validation-size", "32"},
                                      {"hidden", "8"},
                                      {"max-length", "4"},
                                      {"epochs", "1"},
                                      {"batch", "16"},
                                      {"checkpoint-every", "1"},
                                      {"eval-every", "4"},
                                      {"keep", "100"}})
      settings.set(name, value);
    OpenedRun run = open_or_create(path, spec, settings);
    run_session(run.folder, *run.task);
  }
  std::string answer(const std::string& run) const {
    const std::vector<std::string> input{"abc"};
    return load_run(run, "").task->predict(input, {}).at(0).at(0).text;
  }
};

std::string refusal(const Bytes& archive, const std::string& root) {
  return message_of<IoError>([&] { unpack_run(archive, "a.tar", root); });
}

TEST(RunArchive, UnpackedItIsTheSameRun) {
  const Trained t;
  const std::string there = unpack_run(pack_run(t.path, "small"), "a.tar", t.temp / "runs");
  EXPECT_EQ(there, t.temp / "runs/small");
  EXPECT_EQ(RunFolder::open(there).checkpoints(), RunFolder::open(t.path).checkpoints());
  EXPECT_EQ(t.answer(there), t.answer(t.path));
  EXPECT_EQ(unpack_run(pack_run(t.path, "small"), "a.tar", t.temp / "runs"), t.temp / "runs/small-2");
  // It can be continued: what a training needs came along.
  EXPECT_TRUE(fs::exists(there + "/checkpoints/00000016/optimizer.safetensors"));
}

TEST(RunArchive, PublishedItIsSmallAndWhole) {
  const Trained t;
  const Bytes archive = pack_run(t.path, "small", {.checkpoints = 5, .optimizer = false, .examples = {"ab", "ba"}});
  const std::string there = unpack_run(archive, "a.tar", t.temp / "runs");
  const std::vector<int64_t> steps = RunFolder::open(there).checkpoints();
  EXPECT_EQ(steps.size(), 5u);
  EXPECT_EQ(steps.back(), 16);
  EXPECT_EQ(t.answer(there), t.answer(t.path));
  for (const int64_t step : steps) {
    const std::string folder = RunFolder::open(there).checkpoint_path(step);
    EXPECT_FALSE(fs::exists(folder + "/optimizer.safetensors"));
    EXPECT_NO_THROW(Checksums::load(folder).check_all());
  }
  EXPECT_EQ(packed_examples(there), (std::vector<std::string>{"ab", "ba"}));
  EXPECT_TRUE(packed_examples(t.path).empty());
}

TEST(RunArchive, PacksNothingThatALinkNames) {
  const Trained t;
  write_file_atomic(t.temp / "secret", std::string_view("secret"));
  for (const char* name : {"/data.txt", "/metrics.jsonl", "/checkpoints/00000016/state.json", "/checkpoints/average"}) {
    const std::string path = t.path + name;
    if (fs::exists(path)) fs::rename(path, t.temp / "kept");
    fs::create_symlink(t.temp / "secret", path);
    for (const char* recordings : {"", "secret"}) {
      const ArchiveOptions options{.recordings = *recordings == 0 ? "" : t.temp / recordings};
      EXPECT_NE(message_of<IoError>([&] { pack_run(t.path, "small", options); }).find("is a link"), std::string::npos)
          << name;
    }
    fs::remove(path);
    if (fs::exists(t.temp / "kept")) fs::rename(t.temp / "kept", path);
  }
  EXPECT_NO_THROW(pack_run(t.path, "small"));
}

TEST(RunArchive, TakesNothingButARun) {
  const Trained t;
  const std::string root = t.temp / "runs";
  const auto with = [&](const std::string& name, std::string_view text) {
    TarWriter tar;
    tar.add("run/config.json", read_text(t.path + "/config.json"));
    tar.add(name, text);
    return tar.finish();
  };
  for (const char* name :
       {"run/evil.sh", "run/.profile", "other/config.json", "config.json", "run/checkpoints/x/state.json",
        "run/checkpoints/00000001/evil", "run/deep/er/config.json"}) {
    EXPECT_NE(refusal(with(name, "x"), root).find("is no file of a run"), std::string::npos) << name;
  }
  EXPECT_NE(refusal(with("run/CHECKSUMS", "damaged"), root), "");
  TarWriter broken;
  broken.add("run/config.json", "{ this is not JSON");
  const std::string why = refusal(broken.finish(), root);
  EXPECT_NE(why.find("a.tar: run/config.json"), std::string::npos) << why;
  TarWriter empty;
  EXPECT_NE(refusal(empty.finish(), root).find("no run"), std::string::npos);
  EXPECT_TRUE(!fs::exists(root) || fs::is_empty(root)) << "something was left behind";
}

// A file of a terabyte takes no room on the disk when nothing was written into it.
TEST(RunArchive, OfAFileOnlyTheArchiveIsRead) {
  if (sizeof(size_t) == 4) GTEST_SKIP() << "files there are in memory";
  const Trained t;
  const std::string file = t.temp / "a.tar", root = t.temp / "runs";
  const auto unpack = [&] {
    fs::resize_file(file, uint64_t{1} << 40);
    return unpack_run(*ByteSource::of_file(file), "a.tar", root);
  };
  write_file_atomic(file, pack_run(t.path, "small"));
  EXPECT_EQ(t.answer(unpack()), t.answer(t.path));
  write_file_atomic(file, std::string_view());
  EXPECT_EQ(message_of<IoError>(unpack), "a.tar: it holds no run");
  TarWriter many;
  for (int i = 0; i <= 10000; ++i) many.add("run/a.json", std::string_view());
  EXPECT_EQ(refusal(many.finish(), root), "a.tar: more than 10000 files and folders");
}

}  // namespace
}  // namespace qkv
