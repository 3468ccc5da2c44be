// Token streams: the same tokens from memory, from a text and from a token file; what is wrong with such a file is
// said.
#include "qkv/data/token_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/base/rng.h"
#include "qkv/base/utf8.h"
#include "qkv/data/preparation.h"
#include "qkv/data/text_file.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::TempFolder;

struct Heard final : PreparationObserver {
  void on_progress(const std::string& job, int64_t done, int64_t total) override {
    if (done >= total) finished.push_back(job);
  }
  void on_note(const std::string& note) override { notes.push_back(note); }
  std::vector<std::string> finished, notes;
};

std::string sentences(int lines, uint64_t seed) {
  static const std::vector<std::string> words{"der",    "Hund", "läuft", "über", "die",
                                              "Straße", "und",  "bellt", "laut", "☺"};
  Rng rng(seed);
  std::string text;
  for (int i = 0; i < lines; ++i) {
    for (int64_t n = rng.below(12); n > 0; --n) (text += words[static_cast<size_t>(rng.below(10))]) += n > 1 ? " " : "";
    text += rng.below(5) == 0 ? "\r\n" : "\n";
  }
  return text;
}

/// Line by line, all at once.
std::vector<int64_t> tokens_of(const std::string& text, const Tokenizer& tokenizer) {
  std::vector<int64_t> ids;
  for (const std::string& line : split_lines(text)) {
    for (const int64_t id : tokenizer.encode(line)) ids.push_back(id);
    ids.push_back(kEndId);
  }
  return ids;
}

std::vector<int64_t> all_of(const TokenStream& stream) { return stream.read(0, stream.size()); }

