// The table of tokenizers, pairs of them, and the two that need no library: words and characters.
#include "qkv/data/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "qkv/base/error.h"
#include "qkv/base/names.h"
#include "qkv/base/parallel.h"
#include "qkv/base/utf8.h"
#include "qkv/data/sentencepiece_tokenizer.h"
#include "qkv/io/file.h"
#include "qkv/io/json.h"

namespace qkv {
namespace {

constexpr uint64_t kLargestVocabulary = uint64_t{1} << 28;
constexpr std::string_view kJoiner = "\uFFED";
constexpr const char* kMarks[] = {"<pad>", "<unk>", "<s>", "</s>"};

// A vocabulary is a list of pieces whose first four are the marks.
class ListedTokenizer : public Tokenizer {
 public:
  explicit ListedTokenizer(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {
    for (size_t i = kSpecialIds; i < pieces_.size(); ++i) ids_.emplace(pieces_[i], static_cast<int64_t>(i));
  }

  int64_t size() const override { return static_cast<int64_t>(pieces_.size()); }
  std::string piece(int64_t id) const override {
    check_token_id(id, size());
    return pieces_[static_cast<size_t>(id)];
  }
  std::string bytes() const override {
    const nlohmann::json json = {{"kind", kind()}, {"pieces", pieces_}, {"lowercase", lowercase()}};
    return json.dump(0) + "\n";
  }

 protected:
  virtual bool lowercase() const { return false; }
  int64_t id_of(const std::string& piece) const {
    const auto found = ids_.find(piece);
    return found == ids_.end() ? kUnknownId : found->second;
  }

 private:
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, int64_t> ids_;
};

class WordTokenizer final : public ListedTokenizer {
 public:
  WordTokenizer(std::vector<std::string> pieces, bool lowercase)
      : ListedTokenizer(std::move(pieces)), lowercase_(lowercase) {}

  std::string kind() const override { return "word"; }
  std::vector<int64_t> encode(std::string_view text) const override {
    std::vector<int64_t> ids;
    for (const std::string& word : cut_words(lowercase_ ? utf8_lower(text) : text)) ids.push_back(id_of(word));
    return ids;
  }
  std::string decode(std::span<const int64_t> ids) const override {
    std::vector<std::string> words;
    for (const int64_t id : ids) {
      std::string word = piece(id);
      if (id >= kSpecialIds || id == kUnknownId) words.push_back(std::move(word));
    }
    return join_words(words);
  }

 private:
  bool lowercase() const override { return lowercase_; }
  bool lowercase_;
};

class CharTokenizer final : public ListedTokenizer {
 public:
  using ListedTokenizer::ListedTokenizer;

