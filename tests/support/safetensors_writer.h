// Safetensors files in memory, right ones and wrong ones: nothing is checked.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace octavo::testing {

inline std::string safetensors(std::string_view header, std::string_view data) {
  std::string out(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(out.data(), &length, sizeof(length));
  return out.append(header).append(data);
}

}  // namespace octavo::testing
