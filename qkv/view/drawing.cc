// Turning drawings into PNG and SVG files, and setting several on one page.
#include "qkv/view/drawing.h"

#include <cairo-svg.h>
#include <cairo.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "qkv/base/error.h"
#include "qkv/view/canvas.h"
#include "qkv/view/text.h"

namespace qkv {
namespace {

constexpr double kMaxPixels = 32767;  // cairo's limit for a side
constexpr double kGap = 24;

struct Closer {
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
  void operator()(cairo_t* context) const { cairo_destroy(context); }
};
using Surface = std::unique_ptr<cairo_surface_t, Closer>;
using Context = std::unique_ptr<cairo_t, Closer>;

cairo_status_t append_text(void* out, const unsigned char* data, unsigned length) {
  static_cast<std::string*>(out)->append(reinterpret_cast<const char*>(data), length);
  return CAIRO_STATUS_SUCCESS;
}

void check(cairo_status_t status) {
  if (status != CAIRO_STATUS_SUCCESS) {
    throw IoError(std::string("cannot draw the picture: ") + cairo_status_to_string(status));
  }
}

void paint(const Drawing& drawing, cairo_t* context) {
  Canvas canvas(context);
  canvas.fill({0, 0, drawing.width, drawing.height}, kPaper);
  drawing.draw(canvas);
  check(cairo_status(context));
}

// cairo numbers its ids by how many surfaces the process has made. Ids are renamed in order of appearance, so the same
// drawing gives the same bytes, and prefixed, so that two drawings in one page do not share glyphs.
std::string rename_ids(const std::string& svg, const std::string& prefix) {
  std::map<std::string, std::string> names;
  std::string out;
  out.reserve(svg.size());
  size_t at = 0;
  for (;;) {
    const size_t id = svg.find("id=\"", at), ref = svg.find('#', at);
    const size_t hit = std::min(id, ref);
    if (hit == std::string::npos) break;
    const size_t start = hit + (hit == id ? 4 : 1);
    const size_t end = svg.find_first_of("\")", start);
    if (end == std::string::npos) break;
    out.append(svg, at, start - at);
    const std::string name = svg.substr(start, end - start);
    // "#" also begins colours and may stand in embedded data; only ids of cairo's form are renamed.
    const bool ours = (hit == id && (hit == 0 || svg[hit - 1] == ' ')) ||
                      (hit == ref && hit > 0 && (svg[hit - 1] == '"' || svg[hit - 1] == '('));
    out += ours ? names.try_emplace(name, prefix + "i" + std::to_string(names.size())).first->second : name;
    at = end;
  }
  return out.append(svg, at, std::string::npos);
}

// Enlarged cells keep their edges in every viewer.
void set_pixelated(std::string& svg) {
  const std::string tag = "<image ", style = "style=\"image-rendering:pixelated\" ";
  for (size_t at = svg.find(tag); at != std::string::npos; at = svg.find(tag, at + tag.size())) {
    svg.insert(at + tag.size(), style);
  }
}

std::string extension_of(const std::string& path) {
  const size_t dot = path.find_last_of('.'), slash = path.find_last_of('/');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) return "";
  std::string extension = path.substr(dot);
  for (char& c : extension) c = (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
  return extension;
}

}  // namespace

std::string to_svg(const Drawing& drawing, const std::string& prefix) {
  std::string svg;
  {
    const Surface surface(
        cairo_svg_surface_create_for_stream(&append_text, &svg, std::ceil(drawing.width), std::ceil(drawing.height)));
    cairo_svg_surface_set_document_unit(surface.get(), CAIRO_SVG_UNIT_PX);
    const Context context(cairo_create(surface.get()));
    paint(drawing, context.get());
    cairo_surface_finish(surface.get());
    check(cairo_surface_status(surface.get()));
  }
  svg = rename_ids(svg, prefix);
  set_pixelated(svg);
  // What a screen reader says, and what a search of the file finds.
  const size_t tag = svg.find("<svg ");
  const size_t close = tag == std::string::npos ? tag : svg.find('>', tag);
  if (close != std::string::npos && !drawing.description.empty()) {
    svg.insert(close + 1, "\n<title>" + escape_markup(drawing.description) + "</title>");
    svg.insert(tag + 5, "role=\"img\" ");
  }
  return svg;
}

Bytes to_png(const Drawing& drawing, double scale) {
  scale = std::min(scale, kMaxPixels / std::max({drawing.width, drawing.height, 1.0}));
  const Surface surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24,
                                                   std::max(1, static_cast<int>(std::ceil(drawing.width * scale))),
                                                   std::max(1, static_cast<int>(std::ceil(drawing.height * scale)))));
  check(cairo_surface_status(surface.get()));
  {
    const Context context(cairo_create(surface.get()));
    cairo_set_source_rgb(context.get(), 1, 1, 1);
    cairo_paint(context.get());
    cairo_scale(context.get(), scale, scale);
    paint(drawing, context.get());
  }
  std::string png;
  check(cairo_surface_write_to_png_stream(surface.get(), &append_text, &png));
  const auto bytes = bytes_of(png);
  return {bytes.begin(), bytes.end()};
}

void save_drawing(const Drawing& drawing, const std::string& path) {
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