  std::string kind() const override { return "char"; }
  bool by_characters() const override { return true; }
  std::vector<int64_t> encode(std::string_view text) const override {
    std::vector<int64_t> ids;
    for (const std::string_view c : utf8_characters(text)) ids.push_back(id_of(std::string(c)));
    return ids;
  }
  std::string decode(std::span<const int64_t> ids) const override {
    std::string text;
    for (const int64_t id : ids) {
      const std::string c = piece(id);
      if (id >= kSpecialIds) {
        text += c;
      } else if (id == kUnknownId) {
        append_utf8(text, 0xFFFD);
      }
    }
    return text;
  }
};

// The pieces seen often enough, most frequent first (by bytes where the counts are equal), cut to the limit.
std::vector<std::string> choose_pieces(const PieceCounts& counts, const TokenizerOptions& options) {
  std::vector<std::pair<std::string, int64_t>> seen;
  for (const auto& entry : counts) {
    if (entry.second >= options.min_count) seen.push_back(entry);
  }
  std::sort(seen.begin(), seen.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  const auto room = static_cast<size_t>(std::max<int64_t>(options.vocabulary - kSpecialIds, 0));
  if (seen.size() > room) seen.resize(room);
  if (seen.empty()) throw ConfigError("no text to learn a vocabulary of kind '" + options.kind + "' from");
  std::vector<std::string> pieces(std::begin(kMarks), std::end(kMarks));
  for (auto& entry : seen) pieces.push_back(std::move(entry.first));
  return pieces;
}

std::shared_ptr<const Tokenizer> load_listed(const std::string& path) {
  const JsonSource source{
      .where = "cannot read " + path, .what = "a vocabulary of words or characters", .most_bytes = kLargestVocabulary};
  const Json json = parse_json(read_text(path, source.most_bytes), source);
  const JsonObject listed(json, source.where);
  auto pieces = listed.texts("pieces");
  const std::string& kind = listed.text("kind");
  const bool marked = pieces.size() > static_cast<size_t>(kSpecialIds) &&
                      std::equal(std::begin(kMarks), std::end(kMarks), pieces.begin());
  if (marked && kind == "word") return std::make_shared<WordTokenizer>(std::move(pieces), listed.flag("lowercase"));
  if (marked && kind == "char") return std::make_shared<CharTokenizer>(std::move(pieces));
  throw IoError(source.where + ": not " + source.what);
}

bool keeps_word_together(char32_t c) {
  return c == U'\'' || c == U'.' || c == U',' || c == U':' || c == U'_' || c == 0x2019;
}

// Letters and digits, as far as telling them from punctuation goes: ASCII is exact, beyond it the blocks of
// punctuation and symbols are known.
bool is_word_character(char32_t c) {
  if (c < 0x80) return (c >= U'0' && c <= U'9') || (c >= U'A' && c <= U'Z') || (c >= U'a' && c <= U'z');
  if (c < 0xC0) return c == 0xAA || c == 0xB5 || c == 0xBA;
  if (c == 0xD7 || c == 0xF7) return false;
  const bool symbol = (c >= 0x2000 && c <= 0x2BFF) || (c >= 0x3000 && c <= 0x303F) || (c >= 0xFE10 && c <= 0xFE6F) ||
                      (c >= 0xFF01 && c <= 0xFF0F) || (c >= 0xFFE0 && c <= 0xFFFD) || (c >= 0x1F000 && c <= 0x1FAFF);
  return !symbol;
}

struct CutPiece {
  std::string text;
  bool is_word = false;
  bool touches_last = false;  // no white space before it
};

std::vector<CutPiece> cut_pieces(std::string_view text) {
  const std::u32string all = utf8_to_code_points(text);
  std::vector<CutPiece> pieces;
  bool touches = false;
  for (size_t i = 0; i < all.size();) {
    if (is_unicode_space(all[i])) {
      touches = false;
      ++i;
      continue;
    }
    CutPiece piece{.text = {}, .is_word = is_word_character(all[i]), .touches_last = touches};
    do {
      append_utf8(piece.text, all[i++]);
      const bool inside = i + 1 < all.size() && keeps_word_together(all[i]) && is_word_character(all[i + 1]);
      if (piece.is_word && inside) append_utf8(piece.text, all[i++]);
    } while (piece.is_word && i < all.size() && is_word_character(all[i]));
    pieces.push_back(std::move(piece));
    touches = true;
  }
  return pieces;
}

}  // namespace

void Tokenizer::save(const std::string& folder, const std::string& name) const {
  write_file_atomic(folder + "/" + name + ending(), bytes());
}

std::vector<int64_t> Tokenizer::sample(std::string_view text, double, Rng&) const { return encode(text); }

void check_token_id(int64_t id, int64_t size) {
  if (id < 0 || id >= size) {
    throw ConfigError("token id " + std::to_string(id) + " is outside the vocabulary of " + std::to_string(size));
  }
}

std::vector<std::string> cut_words(std::string_view text) {
  const std::vector<CutPiece> pieces = cut_pieces(text);
  std::vector<std::string> words;
  for (size_t i = 0; i < pieces.size(); ++i) {
    std::string word;
    if (!pieces[i].is_word && pieces[i].touches_last) word += kJoiner;
    word += pieces[i].text;
    const bool word_follows = i + 1 < pieces.size() && pieces[i + 1].touches_last && pieces[i + 1].is_word;
    if (!pieces[i].is_word && word_follows) word += kJoiner;
    words.push_back(std::move(word));
  }
  return words;
}

std::string join_words(std::span<const std::string> words) {
  std::string text;
  bool glue = true;
  for (std::string_view word : words) {
    const bool lone = word == kJoiner;
    if (!lone && word.starts_with(kJoiner)) {
      word.remove_prefix(kJoiner.size());
      glue = true;
    }
    if (!glue) text.push_back(' ');
    glue = !lone && word.size() > kJoiner.size() && word.ends_with(kJoiner);
    if (glue) word.remove_suffix(kJoiner.size());
    text += word;
  }
  return text;
}

const std::vector<std::string>& tokenizer_kinds() {
  static const std::vector<std::string> kinds{"unigram", "bpe", "word", "char"};
  return kinds;
}

std::shared_ptr<const Tokenizer> train_tokenizer(std::span<const std::string> lines, const TokenizerOptions& options) {
  if (options.kind == "unigram" || options.kind == "bpe") return train_sentencepiece(lines, options);
  PieceCounts counts;
  for (const std::string& line : lines) {
    if (options.kind == "word") count_words(line, options.lowercase, counts);
    if (options.kind != "char") continue;
    for (const std::string_view c : utf8_characters(line)) ++counts[std::string(c)];
  }
  return tokenizer_of_counts(counts, options);
}

void count_words(std::string_view text, bool lowercase, PieceCounts& counts) {
  for (std::string& word : cut_words(lowercase ? utf8_lower(text) : text)) ++counts[std::move(word)];
}

std::shared_ptr<const Tokenizer> tokenizer_of_counts(const PieceCounts& counts, const TokenizerOptions& options) {
  if (options.kind == "word") return std::make_shared<WordTokenizer>(choose_pieces(counts, options), options.lowercase);
  if (options.kind == "char") {
    std::vector<std::string> pieces = choose_pieces(counts, options);
    std::sort(pieces.begin() + kSpecialIds, pieces.end());  // UTF-8 sorts as its code points do
    return std::make_shared<CharTokenizer>(std::move(pieces));
  }
  throw ConfigError("unknown tokenizer '" + options.kind + "'; expected " + listed(tokenizer_kinds(), " or "));
}

std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& folder, const std::string& name) {
  const std::string stem = folder + "/" + name;
  for (const char* kind : {"unigram", "bpe"}) {
    const std::string path = stem + "." + kind + ".model";
    if (std::filesystem::exists(path)) return load_sentencepiece(path, kind);
  }
  if (std::filesystem::exists(stem + ".json")) return load_listed(stem + ".json");
  throw IoError("no tokenizer '" + name + "' in " + folder + ": expected " + name + ".unigram.model, " + name +
                ".bpe.model or " + name + ".json");
}

TokenizerPair train_tokenizers(std::span<const std::string> source, std::span<const std::string> target, bool joint,
                               const TokenizerOptions& options) {
  if (!joint) return {train_tokenizer(source, options), train_tokenizer(target, options)};
  std::vector<std::string> both(source.begin(), source.end());
  both.insert(both.end(), target.begin(), target.end());
  const auto one = train_tokenizer(both, options);
  return {one, one};
}

RaggedIds encode_lines(const Tokenizer& tokenizer, std::span<const std::string> lines, const EncodeOptions& options) {
  std::vector<std::vector<int64_t>> encoded(lines.size());
  const Rng rng = Rng(options.seed).fork(static_cast<uint64_t>(options.epoch));
  constexpr int64_t kBlock = 64;
  parallel_blocks(static_cast<int64_t>(lines.size()), kBlock, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      Rng own = rng.fork(i);
      encoded[i] =
          options.sample_alpha < 0 ? tokenizer.encode(lines[i]) : tokenizer.sample(lines[i], options.sample_alpha, own);
    }
  });
  RaggedIds out;
  for (const std::vector<int64_t>& ids : encoded) {
    if (options.begin) out.ids.push_back(kBeginId);
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    if (options.end) out.ids.push_back(kEndId);
    out.offsets.push_back(static_cast<int64_t>(out.ids.size()));
  }
  return out;
}

void save_tokenizers(const TokenizerPair& pair, const std::string& folder) {
  if (pair.joint()) return pair.source->save(folder, "tokenizer");
  pair.source->save(folder, "source");
  pair.target->save(folder, "target");
}

TokenizerPair load_tokenizers(const std::string& folder) {
  for (const char* ending : {".unigram.model", ".bpe.model", ".json"}) {
    if (!std::filesystem::exists(folder + "/tokenizer" + ending)) continue;
    const auto one = load_tokenizer(folder, "tokenizer");
    return {one, one};
  }
  return {load_tokenizer(folder, "source"), load_tokenizer(folder, "target")};
}

}  // namespace qkv
