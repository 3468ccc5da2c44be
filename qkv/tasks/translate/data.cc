// Corpus, tokenizers and token ids of a translation task.
#include "qkv/tasks/translate/data.h"

#include <filesystem>
#include <sstream>

#include "qkv/base/error.h"
#include "qkv/data/generated_translation.h"
#include "qkv/data/sentencepiece_tokenizer.h"

namespace qkv {
namespace {

constexpr uint64_t kSamplingStream = 21;

ParallelOptions languages(const Settings& s) { return {s.get_text("source-lang"), s.get_text("target-lang")}; }

// A pair of file settings; both or neither must be given.
ParallelFiles named_files(const Settings& s, const std::string& set) {
  const std::string &source = s.get_text(set + "-src"), &target = s.get_text(set + "-tgt");
  if (source.empty() != target.empty())
    throw ConfigError("--" + set + "-src and --" + set + "-tgt must be given together");
  return {set, source, target};
}

ParallelCorpus read_corpus(const Settings& s) {
  const ParallelFiles train = named_files(s, "train"), val = named_files(s, "val"), test = named_files(s, "test");
  if (!s.get_text("data").empty()) {
    if (!train.source.empty()) throw ConfigError("give --data or --train-src and --train-tgt, not both");
    return read_parallel_folder(s.get_text("data"), languages(s));
  }
  if (!train.source.empty()) {
    if (val.source.empty()) throw ConfigError("--train-src needs --val-src and --val-tgt as well");
    std::vector<ParallelFiles> tests;
    if (!test.source.empty()) tests.push_back(test);
    return read_parallel_files(train, val, tests, languages(s));
  }
  return generate_parallel_corpus(
      {.seed = static_cast<uint64_t>(s.get_integer("seed")), .train = s.get_integer("generated-size")});
}

}  // namespace

void declare_translation_data(Settings& s) {
  s.group("data")
      .path("data", "", "folder with train, val and test* in two languages (Multi30k layout); empty: generated text")
      .text("source-lang", "de", "language translated from, as the files' names end")
      .text("target-lang", "en", "language translated to");
  for (const char* set : {"train", "val", "test"}) {
    s.path(std::string(set) + "-src", "", std::string(set) + " text in the source language (instead of --data)");
    s.path(std::string(set) + "-tgt", "", std::string(set) + " text in the target language");
  }
  s.integer("generated-size", 4000, "pairs of the generated corpus", 100, 1e6)
      .choice("tokenizer", usual_tokenizer(), tokenizer_kinds(), "tokenizer")
      .integer("vocabulary", 5000, "tokens at most", 16, 1e6)
      .flag("joint", true, "one vocabulary for both languages")
      .integer("min-count", 2, "words and characters seen less often are unknown", 1, 1e6)
      .number("sampling", 0.3, "sample segmentations with this alpha while training; 0: the best one (unigram)", 0, 10)
      .integer("max-tokens", 128, "longer pairs are left out of training", 2, 100000)
      .open_to_clients({"generated-size", "tokenizer", "vocabulary", "joint", "min-count", "sampling", "max-tokens"});
}

std::vector<int64_t> EncodedPairs::costs() const {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < source.size(); ++i) all.push_back(source.length(i) + target.length(i) + 1);
  return all;
}

TranslationData::TranslationData(const Settings& settings, const std::string& assets)
    : settings_(settings),
      sampling_(settings.get_number("sampling")),
      seed_(static_cast<uint64_t>(settings.get_integer("seed"))) {
  if (!assets.empty()) {
    tokenizers_ = load_tokenizers(assets);
    return;
  }
  const ParallelSet& train = corpus().train;
  tokenizers_ = train_tokenizers(train.source, train.target, settings_.get_flag("joint"),
                                 {.kind = settings_.get_text("tokenizer"),
                                  .vocabulary = settings_.get_integer("vocabulary"),
                                  .min_count = settings_.get_integer("min-count")});
}

const ParallelCorpus& TranslationData::corpus() {
  if (!corpus_) corpus_ = std::make_unique<ParallelCorpus>(read_corpus(settings_));
  return *corpus_;
}

EncodedPairs TranslationData::encode(const ParallelSet& set) const {
  return {encode_lines(*tokenizers_.source, set.source), encode_lines(*tokenizers_.target, set.target)};
}

const EncodedPairs& TranslationData::train() {
  if (train_) return *train_;
  const EncodedPairs all = encode(corpus().train);
  const int64_t most = settings_.get_integer("max-tokens");
  std::vector<int64_t> kept;
  ParallelSet& lines = corpus_->train;
  ParallelSet kept_lines{.name = lines.name, .file = lines.file};
  for (int64_t i = 0; i < all.source.size(); ++i) {
    const auto k = static_cast<size_t>(i);
    if (all.source.length(i) == 0 || all.source.length(i) > most || all.target.length(i) > most) {
      const LineFault fault = all.source.length(i) == 0 ? LineFault::empty : LineFault::too_long;
      corpus_->report.add(lines.file, lines.numbers.empty() ? i + 1 : lines.numbers[k], fault);
      continue;
    }
    kept.push_back(i);
    kept_lines.source.push_back(std::move(lines.source[k]));
    kept_lines.target.push_back(std::move(lines.target[k]));
  }
  if (kept.empty()) throw IoError("no training pair has at most --max-tokens " + std::to_string(most) + " tokens");
  lines = std::move(kept_lines);
  train_ = std::make_unique<EncodedPairs>(EncodedPairs{gather(all.source, kept), gather(all.target, kept)});
  return *train_;
}

EncodedPairs TranslationData::sampled(const std::vector<int64_t>& pairs, int64_t epoch) {
  EncodedPairs drawn;
  const Rng stream = Rng(seed_).fork(kSamplingStream).fork(static_cast<uint64_t>(epoch));
  for (const int64_t i : pairs) {
    Rng rng = stream.fork(static_cast<uint64_t>(i));
    const ParallelSet& lines = corpus().train;
    drawn.source.push_back(tokenizers_.source->sample(lines.source[static_cast<size_t>(i)], sampling_, rng));
    drawn.target.push_back(tokenizers_.target->sample(lines.target[static_cast<size_t>(i)], sampling_, rng));
  }
  return drawn;
}

std::vector<ParallelSet> TranslationData::evaluation_sets(const std::string& data, LineReport& left_out) {
  if (data.empty()) return {corpus().val};
  std::vector<ParallelFiles> files;
  const size_t comma = data.find(',');
  if (comma != std::string::npos) {
    const std::string source = data.substr(0, comma);
    files.push_back({std::filesystem::path(source).stem().string(), source, data.substr(comma + 1)});
  } else {
    for (const ParallelFiles& f : find_parallel_sets(data, languages(settings_))) {
      if (f.name.rfind("test", 0) == 0) files.push_back(f);
    }
    if (files.empty()) throw IoError(data + ": no test* set here; give two files as SRC,TGT");
  }
  std::vector<ParallelSet> sets;
  for (const ParallelFiles& f : files) sets.push_back(read_parallel(f, 0, left_out));
  return sets;
}

std::vector<std::string> words_of_line(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string w; in >> w;) words.push_back(w);
  return words;
}

}  // namespace qkv
