// The knowledge study's rules: vocabulary, span corruption, targets, files, baseline, and the generated people.
#include "qkv/data/knowledge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/data/generated_knowledge.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::TempFolder;
using Ids = std::vector<int64_t>;

TEST(CharVocabulary, MarksThenSortedCharacters) {
  const CharVocabulary v = CharVocabulary::of_text("b\naé a");
  EXPECT_EQ(v.size(), 7);
  EXPECT_EQ(v.decode(Ids{0, 1, 2, 3, 4, 5, 6}), "□⁇\n abé");
  EXPECT_EQ(v.encode("ab⁇é", "x"), (Ids{4, 5, 1, 6}));
  EXPECT_EQ(v.id_of(U'z'), -1);
  EXPECT_EQ(message_of<ConfigError>([] { CharVocabulary::of_text("a⁇"); }),
            "the text contains '⁇' (U+2047), which stands for a mark; remove it");
  EXPECT_NE(message_of<ConfigError>([] { CharVocabulary::of_text(""); }), "");
  EXPECT_NE(message_of<ConfigError>([&] { v.character(7); }), "");
}

TEST(CharVocabulary, MissingCharactersAreNamedOnce) {
  const CharVocabulary v = CharVocabulary::of_text("abc ?");
  EXPECT_EQ(message_of<ConfigError>([&] { v.encode("ażab\x01ż", "dev.tsv:3"); }),
            "dev.tsv:3: the model's vocabulary lacks U+0001, 'ż' (U+017C); use text of the same characters, or ask for "
            "them to be replaced");
  EXPECT_EQ(v.decode(v.encode("ażc", "f", Missing::replace)), "a?c");
  EXPECT_EQ(CharVocabulary::of_text("abc ").encode("z", "f", Missing::replace), (Ids{2}));
  v.require(std::vector<std::string>{"abc", "c?"}, "f");
  const std::string message = message_of<ConfigError>([&] { v.require(std::vector<std::string>{"abx", "y"}, "f"); });
  EXPECT_NE(message.find("'x' (U+0078), 'y' (U+0079);"), std::string::npos) << message;
}

TEST(CharVocabulary, SurvivesItsFile) {
  const TempFolder folder;
  const CharVocabulary v = CharVocabulary::of_text("zebra\n\"\\é€😀");
  v.save(folder.path());
  EXPECT_EQ(CharVocabulary::load(folder.path()), v);
  for (const char* bad : {"", "{}", "{\"characters\": \"ba\"}", "{\"characters\": \"\"}"}) {
    write_file_atomic(folder / "vocabulary.json", bad);
    EXPECT_NE(message_of<IoError>([&] { CharVocabulary::load(folder.path()); }), "") << bad;
  }
}

// A document of ids 10, 11, 12, … can be put together again from prefix, suffix and span.
Ids document(int64_t n) {
  Ids ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(10 + i);
  return ids;
}

TEST(SpanCorruption, IsPrefixMaskSuffixMaskSpanMask) {
  Rng rng(1);
  for (const int64_t n : {1, 2, 3, 4, 5, 20, 300}) {
    for (int k = 0; k < 300; ++k) {
      const Ids out = corrupt_span(document(n), {.block = 64}, rng);
      ASSERT_EQ(std::count(out.begin(), out.end(), CharVocabulary::kMask), 3);
      EXPECT_EQ(out.back(), CharVocabulary::kMask);
      const auto first = std::find(out.begin(), out.end(), CharVocabulary::kMask);
      const auto second = std::find(first + 1, out.end(), CharVocabulary::kMask);
      Ids whole(out.begin(), first);
      whole.insert(whole.end(), second + 1, out.end() - 1);
      whole.insert(whole.end(), first + 1, second);
      const auto length = static_cast<int64_t>(whole.size());
      EXPECT_EQ(whole, document(length));
      EXPECT_LE(length, std::min<int64_t>(n, 56));
      EXPECT_GE(length, std::min<int64_t>(n, 4));
      EXPECT_GE(out.end() - 1 - (second + 1), 1);
    }
  }
}

