#include "server/api_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

tl::unexpected<std::string> expected(std::string_view what) {
  return tl::unexpected(std::string(what));
}

// Nothing: not an integer of 64 bits. Floats count up to where each integer has one of its own.
std::optional<int64_t> integer(const Json& value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::trunc(number) != number || std::abs(number) > kExact) return {};
    return static_cast<int64_t>(number);
  }
  const bool is_huge =
      value.is_number_unsigned() && value.get<uint64_t>() > std::numeric_limits<int64_t>::max();
  if (!value.is_number_integer() || is_huge) return {};
  return value.get<int64_t>();
}

template <class T>
Expected read_list(const Json& value, std::vector<T>& out, std::string_view what) {
  if (!value.is_array()) return expected(what);
  out.resize(value.size());
  for (size_t i = 0; i < value.size(); ++i)
    if (!read_value(value[i], out[i])) return expected(what);
  return {};
}

bool read_id(std::string_view text, TokenId& out) {
  if (text.starts_with('-') || (text.size() > 1 && text.starts_with('0'))) return false;
  int32_t id = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  out = TokenId{id};
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Expected read_value(const Json& value, bool& out) {
  if (!value.is_boolean()) return expected("true or false");
  out = value.get<bool>();
  return {};
}

Expected read_value(const Json& value, double& out) {
  if (!value.is_number()) return expected("a number");
  out = value.get<double>();
  return {};
}

Expected read_value(const Json& value, int& out) {
  const auto number = integer(value);
  if (!number || *number < std::numeric_limits<int>::min() ||
      *number > std::numeric_limits<int>::max())
    return expected("an integer of 32 bits");
  out = static_cast<int>(*number);
  return {};
}

Expected read_value(const Json& value, uint64_t& out) {
  if (value.is_number_unsigned()) {
    out = value.get<uint64_t>();
    return {};
  }
  const auto number = integer(value);
  if (!number) return expected("an integer of 64 bits");
  out = static_cast<uint64_t>(*number);
  return {};
}

Expected read_value(const Json& value, std::string& out) {
  if (!value.is_string()) return expected("a string");
  out = value.get_ref<const std::string&>();
  return {};
}

Expected read_value(const Json& value, TokenId& out) {
  int id = 0;
  if (!read_value(value, id)) return expected("a token id");
  out = TokenId{id};
  return {};
}

Expected read_value(const Json& value, std::vector<TokenId>& out) {
  return read_list(value, out, "a list of token ids");
}

Expected read_value(const Json& value, std::vector<std::string>& out) {
  if (value.is_string()) return read_value(value, out.emplace_back());
  return read_list(value, out, "a string or a list of strings");
}

Expected read_value(const Json& value, std::vector<LogitBias>& out) {
  constexpr std::string_view kShape = "an object from token ids to numbers, such as {\"5\": -1.5}";
  if (!value.is_object()) return expected(kShape);
  for (const auto& [key, bias] : value.items()) {
    LogitBias& read = out.emplace_back();
    if (!read_id(key, read.id) || !bias.is_number()) return expected(kShape);
    // Within what a float can hold; far outside what is allowed.
    read.bias = static_cast<float>(std::clamp(bias.get<double>(), -1e30, 1e30));
  }
  return {};
}

}  // namespace octavo
