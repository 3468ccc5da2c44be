// Reading, generating, hiding and ordering what the knowledge task learns from.
#include "qkv/tasks/knowledge/data.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "qkv/base/error.h"
#include "qkv/base/utf8.h"
#include "qkv/data/batching.h"
#include "qkv/data/generated_knowledge.h"
#include "qkv/data/text_file.h"

namespace qkv {
namespace {

constexpr uint64_t kCorruptionStream = 31, kFixedStream = 32, kQuestionStream = 33, kStrangerStream = 34;
constexpr int64_t kStrangers = 20;

std::string in_folder(const std::string& folder, const char* name) {
  const std::string path = find_plain_or_gz(folder + "/" + name);
  if (path.empty()) {
    throw IoError("no " + std::string(name) + " in " + folder +
                  "; the folder needs wiki.txt, birth_places_train.tsv and birth_dev.tsv");
  }
  return path;
}

GeneratedKnowledge generated(const Settings& s) {
  return generate_knowledge({.seed = static_cast<uint64_t>(s.get_integer("generated-seed")),
                             .people = s.get_integer("people"),
                             .places = s.get_integer("places"),
                             .documents = s.get_integer("documents"),
                             .strangers = kStrangers});
}

/// First and last names of different people put together, where no text has the two; then names of syllables.
std::vector<std::string> strangers_to(const KnowledgeCorpus& corpus) {
  std::vector<std::string> firsts, lasts, found;
  for (const auto* facts : {&corpus.train, &corpus.dev}) {
    for (const Fact& fact : *facts) {
      const std::string name = name_in_question(fact.question);
      const size_t space = name.find(' ');
      if (space == std::string::npos || name.find(' ', space + 1) != std::string::npos) continue;
      firsts.push_back(name.substr(0, space));
      lasts.push_back(name.substr(space + 1));
    }
  }
  Rng rng = Rng(1).fork(kStrangerStream);
  for (int tries = 0; tries < 1000 && !firsts.empty() && found.size() < kStrangers / 2; ++tries) {
    const auto n = static_cast<int64_t>(firsts.size());
    const std::string& first = firsts[static_cast<size_t>(rng.below(n))];
    const std::string name = first + " " + lasts[static_cast<size_t>(rng.below(n))];
    const bool read = std::any_of(corpus.documents.begin(), corpus.documents.end(),
                                  [&](const std::string& d) { return d.find(name) != std::string::npos; });
    if (!read && std::find(found.begin(), found.end(), name) == found.end()) found.push_back(name);
  }
  const GeneratedKnowledge invented = generate_knowledge({.people = 2, .places = 2, .strangers = kStrangers});
  for (const std::string& name : invented.strangers) {
    if (found.size() < kStrangers) found.push_back(name);
  }
  return found;
}

std::string title_of(const std::string& document, const NamedSpans& names) {
  std::string title;
  const std::u32string text = utf8_to_code_points(document);
  for (int64_t i = 0; i < names.title; ++i) append_utf8(title, text[static_cast<size_t>(i)]);
  return title;
}

/// Every k-th training pair, so that the slice does not depend on a seed.
void hold_back(KnowledgeCorpus& corpus, int64_t held) {
  const auto n = static_cast<int64_t>(corpus.train.size());
  if (held >= n)
    throw ConfigError("--held " + std::to_string(held) + " leaves none of the " + std::to_string(n) +
                      " training pairs");
  std::vector<Fact> kept;
  for (int64_t i = 0; i < n; ++i) {
    const bool out = (i + 1) * held / n > i * held / n;
    (out ? corpus.held : kept).push_back(corpus.train[static_cast<size_t>(i)]);
  }
  corpus.train = std::move(kept);
}

}  // namespace

void declare_knowledge_data(Settings& s) {
  s.group("data")
      .choice("stage", "pretrain", {"pretrain", "finetune"}, "read documents, or learn to answer questions")
      .path("data", "", "folder with wiki.txt, birth_places_train.tsv and birth_dev.tsv; empty: invented people")
      .integer("held", 100, "training pairs that are held out for validation", 0, 1e6)
      .number("span", 0.25, "fraction of a document that a random span hides on average", 0.01, 0.5)
      .flag("third-mask", true, "write ⁇ after the hidden span too")
      .flag("random-start", false, "read a long document from a random place, not from its beginning")
      .number("names", 0, "fraction of the documents that hide a run of capitalised words instead of a random span", 0,
              1)
      .number("answers", 0,
              "of these, the fraction whose name is drawn by how much it looks like an answer, as learnt from "
              "the training pairs",
              0, 1)
      .number(
          "ask", 0,
          "fraction of the documents that are read as a question, answered as its training pair says or else with the "
          "name that looks most like an answer",
          0, 1)
      .choice("loss", "all", {"all", "span"}, "predict every character of a document, or the hidden ones only")
      .number("span-weight", 1, "how much a hidden character counts in the loss, against 1 for the others", 0.001, 1000)
      .number("questions", 0, "how often each training question is read during one pass over the documents", 0, 1000)
      .integer("people", 300, "people of the generated corpus", 10, 1e5)
      .integer("places", 20, "places of the generated corpus", 2, 1e4)
      .integer("documents", 3, "documents about each person of the generated corpus", 1, 8)
      .integer("generated-seed", 1, "seed of the generated corpus, the same for all runs of a study", 0)
      .open_to_clients({"stage", "held", "span", "third-mask", "random-start", "names", "answers", "ask", "loss",
                        "span-weight", "questions", "people", "places", "documents", "generated-seed"});
}

KnowledgeData::KnowledgeData(const Settings& s, const std::string& assets)
    : settings_(s),
      pretraining_(s.get_text("stage") == "pretrain"),
      seed_(static_cast<uint64_t>(s.get_integer("seed"))),
      block_(s.get_integer("block")),
      named_(s.get_number("names")),
      answers_(s.get_number("answers")),
      questions_(s.get_number("questions")),
      ask_(s.get_number("ask")),
      span_only_(s.get_text("loss") == "span"),
      span_options_{.block = block_,
                    .fraction = s.get_number("span"),
                    .third_mask = s.get_flag("third-mask"),
                    .random_start = s.get_flag("random-start")} {
  if (!assets.empty()) {
    vocabulary_ = CharVocabulary::load(assets);
  } else {
    corpus();
  }
}

const KnowledgeCorpus& KnowledgeData::corpus() {
  if (corpus_) return *corpus_;
  KnowledgeCorpus c;
  const std::string& folder = settings_.get_text("data");
  if (folder.empty()) {
    GeneratedKnowledge g = generated(settings_);
    c.documents = std::move(g.documents);
    c.train = std::move(g.train);
    c.dev = std::move(g.dev);
    c.strangers = std::move(g.strangers);
    c.train_file = "generated training pairs";
    c.dev_file = "generated dev pairs";
    if (!vocabulary_) {
      std::string text = "?\n";  // questions end in a mark that the documents have no use for
      for (const std::string& d : c.documents) text += d;
      for (const Fact& f : c.train) text += f.question;
      vocabulary_ = CharVocabulary::of_text(text);
    }
  } else {
    Documents documents = read_documents(in_folder(folder, "wiki.txt"));
    c.documents = std::move(documents.lines);
    if (!vocabulary_) vocabulary_ = std::move(documents.vocabulary);
    c.train_file = in_folder(folder, "birth_places_train.tsv");
    c.dev_file = in_folder(folder, "birth_dev.tsv");
    c.train = read_facts(c.train_file);
    c.dev = read_facts(c.dev_file);
    c.strangers = strangers_to(c);
  }
  hold_back(c, settings_.get_integer("held"));
  corpus_ = std::move(c);
  return *corpus_;
}

std::vector<LanguageExample> KnowledgeData::question_examples(const std::vector<Fact>& facts, const std::string& file,
                                                              Missing missing) const {
  std::vector<LanguageExample> all;
  for (const Fact& f : facts) all.push_back(finetune_example(f, vocabulary(), block_, file, missing));
  return all;
}

void KnowledgeData::encode() {
  const KnowledgeCorpus& c = corpus();
  if (asked_.empty()) asked_ = question_examples(c.train, c.train_file);
  if (!pretraining_ || !documents_.empty()) return;
  const std::string where =
      settings_.get_text("data").empty() ? "generated documents" : settings_.get_text("data") + "/wiki.txt";
  vocabulary().require(c.documents, where);
  for (const std::string& d : c.documents) {
    documents_.push_back(vocabulary().encode(d, where));
    names_.push_back(find_named_spans(d));
  }
  if (answers_ == 0 && ask_ == 0) return;
  const AnswerSpans likely(c.documents, names_, c.train);
  std::map<std::string, int64_t> pairs;
  for (size_t i = 0; i < c.train.size(); ++i) pairs[name_in_question(c.train[i].question)] = static_cast<int64_t>(i);
  for (size_t i = 0; i < names_.size(); ++i) {
    answer_like_.push_back(likely.probabilities(c.documents[i], names_[i]));
    const auto pair = pairs.find(title_of(c.documents[i], names_[i]));
    pair_of_.push_back(pair == pairs.end() ? -1 : pair->second);
  }
}

LanguageExample KnowledgeData::asked_of(int64_t document) const {
  const auto at = static_cast<size_t>(document);
  if (pair_of_[at] >= 0) return asked_[static_cast<size_t>(pair_of_[at])];
  const Fact fact{as_question(title_of(corpus_->documents[at], names_[at])), found_in(at), document + 1};
  return finetune_example(fact, vocabulary(), block_, "documents");
}

std::string KnowledgeData::found_in(size_t document) const {
  const std::vector<double>& p = answer_like_[document];
  if (p.empty()) return "";
  const CharSpan name = names_[document].names[static_cast<size_t>(std::max_element(p.begin(), p.end()) - p.begin())];
  const std::vector<int64_t>& ids = documents_[document];
  return vocabulary().decode(
      std::span(ids).subspan(static_cast<size_t>(name.begin), static_cast<size_t>(name.end - name.begin)));
}

std::optional<Matches> KnowledgeData::open_book(const std::vector<Fact>& facts) {
  encode();
  if (answer_like_.empty()) return std::nullopt;
  std::map<std::string, std::string> found;
  for (size_t i = 0; i < names_.size(); ++i) found[title_of(corpus_->documents[i], names_[i])] = found_in(i);
  std::vector<std::string> answers;
  for (const Fact& f : facts) answers.push_back(found[name_in_question(f.question)]);
  return count_matches(answers, facts);
}

LanguageExample KnowledgeData::corrupted(int64_t document, Rng& rng) {
  const std::vector<int64_t>& ids = documents_[static_cast<size_t>(document)];
  const NamedSpans& names = names_[static_cast<size_t>(document)];
  const bool named = rng.uniform() < named_ && !names.names.empty();
  const bool by_answers = rng.uniform() < answers_;
  const bool as_asked = rng.uniform() < ask_;
  if (as_asked && !names.names.empty() && names.title > 0) return asked_of(document);
  NamedSpanOptions how{.block = block_, .probabilities = {}};
  if (by_answers) how.probabilities = answer_like_[static_cast<size_t>(document)];
  const std::vector<int64_t> sequence =
      named ? corrupt_named_span(ids, names, how, rng) : corrupt_span(ids, span_options_, rng);
  LanguageExample example = language_example(sequence);
  if (span_only_) {
    // The hidden part comes after the second mask.
    size_t masks = 0;
    for (size_t i = 0; i < example.input.size(); ++i) {
      masks += example.input[i] == CharVocabulary::kMask ? 1 : 0;
      if (masks < 2) example.target[i] = LanguageExample::kNoTarget;
    }
  }
  return example;
}

void KnowledgeData::plan(int64_t epoch) {
  if (planned_epoch_ == epoch) return;
  encode();
  const auto documents = static_cast<int64_t>(documents_.size()), asked = static_cast<int64_t>(asked_.size());
  std::vector<int64_t> all;
  for (int64_t i = 0; i < documents; ++i) all.push_back(i);
  // Of 2.5 readings per question, two are certain and the third falls to half of the questions, others every epoch.
  const double times = pretraining_ ? questions_ : 1;
  const std::vector<int64_t> lucky =
      shuffled_indices(asked, mix64(seed_ + kQuestionStream), static_cast<uint64_t>(epoch));
  const auto whole = static_cast<int64_t>(times);
  const auto part =
      static_cast<int64_t>(std::lround((times - static_cast<double>(whole)) * static_cast<double>(asked)));
  for (int64_t k = 0; k < whole; ++k) {
    for (int64_t i = 0; i < asked; ++i) all.push_back(documents + i);
  }
  for (int64_t i = 0; i < part; ++i) all.push_back(documents + lucky[static_cast<size_t>(i)]);
  order_.clear();
  for (const int64_t i : shuffled_indices(static_cast<int64_t>(all.size()), seed_, static_cast<uint64_t>(epoch))) {
    order_.push_back(all[static_cast<size_t>(i)]);
  }
  planned_epoch_ = epoch;
}

int64_t KnowledgeData::examples_in_epoch() {
  plan(std::max<int64_t>(planned_epoch_, 0));
  return static_cast<int64_t>(order_.size());
}

std::vector<LanguageExample> KnowledgeData::examples(int64_t epoch, int64_t first, int64_t count) {
  plan(epoch);
  const auto documents = static_cast<int64_t>(documents_.size());
  const Rng stream = Rng(seed_).fork(kCorruptionStream).fork(static_cast<uint64_t>(epoch));
  std::vector<LanguageExample> all;
  const int64_t end = std::min(first + count, static_cast<int64_t>(order_.size()));
  for (int64_t i = first; i < end; ++i) {
    const int64_t which = order_[static_cast<size_t>(i)];
    Rng rng = stream.fork(static_cast<uint64_t>(i));
    all.push_back(which < documents ? corrupted(which, rng) : asked_[static_cast<size_t>(which - documents)]);
  }
  return all;
}

std::vector<LanguageExample> KnowledgeData::fixed_examples(int64_t count) {
  encode();
  std::vector<LanguageExample> all;
  const auto n = static_cast<int64_t>(documents_.size());
  const int64_t wanted = std::min(count, n);
  for (int64_t i = 0; i < wanted; ++i) {
    Rng rng = Rng(kFixedStream).fork(static_cast<uint64_t>(i));
    all.push_back(corrupted(i * n / wanted, rng));
  }
  return all;
}

}  // namespace qkv
