// Answers end where they end without guesses, wherever in a guess that is: whole requests over a
// stub, at every place of guesses of one to eight tokens and after them.
#include <gtest/gtest.h>

#include "support/expect_same.h"
#include "support/guess_rig.h"
#include "support/tiny_tokenizer.h"

namespace octavo {
namespace {

using testing::expect_equal;
using testing::GuessRig;
using testing::OracleDrafter;
using testing::StubModel;

constexpr size_t kPrompt = 21;
constexpr size_t kEos = 263;
constexpr int kLongest = 8;

std::vector<TokenId> prompt() {
  std::vector<TokenId> ids;
  for (size_t i = 0; i < kPrompt; ++i) ids.push_back(TokenId{static_cast<int>('a' + i)});
  return ids;
}

// hash_logits(), but for one token at one place of the answer.
StubModel::Logits saying(size_t token, size_t place) {
  return [=](const std::vector<TokenId>& history, std::span<float> row) {
    testing::hash_logits(history, row);
    if (history.size() == kPrompt + place) row[token] = 60;
  };
}

struct End {
  const char* name;
  StubModel::Logits fill;
  SamplingParams params;  // on top of what all have
};

// Ways to end an answer at the place `at`.
std::vector<End> ends(size_t at) {
  const auto place = static_cast<int>(at);
  return {
      {"end of answer", saying(kEos, at), {}},
      {"barred end", saying(kEos, at), {.min_tokens = place + 2}},
      {"ignored end", saying(kEos, at), {.ignore_eos = true, .max_tokens = place + 3}},
      {"stop token", saying('!', at), {.stop_token_ids = {TokenId{'!'}}}},
      {"stop string", saying('!', at), {.stop = {"!"}}},
      {"shown stop string", saying('!', at), {.stop = {"!"}, .include_stop_str_in_output = true}},
      {"split stop string",
       [at](const auto& history, auto row) {
         saying('!', at)(history, row);
         if (history.size() == kPrompt + at + 1) row['?'] = 60;
       },
       {.stop = {"!?"}}},
      {"length", saying('!', at), {.max_tokens = place + 1}},
  };
}

Request request_of(const End& end, double temperature) {
  Request r{.prompt_token_ids = prompt(), .params = end.params};
  r.params.temperature = temperature;
  r.params.seed = 5;
  r.params.logprobs = 2;
  r.params.prompt_logprobs = 1;
  r.params.repetition_penalty = 1.1;
  if (r.params.max_tokens == SamplingParams().max_tokens) r.params.max_tokens = 30;
  return r;
}

// The same answer with nothing to end it: what a guess says beyond the end would even be right.
Request endless(Request r) {
  r.params.stop.clear();
  r.params.stop_token_ids.clear();
  r.params.ignore_eos = true;
  r.params.max_tokens = 40;
  return r;
}

// Goes on from all of an answer, so that what lies in the cache is read.
Request next_after(const Request& r, const RequestOutput& answer) {
  Request next = r;
  const auto& tokens = answer.outputs[0].token_ids;
  next.prompt_token_ids.insert(next.prompt_token_ids.end(), tokens.begin(), tokens.end());
  next.prompt_token_ids.push_back(TokenId{'q'});
  next.params.prompt_logprobs.reset();
  next.params.min_tokens = 0;
  next.params.max_tokens = 6;
  return next;
}

void expect_same_end(const RequestOutput& a, const RequestOutput& b) {
  expect_equal(a, b);
  ASSERT_EQ(a.outputs.size(), b.outputs.size());
  for (size_t i = 0; i < a.outputs.size(); ++i)
    EXPECT_EQ(a.outputs[i].stop_reason, b.outputs[i].stop_reason);
  EXPECT_EQ(a.metrics.num_generation_tokens, b.metrics.num_generation_tokens);
  EXPECT_LE(a.metrics.num_accepted_tokens, a.metrics.num_generation_tokens);
}

struct Seen {
  int64_t drafts = 0, accepted = 0;
};

void check(const End& end, double temperature, Seen& seen) {
  const Request request = request_of(end, temperature);
  GuessRig plain(testing::tiny_byte_spec(), end.fill);
  const RequestOutput expected = plain.run(request);
  const std::string streamed = plain.streamed[0];
  const Request next = next_after(request, expected);
  const RequestOutput expected_next = plain.run(next);
  const RequestOutput all = plain.run(endless(request));
  for (int num_drafts = 1; num_drafts <= kLongest; ++num_drafts)
    for (const int wrong_at : {-1, num_drafts / 2, num_drafts - 1}) {
      SCOPED_TRACE("drafts: " + std::to_string(num_drafts) + ", wrong " + std::to_string(wrong_at));
      GuessRig rig(testing::tiny_byte_spec(), end.fill,
                   std::make_unique<OracleDrafter>(std::vector{all}, wrong_at), num_drafts);
      expect_same_end(rig.run(request), expected);
      EXPECT_EQ(rig.streamed[0], streamed);
      expect_same_end(rig.run(next), expected_next);
      seen.drafts += rig.stats().num_draft_tokens;
      seen.accepted += rig.stats().num_accepted_tokens;
    }
}

TEST(GuessEnds, AtEveryPlaceOfAGuess) {
  Seen seen;
  for (size_t at = 0; at <= kLongest + 1; ++at)
    for (const End& end : ends(at))
      for (const double temperature : {0.0, 1.0}) {
        SCOPED_TRACE(end.name + std::string(" at ") + std::to_string(at) + ", temperature " +
                     std::to_string(temperature));
        check(end, temperature, seen);
      }
  EXPECT_GT(seen.accepted, 10'000);
  EXPECT_GT(seen.drafts, seen.accepted * 5 / 4);
}

// A guess of k tokens that are all right gives k + 1 for one forward.
TEST(GuessEnds, OneMoreThanWasGuessed) {
  for (int num_drafts = 1; num_drafts <= kLongest; ++num_drafts) {
    Request request{.prompt_token_ids = prompt(), .params = {.temperature = 0, .seed = 5}};
    request.params.max_tokens = 1 + 3 * (num_drafts + 1);
    GuessRig plain(testing::tiny_byte_spec(), saying('!', 99));
    GuessRig rig(testing::tiny_byte_spec(), saying('!', 99),
                 std::make_unique<OracleDrafter>(std::vector{plain.run(endless(request))}),
                 num_drafts);
    const RequestOutput output = rig.run(request);
    EXPECT_EQ(rig.forwards(), 1 + 3);
    EXPECT_EQ(output.metrics.num_draft_tokens, 3 * num_drafts);
    EXPECT_EQ(output.metrics.num_accepted_tokens, 3 * num_drafts);
  }
}

}  // namespace
}  // namespace octavo
