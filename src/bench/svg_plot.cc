#include "bench/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/markup.h"
#include "bench/svg_axis.h"
#include "bench/svg_parts.h"

namespace octavo {
namespace {

// Pixels of the drawing; the page scales it.
constexpr double kWidth = 560, kLeft = 62, kRight = 16, kTop = 34, kPlotHeight = 220;
constexpr double kBottom = kTop + kPlotHeight, kLegendRow = 18, kCharWidth = 6.6;
constexpr size_t kMaxPoints = 800;  // of a line: more cannot be told apart
constexpr size_t kMaxName = 48;     // bytes of a name in a legend
// Scatter plots end here; the names of the dots follow.
constexpr double kDotsEnd = kWidth - 132;
constexpr size_t kMaxDotName = 18;

bool is_finite(const PlotPoint& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

struct Extent {
  double x_low = INFINITY, x_high = -INFINITY, y_low = INFINITY, y_high = 0;

  void add(const PlotPoint& point) {
    x_low = std::min(x_low, point.x);
    x_high = std::max(x_high, point.x);
    y_low = std::min(y_low, point.y);
    y_high = std::max(y_high, point.y);
  }
  bool empty() const { return x_low > x_high; }
};

struct Axes {
  SvgAxis x, y;
};

std::string grid(const Axes& axes, double end, const std::vector<double>& x_ticks) {
  std::string out;
  for (const double tick : axes.y.ticks()) {
    const double y = axes.y.pixel(tick);
    out += fmt::format("<path class=\"grid\" d=\"M{} {:.1f}H{}\"/>", kLeft, y, end);
    out += text_at(kLeft - 8, y + 4, "end", tick_text(tick));
  }
  for (const double tick : x_ticks.empty() ? axes.x.ticks(7) : x_ticks) {
    const double x = axes.x.pixel(tick);
    out += fmt::format("<path class=\"grid\" d=\"M{:.1f} {}v5\"/>", x, kBottom);
    out += text_at(x, kBottom + 18, "middle", tick_text(tick));
  }
  return out;
}

std::string titles(const PlotLabels& labels) {
  return text_at(kLeft, 18, "start", escape_markup(labels.title), "t head") +
         text_at((kLeft + kWidth - kRight) / 2, kBottom + 36, "middle", escape_markup(labels.x)) +
         fmt::format(
             "<text class=\"t\" text-anchor=\"middle\" transform=\"translate(14 {}) "
             "rotate(-90)\">{}</text>",
             (kTop + kBottom) / 2, escape_markup(labels.y));
}

struct Legend {
  std::string svg;
  double height = 0;
};

Legend legend(const std::vector<PlotSeries>& series) {
  Legend out;
  if (series.size() < 2) return out;
  double x = kLeft, y = kBottom + 56;
  for (size_t i = 0; i < series.size(); ++i) {
    const std::string name = short_name(series[i].name, kMaxName);
    const double width =
        26 + kCharWidth * static_cast<double>(std::min(series[i].name.size(), kMaxName + 3));
    if (x > kLeft && x + width > kWidth) {
      x = kLeft;
      y += kLegendRow;
    }
    out.svg +=
        fmt::format("<path class=\"line {}\" d=\"M{:.1f} {:.1f}h14\"/>", series_class(i), x, y - 4);
    out.svg += text_at(x + 19, y, "start", name);
    x += width;
  }
  out.height = y - kBottom - 36;
  return out;
}

std::string wrap(const PlotLabels& labels, const std::string& inside, double more_height = 0) {
  return fmt::format("<svg viewBox=\"0 0 {} {:.0f}\" role=\"img\" aria-label=\"{}\">{}{}</svg>\n",
                     kWidth, kBottom + 46 + more_height, escape_markup(labels.title),
                     titles(labels), inside);
}

std::string empty_plot(const PlotLabels& labels) {
  return wrap(labels, text_at((kLeft + kWidth - kRight) / 2, (kTop + kBottom) / 2, "middle",
                              "nothing was measured"));
}

constexpr double kWide = 20, kWideChosen = 3;

bool is_wide(double low, double high, double than = kWide) { return low > 0 && high / low > than; }

Axes make_axes(const Extent& extent, const PlotLabels& labels, double end = kWidth - kRight) {
  // Values that were chosen are mostly powers of something.
  const bool log_x = labels.log_x && is_wide(extent.x_low, extent.x_high,
                                             labels.x_ticks.empty() ? kWide : kWideChosen);
  const bool log_y = labels.log_y && is_wide(extent.y_low, extent.y_high);
  Axes axes{SvgAxis(extent.x_low, extent.x_high, kLeft, end, log_x),
            SvgAxis(log_y ? extent.y_low : 0, extent.y_high, kBottom, kTop, log_y)};
  axes.y.widen_to_ticks();
  return axes;
}

// The lowest and the highest of each stretch, in their order.
std::vector<PlotPoint> thin(const std::vector<PlotPoint>& points) {
  if (points.size() <= kMaxPoints) return points;
  std::vector<PlotPoint> out;
  const size_t stretches = kMaxPoints / 2;
  for (size_t i = 0; i < stretches; ++i) {
    const auto begin = points.begin() + static_cast<long>(i * points.size() / stretches);
    const auto end = points.begin() + static_cast<long>((i + 1) * points.size() / stretches);
    auto [low, high] = std::minmax_element(
        begin, end, [](const PlotPoint& a, const PlotPoint& b) { return a.y < b.y; });
    if (high < low) std::swap(low, high);
    out.push_back(*low);
    if (low != high) out.push_back(*high);
  }
  return out;
}

std::string line_path(const PlotSeries& series, size_t index, const Axes& axes, bool steps) {
  std::string d;
  for (const PlotPoint& point : thin(series.points)) {
    const double x = axes.x.pixel(point.x), y = axes.y.pixel(point.y);
    if (d.empty()) {
      d = fmt::format("M{:.1f} {:.1f}", x, y);
    } else {
      d += steps ? fmt::format("H{:.1f}V{:.1f}", x, y) : fmt::format("L{:.1f} {:.1f}", x, y);
    }
  }
  return fmt::format("<path class=\"line {}\" d=\"{}\"><title>{}</title></path>",
                     series_class(index), d, escape_markup(series.name));
}

std::string range_marks(const PlotSeries& series, size_t index, const Axes& axes) {
  std::string out;
  for (const PlotRange& range : series.ranges) {
    const double x = axes.x.pixel(range.x);
    const double low = axes.y.pixel(range.low), high = axes.y.pixel(range.high);
    out += fmt::format(
        "<path class=\"whisker\" d=\"M{0:.1f} {1:.1f}V{2:.1f}M{3:.1f} {1:.1f}h8M{3:.1f} "
        "{2:.1f}h8\"/>",
        x, low, high, x - 4);
  }
  if (series.ranges.empty()) return out;
  for (const PlotPoint& point : series.points)
    out += fmt::format(
        "<circle class=\"dot {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{}: "
        "{:.4g}, {:.4g}</title></circle>",
        series_class(index), axes.x.pixel(point.x), axes.y.pixel(point.y),
        escape_markup(series.name), point.x, point.y);
  return out;
}

void drop_infinite(std::vector<PlotSeries>& series) {
  for (PlotSeries& one : series)
    std::erase_if(one.points, [](const PlotPoint& point) { return !is_finite(point); });
}

std::string draw_dot(const PlotDot& dot, size_t index, const Axes& axes) {
  return fmt::format(
      "<circle class=\"dot {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"><title>{}: {:.4g}, "
      "{:.4g}</title></circle>",
      series_class(index), axes.x.pixel(dot.x), axes.y.pixel(dot.y), escape_markup(dot.name), dot.x,
      dot.y);
}

struct DotName {
  size_t index;  // of the dot
  double y;
};

// Names of dots at almost one height are moved apart: down, then up where the plot ends.
void spread(std::vector<DotName>& names) {
  constexpr double kLine = 15;
  std::ranges::stable_sort(names, {}, &DotName::y);
  for (size_t i = 1; i < names.size(); ++i)
    names[i].y = std::max(names[i].y, names[i - 1].y + kLine);
  double limit = kBottom;
  for (auto name = names.rbegin(); name != names.rend(); ++name, limit -= kLine)
    name->y = std::min(name->y, limit);
}

// In a column beside the plot, each with a thin line to its dot.
std::string dot_names(const std::vector<PlotDot>& dots, const Axes& axes) {
  std::vector<DotName> names;
  for (size_t i = 0; i < dots.size(); ++i)
    if (is_finite({dots[i].x, dots[i].y})) names.push_back({i, axes.y.pixel(dots[i].y)});
  spread(names);
  std::string out;
  for (const auto& [i, y] : names) {
    out += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}L{} {:.1f}\"/>",
                       axes.x.pixel(dots[i].x), axes.y.pixel(dots[i].y), kDotsEnd + 8, y);
    out += text_at(kDotsEnd + 12, y + 4, "start", short_name(dots[i].name, kMaxDotName),
                   "t name " + series_class(i));
  }
  return out;
}

std::string frontier_path(const std::vector<PlotDot>& dots, const Axes& axes) {
  if (dots.size() < 3) return "";
  std::string d;
  for (const PlotPoint& point : frontier(dots))
    d += fmt::format("{}{:.1f} {:.1f}", d.empty() ? "M" : "L", axes.x.pixel(point.x),
                     axes.y.pixel(point.y));
  return fmt::format("<path class=\"frontier\" d=\"{}\"/>", d);
}

// Evenly many values between two points, ends included.
std::vector<PlotPoint> cdf_points(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  std::sort(values.begin(), values.end());
  std::vector<PlotPoint> points;
  if (values.empty()) return points;
  const size_t n = values.size(), count = std::min(n, kMaxPoints / 2);
  points.push_back({values.front(), 0});
  for (size_t i = 1; i <= count; ++i) {
    const size_t rank = i * n / count;
    points.push_back({values[rank - 1], 100 * static_cast<double>(rank) / static_cast<double>(n)});
  }
  return points;
}

void add(Extent& extent, const PlotSeries& series) {
  for (const PlotPoint& point : series.points) extent.add(point);
  for (const PlotRange& range : series.ranges) {
    extent.add({range.x, range.low});
    extent.add({range.x, range.high});
  }
}

std::string draw_lines(const PlotLabels& labels, const std::vector<PlotSeries>& series,
                       Extent extent, bool steps) {
  for (const PlotSeries& one : series) add(extent, one);
  if (extent.empty()) return empty_plot(labels);
  const Axes axes = make_axes(extent, labels);
  std::string inside = grid(axes, kWidth - kRight, labels.x_ticks);
  for (size_t i = 0; i < series.size(); ++i)
    if (!series[i].points.empty())
      inside += line_path(series[i], i, axes, steps) + range_marks(series[i], i, axes);
  const Legend names = legend(series);
  return wrap(labels, inside + names.svg, names.height);
}

}  // namespace

