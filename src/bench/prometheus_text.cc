#include "bench/prometheus_text.h"

#include <cmath>

#include "bench/number_text.h"

namespace octavo {
namespace {

// What follows the labels, which may hold spaces and braces in their quotes.
std::string_view after_labels(std::string_view text) {
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      quoted = !quoted;
    else if (text[i] == '}' && !quoted)
      return text.substr(i + 1);
  }
  return {};
}

std::optional<double> value_in(std::string_view line, std::string_view name) {
  if (!line.starts_with(name)) return std::nullopt;
  std::string_view rest = line.substr(name.size());
  if (rest.starts_with('{')) rest = after_labels(rest);
  if (!rest.starts_with(' ')) return std::nullopt;
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const auto value = number_of<double>(rest.substr(0, rest.find_first_of(" \r")));
  return value && std::isfinite(*value) ? value : std::nullopt;
}

}  // namespace

std::optional<double> metric_sum(std::string_view text, std::string_view name) {
  std::optional<double> sum;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (const auto value = value_in(line, name)) sum = sum.value_or(0) + *value;
  }
  return sum;
}

}  // namespace octavo
