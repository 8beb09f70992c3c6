// Builds small GGUF files in memory, right ones and wrong ones: nothing is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf_types.h"

namespace octavo::testing {

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

inline void put_text(std::string& out, std::string_view text) {
  put<uint64_t>(out, text.size());
  out.append(text);
}

class GgufWriter {
 public:
  uint32_t magic = 0x46554747;
  uint32_t version = 3;
  uint64_t alignment = 32;  // used to place data; write the key yourself
  int64_t extra_metadata_count = 0;
  int64_t extra_tensor_count = 0;

  // A pair whose value is given as stored.
  GgufWriter& raw(std::string_view key, uint32_t type, std::string_view value) {
    put_text(metadata_, key);
    put(metadata_, type);
    metadata_.append(value);
    ++metadata_count_;
    return *this;
  }
  template <class T>
  GgufWriter& value(std::string_view key, GgufType type, T number) {
    std::string stored;
    put(stored, number);
    return raw(key, static_cast<uint32_t>(type), stored);
  }
  GgufWriter& u32(std::string_view key, uint32_t v) { return value(key, GgufType::u32, v); }
  GgufWriter& f32(std::string_view key, float v) { return value(key, GgufType::f32, v); }
  GgufWriter& boolean(std::string_view key, bool v) { return value(key, GgufType::boolean, v); }
  GgufWriter& string(std::string_view key, std::string_view v) {
    std::string stored;
    put_text(stored, v);
    return raw(key, static_cast<uint32_t>(GgufType::string), stored);
  }
  template <class T>
  GgufWriter& array(std::string_view key, GgufType element, const std::vector<T>& values) {
    std::string stored;
    for (const T& v : values) put(stored, v);
    return raw_array(key, static_cast<uint32_t>(element), values.size(), stored);
  }
  GgufWriter& strings(std::string_view key, const std::vector<std::string>& values) {
    std::string stored;
    for (const std::string& v : values) put_text(stored, v);
    return raw_array(key, static_cast<uint32_t>(GgufType::string), values.size(), stored);
  }
  GgufWriter& raw_array(std::string_view key, uint32_t element, uint64_t count,
                        std::string_view elements) {
    std::string stored;
    put(stored, element);
    put(stored, count);
    stored.append(elements);
    return raw(key, static_cast<uint32_t>(GgufType::array), stored);
  }

  // Only the table row.
  GgufWriter& tensor_info(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                          uint64_t offset) {
    put_text(tensors_, name);
    put(tensors_, static_cast<uint32_t>(dims.size()));
    for (const uint64_t d : dims) put(tensors_, d);
    put(tensors_, type);
    put(tensors_, offset);
    ++tensor_count_;
    return *this;
  }
  // Row and data, placed after what is there.
  GgufWriter& tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                     std::string_view data) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    tensor_info(name, dims, type, data_.size());
    data_.append(data);
    return *this;
  }
  GgufWriter& data(std::string_view bytes) {
    data_.append(bytes);
    return *this;
  }

  std::string build() const {
    std::string out;
    put(out, magic);
    put(out, version);
    put<uint64_t>(out, tensor_count_ + static_cast<uint64_t>(extra_tensor_count));
    put<uint64_t>(out, metadata_count_ + static_cast<uint64_t>(extra_metadata_count));
    out += metadata_ + tensors_;
    if (!data_.empty()) out.resize((out.size() + alignment - 1) / alignment * alignment);
    return out + data_;
  }

 private:
  std::string metadata_, tensors_, data_;
  uint64_t metadata_count_ = 0;
  uint64_t tensor_count_ = 0;
};

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace octavo::testing
