// The data of a translation task: pairs of lines, tokenizers, and token ids cut into batches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "qkv/base/settings.h"
#include "qkv/data/batching.h"
#include "qkv/data/parallel_corpus.h"
#include "qkv/data/tokenizer.h"

namespace qkv {

/// The options that say which text is read and how it is cut.
void declare_translation_data(Settings& settings);

/// Pairs of one set as token ids, without begin and end marks.
struct EncodedPairs {
  RaggedIds source, target;
  std::vector<int64_t> costs() const;  // tokens of each pair, the end mark counted
};

/// Reads the corpus the settings name, or the generated one, when it is first needed: a trained translator needs only
/// the tokenizers of its run folder.
class TranslationData {
 public:
  /// assets: a run folder with the tokenizers, or empty to learn them from the training text. Throws IoError,
  /// ConfigError.
  TranslationData(const Settings& settings, const std::string& assets);

  const TokenizerPair& tokenizers() const { return tokenizers_; }
  const ParallelCorpus& corpus();
  const EncodedPairs& train();
  /// One of the segmentations of a training pair, drawn from the run's seed and the epoch (sampling > 0 only).
  EncodedPairs sampled(const std::vector<int64_t>& pairs, int64_t epoch);
  bool samples() const { return sampling_ > 0; }
  EncodedPairs encode(const ParallelSet& set) const;
  /// "DIR" (its test sets), "SRC,TGT" (two files) or "" (the corpus's own validation set). Throws IoError.
  std::vector<ParallelSet> evaluation_sets(const std::string& data, LineReport& left_out);

 private:
  Settings settings_;
  double sampling_;
  uint64_t seed_;
  std::unique_ptr<ParallelCorpus> corpus_;
  std::unique_ptr<EncodedPairs> train_;
  TokenizerPair tokenizers_;
};

/// Words of a line: runs of characters that are not white space.
std::vector<std::string> words_of_line(const std::string& line);

}  // namespace qkv
