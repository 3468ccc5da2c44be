// Every tokenizer gives back what it was given, learns the same pieces every time, and survives its run folder.
#include "qkv/data/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/base/rng.h"
#include "qkv/io/file.h"
#include "support/paths.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::TempFolder;
using Lines = std::vector<std::string>;

Lines some_text() {
  Lines lines;
  const Lines subjects = {"Der Mann", "Die Frau", "Das Mädchen", "Ein Hund", "Eine Katze"};
  const Lines verbs = {"sieht", "sucht", "findet", "trägt", "verliert", "kauft"};
  const Lines objects = {"den Ball.", "die Straße.", "das Fahrrad, schnell.", "einen Apfel!", "zwei Bücher?"};
  for (const auto& s : subjects) {
    for (const auto& v : verbs) {
      for (const auto& o : objects) lines.push_back(s + " " + v + " " + o);
    }
  }
  return lines;
}

class EveryTokenizer : public ::testing::TestWithParam<const char*> {
 protected:
  static TokenizerOptions options() { return {.kind = GetParam(), .vocabulary = 120}; }
};

TEST_P(EveryTokenizer, TextComesBack) {
  const Lines lines = some_text();
  const auto tokenizer = train_tokenizer(lines, options());
  EXPECT_EQ(tokenizer->kind(), GetParam());
  EXPECT_LE(tokenizer->size(), 120);
  for (const std::string& line : lines) {
    const std::vector<int64_t> ids = tokenizer->encode(line);
    EXPECT_FALSE(ids.empty());
    for (const int64_t id : ids) EXPECT_TRUE(id >= kSpecialIds && id < tokenizer->size());
    EXPECT_EQ(tokenizer->decode(ids), line);
    std::vector<int64_t> marked = {kBeginId};
    marked.insert(marked.end(), ids.begin(), ids.end());
    marked.insert(marked.end(), {kEndId, kPadId, kPadId});
    EXPECT_EQ(tokenizer->decode(marked), line);
  }
  EXPECT_TRUE(tokenizer->encode("").empty());
  EXPECT_EQ(tokenizer->decode({}), "");
}

TEST_P(EveryTokenizer, MarksComeFirst) {
  const auto tokenizer = train_tokenizer(some_text(), options());
  EXPECT_EQ(tokenizer->piece(kPadId), "<pad>");
  EXPECT_EQ(tokenizer->piece(kUnknownId), "<unk>");
  EXPECT_EQ(tokenizer->piece(kBeginId), "<s>");
  EXPECT_EQ(tokenizer->piece(kEndId), "</s>");
  const std::vector<int64_t> ids = tokenizer->encode("Ж");
  EXPECT_NE(std::find(ids.begin(), ids.end(), kUnknownId), ids.end());
  // Marks written out in a text are text, not marks.
  for (const int64_t id : tokenizer->encode("</s><s><pad>")) EXPECT_TRUE(id == kUnknownId || id >= kSpecialIds);
}

TEST_P(EveryTokenizer, SavedAndLoadedIsTheSame) {
  const TempFolder folder;
  const Lines lines = some_text();
  const auto tokenizer = train_tokenizer(lines, options());
  tokenizer->save(folder.path(), "tokenizer");
  EXPECT_EQ(folder.entries(), 1);
  const auto again = load_tokenizer(folder.path(), "tokenizer");
  ASSERT_EQ(again->size(), tokenizer->size());
  EXPECT_EQ(again->kind(), tokenizer->kind());
  for (int64_t id = 0; id < again->size(); ++id) EXPECT_EQ(again->piece(id), tokenizer->piece(id));
  for (const std::string& line : lines) EXPECT_EQ(again->encode(line), tokenizer->encode(line));
}

