// Numbers written by people: all of the text, or nothing.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo {

template <class T>
std::optional<T> number_of(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The same within bounds, both included. No NaN.
template <class T>
std::optional<T> number_between(std::string_view text, T low, T high) {
  const auto value = number_of<T>(text);
  return value && *value >= low && *value <= high ? value : std::nullopt;
}

}  // namespace octavo
