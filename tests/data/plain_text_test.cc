// Texts of any size: the same characters however they are read, wherever borders of pieces fall.
#include "qkv/data/plain_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/base/rng.h"
#include "qkv/base/utf8.h"
#include "qkv/data/text_file.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::TempFolder;

std::string all_of(const PlainText& text) { return text.characters(text.all()); }

/// What a text is, by the plain reader of lines.
std::string expected(const std::string& raw) {
  std::string text;
  for (const std::string& line : split_lines(raw)) (text += line) += '\n';
  if (!text.empty() && !raw.ends_with('\n')) text.pop_back();
  return text;
}

/// Characters of every length, line ends of both kinds.
std::string odd_text(size_t bytes, uint64_t seed) {
  static const std::array<const char*, 9> some{"a", "é", "€", "😀", "\n", "\r\n", " ", "\r", "漢"};
  Rng rng(seed);
  std::string text;
  while (text.size() < bytes) text += some[static_cast<size_t>(rng.below(some.size()))];
  return text;
}

TEST(PlainText, SplitsAtALine) {
  const TempFolder folder;
  write_file_atomic(folder / "t", "one\r\ntwo\nthree\nfour\nfive\n");
  const auto text = PlainText::read(folder / "t");
  const TextSplit split = text->split(0.5);
  EXPECT_EQ(text->characters(split.train), "one\ntwo\nthree\n");
  EXPECT_EQ(text->characters(split.validation), "four\nfive\n");
  const auto end_of = [](const char* characters, double share) {
    const auto short_text = PlainText::of(characters, "t");
    return short_text->characters(short_text->split(share).validation);
  };
  EXPECT_EQ(end_of("abcdefghij", 0.2), "ij");
  EXPECT_EQ(end_of("äöüäöüäöüä", 0.3), "öüä");
  EXPECT_EQ(end_of("abcdefgh\nj", 0.3), "h\nj");  // one byte after the line end is too little
  EXPECT_EQ(end_of("abcdefgh\n€", 0.3), "€");
  EXPECT_NE(message_of<IoError>([&] { end_of("a", 0.1); }), "");
  EXPECT_NE(message_of<ConfigError>([&] { end_of("abc", 1); }), "");
}

TEST(PlainText, AFileGivesTheCharactersOfItsLines) {
  const TempFolder folder;
  for (const std::string& raw : {std::string(), std::string("\xEF\xBB\xBF"), std::string("\xEF\xBB\xBFx\r"),
                                 std::string("\r\n\r\n"), std::string("a\rb\r\n"), odd_text(5000, 1)}) {
    write_file_atomic(folder / "t", raw);
    const auto file = PlainText::read(folder / "t");
    EXPECT_TRUE(file->in_file());
    EXPECT_EQ(all_of(*file), expected(raw));
    EXPECT_EQ(file->all().size(), static_cast<int64_t>(utf8_characters(expected(raw)).size()));
    const auto memory = PlainText::of(raw, "t");
    EXPECT_EQ(all_of(*memory), expected(raw));
    EXPECT_EQ(memory->sum(), file->sum());
  }
}

// Marks of the index are 4 KiB apart and pieces 1 MiB: every kind of character falls across both.
TEST(PlainText, BordersMayCutACharacter) {
  const int before = num_threads();
  for (size_t shift = 0; shift < 5; ++shift) {
    std::string raw(shift, 'x');
    raw += odd_text((size_t{5} << 20) / 4, 7 + shift);
    const std::string whole = expected(raw);
    const std::vector<std::string_view> characters = utf8_characters(whole);
    set_num_threads(shift % 2 == 0 ? 1 : 3);
    const auto text = PlainText::of(raw, "t");
    ASSERT_EQ(text->all().size(), static_cast<int64_t>(characters.size()));
    Rng rng(shift);
    for (int i = 0; i < 400; ++i) {
      const int64_t begin = rng.below(text->all().size());
      const int64_t end = std::min(begin + rng.below(3000), text->all().size());
      const char* const first = characters[static_cast<size_t>(begin)].data();
      const char* const last =
          end == text->all().size() ? whole.data() + whole.size() : characters[static_cast<size_t>(end)].data();
      ASSERT_EQ(text->characters({begin, end}), std::string(first, static_cast<size_t>(last - first)));
    }
    CharacterCounts counted;
    for (const char32_t c : utf8_to_code_points(whole)) ++counted[c];
    EXPECT_EQ(text->counts(), counted);
    EXPECT_EQ(text->counts(text->all()), counted);
  }
  set_num_threads(before);
}

