#include "kernels/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace octavo::kernels {
namespace {

TEST(Isa, TheForcedOneRuns) {
  const char* forced = std::getenv("OCTAVO_ISA");
  if (!forced) forced = "ref";
  const auto ops = select_isa(forced);
  ASSERT_TRUE(ops) << ops.error().message;
  EXPECT_STREQ((*ops)->isa, forced);
}

TEST(Isa, ChoosesTheFirstThatTheMachineHas) {
  for (const IsaChoice& choice : list_isas()) {
    if (!choice.missing.empty()) continue;
    EXPECT_EQ((*select_isa(""))->isa, choice.name);
    break;
  }
}

TEST(Isa, RefRunsEverywhere) {
  EXPECT_EQ(list_isas().back().name, "ref");
  EXPECT_TRUE(list_isas().back().missing.empty());
}

TEST(Isa, UnknownNameIsRefusedAndNamed) {
  const auto ops = select_isa("sse9");
  ASSERT_FALSE(ops);
  EXPECT_EQ(ops.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(ops.error().message.find("sse9"), std::string::npos);
  EXPECT_NE(ops.error().message.find("avx2"), std::string::npos);
}

}  // namespace
}  // namespace octavo::kernels
