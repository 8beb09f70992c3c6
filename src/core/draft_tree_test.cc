#include "core/draft_tree.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TokenId t(int id) { return TokenId{id}; }

struct Drafts {
  std::vector<TokenId> tokens;
  std::vector<int> parents;

  int add(TokenId token, int parent) { return add_draft(tokens, parents, token, parent); }
  DraftTree tree() const { return {tokens, parents}; }
};

TEST(DraftTree, AChainHasNoParents) {
  Drafts drafts;
  EXPECT_EQ(drafts.add(t(1), kRoot), 0);
  EXPECT_EQ(drafts.add(t(2), 0), 1);
  EXPECT_TRUE(drafts.parents.empty());
  EXPECT_EQ(drafts.tree().parent(0), kRoot);
  EXPECT_EQ(drafts.tree().parent(1), 0);
  EXPECT_EQ(segments(drafts.tree()).size(), 1u);
  EXPECT_EQ(drafts.tree().child(kRoot, t(1)), 0);
  EXPECT_EQ(drafts.tree().child(kRoot, t(2)), kRoot);
  EXPECT_EQ(drafts.tree().child(1, t(2)), kRoot);
}

TEST(DraftTree, Branches) {
  Drafts drafts;
  drafts.add(t(1), kRoot);
  drafts.add(t(2), 0);
  drafts.add(t(3), 0);  // beside 2
  drafts.add(t(4), 2);
  drafts.add(t(5), kRoot);
  EXPECT_TRUE(drafts.tree().is_valid());
  EXPECT_EQ(drafts.parents, (std::vector<int>{-1, 0, 0, 2, -1}));
  const auto parts = segments(drafts.tree());
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1].first, 2);
  EXPECT_EQ(parts[1].last, 4);
  EXPECT_EQ(parts[2].first, 4);
  EXPECT_EQ(path_to(drafts.tree(), 3), (std::vector<int>{-1, 0, 2, 3}));
  EXPECT_EQ(path_to(drafts.tree(), kRoot), (std::vector<int>{-1}));
  EXPECT_EQ(drafts.tree().child(0, t(3)), 2);
  EXPECT_EQ(drafts.tree().child(kRoot, t(5)), 4);
  EXPECT_EQ(drafts.tree().child(1, t(4)), kRoot);
  EXPECT_TRUE(drafts.tree().has_child(kRoot));
  EXPECT_TRUE(drafts.tree().has_child(2));
  EXPECT_FALSE(drafts.tree().has_child(1));
}

TEST(DraftTree, CutToADepth) {
  Drafts drafts;
  drafts.add(t(1), kRoot);
  drafts.add(t(2), 0);
  drafts.add(t(3), 1);
  drafts.add(t(4), 0);  // beside 2
  drafts.add(t(5), 3);
  EXPECT_EQ(widths(drafts.tree()), (std::vector<int>{1, 2, 2}));
  cut_to_depth(drafts.tokens, drafts.parents, 2);
  EXPECT_EQ(drafts.tokens, (std::vector<TokenId>{t(1), t(2), t(4)}));
  EXPECT_EQ(drafts.parents, (std::vector<int>{-1, 0, 0}));
  cut_to_depth(drafts.tokens, drafts.parents, 1);
  EXPECT_EQ(drafts.tokens, (std::vector<TokenId>{t(1)}));
  EXPECT_TRUE(drafts.parents.empty());
  cut_to_depth(drafts.tokens, drafts.parents, 0);
  EXPECT_TRUE(drafts.tree().empty());
  EXPECT_TRUE(widths(drafts.tree()).empty());
}

TEST(DraftTree, DepthFirst) {
  Drafts drafts;
  for (const auto& [token, parent] : {std::pair(1, -1), {2, -1}, {3, 0}, {4, 1}, {5, 2}})
    drafts.add(t(token), parent);
  order_depth_first(drafts.tokens, drafts.parents);
  EXPECT_EQ(drafts.tokens, (std::vector<TokenId>{t(1), t(3), t(5), t(2), t(4)}));
  EXPECT_EQ(drafts.parents, (std::vector<int>{-1, 0, 1, -1, 3}));
}

TEST(DraftTree, ATwinOfTheRootsChild) {
  Drafts drafts;
  drafts.add(t(1), kRoot);
  drafts.add(t(2), kRoot);
  EXPECT_EQ(drafts.parents, (std::vector<int>{-1, -1}));
  EXPECT_EQ(segments(drafts.tree()).size(), 2u);
  drafts.parents = {-1, 1};
  EXPECT_FALSE(drafts.tree().is_valid());
}

}  // namespace
}  // namespace octavo
