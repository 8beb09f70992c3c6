// The sizes a KV block may have, in tokens.
#pragma once

#include <array>
#include <cstdint>

#include "base/result.h"

namespace octavo {

// At least 16, the group of positions that kernels score at once; all divide 256, the stretch of
// context after which attention starts a new partial result, so that no stretch ends inside a
// block.
inline constexpr std::array kBlockSizes = {16, 32, 64, 128, 256};

Result<void> check_block_size(int block_size);  // invalid_argument, naming the allowed sizes

// Blocks that hold `num_tokens` positions. REQUIRES: num_tokens >= 0, a valid block size.
constexpr int64_t blocks_for(int64_t num_tokens, int block_size) {
  return num_tokens / block_size + (num_tokens % block_size != 0);
}

}  // namespace octavo
