// Element types of tensors, with the sizes of their blocks as GGUF stores them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo {

enum class DType : uint8_t {
  f32,
  f16,
  bf16,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  q4_z,  // of folders only: GGUF has no such type (tensor/blocks.h)
};

struct DTypeInfo {
  std::string_view name;  // "q4_1"
  int block_elements;     // values that share one block: 1, 32 or 256
  int block_bytes;
  bool quantized;
};

const DTypeInfo& info(DType type);
inline std::string_view name(DType type) { return info(type).name; }
std::optional<DType> dtype_from_name(std::string_view name);

// Bytes of a row. REQUIRES: elements is a multiple of block_elements and the product fits (checked
// by loaders).
size_t row_bytes(DType type, size_t elements);

}  // namespace octavo
