// Spans that carry facts: the runs of capitalised words in "TITLE. sentence", and corruptions that hide one of them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "qkv/base/rng.h"

namespace qkv {

/// Characters [begin, end) of a document.
struct CharSpan {
  int64_t begin = 0, end = 0;
  bool operator==(const CharSpan&) const = default;
};

/// Where a document's title ends, where the words after it begin, and which names they hold; all in characters.
struct NamedSpans {
  int64_t title = 0;            // the title is [0, title); ". " follows it. 0: no title
  std::vector<int64_t> words;   // first characters of the words after the title
  std::vector<CharSpan> names;  // runs of capitalised words after the title, without those made of its own words
};

/// The title ends before the first ". " that follows a word of three letters or more ("J. R. Hill. Hill was …" is about
/// J. R. Hill). A run goes over spaces alone: "Columbus, Ohio" holds two.
NamedSpans find_named_spans(std::string_view document);

struct NamedSpanOptions {
  int64_t block = 128;                         // the sequence takes at most ⌊7/8 · block⌋ + 3 ids
  std::span<const double> probabilities = {};  // of each name to be the one; empty: all alike
};

/// title before ⁇ after ⁇ name ⁇: one of the names is drawn and hidden; of the words between the title and it, and
/// of those after it, a random number next to it stays (few more often than many), so that the name must often be told
/// from the title alone. Throws ConfigError when there is no name.
std::vector<int64_t> corrupt_named_span(std::span<const int64_t> document, const NamedSpans& spans,
                                        const NamedSpanOptions& options, Rng& rng);

}  // namespace qkv
