// JSON into values. Its strings are content: the conversation wrote them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "text/jinja_context.h"
#include "text/jinja_value.h"

namespace octavo::jinja {

// Bytes that are not UTF-8, numbers beyond 64 bits and too deep nesting are invalid_argument, named
// by their place.
Result<Value> from_json(Context& context, const nlohmann::ordered_json& json,
                        std::string_view place);

}  // namespace octavo::jinja