std::string line_plot(const PlotLabels& labels, const std::vector<PlotSeries>& series, bool steps) {
  std::vector<PlotSeries> finite = series;
  drop_infinite(finite);
  return draw_lines(labels, finite, {}, steps);
}

std::string cdf_plot(const PlotLabels& labels, const std::vector<PlotValues>& series) {
  std::vector<PlotSeries> lines;
  for (const PlotValues& one : series) lines.push_back({one.name, cdf_points(one.values)});
  return draw_lines(labels, lines, {}, /*steps=*/false);
}

std::string scatter_plot(const PlotLabels& labels, const std::vector<PlotDot>& dots) {
  Extent extent;
  for (const PlotDot& dot : dots)
    if (is_finite({dot.x, dot.y})) extent.add({dot.x, dot.y});
  if (extent.empty()) return empty_plot(labels);
  extent.x_low = std::min(extent.x_low, 0.0);
  extent.x_high *= 1.05;
  extent.y_high *= 1.05;
  extent.y_low /= 1.5;
  Axes axes = make_axes(extent, labels, kDotsEnd);
  axes.x.widen_to_ticks(7);
  std::string inside = grid(axes, kDotsEnd, {}) + frontier_path(dots, axes) + dot_names(dots, axes);
  for (size_t i = 0; i < dots.size(); ++i)
    if (is_finite({dots[i].x, dots[i].y})) inside += draw_dot(dots[i], i, axes);
  return wrap(labels, inside);
}

std::vector<PlotPoint> frontier(const std::vector<PlotDot>& dots) {
  std::vector<PlotPoint> points;
  for (const PlotDot& dot : dots)
    if (is_finite({dot.x, dot.y})) points.push_back({dot.x, dot.y});
  std::ranges::sort(points, [](const PlotPoint& a, const PlotPoint& b) {
    return a.x != b.x ? a.x > b.x : a.y < b.y;
  });
  std::vector<PlotPoint> best;  // from the right: each must be lower than all before
  for (const PlotPoint& point : points)
    if (best.empty() || point.y < best.back().y) best.push_back(point);
  std::ranges::reverse(best);
  return best;
}

}  // namespace octavo
