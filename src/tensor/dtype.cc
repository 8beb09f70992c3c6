#include "tensor/dtype.h"

#include <array>

namespace octavo {
namespace {

constexpr std::array kInfo = {
    DTypeInfo{"f32", 1, 4, false},     DTypeInfo{"f16", 1, 2, false},
    DTypeInfo{"bf16", 1, 2, false},    DTypeInfo{"q4_0", 32, 18, true},
    DTypeInfo{"q4_1", 32, 20, true},   DTypeInfo{"q5_0", 32, 22, true},
    DTypeInfo{"q5_1", 32, 24, true},   DTypeInfo{"q8_0", 32, 34, true},
    DTypeInfo{"q2_k", 256, 84, true},  DTypeInfo{"q3_k", 256, 110, true},
    DTypeInfo{"q4_k", 256, 144, true}, DTypeInfo{"q5_k", 256, 176, true},
    DTypeInfo{"q6_k", 256, 210, true}, DTypeInfo{"q4_z", 32, 19, true},
};

}  // namespace

const DTypeInfo& info(DType type) { return kInfo[static_cast<size_t>(type)]; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < kInfo.size(); ++i)
    if (kInfo[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

size_t row_bytes(DType type, size_t elements) {
  const DTypeInfo& t = info(type);
  return elements / static_cast<size_t>(t.block_elements) * static_cast<size_t>(t.block_bytes);
}

}  // namespace octavo
