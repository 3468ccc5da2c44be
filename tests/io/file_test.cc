// Files and folders appear complete or not at all, and every failure names the path and the reason.
#include "qkv/io/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <vector>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/io/folder.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::TempFolder;

// Files may not grow past `bytes` while this lives: a full disk without root.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    old_handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    ::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_{};
  void (*old_handler_)(int) = nullptr;
};

TEST(File, RoundTripKeepsEveryByte) {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 100000; ++i) text += static_cast<char>(i * 7);
  write_file_atomic(folder / "a", text);
  EXPECT_EQ(read_text(folder / "a"), text);
  write_file_atomic(folder / "a", "short");
  EXPECT_EQ(read_text(folder / "a"), "short");
  write_file_atomic(folder / "a", "");
  EXPECT_EQ(read_text(folder / "a"), "");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(File, ReadErrorsNamePathAndReason) {
  const TempFolder folder;
  EXPECT_EQ(message_of<IoError>([&] { read_file(folder / "none"); }),
            "cannot read " + (folder / "none") + ": No such file or directory");
  EXPECT_EQ(message_of<IoError>([&] { read_file(folder.path()); }),
            "cannot read " + folder.path() + ": Is a directory");
  write_file_atomic(folder / "big", std::string(1000, 'x'));
  EXPECT_EQ(message_of<IoError>([&] { read_file(folder / "big", 999); }),
            "cannot read " + (folder / "big") + ": 1000 bytes, more than the 999 allowed");
  EXPECT_EQ(read_file(folder / "big", 1000).size(), 1000u);
  EXPECT_NE(message_of<IoError>([&] { read_file("/dev/zero", 100000); }), "");
  EXPECT_EQ(message_of<IoError>([&] { read_file("/dev/zero"); }), "cannot read /dev/zero: larger than 268435456 bytes");
}

