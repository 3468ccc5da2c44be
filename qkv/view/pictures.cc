// The only file that draws with cairo and sets text with pango: a canvas, PNG and SVG.
#include <cairo-svg.h>
#include <pango/pangocairo.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <numbers>

#include "qkv/base/error.h"
#include "qkv/base/room.h"
#include "qkv/view/canvas.h"
#include "qkv/view/text.h"

namespace qkv {
namespace {

constexpr double kMaxPixels = 32767;  // cairo's limit for a side
constexpr size_t kFontsRoom = size_t{160} << 20, kTextRoom = size_t{8} << 20;

void set_color(cairo_t* c, Rgb color, double alpha) {
  cairo_set_source_rgba(c, color.r / 255.0, color.g / 255.0, color.b / 255.0, alpha);
}

/// GLib, below pango, ends the program where there is no memory or no thread; so it ends like every failure.
void say_fatal(const char* domain, GLogLevelFlags level, const char* message, void* data) {
  if ((level & G_LOG_FLAG_FATAL) == 0) return g_log_default_handler(domain, level, message, data);
  std::fprintf(stderr, "qkv: %s\n", kOutOfMemory);
  std::_Exit(1);
}

/// Without memory, fontconfig looks for fonts for ever. So there must be room for what drawing takes before it begins:
/// for fonts the first time (with the stacks of the threads that load them, and what malloc reserves for each).
void require_room_for_text() {
  static std::atomic<bool> loaded{false};
  const size_t room = loaded.exchange(true) ? kTextRoom : kFontsRoom;
  g_log_set_default_handler(&say_fatal, nullptr);
  if (!have_room(room)) throw std::bad_alloc();
}

struct LayoutDeleter {
  void operator()(PangoLayout* layout) const { g_object_unref(layout); }
};
using Layout = std::unique_ptr<PangoLayout, LayoutDeleter>;

// Layout must not depend on the surface: no hinting, fixed resolution, sizes in pixels.
Layout make_layout(const std::string& text, const TextStyle& style) {
  require_room_for_text();
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

class CairoCanvas final : public Canvas {
 public:
  explicit CairoCanvas(cairo_t* cairo) : cairo_(cairo) {}

  void fill(const Box& box, Rgb color, double alpha = 1) override;
  void frame(const Box& box, const LineStyle& line) override;
  void line(Point from, Point to, const LineStyle& style) override;
  void polyline(std::span<const Point> points, const LineStyle& style) override;
  void polygon(std::span<const Point> points, Rgb color, double alpha) override;
  void circle(Point center, double radius, Rgb color, double alpha) override;
  void hatch(const Box& box) override;
  void image(const Box& box, const Pixels& pixels) override;
  void text(Point at, const std::string& text, const TextStyle& style) override;

 private:
  void shift(double x, double y) override;
  void clip(const Box& box) override;
  void restore() override;
  void stroke(const LineStyle& style);

  cairo_t* cairo_;
};

void CairoCanvas::fill(const Box& box, Rgb color, double alpha) {
  set_color(cairo_, color, alpha);
  cairo_rectangle(cairo_, box.x, box.y, box.w, box.h);
  cairo_fill(cairo_);
}

void CairoCanvas::stroke(const LineStyle& style) {
  set_color(cairo_, style.color, style.alpha);
  cairo_set_line_width(cairo_, style.width);
  cairo_set_line_join(cairo_, CAIRO_LINE_JOIN_ROUND);
  const double dash[] = {4 * style.width, 3 * style.width};
  cairo_set_dash(cairo_, dash, style.dashed ? 2 : 0, 0);
  cairo_stroke(cairo_);
}

void CairoCanvas::frame(const Box& box, const LineStyle& line) {
  cairo_rectangle(cairo_, box.x, box.y, box.w, box.h);
  stroke(line);
}

void CairoCanvas::line(Point from, Point to, const LineStyle& style) {
  cairo_move_to(cairo_, from.x, from.y);
  cairo_line_to(cairo_, to.x, to.y);
  stroke(style);
}

void CairoCanvas::polyline(std::span<const Point> points, const LineStyle& style) {
  if (points.size() < 2) return;
  cairo_new_path(cairo_);
  for (const Point& p : points) cairo_line_to(cairo_, p.x, p.y);
  stroke(style);
}

void CairoCanvas::polygon(std::span<const Point> points, Rgb color, double alpha) {
  if (points.size() < 3) return;
  cairo_new_path(cairo_);
  for (const Point& p : points) cairo_line_to(cairo_, p.x, p.y);
  cairo_close_path(cairo_);
  set_color(cairo_, color, alpha);
  cairo_fill(cairo_);
}

void CairoCanvas::circle(Point center, double radius, Rgb color, double alpha) {
  cairo_new_path(cairo_);
  cairo_arc(cairo_, center.x, center.y, radius, 0, 2 * std::numbers::pi);
  set_color(cairo_, color, alpha);
  cairo_fill(cairo_);
}

void CairoCanvas::hatch(const Box& box) {
  constexpr double kStep = 6;
  fill(box, {0xf1, 0xf2, 0xf4});
  clip(box);
  // Lines x + y = k·step in the picture's own coordinates, so the hatching of neighbours joins.
  const auto first = static_cast<int64_t>(std::ceil((box.x + box.y) / kStep));
  const auto last = static_cast<int64_t>(std::floor((box.x + box.w + box.y + box.h) / kStep));
  for (int64_t k = first; k <= last; ++k) {
    const double x = static_cast<double>(k) * kStep - box.y;
    cairo_move_to(cairo_, x, box.y);
    cairo_line_to(cairo_, x - box.h, box.y + box.h);
  }
  stroke({.color = {0xa7, 0xad, 0xb8}, .width = 1});
  restore();
}

void CairoCanvas::image(const Box& box, const Pixels& image) {
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
      std::memcpy(data + static_cast<ptrdiff_t>(r) * stride + ptrdiff_t{4} * c, &word, 4);
    }
  }
  cairo_surface_mark_dirty(pixels);
  cairo_t* const c = cairo_;
  cairo_save(c);
  cairo_translate(c, box.x, box.y);
  cairo_scale(c, box.w / image.columns, box.h / image.rows);
  cairo_set_source_surface(c, pixels, 0, 0);
  cairo_pattern_set_filter(cairo_get_source(c), CAIRO_FILTER_NEAREST);
  cairo_paint(c);  // not fill: in SVG that would become a tiled pattern, which browsers smooth
  cairo_restore(c);
  cairo_surface_destroy(pixels);
}

void CairoCanvas::text(Point at, const std::string& text, const TextStyle& style) {
  if (text.empty()) return;
  const Layout layout = make_layout(text, style);
  const Extent extent = extent_of(layout.get());
  cairo_t* const c = cairo_;
  cairo_save(c);
  cairo_translate(c, at.x, at.y);
  if (style.angle != 0) cairo_rotate(c, -style.angle * std::numbers::pi / 180);
  set_color(c, style.color, 1);
  cairo_move_to(c, -extent.x - extent.w * style.across, -extent.h * style.down);
  pango_cairo_show_layout(c, layout.get());
  cairo_new_path(c);  // or the next stroke would begin at the text
  cairo_restore(c);
}

void CairoCanvas::shift(double x, double y) {
  cairo_save(cairo_);
  cairo_translate(cairo_, x, y);
}

void CairoCanvas::clip(const Box& box) {
  cairo_save(cairo_);
  cairo_rectangle(cairo_, box.x, box.y, box.w, box.h);
  cairo_clip(cairo_);
}

void CairoCanvas::restore() { cairo_restore(cairo_); }

struct Closer {
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
  void operator()(cairo_t* context) const { cairo_destroy(context); }
};
using Surface = std::unique_ptr<cairo_surface_t, Closer>;
using Context = std::unique_ptr<cairo_t, Closer>;

cairo_status_t append_text(void* out, const unsigned char* data, unsigned length) {
  try {  // no exception may pass through cairo
    static_cast<std::string*>(out)->append(reinterpret_cast<const char*>(data), length);
  } catch (const std::bad_alloc&) {
    return CAIRO_STATUS_NO_MEMORY;
  }
  return CAIRO_STATUS_SUCCESS;
}

void check(cairo_status_t status) {
  if (status == CAIRO_STATUS_NO_MEMORY) throw std::bad_alloc();
  if (status != CAIRO_STATUS_SUCCESS) {
    throw IoError(std::string("cannot draw the picture: ") + cairo_status_to_string(status));
  }
}

void paint(const Drawing& drawing, cairo_t* context) {
  CairoCanvas canvas(context);
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
    // "#" also begins colours and may occur in embedded data; only ids of cairo's form are renamed.
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

}  // namespace

bool have_pictures() { return true; }

Size measure_text(const std::string& text, const TextStyle& style) {
  const Layout layout = make_layout(text, style);
  const Extent extent = extent_of(layout.get());
  return {extent.w, extent.h};
}

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

}  // namespace qkv
