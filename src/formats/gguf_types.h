// The numbers by which GGUF names types of metadata values and of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace octavo {

// Of tensors' data, where general.alignment does not say otherwise.
constexpr uint32_t kGgufDefaultAlignment = 32;

enum class GgufType : uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

std::optional<GgufType> gguf_type_from_id(uint32_t id);
std::string_view name(GgufType type);  // "u32", "bool", "string", ...

// Bytes of one value; 0 for string and array, whose size is in the file.
size_t fixed_size(GgufType type);
bool is_integer(GgufType type);

// A tensor type that GGUF knows, whether this program does or not.
struct GgufTensorType {
  uint32_t id;
  std::string_view name;
  std::optional<DType> dtype;  // nothing: not supported here
};

// nullptr: no such type.
const GgufTensorType* gguf_tensor_type(uint32_t id);
uint32_t gguf_type_id(DType type);

}  // namespace octavo
