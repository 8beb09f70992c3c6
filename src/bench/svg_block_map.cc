#include "bench/svg_block_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench/markup.h"
#include "bench/svg_plot.h"

namespace octavo {
namespace {

constexpr size_t kMaxColumns = 512, kMaxRows = 128;
constexpr int kWidth = 1136, kLeft = 62, kTop = 34, kPixelsPerRow = 4, kLeastHeight = 120;

std::string cell_class(const BlockCell& cell) {
  switch (cell.owner) {
    case BlockCell::kFree:
      return "";
    case BlockCell::kCached:
      return "cached";
    case BlockCell::kShared:
      return "shared";
    default:
      break;
  }
  return fmt::format("c{}{}", 1 + cell.owner % (kPlotColours - 1),
                     cell.filled_percent == 0 ? " empty" : "");
}

struct Sample {
  size_t of, shown;

  explicit Sample(size_t size, size_t most) : of(size), shown(std::min(size, most)) {}
  size_t at(size_t i) const { return i * of / shown; }
};

// One path for each class: neighbours in a row are one rectangle.
using Paths = std::map<std::string, std::string>;

void add_row(const std::vector<BlockCell>& blocks, const Sample& columns, size_t y, Paths& paths) {
  for (size_t x = 0; x < columns.shown;) {
    const std::string wanted = cell_class(blocks[columns.at(x)]);
    size_t end = x + 1;
    while (end < columns.shown && cell_class(blocks[columns.at(end)]) == wanted) ++end;
    if (!wanted.empty()) paths[wanted] += fmt::format("M{} {}h{}v1h-{}z", x, y, end - x, end - x);
    x = end;
  }
}

std::string cells(const std::vector<BlockMapRow>& rows, const Sample& columns,
                  const Sample& times) {
  Paths paths;
  for (size_t y = 0; y < times.shown; ++y) add_row(rows[times.at(y)].blocks, columns, y, paths);
  std::string out;
  for (const auto& [name, d] : paths)
    out += fmt::format("<path class=\"cell {}\" d=\"{}\"/>", name, d);
  return out;
}

std::string caption(const std::string& title, const Sample& columns, const Sample& times) {
  std::string out = fmt::format("{}: {} blocks at {} times", title, columns.of, times.of);
  if (columns.shown < columns.of || times.shown < times.of)
    out += fmt::format(", of which {} at {} are shown", columns.shown, times.shown);
  return out;
}

std::string time_labels(const std::vector<BlockMapRow>& rows, const Sample& times, int height) {
  std::string out;
  for (const double share : {0.0, 0.5, 1.0}) {
    const auto row = static_cast<size_t>(share * static_cast<double>(times.shown - 1));
    const double y =
        kTop + (static_cast<double>(row) + 0.5) * height / static_cast<double>(times.shown);
    out +=
        fmt::format("<text class=\"t\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.3g} s</text>",
                    kLeft - 8, y + 4, rows[times.at(row)].time_s);
  }
  return out;
}

}  // namespace

std::string svg_block_map(const std::string& title, const std::vector<BlockMapRow>& rows) {
  if (rows.empty() || rows[0].blocks.empty()) return "";
  const Sample columns(rows[0].blocks.size(), kMaxColumns), times(rows.size(), kMaxRows);
  const int height = std::max(kLeastHeight, kPixelsPerRow * static_cast<int>(times.shown));
  const std::string text = escape_markup(caption(title, columns, times));
  return fmt::format(
      "<svg viewBox=\"0 0 {0} {1}\" role=\"img\" aria-label=\"{2}\"><text class=\"t head\" "
      "x=\"{3}\" y=\"18\">{2}</text>{4}<svg x=\"{3}\" y=\"{5}\" width=\"{6}\" height=\"{7}\" "
      "viewBox=\"0 0 {8} {9}\" preserveAspectRatio=\"none\"><rect class=\"ground\" width=\"{8}\" "
      "height=\"{9}\"/>{10}</svg></svg>\n",
      kWidth, kTop + height + 8, text, kLeft, time_labels(rows, times, height), kTop,
      kWidth - kLeft - 16, height, columns.shown, times.shown, cells(rows, columns, times));
}

}  // namespace octavo
