#include "formats/hf_rope.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "formats/quote.h"

namespace octavo {
namespace {

using nlohmann::json;

class RopeReader {
 public:
  RopeReader(const JsonSection& section, const HfConfig& config, HfMetadata& out)
      : section_(section), config_(config), out_(out) {}

  Result<void> read() {
    const json none = json::object();
    OCTAVO_TRY(const json* parameters, object("rope_parameters"));
    OCTAVO_TRY(const json* scaling, object("rope_scaling"));
    if (parameters && scaling) OCTAVO_CHECK_OK(compare(*parameters, *scaling));
    if (parameters && parameters->contains("full_attention")) return by_layer_type(*parameters);
    OCTAVO_CHECK_OK(read_local_base());
    if (parameters) return one(JsonSection(*parameters, section_.file(), "rope_parameters."));
    return one(JsonSection(scaling ? *scaling : none, section_.file(), "rope_scaling."));
  }

 private:
  std::string key(std::string_view rest) const {
    return fmt::format("{}.{}", out_.family->architecture, rest);
  }

  // nullptr if it is not there.
  Result<const json*> object(const char* field) const {
    const json* value = section_.find(field);
    if (value && !value->is_object()) return section_.error(field, "is not an object");
    return value;
  }

  // The newer and the older spelling of the same: all that the older says, the newer must say too.
  // By layer type, it is what global layers have.
  Result<void> compare(const json& parameters, const json& scaling) const {
    const json& global =
        parameters.contains("full_attention") ? parameters["full_attention"] : parameters;
    if (!global.is_object()) return section_.error("rope_parameters", "is not understood");
    const JsonSection newer(global, section_.file(), "rope_parameters.");
    const JsonSection older(scaling, section_.file(), "rope_scaling.");
    OCTAVO_TRY(const std::string newer_kind, rope_type(newer));
    OCTAVO_TRY(const std::string older_kind, rope_type(older));
    bool same = newer_kind == older_kind;
    for (const auto& [field, value] : scaling.items()) {
      if (field == "type" || field == "rope_type" || value.is_null()) continue;
      const json* other = newer.find(field.c_str());
      same = same && other && *other == value;
    }
    return same ? Result<void>() : section_.contradiction("rope_parameters", "rope_scaling");
  }

  // Global and windowed layers each have their own.
  Result<void> by_layer_type(const json& parameters) {
    const JsonSection both(parameters, section_.file(), "rope_parameters.");
    const json* local = both.find("sliding_attention");
    const json* global = both.find("full_attention");
    if (!local || !local->is_object() || !global || !global->is_object() || parameters.size() != 2)
      return section_.error("rope_parameters",
                            "must have the objects 'full_attention' and 'sliding_attention'");
    const JsonSection inner(*local, section_.file(), "rope_parameters.sliding_attention.");
    OCTAVO_TRY(const std::string kind, rope_type(inner));
    if (kind != "default")
      return inner.error("rope_type", fmt::format("is {}; only default is supported", quote(kind)),
                         ErrorCode::unsupported);
    OCTAVO_TRY(const auto theta, inner.find_real("rope_theta"));
    if (!theta) return inner.error("rope_theta", "is missing");
    OCTAVO_TRY(const auto older, section_.find_real("rope_local_base_freq"));
    if (older && *older != *theta)
      return inner.contradiction("rope_theta", section_.prefix() + "rope_local_base_freq");
    out_.keys.f32(key("rope.freq_base_swa"), static_cast<float>(*theta));
    return one(JsonSection(*global, section_.file(), "rope_parameters.full_attention."));
  }

  Result<void> read_local_base() {
    OCTAVO_TRY(const auto local, section_.find_real("rope_local_base_freq"));
    if (local) out_.keys.f32(key("rope.freq_base_swa"), static_cast<float>(*local));
    return {};
  }

  static Result<std::string> rope_type(const JsonSection& rope) {
    OCTAVO_TRY(const auto type, rope.find_string("rope_type"));
    OCTAVO_TRY(const auto older, rope.find_string("type"));
    const auto renamed = [](std::string kind) { return kind == "su" ? "longrope" : kind; };
    if (type && older && renamed(*type) != renamed(*older))
      return rope.contradiction("rope_type", rope.prefix() + "type");
    return renamed(type.value_or(older.value_or("default")));
  }

