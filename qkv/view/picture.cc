// Rasters, overlays and tiles.
#include "qkv/view/picture.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "qkv/base/error.h"
#include "qkv/view/canvas.h"

namespace qkv {
namespace {

constexpr double kTileMargin = 8, kTitleGap = 4;
constexpr Rgb kTint{0xff, 0x7a, 0x00};
constexpr double kStrongest = 0.8;  // of the tint: the picture stays visible under the largest weight

uint8_t mixed(double grey, uint8_t tint, double share) {
  return static_cast<uint8_t>(std::lround((1 - share) * grey + share * tint));
}

TextStyle tile_style(double width) { return {.size = 11, .wrap = width}; }

// Whole pixels per cell.
Size tile_size(const Raster& r, double side) {
  const double longest = static_cast<double>(std::max(r.rows, r.columns));
  const double cell = std::max(1.0, std::ceil(side / longest));
  return {cell * static_cast<double>(r.columns), cell * static_cast<double>(r.rows)};
}

Drawing draw_tile(const std::shared_ptr<const Tile>& tile, const Size& size, double title_height) {
  const double top = title_height > 0 ? title_height + kTitleGap : 0;
  Drawing drawing{size.w + 2 * kTileMargin, top + size.h + 2 * kTileMargin, {}, tile->title};
  drawing.draw = [tile, size, top](Canvas& canvas) {
    const Raster& r = tile->picture;
    canvas.text({kTileMargin, kTileMargin}, tile->title, tile_style(size.w));
    const Box box{kTileMargin, kTileMargin + top, size.w, size.h};
    canvas.image(box, {static_cast<int>(r.rows), static_cast<int>(r.columns), r.colors, {}});
    canvas.frame(box, {.color = kAxis, .width = 1});
  };
  return drawing;
}

}  // namespace

Raster raster_of(const Bitmap& bitmap) {
  const auto& [columns, rows, channels, bytes] = bitmap;
  const bool sizes = rows >= 1 && columns >= 1 && (channels == 1 || channels == 3);
  if (!sizes || static_cast<int64_t>(bytes.size()) != rows * columns * channels) {
    throw ShapeError("[picture] " + std::to_string(bytes.size()) + " bytes are not " + std::to_string(rows) + "x" +
                     std::to_string(columns) + " pixels of " + std::to_string(channels) + " channels");
  }
  Raster raster{.rows = rows, .columns = columns};
  const auto step = static_cast<size_t>(channels);
  for (size_t i = 0; i < bytes.size(); i += step) {
    const uint8_t r = bytes[i];
    raster.colors.push_back(step == 1 ? Rgb{r, r, r} : Rgb{r, bytes[i + 1], bytes[i + 2]});
  }
  return raster;
}

Raster overlay(const Raster& picture, std::span<const float> weights, int64_t patch_rows, int64_t patch_columns) {
  if (patch_rows < 1 || patch_columns < 1 || static_cast<int64_t>(weights.size()) != patch_rows * patch_columns) {
    throw ShapeError("[picture] " + std::to_string(weights.size()) + " weights are not a grid of " +
                     std::to_string(patch_rows) + "x" + std::to_string(patch_columns) + " patches");
  }
  const float largest = *std::max_element(weights.begin(), weights.end());
  Raster out = picture;
  for (int64_t y = 0, i = 0; y < picture.rows; ++y) {
    for (int64_t x = 0; x < picture.columns; ++x, ++i) {
      const int64_t patch = y * patch_rows / picture.rows * patch_columns + x * patch_columns / picture.columns;
      const float weight = std::max(0.0f, weights[static_cast<size_t>(patch)]);
      const double share = largest > 0 ? kStrongest * static_cast<double>(weight / largest) : 0;
      Rgb& c = out.colors[static_cast<size_t>(i)];
      const double grey = 0.299 * c.r + 0.587 * c.g + 0.114 * c.b;
      c = {mixed(grey, kTint.r, share), mixed(grey, kTint.g, share), mixed(grey, kTint.b, share)};
    }
  }
  return out;
}

Drawing draw_tiles(const std::string& title, const std::vector<Tile>& tiles, int columns, double side) {
  if (tiles.empty()) throw ShapeError("[picture] nothing to draw: no tiles");
  double title_height = 0;
  for (const Tile& tile : tiles) {
    if (tile.title.empty()) continue;
    title_height = std::max(title_height, measure_text(tile.title, tile_style(tile_size(tile.picture, side).w)).h);
  }
  std::vector<Drawing> parts;
  for (const Tile& tile : tiles) {
    parts.push_back(draw_tile(std::make_shared<const Tile>(tile), tile_size(tile.picture, side), title_height));
  }
  return arrange(title, std::move(parts), columns);
}

}  // namespace qkv
