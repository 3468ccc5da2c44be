// Documents, questions and vocabulary of the knowledge task, and the examples of each epoch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qkv/base/settings.h"
#include "qkv/data/answer_spans.h"
#include "qkv/data/knowledge.h"
#include "qkv/data/named_spans.h"

namespace qkv {

void declare_knowledge_data(Settings& settings);

/// Everything the task reads. With a folder: wiki.txt, birth_places_train.tsv, birth_dev.tsv; else invented people.
struct KnowledgeCorpus {
  std::vector<std::string> documents;
  std::vector<Fact> train, held, dev;  // held: training pairs kept from training, to choose settings by
  std::vector<std::string> strangers;  // names that no document mentions
  std::string train_file, dev_file;    // how messages call them
};

class KnowledgeData {
 public:
  /// The vocabulary is read from `assets` (a run folder), or taken from the documents when that is empty; everything
  /// else is read when it is first needed. Throws IoError, ConfigError.
  KnowledgeData(const Settings& settings, const std::string& assets);

  const CharVocabulary& vocabulary() const { return *vocabulary_; }
  const KnowledgeCorpus& corpus();
  bool pretraining() const { return pretraining_; }

  /// Examples of an epoch, in the order they are read: documents with a span hidden and, where asked for, questions;
  /// or the questions alone when finetuning. Example i depends on (seed, epoch, i) only.
  int64_t examples_in_epoch();
  std::vector<LanguageExample> examples(int64_t epoch, int64_t first, int64_t count);
  /// Documents hidden in a way that never changes, to measure the loss of reading.
  std::vector<LanguageExample> fixed_examples(int64_t count);
  std::vector<LanguageExample> question_examples(const std::vector<Fact>& facts, const std::string& file,
                                                 Missing missing = Missing::refuse) const;
  /// How many of these questions the names that look most like an answer would answer, each read from its text: what
  /// reading as questions can teach at most. Nothing where no such names are used.
  std::optional<Matches> open_book(const std::vector<Fact>& facts);

 private:
  void encode();
  /// The name in a document that looks most like an answer; empty when it has no names.
  std::string found_in(size_t document) const;
  LanguageExample corrupted(int64_t document, Rng& rng);
  /// The question about the document's person: of the training pairs, or with the name that looks most like the answer.
  LanguageExample asked_of(int64_t document) const;
  void plan(int64_t epoch);

  Settings settings_;
  bool pretraining_ = true;
  uint64_t seed_;
  int64_t block_;
  double named_ = 0, answers_ = 0, questions_ = 0, ask_ = 0;
  bool span_only_ = false;
  SpanOptions span_options_;
  std::optional<CharVocabulary> vocabulary_;
  std::optional<KnowledgeCorpus> corpus_;
  std::vector<std::vector<int64_t>> documents_;  // encoded
  std::vector<NamedSpans> names_;
  std::vector<std::vector<double>> answer_like_;  // of each document's names, where asked for
  std::vector<int64_t> pair_of_;                  // the training pair about each document's person, or -1
  std::vector<LanguageExample> asked_;            // the training questions
  int64_t planned_epoch_ = -1;
  std::vector<int64_t> order_;  // of the epoch: documents, then questions from documents_.size() on
};

}  // namespace qkv
