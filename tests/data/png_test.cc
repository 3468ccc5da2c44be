// Every kind of PNG, decoded as libpng does it (by way of cairo), and damaged ones refused.
#include <cairo.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <cstring>

#include "qkv/base/budget.h"
#include "qkv/base/error.h"
#include "qkv/base/rng.h"
#include "qkv/data/images.h"

namespace qkv {
namespace {

struct Kind {
  int color, depth;
};
constexpr Kind kKinds[] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                           {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
constexpr int kAdam7[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                              {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

std::string four_bytes(uint32_t v) {
  return {static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8), static_cast<char>(v)};
}

std::string chunk(const std::string& type, const std::string& content) {
  const std::string body = type + content;
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return four_bytes(static_cast<uint32_t>(content.size())) + body + four_bytes(static_cast<uint32_t>(crc));
}

/// Random pixels under random filters, the data in two chunks.
std::string random_png(const Kind& kind, int width, int height, bool interlaced, bool transparent, Rng& rng) {
  const auto byte = [&] { return static_cast<char>(rng.below(3) == 0 ? 0 : rng.below(256)); };
  const int channels = kind.color == 2 ? 3 : kind.color == 4 ? 2 : kind.color == 6 ? 4 : 1;
  std::string raw;
  for (int pass = 0; pass < (interlaced ? 7 : 1); ++pass) {
    const int whole[4] = {0, 0, 1, 1}, *p = interlaced ? kAdam7[pass] : whole;
    const int columns = (width - p[0] + p[2] - 1) / p[2], rows = (height - p[1] + p[3] - 1) / p[3];
    for (int y = 0; columns > 0 && y < rows; ++y) {
      raw += static_cast<char>(rng.below(5));
      for (int i = 0; i < (columns * channels * kind.depth + 7) / 8; ++i) raw += byte();
    }
  }
  std::string packed(compressBound(raw.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(raw.data()), raw.size());
  packed.resize(size);
  std::string png = "\x89PNG\r\n\x1a\n" +
                    chunk("IHDR", four_bytes(static_cast<uint32_t>(width)) + four_bytes(static_cast<uint32_t>(height)) +
                                      std::string{static_cast<char>(kind.depth), static_cast<char>(kind.color), 0, 0,
                                                  static_cast<char>(interlaced)});
  std::string palette, alpha;
  for (int i = 0; i < 3 << kind.depth && kind.color == 3; ++i) palette += byte();
  for (int i = 0; i < (kind.color == 3 ? 2 : 2 * channels); ++i) alpha += kind.color == 3 ? byte() : '\0';
  if (!palette.empty()) png += chunk("PLTE", palette);
  if (transparent && kind.color < 4) png += chunk("tRNS", alpha);
  return png + chunk("tEXt", "who cares") + chunk("IDAT", packed.substr(0, 3)) + chunk("IDAT", packed.substr(3)) +
         chunk("IEND", "");
}

struct CairoPicture {
  std::vector<uint8_t> planes;
  bool exact = true;  // cairo 1.18 keeps 16 bits, as floats; before, it dropped the lower eight as we do
};

CairoPicture by_cairo(std::string png) {
  const auto give = [](void* from, unsigned char* out, unsigned length) {
    auto& left = *static_cast<std::string*>(from);
    if (left.size() < length) return CAIRO_STATUS_READ_ERROR;
    std::memcpy(out, left.data(), length);
    left.erase(0, length);
    return CAIRO_STATUS_SUCCESS;
  };
  cairo_surface_t* s = cairo_image_surface_create_from_png_stream(give, &png);
  EXPECT_EQ(cairo_surface_status(s), CAIRO_STATUS_SUCCESS);
  const int width = cairo_image_surface_get_width(s), height = cairo_image_surface_get_height(s);
  const int format = cairo_image_surface_get_format(s);
  CairoPicture picture{{}, format <= CAIRO_FORMAT_RGB30};
  const int floats = format == CAIRO_FORMAT_RGB30 + 1 ? 3 : 4;  // RGB96F and RGBA128F, which cairo 1.16 does not name
  for (int c = 0; c < 3; ++c) {
    for (int i = 0; i < width * height; ++i) {
      const unsigned char* row = cairo_image_surface_get_data(s) + i / width * cairo_image_surface_get_stride(s);
      uint32_t pixel = 0;
      float value = 0;
      if (picture.exact) {
        std::memcpy(&pixel, row + i % width * 4, 4);
        picture.planes.push_back(static_cast<uint8_t>(pixel >> (16 - 8 * c)));
      } else {
        std::memcpy(&value, row + (i % width * floats + c) * 4, 4);
        picture.planes.push_back(static_cast<uint8_t>(std::lround(255 * value)));
      }
    }
  }
  cairo_surface_destroy(s);
  return picture;
}

Picture decoded(const std::string& png) { return decode_png(std::as_bytes(std::span(png.data(), png.size())), "p"); }

TEST(PngDecoder, ReadsEveryKindAsLibpngDoes) {
  Rng rng(5);
  for (const Kind& kind : kKinds) {
    for (const auto& [width, height] : {std::pair{1, 1}, {3, 2}, {13, 9}}) {
      for (const int how : {0, 1, 2, 3}) {
        const std::string png = random_png(kind, width, height, how & 1, how & 2, rng);
        const Picture p = decoded(png);
        EXPECT_EQ(p.width, width);
        const auto [planes, exact] = by_cairo(png);
        ASSERT_EQ(p.pixels.size(), planes.size());
        for (size_t i = 0; i < planes.size(); ++i) {
          EXPECT_NEAR(p.pixels[i], planes[i], exact ? 0 : 2)
              << kind.color << " " << kind.depth << " " << width << " " << how << " at " << i;
        }
      }
    }
  }
}

TEST(PngDecoder, StopsWithItsBudget) {
  Rng rng(4);
  const std::string png = random_png({6, 8}, 40, 40, false, false, rng);
  const Budget spent(std::chrono::seconds(0), 1 << 30);
  const BudgetScope scope(&spent);
  EXPECT_THROW(decode_png(std::as_bytes(std::span(png)), "it"), BudgetError);
}

TEST(PngDecoder, RefusesWhatIsNotWhole) {
  Rng rng(6);
  const std::string good = random_png({2, 8}, 5, 4, false, false, rng);
  for (size_t cut = 8; cut < good.size(); ++cut) EXPECT_THROW(decoded(good.substr(0, cut)), IoError) << cut;
  for (size_t i = 8; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x55);
    EXPECT_THROW(decoded(bad), IoError) << i;
  }
  // A chunk before IHDR cannot pass another size off as the picture's.
  const std::string early = good.substr(0, 8) + chunk("tEXt", std::string(20, 'x')) + good.substr(8);
  EXPECT_THROW(decoded(early), IoError);
}

}  // namespace
}  // namespace qkv
