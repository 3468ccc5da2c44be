// Embeds tokens and adds their positions.
#include "qkv/models/embedded.h"

#include <algorithm>
#include <cmath>

#include "qkv/base/error.h"

namespace qkv {

EmbeddedTokens::EmbeddedTokens(const EmbeddedConfig& config, Rng& rng)
    : config_(config), embedding_(config.vocabulary, config.width, rng, config.stddev), dropout_(config.dropout) {
  constexpr int64_t kUsual = 512;
  const PositionsRow& kind = row_of(config.positions);
  if (kind.fixed) fixed_ = kind.fixed(kUsual, config.width);
  if (kind.learned) learned_ = LearnedPositions(config.longest, config.width, rng);
}

void EmbeddedTokens::visit(Visitor& see) {
  see("tokens", embedding_);
  if (row_of(config_.positions).learned) see("positions", learned_);
}

Tensor EmbeddedTokens::forward(std::span<const int64_t> ids, std::span<const int64_t> positions, Context& ctx) const {
  Tensor x = embedding_.forward(ids);  // [N, C]
  if (config_.scaled) x = affine(x, std::sqrt(static_cast<double>(config_.width)));
  const PositionsRow& kind = row_of(config_.positions);
  if (kind.learned) {
    std::vector<int64_t> places(positions.begin(), positions.end());
    if (config_.endless) {
      for (int64_t& place : places) place = std::min(place, config_.longest - 1);
    }
    x = add(x, learned_.forward(places));
  } else if (kind.fixed) {
    const int64_t longest = positions.empty() ? 0 : *std::max_element(positions.begin(), positions.end()) + 1;
    const Tensor table = longest <= fixed_.dim(0) ? fixed_ : kind.fixed(longest, config_.width);
    x = add(x, gather_rows(x.dtype() == table.dtype() ? table : table.to(x.dtype()), positions));
  }
  return dropout_.forward(x, ctx);
}

void EmbeddedTokens::write(std::span<const int64_t> ids, std::span<const int64_t> positions, Tensor& more,
                           float* out) const {
  const PositionsRow& kind = row_of(config_.positions);
  const int64_t C = config_.width, longest = *std::max_element(positions.begin(), positions.end()) + 1;
  const auto unknown = [&](int64_t id) { return id < 0 || id >= config_.vocabulary; };
  if (std::any_of(ids.begin(), ids.end(), unknown) || (kind.learned && !config_.endless && longest > config_.longest)) {
    Context ctx;
    forward(ids, positions, ctx);  // says what is wrong
  }
  if (kind.fixed && longest > fixed_.dim(0) && (!more.defined() || longest > more.dim(0))) {
    more = kind.fixed(2 * longest, C);
  }
  const Tensor& added = kind.learned ? learned_.table() : kind.fixed && longest > fixed_.dim(0) ? more : fixed_;
  const float scale = config_.scaled ? static_cast<float>(std::sqrt(static_cast<double>(C))) : 1.0f;
  for (size_t i = 0; i < ids.size(); ++i, out += C) {
    const float* token = table().f32() + ids[i] * C;
    for (int64_t c = 0; c < C; ++c) out[c] = token[c] * scale;
    if (!kind.added()) continue;
    const float* place = added.f32() + std::min(positions[i], added.dim(0) - 1) * C;
    for (int64_t c = 0; c < C; ++c) out[c] += place[c];
  }
}

}  // namespace qkv
