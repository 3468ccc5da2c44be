// Alignments from attention weights.
#include "qkv/tasks/translate/alignment.h"

#include <algorithm>

#include "qkv/base/error.h"
#include "qkv/nn/attention.h"

namespace qkv {
namespace {

constexpr std::string_view kSpaceMark = "\u2581", kJoiner = "\uFFED";

/// Whether a piece begins a word of the line, given the piece before it.
bool opens_word(const std::string& kind, const std::string& piece, const std::string& before) {
  if (kind == "word") return !piece.starts_with(kJoiner) && !before.ends_with(kJoiner);
  if (kind == "char") return before == " " && piece != " ";
  return piece.starts_with(kSpaceMark);
}

}  // namespace

AlignmentWeights alignment_weights(const std::vector<AttentionTrace>& attention) {
  std::vector<const AttentionTrace*> layers;
  for (const AttentionTrace& t : attention) {
    if (t.site == "cross") layers.push_back(&t);
  }
  if (layers.empty()) return {};
  layers.erase(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(layers.size() / 2));
  const AttentionTrace& top = *layers.back();
  const auto rows = static_cast<size_t>(top.Lq), columns = static_cast<size_t>(top.Lk);
  AlignmentWeights mean(rows, std::vector<double>(columns, 0.0));
  const double share = 1.0 / static_cast<double>(top.H * static_cast<int64_t>(layers.size()));
  for (const AttentionTrace* layer : layers) {
    for (int64_t h = 0; h < layer->H; ++h) {
      const std::vector<double> w = layer->scores({.h = h, .row_end = layer->Lq}).to_doubles();
      for (size_t i = 0; i < w.size(); ++i) mean[i / columns][i % columns] += w[i] * share;
    }
  }
  return mean;
}

AttentionTrace alignment_trace(const AlignmentWeights& weights) {
  const auto rows = static_cast<int64_t>(weights.size());
  const auto columns = static_cast<int64_t>(weights.empty() ? 0 : weights[0].size());
  Tensor one = Tensor::empty({1, rows, columns});
  float* to = one.f32();
  for (const std::vector<double>& row : weights) {
    to = std::transform(row.begin(), row.end(), to, [](double w) { return static_cast<float>(w); });
  }
  return trace_of_weights(kAlignmentSite, 0, std::move(one));
}

std::vector<int64_t> word_of_piece(const Tokenizer& tokenizer, const std::vector<int64_t>& ids) {
  std::vector<int64_t> words;
  std::string before;
  const std::string kind = tokenizer.kind();
  for (const int64_t id : ids) {
    const std::string piece = tokenizer.piece(id);
    const int64_t last = words.empty() ? 0 : words.back();
    words.push_back(!words.empty() && opens_word(kind, piece, before) ? last + 1 : last);
    before = piece;
  }
  return words;
}

std::string alignment_text(const AlignmentWeights& weights, const std::vector<int64_t>& source_words,
                           const std::vector<int64_t>& target_words) {
  std::vector<std::pair<int64_t, int64_t>> links;
  for (size_t t = 0; t < target_words.size() && t < weights.size(); ++t) {
    const auto best = std::max_element(weights[t].begin(), weights[t].end()) - weights[t].begin();
    if (static_cast<size_t>(best) >= source_words.size()) continue;
    links.emplace_back(source_words[static_cast<size_t>(best)], target_words[t]);
  }
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  std::string text;
  for (const auto& [s, t] : links) text += (text.empty() ? "" : " ") + std::to_string(s) + "-" + std::to_string(t);
  return text;
}

}  // namespace qkv