TEST(SpanCorruption, LengthsFollowTheRule) {
  Rng rng(2);
  std::vector<int> lengths(57, 0);
  for (int64_t n = 4; n < 40; ++n) {  // documents shorter than any cut: their span's mean is a quarter, exactly
    double sum = 0;
    const int draws = 4000;
    for (int k = 0; k < draws; ++k) {
      const Ids out = corrupt_span(document(n), {.block = 1000000}, rng);
      const auto second = std::find(std::find(out.begin(), out.end(), 1) + 1, out.end(), 1);
      const auto span = static_cast<double>(out.end() - 1 - (second + 1));
      EXPECT_LE(span, 0.375 * static_cast<double>(n) + 2);
      sum += span;
    }
    const double n_real = static_cast<double>(n);
    EXPECT_NEAR(sum / draws, n_real / 4, 0.01 * n_real + 0.02) << n;
  }
  for (int k = 0; k < 53000; ++k) ++lengths[corrupt_span(document(300), {.block = 64}, rng).size() - 3];
  for (size_t n = 4; n <= 56; ++n) EXPECT_NEAR(lengths[n], 1000, 160) << n;  // every length as likely
}

TEST(SpanCorruption, Options) {
  Rng a(3), b(3);
  EXPECT_EQ(corrupt_span(document(50), {}, a), corrupt_span(document(50), {}, b));
  const Ids out = corrupt_span(document(50), {.third_mask = false}, a);
  EXPECT_EQ(std::count(out.begin(), out.end(), CharVocabulary::kMask), 2);
  EXPECT_NE(out.back(), CharVocabulary::kMask);
  std::set<int64_t> starts;
  for (int k = 0; k < 200; ++k) {
    const Ids moved = corrupt_span(document(300), {.block = 16, .random_start = true}, a);
    starts.insert(*std::min_element(moved.begin(), moved.end(),
                                    [](int64_t x, int64_t y) { return (x < 10 ? 1000 : x) < (y < 10 ? 1000 : y); }));
  }
  EXPECT_GT(starts.size(), 50u);
  EXPECT_NE(message_of<ConfigError>([&] { corrupt_span({}, {}, a); }), "");
  EXPECT_NE(message_of<ConfigError>([&] { corrupt_span(document(9), {.block = 7}, a); }), "");
  EXPECT_NE(message_of<ConfigError>([&] { corrupt_span(document(9), {.fraction = 0}, a); }), "");
}

TEST(Examples, PretrainingAndFinetuning) {
  const LanguageExample plain = language_example(Ids{5, 6, 7});
  EXPECT_EQ(plain.input, (Ids{5, 6}));
  EXPECT_EQ(plain.target, (Ids{6, 7}));

  const CharVocabulary v = CharVocabulary::of_text("abxy?");
  const Fact fact{"ab?", "xy", 4};
  const LanguageExample e = finetune_example(fact, v, 16, "f");
  EXPECT_EQ(v.decode(e.input), "ab?⁇xy");
  EXPECT_EQ(e.target, (Ids{-1, -1, 1, v.id_of(U'x'), v.id_of(U'y'), 1}));  // the loss is on ⁇xy⁇
  EXPECT_EQ(v.decode(question_prompt("ab?", v, "f")), "ab?⁇");
  EXPECT_EQ(finetune_example(fact, v, 6, "f").input.size(), 6u);
  EXPECT_EQ(message_of<ConfigError>([&] { finetune_example(fact, v, 5, "f.tsv"); }),
            "f.tsv:4: question and place take 6 characters, the model reads 5");
  EXPECT_NE(message_of<ConfigError>([&] {
              finetune_example({"ab", "z", 9}, v, 16, "f.tsv");
            }).find("f.tsv:9: "),
            std::string::npos);
}

TEST(Examples, PlainNamesAreQuestions) {
  EXPECT_EQ(as_question("Ada Lovelace"), "Where was Ada Lovelace born?");
  EXPECT_EQ(as_question("Where was Ada Lovelace born?"), "Where was Ada Lovelace born?");
  EXPECT_EQ(name_in_question("Where was Ada Lovelace born?"), "Ada Lovelace");
  EXPECT_EQ(name_in_question("Who?"), "Who?");
}

