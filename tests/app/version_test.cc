// qkv --version says what a report of a fault needs.
#include <regex>

#include "app/run_program.h"
#include "qkv/kernels/simd_target.h"
#include "qkv/version.h"

namespace qkv::testing {
namespace {

TEST(Version, NamesBuildInstructionSetAndCommit) {
  const ProgramRun run = run_program({"--version"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.out.rfind("qkv " QKV_VERSION " (", 0), 0u) << run.out;
  EXPECT_NE(run.out.find(", " + kernels::simd_target() + ", commit "), std::string::npos) << run.out;
  EXPECT_TRUE(std::regex_match(
      run.out, std::regex(R"(qkv [0-9.]+ \([A-Za-z, ]+, [A-Z0-9_]+, commit (unknown|[0-9a-f]{7,40}(\+changes)?)\)\n)")))
      << run.out;
}

}  // namespace
}  // namespace qkv::testing
