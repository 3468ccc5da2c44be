// A run on processes that do not see its folder.
#include "qkv/train/shared_run.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "dist/threads_as_processes.h"
#include "io/temp_folder.h"
#include "qkv/train/session.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

TEST(SharedRun, WhatIsReceivedIsForItsUserAlone) {
  const testing::TempFolder folder;
  fs::create_directory(folder / "tmp");
  ASSERT_EQ(::setenv("TMPDIR", (folder / "tmp").c_str(), 1), 0);
  const TaskSpec& spec = find_task("text");
  Settings s = spec.settings();
  for (const auto& [name, value] :
       {std::pair{"layers", "1"}, {"heads", "1"}, {"width", "8"}, {"generated-size", "100"}})
    s.set(name, value);
  const auto task = spec.make(s, "");
  const RunFolder run = RunFolder::create(folder / "run", spec, s, *task);
  testing::as_processes(2, [&](Processes& p) {
    if (p.rank() == 0) return share_run(p, run, *task);
    const SharedRun received = receive_run(p);
    int folders = 0;
    for (const auto& entry : fs::directory_iterator(folder / "tmp")) {
      ++folders;
      EXPECT_EQ(entry.status().permissions(), fs::perms::owner_all) << entry.path();
    }
    EXPECT_EQ(folders, 1);
  });
  ::unsetenv("TMPDIR");
  EXPECT_TRUE(fs::is_empty(folder / "tmp"));
}

}  // namespace
}  // namespace qkv
