// docs/TEXTBOOK.md shows the lines of examples/textbook_shapes as they are, and all of them.
#include <gtest/gtest.h>

#include <sstream>

#include "docs/markdown.h"

namespace qkv::testing {
namespace {

// Lines without indentation, so that a function's body equals the block that shows it.
std::vector<std::string> bare(const std::vector<std::string>& lines) {
  std::vector<std::string> all;
  for (const std::string& line : lines) {
    const size_t first = line.find_first_not_of(' ');
    all.push_back(first == std::string::npos ? "" : line.substr(first));
  }
  return all;
}

std::vector<std::string> example() {
  std::istringstream text(read_text((project() / "examples/textbook_shapes/main.cc").string()));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return bare(lines);
}

TEST(Textbook, EveryBlockIsPartOfTheExampleThatIsCompiledAndRun) {
  const std::vector<std::string> code = example();
  int blocks = 0;
  for (const Page::Block& block : read_page(project() / "docs/TEXTBOOK.md").blocks) {
    ASSERT_EQ(block.language, "cpp");
    const std::vector<std::string> lines = bare(block.lines);
    if (lines[0].starts_with("#include")) continue;  // the opening, which the example has in its own order
    EXPECT_NE(std::search(code.begin(), code.end(), lines.begin(), lines.end()), code.end())
        << "not in examples/textbook_shapes/main.cc as it is here:\n"
        << block.lines[0] << "\n...";
    ++blocks;
  }
  const auto functions =
      std::count_if(code.begin(), code.end(), [](const std::string& line) { return line.starts_with("void show_"); });
  EXPECT_EQ(blocks, functions);
}

}  // namespace
}  // namespace qkv::testing
