// What each block of the KV cache held over time, as a picture: a row for each time, a column for
// each block, a colour for each owner.
#pragma once

#include <string>
#include <vector>

#include "bench/result.h"

namespace octavo {

// Large maps are sampled down to what a screen shows; the caption says so. Classes: "c1" and on for
// owners in turn ("c0" is too much like "cached"), "empty" besides for held blocks without a token,
// "cached", "shared"; free blocks are left out. REQUIRES: rows of equal length.
std::string svg_block_map(const std::string& title, const std::vector<BlockMapRow>& rows);

}  // namespace octavo
