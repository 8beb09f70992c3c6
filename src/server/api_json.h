// The body of a request as JSON: hostile until it has been through here. And JSON as text.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "core/ids.h"
#include "server/api_error.h"

namespace octavo {

inline constexpr int kMaxBodyDepth = 64;  // the body itself is level 1
// Arrays, objects, strings and numbers of one body: a bound on memory, which each takes some 50
// bytes of however short it is.
inline constexpr size_t kMaxBodyValues = size_t{1} << 21;

using BodyFields = std::map<std::string, nlohmann::ordered_json, std::less<>>;

// The fields of the object that the body is. Status 400, naming the field in which it was, for what
// is no JSON in UTF-8 (a byte order mark, a number that no double can hold and a lone surrogate
// included), a key that an object has twice, and more than the limits above.
// Takes time linear in the body, but for sorting keys, and stack for no level.
ApiResult<BodyFields> parse_body(std::string_view body);

// On one line, always UTF-8: what is none becomes U+FFFD.
std::string to_line(const nlohmann::ordered_json& json);

nlohmann::ordered_json ids_json(std::span<const TokenId> ids);

}  // namespace octavo
