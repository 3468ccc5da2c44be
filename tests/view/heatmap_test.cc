// Heat maps: the pixels are the values, masked is hatched, any token is safe, nothing partial is written.
#include "qkv/view/heatmap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/view/text.h"
#include "view/markup.h"
#include "view/png.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::Png;
using testing::TempFolder;

HeatMap ramp(int64_t rows, int64_t columns) {
  HeatMap map;
  map.title = "A ramp";
  map.rows = rows;
  map.columns = columns;
  for (int64_t i = 0; i < rows * columns; ++i) {
    map.values.push_back(static_cast<float>(i) / static_cast<float>(rows * columns - 1));
  }
  return map;
}

// A pixel a quarter into the cell, clear of grid lines and numbers.
Rgb cell_color(const HeatMap& map, const Png& png, int64_t row, int64_t column) {
  const Box box = heatmap_cells(map);
  const double w = box.w / static_cast<double>(map.columns), h = box.h / static_cast<double>(map.rows);
  return png.at(2 * (box.x + (static_cast<double>(column) + 0.5) * w),
                2 * (box.y + (static_cast<double>(row) + 0.5) * h));
}

TEST(HeatMap, CellPixelsAreTheColourOfTheValue) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{5, 7}, {1, 30}, {64, 50}, {300, 200}}) {
    const HeatMap map = ramp(rows, columns);
    const Png png(to_png(draw_heatmap(map)));
    for (int64_t r = 0; r < rows; r += 1 + rows / 9) {
      for (int64_t c = 0; c < columns; c += 1 + columns / 9) {
        const float value = map.values[static_cast<size_t>(r * columns + c)];
        EXPECT_EQ(cell_color(map, png, r, c), color_at(sequential_map(), value)) << rows << " " << r << "," << c;
      }
    }
  }
}

TEST(HeatMap, ScalesPlaceTheEnds) {
  HeatMap map = ramp(2, 2);
  map.values = {-2, 0, 1, 4};
  map.scale = MapScale::kAuto;
  EXPECT_EQ(Shades(map).at(0, 0), 0.0);
  EXPECT_EQ(Shades(map).at(0, 1), 1.0 / 3);
  EXPECT_EQ(Shades(map).at(1, 1), 1.0);
  map.scale = MapScale::kCentered;
  EXPECT_EQ(Shades(map).at(0, 1), 0.5);
  EXPECT_EQ(Shades(map).at(0, 0), 0.25);
  map.scale = MapScale::kRow;
  EXPECT_EQ(Shades(map).at(1, 0), 0.25);
  EXPECT_EQ(Shades(map).at(0, 0), 0.0);
  map.scale = MapScale::kUnit;
  EXPECT_EQ(Shades(map).at(1, 1), 1.0);
  map.range = {0.0, 8.0};
  EXPECT_EQ(Shades(map).at(1, 1), 0.5);
  map.range = {};
  map.scale = MapScale::kAuto;
  map.hidden = {0, 0, 0, 1};
  EXPECT_EQ(Shades(map).at(1, 1), std::nullopt);
  EXPECT_EQ(Shades(map).at(1, 0), 1.0);
  map.values = {3, 3, 3, std::numeric_limits<float>::quiet_NaN()};
  map.hidden.clear();
  EXPECT_EQ(Shades(map).at(0, 0), 0.0);
  EXPECT_EQ(Shades(map).at(1, 1), std::nullopt);
}

TEST(HeatMap, MaskedCellsAreHatchedAndDifferFromZero) {
  for (const int64_t n : {4, 60}) {  // rectangles, and an image
    HeatMap map = ramp(n, n);
    std::fill(map.values.begin(), map.values.end(), 0.0f);
    map.hidden.assign(map.values.size(), 0);
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t c = r + 1; c < n; ++c) map.hidden[static_cast<size_t>(r * n + c)] = 1;
    }
    const Png png(to_png(draw_heatmap(map)));
    const Box box = heatmap_cells(map);
    // Along a line inside the masked corner there are hatch lines and ground; inside the visible corner only paper.
    int dark = 0, light = 0, paper = 0;
    for (double t = 0.05; t < 0.3; t += 0.002) {
      const Rgb masked = png.at(2 * (box.x + box.w * (1 - t)), 2 * (box.y + box.h * 0.04));
      (lightness(masked) < 85 ? dark : light) += 1;
      paper += png.at(2 * (box.x + box.w * 0.04), 2 * (box.y + box.h * (1 - t))) == kPaper ? 1 : 0;
    }
    EXPECT_GT(dark, 5) << n;
    EXPECT_GT(light, 20) << n;
    EXPECT_GT(paper, 100) << n;
  }
}

