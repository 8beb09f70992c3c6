#include "formats/weight_types.h"

#include <fmt/format.h>

namespace octavo {

Result<WeightTypes> weight_types(std::string_view dtype, std::string_view quantization) {
  const auto refuse = [](std::string_view what, std::string_view value, std::string_view known) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is '{}'; it may be {}", what, value, known));
  };
  WeightTypes types;
  if (dtype == "float16")
    types.matrices = DType::f16;
  else if (dtype == "bfloat16")
    types.matrices = DType::bf16;
  else if (dtype != "auto" && dtype != "float32")
    return refuse("dtype", dtype, "auto, float32, float16 or bfloat16");
  if (quantization == "int8")
    types.matrices = DType::q8_0;
  else if (quantization == "int4")
    types.matrices = DType::q4_0;
  else if (!quantization.empty() && quantization != "none")
    return refuse("quantization", quantization, "none, int8 or int4");
  return types;
}

}  // namespace octavo
