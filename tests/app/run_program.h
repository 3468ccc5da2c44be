// Runs the built program as a user would, and keeps what it said.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "io/temp_folder.h"
#include "qkv/io/file.h"
#include "qkv/view/text.h"
#include "support/paths.h"

namespace qkv::testing {

struct ProgramRun {
  int code = -1;
  std::string out, err;
};

inline std::string shell_quoted(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

inline ProgramRun run_program(const std::vector<std::string>& arguments, const std::string& input = "") {
  const TempFolder folder;
  write_file_atomic(folder / "in", std::string_view(input));
  std::string command = shell_quoted(program());
  for (const std::string& argument : arguments) command += " " + shell_quoted(argument);
  command +=
      " >" + shell_quoted(folder / "out") + " 2>" + shell_quoted(folder / "err") + " <" + shell_quoted(folder / "in");
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(folder / "out"), read_text(folder / "err")};
}

/// Exit code as expected, nothing on stdout, one line on stderr that says `part`.
inline void expect_refused(const std::vector<std::string>& arguments, int code, const std::string& part) {
  const ProgramRun run = run_program(arguments);
  std::string line;
  for (const std::string& argument : arguments) line += " " + argument;
  EXPECT_EQ(run.code, code) << line << "\n" << run.err;
  EXPECT_EQ(run.out, "") << line;
  EXPECT_EQ(run.err.rfind("qkv: ", 0), 0u) << line << "\n" << run.err;
  EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << line << "\n" << run.err;
  EXPECT_NE(run.err.find(part), std::string::npos) << line << "\n" << run.err << "expected: " << part;
}

/// No line is wider than a terminal, but for those that are there to be copied: commands and names of folders.
inline void expect_lines_fit(const std::string& text) {
  constexpr int kWidth = 80;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    bool whole = false;
    for (const char* start : {"  qkv ", "  python3 ", "/", "report: /"}) whole = whole || line.starts_with(start);
    EXPECT_TRUE(whole || display_width(line) <= kWidth) << line;
  }
}

/// A run trained once for all tests of a suite: `class Suite : public TrainedRun<Suite>`, which says with what command
/// in a public `static std::vector<std::string> command(const std::string& run)`.
template <class Suite>
class TrainedRun : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempFolder>();
    result_ = std::make_unique<ProgramRun>(run_program(Suite::command(run())));
  }
  static void TearDownTestSuite() {
    result_.reset();
    folder_.reset();
  }
  static std::string run() { return *folder_ / "run"; }
  inline static std::unique_ptr<TempFolder> folder_;
  inline static std::unique_ptr<ProgramRun> result_;
};

}  // namespace qkv::testing