TEST(HeatMap, SameInputSameBytes) {
  const HeatMap map = ramp(6, 6);
  EXPECT_EQ(to_png(draw_heatmap(map)), to_png(draw_heatmap(map)));
  const std::string svg = to_svg(draw_heatmap(map));
  to_svg(draw_heatmap(ramp(50, 50)));  // moves cairo's own counters on
  EXPECT_EQ(to_svg(draw_heatmap(map)), svg);
}

TEST(HeatMap, SvgIsWellFormedWithAnyToken) {
  HeatMap map = ramp(4, 5);
  map.title = "</text><b>&\"' \xff title";
  map.caption = "]]> <script>alert(1)</script>";
  map.row_labels = {"</text><b>", "\xff\xfe", std::string("\0x", 2), "العربية"};
  map.column_labels = {"日本語", "🙂", "", std::string(500, 'w'), "\u202Eabc"};
  for (const int64_t repeat : {1, 20}) {
    HeatMap large = map;
    if (repeat > 1) {
      large = ramp(80, 80);
      large.title = map.title;
    }
    const std::string svg = to_svg(draw_heatmap(large), "fig3-");
    EXPECT_EQ(testing::markup_problem(svg), "");
    EXPECT_EQ(svg.find("<b>"), std::string::npos);
    EXPECT_EQ(svg.find("<script"), std::string::npos);
    EXPECT_NE(svg.find("<title>&lt;/text&gt;&lt;b&gt;"), std::string::npos);
    EXPECT_EQ(svg.find("id=\"i"), std::string::npos);
    EXPECT_NE(svg.find("id=\"fig3-i"), std::string::npos);
    EXPECT_EQ(svg.find("\"#i"), std::string::npos);
  }
  EXPECT_GT(to_png(draw_heatmap(map)).size(), 1000u);
}

TEST(HeatMap, HugeMapsArePooledAndSaySo) {
  HeatMap map = ramp(2500, 2400);
  std::fill(map.values.begin(), map.values.end(), 0.0f);
  map.values[static_cast<size_t>(1234 * 2400 + 777)] = 1.0f;
  const Drawing drawing = draw_heatmap(map);
  EXPECT_LT(drawing.width, 1500);
  EXPECT_NE(drawing.description.find("largest of 3 × 3"), std::string::npos);
  // One cell of 9 million is still there.
  const Png png(to_png(drawing));
  const Box box = heatmap_cells(map);
  EXPECT_EQ(png.at(2 * (box.x + 777.0 / 3) + 1, 2 * (box.y + std::floor(1234.0 / 3)) + 1), sequential_map().back());
}

TEST(HeatMap, ExtremeShapesDraw) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 1}, {1, 1000}, {1000, 1}, {3, 1500}}) {
    const Drawing drawing =
        draw_heatmap(rows * columns == 1 ? HeatMap{.rows = 1, .columns = 1, .values = {0.5f}} : ramp(rows, columns));
    EXPECT_GT(drawing.width, 100);
    EXPECT_LT(drawing.width, 2000);
    EXPECT_LT(drawing.height, 2000);
    EXPECT_EQ(testing::markup_problem(to_svg(drawing)), "");
  }
}

TEST(HeatMap, GridsShareOneBar) {
  std::vector<HeatMap> maps(6, ramp(5, 5));
  const Drawing page = draw_heatmaps("six", maps, 3);
  maps[2].scale = MapScale::kAuto;
  const Drawing mixed = draw_heatmaps("six", maps, 3);
  EXPECT_LT(page.width, mixed.width);
  EXPECT_GT(Png(to_png(page)).count(sequential_map().back()), 6 * 100);
  EXPECT_NE(message_of<ShapeError>([] { draw_heatmaps("none", {}, 3); }), "");
}

TEST(HeatMap, CsvSpellsMaskedOut) {
  HeatMap map = ramp(2, 2);
  map.values = {0.25f, 0.1f, 1.0f, 0.0f};
  map.hidden = {0, 1, 0, 0};
  map.row_labels = {"a,b", "say \"x\""};
  map.column_labels = {"", " "};
  EXPECT_EQ(heatmap_csv(map), "query \\ key,,\" \"\n\"a,b\",0.25,masked\n\"say \"\"x\"\"\",1,0\n");
  map.title = "L0";
  EXPECT_EQ(heatmaps_csv({map}),
            "map,row,row_label,column,column_label,value\nL0,0,\"a,b\",0,,0.25\nL0,0,\"a,b\",1,\" \",masked\n"
            "L0,1,\"say \"\"x\"\"\",0,,1\nL0,1,\"say \"\"x\"\"\",1,\" \",0\n");
}

