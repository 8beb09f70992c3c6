#include "bench/svg_plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "bench/markup.h"
#include "bench/svg_axis.h"
#include "bench/svg_bars.h"
#include "bench/svg_block_map.h"
#include "support/xml_check.h"

namespace octavo {
namespace {

using testing::XmlCheck;

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

bool has(std::string_view text, std::string_view part) { return count(text, part) > 0; }

// The check itself must notice what it is for.
TEST(XmlCheck, FindsFaults) {
  EXPECT_EQ(XmlCheck::fault("<a b=\"1\" c=\"&lt;\"><d/>x &amp; y</a>"), "");
  for (const char* bad : {"<a>", "</a>", "<a></b>", "<a b=1/>", "<a b=\"1\" b=\"2\"/>", "a & b",
                          "<a b=\"<\"/>", "<a b=\"1/>", "<a &gt;/>", "<>"})
    EXPECT_NE(XmlCheck::fault(bad), "") << bad;
}

TEST(Markup, EscapesWhatHasAMeaning) {
  EXPECT_EQ(escape_markup("<b a=\"1\">'&'</b>"),
            "&lt;b a=&quot;1&quot;&gt;&#39;&amp;&#39;&lt;/b&gt;");
  EXPECT_EQ(escape_markup("Bl\xC3\xB6"
                          "cke\n"),
            "Bl\xC3\xB6"
            "cke\n");
}

TEST(Markup, ReplacesWhatIsNoText) {
  EXPECT_EQ(escape_markup(std::string_view("a\0b\x1b\xff", 5)), "a\uFFFDb\uFFFD\uFFFD");
}

TEST(Axis, TicksAreRoundAndInside) {
  EXPECT_EQ(SvgAxis(0, 10, 0, 100).ticks(5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(SvgAxis(13, 47, 0, 100).ticks(4), (std::vector<double>{20, 30, 40}));
  EXPECT_EQ(SvgAxis(3, 60, 0, 100, true).ticks(), (std::vector<double>{5, 10, 20, 50}));
  EXPECT_EQ(SvgAxis(3, 2e6, 0, 100, true).ticks(),
            (std::vector<double>{10, 100, 1000, 1e4, 1e5, 1e6}));
}

TEST(Axis, PixelsRunFromEndToEnd) {
  const SvgAxis up(0, 10, 200, 100);
  EXPECT_DOUBLE_EQ(up.pixel(0), 200);
  EXPECT_DOUBLE_EQ(up.pixel(5), 150);
  EXPECT_DOUBLE_EQ(up.pixel(11), 100);  // not beyond
  EXPECT_DOUBLE_EQ(SvgAxis(1, 100, 0, 100, true).pixel(10), 50);
  EXPECT_DOUBLE_EQ(SvgAxis(0, 100, 0, 100, true).pixel(10), 10);  // 0 has no logarithm
}

TEST(Axis, OneValueIsStillARange) {
  for (const double value : {0.0, 5.0, -3.0}) {
    const SvgAxis axis(value, value, 0, 100);
    EXPECT_LT(axis.low(), axis.high());
    EXPECT_TRUE(std::isfinite(axis.pixel(value)));
    EXPECT_FALSE(axis.ticks().empty());
  }
  EXPECT_EQ(SvgAxis(0, 0, 0, 100).high(), 1);
}

TEST(LinePlot, DrawsEachSeriesWithItsName) {
  const std::string svg = line_plot({.title = "A < B", .x = "s", .y = "n"},
                                    {{"one & two", {{0, 1}, {1, 2}}}, {"three", {{0, 2}}}});
  EXPECT_EQ(XmlCheck::fault(svg), "") << svg;
  EXPECT_TRUE(has(svg, "A &lt; B"));
  EXPECT_TRUE(has(svg, "one &amp; two"));
  EXPECT_TRUE(has(svg, "three"));
  EXPECT_EQ(count(svg, "<title>"), 2u);
}

TEST(LinePlot, NoTwoOfManySeriesLookTheSame) {
  std::vector<PlotSeries> series;
  for (int i = 0; i < 24; ++i) series.push_back({std::to_string(i), {{0, 1.0 * i}, {1, 2.0 * i}}});
  const std::string svg = line_plot({}, series);
  std::set<std::string> looks;
  for (size_t at = svg.find("class=\"line "); at != std::string::npos;
       at = svg.find("class=\"line ", at + 1))
    looks.insert(svg.substr(at, svg.find('"', at + 8) - at));
  EXPECT_EQ(looks.size(), 24u);
}

TEST(LinePlot, FewPointsAreDotsWithTheirRange) {
  const std::string svg = line_plot({.title = "t", .log_x = true, .x_ticks = {1, 8, 64}},
                                    {{"a", {{1, 5}, {8, 6}, {64, 9}}, {{1, 4, 6}, {8, 5, 12}}}});
  EXPECT_EQ(XmlCheck::fault(svg), "") << svg;
  EXPECT_EQ(count(svg, "<circle"), 3u);
  EXPECT_EQ(count(svg, "whisker"), 2u);
  for (const char* tick : {">1<", ">8<", ">64<", ">12<"}) EXPECT_TRUE(has(svg, tick)) << tick;
}

TEST(BarPlot, ShowsValuesAndTheirRange) {
  const std::string svg =
      bar_plot("A < B", {{"one & two", "12", 12, 10, 14}, {"none", "-", NAN}, {"zero", "0", 0}});
  EXPECT_EQ(XmlCheck::fault(svg), "") << svg;
  EXPECT_EQ(count(svg, "<rect"), 2u);
  EXPECT_EQ(count(svg, "whisker"), 1u);
  EXPECT_EQ(bar_plot("t", {{"zero", "0", 0}}), "");
}

TEST(LinePlot, ThousandsOfPointsKeepTheirExtremes) {
  PlotSeries series{"s", {}};
  for (int i = 0; i < 100000; ++i) series.points.push_back({i * 1.0, 1.0 + i % 2});
  series.points[54321].y = 1000;
  const std::string svg = line_plot({}, {series});
  EXPECT_EQ(XmlCheck::fault(svg), "");
  EXPECT_LT(svg.size(), 30000u);
  EXPECT_TRUE(has(svg, " 34.0"));  // 1000 is the top of the axis
}

TEST(LinePlot, WithoutAnythingSaysSo) {
  for (const auto& series :
       {std::vector<PlotSeries>{}, {{"a", {}}}, {{"a", {{NAN, 1}, {1, INFINITY}}}}}) {
    const std::string svg = line_plot({.title = "t"}, series);
    EXPECT_EQ(XmlCheck::fault(svg), "");
    EXPECT_TRUE(has(svg, "nothing was measured"));
  }
}

TEST(CdfPlot, EndsAtAllOfTheValues) {
  const std::string svg =
      cdf_plot({.title = "t", .log_x = true}, {{"a", {1, 100, 3, NAN}}, {"b", {}}, {"c", {50}}});
  EXPECT_EQ(XmlCheck::fault(svg), "");
  EXPECT_FALSE(has(svg, "nan"));
  EXPECT_TRUE(has(svg, "544.0 34.0\""));  // 100 % at the largest value, in the upper right corner
}

TEST(ScatterPlot, NamesItsDotsAndJoinsTheBest) {
  std::vector<PlotDot> dots = {{"slow", 10, 5}, {"fast", 100, 50}, {"bad", 5, 60}};
  std::string svg = scatter_plot({.title = "t"}, dots);
  EXPECT_EQ(XmlCheck::fault(svg), "") << svg;
  for (const PlotDot& dot : dots) EXPECT_TRUE(has(svg, ">" + dot.name + "<")) << dot.name;
  EXPECT_EQ(count(svg, "<circle"), 3u);
  EXPECT_EQ(count(svg, "frontier"), 1u);
  dots.pop_back();
  EXPECT_EQ(count(scatter_plot({}, dots), "frontier"), 0u);
  dots.push_back({"none", 1, NAN});
  EXPECT_EQ(count(scatter_plot({}, dots), "<circle"), 2u);
}

TEST(ScatterPlot, TheFrontierIsWhatNobodyBeatsInBoth) {
  const auto best =
      frontier({{"a", 10, 5}, {"b", 100, 50}, {"c", 50, 60}, {"d", 100, 70}, {"e", 50, 20}});
  std::vector<double> xs;
  for (const PlotPoint& point : best) xs.push_back(point.x);
  EXPECT_EQ(xs, (std::vector<double>{10, 50, 100}));
  EXPECT_EQ(best.back().y, 50);
}

TEST(BlockMap, NeighboursOfOneOwnerAreOneRectangle) {
  const std::string svg = svg_block_map(
      "<paged>", {{.time_s = 0, .blocks = {{0, 100}, {0, 50}, {0, 0}, {}}},
                  {.time_s = 1,
                   .blocks = {{BlockCell::kCached, 100}, {BlockCell::kShared, 100}, {}, {8, 1}}}});
  EXPECT_EQ(XmlCheck::fault(svg), "") << svg;
  EXPECT_TRUE(has(svg, "&lt;paged&gt;: 4 blocks at 2 times"));
  EXPECT_TRUE(has(svg, "cell c1\" d=\"M0 0h2v1h-2z\""));
  EXPECT_TRUE(has(svg, "cell c1 empty\" d=\"M2 0h1v1h-1z\""));
  EXPECT_TRUE(has(svg, "cell cached\" d=\"M0 1h1"));
  EXPECT_TRUE(has(svg, "cell shared\" d=\"M1 1h1"));
  EXPECT_TRUE(has(svg, "cell c9\" d=\"M3 1h1"));
}

TEST(BlockMap, LargeOnesAreSampled) {
  BlockMapRow row;
  for (int i = 0; i < 20000; ++i) row.blocks.push_back({i, 100});
  const std::string svg = svg_block_map("m", std::vector<BlockMapRow>(1000, row));
  EXPECT_EQ(XmlCheck::fault(svg), "");
  EXPECT_LT(svg.size(), 2000000u);
  EXPECT_TRUE(has(svg, "20000 blocks at 1000 times, of which 512 at 128 are shown"));
}

TEST(BlockMap, NothingIsNoMap) {
  EXPECT_EQ(svg_block_map("m", {}), "");
  EXPECT_EQ(svg_block_map("m", {{.time_s = 1}}), "");
}

}  // namespace
}  // namespace octavo