TEST(PlainText, RefusesWhatIsNotUtf8AtAnyPlace) {
  const TempFolder folder;
  write_file_atomic(folder / "t", "a\n\xFF\n");
  EXPECT_EQ(message_of<IoError>([&] { PlainText::read(folder / "t"); }), (folder / "t") + ":2: not UTF-8");
  constexpr size_t kPiece = size_t{1} << 20;
  const std::string line = "0123456\n";
  std::string good;
  while (good.size() < kPiece * 2) good += line;
  // A character that is cut off, one that goes on too long, and half of one at the end of all.
  for (const std::string& bad : {std::string("\xE2\x82"), std::string("\x80"), std::string("\xC3\xA9\xA9"),
                                 std::string("\xF0\x9F\x98"), std::string("\x80\x80\x80\x80")}) {
    for (const size_t at : {kPiece - 4, kPiece - 3, kPiece - 2, kPiece - 1, kPiece, kPiece + 1}) {
      std::string text = good;
      text.replace(at, bad.size(), bad);
      const size_t line_number = static_cast<size_t>(std::count(text.begin(), text.begin() + at, '\n')) + 1;
      EXPECT_EQ(message_of<IoError>([&] { PlainText::of(text, "t"); }),
                "t:" + std::to_string(line_number) + ": not UTF-8")
          << at << " " << bad.size();
    }
  }
  EXPECT_EQ(message_of<IoError>([&] { PlainText::of(good + "\xE2\x82", "t"); }), "t:262145: not UTF-8");
}

TEST(PlainText, StretchesAreWholeLinesAndWords) {
  std::string raw = std::string(PlainText::kStretch - 10, 'x') + "\n" + std::string(100, 'y') + "\n";
  for (int i = 0; i < 60'000; ++i) raw += "word words\xC3\xA9 ";  // one line, longer than a stretch
  raw += std::string(PlainText::kStretch + 5, 'z');
  const auto text = PlainText::of(raw, "t");
  std::vector<std::string> stretches;
  std::string joined;
  for (TextPart rest = text->all(); rest.size() > 0;) {
    stretches.push_back(text->take_stretch(rest));
    joined += stretches.back();
    EXPECT_LE(count_characters(stretches.back()), PlainText::kStretch);
  }
  EXPECT_EQ(joined, raw);
  EXPECT_EQ(stretches[0].size(), static_cast<size_t>(PlainText::kStretch) - 9);
  EXPECT_EQ(stretches[1].substr(100), "\n");
  EXPECT_TRUE(stretches[2].ends_with(' '));
  EXPECT_EQ(stretches.back(), std::string(5, 'z'));
}

TEST(PlainText, NoticesThatItsFileWasChanged) {
  const TempFolder folder;
  const std::string raw = odd_text(100'000, 3);
  const auto changed = [&](const char* what, const std::function<void(const std::string&)>& change) {
    const std::string path = folder / what;
    write_file_atomic(path, raw);
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
    const auto text = PlainText::read(path);
    const std::string before = text->characters({100, 200});
    change(path);
    return message_of<IoError>([&] { text->characters({100, 200}); });
  };
  const auto said = [&](const char* what) {
    return "cannot read " + (folder / what) +
           ": it was changed while it was being read; it must stay as it is until the end";
  };
  EXPECT_EQ(changed("shorter", [](const std::string& path) { std::filesystem::resize_file(path, 50); }),
            said("shorter"));
  EXPECT_EQ(changed("longer", [](const std::string& path) { std::ofstream(path, std::ios::app) << "more\n"; }),
            said("longer"));
  EXPECT_EQ(changed("same length",
                    [](const std::string& path) {
                      std::fstream file(path, std::ios::in | std::ios::out);
                      file.seekp(5000);
                      file << '?';
                    }),
            said("same length"));
  // One that was replaced is still the one that was opened.
  EXPECT_EQ(changed("replaced", [](const std::string& path) { write_file_atomic(path, "another"); }), "");
}

}  // namespace
}  // namespace qkv