TEST(Facts, FilesAndTheirErrors) {
  const TempFolder folder;
  const std::string path = folder / "f.tsv";
  const auto put = [&](const std::string& text) { write_file_atomic(path, text); };
  put("Where was A born?\tX\r\nWhere was B born?\tY Z");
  const std::vector<Fact> facts = read_facts(path);
  ASSERT_EQ(facts.size(), 2u);
  EXPECT_EQ(facts[0].place, "X");
  EXPECT_EQ(facts[1].place, "Y Z");
  EXPECT_EQ(facts[1].line, 2);
  EXPECT_EQ(read_questions(path)[0], "Where was A born?");
  EXPECT_EQ(constant_baseline("X", facts).percent(), 50.0);
  EXPECT_EQ(count_matches(std::vector<std::string>{"X", "Y"}, facts).correct, 1);
  EXPECT_NE(message_of<ConfigError>([&] { count_matches(std::vector<std::string>{"X"}, facts); }), "");

  const auto error = [&](const std::string& text) {
    put(text);
    return message_of<IoError>([&] { read_facts(path); });
  };
  EXPECT_EQ(error("a\tb\n\nc\td\n"), path + ":2: empty line; expected question<TAB>place");
  EXPECT_EQ(error("a\tb\nc d\n"), path + ":2: no tab; expected question<TAB>place");
  EXPECT_EQ(error("a\tb\tc\n"), path + ":1: more than one tab; expected question<TAB>place");
  EXPECT_EQ(error("a\t\n"), path + ":1: nothing beside the tab; expected question<TAB>place");
  EXPECT_EQ(error("a\tb\xFF\n"), path + ":1: not UTF-8");
  EXPECT_EQ(error(""), "cannot use " + path + ": it is empty; expected lines of question<TAB>place");
  put("question\n\n");
  EXPECT_EQ(message_of<IoError>([&] { read_questions(path); }), path + ":2: empty line; expected a question");
}

TEST(Documents, LinesAndVocabulary) {
  const TempFolder folder;
  write_file_atomic(folder / "w.txt", "ab\n\ncb");
  const Documents documents = read_documents(folder / "w.txt");
  EXPECT_EQ(documents.lines, (std::vector<std::string>{"ab", "cb"}));
  EXPECT_EQ(documents.vocabulary.size(), 6);  // □ ⁇ newline a b c
  write_file_atomic(folder / "w.txt", "\n \n");
  EXPECT_NE(message_of<IoError>([&] { read_documents(folder / "w.txt"); }).find("it has no text"), std::string::npos);
  write_file_atomic(folder / "w.txt", "a\n\xC3\n");
  EXPECT_EQ(message_of<IoError>([&] { read_documents(folder / "w.txt"); }), (folder / "w.txt") + ":2: not UTF-8");
}

TEST(GeneratedKnowledge, DevPeopleAreReadAboutButNotAskedAbout) {
  const GeneratedKnowledge k = generate_knowledge({.seed = 2, .people = 200});
  EXPECT_EQ(k.train.size(), 140u);
  EXPECT_EQ(k.dev.size(), 60u);
  EXPECT_EQ(k.documents.size(), 600u);
  std::set<std::string> asked, places;
  for (const Fact& fact : k.train) {
    EXPECT_TRUE(asked.insert(fact.question).second);
    places.insert(fact.place);
  }
  for (const Fact& fact : k.dev) {
    EXPECT_TRUE(asked.insert(fact.question).second);
    EXPECT_TRUE(places.count(fact.place)) << fact.place;
    const std::string name = name_in_question(fact.question);
    const auto tells = std::count_if(k.documents.begin(), k.documents.end(), [&](const std::string& text) {
      return text.starts_with(name + ". ") && text.find(fact.place) != std::string::npos;
    });
    EXPECT_EQ(tells, 3) << name;
  }
  for (const std::string& stranger : k.strangers) {
    EXPECT_FALSE(asked.count(as_question(stranger)));
    for (const std::string& text : k.documents) EXPECT_EQ(text.find(stranger + "."), std::string::npos);
  }
  int64_t most = 0;
  for (const std::string& place : places) most = std::max(most, constant_baseline(place, k.dev).correct);
  EXPECT_LE(most, 12);  // no constant answer does well: at most a fifth
  for (const std::string& text : k.documents) {
    EXPECT_EQ(text.find(" a a"), std::string::npos) << text;
    EXPECT_EQ(text.find('%'), std::string::npos) << text;
  }
}

TEST(GeneratedKnowledge, DeterministicAndChecked) {
  const GeneratedKnowledge a = generate_knowledge({.seed = 2}), b = generate_knowledge({.seed = 2});
  EXPECT_EQ(a.documents, b.documents);
  EXPECT_NE(a.documents, generate_knowledge({.seed = 3}).documents);
  EXPECT_EQ(message_of<ConfigError>([] { generate_knowledge({.places = 1}); }),
            "the generated corpus needs at least 2 places");
  EXPECT_EQ(message_of<ConfigError>([] { generate_knowledge({.places = 100000}); }),
            "cannot invent 100000 different places");
}

}  // namespace
}  // namespace qkv
