// Corpus BLEU, figure for figure what sacreBLEU 2 computes, with its signature line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

/// n-grams of one to this many words count.
inline constexpr size_t kOrders = 4;

/// What a corpus is scored from: matched and possible n-grams of each order, and the lengths in tokens.
struct BleuCounts {
  std::vector<int64_t> matches = std::vector<int64_t>(kOrders), totals = matches;
  int64_t output_length = 0;
  int64_t reference_length = 0;  // of the reference nearest in length (the shorter one when two are as near)
};

struct BleuScore {
  double score = 0;                // 0 to 100
  std::vector<double> precisions;  // per cent, smoothed
  double brevity_penalty = 1;
  BleuCounts counts;

  /// "BLEU = 33.47 66.4/42.0/28.0/18.7 (BP = 0.987 ratio = 0.987 hyp_len = 11856 ref_len = 12011)"
  std::string text() const;
};

/// The 13a tokeniser of mteval: entities (&quot; &amp; &lt; &gt;) undone, ASCII punctuation split off, full stops and
/// commas split off unless between digits, a dash split off after a digit. Words come out separated by one space.
std::string tokenize_13a(std::string_view text);
/// A segment as it is compared: without white space at its end, tokenised.
std::string bleu_segment(std::string_view text);

/// BLEU = BP · exp(Σ_n ln p_n / N) with p_n = matched / possible n-grams, counts clipped by the largest count in any
/// reference, BP = exp(1 − reference length / output length) where the output is shorter; an order without a match
/// counts as 1/2, 1/4, … of one. N = 4, or with `effective_order` (for single sentences) the highest order the output
/// has any n-gram of. references[r][i] is reference r of segment i. Throws ConfigError when a list of references has
/// another size than the outputs, or there is none.
BleuScore corpus_bleu(std::span<const std::string> outputs, std::span<const std::vector<std::string>> references,
                      bool effective_order = false);
/// With one reference each.
BleuScore corpus_bleu(std::span<const std::string> outputs, const std::vector<std::string>& references,
                      bool effective_order = false);
BleuScore bleu_of_counts(const BleuCounts& counts, bool effective_order = false);

/// These choices in sacreBLEU's words: every 2.x version of it gives the same figure.
inline constexpr const char* kBleuSignature = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.x";

}  // namespace qkv
