#include "sampling/logits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace octavo {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();

TEST(CheckFinite, RefusesWhatCannotBeSampled) {
  struct Case {
    std::vector<float> logits;
    std::string named;  // part of the message; empty: accepted
  };
  const Case cases[] = {
      {{0}, ""},
      {{-kInf, 1, -kInf}, ""},
      {{-kMax, -kInf}, ""},
      {{kMax, -kMax}, ""},
      {{0, kNan, 1}, "token 1 is nan"},
      {{0, 1, -kNan}, "token 2 is "},
      {{kInf, kNan}, "token 0 is inf"},
      {{-kInf, -kInf}, "no logit of the row"},
      {{}, "no logit of the row"},
  };
  for (const Case& c : cases) {
    const Result<void> result = check_finite(c.logits);
    ASSERT_EQ(result.has_value(), c.named.empty()) << c.named;
    if (result) continue;
    EXPECT_EQ(result.error().code, ErrorCode::numeric_error);
    EXPECT_NE(result.error().message.find(c.named), std::string::npos) << result.error().message;
  }
}

TEST(Argmax, TiesGoToTheLowerId) {
  EXPECT_EQ(argmax(std::vector<float>{1, 3, 2, 3}), TokenId{1});
  EXPECT_EQ(argmax(std::vector<float>{-kInf, -5, -kInf}), TokenId{1});
}

TEST(LogSumExp, DoesNotOverflow) {
  EXPECT_DOUBLE_EQ(log_sum_exp(std::vector<float>{0, 0, 0, 0}), std::log(4.0));
  EXPECT_DOUBLE_EQ(log_sum_exp(std::vector<float>{1e30f, 1e30f}), 1e30f + std::log(2.0));
  EXPECT_DOUBLE_EQ(log_sum_exp(std::vector<float>{-1e4f, -kInf, -1e4f}), -1e4 + std::log(2.0));
}

}  // namespace
}  // namespace octavo
