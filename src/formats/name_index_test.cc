#include "formats/name_index.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(NameIndex, FindsTheNumberOfEachName) {
  const NameIndex index({"pear", "apple", "fig", ""});
  EXPECT_EQ(index.find("pear"), 0u);
  EXPECT_EQ(index.find("apple"), 1u);
  EXPECT_EQ(index.find("fig"), 2u);
  EXPECT_EQ(index.find(""), 3u);
  for (const char* absent : {"app", "apples", "zebra", "A"})
    EXPECT_EQ(index.find(absent), std::nullopt) << absent;
  EXPECT_EQ(index.duplicate(), std::nullopt);
}

TEST(NameIndex, NamesADuplicate) {
  EXPECT_EQ(NameIndex({"b", "a", "b"}).duplicate(), "b");
  EXPECT_EQ(NameIndex({"b", "a", "b"}).find("b"), 0u) << "the first one";
  EXPECT_EQ(NameIndex().find("a"), std::nullopt);
}

}  // namespace
}  // namespace octavo