  // A field of the object, or of config.json itself.
  Result<std::optional<double>> either(const JsonSection& rope, const char* field) const {
    OCTAVO_TRY(const auto inner, rope.find_real(field));
    OCTAVO_TRY(const auto outer, section_.find_real(field));
    if (inner && outer && *inner != *outer)
      return rope.contradiction(field, section_.prefix() + field);
    return inner ? inner : outer;
  }

  Result<double> positive(const JsonSection& rope, const char* field) const {
    OCTAVO_TRY(const auto value, either(rope, field));
    if (!value) return rope.error(field, "is missing");
    if (*value > 0) return *value;
    return rope.error(field, fmt::format("is {}; it must be positive", *value));
  }

  Result<void> one(const JsonSection& rope) {
    OCTAVO_TRY(const auto theta, either(rope, "rope_theta"));
    theta_ = theta.value_or(out_.family->rope_theta);
    if (!(theta_ > 0)) return rope.error("rope_theta", "must be positive");
    OCTAVO_TRY(const auto partial, either(rope, "partial_rotary_factor"));
    const double dims = static_cast<double>(config_.head_dim) * partial.value_or(1);
    if (!(dims >= 2 && dims <= static_cast<double>(config_.head_dim)))
      return rope.error("partial_rotary_factor", "must be above 0 and at most 1");
    dims_ = static_cast<int>(dims);
    out_.keys.f32(key("rope.freq_base"), static_cast<float>(theta_));
    out_.keys.u32(key("rope.dimension_count"), static_cast<uint32_t>(dims_));
    OCTAVO_TRY(const std::string kind, rope_type(rope));
    OCTAVO_CHECK_OK(check_fields(rope, kind));
    return scaling(rope, kind);
  }

  Result<void> check_fields(const JsonSection& rope, const std::string& kind) const {
    for (const auto& [field, value] : rope.object().items()) {
      bool known = value.is_null() || field == "rope_type" || field == "type" ||
                   field == "rope_theta" || field == "partial_rotary_factor" ||
                   (field == "factor" && value == 1);
      for (const std::string_view name : fields_of(kind)) known |= field == name;
      if (!known)
        return rope.error(field, fmt::format("is not known for rope of type {}", quote(kind)),
                          ErrorCode::unsupported);
    }
    return {};
  }

  static std::vector<std::string_view> fields_of(const std::string& kind) {
    constexpr std::string_view kFactor = "factor";
    constexpr std::string_view kOriginal = "original_max_position_embeddings";
    if (kind == "linear" || kind == "dynamic") return {kFactor, kOriginal};
    if (kind == "llama3") return {kFactor, kOriginal, "low_freq_factor", "high_freq_factor"};
    if (kind == "yarn") return {kFactor, kOriginal, "attention_factor", "beta_fast", "beta_slow"};
    if (kind == "longrope")
      return {kFactor, kOriginal, "attention_factor", "long_factor", "short_factor"};
    return {};
  }

  Result<void> scaling(const JsonSection& rope, const std::string& kind) {
    if (kind == "default") return {};
    if (kind == "llama3") return llama3(rope);
    if (kind == "longrope") return longrope(rope);
    if (kind != "linear" && kind != "dynamic" && kind != "yarn")
      return rope.error("rope_type",
                        fmt::format("is {}; supported are default, linear, dynamic, yarn, llama3 "
                                    "and longrope",
                                    quote(kind)),
                        ErrorCode::unsupported);
    OCTAVO_TRY(const double factor, positive(rope, "factor"));
    out_.keys.string(key("rope.scaling.type"), kind);
    out_.keys.f32(key("rope.scaling.factor"), static_cast<float>(factor));
    return kind == "yarn" ? yarn(rope) : Result<void>();
  }

