#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace octavo::cli {

std::string format_table(const std::vector<std::vector<std::string>>& rows,
                         std::string_view alignment) {
  std::vector<size_t> widths(alignment.size());
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += alignment[i] == 'r' ? fmt::format("{:>{}}  ", row[i], widths[i])
                                  : fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string human_bytes(int64_t bytes) {
  struct Unit {
    std::string_view name;
    double bytes;
    double most;  // of this unit; GiB begin at a tenth: 0.4375 GiB rather than 448 MiB
  };
  constexpr double kKiB = 1024;
  constexpr std::array kUnits = {Unit{"KiB", kKiB, 1024}, Unit{"MiB", kKiB * kKiB, 102.4},
                                 Unit{"GiB", kKiB * kKiB * kKiB, 1e30}};
  if (bytes < kKiB) return fmt::format("{} bytes", bytes);
  for (const Unit& unit : kUnits) {
    const double value = static_cast<double>(bytes) / unit.bytes;
    if (value < unit.most) return fmt::format("{:.4g} {}", value, unit.name);
  }
  return "";
}

}  // namespace octavo::cli
