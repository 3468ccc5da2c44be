// SentencePiece models as tokenizers: trained in memory, stored as their own bytes.
#include "qkv/data/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "qkv/base/error.h"
#include "qkv/base/utf8.h"
#include "qkv/data/sentencepiece_check.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

using sentencepiece::SentencePieceProcessor;

// Lets a map of strings be asked with a view, which sampling does for every stretch of the text.
struct HashText {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

constexpr uint64_t kLargestModel = uint64_t{1} << 28;
constexpr std::string_view kSpaceMark = "\u2581";
constexpr double kNever = -std::numeric_limits<double>::infinity();

// SentencePiece 0.2.1 replaced a status of its own by Abseil's.
using Status = decltype(std::declval<const sentencepiece::SentenceIterator&>().status());

// Training counts a word's characters in 16 bits and ends the process where they do not suffice; of one letter again
// and again it takes a time that grows with the square of the word. Normalising makes up to six characters of one.
constexpr size_t kLongestWord = 4000;

// The line with words cut that are longer than that.
std::string with_words_cut(const std::string& line) {
  std::string out;
  for (const std::string_view word : split_words(line)) {
    size_t characters = 0;
    if (!out.empty()) out += ' ';
    for (const std::string_view c : utf8_characters(word)) {
      if (characters > 0 && characters % kLongestWord == 0) out += ' ';
      out += c;
      ++characters;
    }
  }
  return out;
}

bool has_long_word(const std::string& line) {
  if (line.size() <= kLongestWord) return false;
  const std::vector<std::string_view> words = split_words(line);
  return std::any_of(words.begin(), words.end(), [](std::string_view word) { return word.size() > kLongestWord; });
}

class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(std::span<const std::string> lines) : lines_(lines) { look(); }
  bool done() const override { return next_ >= lines_.size(); }
  void Next() override {
    ++next_;
    look();
  }
  const std::string& value() const override { return cut_ ? *cut_ : lines_[next_]; }
  Status status() const override { return {}; }

 private:
  void look() {
    cut_.reset();
    if (!done() && has_long_word(lines_[next_])) cut_ = with_words_cut(lines_[next_]);
  }

  std::span<const std::string> lines_;
  size_t next_ = 0;
  std::optional<std::string> cut_;
};

class SentencePieceTokenizer final : public Tokenizer {
 public:
  // Throws IoError with what is wrong with the model.
  SentencePieceTokenizer(std::string model, std::string kind) : model_(std::move(model)), kind_(std::move(kind)) {
    if (!processor_.LoadFromSerializedProto(model_).ok() || processor_.GetPieceSize() <= kSpecialIds) {
      throw IoError("it is not a SentencePiece model");
    }
    if (processor_.pad_id() != kPadId || processor_.unk_id() != kUnknownId || processor_.bos_id() != kBeginId ||
        processor_.eos_id() != kEndId) {
      throw IoError("its marks have other ids than pad 0, unk 1, begin 2, end 3");
    }
    for (int id = kSpecialIds; id < processor_.GetPieceSize(); ++id) {
      if (processor_.IsUnused(id) || processor_.IsControl(id)) continue;
      const std::string& piece = processor_.IdToPiece(id);
      pieces_.emplace(piece, Scored{id, processor_.GetScore(id)});
      words_apart_ &= piece.find(kSpaceMark, 1) == std::string::npos;
      longest_ = std::max(longest_, utf8_characters(piece).size());
      lowest_score_ = std::min(lowest_score_, static_cast<double>(processor_.GetScore(id)));
    }
  }

  std::string kind() const override { return kind_; }
  int64_t size() const override { return processor_.GetPieceSize(); }

  std::vector<int64_t> encode(std::string_view text) const override {
    std::vector<int> ids;
    if (!processor_.Encode(text, &ids).ok()) return {};
    return {ids.begin(), ids.end()};
  }

  std::vector<int64_t> sample(std::string_view text, double alpha, Rng& rng) const override;

  std::string decode(std::span<const int64_t> ids) const override {
    std::vector<int> inner;
    for (const int64_t id : ids) {
      check_token_id(id, size());
      if (id >= kSpecialIds || id == kUnknownId) inner.push_back(static_cast<int>(id));
    }
    std::string text;
    // SentencePiece 0.2.2 would rather have a span of Abseil's, which 0.1.97 does not take.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    const bool decoded = processor_.Decode(inner, &text).ok();
#pragma GCC diagnostic pop
    if (!decoded) text.clear();
    return text;
  }

  std::string piece(int64_t id) const override {
    check_token_id(id, size());
    return processor_.IdToPiece(static_cast<int>(id));
  }

  std::string bytes() const override { return model_; }
  std::string ending() const override { return "." + kind_ + ".model"; }

 private:
  struct Scored {
    int64_t id = kUnknownId;
    double score = 0;
  };
  // The piece that spans `text`; a single character without one is unknown, at SentencePiece's own penalty.
  Scored find(std::string_view text, bool single) const {
    const auto found = pieces_.find(text);
    if (found != pieces_.end()) return found->second;
    return {kUnknownId, single ? lowest_score_ - 10 : kNever};
  }

