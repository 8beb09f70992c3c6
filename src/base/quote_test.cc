#include "base/quote.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(Quote, KeepsNothingThatATerminalWouldObey) {
  EXPECT_EQ(quote("blk.0.attn_q.weight"), "'blk.0.attn_q.weight'");
  EXPECT_EQ(quote(""), "''");
  EXPECT_EQ(quote("\x1b[2J\n\x7f\x9b"), "'\\x1b[2J\\x0a\\x7f\\x9b'");
  EXPECT_EQ(quote("it's \\"), "'it\\x27s \\x5c'");
  EXPECT_EQ(quote(std::string_view("a\0b", 3)), "'a\\x00b'");
}

TEST(Quote, CutsLongText) {
  EXPECT_EQ(quote("abcdef", 3), "'abc'...");
  EXPECT_EQ(quote("abc", 3), "'abc'");
  EXPECT_EQ(quote(std::string(1000, 'x')).size(), 80 + 5u);
}

}  // namespace
}  // namespace octavo
