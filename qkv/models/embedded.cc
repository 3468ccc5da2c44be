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

}  // namespace qkv
