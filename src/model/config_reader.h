// Reads the keys of a model file that describe its architecture: "ARCH.NAME".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "formats/model_source.h"

namespace octavo {

// Larger than any published model; keeps products far from overflow.
inline constexpr int kMaxDimension = 1 << 22;

class ConfigReader {
 public:
  // Both must outlive the reader.
  ConfigReader(const ModelSource& file, std::string_view arch) : file_(file), arch_(arch) {}

  const ModelSource& file() const { return file_; }
  std::string key(std::string_view name) const;
  bool has(std::string_view name) const { return file_.find(key(name)) != nullptr; }

  // Errors: corrupt_file (missing, or not from 1 to limit).
  Result<int> dimension(std::string_view name, int limit = kMaxDimension) const;
  Result<int> dimension_or(std::string_view name, int fallback) const;
  // The same of what may be given layer by layer, if it is the same for all. Errors: also
  // unsupported (it differs).
  Result<int> layer_dimension(std::string_view name, int num_layers) const;
  Result<int> layer_dimension_or(std::string_view name, int num_layers, int fallback) const;
  // Errors: corrupt_file (missing or not positive).
  Result<float> positive_or(std::string_view name, float fallback) const;

  // An error about a key: "FILE: KEY why".
  tl::unexpected<Error> error(std::string_view name, std::string_view why,
                              ErrorCode code = ErrorCode::corrupt_file) const;

 private:
  Result<int> checked(std::string_view name, uint64_t value, int limit) const;

  const ModelSource& file_;
  std::string_view arch_;
};

}  // namespace octavo
