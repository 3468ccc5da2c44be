// Charts: points land where their values say, breaks and bands show, bad input is refused.
#include "qkv/view/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "qkv/view/axis.h"
#include "qkv/view/plot_frame.h"
#include "qkv/view/text.h"
#include "view/markup.h"
#include "view/png.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::Png;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Largest and smallest y of pixels with the colour in column x (in CSS pixels), or nothing.
std::optional<std::pair<double, double>> extent_in_column(const Png& png, double x, Rgb color) {
  std::optional<std::pair<double, double>> found;
  for (int y = 0; y < png.height(); ++y) {
    if (png.at(2 * x, y) != color) continue;
    if (!found) found = {y / 2.0, y / 2.0};
    found->second = y / 2.0;
  }
  return found;
}

Plot diagonal() {
  Plot plot;
  plot.x = {.low = 0, .high = 10};
  plot.y = {.low = 0, .high = 10};
  plot.series = {{.x = {0, 10}, .y = {0, 10}}};
  return plot;
}

TEST(Axis, TicksAreRound) {
  EXPECT_EQ(linear_ticks(0, 1, 5), (std::vector<double>{0, 0.2, 0.4, 0.6, 0.8, 1.0}));
  EXPECT_EQ(linear_ticks(0, 0.3, 3), (std::vector<double>{0, 0.1, 0.2, 0.3}));
  EXPECT_EQ(linear_ticks(-3, 7, 5), (std::vector<double>{-2, 0, 2, 4, 6}));
  EXPECT_EQ(linear_ticks(100, 1100, 5), (std::vector<double>{200, 400, 600, 800, 1000}));
  EXPECT_TRUE(linear_ticks(1, 1, 5).empty());
  EXPECT_TRUE(linear_ticks(0, kNan, 5).empty());
  EXPECT_EQ(log_ticks(0.001, 1000), (std::vector<double>{0.001, 0.01, 0.1, 1, 10, 100, 1000}));
  EXPECT_EQ(log_ticks(1, 10), (std::vector<double>{1, 2, 5, 10}));
  EXPECT_TRUE(log_ticks(0, 10).empty());
}

TEST(Axis, FitsTheData) {
  const double losses[] = {0.1, 0.4, 1.68, kNan};
  const detail::AxisScale y = detail::fit_axis({}, losses, true);
  EXPECT_EQ(y.low, 0);
  EXPECT_EQ(y.high, 2);
  const double far[] = {95, 98};
  EXPECT_GE(detail::fit_axis({}, far, true).low, 90);
  const double same[] = {3, 3};
  EXPECT_LT(detail::fit_axis({}, same, false).low, 3);
  EXPECT_GT(detail::fit_axis({}, same, false).high, 3);
  const detail::AxisScale nothing = detail::fit_axis({}, {}, true);
  EXPECT_LT(nothing.low, nothing.high);
  const double mixed[] = {-5, 0, 0.01, 100};
  const detail::AxisScale log = detail::fit_axis({.log = true}, mixed, true);
  EXPECT_GT(log.low, 0.001);
  EXPECT_LE(log.low, 0.01);
  EXPECT_FALSE(log.shows(0));
  EXPECT_FALSE(log.shows(-5));
}

TEST(Plot, PointsLandWhereTheirValuesSay) {
  const Png png(to_png(draw_plot(diagonal())));
  const Box area = plot_area(diagonal());
  ASSERT_GT(area.w, 400);
  for (const double t : {0.25, 0.5, 0.75}) {
    const auto found = extent_in_column(png, area.x + t * area.w, series_color(0));
    ASSERT_TRUE(found) << t;
    EXPECT_NEAR((found->first + found->second) / 2, area.y + area.h - t * 300, 2) << t;
  }
}

TEST(Plot, LogAxesAreLogarithmic) {
  Plot plot = diagonal();
  plot.y = {.log = true, .low = 1, .high = 100};
  plot.series = {{.x = {0, 10}, .y = {10, 10}}};
  const Png png(to_png(draw_plot(plot)));
  const Box area = plot_area(plot);
  const auto found = extent_in_column(png, area.x + area.w / 2, series_color(0));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->first, area.y + area.h - 150, 2);
}

TEST(Plot, NanBreaksTheLineAndIsMarked) {
  Plot plot = diagonal();
  plot.series = {{.x = {0, 4, 5, 6, 10}, .y = {8, 8, kNan, 8, 8}}};
  const Png png(to_png(draw_plot(plot)));
  const Box area = plot_area(plot);
  const auto at = [&](double x) { return extent_in_column(png, area.x + x / 10 * area.w, series_color(0)); };
  ASSERT_TRUE(at(2) && at(8) && at(5));
  EXPECT_NEAR(at(2)->first, area.y + area.h - 240, 2);
  EXPECT_GT(at(5)->first, area.y + area.h - 12) << "only the cross at the bottom";
}