TEST(File, WriteErrorsLeaveNothingBehind) {
  const TempFolder folder;
  EXPECT_EQ(message_of<IoError>([&] { write_file_atomic(folder / "no/such", "x"); }),
            "cannot write " + (folder / "no/such") + ": No such file or directory");
  EXPECT_EQ(message_of<IoError>([&] { write_file_atomic(folder.path(), "x"); }),
            "cannot write " + folder.path() + ": Is a directory");
  EXPECT_NE(message_of<IoError>([&] { write_file_atomic("", "x"); }), "");
  EXPECT_EQ(message_of<IoError>([&] { write_file_atomic("/dev/full", "x"); }),
            "cannot write /dev/full: No space left on device");
  EXPECT_EQ(folder.entries(), 0);
  write_file_atomic(folder / "kept", "old");
  {
    const FileSizeLimit limit(1000);
    EXPECT_EQ(message_of<IoError>([&] { write_file_atomic(folder / "kept", std::string(2000, 'x')); }),
              "cannot write " + (folder / "kept") + ": File too large");
  }
  EXPECT_EQ(read_text(folder / "kept"), "old");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(File, PipesBlockNobody) {
  const TempFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(message_of<IoError>([&] { read_file(pipe); }),
            "cannot read " + pipe + ": it is a pipe or a device, not a file");
  EXPECT_EQ(message_of<IoError>([&] { write_file_atomic(pipe, "x"); }),
            "cannot write " + pipe + ": it is a pipe that nobody reads");
  EXPECT_NE(message_of<IoError>([&] { AppendFile{pipe}; }), "");
  std::filesystem::create_symlink("/dev/zero", folder / "zero");
  EXPECT_NE(message_of<IoError>([&] { read_file(folder / "zero"); }), "");
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  write_file_atomic(pipe, "into it");
  char got[8] = {};
  EXPECT_EQ(::read(reader, got, sizeof got), 7);
  EXPECT_STREQ(got, "into it");
  ::close(reader);
}

TEST(File, WhatIsThereStays) {
  const TempFolder folder;
  AtomicFile first(folder / "a"), second(folder / "a");
  first.write("first");
  second.write("second");
  EXPECT_TRUE(first.commit_new());
  EXPECT_FALSE(second.commit_new());
  EXPECT_EQ(read_text(folder / "a"), "first");

  std::filesystem::create_directory(folder / "empty");
  for (const char* name : {"new", "empty"}) {
    AtomicFolder one(folder / name), other(folder / name);
    one.write("f", "one");
    other.write("f", "other");
    EXPECT_TRUE(one.commit_new());
    EXPECT_FALSE(other.commit_new());
    EXPECT_EQ(read_text(folder / name + "/f"), "one");
  }
  AtomicFolder onto_file(folder / "a");
  EXPECT_FALSE(onto_file.commit_new());
}

TEST(File, WhatAKilledProcessLeftGoesWithTheNextOne) {
  const TempFolder folder;
  std::ofstream(folder / "a.tmp-999999999-0") << "half";  // beyond any process number
  std::ofstream(folder / "b.tmp-999999999-0") << "half";
  std::ofstream(folder / ("a.tmp-" + std::to_string(::getppid()) + "-0")) << "still written";
  write_file_atomic(folder / "a", "whole");
  EXPECT_FALSE(std::filesystem::exists(folder / "a.tmp-999999999-0"));
  EXPECT_EQ(folder.entries(), 3);
  AtomicFolder(folder / "b").commit();
  EXPECT_FALSE(std::filesystem::exists(folder / "b.tmp-999999999-0"));
}

TEST(File, NoOutputHasATemporaryName) {
  const TempFolder t;
  for (const char* name : {"run.tmp-999999-0", "run.tmp-1-12/", "./x.npy.tmp-999999-0"}) {
    EXPECT_NE(message_of<IoError>([&] { AtomicFolder(t / name); }).find("temporary"), std::string::npos) << name;
    EXPECT_THROW(write_file_atomic(t / name, std::string_view("x")), IoError) << name;
  }
  EXPECT_NO_THROW(write_file_atomic(t / "x.tmp-1", std::string_view("x")));
}

TEST(File, PartsOfAFile) {
  const TempFolder folder;
  write_file_atomic(folder / "a", "0123456789");
  EXPECT_EQ(read_part(folder / "a", 3, 4), "3456");
  EXPECT_EQ(read_part(folder / "a", 8, 100), "89");
  EXPECT_EQ(read_part(folder / "a", 100, 4), "");
}

TEST(File, UncommittedFileDisappears) {
  const TempFolder folder;
  {
    AtomicFile file(folder / "a");
    file.write("half");
    EXPECT_EQ(folder.entries(), 1);
    EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  }
  EXPECT_EQ(folder.entries(), 0);
}

TEST(File, KeepsLinksModesAndDevices) {
  const TempFolder folder;
  write_file_atomic(folder / "target", "old");
  ASSERT_EQ(::chmod((folder / "target").c_str(), 0640), 0);
  std::filesystem::create_symlink("target", folder / "link");
  write_file_atomic(folder / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read_text(folder / "target"), "new");
  struct stat info;
  ASSERT_EQ(::stat((folder / "target").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777u, 0640u);
  write_file_atomic("/dev/null", "x");
  ASSERT_EQ(::stat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
}

TEST(File, LongNamesWork) {
  const TempFolder folder;
  const std::string name(255, 'n');
  write_file_atomic(folder / name, "x");
  EXPECT_EQ(read_text(folder / name), "x");
}

TEST(Folder, AppearsWholeAndReplacesWhole) {
  const TempFolder folder;
  {
    AtomicFolder step(folder / "100");
    step.write("a", "one");
    make_folders(step.file("sub"));
    step.write("sub/b", "two");
    EXPECT_FALSE(std::filesystem::exists(folder / "100"));
    step.commit();
  }
  EXPECT_EQ(read_text(folder / "100/sub/b"), "two");
  {
    AtomicFolder step(folder / "100/");
    step.write("c", "three");
    step.commit();
  }
  EXPECT_EQ(read_text(folder / "100/c"), "three");
  EXPECT_FALSE(std::filesystem::exists(folder / "100/a"));
  EXPECT_EQ(folder.entries(), 1);
}

TEST(Folder, FailureKeepsTheOldOne) {
  const TempFolder folder;
  {
    AtomicFolder step(folder / "100");
    step.write("a", "old");
    step.commit();
  }
  {
    const FileSizeLimit limit(10);
    const std::string message = message_of<IoError>([&] {
      AtomicFolder step(folder / "100");
      step.write("a", "new");
      step.write("b", std::string(100, 'x'));
      step.commit();
    });
    EXPECT_EQ(message, "cannot write " + (folder / "100/b") + ": File too large");
  }
  EXPECT_EQ(read_text(folder / "100/a"), "old");
  EXPECT_EQ(folder.entries(), 1);
  write_file_atomic(folder / "file", "x");
  EXPECT_NE(message_of<IoError>([&] { AtomicFolder(folder / "file").commit(); }), "");
  EXPECT_EQ(folder.entries(), 2);
}

TEST(Folder, LeftoversOfKilledProcessesAreRemoved) {
  const TempFolder folder;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    AtomicFolder step(folder / "100");
    step.write("a", "half");
    ::_exit(0);  // as if killed: no destructor runs
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(folder.entries(), 1);
  write_file_atomic(folder / "x.tmp-notes", "mine");
  std::ofstream(folder / ("y.tmp-" + std::to_string(::getppid()) + "-0")) << "of a living process";
  remove_leftovers(folder.path());
  EXPECT_EQ(folder.entries(), 2);
  EXPECT_TRUE(std::filesystem::exists(folder / "x.tmp-notes"));
}

TEST(AppendFile, ContinuesWhereTheCheckpointLeftIt) {
  const TempFolder folder;
  uint64_t kept = 0;
  {
    AppendFile log(folder / "log");
    log.append("one\n");
    kept = log.size();
    log.append("two\n");
    log.sync();
  }
  EXPECT_EQ(read_text(folder / "log"), "one\ntwo\n");
  {
    AppendFile log(folder / "log", kept);
    log.append("three\n");
  }
  EXPECT_EQ(read_text(folder / "log"), "one\nthree\n");
  EXPECT_EQ(message_of<IoError>([&] { AppendFile(folder / "log", 99); }),
            "cannot continue " + (folder / "log") + ": it holds 10 bytes, expected 99");
  AppendFile log(folder / "log", 4);
  {
    const FileSizeLimit limit(6);
    EXPECT_NE(message_of<IoError>([&] { log.append("abcdef"); }), "");
  }
  EXPECT_EQ(read_text(folder / "log"), "one\n");
  log.append("go\n");
  EXPECT_EQ(read_text(folder / "log"), "one\ngo\n");
}

TEST(Tree, MakeAndRemove) {
  const TempFolder folder;
  make_folders(folder / "a/b/c/");
  make_folders(folder / "a/b/c");
  write_file_atomic(folder / "a/b/c/f", "x");
  EXPECT_NE(message_of<IoError>([&] { make_folders(folder / "a/b/c/f"); }), "");
  EXPECT_NE(message_of<IoError>([&] { make_folders(folder / "a/b/c/f/g"); }), "");
  remove_tree(folder / "a");
  remove_tree(folder / "a");
  EXPECT_EQ(folder.entries(), 0);
}

TEST(Tree, RemovesALinkAndLeavesWhatItNames) {
  const TempFolder folder;
  make_folders(folder / "kept/inner");
  write_file_atomic(folder / "kept/inner/f", "x");
  make_folders(folder / "a");
  std::filesystem::create_directory_symlink(folder / "kept", folder / "a/link");
  remove_tree(folder / "a");
  EXPECT_EQ(folder.entries(), 1);
  EXPECT_EQ(read_text(folder / "kept/inner/f"), "x");
}

TEST(Tree, IsSeenFromBelow) {
  const TempFolder folder;
  make_folders(folder / "a/b");
  write_file_atomic(folder / "a/b/f", "x");
  std::filesystem::create_directory_symlink(folder / "a", folder / "a/b/link");
  std::vector<std::string> seen;
  EXPECT_EQ(for_each_below(folder / "a", [&](const std::string& path, mode_t) { seen.push_back(path); }), 0);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen.back(), folder / "a/b");
  EXPECT_EQ(for_each_below(folder / "none", [](const std::string&, mode_t) {}), ENOENT);
}

}  // namespace
}  // namespace qkv
