#include "model/model_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "formats/quote.h"
#include "tensor/dequant.h"

namespace octavo {
namespace {

constexpr std::array kArchitectures = {
    Architecture{"llama", true, false},
    Architecture{"qwen2", false, true},
};

// Keys below "ARCH." whose meaning is known: read here, or of no effect on the result. Any other
// key may change what the model computes, so a file that has one is refused.
constexpr std::string_view kKnownKeys[] = {
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "vocab_size",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.layer_norm_rms_epsilon",
    "attention.causal",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    "rope.scaling.finetuned",
    "tensor_data_layout",
};

// Larger than any published model; keeps products far from overflow.
constexpr int kMaxDimension = 1 << 22;
constexpr int kMaxLayers = 4096;

class ConfigReader {
 public:
  ConfigReader(const GgufFile& file, std::string_view arch) : file_(file), arch_(arch) {}

  std::string key(std::string_view name) const { return fmt::format("{}.{}", arch_, name); }

  Result<int> dimension(std::string_view name, int limit = kMaxDimension) const {
    OCTAVO_TRY(const uint64_t value, file_.get_u64(key(name)));
    if (value < 1 || value > static_cast<uint64_t>(limit))
      return fail(ErrorCode::corrupt_file, fmt::format("{}: {} is {}; it must be 1 to {}",
                                                       file_.file(), key(name), value, limit));
    return static_cast<int>(value);
  }

  Result<int> dimension_or(std::string_view name, int fallback) const {
    return file_.find(key(name)) ? dimension(name) : Result<int>(fallback);
  }

