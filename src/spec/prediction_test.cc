#include "spec/prediction.h"

#include <gtest/gtest.h>

#include "support/byte_tokens.h"

#include <string>

namespace octavo {
namespace {

std::string draft(std::string_view prediction, std::string_view answer, int most = 4) {
  const auto predicted = testing::byte_tokens(prediction),
             known = testing::byte_tokens("the prompt" + std::string(answer));
  DraftTask task{.tokens = known, .prompt_tokens = 10, .max_tokens = most, .prediction = predicted};
  DraftTask* const tasks[] = {&task};
  PredictionDrafter().propose(tasks);
  std::string out;
  for (const TokenId token : task.draft) out.push_back(static_cast<char>(raw(token)));
  return out;
}

TEST(Prediction, FollowedFromTheFirstToken) {
  EXPECT_EQ(draft("abcdefg", "a"), "bcde");
  EXPECT_EQ(draft("abcdefg", "abc"), "defg");
  EXPECT_EQ(draft("abcdefg", "abcdef"), "g");
  EXPECT_EQ(draft("abcdefg", "abcdefg"), "");
}

TEST(Prediction, FoundAgainBehindAChange) {
  EXPECT_EQ(draft("abcdefghij", "abXYef"), "");  // two tokens may be there by accident
  EXPECT_EQ(draft("abcdefghij", "abXYefg"), "hij");
  EXPECT_EQ(draft("..abc1..", "xabc"), "1..");
}

TEST(Prediction, TheLongestRunThenTheNearest) {
  EXPECT_EQ(draft("xabc1 yabc2 zabc3", "..yabc", 1), "2");
  EXPECT_EQ(draft("xabc1 yabc2 zabc3", "..abc", 1), "1");
  EXPECT_EQ(draft("xabc1 yabc2 zabc3", "........abc", 1), "2");
  EXPECT_EQ(draft("xabc1 yabc2 zabc3", "a long one ....... abc", 1), "3");
  // The beginning is one token here, and elsewhere there are three.
  EXPECT_EQ(draft("aXYaaaZ", "aaa", 1), "Z");
}

TEST(Prediction, OfThePromptNothingCounts) { EXPECT_EQ(draft("prompt is", ""), ""); }

TEST(Prediction, NothingIsPredicted) {
  EXPECT_EQ(draft("", "abc"), "");
  EXPECT_EQ(draft("a", "a"), "");
}

TEST(Prediction, RunsOfOneToken) {
  const std::string many(500, 'a');
  EXPECT_EQ(draft(many, many.substr(0, 300)), "aaaa");
}

}  // namespace
}  // namespace octavo
