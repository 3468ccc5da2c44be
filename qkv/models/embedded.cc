// Embeds tokens and adds their positions.
#include "qkv/models/embedded.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "qkv/base/error.h"

namespace qkv {

Positions positions_named(const std::string& name) {
  constexpr std::array<std::pair<const char*, Positions>, 5> kNames{{{"none", Positions::none},
                                                                     {"sinusoidal", Positions::sinusoidal},
                                                                     {"learned", Positions::learned},
                                                                     {"rotary", Positions::rotary},
                                                                     {"alibi", Positions::alibi}}};
  std::string known;
  for (const auto& [n, value] : kNames) {
    if (name == n) return value;
    known += (known.empty() ? "" : ", ") + std::string(n);
  }
  throw ConfigError("no positions '" + name + "'; there are " + known);
}

EmbeddedTokens::EmbeddedTokens(const EmbeddedConfig& config, Rng& rng)
    : config_(config), embedding_(config.vocabulary, config.width, rng, config.stddev), dropout_(config.dropout) {
  constexpr int64_t kUsual = 512;
  if (config.positions == Positions::sinusoidal) sinusoids_ = sinusoidal_positions(kUsual, config.width);
  if (config.positions == Positions::learned) learned_ = LearnedPositions(config.longest, config.width, rng);
}

void EmbeddedTokens::visit(Visitor& see) {
  see("tokens", embedding_);
  if (config_.positions == Positions::learned) see("positions", learned_);
}

Tensor EmbeddedTokens::forward(std::span<const int64_t> ids, std::span<const int64_t> positions, Context& ctx) const {
  Tensor x = embedding_.forward(ids);  // [N, C]
  if (config_.scaled) x = affine(x, std::sqrt(static_cast<double>(config_.width)));
  if (config_.positions == Positions::learned) {
    std::vector<int64_t> places(positions.begin(), positions.end());
    if (config_.endless) {
      for (int64_t& place : places) place = std::min(place, config_.longest - 1);
    }
    x = add(x, learned_.forward(places));
  } else if (config_.positions == Positions::sinusoidal) {
    const int64_t longest = positions.empty() ? 0 : *std::max_element(positions.begin(), positions.end()) + 1;
    const Tensor table = longest <= sinusoids_.dim(0) ? sinusoids_ : sinusoidal_positions(longest, config_.width);
    x = add(x, gather_rows(x.dtype() == table.dtype() ? table : table.to(x.dtype()), positions));
  }
  return dropout_.forward(x, ctx);
}

}  // namespace qkv
