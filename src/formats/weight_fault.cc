#include "formats/weight_fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "formats/quote.h"
#include "tensor/dequant.h"
#include "tensor/quantize.h"

namespace octavo {
namespace {

// No value up to it becomes infinite in any type.
constexpr float kAlwaysFits = 65504;

}  // namespace

bool all_finite(const float* values, int64_t n) {
  return std::all_of(values, values + n, [](float value) { return std::isfinite(value); });
}

WeightFault quantize_checked(DType type, const float* values, std::byte* out, int64_t n) {
  if (!all_finite(values, n)) return WeightFault::not_finite;
  quantize_row(type, values, out, n);
  const bool fits =
      std::all_of(values, values + n, [](float value) { return std::fabs(value) <= kAlwaysFits; });
  if (fits) return WeightFault::none;
  std::vector<float> stored(static_cast<size_t>(n));
  dequantize_row(type, out, stored.data(), n);
  return all_finite(stored.data(), n) ? WeightFault::none : WeightFault::too_large;
}

tl::unexpected<Error> weight_fault_error(std::string_view file, std::string_view tensor, DType type,
                                         WeightFault fault, std::string_view advice) {
  const std::string subject = fmt::format("{}: tensor {}", file, quote(tensor));
  if (fault == WeightFault::not_finite)
    return fail(
        ErrorCode::numeric_error,
        fmt::format("{} holds NaN or infinity; the file is of no use, take another", subject));
  return fail(ErrorCode::numeric_error,
              fmt::format("{} holds values too large for {}; {}", subject, name(type), advice));
}

}  // namespace octavo
