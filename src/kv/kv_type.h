// What the numbers of a KV cache are stored as: chosen by --kv-cache-dtype, independent of the
// weights' type. int8 is KV cache quantization.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo {

enum class KvType : uint8_t {
  f32,
  f16,
  bf16,
  int8,  // a scale and a zero per position and KV head, K and V apart
};

// As the flag spells it: "float32", "float16", "bfloat16", "int8".
std::string_view name(KvType type);
std::optional<KvType> kv_type_from_name(std::string_view name);

}  // namespace octavo
