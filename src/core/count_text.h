// Counts of tokens and bytes as people write them: 8192, 8k, 25.6k, 4GiB.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo {

// k, m, g and t are powers of 1000 and K, M, G and T of 1024, as vLLM has it; kB, MB, GB and TB are
// powers of 1000 and KiB, MiB, GiB and TiB of 1024. A blank may stand before the unit. Nothing: no
// such count, one that is no whole number, or too large for 64 bits.
std::optional<int64_t> parse_count(std::string_view text);

}  // namespace octavo
