// Tables, progress lines and reports.
#include "qkv/report/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/report/metric_text.h"
#include "qkv/view/heatmap.h"
#include "qkv/view/plot.h"
#include "qkv/view/progress.h"
#include "qkv/view/text.h"
#include "view/markup.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::TempFolder;

TEST(Figures, AreWrittenAsPeopleWriteThem) {
  EXPECT_EQ(metric_label("exact_match"), "exact match");
  EXPECT_EQ(metric_label("bleu") + " " + metric_text("bleu", 8.2849), "BLEU 8.28");
  EXPECT_EQ(metric_text("accuracy", 0.9915), "99.15%");
  EXPECT_EQ(metric_text("loss", 0.123456), "0.1235");
}

TEST(Table, AlignsByColumn) {
  const Table table{.header = {"name", "n"}, .rows = {{"日本", "5"}, {"abc", "-12.5"}, {"x"}}};
  EXPECT_EQ(terminal_table(table, {.width = 40}),
            "name      n\n"
            "────  ─────\n"
            "日本      5\n"
            "abc   -12.5\n"
            "x\n");
}

TEST(Table, ShortensTextNeverNumbers) {
  const Table table{.header = {"a", "b"}, .rows = {{std::string(60, 'w') + "end", "1234567890"}}};
  const std::string text = terminal_table(table, {.width = 30});
  EXPECT_NE(text.find("1234567890"), std::string::npos);
  EXPECT_NE(text.find("…"), std::string::npos);
  size_t start = 0;
  for (size_t end; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
    EXPECT_LE(display_width(text.substr(start, end - start)), 30);
  }
}

TEST(Table, WrapsAtWords) {
  const Table table{.header = {"what", "n"}, .rows = {{"the weight of one", "1"}, {"two", "2"}}};
  EXPECT_EQ(terminal_table(table, {.width = 14}),
            "what         n\n"
            "───────────  ─\n"
            "the weight   1\n"
            "of one\n"
            "two          2\n");
}

TEST(Table, NumbersAreRecognised) {
  for (const char* text :
       {"12", "-0.5", "99.2%", "1.2e-05", "3.1 s", "≥ 99%", "0.31 ± 0.02", "—", "nan", "2×", "+3", "< 5"}) {
    EXPECT_TRUE(looks_numeric(text)) << text;
  }
  for (const char* text : {"dot", "", "head 3", "layer0", "12 monkeys", "LSTM-2"}) {
    EXPECT_FALSE(looks_numeric(text)) << text;
  }
}

TEST(Table, HtmlIsEscaped) {
  const std::string html = html_table({.title = "<t>", .header = {"a&b", "n"}, .rows = {{"</td><b>", "1"}}});
  EXPECT_EQ(testing::markup_problem(html), "");
  EXPECT_NE(html.find("<td>&lt;/td&gt;&lt;b&gt;</td><td class=\"num\">1</td>"), std::string::npos);
}

TEST(Table, NoTokenSteersTheTerminal) {
  const std::string text = terminal_table({.header = {"\x1b[2J"}, .rows = {{"a\nb"}, {"\xff"}}}, {});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
}

// A progress bar with a clock that the test moves.
struct FakeProgress {
  double time = 0;
  std::string out;
  Progress bar;
  FakeProgress(int64_t total, Terminal terminal, std::string unit = "steps")
      : bar("train", total,
            ProgressOptions{.terminal = terminal,
                            .unit = std::move(unit),
                            .now = [this] { return time; },
                            .write = [this](std::string_view text) { out += text; }}) {}
  std::string step(double to, int64_t done, std::string_view note = "") {
    time = to;
    out.clear();
    bar.update(done, note);
    return out;
  }
};

TEST(Progress, SilentForShortJobs) {
  FakeProgress p(100, {.tty = true});
  EXPECT_EQ(p.step(0.5, 20), "");
  EXPECT_EQ(p.step(1.9, 99), "");
  p.bar.finish();
  EXPECT_EQ(p.out, "");
}

TEST(Progress, RewritesOneLineOnATerminal) {
  FakeProgress p(100, {.width = 80, .tty = true});
  EXPECT_EQ(p.step(4, 25, "loss 0.5"),
            "\rtrain  ██████                    25%  6.25 steps/s  0:12 left  loss 0.5\x1b[K");
  EXPECT_EQ(p.step(4.05, 26), "");
  EXPECT_NE(p.step(4.2, 26), "");
  p.out.clear();
  p.bar.finish();
  EXPECT_EQ(p.out, "\r\x1b[K");
  p.out.clear();
  p.bar.finish();
  EXPECT_EQ(p.out, "");
}

TEST(Progress, PlainLinesElsewhere) {
  FakeProgress p(1000, {.tty = false});
  EXPECT_EQ(p.step(2, 100), "train   10%  50 steps/s  0:18 left\n");
  EXPECT_EQ(p.step(10, 500), "");
  EXPECT_EQ(p.step(17.5, 875), "train   87%  50 steps/s  0:03 left\n");
  p.bar.finish();
}

TEST(Progress, UnknownTotalsResumesAndNarrowTerminals) {
  FakeProgress open(0, {.tty = false});
  EXPECT_EQ(open.step(3, 30000), "train  30.0k  10.0k steps/s\n");
  FakeProgress resumed(100, {.tty = false}, "");
  resumed.bar.start_at(90);
  EXPECT_EQ(resumed.step(5, 95), "train   95%  0:05 left\n");
  FakeProgress narrow(100, {.width = 30, .tty = true});
  const std::string line = narrow.step(5, 50, std::string(100, 'n'));
  EXPECT_LT(display_width(line.substr(1, line.find('\x1b') - 1)), 30);
}

