// Runs at any depth: found, told apart, removed and renamed with care.
#include "qkv/train/run_tree.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/io/file.h"
#include "qkv/train/run_folder.h"
#include "train/tiny_task.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using testing::message_of;
using testing::TempFolder;

void put(const std::string& path) {
  make_folders(fs::path(path).parent_path().string());
  write_file_atomic(path, std::string_view(R"({"settings": {}, "arguments": []})"));
}

void put_run(const std::string& path) {
  put(path + "/config.json");
  put(path + "/checkpoints/00000001/state.json");
}

/// A run, a comparison of two, a study with runs two folders down, one in a plain folder, and things that are none.
struct Tree {
  TempFolder temp;
  std::string root = temp / "runs";
  Tree() {
    put_run(root + "/alone");
    put(root + "/compare-reverse/compare.json");
    put_run(root + "/compare-reverse/none");
    put_run(root + "/compare-reverse/dot");
    put(root + "/study/study.json");
    put_run(root + "/study/rotary/reading");
    put_run(root + "/old/first");
    put_run(root + "/next.tmp-1-0");
    put(root + "/notes/todo.txt");
    fs::create_directory_symlink(root + "/alone", root + "/link");
    fs::create_directory_symlink(root, root + "/old/circle");
  }
};

TEST(RunTree, FindsRunsAtAnyDepthWithTheGroupTheyBelongTo) {
  const Tree t;
  std::vector<std::string> found;
  for (const FoundRun& run : find_runs(t.root)) {
    found.push_back(run.id + "|" + run.group);
    EXPECT_EQ(run.path, t.root + "/" + run.id);
  }
  EXPECT_EQ(found, (std::vector<std::string>{"alone|", "compare-reverse/dot|compare-reverse",
                                             "compare-reverse/none|compare-reverse", "old/first|",
                                             "study/rotary/reading|study"}));
  EXPECT_TRUE(find_runs(t.root + "/nowhere").empty());
  EXPECT_EQ(folder_kind(t.root + "/study"), FolderKind::study);
  EXPECT_EQ(folder_kind(t.root + "/notes"), FolderKind::other);
}

TEST(RunTree, SaysWhatAFolderIsThatIsNoRun) {
  const Tree t;
  const auto error = [](const std::string& path) { return message_of<IoError>([&] { RunFolder::open(path); }); };
  const std::string comparison = t.root + "/compare-reverse";
  EXPECT_EQ(error(comparison),
            comparison + " is a comparison; its runs: dot, none: give one, as in " + comparison + "/none");
  EXPECT_NE(error(t.root + "/study/").find("is a study; its runs: rotary/reading"), std::string::npos);
  EXPECT_NE(error(t.root + "/alnoe").find("(did you mean '" + t.root + "/alone'?)"), std::string::npos);
  EXPECT_NE(error(t.root + "/compare-revers").find("(did you mean '" + comparison + "'?)"), std::string::npos);
  EXPECT_NE(error(t.root + "/notes").find("no run in " + t.root + "/notes: there is no config.json"),
            std::string::npos);
}

TEST(RunTree, RemovesRunsComparisonsAndStudiesAndNothingElse) {
  const Tree t;
  for (const char* other : {"/notes", "/old", "", "/nowhere", "/compare-reverse/none/checkpoints", "/link"}) {
    EXPECT_THROW(remove_runs(t.root + other), IoError) << other;
  }
  EXPECT_TRUE(fs::exists(t.root + "/notes/todo.txt"));
  EXPECT_TRUE(fs::exists(t.root + "/alone/config.json"));
  put(t.root + "/study/pictures/a.png");
  EXPECT_NE(message_of<IoError>([&] { remove_runs(t.root + "/study"); }).find("pictures"), std::string::npos);
  fs::remove_all(t.root + "/study/pictures");
  for (const char* gone : {"/alone/", "/compare-reverse", "/study", "/old/first"}) {
    remove_runs(t.root + gone);
    EXPECT_FALSE(fs::exists(t.root + gone)) << gone;
  }
}

TEST(RunTree, RemovesNoFileThatIsNotOfARun) {
  const Tree t;
  for (const char* file :
       {"/alone/notes.txt", "/alone/checkpoints/00000001/notes.txt", "/alone/checkpoints/mine/x.json",
        "/study/rotary/notes.txt", "/compare-reverse/none/plan.md"}) {
    put(t.root + file);
    const std::string folder = t.root + std::string(file).substr(0, std::string(file).find('/', 1));
    const std::string why = message_of<IoError>([&] { remove_runs(folder); });
    EXPECT_NE(why.find("which is no part of it: it is left alone"), std::string::npos) << file << ": " << why;
    EXPECT_THROW(rename_runs(folder, "other"), IoError);
    EXPECT_TRUE(fs::exists(t.root + file));
    fs::remove(t.root + file);
  }
  // Other programs have a config.json too.
  const std::string record = t.root + "/web/config.json";
  for (const char* text : {R"({"name": "web"})", "[]", "no JSON"}) {
    put(t.root + "/web/users.json");
    write_file_atomic(record, std::string_view(text));
    const std::string why = message_of<IoError>([&] { remove_runs(t.root + "/web"); });
    EXPECT_EQ(why, record + " is not of a run that qkv made: " + t.root + "/web is left alone");
  }
  // What a killed process left goes along.
  put(t.root + "/alone/checkpoints/00000002.tmp-999999-0/model.safetensors");
  fs::copy_file(t.root + "/alone/config.json", t.root + "/alone/result.json.tmp-999999-0");
  put(t.root + "/compare-reverse/curves.svg");
  remove_runs(t.root + "/alone");
  remove_runs(t.root + "/compare-reverse");
}

TEST(RunTree, LeavesWhatIsBeingTrainedAlone) {
  const Tree t;
  {
    const auto training = lock_folder(t.root + "/compare-reverse/dot");
    EXPECT_NE(message_of<IoError>([&] { remove_runs(t.root + "/compare-reverse"); }).find("training in"),
              std::string::npos);
    EXPECT_THROW(rename_runs(t.root + "/compare-reverse", "other"), IoError);
    EXPECT_TRUE(fs::exists(t.root + "/compare-reverse/none/config.json"));
  }
  remove_runs(t.root + "/compare-reverse");
}

TEST(RunTree, RenamesInPlaceAndNeverOverSomethingElse) {
  const Tree t;
  EXPECT_EQ(rename_runs(t.root + "/alone/", "first"), t.root + "/first");
  EXPECT_TRUE(fs::exists(t.root + "/first/config.json"));
  EXPECT_EQ(rename_runs(t.root + "/compare-reverse", t.root + "/old/two"), t.root + "/old/two");
  EXPECT_NE(message_of<IoError>([&] { rename_runs(t.root + "/first", "notes"); }).find("is there already"),
            std::string::npos);
  EXPECT_NE(message_of<IoError>([&] { rename_runs(t.root + "/old/two/dot", "x"); }).find("is part of"),
            std::string::npos);
  for (const char* name : {"", "..", "x/"}) EXPECT_THROW(rename_runs(t.root + "/first", name), Error) << name;
  EXPECT_THROW(rename_runs(t.root + "/notes", "x"), IoError);
  // A name that is taken for what a killed process left would be cleared away.
  EXPECT_THROW(rename_runs(t.root + "/first", "x.tmp-999999-0"), ConfigError);
  EXPECT_THROW(claim_folder(t.root + "/x.tmp-999999-0/", kComparisonRecord, "{}"), IoError);
}

}  // namespace
}  // namespace qkv
