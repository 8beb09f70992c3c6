#include "bench/svg_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/markup.h"
#include "bench/svg_parts.h"

namespace octavo {
namespace {

// Pixels of the drawing; the page scales it.
constexpr double kWidth = 560, kLeft = 196, kEnd = 470, kTop = 34, kRow = 26, kBar = 14;
constexpr size_t kMaxName = 28;

std::string whisker(const PlotBar& bar, double y, double scale) {
  if (bar.low == bar.high) return "";
  const double low = kLeft + bar.low * scale, high = kLeft + bar.high * scale;
  return fmt::format(
      "<path class=\"whisker\" d=\"M{0:.1f} {2:.1f}H{1:.1f}M{0:.1f} {3:.1f}v8M{1:.1f} "
      "{3:.1f}v8\"/>",
      low, high, y, y - 4);
}

std::string draw(const PlotBar& bar, size_t index, double scale) {
  const double y = kTop + kRow * (static_cast<double>(index) + 0.5);
  const double end = kLeft + std::max(bar.value, bar.high) * scale;
  return text_at(kLeft - 8, y + 4, "end", short_name(bar.name, kMaxName)) +
         fmt::format(
             "<rect class=\"bar {}\" x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\">"
             "<title>{}: {}</title></rect>",
             series_class(index), kLeft, y - kBar / 2, bar.value * scale, kBar,
             escape_markup(bar.name), escape_markup(bar.text)) +
         whisker(bar, y, scale) + text_at(end + 8, y + 4, "start", escape_markup(bar.text));
}

}  // namespace

std::string bar_plot(const std::string& title, const std::vector<PlotBar>& bars) {
  double most = 0;
  for (const PlotBar& bar : bars)
    if (std::isfinite(bar.value)) most = std::max({most, bar.value, bar.high});
  if (most == 0) return "";
  const double scale = (kEnd - kLeft) / most;
  std::string inside = text_at(16, 18, "start", escape_markup(title), "t head");
  for (size_t i = 0; i < bars.size(); ++i)
    if (std::isfinite(bars[i].value)) inside += draw(bars[i], i, scale);
  return fmt::format("<svg viewBox=\"0 0 {} {:.0f}\" role=\"img\" aria-label=\"{}\">{}</svg>\n",
                     kWidth, kTop + kRow * static_cast<double>(bars.size()) + 8,
                     escape_markup(title), inside);
}

}  // namespace octavo
