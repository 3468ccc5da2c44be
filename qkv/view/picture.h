// Pictures as they are, and with weights laid over them: enlarged cell by cell, never smoothed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "qkv/figures/figures.h"
#include "qkv/view/color.h"
#include "qkv/view/drawing.h"

namespace qkv {

/// rows x columns colours.
struct Raster {
  int64_t rows = 0, columns = 0;
  std::vector<Rgb> colors = {};  // [rows, columns]
};

/// Throws ShapeError when the count of bytes does not fit, or there are neither one nor three channels.
Raster raster_of(const Bitmap& bitmap);

/// The picture in grey, each pixel tinted by the weight of the patch it lies in, up to the largest weight: patches
/// that got nothing stay grey. `weights` is [patch_rows, patch_columns], none negative. Throws ShapeError.
Raster overlay(const Raster& picture, std::span<const float> weights, int64_t patch_rows, int64_t patch_columns);

/// A picture with a line or two of text above it.
struct Tile {
  std::string title = {};
  Raster picture = {};
};

/// Tiles `columns` to a row under one title, the longer side of each at least `side`, every cell a whole number of
/// pixels. Throws ShapeError without tiles.
Drawing draw_tiles(const std::string& title, const std::vector<Tile>& tiles, int columns, double side = 112);

}  // namespace qkv
