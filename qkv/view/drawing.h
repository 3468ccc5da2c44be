// Drawing: a picture of known size that can become PNG or SVG, alone or as a part of a larger one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "qkv/io/file.h"

namespace qkv {

class Canvas;  // canvas.h

struct Point {
  double x = 0, y = 0;
};
struct Size {
  double w = 0, h = 0;
};
struct Box {
  double x = 0, y = 0, w = 0, h = 0;
};

/// Sizes are in CSS pixels. draw() is called with the origin moved to the drawing's corner.
struct Drawing {
  double width = 0, height = 0;
  std::function<void(Canvas&)> draw;
  std::string description;   // plain text for readers who cannot see it
  bool photographs = false;  // its colours are those of the things shown: a dark page must not turn them over
};

/// Whether this build can make pictures (QKV_PICTURES). Without, the next two throw Error, and measured text is a
/// guess.
bool have_pictures();
/// Throws Error where this build has no pictures and the path ends like one.
void require_pictures(const std::string& path);

/// Same drawing, same bytes. The SVG holds text as outlines, so it looks the same everywhere, and its ids begin with
/// `prefix`, so that one HTML page can hold several.
std::string to_svg(const Drawing& drawing, const std::string& prefix = "");
/// `scale` device pixels per CSS pixel, lowered where the picture would pass 32,767 pixels.
Bytes to_png(const Drawing& drawing, double scale = 2);
/// By extension: .png or .svg. Throws ConfigError for any other, IoError when it cannot be written.
void save_drawing(const Drawing& drawing, const std::string& path);

/// Drawings left to right, `columns` to a row, under one title and above one caption (either may be empty).
/// Columns are as wide as their widest drawing, rows as high as their highest.
Drawing arrange(const std::string& title, std::vector<Drawing> parts, int columns, const std::string& caption = "");

}  // namespace qkv
