// Embeds the bundled page.
#include "qkv/serve/page.h"

#include <array>

#ifdef QKV_PAGE_DIR

// The assembler reads the files: no generated source, and megabytes would cost nothing.
#define QKV_EMBED(name, file)                                                             \
  __asm__(                                                                                \
      ".pushsection .rodata\n"                                                            \
      ".global qkv_page_" #name "\nqkv_page_" #name ":\n.incbin \"" QKV_PAGE_DIR "/" file \
      "\"\n"                                                                              \
      ".global qkv_page_" #name "_end\nqkv_page_" #name                                   \
      "_end"                                                                              \
      ":\n.byte 0\n.popsection\n");                                                       \
  extern "C" const char qkv_page_##name[], qkv_page_##name##_end[]

QKV_EMBED(html, "index.html");
QKV_EMBED(js, "app.js");
QKV_EMBED(css, "app.css");

namespace qkv::serve {
namespace {
std::string_view between(const char* begin, const char* end) { return {begin, static_cast<size_t>(end - begin)}; }
}  // namespace

std::span<const PageFile> page_files() {
  static const std::array<PageFile, 3> files{{
      {"/", "text/html; charset=utf-8", between(qkv_page_html, qkv_page_html_end)},
      {"/app.js", "text/javascript; charset=utf-8", between(qkv_page_js, qkv_page_js_end)},
      {"/app.css", "text/css; charset=utf-8", between(qkv_page_css, qkv_page_css_end)},
  }};
  return files;
}

}  // namespace qkv::serve

#else

namespace qkv::serve {

std::span<const PageFile> page_files() {
  static constexpr std::array<PageFile, 1> kFiles{{
      {"/", "text/html; charset=utf-8",
       "<!doctype html><meta charset=utf-8><title>qkv</title><p>This program was built without its page because npm "
       "was "
       "missing. Install the packages <code>nodejs</code> and <code>npm</code> and build again. The API works: see "
       "docs/SERVER_API.md."},
  }};
  return kFiles;
}

}  // namespace qkv::serve

#endif
