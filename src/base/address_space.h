// How much more this process may map (ulimit -v).
#pragma once

#include <cstdint>
#include <optional>

namespace octavo {

// Nothing: there is no limit.
std::optional<int64_t> free_address_space_bytes();

}  // namespace octavo
