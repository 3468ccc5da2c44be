// Canvas: the few strokes every picture is made of.
#pragma once

#include <span>
#include <string>

#include "qkv/view/color.h"
#include "qkv/view/drawing.h"

namespace qkv {

/// Where the given point lies in the text's box: 0 left or top, 0.5 centre, 1 right or bottom.
struct TextStyle {
  double size = 12;
  Rgb color = kInk;
  bool bold = false;
  bool mono = false;
  double across = 0;
  double down = 0;
  double angle = 0;  // degrees counter-clockwise around the point
  double wrap = 0;   // width at which lines break; 0: one line
  double limit = 0;  // width beyond which the middle is left out; 0: none
};

struct LineStyle {
  Rgb color = kInk;
  double width = 1;
  double alpha = 1;
  bool dashed = false;
};

/// rows x columns colours; where `shown` (when given) is 0, what lies under the image stays visible.
struct Pixels {
  int rows = 0, columns = 0;
  std::span<const Rgb> colors;
  std::span<const uint8_t> shown = {};
};

/// Size of a text before rotation.
Size measure_text(const std::string& text, const TextStyle& style);

/// Whatever a picture can be painted on: pictures.cc has one over cairo.
class Canvas {
 public:
  virtual ~Canvas() = default;

  virtual void fill(const Box& box, Rgb color, double alpha = 1) = 0;
  virtual void frame(const Box& box, const LineStyle& line) = 0;
  virtual void line(Point from, Point to, const LineStyle& style) = 0;
  virtual void polyline(std::span<const Point> points, const LineStyle& style) = 0;
  virtual void polygon(std::span<const Point> points, Rgb color, double alpha = 1) = 0;
  virtual void circle(Point center, double radius, Rgb color, double alpha = 1) = 0;
  /// Diagonal lines on light grey: the mark of what is masked.
  virtual void hatch(const Box& box) = 0;
  /// Stretched over the box without smoothing.
  virtual void image(const Box& box, const Pixels& pixels) = 0;
  virtual void text(Point at, const std::string& text, const TextStyle& style) = 0;

  /// Everything fn draws is shifted by `by`.
  template <class Fn>
  void shifted(Point by, Fn&& fn) {
    shift(by.x, by.y);
    fn();
    restore();
  }
  /// Nothing fn draws leaves the box.
  template <class Fn>
  void clipped(const Box& box, Fn&& fn) {
    clip(box);
    fn();
    restore();
  }

 private:
  virtual void shift(double x, double y) = 0;
  virtual void clip(const Box& box) = 0;
  virtual void restore() = 0;
};

}  // namespace qkv
