// The Vision Transformer.
#include "qkv/models/vit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/base/error.h"
#include "qkv/nn/positions.h"

namespace qkv {
namespace {

// Of the size of a projected patch.
constexpr double kPositionSpread = 0.5;

StackConfig stack_of(const VitConfig& c) {
  StackConfig s;
  s.width = c.width;
  s.heads = c.heads;
  s.layers = c.layers;
  s.inner = c.inner > 0 ? c.inner : 4 * c.width;
  s.dropout = c.dropout;
  s.self_attention = c.attention;
  s.block = 1 + (c.height / c.patch) * (c.image_width / c.patch);
  return s;
}

}  // namespace

Tensor grid_positions(Positions kind, int64_t rows, int64_t columns, int64_t width) {
  const auto fixed = row_of(kind).fixed;
  if (!fixed) throw ConfigError(std::string("[vit] positions '") + name_of(kind) + "' are not made for a grid");
  if (width % 2 != 0) throw ConfigError("[vit] positions of a grid need an even width, not " + std::to_string(width));
  const Tensor down = fixed(rows, width / 2), across = fixed(columns, width / 2);
  std::vector<int64_t> row, column;
  for (int64_t i = 0; i < rows * columns; ++i) {
    row.push_back(i / columns);
    column.push_back(i % columns);
  }
  return concat({gather_rows(down, row), gather_rows(across, column)}, 1);
}

Vit::Vit(const VitConfig& config, Rng& rng) : config_(config), dropout_(config.dropout) {
  check_size("[vit] patch", config.patch);
  check_size("[vit] channels", config.channels);
  check_size("[vit] image height", config.height);
  check_size("[vit] image width", config.image_width);
  if (config.height % config.patch != 0 || config.image_width % config.patch != 0) {
    throw ConfigError("[vit] patches of " + std::to_string(config.patch) + " do not fill an image of " +
                      std::to_string(config.height) + " by " + std::to_string(config.image_width));
  }
  if (!(config.shown > 0 && config.shown <= 1)) {
    throw ConfigError("[vit] the fraction of the patches shown is " + std::to_string(config.shown) +
                      "; it must be above 0 and at most 1");
  }
  project_ = Linear(config.channels * config.patch * config.patch, config.width, rng);
  if (!config.mean_pooling) class_token_ = parameter(Tensor::randn({1, config.width}, rng, 0.02));
  if (row_of(config.positions).learned) {
    positions_ = parameter(Tensor::randn({tokens(), config.width}, rng, kPositionSpread));
  } else {
    const Tensor grid = grid_positions(config.positions, rows(), columns(), config.width);
    positions_ = config.mean_pooling ? grid : concat({Tensor::zeros({1, config.width}), grid}, 0);
  }
  stack_ = TransformerStack(stack_of(config), rng);
  if (config.shown < 1 && stack_.layers()[0].self->goes_by_place()) {
    throw ConfigError("[vit] attention '" + config.attention.name() +
                      "' depends on a token's position and needs all patches; set the fraction shown to 1");
  }
  head_ = Linear(config.width, config.classes, rng);
}

void Vit::visit(Visitor& see) {
  see("patch", project_);
  if (class_token_.defined()) see("class_token", class_token_);
  if (row_of(config_.positions).learned) see("positions", positions_);
  see("stack", stack_);
  see("head", head_);
}

Tensor Vit::patches(const Tensor& images) const {
  const int64_t C = config_.channels, h = config_.height, w = config_.image_width, p = config_.patch;
  const bool plain = images.rank() == 3 && C == 1;
  if ((!plain && images.rank() != 4) || images.dim(-1) != w || images.dim(-2) != h || (!plain && images.dim(1) != C)) {
    throw ShapeError("[vit] images=" + images.shape().str() + "; expected " + Shape{images.dim(0), C, h, w}.str());
  }
  const int64_t B = images.dim(0);
  const Tensor cut = permute(reshape(images, {B, C, h / p, p, w / p, p}), {0, 2, 4, 1, 3, 5});
  return reshape(contiguous(cut), {B * (h / p) * (w / p), C * p * p});
}

int64_t Vit::shown_patches() const {
  return std::max<int64_t>(std::llround(config_.shown * static_cast<double>(rows() * columns())), 1);
}

std::vector<int64_t> Vit::seen_patches(int64_t B, int64_t shown, Context& ctx) const {
  const int64_t all = rows() * columns();
  std::vector<int64_t> order(static_cast<size_t>(all)), seen;
  std::iota(order.begin(), order.end(), int64_t{0});
  Rng rng(shown < all ? ctx.next_seed() : 0);
  for (int64_t b = 0; b < B; ++b) {
    const auto end = order.begin() + shown;
    if (shown < all) {
      for (auto at = order.begin(); at != end; ++at) std::swap(*at, *(at + rng.below(order.end() - at)));
      std::sort(order.begin(), end);
    }
    for (auto at = order.begin(); at != end; ++at) seen.push_back(b * all + *at);
  }
  return seen;
}

Tensor Vit::forward(const Tensor& images, Context& ctx) const {
  const int64_t B = images.dim(0), C = config_.width, all = rows() * columns(), first = first_patch();
  const int64_t shown = ctx.training() ? shown_patches() : all, n = first + shown;
  const std::vector<int64_t> seen = seen_patches(B, shown, ctx);
  Tensor pixels = patches(images);  // [B·patches, channels·patch²]
  if (shown < all) pixels = gather_rows(pixels, seen);
  std::vector<int64_t> from, place, begin;  // of each token: row of [class token; patches], position; first token
  for (int64_t b = 0; b < B; ++b) {
    begin.push_back(b * n);
    if (first == 1) {
      from.push_back(0);
      place.push_back(0);
    }
    for (int64_t i = b * shown; i < (b + 1) * shown; ++i) {
      from.push_back(first + i);
      place.push_back(first + seen[static_cast<size_t>(i)] % all);
    }
  }
  Tensor rows = project_.forward(pixels);                                             // [B·shown, C]
  if (first == 1) rows = gather_rows(concat({class_token_, rows}, 0), from);          // [B·n, C]
  const Tensor x = dropout_.forward(add(rows, gather_rows(positions_, place)), ctx);  // [B·n, C]
  const Ragged batch = Ragged::equal(B, n);
  if (first == 1) return head_.forward(stack_.forward_one(x, batch, begin, "self", ctx));
  return head_.forward(mean(reshape(stack_.forward(x, batch, "self", ctx), {B, n, C}), 1));
}

}  // namespace qkv
