// The page's files, part of the program itself.
#pragma once

#include <span>
#include <string_view>

namespace qkv::serve {

struct PageFile {
  std::string_view path;  // "/app.js"
  std::string_view type;
  std::string_view body;
};

/// index.html, app.js and app.css; or one page that says what was missing when the program was built.
std::span<const PageFile> page_files();

}  // namespace qkv::serve
