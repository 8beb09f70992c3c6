// A GGUF file of F16 weights as one of BF16 weights: values have the same size, so bytes change in
// place.
#pragma once

#include <cstring>
#include <string>

#include "formats/gguf.h"
#include "support/paths.h"
#include "tensor/half.h"

namespace octavo::testing {

inline std::string bf16_copy(const std::string& path) {
  constexpr uint32_t kBf16 = 30;  // GGUF's number of the type
  const auto file = GgufFile::open(path);
  std::string bytes = read_file(path);
  // Data is found by content of the mapping, the entry of the tensor table by its name.
  for (const TensorView& tensor : file->tensors()) {
    if (tensor.type != DType::f16) continue;
    const std::string data(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
    const size_t at = bytes.find(data), entry = bytes.find(tensor.name);
    for (size_t i = 0; i < data.size(); i += 2) {
      uint16_t half;
      std::memcpy(&half, data.data() + i, 2);
      const uint16_t bf16 = f32_to_bf16(f16_to_f32(half));
      std::memcpy(bytes.data() + at + i, &bf16, 2);
    }
    const size_t type = entry + tensor.name.size() + 4 + 8 * static_cast<size_t>(tensor.rank);
    std::memcpy(bytes.data() + type, &kBf16, 4);
  }
  return bytes;
}

}  // namespace octavo::testing
