// What stands in for cairo and pango in a build without pictures (QKV_PICTURES=OFF).
#include "qkv/base/error.h"
#include "qkv/view/canvas.h"
#include "qkv/view/text.h"

namespace qkv {
namespace {

[[noreturn]] void refuse() { throw Error("this build has no pictures (QKV_PICTURES=OFF)"); }

}  // namespace

bool have_pictures() { return false; }

Size measure_text(const std::string& text, const TextStyle& style) {
  return {0.6 * style.size * display_width(valid_utf8(text)), 1.2 * style.size};
}

std::string to_svg(const Drawing&, const std::string&) { refuse(); }
Bytes to_png(const Drawing&, double) { refuse(); }

}  // namespace qkv
