// Arithmetic on numbers read from files: no result instead of a wrapped one.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace octavo {

constexpr std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  if (b > std::numeric_limits<uint64_t>::max() - a) return std::nullopt;
  return a + b;
}

constexpr std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  if (a != 0 && b > std::numeric_limits<uint64_t>::max() / a) return std::nullopt;
  return a * b;
}

// The next multiple of `alignment`. REQUIRES: alignment is a power of two.
constexpr std::optional<uint64_t> checked_align_up(uint64_t value, uint64_t alignment) {
  const auto padded = checked_add(value, alignment - 1);
  if (!padded) return std::nullopt;
  return *padded & ~(alignment - 1);
}

// Whether [offset, offset + size) lies inside [0, available); the sum cannot wrap.
constexpr bool range_fits(uint64_t offset, uint64_t size, uint64_t available) {
  return offset <= available && size <= available - offset;
}

}  // namespace octavo
