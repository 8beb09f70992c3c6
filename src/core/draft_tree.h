// Guesses of what follows a sequence, as a tree: several guesses for one place, each with its own
// continuation. The root is the sequence's last known token and is no draft; it is called kRoot.
//
// Drafts are numbered so that each comes after its parent. As few as wanted of the first ones are a
// tree too.
#pragma once

#include <span>
#include <vector>

#include "core/ids.h"

namespace octavo {

inline constexpr int kRoot = -1;

// Looks at drafts that somebody else holds.
struct DraftTree {
  std::span<const TokenId> tokens = {};
  std::span<const int> parents = {};  // of the drafts, by number; empty: each follows the last

  int parent(int draft) const {
    return parents.empty() ? draft - 1 : parents[static_cast<size_t>(draft)];
  }
  bool empty() const { return tokens.empty(); }
  int size() const { return static_cast<int>(tokens.size()); }
  // The draft behind `parent` with this token; kRoot: there is none.
  int child(int parent, TokenId token) const;
  bool has_child(int parent) const;
  // Whether parents are as they must be.
  bool is_valid() const;
};

// Adds one behind the draft `parent` or kRoot; returns its number.
int add_draft(std::vector<TokenId>& tokens, std::vector<int>& parents, TokenId token, int parent);

// Renumbers them so that each is followed by the first draft behind it: few segments.
void order_depth_first(std::vector<TokenId>& tokens, std::vector<int>& parents);

// How many there are for each place: the first is that after the root.
std::vector<int> widths(const DraftTree& tree);

// Drops those for places from `depth` on.
void cut_to_depth(std::vector<TokenId>& tokens, std::vector<int>& parents, int depth);

// Drafts [first, last) of which each follows the one before, the first one a draft further up.
struct DraftSegment {
  int first, last;
};

// All drafts, in order.
std::vector<DraftSegment> segments(const DraftTree& tree);

// From kRoot down to `draft`, both included.
std::vector<int> path_to(const DraftTree& tree, int draft);

}  // namespace octavo
