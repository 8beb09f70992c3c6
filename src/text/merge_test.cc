#include "text/merge.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace octavo {
namespace {

// Joins by spelling; priorities from a table.
class Words final : public MergeRules {
 public:
  Words(std::string_view text, const std::map<std::string, uint32_t>& priorities)
      : text_(text), priorities_(priorities) {}
  std::optional<Merge> find(const Symbol& left, const Symbol& right) override {
    const auto found =
        priorities_.find(std::string(text_.substr(left.begin, left.size + right.size)));
    if (found == priorities_.end()) return std::nullopt;
    return Merge{found->second, static_cast<int32_t>(found->second)};
  }

 private:
  std::string_view text_;
  const std::map<std::string, uint32_t>& priorities_;
};

std::vector<std::string> merge(std::string_view text,
                               const std::map<std::string, uint32_t>& priorities,
                               EncodeStats& stats) {
  std::vector<Symbol> symbols;
  for (uint32_t i = 0; i < text.size(); ++i) symbols.push_back({i, 1, -1});
  Words rules(text, priorities);
  MergeEngine().run(symbols, rules, stats);
  std::vector<std::string> parts;
  for (const Symbol& symbol : symbols) parts.emplace_back(text.substr(symbol.begin, symbol.size));
  return parts;
}

// The definition, word for word and quadratic: join the best pair, the leftmost of equals, until
// there is none.
std::vector<std::string> merge_slowly(std::string_view text,
                                      const std::map<std::string, uint32_t>& priorities) {
  std::vector<std::string> parts;
  for (const char character : text) parts.emplace_back(1, character);
  while (true) {
    size_t best = parts.size();
    uint32_t priority = UINT32_MAX;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = priorities.find(parts[i] + parts[i + 1]);
      if (found != priorities.end() && found->second < priority) best = i, priority = found->second;
    }
    if (best == parts.size()) return parts;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Merge, BestPairFirstThenLeftmost) {
  using Parts = std::vector<std::string>;
  const std::map<std::string, uint32_t> priorities = {{"ab", 1}, {"bc", 0}, {"aa", 2}, {"abc", 3}};
  const std::pair<const char*, Parts> cases[] = {
      {"", {}},
      {"a", {"a"}},
      {"abc", {"abc"}},
      {"aaa", {"aa", "a"}},
      {"abab", {"ab", "ab"}},
      {"abcab", {"abc", "ab"}},
  };
  for (const auto& [text, parts] : cases) {
    EncodeStats stats;
    EXPECT_EQ(merge(text, priorities, stats), parts) << text;
  }
}

TEST(Merge, AgreesWithTheDefinitionOnRandomTables) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::map<std::string, uint32_t> priorities;
    for (size_t i = random() % 12; i > 0; --i) {
      std::string word;
      for (size_t n = 2 + random() % 4; n > 0; --n) word.push_back("abc"[random() % 3]);
      priorities[word] = random() % 6;  // ties are common
    }
    std::string text;
    for (size_t i = random() % 40; i > 0; --i) text.push_back("abc"[random() % 3]);
    EncodeStats stats;
    EXPECT_EQ(merge(text, priorities, stats), merge_slowly(text, priorities)) << text;
  }
}

TEST(Merge, LookupsAreAtMostThreePerSymbol) {
  const std::map<std::string, uint32_t> priorities = {{"aa", 0}, {"aaaa", 1}, {"aaaaaaaa", 2}};
  EncodeStats stats;
  EXPECT_EQ(merge(std::string(8000, 'a'), priorities, stats).size(), 1000u);
  EXPECT_LE(stats.lookups, 3u * 8000);
  EXPECT_GE(stats.lookups, 8000u);
}

}  // namespace
}  // namespace octavo