TEST_P(EveryTokenizer, LearningIsDeterministicAndSilent) {
  const TempFolder folder;
  ::testing::internal::CaptureStderr();
  train_tokenizer(some_text(), options())->save(folder.path(), "a");
  train_tokenizer(some_text(), options())->save(folder.path(), "b");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    files[entry.path().filename().string().substr(0, 1)] = read_text(entry.path().string());
  }
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files["a"], files["b"]);
}

TEST_P(EveryTokenizer, ErrorsAreOneLine) {
  const auto tokenizer = train_tokenizer(some_text(), options());
  const std::string outside = message_of<ConfigError>([&] { tokenizer->decode(std::vector<int64_t>{1000000}); });
  EXPECT_EQ(outside, "token id 1000000 is outside the vocabulary of " + std::to_string(tokenizer->size()));
  EXPECT_NE(message_of<ConfigError>([&] { tokenizer->piece(-1); }), "");
  const std::string none = "no text to learn a vocabulary of kind '" + std::string(GetParam()) + "' from";
  EXPECT_EQ(message_of<ConfigError>([&] { train_tokenizer(Lines{}, options()); }), none);
  EXPECT_EQ(message_of<ConfigError>([&] { train_tokenizer(Lines{""}, options()); }), none);

  const TempFolder folder;
  tokenizer->save(folder.path(), "x");
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const std::string whole = read_text(entry.path().string());
    for (const std::string& bad : {std::string(), std::string("nonsense"), whole.substr(0, whole.size() / 2)}) {
      write_file_atomic(entry.path().string(), bad);
      const std::string message = message_of<IoError>([&] { load_tokenizer(folder.path(), "x"); });
      EXPECT_TRUE(message.starts_with("cannot read " + entry.path().string() + ": ")) << message;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryTokenizer, ::testing::Values("unigram", "bpe", "word", "char"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Tokenizer, Pairs) {
  const TempFolder folder;
  const Lines german = some_text(), english = {"the man sees the ball", "a dog finds two books"};
  const TokenizerPair joint = train_tokenizers(german, english, true, {.kind = "bpe", .vocabulary = 100});
  EXPECT_TRUE(joint.joint());
  make_folders(folder / "joint");
  save_tokenizers(joint, folder / "joint");
  EXPECT_TRUE(load_tokenizers(folder / "joint").joint());
  const TokenizerPair apart = train_tokenizers(german, english, false, {.kind = "word"});
  EXPECT_FALSE(apart.joint());
  make_folders(folder / "apart");
  save_tokenizers(apart, folder / "apart");
  const TokenizerPair again = load_tokenizers(folder / "apart");
  EXPECT_FALSE(again.joint());
  EXPECT_EQ(again.target->encode("the dog"), apart.target->encode("the dog"));
  EXPECT_NE(again.source->size(), again.target->size());
  EXPECT_NE(message_of<IoError>([&] { load_tokenizers(folder.path()); }).find("no tokenizer 'source' in"),
            std::string::npos);
}

TEST(Tokenizer, UnknownKindAndTooSmallVocabulary) {
  EXPECT_EQ(message_of<ConfigError>([] { train_tokenizer(some_text(), {.kind = "bytes"}); }),
            "unknown tokenizer 'bytes'; expected unigram, bpe, word or char");
  for (const char* kind : {"unigram", "bpe"}) {
    const std::string message =
        message_of<ConfigError>([&] { train_tokenizer(some_text(), {.kind = kind, .vocabulary = 10}); });
    EXPECT_TRUE(message.starts_with("cannot learn 10 " + std::string(kind) + " pieces: ")) << message;
    EXPECT_EQ(message.find(".cc"), std::string::npos) << message;
  }
}

// SentencePiece ended the process at more than 65535 characters, and took a time that grows with their square.
TEST(Tokenizer, WordsOfManyLetters) {
  std::vector<std::string> lines{some_text()[0], std::string(200000, 'x'), "a " + std::string(70000, 'y') + " b"};
  for (int i = 0; i < 70000; ++i) lines[0] += static_cast<char>('a' + i % 7 * i % 26);
  for (int i = 0; i < 20000; ++i) lines[2] += "\u3392";  // three letters each when normalised
  for (const char* kind : {"unigram", "bpe"}) {
    const auto tokenizer = train_tokenizer(lines, {.kind = kind, .vocabulary = 100});
    EXPECT_EQ(tokenizer->decode(tokenizer->encode("xx yyy")), "xx yyy");
  }
}

TEST(Tokenizer, MoreWordsThanTheTextHas) {
  for (const char* kind : {"unigram", "bpe"}) {
    const auto tokenizer = train_tokenizer(some_text(), {.kind = kind, .vocabulary = 100000});
    EXPECT_LT(tokenizer->size(), 2000);
    EXPECT_EQ(tokenizer->decode(tokenizer->encode("Der Mann sieht.")), "Der Mann sieht.");
  }
}

TEST(Tokenizer, SamplesAreSegmentationsOfTheSameText) {
  const auto tokenizer = train_tokenizer(some_text(), {.kind = "unigram", .vocabulary = 120});
  const std::string text = "Das Mädchen findet einen Apfel!";
  std::set<std::vector<int64_t>> seen;
  Rng rng(1), same(1);
  int best = 0;
  for (int i = 0; i < 200; ++i) {
    const std::vector<int64_t> ids = tokenizer->sample(text, 0.3, rng);
    EXPECT_EQ(ids, tokenizer->sample(text, 0.3, same));
    EXPECT_EQ(tokenizer->decode(ids), text);
    best += ids == tokenizer->encode(text) ? 1 : 0;
    seen.insert(ids);
  }
  EXPECT_GT(seen.size(), 20u);
  // A high alpha leaves the best segmentation alone.
  for (int i = 0; i < 20; ++i) EXPECT_EQ(tokenizer->sample(text, 200, rng), tokenizer->encode(text));
  EXPECT_LT(best, 200);
  // Unknown characters stay unknown.
  EXPECT_EQ(tokenizer->sample("ЖЖ Mann", 200, rng), tokenizer->encode("ЖЖ Mann"));
  const auto bpe = train_tokenizer(some_text(), {.kind = "bpe", .vocabulary = 120});
  EXPECT_EQ(bpe->sample(text, 0.3, rng), bpe->encode(text));
}

// At alpha 1 the best segmentation is the most frequent; at alpha 0 all are equally likely.
TEST(Tokenizer, SampleFrequenciesFollowTheModel) {
  const auto tokenizer = train_tokenizer(some_text(), {.kind = "unigram", .vocabulary = 120});
  const auto frequencies = [&](double alpha) {
    Rng rng(3);
    std::map<std::vector<int64_t>, int> counts;
    for (int i = 0; i < 20000; ++i) ++counts[tokenizer->sample("Hund sucht", alpha, rng)];
    return counts;
  };
  const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto model = frequencies(1);
  EXPECT_EQ(std::max_element(model.begin(), model.end(), by_count)->first, tokenizer->encode("Hund sucht"));
  const auto uniform = frequencies(0);
  ASSERT_GT(uniform.size(), 3u);
  const double expected = 20000.0 / static_cast<double>(uniform.size());
  for (const auto& [ids, count] : uniform) EXPECT_NEAR(count, expected, 5 * std::sqrt(expected));
}

TEST(Tokenizer, LinesAreTheSameForAnyNumberOfThreads) {
  const Lines lines = some_text();
  const auto tokenizer = train_tokenizer(lines, {.kind = "unigram", .vocabulary = 120});
  const RaggedIds plain = encode_lines(*tokenizer, lines, {.begin = true, .end = true});
  ASSERT_EQ(plain.size(), static_cast<int64_t>(lines.size()));
  for (int64_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(plain[i].front(), kBeginId);
    EXPECT_EQ(plain[i].back(), kEndId);
    EXPECT_EQ(tokenizer->decode(plain[i]), lines[static_cast<size_t>(i)]);
  }
  const int threads = num_threads();
  const EncodeOptions sampled{.sample_alpha = 0.3, .seed = 5, .epoch = 2};
  set_num_threads(1);
  const RaggedIds one = encode_lines(*tokenizer, lines, sampled);
  set_num_threads(3);
  const RaggedIds three = encode_lines(*tokenizer, lines, sampled);
  set_num_threads(threads);
  EXPECT_EQ(one.ids, three.ids);
  EXPECT_EQ(one.offsets, three.offsets);
  EXPECT_NE(one.ids, encode_lines(*tokenizer, lines, {.sample_alpha = 0.3, .seed = 5, .epoch = 3}).ids);
}

TEST(Words, CutAndJoined) {
  const std::vector<std::pair<std::string, Lines>> cases = {
      {"Hello, world.", {"Hello", "￭,", "world", "￭."}},
      {"\"Hi\" (there)", {"\"￭", "Hi", "￭\"", "(￭", "there", "￭)"}},
      {"a 10-year-old", {"a", "10", "￭-￭", "year", "￭-￭", "old"}},
      {"It's 3.14 at 12:30...", {"It's", "3.14", "at", "12:30", "￭.", "￭.", "￭."}},
      {"Straße – Ärger", {"Straße", "–", "Ärger"}},
      {"x'", {"x", "￭'"}},
      {" ", {}},
  };
  for (const auto& [text, words] : cases) {
    EXPECT_EQ(cut_words(text), words) << text;
    EXPECT_EQ(join_words(words), text == " " ? "" : text);
  }
  EXPECT_EQ(join_words(Lines{"a", "￭", "b"}), "a ￭ b");  // a joiner alone joins nothing
}

TEST(Words, RareOnesBecomeUnknown) {
  const Lines lines = {"a b c", "a b", "a"};
  const auto tokenizer = train_tokenizer(lines, {.kind = "word", .min_count = 2});
  EXPECT_EQ(tokenizer->size(), 6);
  EXPECT_EQ(tokenizer->encode("a b c d"), (std::vector<int64_t>{4, 5, kUnknownId, kUnknownId}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("b c")), "b <unk>");
  const auto lower = train_tokenizer(lines, {.kind = "word", .lowercase = true});
  EXPECT_EQ(lower->encode("A B"), lower->encode("a b"));
}

// The library follows these bytes without looking: a third of such models ended the process.
TEST(SentencePiece, ChangedModelsAreRefusedOrHarmless) {
  int refused = 0;
  for (const char* kind : {"unigram", "bpe"}) {
    const TempFolder folder;
    const std::string path = folder / "x." + kind + ".model";
    const std::string good = read_text(testing::fixtures() + "/../fuzz/seeds/sentencepiece/" + kind + "-rules");
    Rng rng(5);
    for (int i = 0; i < 400; ++i) {
      std::string bad = good;
      for (int64_t n = 1 + rng.below(8); n > 0; --n) {
        bad[static_cast<size_t>(rng.below(static_cast<int64_t>(bad.size())))] = static_cast<char>(rng.below(256));
      }
      write_file_atomic(path, bad);
      const std::string message = message_of<IoError>([&] {
        const auto tokenizer = load_tokenizer(folder.path(), "x");
        for (const char* text : {"Zwei Hunde laufen.", "\xEF\xBC\xA1 \xC3\x9F \xE2\x85\xA3 \xFF"}) {
          tokenizer->decode(tokenizer->encode(text));
        }
      });
      if (message.empty()) continue;
      EXPECT_TRUE(message.starts_with("cannot read " + path + ": ")) << message;
      ++refused;
    }
    write_file_atomic(path, good);
    EXPECT_GT(load_tokenizer(folder.path(), "x")->encode("Zwei Hunde").size(), 1u);
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace qkv
