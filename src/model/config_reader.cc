#include "model/config_reader.h"

#include <fmt/format.h>

namespace octavo {

std::string ConfigReader::key(std::string_view name) const {
  return fmt::format("{}.{}", arch_, name);
}

Result<int> ConfigReader::checked(std::string_view name, uint64_t value, int limit) const {
  if (value < 1 || value > static_cast<uint64_t>(limit))
    return error(name, fmt::format("is {}; it must be 1 to {}", value, limit));
  return static_cast<int>(value);
}

Result<int> ConfigReader::dimension(std::string_view name, int limit) const {
  OCTAVO_TRY(const uint64_t value, file_.get_u64(key(name)));
  return checked(name, value, limit);
}

Result<int> ConfigReader::layer_dimension(std::string_view name, int num_layers) const {
  OCTAVO_TRY(const auto value, file_.find_layers_u64(key(name), static_cast<uint64_t>(num_layers)));
  return value ? checked(name, *value, kMaxDimension) : dimension(name);
}

Result<int> ConfigReader::layer_dimension_or(std::string_view name, int num_layers,
                                             int fallback) const {
  return has(name) ? layer_dimension(name, num_layers) : Result<int>(fallback);
}

Result<int> ConfigReader::dimension_or(std::string_view name, int fallback) const {
  return has(name) ? dimension(name) : Result<int>(fallback);
}

Result<float> ConfigReader::positive_or(std::string_view name, float fallback) const {
  OCTAVO_TRY(const auto value, file_.find_f32(key(name)));
  if (!value) return fallback;
  if (!(*value > 0)) return error(name, fmt::format("is {}; it must be positive", *value));
  return *value;
}

tl::unexpected<Error> ConfigReader::error(std::string_view name, std::string_view why,
                                          ErrorCode code) const {
  return fail(code, fmt::format("{}: {} {}", file_.file(), key(name), why));
}

}  // namespace octavo