TEST(Progress, TheTimeLeftStaysWhenTheLineIsFull) {
  FakeProgress p(100, {.width = 80, .tty = true}, "");
  EXPECT_EQ(p.step(4, 25, "epoch 12/30  loss 0.123  12.3k tokens/s of the training"),
            "\rtrain  ██████                    25%  0:12 left  epoch 12/30  loss 0.123\x1b[K");
  EXPECT_EQ(p.step(8, 50, std::string(90, 'n')), "\rtrain  ████████████              50%  0:08 left\x1b[K");
}

TEST(Progress, Formats) {
  EXPECT_EQ(format_duration(0), "0:00");
  EXPECT_EQ(format_duration(6.2), "0:07");
  EXPECT_EQ(format_duration(750), "12:30");
  EXPECT_EQ(format_duration(3723), "1:02:03");
  EXPECT_EQ(format_count(950), "950");
  EXPECT_EQ(format_count(12345), "12.3k");
  EXPECT_EQ(format_count(4560000), "4.56M");
}

Report sample() {
  HeatMap map{.title = "<script>alert(1)</script>", .rows = 2, .columns = 2, .values = {0, 1, 1, 0}};
  map.row_labels = map.column_labels = {"</svg>", "&"};
  Plot plot;
  plot.series = {{.name = "s", .x = {0, 1}, .y = {0, 1}}};
  Report report("A <title> & more", "sub");
  report.section("One").paragraph("<b>").formula("a < b").code("x = '1' && \"2\"").list({"<i>"});
  report.section("Two").settings({{"name", "<v>"}}).highlights({{"label", "1 < 2", "note"}});
  report.section("Three").table({.header = {"h"}, .rows = {{"</table>"}}}).folded_table("more", {.rows = {{"1"}}});
  report.figure(draw_heatmap(map), "caption </figure>").figures({draw_plot(plot), draw_plot(plot)});
  return report;
}

TEST(Report, FormulasHaveSubscriptsAndStayEscaped) {
  Report report("t");
  report.formula("e^{tλ_{a}} < x_{i}").formula("{a} b} ^{<b>").formula("x_{open");
  const std::string html = report.html();
  EXPECT_NE(html.find(">e<sup>tλ<sub>a</sub></sup> &lt; x<sub>i</sub></p>"), std::string::npos);
  EXPECT_NE(html.find(">{a} b} <sup>&lt;b&gt;</sup></p>"), std::string::npos);
  EXPECT_NE(html.find(">x<sub>open</sub></p>"), std::string::npos);
}

TEST(Report, FormulasInProseAreSetWhereThatIsAskedFor) {
  const std::string text = "1 − α_j is e^(−βt) of P_ij in my_name, x_";
  const std::string set = "1 − α<sub>j</sub> is e<sup>−βt</sup> of P<sub>ij</sub> in my_name, x_";
  for (const bool formulas : {false, true}) {
    Report report("t");
    if (formulas) report.with_formulas();
    report.paragraph(text).list({text}).table({.rows = {{text}}});
    const std::string html = report.html(), &wanted = formulas ? set : text;
    for (const char* tag : {"p", "li", "td"}) {
      EXPECT_NE(html.find(std::string("<") + tag + ">" + wanted), std::string::npos) << html;
    }
  }
}

TEST(Report, EverythingIsEscapedAndSelfContained) {
  const std::string html = sample().html();
  for (const char* bad :
       {"<script", "<b>", "<i>", "<v>", "</table></td>", "alert(1)</script>", "src=", "@import", "url("}) {
    EXPECT_EQ(html.find(bad), std::string::npos) << bad;
  }
  // The only addresses are the names of the SVG vocabulary.
  for (size_t at = html.find("http"); at != std::string::npos; at = html.find("http", at + 1)) {
    const std::string around = html.substr(at, 18);
    EXPECT_TRUE(around == "http://www.w3.org/" || around.starts_with("http-equiv")) << around;
  }
  EXPECT_NE(html.find("<title>A &lt;title&gt; &amp; more</title>"), std::string::npos);
  EXPECT_NE(html.find("<a href=\"#s3\">Three</a>"), std::string::npos);
  const size_t body = html.find("<body>"), end = html.find("</body>");
  EXPECT_EQ(testing::markup_problem(html.substr(body, end + 7 - body)), "");
}

TEST(Report, FiguresDoNotShareIds) {
  const std::string html = sample().html();
  std::set<std::string> ids;
  size_t count = 0;
  for (size_t at = html.find(" id=\""); at != std::string::npos; at = html.find(" id=\"", at + 1)) {
    ids.insert(html.substr(at + 5, html.find('"', at + 5) - at - 5));
    ++count;
  }
  EXPECT_GT(count, 10u);
  EXPECT_EQ(ids.size(), count);
  for (size_t at = html.find("xlink:href=\"#"); at != std::string::npos; at = html.find("xlink:href=\"#", at + 1)) {
    EXPECT_EQ(ids.count(html.substr(at + 13, html.find('"', at + 13) - at - 13)), 1u);
  }
}

TEST(Report, SameCallsSameBytesAndAtomicSave) {
  EXPECT_EQ(sample().html(), sample().html());
  const TempFolder folder;
  sample().save(folder / "report.html");
  EXPECT_EQ(read_text(folder / "report.html"), sample().html());
  EXPECT_EQ(message_of<IoError>([&] { sample().save(folder / "no/report.html"); }),
            "cannot write " + (folder / "no/report.html") + ": No such file or directory");
  EXPECT_EQ(folder.entries(), 1);
}

}  // namespace
}  // namespace qkv
