#include "kv/kv_type.h"

#include <array>

namespace octavo {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"float32", "float16", "bfloat16", "int8"};

}  // namespace

std::string_view name(KvType type) { return kNames[static_cast<size_t>(type)]; }

std::optional<KvType> kv_type_from_name(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<KvType>(i);
  return std::nullopt;
}

}  // namespace octavo
