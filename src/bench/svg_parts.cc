#include "bench/svg_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/markup.h"
#include "bench/svg_plot.h"

namespace octavo {

std::string series_class(size_t index) {
  return fmt::format("c{}{}", index % kPlotColours, index < kPlotColours ? "" : " again");
}

std::string short_name(const std::string& name, size_t most) {
  size_t end = std::min(name.size(), most);
  while (end < name.size() && end > 0 && (name[end] & 0xC0) == 0x80) --end;
  return escape_markup(end < name.size() ? name.substr(0, end) + "..." : name);
}

std::string tick_text(double value) {
  return fmt::format("{:.6g}", std::abs(value) < 1e-12 ? 0 : value);
}

std::string text_at(double x, double y, std::string_view anchor, const std::string& escaped,
                    std::string_view classes) {
  return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>",
                     classes, x, y, anchor, escaped);
}

}  // namespace octavo
