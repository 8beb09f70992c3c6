#include "text/fill_in_middle.h"

#include <gtest/gtest.h>

#include "support/tiny_tokenizer.h"

namespace octavo {
namespace {

Tokenizer with_tokens(const std::vector<std::pair<std::string, TokenType>>& tokens) {
  TokenizerSpec spec = testing::tiny_byte_spec();
  for (const auto& [spelling, type] : tokens) testing::add_token(spec, spelling, type);
  spec.scores.clear();
  return std::move(*Tokenizer::create(std::move(spec)));
}

constexpr TokenType kControl = TokenType::control, kUsers = TokenType::user_defined;

TEST(FillInMiddle, MarksAreFoundUnderTheirUsualNames) {
  const Tokenizer coder = with_tokens({{"<|fim_suffix|>", kUsers},
                                       {"<|fim_prefix|>", kControl},
                                       {"<|fim_middle|>", kControl},
                                       {"<|file_sep|>", kControl}});
  const auto marks = find_fill_in_middle(coder);
  ASSERT_TRUE(marks);
  EXPECT_EQ(marks->suffix, TokenId{265});
  EXPECT_EQ(marks->prefix, TokenId{266});
  EXPECT_EQ(marks->middle, TokenId{267});
  EXPECT_EQ(marks->ends, std::vector<TokenId>{TokenId{268}});
  EXPECT_EQ(prompt_between(*marks, std::vector{TokenId{1}}, std::vector{TokenId{2}, TokenId{3}}),
            (std::vector<TokenId>{TokenId{266}, TokenId{1}, TokenId{265}, TokenId{2}, TokenId{3},
                                  TokenId{267}}));
}

TEST(FillInMiddle, TwoOfThreeAreNotEnough) {
  EXPECT_FALSE(find_fill_in_middle(with_tokens({})));
  EXPECT_FALSE(
      find_fill_in_middle(with_tokens({{"<fim_prefix>", kControl}, {"<fim_suffix>", kControl}})));
  EXPECT_TRUE(find_fill_in_middle(with_tokens(
      {{"<fim_prefix>", kControl}, {"<fim_suffix>", kControl}, {"<fim_middle>", kControl}})));
}

}  // namespace
}  // namespace octavo
