// The schemas of what is answered, and of parts of bodies, by name.
#pragma once

#include <string_view>

namespace octavo {

// An object of JSON: components/schemas, but for the bodies.
std::string_view openapi_schemas();

}  // namespace octavo