 private:
  const GgufFile& file_;
  std::string_view arch_;
};

Result<const Architecture*> find_architecture(const GgufFile& file) {
  OCTAVO_TRY(const std::string_view name, file.get_string("general.architecture"));
  std::vector<std::string_view> known;
  for (const Architecture& a : kArchitectures) {
    if (a.name == name) return &a;
    known.push_back(a.name);
  }
  return fail(ErrorCode::unsupported,
              fmt::format("{}: architecture {} is not supported; supported are {}", file.file(),
                          quote(name), fmt::join(known, ", ")));
}

Result<void> refuse_unknown_keys(const GgufFile& file, std::string_view arch) {
  const std::string prefix = fmt::format("{}.", arch);
  for (const GgufEntry& entry : file.metadata()) {
    if (!entry.key.starts_with(prefix)) continue;
    const std::string_view rest = entry.key.substr(prefix.size());
    if (std::find(std::begin(kKnownKeys), std::end(kKnownKeys), rest) == std::end(kKnownKeys))
      return fail(
          ErrorCode::unsupported,
          fmt::format(
              "{}: key {} is not supported: the model may compute something this program does not",
              file.file(), quote(entry.key)));
  }
  return {};
}

Result<void> read_rope_scaling(const GgufFile& file, const ConfigReader& reader, RopeConfig& rope) {
  OCTAVO_TRY(const auto type, file.find_string(reader.key("rope.scaling.type")));
  OCTAVO_TRY(const auto factor, file.find_f32(reader.key("rope.scaling.factor")));
  const std::string_view kind = type.value_or("none");
  if (kind == "linear") {
    if (!factor || *factor < 1)
      return fail(ErrorCode::corrupt_file,
                  fmt::format("{}: linear rope scaling needs {} of at least 1", file.file(),
                              reader.key("rope.scaling.factor")));
    rope.linear_factor = *factor;
    return {};
  }
  if (kind == "none") return {};
  return fail(ErrorCode::unsupported, fmt::format("{}: rope scaling {} is not supported; supported "
                                                  "are none, linear, and llama3 by the tensor "
                                                  "rope_freqs.weight",
                                                  file.file(), quote(kind)));
}

// Llama 3 files carry their scaling as a tensor of divisors.
Result<void> read_rope_divisors(const GgufFile& file, RopeConfig& rope) {
  const TensorView* tensor = file.find_tensor("rope_freqs.weight");
  if (!tensor) return {};
  if (tensor->rows() != 1 || tensor->cols() != rope.dims / 2 || tensor->type != DType::f32)
    return fail(ErrorCode::corrupt_file, fmt::format("{}: rope_freqs.weight must be {} f32 values",
                                                     file.file(), rope.dims / 2));
  rope.divisors.resize(static_cast<size_t>(rope.dims / 2));
  dequantize_row(DType::f32, tensor->data.data(), rope.divisors.data(), tensor->cols());
  for (float divisor : rope.divisors)
    if (!std::isfinite(divisor) || divisor <= 0)
      return fail(
          ErrorCode::corrupt_file,
          fmt::format("{}: rope_freqs.weight holds {}; it must be positive", file.file(), divisor));
  return {};
}

Result<void> read_heads(const GgufFile& file, const ConfigReader& reader, ModelConfig& c) {
  OCTAVO_TRY(c.num_heads, reader.dimension("attention.head_count"));
  OCTAVO_TRY(c.num_kv_heads, reader.dimension_or("attention.head_count_kv", c.num_heads));
  if (c.num_heads % c.num_kv_heads != 0)
    return fail(ErrorCode::corrupt_file, fmt::format("{}: {} query heads cannot share {} KV heads",
                                                     file.file(), c.num_heads, c.num_kv_heads));
  OCTAVO_TRY(c.head_dim, reader.dimension_or("attention.key_length", c.hidden_size / c.num_heads));
  OCTAVO_TRY(const int value_dim, reader.dimension_or("attention.value_length", c.head_dim));
  if (value_dim != c.head_dim)
    return fail(ErrorCode::unsupported,
                fmt::format("{}: keys of {} and values of {} dims are not supported", file.file(),
                            c.head_dim, value_dim));
  return {};
}

Result<void> read_rope(const GgufFile& file, const ConfigReader& reader, ModelConfig& c) {
  OCTAVO_TRY(c.rope.dims, reader.dimension_or("rope.dimension_count", c.head_dim));
  if (c.rope.dims > c.head_dim || c.rope.dims % 2 != 0)
    return fail(
        ErrorCode::corrupt_file,
        fmt::format("{}: {} is {}; it must be even and at most the head size {}", file.file(),
                    reader.key("rope.dimension_count"), c.rope.dims, c.head_dim));
  OCTAVO_TRY(const auto base, file.find_f32(reader.key("rope.freq_base")));
  c.rope.base = base.value_or(10000.0f);
  if (!(c.rope.base > 0))
    return fail(ErrorCode::corrupt_file,
                fmt::format("{}: {} must be positive", file.file(), reader.key("rope.freq_base")));
  OCTAVO_CHECK_OK(read_rope_scaling(file, reader, c.rope));
  return read_rope_divisors(file, c.rope);
}

// The kernels work on 16 floats at a time and hold a head's values on the stack.
Result<void> check_kernel_limits(const GgufFile& file, const ModelConfig& c) {
  for (const auto& [what, value] : {std::pair{"embedding_length", c.hidden_size},
                                    {"feed_forward_length", c.intermediate_size},
                                    {"head size", c.head_dim}})
    if (value % 16 != 0)
      return fail(ErrorCode::unsupported, fmt::format("{}: {} is {}; it must be a multiple of 16",
                                                      file.file(), what, value));
  if (c.head_dim > 256)
    return fail(ErrorCode::unsupported,
                fmt::format("{}: heads of {} dims are not supported; at most 256", file.file(),
                            c.head_dim));
  return {};
}

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

Result<ModelConfig> read_model_config(const GgufFile& file) {
  ModelConfig c;
  OCTAVO_TRY(c.architecture, find_architecture(file));
  OCTAVO_CHECK_OK(refuse_unknown_keys(file, c.architecture->name));
  const ConfigReader reader(file, c.architecture->name);
  OCTAVO_TRY(const auto name, file.find_string("general.name"));
  c.name = name.value_or("");
  OCTAVO_TRY(c.num_layers, reader.dimension("block_count", kMaxLayers));
  OCTAVO_TRY(c.hidden_size, reader.dimension("embedding_length"));
  OCTAVO_TRY(c.intermediate_size, reader.dimension("feed_forward_length"));
  OCTAVO_TRY(c.context_length, reader.dimension("context_length", 1 << 28));
  OCTAVO_CHECK_OK(read_heads(file, reader, c));
  OCTAVO_CHECK_OK(read_rope(file, reader, c));
  OCTAVO_TRY(c.rms_eps, file.get_f32(reader.key("attention.layer_norm_rms_epsilon")));
  if (!(c.rms_eps >= 0))
    return fail(ErrorCode::corrupt_file,
                fmt::format("{}: {} must not be negative", file.file(),
                            reader.key("attention.layer_norm_rms_epsilon")));
  OCTAVO_CHECK_OK(check_kernel_limits(file, c));
  const TensorView* embedding = file.find_tensor("token_embd.weight");
  if (!embedding)
    return fail(
        ErrorCode::corrupt_file,
        fmt::format("{}: tensor 'token_embd.weight' is missing{}", file.file(),
                    file.tensors().empty() ? "; the file holds a vocabulary and no model" : ""));
  if (embedding->rows() < 1 || embedding->rows() > (1 << 24))
    return fail(ErrorCode::corrupt_file,
                fmt::format("{}: 'token_embd.weight' has {} rows", file.file(), embedding->rows()));
  c.vocab_size = static_cast<int>(embedding->rows());
  c.tied_head = file.find_tensor("output.weight") == nullptr;
  return c;
}

KvShape kv_shape(const ModelConfig& c) {
  return {.num_layers = c.num_layers,
          .num_heads = c.num_heads,
          .num_kv_heads = c.num_kv_heads,
          .head_dim = c.head_dim,
          .windows = c.windows};
}

KvShape kv_shape(const HfConfig& c) {
  return {.num_layers = static_cast<int>(c.num_hidden_layers),
          .num_heads = static_cast<int>(c.num_attention_heads),
          .num_kv_heads = static_cast<int>(c.num_key_value_heads),
          .head_dim = static_cast<int>(c.head_dim),
          .windows = std::vector<int>(c.windows.begin(), c.windows.end())};
}

std::vector<float> rope_frequencies(const RopeConfig& rope) {
  std::vector<float> frequencies;
  for (int i = 0; i < rope.dims / 2; ++i) {
    // In float and in this order, as the models were trained.
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rope.dims);
    float frequency = 1.0f / static_cast<float>(std::pow(double{rope.base}, double{exponent}));
    if (!rope.divisors.empty()) frequency /= rope.divisors[static_cast<size_t>(i)];
    frequencies.push_back(frequency / rope.linear_factor);
  }
  return frequencies;
}

}  // namespace octavo
