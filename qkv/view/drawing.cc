// Saving drawings, and setting several on one page.
#include "qkv/view/drawing.h"

#include <algorithm>
#include <utility>

#include "qkv/base/error.h"
#include "qkv/view/canvas.h"

namespace qkv {
namespace {

constexpr double kGap = 24;

std::string extension_of(const std::string& path) {
  const size_t dot = path.find_last_of('.'), slash = path.find_last_of('/');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) return "";
  std::string extension = path.substr(dot);
  for (char& c : extension) c = (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
  return extension;
}

}  // namespace

void require_pictures(const std::string& path) {
  if (have_pictures() || (extension_of(path) != ".png" && extension_of(path) != ".svg")) return;
  throw Error("cannot write " + path +
              ": this build has no pictures (QKV_PICTURES=OFF); use the terminal, .html or .csv");
}

void save_drawing(const Drawing& drawing, const std::string& path) {
  require_pictures(path);
  const std::string extension = extension_of(path);
  if (extension == ".png") {
    write_file_atomic(path, to_png(drawing));
  } else if (extension == ".svg") {
    write_file_atomic(path, to_svg(drawing));
  } else {
    throw ConfigError("cannot write picture " + path + ": unknown kind '" + extension + "'; use .png or .svg");
  }
}

Drawing arrange(const std::string& title, std::vector<Drawing> parts, int columns, const std::string& caption) {
  columns = std::clamp(columns, 1, std::max(1, static_cast<int>(parts.size())));
  const size_t per_row = static_cast<size_t>(columns), rows = (parts.size() + per_row - 1) / per_row;
  std::vector<double> widths(per_row), heights(rows);
  for (size_t i = 0; i < parts.size(); ++i) {
    widths[i % per_row] = std::max(widths[i % per_row], parts[i].width);
    heights[i / per_row] = std::max(heights[i / per_row], parts[i].height);
  }
  double width = kGap * static_cast<double>(per_row - 1), height = rows == 0 ? 0 : kGap * static_cast<double>(rows - 1);
  for (const double w : widths) width += w;
  for (const double h : heights) height += h;
  const TextStyle title_style{.size = 16, .bold = true, .across = 0.5, .wrap = std::max(width - 32, 120.0)};
  const TextStyle caption_style{.size = 12, .color = kMuted, .wrap = std::max(width - 32, 120.0)};
  const double top = title.empty() ? 0 : measure_text(title, title_style).h + 22;
  const double bottom = caption.empty() ? 0 : measure_text(caption, caption_style).h + 20;
  Drawing page{width, height + top + bottom, {}, title.empty() ? caption : title};
  if (page.description.empty() && !parts.empty()) page.description = parts[0].description;
  page.draw = [=, parts = std::move(parts)](Canvas& canvas) {
    if (!title.empty()) canvas.text({width / 2, 14}, title, title_style);
    double y = top;
    for (size_t r = 0; r < rows; y += heights[r] + kGap, ++r) {
      double x = 0;
      for (size_t c = 0; c < per_row && r * per_row + c < parts.size(); x += widths[c] + kGap, ++c) {
        const Drawing& part = parts[r * per_row + c];
        canvas.shifted({x, y}, [&] { part.draw(canvas); });
      }
    }
    if (!caption.empty()) canvas.text({16, top + height + 6}, caption, caption_style);
  };
  return page;
}

}  // namespace qkv
