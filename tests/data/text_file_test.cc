// Lines come out the same from plain and gzip files, and odd ones are reported with file and line number.
#include "qkv/data/text_file.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/base/utf8.h"
#include "qkv/data/parallel_corpus.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::TempFolder;
using Lines = std::vector<std::string>;

std::string gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(Utf8, DecodesEveryLengthAndRefusesWhatIsNotUtf8) {
  const std::u32string all = U"aä€😀\u07FF\u0800\uFFFF\U0010FFFF";
  std::string text;
  for (const char32_t c : all) append_utf8(text, c);
  EXPECT_EQ(utf8_to_code_points(text), all);
  EXPECT_EQ(first_invalid_utf8(text), -1);
  EXPECT_EQ(utf8_characters("aä€😀"), (std::vector<std::string_view>{"a", "ä", "€", "😀"}));
  for (const char* bad : {"\x80", "\xC0\xAF", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF5",
                          "\xFF", "\xC3", "\xE2\x82", "\xC3(", "\xF0\x80\x80\x80"}) {
    EXPECT_EQ(first_invalid_utf8(std::string("ok") + bad), 2) << bad;
  }
  EXPECT_EQ(utf8_characters("\xFF"
                            "a")
                .size(),
            2u);
}

TEST(Utf8, WordsAndCase) {
  EXPECT_EQ(split_words(" a\u00A0b\u3000\t c\u2009"), (std::vector<std::string_view>{"a", "b", "c"}));
  EXPECT_TRUE(split_words(" \t\u2003").empty());
  EXPECT_EQ(utf8_lower("ÄÖÜẞ ŁÓDŹ ŽIŽKA ΑΩΌ ЖЁ Ÿ ×÷ Ơ"), "äöüß łódź žižka αωό жё ÿ ×÷ ơ");
  EXPECT_EQ(name_of_character(U'é'), "'é' (U+00E9)");
  EXPECT_EQ(name_of_character(U'\n'), "U+000A");
}

TEST(TextFile, LineEndings) {
  EXPECT_EQ(split_lines("a\nb\n"), (Lines{"a", "b"}));
  EXPECT_EQ(split_lines("a\r\nb"), (Lines{"a", "b"}));
  EXPECT_EQ(split_lines("\xEF\xBB\xBF"
                        "a\n\n"),
            (Lines{"a", ""}));
  EXPECT_EQ(split_lines(""), Lines{});
  EXPECT_EQ(split_lines("\n"), Lines{""});
  EXPECT_EQ(split_lines("a\rb\n"), Lines{"a\rb"});
}

TEST(TextFile, GzipAndPlainGiveTheSameText) {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 50000; ++i) text += "line " + std::to_string(i * 7919) + "\n";
  write_file_atomic(folder / "a.txt", text);
  write_file_atomic(folder / "a.txt.gz", gzip(text));
  write_file_atomic(folder / "two", gzip(text) + gzip("tail") + std::string(3, '\0'));
  EXPECT_EQ(read_plain_or_gz(folder / "a.txt"), text);
  EXPECT_EQ(read_plain_or_gz(folder / "a.txt.gz"), text);
  EXPECT_EQ(read_plain_or_gz(folder / "two"), text + "tail");
  EXPECT_EQ(find_plain_or_gz(folder / "a.txt"), folder / "a.txt");
  std::filesystem::remove(folder / "a.txt");
  EXPECT_EQ(find_plain_or_gz(folder / "a.txt"), folder / "a.txt.gz");
  EXPECT_EQ(find_plain_or_gz(folder / "b.txt"), "");
}

TEST(TextFile, BadGzipIsNamed) {
  const TempFolder folder;
  const std::string good = gzip(std::string(100000, 'x') + "y");
  const std::string path = folder / "bad.gz";
  const auto error = [&](const std::string& bytes, uint64_t limit = kMaxUnpackedBytes) {
    write_file_atomic(path, bytes);
    return message_of<IoError>([&] { read_plain_or_gz(path, limit); });
  };
  const std::string start = "cannot read " + path + ": ";
  for (const size_t cut : {size_t{5}, good.size() / 2, good.size() - 1}) {
    EXPECT_EQ(error(good.substr(0, cut)), start + "the gzip data is truncated") << cut;
  }
  std::string damaged = good;
  damaged[damaged.size() - 6] ^= 1;  // the checksum
  EXPECT_EQ(error(damaged), start + "the gzip data is damaged");
  EXPECT_EQ(error(good + "more"), start + "there are other bytes after the gzip data");
  EXPECT_EQ(error("plain"), start + "it is not a gzip file");
  EXPECT_EQ(error(""), start + "it is not a gzip file (it is empty)");
  EXPECT_EQ(error(good, 100000), start + "it unpacks to more than 100000 bytes");
  EXPECT_EQ(error(gzip(std::string(size_t{1} << 25, 'x'))), start + "it unpacks to more than 100 times its size");
  EXPECT_EQ(error(gzip(std::string(size_t{1} << 24, 'x'))), "");  // small enough for anyone
  EXPECT_NE(message_of<IoError>([&] { read_plain_or_gz(folder / "none.gz"); }).find("none.gz"), std::string::npos);
}

