// What a request's mask bars is not drawn, whatever is guessed; and guesses change nothing.
#include <gtest/gtest.h>

#include <set>

#include "support/expect_same.h"
#include "support/guess_rig.h"
#include "support/tiny_tokenizer.h"

namespace octavo {
namespace {

using testing::expect_equal;
using testing::GuessRig;
using testing::hash_logits;
using testing::OracleDrafter;

constexpr int kTokens = 265;

// After an odd token an even one, and after two even ones 'A', 'B' or 'C'; at first an odd one.
bool may_follow(std::span<const TokenId> answer, int id) {
  const size_t n = answer.size();
  if (n == 0) return id % 2 == 1;
  if (raw(answer[n - 1]) % 2 == 1) return id % 2 == 0;
  return n < 2 || raw(answer[n - 2]) % 2 == 1 || (id >= 'A' && id <= 'C');
}

void bar(std::span<const TokenId> answer, std::span<uint64_t> allowed) {
  for (size_t i = 0; i < answer.size(); ++i)
    EXPECT_TRUE(may_follow(answer.first(i), raw(answer[i]))) << "asked after what it barred";
  for (int id = 0; id < kTokens; ++id)
    if (!may_follow(answer, id)) allowed[static_cast<size_t>(id) / 64] &= ~(uint64_t{1} << id % 64);
}

std::vector<Request> requests(bool masked) {
  std::vector<Request> all;
  for (int i = 0; i < 12; ++i) {
    Request r{.prompt_token_ids = {TokenId{'a' + i}, TokenId{'b'}, TokenId{'c'}}};
    r.params.temperature = i % 3 == 0 ? 0 : 1;
    r.params.seed = static_cast<uint64_t>(i);
    r.params.n = i % 4 == 1 ? 3 : 1;
    r.params.max_tokens = 24;
    r.params.logprobs = 1;
    if (i % 2 == 1) r.params.top_p = 0.9;
    if (masked) r.allowed_tokens = bar;
    all.push_back(std::move(r));
  }
  return all;
}

void expect_masked(const RequestOutput& output) {
  ASSERT_FALSE(output.error) << output.error->message;
  for (const CompletionOutput& choice : output.outputs) {
    const std::span answer(choice.token_ids);
    EXPECT_EQ(answer.size(), 24u);
    for (size_t i = 0; i < answer.size(); ++i)
      EXPECT_TRUE(may_follow(answer.first(i), raw(answer[i]))) << "place " << i;
  }
}

// The guesses are what would come with the mask, but for one token, and what would come without.
TEST(TokenMask, GuessesChangeNothing) {
  const auto masked = requests(true);
  GuessRig plain(testing::tiny_byte_spec(), hash_logits);
  const auto expected = plain.run(masked);
  for (const RequestOutput& output : expected) expect_masked(output);
  const auto unmasked = plain.run(requests(false));
  int64_t accepted = 0, refused = 0;
  for (const int num_drafts : {1, 2, 5, 8})
    for (const auto& guessed : {expected, unmasked}) {
      GuessRig rig(testing::tiny_byte_spec(), hash_logits,
                   std::make_unique<OracleDrafter>(guessed, num_drafts - 1), num_drafts);
      const auto outputs = rig.run(masked);
      for (size_t i = 0; i < outputs.size(); ++i) expect_equal(outputs[i], expected[i]);
      accepted += rig.stats().num_accepted_tokens;
      refused += rig.stats().num_draft_tokens - rig.stats().num_accepted_tokens;
    }
  EXPECT_GT(accepted, 500);
  EXPECT_GT(refused, 500);
}

// A draft model with the same numbers and the same mask is always right.
TEST(TokenMask, BindsTheDraftModelToo) {
  const auto masked = requests(true);
  GuessRig plain(testing::tiny_byte_spec(), hash_logits);
  const auto expected = plain.run(masked);
  for (const auto method : {RejectionSampleMethod::strict, RejectionSampleMethod::probabilistic}) {
    GuessRig rig(testing::tiny_byte_spec(), hash_logits,
                 std::make_unique<testing::StubDrafter>(kTokens, hash_logits, method), 4);
    const auto outputs = rig.run(masked);
    for (size_t i = 0; i < outputs.size(); ++i) {
      expect_masked(outputs[i]);
      const bool exact = method == RejectionSampleMethod::strict || is_greedy(masked[i].params);
      if (exact) expect_equal(outputs[i], expected[i]);
    }
    EXPECT_EQ(rig.stats().num_accepted_tokens, rig.stats().num_draft_tokens);
    EXPECT_GT(rig.stats().num_draft_tokens, 200);
  }
}

TEST(TokenMask, OneThatBarsAll) {
  Request r{.prompt_token_ids = {TokenId{'a'}}};
  r.allowed_tokens = [](std::span<const TokenId> answer, std::span<uint64_t> allowed) {
    if (answer.size() == 3) std::ranges::fill(allowed, 0);
  };
  for (const double temperature : {0.0, 1.0}) {
    r.params.temperature = temperature;
    r.params.ignore_eos = true;
    GuessRig plain(testing::tiny_byte_spec(), hash_logits);
    const RequestOutput output = plain.run(r);
    ASSERT_TRUE(output.error);
    EXPECT_EQ(output.error->code, ErrorCode::invalid_argument);
    EXPECT_EQ(output.outputs[0].token_ids.size(), 3u);
  }
}

}  // namespace
}  // namespace octavo
