#include "core/sampling_params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace octavo {
namespace {

constexpr int kVocab = 100;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int kIntMax = std::numeric_limits<int>::max(), kIntMin = std::numeric_limits<int>::min();

using Change = std::function<void(SamplingParams&)>;

Result<void> validate_with(const Change& change, int max_logprobs = kMaxLogprobs) {
  SamplingParams params;
  change(params);
  return validate(params, kVocab, max_logprobs);
}

// Every error must say which field, which value, and what would be accepted.
void expect_refused(const Change& change, const std::string& field, const std::string& value) {
  const Result<void> result = validate_with(change);
  ASSERT_FALSE(result.has_value()) << field << " " << value;
  EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
  const std::string begin = field + " is " + value + "; allowed: ";
  EXPECT_EQ(result.error().message.substr(0, begin.size()), begin);
  EXPECT_GT(result.error().message.size(), begin.size());
}

TEST(SamplingParams, DefaultsAreValid) {
  EXPECT_TRUE(validate(SamplingParams{}, kVocab));
  EXPECT_FALSE(is_greedy(SamplingParams{}));
}

TEST(SamplingParams, DoublesAreAcceptedOnlyInsideTheirRange) {
  struct Case {
    const char* field;
    double SamplingParams::*member;
    std::vector<double> good, bad;
  };
  const Case cases[] = {
      {"temperature", &SamplingParams::temperature, {0, 5e-324, 1e-9, 2, 100, 1e308}, {-1, -1e-9}},
      {"top_p", &SamplingParams::top_p, {1e-300, 1e-9, 0.5, 1}, {0, -0.1, 1.1}},
      {"min_p", &SamplingParams::min_p, {0, 1e-9, 1}, {-1e-9, 1.1}},
      {"presence_penalty", &SamplingParams::presence_penalty, {-2, 0, 2}, {-2.1, 2.1}},
      {"frequency_penalty", &SamplingParams::frequency_penalty, {-2, 0, 2}, {-2.1, 2.1}},
      {"repetition_penalty", &SamplingParams::repetition_penalty, {1e-300, 0.5, 1, 1e308}, {0, -1}},
  };
  for (const Case& c : cases) {
    for (double value : c.good)
      EXPECT_TRUE(validate_with([&](SamplingParams& p) { p.*c.member = value; }))
          << c.field << " " << value;
    for (double value : c.bad)
      EXPECT_FALSE(validate_with([&](SamplingParams& p) { p.*c.member = value; }))
          << c.field << " " << value;
    expect_refused([&](SamplingParams& p) { p.*c.member = kNan; }, c.field, "nan");
    expect_refused([&](SamplingParams& p) { p.*c.member = kInf; }, c.field, "inf");
    expect_refused([&](SamplingParams& p) { p.*c.member = -kInf; }, c.field, "-inf");
  }
}

TEST(SamplingParams, IntegersAreAcceptedOnlyInsideTheirRange) {
  struct Case {
    const char* field;
    std::function<void(SamplingParams&, int)> set;
    std::vector<int> good, bad;
  };
  const Case cases[] = {
      {"n", [](auto& p, int v) { p.n = v; }, {1, 2, kMaxChoices}, {0, -1, kMaxChoices + 1}},
      {"top_k",
       [](auto& p, int v) { p.top_k = v; },
       {-1, 0, 1, kVocab, kVocab + 1, kIntMax},
       {-2, kIntMin}},
      {"max_tokens", [](auto& p, int v) { p.max_tokens = v; }, {0, 1, kIntMax}, {-1, kIntMin}},
      {"min_tokens",
       [](auto& p, int v) { p.min_tokens = v, p.max_tokens.reset(); },
       {0, 1, kIntMax},
       {-1, kIntMin}},
      {"logprobs", [](auto& p, int v) { p.logprobs = v; }, {0, 1, 5, 20}, {-1, -2, 21}},
      {"prompt_logprobs", [](auto& p, int v) { p.prompt_logprobs = v; }, {0, 20}, {-1, 21}},
  };
  for (const Case& c : cases) {
    for (int value : c.good)
      EXPECT_TRUE(validate_with([&](SamplingParams& p) { c.set(p, value); }))
          << c.field << " " << value;
    for (int value : c.bad)
      expect_refused([&](SamplingParams& p) { c.set(p, value); }, c.field, std::to_string(value));
  }
}

TEST(SamplingParams, AllLogprobsNeedTheCapLifted) {
  for (int count : {-1, 0, 21, kVocab})
    EXPECT_TRUE(
        validate_with([&](auto& p) { p.logprobs = p.prompt_logprobs = count; }, kNoLogprobsCap))
        << count;
  EXPECT_FALSE(validate_with([](auto& p) { p.logprobs = -2; }, kNoLogprobsCap));
  for (const int cap : {kVocab, kVocab + 1}) {
    EXPECT_TRUE(validate_with([](auto& p) { p.logprobs = p.prompt_logprobs = -1; }, cap)) << cap;
    EXPECT_FALSE(validate_with([](auto& p) { p.logprobs = -2; }, cap)) << cap;
  }
  EXPECT_FALSE(validate_with([](auto& p) { p.prompt_logprobs = -1; }, kVocab - 1));
}

TEST(SamplingParams, SeveralGreedyAnswersAreAllowed) {
  EXPECT_TRUE(validate_with([](auto& p) { p.n = 4, p.temperature = 0; }));
}

TEST(SamplingParams, MinTokensMayNotExceedMaxTokens) {
  EXPECT_TRUE(validate_with([](auto& p) { p.min_tokens = 5, p.max_tokens = 5; }));
  expect_refused([](auto& p) { p.min_tokens = 6, p.max_tokens = 5; }, "min_tokens", "6");
}

TEST(SamplingParams, StopStringsNeedText) {
  EXPECT_TRUE(validate_with([](auto& p) { p.detokenize = false; }));
  expect_refused([](auto& p) { p.detokenize = false, p.stop = {"a"}; }, "detokenize", "false");
}

TEST(SamplingParams, BarredTokensAreChecked) {
  EXPECT_TRUE(validate_with([](auto& p) {
    p.allowed_token_ids = {TokenId{0}, TokenId{kVocab - 1}};
  }));
  expect_refused([](auto& p) { p.allowed_token_ids = {TokenId{kVocab}}; },
                 "allowed_token_ids entry", std::to_string(kVocab));
  expect_refused([](auto& p) { p.allowed_token_ids = {TokenId{-1}}; }, "allowed_token_ids entry",
                 "-1");
  EXPECT_TRUE(validate_with([](auto& p) { p.bad_words.assign(kMaxBadWords, "a"); }));
  expect_refused([](auto& p) { p.bad_words.assign(kMaxBadWords + 1, "a"); }, "number of bad_words",
                 "1025");
  expect_refused([](auto& p) { p.bad_words = {""}; }, "length of a bad word", "0");
  const std::string longest(kMaxStopBytes, 'a');
  const size_t most = kMaxBadWordsBytes / kMaxStopBytes;
  EXPECT_TRUE(validate_with([&](auto& p) { p.bad_words.assign(most, longest); }));
  expect_refused([&](auto& p) { p.bad_words.assign(most + 1, longest); }, "length of all bad_words",
                 "69632");
}

TEST(SamplingParams, ListsOfTokensAreNoLongerThanTheVocabulary) {
  const std::vector<TokenId> most(kVocab, TokenId{1}), too_many(kVocab + 1, TokenId{1});
  EXPECT_TRUE(validate_with([&](auto& p) { p.allowed_token_ids = p.stop_token_ids = most; }));
  expect_refused([&](auto& p) { p.allowed_token_ids = too_many; }, "length of allowed_token_ids",
                 std::to_string(kVocab + 1));
  expect_refused([&](auto& p) { p.stop_token_ids = too_many; }, "length of stop_token_ids",
                 std::to_string(kVocab + 1));
}

TEST(SamplingParams, LogitBiasIsCheckedEntryByEntry) {
  const auto bias = [](int id, float value) {
    return [=](SamplingParams& p) { p.logit_bias = {{TokenId{5}, 1.0f}, {TokenId{id}, value}}; };
  };
  for (float value : {-100.0f, 0.0f, 100.0f}) EXPECT_TRUE(validate_with(bias(kVocab - 1, value)));
  for (int id : {-1, kVocab, 191222})
    expect_refused(bias(id, -100), "logit_bias id", std::to_string(id));
  expect_refused(bias(7, 1e9f), "logit_bias of token 7", "1000000000");
  expect_refused(bias(7, -100.5f), "logit_bias of token 7", "-100.5");
  expect_refused(bias(7, std::nanf("")), "logit_bias of token 7", "nan");
  expect_refused(bias(5, 2), "logit_bias id", "5");  // named twice
}

TEST(SamplingParams, StopsAreChecked) {
  EXPECT_TRUE(validate_with([](auto& p) { p.stop = {"\n", std::string(kMaxStopBytes, 'x')}; }));
  expect_refused([](auto& p) { p.stop = {"a", ""}; }, "length of a stop string", "0");
  expect_refused([](auto& p) { p.stop = {std::string(kMaxStopBytes + 1, 'x')}; },
                 "length of a stop string", std::to_string(kMaxStopBytes + 1));
  expect_refused([](auto& p) { p.stop.assign(kMaxStopStrings + 1, "x"); }, "number of stop strings",
                 std::to_string(kMaxStopStrings + 1));
  EXPECT_TRUE(validate_with([](auto& p) { p.stop_token_ids = {TokenId{0}, TokenId{kVocab - 1}}; }));
  expect_refused([](auto& p) { p.stop_token_ids = {TokenId{kVocab}}; }, "stop_token_ids entry",
                 std::to_string(kVocab));
}

}  // namespace
}  // namespace octavo
