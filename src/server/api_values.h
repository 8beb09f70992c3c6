// Single values of JSON as checked types. An error is what the value must be: "true or false".
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/sampling_params.h"

namespace octavo {

using Expected = tl::expected<void, std::string>;

Expected read_value(const nlohmann::ordered_json& value, bool& out);
Expected read_value(const nlohmann::ordered_json& value, double& out);
// Integers may be written as 5.0, as JSON Schema has it.
Expected read_value(const nlohmann::ordered_json& value, int& out);
// A negative one is taken as its two's complement: clients draw seeds as signed 64-bit numbers.
Expected read_value(const nlohmann::ordered_json& value, uint64_t& out);
Expected read_value(const nlohmann::ordered_json& value, std::string& out);
Expected read_value(const nlohmann::ordered_json& value, TokenId& out);
Expected read_value(const nlohmann::ordered_json& value, std::vector<TokenId>& out);
// One string stands for a list of it.
Expected read_value(const nlohmann::ordered_json& value, std::vector<std::string>& out);
Expected read_value(const nlohmann::ordered_json& value, std::vector<LogitBias>& out);

template <class T>
Expected read_value(const nlohmann::ordered_json& value, std::optional<T>& out) {
  return read_value(value, out.emplace());
}

}  // namespace octavo
