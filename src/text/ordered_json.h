// JSON whose objects keep the order of their members, in time linear in the text but for sorting
// keys: the library's own parser looks through all members of an object for each new one.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace octavo {

// Of a key that is there twice the last value counts, at the place of the first. REQUIRES:
// is_json(text).
nlohmann::ordered_json parse_ordered_json(std::string_view text);

}  // namespace octavo
