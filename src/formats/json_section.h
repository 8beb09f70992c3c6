// Fields of a JSON object that comes from outside, checked one by one.
#pragma once

#include <fmt/format.h>

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/quote.h"
#include "base/result.h"

namespace octavo {

// Products of four such numbers are checked by who makes them.
constexpr int64_t kMaxConfigNumber = int64_t{1} << 31;

// One object of a file, with its place for messages ("text_config.").
class JsonSection {
 public:
  JsonSection(const nlohmann::json& object, std::string file, std::string prefix)
      : object_(&object), file_(std::move(file)), prefix_(std::move(prefix)) {}

  // nullptr if the field is absent or null: Hugging Face treats both alike.
  const nlohmann::json* find(const char* field) const {
    const auto it = object_->find(field);
    return it == object_->end() || it->is_null() ? nullptr : &*it;
  }

  tl::unexpected<Error> error(std::string_view field, std::string_view why,
                              ErrorCode code = ErrorCode::corrupt_file) const {
    return fail(code,
                fmt::format("{}: field '{}' {}", file_, escape(prefix_ + std::string(field)), why));
  }

  Result<std::optional<int64_t>> find_number(const char* field, int64_t least = 1,
                                             int64_t limit = kMaxConfigNumber) const {
    const nlohmann::json* value = find(field);
    if (!value) return std::optional<int64_t>();
    // An unsigned number above int64 becomes negative here and is refused as well.
    const int64_t number = value->is_number_integer() ? value->get<int64_t>() : -1;
    if (number >= least && number <= limit) return number;
    return error(field, fmt::format("is not an integer from {} to {}", least, limit));
  }

  // A number, or a list with the same one for each layer.
  Result<std::optional<int64_t>> find_layer_number(const char* field, int64_t num_layers) const;

  // The spelling of a setting that has two; nullptr: neither is there. Both may be, if they agree.
  Result<const char*> one_of(const char* first, const char* second) const;
  Result<std::optional<int64_t>> one_number(const char* first, const char* second, int64_t least,
                                            int64_t limit = kMaxConfigNumber) const;

  // What to say of two spellings of one setting that do not agree; `other` with its place.
  tl::unexpected<Error> contradiction(std::string_view field, std::string_view other) const;

  Result<int64_t> number(const char* field, int64_t limit = kMaxConfigNumber) const {
    OCTAVO_TRY(const auto value, find_number(field, 1, limit));
    if (!value) return error(field, "is missing");
    return *value;
  }

  Result<std::optional<bool>> find_bool(const char* field) const {
    const nlohmann::json* value = find(field);
    if (!value) return std::optional<bool>();
    if (!value->is_boolean()) return error(field, "is not true or false");
    return value->get<bool>();
  }

  Result<std::optional<std::string>> find_string(const char* field) const {
    const nlohmann::json* value = find(field);
    if (!value) return std::optional<std::string>();
    if (!value->is_string()) return error(field, "is not a string");
    return value->get<std::string>();
  }

  Result<std::optional<double>> find_real(const char* field) const {
    const nlohmann::json* value = find(field);
    if (!value) return std::optional<double>();
    const double number = value->is_number() ? value->get<double>() : NAN;
    // What no float holds is no parameter of a model.
    if (std::isfinite(number) && std::abs(number) <= FLT_MAX) return number;
    return error(field, "is not a number");
  }

  const nlohmann::json& object() const { return *object_; }
  const std::string& file() const { return file_; }
  const std::string& prefix() const { return prefix_; }

 private:
  const nlohmann::json* object_;
  std::string file_;
  std::string prefix_;
};

inline constexpr size_t kMaxConfigBytes = size_t{1} << 20;  // real ones have a few thousand

// A configuration: an object that is not nested on purpose to exhaust memory.
// Errors: corrupt_file, unsupported (too large, too deep).
Result<nlohmann::json> parse_config_json(std::string_view text, const std::string& name,
                                         size_t max_bytes = kMaxConfigBytes);

}  // namespace octavo
