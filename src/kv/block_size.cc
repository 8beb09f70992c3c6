#include "kv/block_size.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace octavo {

Result<void> check_block_size(int block_size) {
  if (std::find(kBlockSizes.begin(), kBlockSizes.end(), block_size) != kBlockSizes.end()) return {};
  return fail(ErrorCode::invalid_argument, fmt::format("block size is {} tokens; allowed: {}",
                                                       block_size, fmt::join(kBlockSizes, ", ")));
}

}  // namespace octavo
