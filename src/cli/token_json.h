// Token ids as JSON, read from users.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/ids.h"

namespace octavo::cli {

inline constexpr size_t kMaxJsonBytes = size_t{64} << 20;

// "[1, 2, 3]". `name` is for messages. invalid_argument for anything else; whether the ids are of a
// vocabulary is not checked.
Result<std::vector<TokenId>> parse_token_ids(std::string_view json, std::string_view name);

Result<std::vector<TokenId>> read_token_ids(const nlohmann::json& array, std::string_view name);

// The field "windows" of an object: a list, not empty, of such arrays. Other fields are not looked
// at.
Result<std::vector<std::vector<TokenId>>> parse_windows(std::string_view json,
                                                        std::string_view name);

}  // namespace octavo::cli
