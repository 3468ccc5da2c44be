// Tokenizers behind one interface: SentencePiece (unigram, BPE), words with a minimum count, characters.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "qkv/base/rng.h"
#include "qkv/data/batching.h"

namespace qkv {

/// The first ids of every vocabulary.
inline constexpr int64_t kPadId = 0, kUnknownId = 1, kBeginId = 2, kEndId = 3;
inline constexpr int64_t kSpecialIds = 4;

/// Text to ids and back. Immutable, so one may serve many threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// One of tokenizer_kinds().
  virtual std::string kind() const = 0;
  virtual int64_t size() const = 0;
  /// The ids of a text, without begin and end marks. Never throws: what the vocabulary lacks becomes kUnknownId.
  virtual std::vector<int64_t> encode(std::string_view text) const = 0;
  /// One of the possible segmentations, drawn with probability ∝ Π p(piece)^alpha (subword regularisation).
  /// Unigram only; the others have one segmentation and return encode(text).
  virtual std::vector<int64_t> sample(std::string_view text, double alpha, Rng& rng) const;
  /// Readable text. Pad, begin and end marks leave no trace. Throws ConfigError for an id outside the vocabulary.
  virtual std::string decode(std::span<const int64_t> ids) const = 0;
  /// The piece as diagrams show it: "▁Haus", "<s>". Throws ConfigError for an id outside the vocabulary.
  virtual std::string piece(int64_t id) const = 0;
  /// Whether every character is one token.
  virtual bool by_characters() const { return false; }
  /// Its own file: all that encoding depends on.
  virtual std::string bytes() const = 0;
  /// What a name in a run folder gets at its end: ".unigram.model", ".bpe.model" or ".json".
  virtual std::string ending() const { return ".json"; }
  /// Writes its file into a run folder, to be found again by load_tokenizer(folder, name).
  void save(const std::string& folder, const std::string& name) const;
};

/// "unigram", "bpe", "word", "char".
const std::vector<std::string>& tokenizer_kinds();

struct TokenizerOptions {
  std::string kind = "unigram";  // one of tokenizer_kinds()
  int64_t vocabulary = 8000;     // at most this many pieces, the four marks included
  int64_t min_count = 1;         // words and characters seen less often become kUnknownId
  bool lowercase = false;        // words only
};

/// Learns a vocabulary; the same lines and options give the same tokenizer on every machine. SentencePiece gives fewer
/// pieces than asked for where the text has no more. Throws ConfigError: unknown kind, no text, or a vocabulary too
/// small for the characters of the text.
std::shared_ptr<const Tokenizer> train_tokenizer(std::span<const std::string> lines, const TokenizerOptions& options);
/// The same of kind "word" or "char", where its pieces have been counted.
using PieceCounts = std::unordered_map<std::string, int64_t>;
std::shared_ptr<const Tokenizer> tokenizer_of_counts(const PieceCounts& counts, const TokenizerOptions& options);
void count_words(std::string_view text, bool lowercase, PieceCounts& counts);
/// Throws IoError when the folder holds no tokenizer of that name, or a damaged one.
std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& folder, const std::string& name);

/// The two sides of a translator; one and the same object when the vocabulary is joint.
struct TokenizerPair {
  std::shared_ptr<const Tokenizer> source, target;

  bool joint() const { return source == target; }
};

TokenizerPair train_tokenizers(std::span<const std::string> source, std::span<const std::string> target, bool joint,
                               const TokenizerOptions& options);
/// As tokenizer.*, or source.* and target.*.
void save_tokenizers(const TokenizerPair& pair, const std::string& folder);
TokenizerPair load_tokenizers(const std::string& folder);

struct EncodeOptions {
  bool begin = false, end = false;  // whether kBeginId goes before, kEndId after each line
  double sample_alpha = -1;         // negative: encode; else sample with this alpha
  uint64_t seed = 0;                // of the samples, with the epoch and the line's number
  int64_t epoch = 0;
};
/// Every line, on all threads; the same ids for any number of them.
RaggedIds encode_lines(const Tokenizer& tokenizer, std::span<const std::string> lines,
                       const EncodeOptions& options = {});

/// The words of a text as the word tokenizer cuts it: maximal runs of letters and digits (with ' . , : and _ kept
/// between two of them), and single other characters. A joiner U+FFED marks the side on which such a character touches
/// its neighbour: `"Hi"-x` is `"￭ Hi ￭" ￭-￭ x`. join_words undoes it exactly, up to the kind of white space.
std::vector<std::string> cut_words(std::string_view text);
std::string join_words(std::span<const std::string> words);

}  // namespace qkv
