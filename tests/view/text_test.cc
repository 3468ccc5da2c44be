// Text from anywhere is shown safely and takes the width it should.
#include "qkv/view/text.h"

#include <gtest/gtest.h>

#include <limits>

#include "view/markup.h"

namespace qkv {
namespace {

TEST(Text, InvalidBytesAreReplaced) {
  EXPECT_EQ(valid_utf8("héllo 日本"), "héllo 日本");
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a\uFFFD"
            "b");
  EXPECT_EQ(valid_utf8("\xe6\x97"), "\uFFFD\uFFFD");
  EXPECT_EQ(valid_utf8(std::string("a\0b", 3)),
            "a\uFFFD"
            "b");
  EXPECT_EQ(valid_utf8(""), "");
}

TEST(Text, TokensAreVisible) {
  EXPECT_EQ(visible_token(" "), "␣");
  EXPECT_EQ(visible_token("  "), "␣␣");
  EXPECT_EQ(visible_token("a b"), "a b");
  EXPECT_EQ(visible_token("\n"), "↵");
  EXPECT_EQ(visible_token("\t"), "⇥");
  EXPECT_EQ(visible_token("\x1b[2J"), "␛[2J");  // no token may steer the terminal
  EXPECT_EQ(visible_token("\x7f"), "␡");
  EXPECT_EQ(visible_token("\u009b"), "\uFFFD");
  EXPECT_EQ(visible_token("a\u202Eb"),
            "a\uFFFD"
            "b");
  EXPECT_EQ(visible_token(""), "∅");
  EXPECT_EQ(visible_token("\xff"), "\uFFFD");
  EXPECT_EQ(visible_token("日本"), "日本");
}

TEST(Text, WidthsFollowEastAsianWidth) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("日本語"), 6);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(display_width("🙂"), 2);
  EXPECT_EQ(display_width("ｱ"), 1);   // half-width kana
  EXPECT_EQ(display_width("Ａ"), 2);  // full-width letter
  EXPECT_EQ(display_width("العربية"), 7);
  EXPECT_EQ(display_width(""), 0);
}

TEST(Text, EllipsisKeepsBothEnds) {
  EXPECT_EQ(middle_ellipsis("abcdef", 6), "abcdef");
  EXPECT_EQ(middle_ellipsis("abcdefg", 6), "abc…fg");
  EXPECT_EQ(middle_ellipsis("日本語日本語", 7), "日…語");
  for (int columns = 0; columns < 12; ++columns) {
    EXPECT_LE(display_width(middle_ellipsis("日本語 mixed text", columns)), columns);
  }
}

TEST(Text, Padding) {
  EXPECT_EQ(pad_right("日", 4), "日  ");
  EXPECT_EQ(pad_left("日", 4), "  日");
  EXPECT_EQ(pad_left("abcde", 4), "abcde");
}

TEST(Text, MarkupIsEscaped) {
  EXPECT_EQ(escape_markup("</text><b a=\"1\" b='2'>&amp;"),
            "&lt;/text&gt;&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;amp;");
  EXPECT_EQ(escape_markup(std::string("\x01\xff\0", 3)), "\uFFFD\uFFFD\uFFFD");
  std::string every;
  for (int c = 0; c < 256; ++c) every += static_cast<char>(c);
  EXPECT_EQ(testing::markup_problem("<a b=\"" + escape_markup(every) + "\">" + escape_markup(every) + "</a>"), "");
}

TEST(Text, CsvFields) {
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(csv_field(" "), "\" \"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
}

TEST(Text, ShellWords) {
  EXPECT_EQ(shell_word("--data=runs/a.txt"), "--data=runs/a.txt");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("two words"), "'two words'");
  EXPECT_EQ(shell_word("it's $HOME"), "'it'\\''s $HOME'");
}

TEST(Text, LinesAreCutAtSpaces) {
  EXPECT_EQ(wrapped("one two three", 9, "- ", "  "), "- one two\n  three\n");
  EXPECT_EQ(wrapped("unbreakable", 4, "", "  "), "unbreakable\n");
  EXPECT_EQ(wrapped("字字 字", 5, "", ""), "字字\n字\n");    // two columns each
  EXPECT_EQ(wrapped("3 s.e. 4", 6, "", ""), "3 s.e.\n4\n");  // this space does not break
  EXPECT_EQ(wrapped("", 10, "a: ", ""), "a: \n");
}

TEST(Text, Capitalised) {
  EXPECT_EQ(capitalised("exact match"), "Exact match");
  EXPECT_EQ(capitalised("BLEU"), "BLEU");
  EXPECT_EQ(capitalised("ä"), "ä");
  EXPECT_EQ(capitalised(""), "");
}

TEST(Text, Numbers) {
  EXPECT_EQ(format_number(0.25), "0.25");
  EXPECT_EQ(format_number(12000), "12000");
  EXPECT_EQ(format_number(12345.6), "12346");
  EXPECT_EQ(format_number(3.14159e-7), "3.142e-07");
  EXPECT_EQ(format_number(-0.0), "0");
  EXPECT_EQ(format_number(1.0 / 3, 2), "0.33");
  EXPECT_EQ(format_number(123456789.0), "1.235e+08");
  EXPECT_EQ(format_number(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(format_number(-std::numeric_limits<double>::infinity()), "-inf");
}

}  // namespace
}  // namespace qkv
