// Which sequences of a step hold the same blocks at the front of their contexts, so that attention
// may read those once for all of them (shared-prefix or cascade attention). Works on block ids
// alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace octavo {

struct PrefixHolder {
  std::span<const int32_t> blocks;  // of the whole parts that it may share
  int index = 0;                    // for the caller
  int common = 0;                   // whole parts in common with the holder before it
};

// Parts [first_part, last_part) of attention lie in the same blocks for some holders, as do all
// parts before.
struct SharedParts {
  int first_part, last_part;
  int first_holder, last_holder;

  bool operator==(const SharedParts&) const = default;
};

// Sorts the holders so that those with equal blocks are neighbours, and replaces what is in `out`,
// longest-shared groups after the groups they are part of. Allocates only what `out` grows by.
void find_shared_parts(std::span<PrefixHolder> holders, int blocks_per_part,
                       std::vector<SharedParts>& out);

}  // namespace octavo
