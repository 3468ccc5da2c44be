// Which source word a translator looked at for each word it wrote.
#pragma once

#include <string>
#include <vector>

#include "qkv/data/tokenizer.h"
#include "qkv/nn/context.h"

namespace qkv {

/// The site under which the summary of all attention to the source is traced.
inline constexpr const char* kAlignmentSite = "alignment";

/// Weights [target, source], row by row.
using AlignmentWeights = std::vector<std::vector<double>>;

/// The mean over the heads of the upper half of the layers, which align best. Empty when nothing attends to the source.
AlignmentWeights alignment_weights(const std::vector<AttentionTrace>& attention);
/// The same as one more trace, of site kAlignmentSite with one head.
AttentionTrace alignment_trace(const AlignmentWeights& weights);

/// The word of its line that each piece belongs to, counted from 0 as white space separates them.
std::vector<int64_t> word_of_piece(const Tokenizer& tokenizer, const std::vector<int64_t>& ids);
/// Moses format, "0-0 1-2 …": source word - target word, each target token with the source token of largest weight;
/// sorted, each pair once. Rows beyond target_words (the end mark) are left out.
std::string alignment_text(const AlignmentWeights& weights, const std::vector<int64_t>& source_words,
                           const std::vector<int64_t>& target_words);

}  // namespace qkv
