#include "formats/gguf_types.h"

#include <algorithm>
#include <array>

namespace octavo {
namespace {

struct TypeRow {
  std::string_view name;
  size_t size;
  bool integer;
};

// In the order of GgufType.
constexpr std::array kTypes = {
    TypeRow{"u8", 1, true},     TypeRow{"i8", 1, true},    TypeRow{"u16", 2, true},
    TypeRow{"i16", 2, true},    TypeRow{"u32", 4, true},   TypeRow{"i32", 4, true},
    TypeRow{"f32", 4, false},   TypeRow{"bool", 1, false}, TypeRow{"string", 0, false},
    TypeRow{"array", 0, false}, TypeRow{"u64", 8, true},   TypeRow{"i64", 8, true},
    TypeRow{"f64", 8, false},
};

constexpr std::optional<DType> kNone;

constexpr std::array kTensorTypes = {
    GgufTensorType{0, "f32", DType::f32},    GgufTensorType{1, "f16", DType::f16},
    GgufTensorType{2, "q4_0", DType::q4_0},  GgufTensorType{3, "q4_1", DType::q4_1},
    GgufTensorType{6, "q5_0", DType::q5_0},  GgufTensorType{7, "q5_1", DType::q5_1},
    GgufTensorType{8, "q8_0", DType::q8_0},  GgufTensorType{9, "q8_1", kNone},
    GgufTensorType{10, "q2_k", DType::q2_k}, GgufTensorType{11, "q3_k", DType::q3_k},
    GgufTensorType{12, "q4_k", DType::q4_k}, GgufTensorType{13, "q5_k", DType::q5_k},
    GgufTensorType{14, "q6_k", DType::q6_k}, GgufTensorType{15, "q8_k", kNone},
    GgufTensorType{16, "iq2_xxs", kNone},    GgufTensorType{17, "iq2_xs", kNone},
    GgufTensorType{18, "iq3_xxs", kNone},    GgufTensorType{19, "iq1_s", kNone},
    GgufTensorType{20, "iq4_nl", kNone},     GgufTensorType{21, "iq3_s", kNone},
    GgufTensorType{22, "iq2_s", kNone},      GgufTensorType{23, "iq4_xs", kNone},
    GgufTensorType{24, "i8", kNone},         GgufTensorType{25, "i16", kNone},
    GgufTensorType{26, "i32", kNone},        GgufTensorType{27, "i64", kNone},
    GgufTensorType{28, "f64", kNone},        GgufTensorType{29, "iq1_m", kNone},
    GgufTensorType{30, "bf16", DType::bf16}, GgufTensorType{34, "tq1_0", kNone},
    GgufTensorType{35, "tq2_0", kNone},      GgufTensorType{39, "mxfp4", kNone},
    GgufTensorType{40, "nvfp4", kNone},      GgufTensorType{41, "q1_0", kNone},
};

const TypeRow& row(GgufType type) { return kTypes[static_cast<size_t>(type)]; }

}  // namespace

std::optional<GgufType> gguf_type_from_id(uint32_t id) {
  if (id >= kTypes.size()) return std::nullopt;
  return static_cast<GgufType>(id);
}

std::string_view name(GgufType type) { return row(type).name; }
size_t fixed_size(GgufType type) { return row(type).size; }
bool is_integer(GgufType type) { return row(type).integer; }

const GgufTensorType* gguf_tensor_type(uint32_t id) {
  const auto it =
      std::find_if(kTensorTypes.begin(), kTensorTypes.end(), [&](auto& t) { return t.id == id; });
  return it == kTensorTypes.end() ? nullptr : &*it;
}

uint32_t gguf_type_id(DType type) {
  return std::find_if(kTensorTypes.begin(), kTensorTypes.end(),
                      [&](auto& t) { return t.dtype == type; })
      ->id;
}

}  // namespace octavo
