// Bodies that come compressed (Content-Encoding).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace octavo::http {

enum class ContentCoding : uint8_t { identity, gzip, zstd };

// For the Accept-Encoding header of who takes such bodies.
inline constexpr std::string_view kContentCodings = "gzip, zstd";

// Of the value of a Content-Encoding header, whatever its case. Nothing: another one, or several.
std::optional<ContentCoding> content_coding(std::string_view name);

// A few bytes can stand for a thousand times as many. What people write shrinks to a tenth; more
// than the least of these bytes may not come of less than a hundredth of them.
inline constexpr size_t kMaxCodingRatio = 100;
inline constexpr size_t kFreeDecodedBytes = size_t{1} << 20;

struct DecodeLimits {
  size_t max_bytes = 0;
  // Asked before so many bytes are taken; false: they may not be.
  std::function<bool(size_t num_bytes)> may_take = {};
};

enum class DecodeFault : uint8_t {
  malformed,  // not of this coding, cut off, or with something behind it
  too_large,  // beyond max_bytes
  too_dense,  // beyond kMaxCodingRatio
  no_memory,  // may_take said so
};

// Not for identity. Several members of gzip, or frames of zstd, are one body.
tl::expected<std::string, DecodeFault> decode(ContentCoding coding, std::string_view bytes,
                                              const DecodeLimits& limits);

}  // namespace octavo::http