TEST(HeatMap, SavesByExtensionOrNotAtAll) {
  const TempFolder folder;
  const HeatMap map = ramp(3, 3);
  save_heatmap(map, folder / "m.png");
  save_heatmap(map, folder / "m.svg");
  save_heatmap(map, folder / "m.csv");
  EXPECT_EQ(folder.entries(), 3);
  EXPECT_EQ(read_text(folder / "m.png").substr(1, 3), "PNG");
  EXPECT_EQ(read_text(folder / "m.csv"), heatmap_csv(map));
  EXPECT_EQ(message_of<ConfigError>([&] { save_heatmap(map, folder / "m.jpg"); }),
            "cannot write picture " + (folder / "m.jpg") + ": unknown kind '.jpg'; use .png or .svg");
  EXPECT_NE(message_of<IoError>([&] { save_heatmap(map, folder / "no/m.png"); }), "");
  HeatMap bad = map;
  bad.values.pop_back();
  EXPECT_EQ(message_of<ShapeError>([&] { save_heatmap(bad, folder / "bad.png"); }), "[heat map] 8 values, expected 9");
  bad = map;
  bad.row_labels = {"one"};
  EXPECT_EQ(message_of<ShapeError>([&] { save_heatmap(bad, folder / "bad.csv"); }),
            "[heat map] 1 row labels, expected 3");
  bad = HeatMap{};
  EXPECT_NE(message_of<ShapeError>([&] { save_heatmap(bad, folder / "bad.svg"); }).find("nothing to draw"),
            std::string::npos);
  EXPECT_EQ(folder.entries(), 3);
}

TEST(HeatMap, DescribesWeights) {
  HeatMap map = ramp(2, 2);
  map.values = {0.5f, 0.5f, 1.0f, 0.0f};
  map.hidden = {0, 0, 0, 1};
  EXPECT_EQ(describe_weights(map),
            "Largest weight in a row: 0.75 on average; entropy: 100% of an even spread; 1 of 4 cells masked.");
  map.hidden = {1, 1, 1, 1};
  EXPECT_EQ(describe_weights(map), "Every cell is masked or zero.");
}

TEST(TerminalMap, PlainBlocksLineUp) {
  HeatMap map = ramp(2, 3);
  map.title = "";
  map.values = {1, 0, 0, 0, 0.5f, 0.25f};
  map.hidden = {0, 0, 1, 0, 0, 0};
  map.row_labels = {"a", "日本"};
  map.column_labels = {"x", "日", "z"};
  EXPECT_EQ(terminal_heatmap(map, {.width = 40}),
            "query ↓  key →\n"
            "     x 日z\n"
            "   a ██  ╱╱\n"
            "日本   ▒▒░░\n"
            "     0  ░▒▓█ 1  weight   ╱╱ masked\n");
  EXPECT_EQ(terminal_heatmap(map, {.width = 40, .utf8 = false}),
            "query (down)  key (across)\n"
            "   x ? z\n"
            " a ##  //\n"
            "??   ++..\n"
            "   0  .+*# 1  weight   // masked\n");
}

TEST(TerminalMap, ColoursAreTheMaps) {
  HeatMap map = ramp(1, 2);
  map.values = {0, 1};
  const std::string text = terminal_heatmap(map, {.width = 40, .color = true, .dark = false});
  EXPECT_NE(text.find(background(sequential_map().front()) + "  " + kResetColor + background(sequential_map().back()) +
                      "  " + kResetColor),
            std::string::npos);
  EXPECT_NE(terminal_heatmap(map, {.color = true}).find(background(dark_map().back())), std::string::npos);
}

TEST(TerminalMap, NeverWiderThanTheTerminalAndNoEscapesFromTokens) {
  for (const int64_t n : {1, 10, 37, 50, 100, 700}) {
    HeatMap map = ramp(n, n);
    map.row_labels.assign(static_cast<size_t>(n), "\x1b[31m a long label 日本語日本語");
    map.column_labels = map.row_labels;
    for (const int width : {20, 60, 80, 200}) {
      const std::string text = terminal_heatmap(map, {.width = width});
      EXPECT_EQ(text.find('\x1b'), std::string::npos);
      size_t start = text.find('\n', text.find('\n') + 1) + 1;  // past title and axis line
      for (size_t end; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
        const std::string line = text.substr(start, end - start);
        if (line.find("weight") == std::string::npos && line.find("each dot") == std::string::npos) {
          EXPECT_LE(display_width(line), width) << line;
        }
      }
    }
  }
}

}  // namespace
}  // namespace qkv
