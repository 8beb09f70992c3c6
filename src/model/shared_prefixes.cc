#include "model/shared_prefixes.h"

#include <algorithm>

namespace octavo {
namespace {

int common_blocks(const PrefixHolder& a, const PrefixHolder& b) {
  return static_cast<int>(std::ranges::mismatch(a.blocks, b.blocks).in1 - a.blocks.begin());
}

// Neighbours [first, last) have all parts before `part` in common. As deep as there are parts.
void find_in(std::span<const PrefixHolder> holders, int first, int last, int part,
             std::vector<SharedParts>& out) {
  if (last - first < 2) return;
  int common = holders[static_cast<size_t>(first) + 1].common;
  for (int i = first + 2; i < last; ++i)
    common = std::min(common, holders[static_cast<size_t>(i)].common);
  if (common > part) out.push_back({part, common, first, last});
  for (int i = first + 1; i <= last; ++i)
    if (i == last || holders[static_cast<size_t>(i)].common == common) {
      find_in(holders, first, i, common, out);
      first = i;
    }
}

}  // namespace

void find_shared_parts(std::span<PrefixHolder> holders, int blocks_per_part,
                       std::vector<SharedParts>& out) {
  out.clear();
  std::ranges::sort(holders, [](const PrefixHolder& a, const PrefixHolder& b) {
    return std::ranges::lexicographical_compare(a.blocks, b.blocks);
  });
  for (size_t i = 1; i < holders.size(); ++i)
    holders[i].common = common_blocks(holders[i - 1], holders[i]) / blocks_per_part;
  find_in(holders, 0, static_cast<int>(holders.size()), 0, out);
}

}  // namespace octavo
