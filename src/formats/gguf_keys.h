// Metadata made here instead of read from a file: keys and values in the form that GgufMetadata
// reads.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf_metadata.h"

namespace octavo {

class GgufKeys {
 public:
  GgufKeys() = default;
  GgufKeys(GgufKeys&&) = default;  // texts stay where they are
  GgufKeys& operator=(GgufKeys&&) = default;
  GgufKeys(const GgufKeys&) = delete;
  GgufKeys& operator=(const GgufKeys&) = delete;

  void u32(std::string_view key, uint32_t value) { add(key, GgufType::u32, stored(value)); }
  void f32(std::string_view key, float value) { add(key, GgufType::f32, stored(value)); }
  void boolean(std::string_view key, bool value) {
    add(key, GgufType::boolean, stored(static_cast<uint8_t>(value)));
  }
  void string(std::string_view key, std::string_view value) {
    add(key, GgufType::string, stored(static_cast<uint64_t>(value.size())).append(value));
  }

  // Views into this object.
  const std::vector<GgufEntry>& entries() const { return entries_; }

 private:
  template <class T>
  static std::string stored(T value) {
    std::string bytes(sizeof(T), '\0');
    std::memcpy(bytes.data(), &value, sizeof(T));
    return bytes;
  }

  void add(std::string_view key, GgufType type, std::string value) {
    const std::string& name = texts_.emplace_back(key);
    const std::string& bytes = texts_.emplace_back(std::move(value));
    entries_.push_back({.key = name,
                        .type = type,
                        .element = type,
                        .count = 1,
                        .offset = 0,
                        .value = std::as_bytes(std::span(bytes))});
  }

  std::deque<std::string> texts_;
  std::vector<GgufEntry> entries_;
};

}  // namespace octavo