  Result<void> original_context(const JsonSection& rope) {
    OCTAVO_TRY(const auto original, either(rope, "original_max_position_embeddings"));
    const double length = original.value_or(static_cast<double>(*config_.max_position_embeddings));
    if (!(length >= 1 && length <= static_cast<double>(kMaxConfigNumber)))
      return rope.error("original_max_position_embeddings", "is out of range");
    original_ = length;
    out_.keys.u32(key("rope.scaling.original_context_length"), static_cast<uint32_t>(length));
    return {};
  }

  Result<void> optional_real(const JsonSection& rope, const char* field, std::string_view gguf) {
    OCTAVO_TRY(const auto value, rope.find_real(field));
    if (value) out_.keys.f32(key(gguf), static_cast<float>(*value));
    return {};
  }

  Result<void> yarn(const JsonSection& rope) {
    OCTAVO_CHECK_OK(original_context(rope));
    OCTAVO_CHECK_OK(optional_real(rope, "attention_factor", "rope.scaling.attn_factor"));
    OCTAVO_CHECK_OK(optional_real(rope, "beta_fast", "rope.scaling.yarn_beta_fast"));
    return optional_real(rope, "beta_slow", "rope.scaling.yarn_beta_slow");
  }

  // Long wavelengths are stretched by `factor`, short ones not, those between in part.
  Result<void> llama3(const JsonSection& rope) {
    OCTAVO_TRY(const double factor, positive(rope, "factor"));
    OCTAVO_TRY(const double low, positive(rope, "low_freq_factor"));
    OCTAVO_TRY(const double high, positive(rope, "high_freq_factor"));
    OCTAVO_TRY(const double original, positive(rope, "original_max_position_embeddings"));
    if (high <= low) return rope.error("high_freq_factor", "must be above low_freq_factor");
    HfMadeVector divisors{.name = "rope_freqs.weight", .values = {}};
    for (int i = 0; i < dims_ / 2; ++i) {
      const double wavelength = 2 * std::numbers::pi * std::pow(theta_, 2.0 * i / dims_);
      const double turns = original / wavelength;
      const double smooth = (turns - low) / (high - low);
      const double divisor = turns < low    ? factor
                             : turns > high ? 1
                                            : 1 / ((1 - smooth) / factor + smooth);
      divisors.values.push_back(static_cast<float>(divisor));
    }
    out_.vectors.push_back(std::move(divisors));
    return {};
  }

  Result<void> longrope(const JsonSection& rope) {
    OCTAVO_CHECK_OK(original_context(rope));
    OCTAVO_CHECK_OK(factors(rope, "long_factor", "rope_factors_long.weight"));
    OCTAVO_CHECK_OK(factors(rope, "short_factor", "rope_factors_short.weight"));
    OCTAVO_TRY(const auto given, rope.find_real("attention_factor"));
    OCTAVO_TRY(const auto factor, rope.find_real("factor"));
    const double scale =
        factor.value_or(static_cast<double>(*config_.max_position_embeddings) / original_);
    const double attention =
        given.value_or(scale <= 1 ? 1 : std::sqrt(1 + std::log(scale) / std::log(original_)));
    out_.keys.string(key("rope.scaling.type"), "longrope");
    out_.keys.f32(key("rope.scaling.attn_factor"), static_cast<float>(attention));
    return {};
  }

  Result<void> factors(const JsonSection& rope, const char* field, std::string_view gguf) {
    const json* list = rope.find(field);
    if (!list || !list->is_array() || list->size() != static_cast<size_t>(dims_ / 2))
      return rope.error(field, fmt::format("must be {} numbers", dims_ / 2));
    HfMadeVector made{.name = std::string(gguf), .values = {}};
    for (const json& value : *list) {
      const double number = value.is_number() ? value.get<double>() : 0;
      if (!(number > 0 && number <= 1e30)) return rope.error(field, "must be positive numbers");
      made.values.push_back(static_cast<float>(number));
    }
    out_.vectors.push_back(std::move(made));
    return {};
  }

  const JsonSection& section_;
  const HfConfig& config_;
  HfMetadata& out_;
  double theta_ = 0;
  double original_ = 0;
  int dims_ = 0;
};

}  // namespace

Result<void> read_hf_rope(const JsonSection& section, const HfConfig& config, HfMetadata& out) {
  return RopeReader(section, config, out).read();
}

}  // namespace octavo
