// The only file that draws with cairo and sets text with pango.
#include "qkv/view/canvas.h"

#include <pango/pangocairo.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "qkv/view/text.h"

namespace qkv {
namespace {

cairo_t* cr(void* cairo) { return static_cast<cairo_t*>(cairo); }

void set_color(cairo_t* c, Rgb color, double alpha) {
  cairo_set_source_rgba(c, color.r / 255.0, color.g / 255.0, color.b / 255.0, alpha);
}

struct LayoutDeleter {
  void operator()(PangoLayout* layout) const { g_object_unref(layout); }
};
using Layout = std::unique_ptr<PangoLayout, LayoutDeleter>;

// Layout must not depend on the surface: no hinting, fixed resolution, sizes in pixels.
Layout make_layout(const std::string& text, const TextStyle& style) {
  PangoContext* context = pango_font_map_create_context(pango_cairo_font_map_get_default());
  pango_cairo_context_set_resolution(context, 96);
  cairo_font_options_t* options = cairo_font_options_create();
  cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
  cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
  cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
  pango_cairo_context_set_font_options(context, options);
  cairo_font_options_destroy(options);
  pango_context_set_round_glyph_positions(context, FALSE);
  Layout layout(pango_layout_new(context));
  g_object_unref(context);
  PangoFontDescription* font = pango_font_description_new();
  pango_font_description_set_family(font, style.mono ? "DejaVu Sans Mono, monospace" : "DejaVu Sans, sans-serif");
  pango_font_description_set_weight(font, style.bold ? PANGO_WEIGHT_BOLD : PANGO_WEIGHT_NORMAL);
  pango_font_description_set_absolute_size(font, style.size * PANGO_SCALE);
  pango_layout_set_font_description(layout.get(), font);
  pango_font_description_free(font);
  const std::string valid = valid_utf8(text);
  pango_layout_set_text(layout.get(), valid.data(), static_cast<int>(valid.size()));
  if (style.wrap > 0) {
    pango_layout_set_width(layout.get(), static_cast<int>(style.wrap * PANGO_SCALE));
    pango_layout_set_wrap(layout.get(), PANGO_WRAP_WORD_CHAR);
  } else {
    pango_layout_set_single_paragraph_mode(layout.get(), TRUE);
    if (style.limit > 0) {
      int width = 0;
      pango_layout_get_size(layout.get(), &width, nullptr);
      // A width is set only where it cuts: a set width moves right-to-left text to the right edge.
      if (width > style.limit * PANGO_SCALE) {
        pango_layout_set_ellipsize(layout.get(), PANGO_ELLIPSIZE_MIDDLE);
        pango_layout_set_width(layout.get(), static_cast<int>(style.limit * PANGO_SCALE));
      }
    }
  }
  const PangoAlignment align = style.across >= 0.9   ? PANGO_ALIGN_RIGHT
                               : style.across >= 0.4 ? PANGO_ALIGN_CENTER
                                                     : PANGO_ALIGN_LEFT;
  pango_layout_set_alignment(layout.get(), align);
  return layout;
}

struct Extent {
  double x, w, h;
};
Extent extent_of(PangoLayout* layout) {
  PangoRectangle logical;
  pango_layout_get_extents(layout, nullptr, &logical);
  return {static_cast<double>(logical.x) / PANGO_SCALE, static_cast<double>(logical.width) / PANGO_SCALE,
          static_cast<double>(logical.height) / PANGO_SCALE};
}

}  // namespace

Size measure_text(const std::string& text, const TextStyle& style) {
  const Layout layout = make_layout(text, style);
  const Extent extent = extent_of(layout.get());
  return {extent.w, extent.h};
}

Canvas::Canvas(void* cairo) : cairo_(cairo) {}

void Canvas::fill(const Box& box, Rgb color, double alpha) {
  set_color(cr(cairo_), color, alpha);
  cairo_rectangle(cr(cairo_), box.x, box.y, box.w, box.h);
  cairo_fill(cr(cairo_));
}

void Canvas::stroke(const LineStyle& style) {
  set_color(cr(cairo_), style.color, style.alpha);
  cairo_set_line_width(cr(cairo_), style.width);
  cairo_set_line_join(cr(cairo_), CAIRO_LINE_JOIN_ROUND);
  const double dash[] = {4 * style.width, 3 * style.width};
  cairo_set_dash(cr(cairo_), dash, style.dashed ? 2 : 0, 0);
  cairo_stroke(cr(cairo_));
}

void Canvas::frame(const Box& box, const LineStyle& line) {
  cairo_rectangle(cr(cairo_), box.x, box.y, box.w, box.h);
  stroke(line);
}

void Canvas::line(Point from, Point to, const LineStyle& style) {
  cairo_move_to(cr(cairo_), from.x, from.y);
  cairo_line_to(cr(cairo_), to.x, to.y);
  stroke(style);
}

void Canvas::polyline(std::span<const Point> points, const LineStyle& style) {
  if (points.size() < 2) return;
  cairo_new_path(cr(cairo_));
  for (const Point& p : points) cairo_line_to(cr(cairo_), p.x, p.y);
  stroke(style);
}

void Canvas::polygon(std::span<const Point> points, Rgb color, double alpha) {
  if (points.size() < 3) return;
  cairo_new_path(cr(cairo_));
  for (const Point& p : points) cairo_line_to(cr(cairo_), p.x, p.y);
  cairo_close_path(cr(cairo_));
  set_color(cr(cairo_), color, alpha);
  cairo_fill(cr(cairo_));
}

void Canvas::circle(Point center, double radius, Rgb color, double alpha) {
  cairo_new_path(cr(cairo_));
  cairo_arc(cr(cairo_), center.x, center.y, radius, 0, 2 * std::numbers::pi);
  set_color(cr(cairo_), color, alpha);
  cairo_fill(cr(cairo_));
}

void Canvas::hatch(const Box& box) {
  constexpr double kStep = 6;
  fill(box, {0xf1, 0xf2, 0xf4});
  clip(box);
  // Lines x + y = k·step in the picture's own coordinates, so the hatching of neighbours joins.
  const double first = std::ceil((box.x + box.y) / kStep) * kStep;
  for (double k = first; k <= box.x + box.w + box.y + box.h; k += kStep) {
    cairo_move_to(cr(cairo_), k - box.y, box.y);
    cairo_line_to(cr(cairo_), k - box.y - box.h, box.y + box.h);
  }
  stroke({.color = {0xa7, 0xad, 0xb8}, .width = 1});
  restore();
}

void Canvas::image(const Box& box, const Pixels& image) {
  const bool opaque = image.shown.empty();
  cairo_surface_t* pixels =
      cairo_image_surface_create(opaque ? CAIRO_FORMAT_RGB24 : CAIRO_FORMAT_ARGB32, image.columns, image.rows);
  unsigned char* const data = cairo_image_surface_get_data(pixels);
  const int stride = cairo_image_surface_get_stride(pixels);
  cairo_surface_flush(pixels);
  for (int r = 0, i = 0; data != nullptr && r < image.rows; ++r) {
    for (int c = 0; c < image.columns; ++c, ++i) {
      const auto at = static_cast<size_t>(i);
      const Rgb color = image.colors[at];
      uint32_t word = 0xff000000u | uint32_t{color.r} << 16 | uint32_t{color.g} << 8 | color.b;
      if (!opaque && image.shown[at] == 0) word = 0;
      std::memcpy(data + static_cast<ptrdiff_t>(r) * stride + c * 4, &word, 4);
    }
  }
  cairo_surface_mark_dirty(pixels);
  cairo_t* const c = cr(cairo_);
  cairo_save(c);
  cairo_translate(c, box.x, box.y);
  cairo_scale(c, box.w / image.columns, box.h / image.rows);
  cairo_set_source_surface(c, pixels, 0, 0);
  cairo_pattern_set_filter(cairo_get_source(c), CAIRO_FILTER_NEAREST);
  cairo_paint(c);  // not fill: in SVG that would become a tiled pattern, which browsers smooth
  cairo_restore(c);
  cairo_surface_destroy(pixels);
}

void Canvas::text(Point at, const std::string& text, const TextStyle& style) {
  if (text.empty()) return;
  const Layout layout = make_layout(text, style);
  const Extent extent = extent_of(layout.get());
  cairo_t* const c = cr(cairo_);
  cairo_save(c);
  cairo_translate(c, at.x, at.y);
  if (style.angle != 0) cairo_rotate(c, -style.angle * std::numbers::pi / 180);
  set_color(c, style.color, 1);
  cairo_move_to(c, -extent.x - extent.w * style.across, -extent.h * style.down);
  pango_cairo_show_layout(c, layout.get());
  cairo_new_path(c);  // or the next stroke would begin at the text
  cairo_restore(c);
}

void Canvas::shift(double x, double y) {
  cairo_save(cr(cairo_));
  cairo_translate(cr(cairo_), x, y);
}

void Canvas::clip(const Box& box) {
  cairo_save(cr(cairo_));
  cairo_rectangle(cr(cairo_), box.x, box.y, box.w, box.h);
  cairo_clip(cr(cairo_));
}

void Canvas::restore() { cairo_restore(cr(cairo_)); }

}  // namespace qkv
