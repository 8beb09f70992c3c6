#include "model/rope_config.h"

#include <fmt/format.h>

#include <cmath>

#include "formats/quote.h"
#include "tensor/dequant.h"

namespace octavo {
namespace {

constexpr std::string_view kLlama3Divisors = "rope_freqs.weight";
constexpr std::string_view kShortDivisors = "rope_factors_short.weight";
constexpr std::string_view kLongDivisors = "rope_factors_long.weight";

// Empty if the file has none.
Result<std::vector<float>> read_divisors(const ModelSource& file, std::string_view name,
                                         int pairs) {
  const TensorView* tensor = file.find_tensor(name);
  if (!tensor) return std::vector<float>{};
  if (tensor->rows() != 1 || tensor->cols() != pairs || tensor->type != DType::f32)
    return fail(ErrorCode::corrupt_file,
                fmt::format("{}: {} must be {} f32 values", file.file(), name, pairs));
  std::vector<float> divisors(static_cast<size_t>(pairs));
  std::vector<std::byte> room;
  OCTAVO_TRY(const TensorView stored, file.read(*tensor, room));
  dequantize_row(DType::f32, stored.data.data(), divisors.data(), tensor->cols());
  for (float divisor : divisors)
    if (!std::isfinite(divisor) || divisor <= 0)
      return fail(ErrorCode::corrupt_file,
                  fmt::format("{}: {} holds {}; it must be positive", file.file(), name, divisor));
  return divisors;
}

Result<RopeScaling> read_kind(const ConfigReader& reader) {
  OCTAVO_TRY(const auto name, reader.file().find_string(reader.key("rope.scaling.type")));
  const auto kind = rope_scaling_from_name(name.value_or("none"));
  if (kind) return *kind;
  return reader.error("rope.scaling.type",
                      fmt::format("is {}, which is not supported; supported are none, linear, "
                                  "dynamic, yarn, llama3 and longrope",
                                  quote(*name)),
                      ErrorCode::unsupported);
}

Result<void> read_factor(const ConfigReader& reader, RopeConfig& rope) {
  OCTAVO_TRY(rope.factor, reader.positive_or("rope.scaling.factor", 0));
  if (rope.factor >= 1) return {};
  return reader.error("rope.scaling.factor",
                      "must be given, and at least 1, for this rope scaling");
}

Result<void> read_yarn(const ConfigReader& reader, RopeConfig& rope) {
  OCTAVO_CHECK_OK(read_factor(reader, rope));
  OCTAVO_TRY(rope.beta_fast, reader.positive_or("rope.scaling.yarn_beta_fast", rope.beta_fast));
  OCTAVO_TRY(rope.beta_slow, reader.positive_or("rope.scaling.yarn_beta_slow", rope.beta_slow));
  OCTAVO_TRY(const float attention, reader.positive_or("rope.scaling.attn_factor", 1));
  rope.attention_factor = attention * yarn_attention_factor(rope.factor);
  if (!(rope.base > 1)) return reader.error("rope.freq_base", "must be above 1 for yarn");
  return {};
}

// Files say it by the tensor of divisors alone.
Result<void> read_llama3(const ConfigReader& reader, RopeConfig& rope) {
  if (!rope.divisors.empty()) return {};
  return fail(ErrorCode::corrupt_file, fmt::format("{}: llama3 rope scaling needs the tensor {}",
                                                   reader.file().file(), kLlama3Divisors));
}

Result<void> read_longrope(const ConfigReader& reader, int context_length, RopeConfig& rope) {
  const ModelSource& file = reader.file();
  OCTAVO_TRY(rope.divisors, read_divisors(file, kShortDivisors, rope.dims / 2));
  OCTAVO_TRY(rope.long_divisors, read_divisors(file, kLongDivisors, rope.dims / 2));
  if (rope.divisors.empty() || rope.long_divisors.empty())
    return fail(ErrorCode::corrupt_file, fmt::format("{}: longrope needs the tensors {} and {}",
                                                     file.file(), kShortDivisors, kLongDivisors));
  OCTAVO_TRY(rope.attention_factor,
             reader.positive_or("rope.scaling.attn_factor",
                                longrope_attention_factor(context_length, rope.original_context)));
  return {};
}

// Tensors of divisors mean their kind of scaling also where no key names it.
Result<void> settle_kind(const ConfigReader& reader, RopeConfig& rope) {
  const ModelSource& file = reader.file();
  const bool longrope = file.find_tensor(kShortDivisors) || file.find_tensor(kLongDivisors);
  OCTAVO_TRY(rope.divisors, read_divisors(file, kLlama3Divisors, rope.dims / 2));
  const bool llama3 = !rope.divisors.empty();
  const RopeScaling implied = longrope ? RopeScaling::longrope : RopeScaling::llama3;
  if (!longrope && !llama3) return {};
  if ((longrope && llama3) || (rope.scaling != RopeScaling::none && rope.scaling != implied))
    return fail(ErrorCode::unsupported,
                fmt::format("{}: rope scaling of two kinds at once", file.file()));
  rope.scaling = implied;
  return {};
}

Result<void> read_scaling(const ConfigReader& reader, int context_length, RopeConfig& rope) {
  OCTAVO_TRY(rope.scaling, read_kind(reader));
  OCTAVO_CHECK_OK(settle_kind(reader, rope));
  OCTAVO_TRY(rope.original_context,
             reader.dimension_or("rope.scaling.original_context_length", context_length));
  switch (rope.scaling) {
    case RopeScaling::none:
      return {};
    case RopeScaling::linear:
    case RopeScaling::dynamic:
      return read_factor(reader, rope);
    case RopeScaling::yarn:
      return read_yarn(reader, rope);
    case RopeScaling::llama3:
      return read_llama3(reader, rope);
    case RopeScaling::longrope:
      return read_longrope(reader, context_length, rope);
  }
  return {};
}

}  // namespace

bool is_rope_divisors(std::string_view tensor) {
  return tensor == kLlama3Divisors || tensor == kShortDivisors || tensor == kLongDivisors;
}

Result<RopeConfig> read_rope_config(const ConfigReader& reader, int head_dim, int context_length) {
  RopeConfig rope;
  OCTAVO_TRY(rope.dims, reader.dimension_or("rope.dimension_count", head_dim));
  if (rope.dims > head_dim || rope.dims % 2 != 0)
    return reader.error(
        "rope.dimension_count",
        fmt::format("is {}; it must be even and at most the head size {}", rope.dims, head_dim));
  OCTAVO_TRY(rope.base, reader.positive_or("rope.freq_base", rope.base));
  OCTAVO_CHECK_OK(read_scaling(reader, context_length, rope));
  return rope;
}

}  // namespace octavo
