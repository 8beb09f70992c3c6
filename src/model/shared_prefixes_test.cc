#include "model/shared_prefixes.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace octavo {
namespace {

using Table = std::vector<int32_t>;

std::vector<PrefixHolder> holders_of(const std::vector<Table>& tables) {
  std::vector<PrefixHolder> holders;
  for (const Table& table : tables)
    holders.push_back({.blocks = table, .index = static_cast<int>(holders.size())});
  return holders;
}

// Of each part, the groups of indices that share it.
std::map<int, std::set<std::set<int>>> groups_of(const std::vector<Table>& tables, int per_part) {
  auto holders = holders_of(tables);
  std::vector<SharedParts> found = {{1, 2, 3, 4}};  // replaced
  find_shared_parts(holders, per_part, found);
  std::map<int, std::set<std::set<int>>> groups;
  for (const SharedParts& s : found) {
    std::set<int> members;
    for (int i = s.first_holder; i < s.last_holder; ++i)
      members.insert(holders[static_cast<size_t>(i)].index);
    EXPECT_LT(s.first_part, s.last_part);
    for (int part = s.first_part; part < s.last_part; ++part)
      EXPECT_TRUE(groups[part].insert(members).second);
  }
  return groups;
}

TEST(SharedPrefixes, NothingToShare) {
  EXPECT_TRUE(groups_of({}, 2).empty());
  EXPECT_TRUE(groups_of({{1, 2, 3, 4}}, 2).empty());
  EXPECT_TRUE(groups_of({{1, 2}, {3, 4}, {}, {}}, 2).empty());
  EXPECT_TRUE(groups_of({{1, 2}, {1, 3}}, 2).empty());              // half a part
  EXPECT_TRUE(groups_of({{9, 9, 1, 2}, {8, 8, 1, 2}}, 2).empty());  // not at the front
}

//             .- 5 6   (1)
// 1 2 - 3 4 -|
//     |       '- 7 8   (0, 4)
//     '- 9 9           (2)      and 4 4 (3, 5), 6 6 (6)
TEST(SharedPrefixes, ATree) {
  const auto groups = groups_of({{1, 2, 3, 4, 7, 8},
                                 {1, 2, 3, 4, 5, 6},
                                 {1, 2, 9, 9},
                                 {4, 4},
                                 {1, 2, 3, 4, 7, 8},
                                 {4, 4},
                                 {6, 6}},
                                2);
  const std::map<int, std::set<std::set<int>>> expected = {
      {0, {{0, 1, 2, 4}, {3, 5}}}, {1, {{0, 1, 4}}}, {2, {{0, 4}}}};
  EXPECT_EQ(groups, expected);
}

TEST(SharedPrefixes, ParentsComeFirstAndLeaveNoGap) {
  auto holders = std::vector<Table>{{1, 2, 3}, {1, 2, 3}, {1, 2, 4}, {1}, {1, 2, 4}};
  auto found_in = holders_of(holders);
  std::vector<SharedParts> found;
  find_shared_parts(found_in, 1, found);
  std::vector<int> reached(holders.size(), 0);
  for (const SharedParts& s : found)
    for (int i = s.first_holder; i < s.last_holder; ++i) {
      EXPECT_EQ(std::exchange(reached[static_cast<size_t>(i)], s.last_part), s.first_part);
    }
}

// Against the definition: two share a part if all their blocks up to its end are equal.
TEST(SharedPrefixes, DrawnTables) {
  std::mt19937 rng(7);
  for (int round = 0; round < 300; ++round) {
    const int per_part = 1 + static_cast<int>(rng() % 3);
    std::vector<Table> tables(rng() % 12);
    for (Table& table : tables)
      for (size_t part = rng() % 5; part > 0; --part)
        for (int i = 0; i < per_part; ++i) table.push_back(static_cast<int32_t>(rng() % 4 / 3));
    std::map<int, std::set<std::set<int>>> expected;
    for (const Table& a : tables)
      for (size_t end = static_cast<size_t>(per_part); end <= a.size();
           end += static_cast<size_t>(per_part)) {
        std::set<int> members;
        for (size_t b = 0; b < tables.size(); ++b)
          if (tables[b].size() >= end &&
              std::equal(a.begin(), a.begin() + static_cast<long>(end), tables[b].begin()))
            members.insert(static_cast<int>(b));
        if (members.size() > 1) expected[static_cast<int>(end) / per_part - 1].insert(members);
      }
    ASSERT_EQ(groups_of(tables, per_part), expected) << "round " << round;
  }
}

}  // namespace
}  // namespace octavo