TEST(Plot, BandsAndErrorBarsReachTheirEnds) {
  Plot plot = diagonal();
  plot.series = {{.x = {0, 10}, .y = {5, 5}, .low = {2, 2}, .high = {8, 8}}};
  const Png band(to_png(draw_plot(plot)));
  const Box area = plot_area(plot);
  const double x = area.x + area.w / 2 + 7;
  EXPECT_NE(band.at(2 * x, 2 * (area.y + area.h - 70)), kPaper);   // 2.33
  EXPECT_NE(band.at(2 * x, 2 * (area.y + area.h - 230)), kPaper);  // 7.67
  EXPECT_EQ(band.at(2 * x, 2 * (area.y + area.h - 250)), kPaper);  // 8.33
  plot.series = {{.x = {5}, .y = {5}, .low = {2}, .high = {8}, .marks = Marks::kDots}};
  const Png bars(to_png(draw_plot(plot)));
  const auto found = extent_in_column(bars, area.x + area.w / 2, series_color(0));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->first, area.y + area.h - 240, 2);
  EXPECT_NEAR(found->second, area.y + area.h - 60, 2);
}

TEST(Plot, ManyPointsKeepTheirExtremes) {
  Plot plot = diagonal();
  Series s;
  for (int i = 0; i < 200000; ++i) {
    s.x.push_back(i * 10.0 / 200000);
    s.y.push_back(i == 123456 ? 9.5 : 1.0);
  }
  plot.series = {s};
  const Drawing drawing = draw_plot(plot);
  EXPECT_LT(to_svg(drawing).size(), 300000u);
  const Png png(to_png(drawing));
  const Box area = plot_area(plot);
  double top = 1e9;
  for (double dx = -2; dx <= 2; dx += 0.5) {
    const auto found = extent_in_column(png, area.x + 0.61728 * area.w + dx, series_color(0));
    if (found) top = std::min(top, found->first);
  }
  EXPECT_NEAR(top, area.y + area.h - 285, 3);
}

TEST(Plot, OddInputStillDraws) {
  Plot plot;
  EXPECT_EQ(testing::markup_problem(to_svg(draw_plot(plot))), "");
  plot.title = "<b> \xff";
  plot.series = {{.name = "</svg>", .x = {1, 2}, .y = {kNan, std::numeric_limits<double>::infinity()}},
                 {.name = "", .x = {1e300, -1e300}, .y = {1e-300, 1e300}}};
  plot.guides = {{kNan, "nowhere"}, {3, "here", true}};
  for (const bool log : {false, true}) {
    plot.x.log = plot.y.log = log;
    EXPECT_EQ(testing::markup_problem(to_svg(draw_plot(plot))), "");
    EXPECT_FALSE(terminal_plot(plot, {}).empty());
  }
}

TEST(Plot, RefusesUnequalLengths) {
  Plot plot;
  plot.series = {{.name = "loss", .x = {1, 2}, .y = {1}}};
  EXPECT_EQ(message_of<ShapeError>([&] { draw_plot(plot); }),
            "[plot] series 'loss' has 2 x, 1 y, 0 low and 0 high values");
}

TEST(TerminalPlot, DrawsTheLine) {
  Plot plot = diagonal();
  plot.title = "up";
  plot.series[0].name = "line";
  EXPECT_EQ(terminal_plot(plot, {.width = 20, .utf8 = false}, 5),
            "up\n"
            "** line\n"
            "10 |             ***\n"
            "   |         ****\n"
            " 5 |      ****\n"
            "   |   ****\n"
            " 0 |***\n"
            "   +----------------\n"
            "    0      5      10\n");
  const std::string braille = terminal_plot(plot, {.width = 20, .color = true}, 5);
  EXPECT_NE(braille.find("⠤"), std::string::npos);
  EXPECT_NE(braille.find(foreground(series_color_dark(0))), std::string::npos);
}

TEST(Bars, HeightsAreTheValues) {
  BarChart chart;
  chart.y = {.low = 0, .high = 1};
  chart.groups = {"a", "b"};
  chart.series = {{.values = {0.25, 1.0}}};
  const Png png(to_png(draw_bars(chart)));
  const Box area = bars_area(chart);
  const auto first = extent_in_column(png, area.x + area.w * 0.25, series_color(0));
  const auto second = extent_in_column(png, area.x + area.w * 0.75, series_color(0));
  ASSERT_TRUE(first && second);
  EXPECT_NEAR(first->second - first->first, 65, 1.5);
  EXPECT_NEAR(second->second - second->first, 260, 1.5);
  chart.series[0].values.pop_back();
  EXPECT_EQ(message_of<ShapeError>([&] { draw_bars(chart); }), "[bars] series '' has 1 values for 2 groups");
}

TEST(Arrange, PartsDoNotOverlap) {
  const Drawing one = draw_plot(diagonal());
  const Drawing page = arrange("Two", {one, one, one}, 2, "caption");
  EXPECT_GT(page.width, 2 * one.width);
  EXPECT_GT(page.height, 2 * one.height);
  EXPECT_EQ(testing::markup_problem(to_svg(page)), "");
  EXPECT_EQ(to_svg(page), to_svg(page));
  EXPECT_EQ(testing::markup_problem(to_svg(arrange("", {}, 3))), "");
}

}  // namespace
}  // namespace qkv
