// Reads back the pixels of a PNG, through cairo.
#pragma once

#include <cairo.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "qkv/io/file.h"
#include "qkv/view/color.h"

namespace qkv::testing {

class Png {
 public:
  explicit Png(const Bytes& file) {
    Source source{&file, 0};
    surface_ = cairo_image_surface_create_from_png_stream(&read, &source);
    EXPECT_EQ(cairo_surface_status(surface_), CAIRO_STATUS_SUCCESS);
  }
  ~Png() { cairo_surface_destroy(surface_); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;

  int width() const { return cairo_image_surface_get_width(surface_); }
  int height() const { return cairo_image_surface_get_height(surface_); }
  Rgb at(double x, double y) const {
    const auto column = static_cast<ptrdiff_t>(std::clamp<double>(std::floor(x), 0, width() - 1));
    const auto row = static_cast<ptrdiff_t>(std::clamp<double>(std::floor(y), 0, height() - 1));
    uint32_t word = 0;
    std::memcpy(
        &word, cairo_image_surface_get_data(surface_) + row * cairo_image_surface_get_stride(surface_) + column * 4, 4);
    return {static_cast<uint8_t>(word >> 16), static_cast<uint8_t>(word >> 8), static_cast<uint8_t>(word)};
  }
  /// Pixels of exactly this colour.
  int count(Rgb color) const {
    int n = 0;
    for (int y = 0; y < height(); ++y) {
      for (int x = 0; x < width(); ++x) n += at(x, y) == color ? 1 : 0;
    }
    return n;
  }

 private:
  struct Source {
    const Bytes* file;
    size_t at;
  };
  static cairo_status_t read(void* closure, unsigned char* out, unsigned length) {
    auto* const source = static_cast<Source*>(closure);
    if (source->at + length > source->file->size()) return CAIRO_STATUS_READ_ERROR;
    std::memcpy(out, source->file->data() + source->at, length);
    source->at += length;
    return CAIRO_STATUS_SUCCESS;
  }
  cairo_surface_t* surface_ = nullptr;
};

}  // namespace qkv::testing