  std::string model_, kind_;
  SentencePieceProcessor processor_;
  std::unordered_map<std::string, Scored, HashText, std::equal_to<>> pieces_;
  size_t longest_ = 1;
  bool words_apart_ = true;  // no piece has a space inside
  double lowest_score_ = 0;
};

double log_add(double a, double b) {
  if (a == kNever) return b;
  if (b == kNever) return a;
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

// Forward filtering, backward sampling: reach[j] = log Σ over segmentations of the first j characters of
// exp(alpha · score); then from the end, the last piece is drawn from its posterior, and so on to the front.
std::vector<int64_t> SentencePieceTokenizer::sample(std::string_view text, double alpha, Rng& rng) const {
  if (kind_ != "unigram") return encode(text);
  std::vector<std::string> best;
  if (!processor_.Encode(text, &best).ok()) return {};
  std::string normal;  // pieces put together again are the normalised text
  for (const std::string& piece : best) normal += piece;
  const std::vector<std::string_view> characters = utf8_characters(normal);
  const size_t n = characters.size();
  const auto stretch = [&](size_t i, size_t j) {
    const char* end = characters[j - 1].data() + characters[j - 1].size();
    return std::string_view(characters[i].data(), static_cast<size_t>(end - characters[i].data()));
  };
  // Where a piece that ends before j may begin: no piece reaches back beyond the space mark of its word.
  std::vector<size_t> first_start(n + 1, 0);
  size_t word = 0;
  for (size_t j = 1; j <= n; ++j) {
    if (words_apart_ && characters[j - 1] == kSpaceMark) word = j - 1;
    first_start[j] = std::max(word, j > longest_ ? j - longest_ : 0);
  }

  std::vector<double> reach(n + 1, kNever);
  reach[0] = 0;
  for (size_t j = 1; j <= n; ++j) {
    for (size_t i = first_start[j]; i < j; ++i) {
      const double score = find(stretch(i, j), j - i == 1).score;
      if (score != kNever) reach[j] = log_add(reach[j], reach[i] + alpha * score);
    }
  }
  std::vector<int64_t> ids;
  for (size_t j = n; j > 0;) {
    double left = rng.uniform();
    size_t begin = j - 1;
    Scored drawn = find(stretch(begin, j), true);
    for (size_t i = first_start[j]; i + 1 < j; ++i) {
      const Scored piece = find(stretch(i, j), false);
      if (piece.score == kNever) continue;
      left -= std::exp(reach[i] + alpha * piece.score - reach[j]);
      if (left < 0) {
        begin = i;
        drawn = piece;
        break;
      }
    }
    // Neighbouring unknown characters are one unknown piece, as in encode.
    if (drawn.id != kUnknownId || ids.empty() || ids.back() != kUnknownId) ids.push_back(drawn.id);
    j = begin;
  }
  std::reverse(ids.begin(), ids.end());
  return ids;
}

// The library's messages carry a source line and a condition in brackets; what follows them is the message itself.
std::string readable(const std::string& message) {
  const size_t at = message.rfind("] ");
  return at == std::string::npos || at + 2 >= message.size() ? message : message.substr(at + 2);
}

}  // namespace

const char* usual_tokenizer() { return "unigram"; }

std::shared_ptr<const Tokenizer> train_sentencepiece(std::span<const std::string> lines,
                                                     const TokenizerOptions& options) {
  const bool has_text =
      std::any_of(lines.begin(), lines.end(), [](const std::string& line) { return !split_words(line).empty(); });
  if (!has_text) throw ConfigError("no text to learn a vocabulary of kind '" + options.kind + "' from");
  const std::unordered_map<std::string, std::string> settings = {
      {"model_type", options.kind},
      {"vocab_size", std::to_string(options.vocabulary)},
      {"hard_vocab_limit", "false"},  // fewer pieces where the text has no more
      {"character_coverage", "1.0"},
      {"pad_id", std::to_string(kPadId)},
      {"unk_id", std::to_string(kUnknownId)},
      {"bos_id", std::to_string(kBeginId)},
      {"eos_id", std::to_string(kEndId)},
      {"max_sentence_length", "1000000"},
      {"num_threads", "4"},  // sums are split over them, so their number is part of the result
      {"minloglevel", "4"},  // above every level: it writes nothing
  };
  Lines iterator(lines);
  std::string model;
  const Status status = sentencepiece::SentencePieceTrainer::Train(settings, &iterator, &model);
  if (!status.ok()) {
    throw ConfigError("cannot learn " + std::to_string(options.vocabulary) + " " + options.kind +
                      " pieces: " + readable(status.ToString()));
  }
  return std::make_shared<SentencePieceTokenizer>(std::move(model), options.kind);
}

std::shared_ptr<const Tokenizer> load_sentencepiece(const std::string& path, const std::string& kind) {
  std::string model = read_text(path, kLargestModel);
  try {
    check_sentencepiece_model(model);
    return std::make_shared<SentencePieceTokenizer>(std::move(model), kind);
  } catch (const IoError& e) {
    throw IoError("cannot read " + path + ": " + e.what());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception&) {  // of the library, about pieces it cannot look up
    throw IoError("cannot read " + path + ": it is not a SentencePiece model");
  }
}

}  // namespace qkv
