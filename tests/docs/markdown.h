// The pages of documentation as the tests read them: code blocks and code spans.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "qkv/io/file.h"
#include "support/paths.h"

namespace qkv::testing {

inline std::filesystem::path project() { return std::filesystem::path(fixtures()).parent_path().parent_path(); }

/// README.md, CONTRIBUTING.md and docs/*.md, in order.
inline std::vector<std::filesystem::path> pages() {
  std::vector<std::filesystem::path> all{project() / "README.md", project() / "CONTRIBUTING.md"};
  for (const auto& entry : std::filesystem::directory_iterator(project() / "docs")) {
    if (entry.path().extension() == ".md") all.push_back(entry.path());
  }
  std::sort(all.begin(), all.end());
  return all;
}

struct Page {
  struct Block {
    std::string language;
    std::vector<std::string> lines;
  };
  std::vector<Block> blocks;       // ``` … ```
  std::vector<std::string> spans;  // ` … `, line breaks as spaces
};

inline Page read_page(const std::filesystem::path& path) {
  Page page;
  std::string prose, line;
  bool inside = false;
  const std::string text = read_text(path.string()) + "\n";
  for (const char c : text) {
    if (c != '\n') {
      line += c;
      continue;
    }
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) page.blocks.push_back({line.substr(3), {}});
      prose += "\n";
    } else if (inside) {
      page.blocks.back().lines.push_back(line);
    } else {
      prose += line + " ";
    }
    line.clear();
  }
  for (size_t at = 0; (at = prose.find('`', at)) != std::string::npos;) {
    const size_t end = prose.find('`', at + 1);
    if (end == std::string::npos) break;
    page.spans.push_back(prose.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return page;
}

}  // namespace qkv::testing
