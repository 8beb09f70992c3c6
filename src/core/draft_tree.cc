#include "core/draft_tree.h"

#include <algorithm>

namespace octavo {

int add_draft(std::vector<TokenId>& tokens, std::vector<int>& parents, TokenId token, int parent) {
  const auto draft = static_cast<int>(tokens.size());
  if (parents.empty() && parent != draft - 1)
    for (int i = 0; i < draft; ++i) parents.push_back(i - 1);
  if (!parents.empty() || parent != draft - 1) parents.push_back(parent);
  tokens.push_back(token);
  return draft;
}

int DraftTree::child(int of, TokenId token) const {
  for (int draft = of + 1; draft < size(); ++draft)
    if (parent(draft) == of && tokens[static_cast<size_t>(draft)] == token) return draft;
  return kRoot;
}

bool DraftTree::has_child(int of) const {
  for (int draft = of + 1; draft < size(); ++draft)
    if (parent(draft) == of) return true;
  return false;
}

bool DraftTree::is_valid() const {
  if (parents.empty()) return true;
  if (parents.size() != tokens.size()) return false;
  for (int draft = 0; draft < size(); ++draft)
    if (parent(draft) < kRoot || parent(draft) >= draft) return false;
  return true;
}

namespace {

void append_behind(const DraftTree& tree, int of, int renamed, std::vector<TokenId>& tokens,
                   std::vector<int>& parents) {
  for (int draft = of + 1; draft < tree.size(); ++draft)
    if (tree.parent(draft) == of)
      append_behind(tree, draft,
                    add_draft(tokens, parents, tree.tokens[static_cast<size_t>(draft)], renamed),
                    tokens, parents);
}

}  // namespace

void order_depth_first(std::vector<TokenId>& tokens, std::vector<int>& parents) {
  if (parents.empty()) return;
  std::vector<TokenId> ordered;
  std::vector<int> ordered_parents;
  append_behind({tokens, parents}, kRoot, kRoot, ordered, ordered_parents);
  tokens = std::move(ordered);
  parents = std::move(ordered_parents);
}

namespace {

// Of each draft, the place that it is for.
std::vector<int> places(const DraftTree& tree) {
  std::vector<int> result;
  for (int draft = 0; draft < tree.size(); ++draft) {
    const int parent = tree.parent(draft);
    result.push_back(parent == kRoot ? 0 : result[static_cast<size_t>(parent)] + 1);
  }
  return result;
}

}  // namespace

std::vector<int> widths(const DraftTree& tree) {
  std::vector<int> result;
  for (const int place : places(tree)) {
    if (static_cast<int>(result.size()) == place) result.push_back(0);
    ++result[static_cast<size_t>(place)];
  }
  return result;
}

void cut_to_depth(std::vector<TokenId>& tokens, std::vector<int>& parents, int depth) {
  const DraftTree tree{tokens, parents};
  std::vector<TokenId> kept;
  std::vector<int> kept_parents, renamed;
  const std::vector<int> place = places(tree);
  for (int draft = 0; draft < tree.size(); ++draft) {
    const auto i = static_cast<size_t>(draft);
    const int parent = tree.parent(draft);
    renamed.push_back(
        place[i] < depth ? add_draft(kept, kept_parents, tokens[i],
                                     parent == kRoot ? kRoot : renamed[static_cast<size_t>(parent)])
                         : kRoot);
  }
  tokens = std::move(kept);
  parents = std::move(kept_parents);
}

std::vector<DraftSegment> segments(const DraftTree& tree) {
  std::vector<DraftSegment> result;
  for (int draft = 0; draft < tree.size(); ++draft) {
    if (result.empty() || tree.parent(draft) != draft - 1) result.push_back({draft, draft});
    result.back().last = draft + 1;
  }
  return result;
}

std::vector<int> path_to(const DraftTree& tree, int draft) {
  std::vector<int> path;
  for (; draft != kRoot; draft = tree.parent(draft)) path.push_back(draft);
  path.push_back(kRoot);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace octavo