TEST(TextFile, OddLinesAreReported) {
  const TempFolder folder;
  const std::string path = folder / "t.txt";
  write_file_atomic(path, "good\n\n  \t\nbad\xFF\n" + std::string(11, 'x') + "\ngood too");
  LineReport report;
  const ParallelSet file = read_parallel({.name = "t", .source = path, .target = path}, 10, report);
  EXPECT_EQ(file.source, (Lines{"good", "good too"}));
  EXPECT_EQ(file.target, file.source);
  EXPECT_EQ(file.numbers, (std::vector<int64_t>{1, 6}));
  EXPECT_EQ(report.count(LineFault::empty), 2);
  EXPECT_EQ(report.count(LineFault::invalid_utf8), 1);
  EXPECT_EQ(report.count(LineFault::too_long), 1);
  EXPECT_EQ(report.summary(), "skipped 4 lines: 2 empty, 1 not UTF-8, 1 too long (" + path + ":2 empty, " + path +
                                  ":3 empty, " + path + ":4 not UTF-8, " + path + ":5 too long)");
  EXPECT_EQ(LineReport().summary(), "");
}

TEST(TextFile, LongReportsAreCut) {
  LineReport report;
  for (int i = 1; i <= 100; ++i) report.add("f", i, LineFault::empty);
  EXPECT_EQ(report.total(), 100);
  EXPECT_EQ(report.first().size(), LineReport::kKept);
  EXPECT_TRUE(report.summary().ends_with("f:20 empty, …)")) << report.summary();
}

class ParallelFolder : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) { write_file_atomic(folder_ / name, text); }
  void put_good() {
    put("train.de", "eins\nzwei\n\nvier\n");
    put("train.en", "one\n\nthree\nfour\n");
    put("val.de.gz", gzip("fünf\n"));
    put("val.en", "five\n");
    put("test_b.de", "sechs\n");
    put("test_b.en.gz", gzip("six"));
    put("test_a.de", std::string(3000, 'x') + "\n");
    put("test_a.en", "y\n");
    put("train.fr", "un\n");
  }
  TempFolder folder_;
};

TEST_F(ParallelFolder, ReadsEverySet) {
  put_good();
  const ParallelCorpus corpus = read_parallel_folder(folder_.path(), {});
  EXPECT_EQ(corpus.train.source, (Lines{"eins", "vier"}));
  EXPECT_EQ(corpus.train.target, (Lines{"one", "four"}));
  EXPECT_EQ(corpus.val.source, Lines{"fünf"});
  ASSERT_EQ(corpus.tests.size(), 2u);
  EXPECT_EQ(corpus.tests[0].name, "test_a");  // kept although long: a test set is not to be chosen from
  EXPECT_EQ(corpus.tests[0].size(), 1);
  EXPECT_EQ(corpus.tests[1].target, Lines{"six"});
  EXPECT_EQ(corpus.report.total(), 2);
  EXPECT_EQ(corpus.report.first()[0].file, folder_ / "train.en");
  EXPECT_EQ(corpus.report.first()[0].line, 2);
  EXPECT_EQ(corpus.report.first()[1].file, folder_ / "train.de");
}

TEST_F(ParallelFolder, Errors) {
  const auto error = [&](const std::string& path) {
    return message_of<IoError>([&] { read_parallel_folder(path, {}); });
  };
  EXPECT_EQ(error(folder_.path()),
            "no parallel text in " + folder_.path() + ": expected files like train.de and train.en, plain or .gz");
  EXPECT_NE(error(folder_ / "none").find("cannot read folder"), std::string::npos);
  put_good();
  put("train.en", "one\n");
  EXPECT_EQ(error(folder_.path()), "the files of a pair differ in length: " + (folder_ / "train.de") +
                                       " has 4 lines, " + (folder_ / "train.en") + " has 1; expected the same number");
  std::filesystem::remove(folder_ / "train.en");
  EXPECT_EQ(error(folder_.path()),
            "missing file " + (folder_ / "train.en") + " (or " + (folder_ / "train.en") + ".gz)");
  std::filesystem::remove(folder_ / "train.de");
  EXPECT_NE(error(folder_.path()).find("missing file " + (folder_ / "train.de")), std::string::npos);
  put("train.de", "\n");
  put("train.en", "\n");
  EXPECT_NE(error(folder_.path()).find("no pair of lines to use"), std::string::npos);
}

}  // namespace
}  // namespace qkv
