// The names of the files of one GGUF model in several parts: STEM-00002-of-00005.gguf.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octavo {

constexpr uint32_t kMaxGgufParts = 65535;  // what the keys can count, and five digits

struct GgufPartName {
  std::string stem;  // what all parts begin with, folder included
  uint32_t number = 1, count = 1;

  // The name of another part of the same model. REQUIRES: 1 <= number <= count.
  std::string of(uint32_t other) const;
};

// Nothing: it is no such name, or its number is beyond its count.
std::optional<GgufPartName> parse_gguf_part_name(std::string_view path);

}  // namespace octavo
