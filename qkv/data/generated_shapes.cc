// Built-in images of shapes, drawn by asking for 16 points of every pixel whether they lie inside.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "qkv/data/batching.h"
#include "qkv/data/images.h"

namespace qkv {
namespace {

struct Point {
  double x, y;
};

double length(Point p) { return std::sqrt(p.x * p.x + p.y * p.y); }

// Whether a point lies in the shape of radius 1 around the origin; y points down.
bool in_circle(Point p) { return length(p) < 0.9; }
bool in_square(Point p) { return std::max(std::abs(p.x), std::abs(p.y)) < 0.8; }
bool in_triangle(Point p) { return p.y < 0.7 && p.y > -0.95 + 1.75 * std::abs(p.x); }
bool in_cross(Point p) { return std::min(std::abs(p.x), std::abs(p.y)) < 0.25 && length(p) < 1; }
bool in_ring(Point p) { return length(p) < 0.95 && length(p) > 0.55; }
bool in_diamond(Point p) { return std::abs(p.x) * 1.5 + std::abs(p.y) < 1; }
bool in_star(Point p) {
  // Five equal wedges, mirrored: the edge runs from a tip at radius 1 to a notch at radius 0.42.
  constexpr double kHalfWedge = std::numbers::pi / 5;
  const double around = std::atan2(p.x, -p.y) + 10 * kHalfWedge;
  const double angle = std::abs(std::remainder(around, 2 * kHalfWedge));
  const Point notch{0.42 * std::cos(kHalfWedge), 0.42 * std::sin(kHalfWedge)};
  const Point q{length(p) * std::cos(angle), length(p) * std::sin(angle)};
  return (notch.x - 1) * q.y - notch.y * (q.x - 1) > 0;
}
bool in_crescent(Point p) { return length(p) < 0.95 && length({p.x - 0.45, p.y}) > 0.75; }

struct Shape {
  const char* name;
  bool (*inside)(Point);
};
constexpr Shape kShapes[] = {{"circle", in_circle}, {"square", in_square},    {"triangle", in_triangle},
                             {"cross", in_cross},   {"ring", in_ring},        {"diamond", in_diamond},
                             {"star", in_star},     {"crescent", in_crescent}};

void draw(const Shape& shape, int64_t side, Rng rng, std::span<uint8_t> out) {
  const double radius = static_cast<double>(side) * (0.2 + 0.2 * rng.uniform());
  const double room = static_cast<double>(side) - 2 * radius;
  const Point centre{radius + room * rng.uniform(), radius + room * rng.uniform()};
  const double tilt = (rng.uniform() - 0.5) * 0.6;
  const double ground = 60 * rng.uniform(), ink = ground + 90 + 100 * rng.uniform(), noise = 5 + 15 * rng.uniform();
  const double cos_tilt = std::cos(tilt), sin_tilt = std::sin(tilt);
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      int hits = 0;
      const Point offset{static_cast<double>(x) + 0.5 - centre.x, static_cast<double>(y) + 0.5 - centre.y};
      const bool near = length(offset) < radius + 1;  // nothing of the shape is farther out
      for (int k = 0; near && k < 16; ++k) {
        const int across = k % 4, down = k / 4;
        const double dx = (static_cast<double>(x) + (across + 0.5) / 4 - centre.x) / radius;
        const double dy = (static_cast<double>(y) + (down + 0.5) / 4 - centre.y) / radius;
        hits += shape.inside({cos_tilt * dx + sin_tilt * dy, cos_tilt * dy - sin_tilt * dx}) ? 1 : 0;
      }
      const double value = ground + (ink - ground) * hits / 16 + noise * rng.normal();
      out[static_cast<size_t>(y * side + x)] = static_cast<uint8_t>(std::lround(std::clamp(value, 0.0, 255.0)));
    }
  }
}

ImageSet make_set(int64_t n, int64_t side, uint64_t seed, uint64_t stream) {
  ImageSet set{.channels = 1, .height = side, .width = side};
  set.pixels.resize(static_cast<size_t>(n * side * side));
  const Rng rng = Rng(seed).fork(stream);
  const std::vector<int64_t> order = shuffled_indices(n, seed, stream);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t label = order[static_cast<size_t>(i)] % static_cast<int64_t>(std::size(kShapes));
    set.labels.push_back(label);
    draw(kShapes[label], side, rng.fork(static_cast<uint64_t>(i)),
         std::span(set.pixels).subspan(static_cast<size_t>(i * side * side), static_cast<size_t>(side * side)));
  }
  return set;
}

}  // namespace

ImageData generate_shapes(const ShapesOptions& options) {
  ImageData data;
  data.train = make_set(options.train, options.side, options.seed, 1);
  data.test = make_set(options.test, options.side, options.seed, 2);
  for (const Shape& shape : kShapes) data.classes.emplace_back(shape.name);
  return data;
}

}  // namespace qkv