TEST(TokenStream, TokensAreThoseOfTheLines) {
  const TempFolder folder;
  // Longer than some stretches, and a last line without an end.
  const std::string raw = sentences(12'000, 1) + "das Ende";
  write_file_atomic(folder / "t", raw);
  const auto text = PlainText::read(folder / "t");
  ASSERT_GT(text->all().size(), PlainText::kStretch);
  for (const std::string kind : {"char", "word", "bpe", "unigram"}) {
    const auto tokenizer = train_tokenizer(*text, text->all(), {.kind = kind, .vocabulary = 60});
    EXPECT_EQ(tokenizer->bytes(), train_tokenizer(split_lines(raw), {.kind = kind, .vocabulary = 60})->bytes());
    const TextSplit split = text->split(0.1);
    const TextPart inside{split.train.begin + 1, split.train.end - 3};  // begins and ends inside a line
    for (const TextPart part : {split.validation, inside, text->all()}) {
      const std::vector<int64_t> expected = tokens_of(text->characters(part), *tokenizer);
      const auto memory = token_stream(text, part, tokenizer);
      ASSERT_EQ(memory->size(), static_cast<int64_t>(expected.size())) << kind;
      EXPECT_EQ(all_of(*memory), expected) << kind;
      const auto file = token_stream(text, part, tokenizer, {.name = "part", .large = 10});
      EXPECT_EQ(all_of(*file), expected) << kind;
      Rng rng(2);
      for (int i = 0; i < 50; ++i) {
        const int64_t begin = rng.below(file->size()), end = std::min(begin + rng.below(100), file->size());
        const std::vector<int64_t> some(expected.begin() + begin, expected.begin() + end);
        ASSERT_EQ(file->read(begin, end), some);
        ASSERT_EQ(memory->read(begin, end), some);
      }
    }
  }
}

TEST(TokenStream, VocabularyIsLearnedFromThePartAlone) {
  const auto text = PlainText::of("aab\nbbc\nxyz\n", "t");
  const auto tokenizer = train_tokenizer(*text, {0, 8}, {.kind = "char"});
  EXPECT_EQ(tokenizer->size(), kSpecialIds + 3);
  EXPECT_EQ(tokenizer->encode("x"), std::vector<int64_t>{kUnknownId});
}

TEST(TokenStream, ALongTextIsSampledForSubwords) {
  Heard heard;
  const WatchPreparation watch(&heard);
  std::string raw = sentences(10'000, 5);
  for (int i = 0; i < 10'000; ++i) raw += "quick vixens jump\n";  // letters that the beginning does not have
  const TokenizerOptions options{.kind = "bpe", .vocabulary = 50};
  const auto lines = PlainText::of(raw, "t");
  EXPECT_EQ(train_tokenizer(*lines, lines->all(), options)->bytes(),
            train_tokenizer(split_lines(raw), options)->bytes());
  EXPECT_TRUE(heard.notes.empty());
  std::string line = raw;
  std::replace(line.begin(), line.end(), '\n', ' ');
  for (const std::string& some : {raw, line}) {  // the second is one line, which is cut between words
    const auto text = PlainText::of(some, "t");
    heard.notes.clear();
    const auto sampled = train_tokenizer(*text, text->all(), options, 100'000);
    EXPECT_EQ(heard.notes, std::vector<std::string>{
                               "the tokenizer is learned from 256 stretches of 390 characters, spread evenly over "
                               "the text for training"});
    for (const char* words : {"der Hund bellt", "quick vixens jump"}) {
      EXPECT_EQ(sampled->decode(sampled->encode(words)), words);
    }
  }
}

class TokenFile : public ::testing::Test {
 protected:
  TokenFile() : watch_(&heard_) {
    write_text(sentences(400, 1));
    tokenizer_ = train_tokenizer(split_lines(sentences(400, 1)), {.kind = "word"});
  }
  void write_text(const std::string& raw) { write_file_atomic(folder_ / "t", raw); }
  /// The stream of the file's tokens, checked against those of the text.
  void check() {
    const auto text = PlainText::read(folder_ / "t");
    const auto stream = token_stream(text, text->all(), tokenizer_, {.folder = tokens(), .large = 10});
    EXPECT_EQ(all_of(*stream), tokens_of(text->characters(text->all()), *tokenizer_));
  }
  std::string tokens() const { return folder_ / "tokens"; }
  std::string only_file() const {
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(tokens()), {}), 1);
    return std::filesystem::directory_iterator(tokens())->path().string();
  }
  bool was_made() {
    return std::exchange(heard_.finished, {}) ==
           std::vector<std::string>{"reading " + (folder_ / "t"), "tokens of " + (folder_ / "t")};
  }

  TempFolder folder_;
  Heard heard_;
  WatchPreparation watch_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_F(TokenFile, IsMadeOnceAndFoundAgain) {
  check();
  EXPECT_TRUE(was_made());
  const std::string path = only_file();
  EXPECT_TRUE(std::filesystem::path(path).filename().string().starts_with("t.all-")) << path;
  ASSERT_EQ(heard_.notes.size(), 1u);
  EXPECT_EQ(heard_.notes[0],
            "1 MB of tokens are in " + path + ", for all runs that need them; when none does, it may be deleted");
  heard_.notes.clear();
  const auto written = std::filesystem::last_write_time(path);
  check();
  EXPECT_FALSE(was_made());
  EXPECT_TRUE(heard_.notes.empty());
  EXPECT_EQ(std::filesystem::last_write_time(path), written);
  // Another tokenizer has a file of its own.
  tokenizer_ = train_tokenizer(split_lines(sentences(100, 1)), {.kind = "word", .vocabulary = 7});
  check();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(tokens()), {}), 2);
}

TEST_F(TokenFile, DamageAndAChangedTextAreNoticed) {
  check();
  const std::string path = only_file();
  const std::string whole = read_text(path);
  const auto said = [&](const std::string& fault) {
    heard_.notes.clear();
    heard_.finished.clear();
    check();
    ASSERT_EQ(heard_.notes.size(), 2u);
    EXPECT_EQ(heard_.notes[0], "the token file " + path + " is " + fault + "; it is made again");
    EXPECT_EQ(read_text(path).size(), read_text(only_file()).size());
  };
  for (const size_t at :
       {size_t{0}, whole.size() / 2, whole.size() - 57, whole.size() - 56, whole.size() - 30, whole.size() - 1}) {
    std::string bad = whole;
    bad[at] ^= 4;
    write_file_atomic(path, bad);
    said("damaged");
    EXPECT_EQ(read_text(path), whole);
  }
  for (const size_t length : {size_t{0}, size_t{20}, size_t{56}, whole.size() - 2}) {
    write_file_atomic(path, whole.substr(0, length));
    said("damaged");
    EXPECT_EQ(read_text(path), whole);
  }
  std::string text = sentences(400, 1);
  text[text.find("Hund")] = 'M';
  write_text(text);
  said("of a text that has changed since");
}

TEST_F(TokenFile, AChangeWhileItIsReadIsAnError) {
  const auto text = PlainText::read(folder_ / "t");
  const auto stream = token_stream(text, text->all(), tokenizer_, {.folder = tokens(), .large = 10});
  std::filesystem::resize_file(only_file(), 10);
  EXPECT_EQ(
      message_of<IoError>([&] { stream->read(100, 120); }),
      "cannot read " + only_file() + ": it was changed while it was being read; it must stay as it is until the end");
}

TEST_F(TokenFile, AFolderThatCannotBeWrittenIsNamed) {
  write_file_atomic(tokens(), "a file in its place");
  const auto text = PlainText::read(folder_ / "t");
  const std::string message =
      message_of<IoError>([&] { token_stream(text, text->all(), tokenizer_, {.folder = tokens(), .large = 10}); });
  EXPECT_TRUE(message.starts_with("cannot create folder " + tokens())) << message;
  EXPECT_TRUE(message.ends_with("; --tokens DIR names another folder for the tokens of a large text")) << message;
}

TEST_F(TokenFile, SameBytesForAnyNumberOfThreads) {
  write_text(sentences(30'000, 2));
  const int before = num_threads();
  std::string first;
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    check();
    if (first.empty()) first = read_text(only_file());
    EXPECT_EQ(read_text(only_file()), first);
    std::filesystem::remove(only_file());
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace qkv
