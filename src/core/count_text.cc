#include "core/count_text.h"

#include <array>
#include <charconv>
#include <utility>

namespace octavo {
namespace {

constexpr size_t kMaxDigits = 18;  // of a number of 64 bits

using Unit = std::pair<std::string_view, int64_t>;

constexpr int64_t power(int64_t base, int exponent) {
  int64_t product = 1;
  for (int i = 0; i < exponent; ++i) product *= base;
  return product;
}

constexpr std::array<Unit, 18> kUnits = {{
    {"", 1},                 //
    {"B", 1},                //
    {"k", power(1000, 1)},   //
    {"m", power(1000, 2)},   //
    {"g", power(1000, 3)},   //
    {"t", power(1000, 4)},   //
    {"K", power(1024, 1)},   //
    {"M", power(1024, 2)},   //
    {"G", power(1024, 3)},   //
    {"T", power(1024, 4)},   //
    {"kB", power(1000, 1)},  //
    {"MB", power(1000, 2)},  //
    {"GB", power(1000, 3)},  //
    {"TB", power(1000, 4)},  //
    {"KiB", power(1024, 1)},
    {"MiB", power(1024, 2)},
    {"GiB", power(1024, 3)},
    {"TiB", power(1024, 4)},
}};

std::optional<int64_t> unit_of(std::string_view name) {
  for (const auto& [unit, size] : kUnits)
    if (name == unit) return size;
  return std::nullopt;
}

size_t count_digits(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && text[n] >= '0' && text[n] <= '9') ++n;
  return n;
}

std::optional<int64_t> digits(std::string_view text) {
  int64_t value = 0;
  if (text.empty() || text.size() > kMaxDigits) return std::nullopt;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// 0.25 of 1024 is 256; of 1000 with three places after the point no more than three count.
std::optional<int64_t> part_of(std::string_view fraction, int64_t unit) {
  int64_t parts = 0, product = 0;
  if (const auto value = digits(fraction)) parts = *value;
  if (count_digits(fraction) != fraction.size() || fraction.size() > kMaxDigits)
    return std::nullopt;
  const int64_t whole = power(10, static_cast<int>(fraction.size()));
  if (__builtin_mul_overflow(parts, unit, &product) || product % whole != 0) return std::nullopt;
  return product / whole;
}

}  // namespace

std::optional<int64_t> parse_count(std::string_view text) {
  const size_t num_digits = count_digits(text);
  const auto whole = digits(text.substr(0, num_digits));
  text.remove_prefix(num_digits);
  std::string_view fraction;
  if (text.starts_with('.')) {
    fraction = text.substr(1, count_digits(text.substr(1)));
    if (fraction.empty()) return std::nullopt;
    text.remove_prefix(1 + fraction.size());
  }
  if (text.starts_with(' ') && text.size() > 1) text.remove_prefix(1);
  const auto unit = unit_of(text);
  if (!whole || !unit) return std::nullopt;
  const auto part = part_of(fraction, *unit);
  int64_t count = 0;
  if (!part || __builtin_mul_overflow(*whole, *unit, &count) ||
      __builtin_add_overflow(count, *part, &count))
    return std::nullopt;
  return count;
}

}  // namespace octavo
