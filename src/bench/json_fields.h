// One JSON object of a file nobody vouches for: fields are read by name, messages give their path,
// and what nobody asked for is refused in the end.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "formats/quote.h"

namespace octavo {

// The number, if it is an integer within bounds, both included.
inline std::optional<int64_t> integer_between(const nlohmann::json& value, int64_t low,
                                              int64_t high) {
  if (!value.is_number_integer()) return std::nullopt;
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (value.is_number_unsigned() && value.get<uint64_t>() > kMax) return std::nullopt;
  const auto number = value.get<int64_t>();
  return number >= low && number <= high ? std::optional(number) : std::nullopt;
}

class JsonFields {
 public:
  // REQUIRES: value outlives this. `path` is for messages: "runs[1].".
  JsonFields(const nlohmann::json& value, std::string path)
      : object_(value), path_(std::move(path)) {}
  JsonFields(nlohmann::json&& value, std::string path) = delete;

  const std::string& path() const { return path_; }

  tl::unexpected<Error> error(std::string_view field, std::string_view why) const {
    return fail(ErrorCode::corrupt_file, fmt::format("'{}{}' {}", path_, field, why));
  }

  // nullptr if it is missing or null. Call this for every field that may be there.
  const nlohmann::json* find(const char* field) {
    read_.insert(field);
    const auto it = object_.is_object() ? object_.find(field) : object_.end();
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }

  Result<std::string> text(const char* field) {
    const nlohmann::json* value = find(field);
    if (value && value->is_string()) return value->get<std::string>();
    return error(field, "is not a string");
  }

  Result<double> number(const char* field) {
    const nlohmann::json* value = find(field);
    if (value && value->is_number() && in_range(value->get<double>())) return value->get<double>();
    return error(field, "is not a number from 0 to 1e12");
  }

  Result<int> integer(const char* field) {
    const nlohmann::json* value = find(field);
    const auto number = value ? integer_between(*value, 0, kMaxInt) : std::nullopt;
    if (number) return static_cast<int>(*number);
    return error(field, "is not an integer from 0 to 2147483647");
  }

  Result<const nlohmann::json*> list(const char* field) {
    const nlohmann::json* value = find(field);
    if (value && value->is_array()) return value;
    return error(field, "is not a list");
  }

  // Every field has been asked for.
  Result<void> finish() const {
    if (!object_.is_object())
      return fail(ErrorCode::corrupt_file, fmt::format("'{}' is not an object", path_));
    for (const auto& [name, value] : object_.items())
      if (!read_.contains(name))
        return fail(ErrorCode::corrupt_file,
                    fmt::format("'{}' has the unknown field {}", path_, quote(name)));
    return {};
  }

  static bool in_range(double value) { return value >= 0 && value <= 1e12; }

 private:
  static constexpr int64_t kMaxInt = 2147483647;

  const nlohmann::json& object_;
  std::string path_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace octavo
