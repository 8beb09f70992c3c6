#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "base/rng.h"

namespace octavo {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kMax = std::numeric_limits<float>::max();

using Tokens = std::vector<TokenId>;

Tokens tokens(std::initializer_list<int> ids) {
  Tokens result;
  for (int id : ids) result.push_back(TokenId{id});
  return result;
}

std::vector<float> logs(std::initializer_list<double> probabilities) {
  std::vector<float> result;
  for (double p : probabilities) result.push_back(static_cast<float>(std::log(p)));
  return result;
}

SamplingParams with(const std::function<void(SamplingParams&)>& change) {
  SamplingParams params;
  change(params);
  return params;
}

SamplingParams greedy_with(const std::function<void(SamplingParams&)>& change) {
  SamplingParams params = with(change);
  params.temperature = 0;
  return params;
}

struct Sequence {
  Tokens prompt, generated, eog;
  std::vector<uint64_t> allowed = {};
};

Result<Sample> sample(const std::vector<float>& logits, const SamplingParams& params,
                      const Sequence& s = {}, uint64_t seed = 1) {
  Sampler sampler(static_cast<int>(logits.size()));
  OCTAVO_TRY(const TokenRules rules, TokenRules::create(params, {}, sampler.num_tokens()));
  return sampler.sample(logits,
                        {params, seed, 0, {s.prompt, s.generated}, s.eog, &rules, s.allowed});
}

int pick(const std::vector<float>& logits, const SamplingParams& params, const Sequence& s = {}) {
  const Result<Sample> result = sample(logits, params, s);
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return result ? raw(result->token) : -1;
}

// How often each token comes over `draws` positions.
std::vector<int> histogram(const std::vector<float>& logits, const SamplingParams& params,
                           int draws) {
  Sampler sampler(static_cast<int>(logits.size()));
  const TokenRules rules = TokenRules::create(params, {}, sampler.num_tokens()).value();
  std::vector<int> counts(logits.size());
  const Tokens history(draws, TokenId{0});
  for (int i = 0; i < draws; ++i) {
    const auto prompt = std::span(history).first(i);
    const Result<Sample> result = sampler.sample(logits, {params, 5, 0, {prompt, {}}, {}, &rules});
    EXPECT_TRUE(result);
    ++counts[raw(result->token)];
  }
  return counts;
}

std::set<int> ids_drawn(const std::vector<float>& logits, const SamplingParams& params) {
  std::set<int> ids;
  const std::vector<int> counts = histogram(logits, params, 3000);
  for (size_t id = 0; id < counts.size(); ++id)
    if (counts[id] > 0) ids.insert(static_cast<int>(id));
  return ids;
}

TEST(Greedy, TakesTheLargestAndTheLowerIdOfEquals) {
  EXPECT_EQ(pick({0, 2, 5, 5, 1}, greedy_with([](auto&) {})), 2);
  EXPECT_EQ(pick({-kInf, -kInf, -3}, greedy_with([](auto&) {})), 2);
}

TEST(Greedy, DoesNotDependOnSeedOrFilters) {
  const auto params = greedy_with([](auto& p) { p.top_k = 2, p.top_p = 0.1, p.min_p = 1; });
  for (uint64_t seed : {0, 1, 2}) EXPECT_EQ(raw(sample({0, 2, 1}, params, {}, seed)->token), 1);
}

TEST(Bias, IsAddedBeforeTheChoice) {
  const auto bias = [](int id, float value) {
    return greedy_with([=](auto& p) { p.logit_bias = {{TokenId{id}, value}}; });
  };
  EXPECT_EQ(pick({1, 2, 3}, bias(0, 2.5f)), 0);
  EXPECT_EQ(pick({1, 2, 3}, bias(0, 1.5f)), 2);
  EXPECT_EQ(pick({1, 2, 3}, bias(2, -100)), 1);
  EXPECT_EQ(pick({-kInf, 2, 3}, bias(0, 100)), 2);  // what the model rules out stays ruled out
}

// Token 0 fills the prompt, token 1 was generated three times, token 2 once, token 3 in neither.
const Sequence kSeen = {tokens({0, 0, 0, 0}), tokens({1, 1, 2, 1}), {}};

TEST(Penalties, CountPromptAndAnswerAsDocumented) {
  struct Case {
    const char* name;
    SamplingParams params;
    std::vector<float> logits, expected;  // the row, and what the penalties make of it
  };
  const Case cases[] = {
      {"presence: generated, once each",
       with([](auto& p) { p.presence_penalty = 1.5; }),
       {4, 4, 4, 4},
       {4, 2.5, 2.5, 4}},
      {"frequency: generated, each time",
       with([](auto& p) { p.frequency_penalty = 0.5; }),
       {4, 4, 4, 4},
       {4, 2.5, 3.5, 4}},
      {"repetition: prompt and generated, once each",
       with([](auto& p) { p.repetition_penalty = 2; }),
       {4, 4, 4, 4},
       {2, 2, 2, 4}},
      {"repetition lowers negative logits",
       with([](auto& p) { p.repetition_penalty = 2; }),
       {-4, -4, 0, -4},
       {-8, -8, 0, -4}},
      {"negative presence attracts",
       with([](auto& p) { p.presence_penalty = -1; }),
       {4, 4, 4, 4},
       {4, 5, 5, 4}},
      {"repetition first, then the others",
       with(
           [](auto& p) { p.repetition_penalty = 2, p.frequency_penalty = p.presence_penalty = 1; }),
       {4, 4, 4, 4},
       {2, -2, 0, 4}},
  };
  // The adjusted row is read off through a draw: at temperature 1 the shares are its softmax.
  for (const Case& c : cases) {
    double total = 0;
    for (float x : c.expected) total += std::exp(x);
    Sampler sampler(4);
    std::vector<int> counts(4);
    for (uint64_t seed = 0; seed < 20'000; ++seed) {
      const auto result =
          sampler.sample(c.logits, {c.params, seed, 0, {kSeen.prompt, kSeen.generated}, {}});
      ++counts[raw(result->token)];
    }
    for (int id = 0; id < 4; ++id)
      EXPECT_NEAR(counts[id] / 20'000.0, std::exp(c.expected[id]) / total, 0.015)
          << c.name << ", token " << id;
  }
}

TEST(Penalties, DecideNearTies) {
  const std::vector<float> row = {1.01f, 1.0f, 0, 0};  // token 0 is in the prompt only
  EXPECT_EQ(pick(row, greedy_with([](auto& p) { p.presence_penalty = 2; }), kSeen), 0);
  EXPECT_EQ(pick(row, greedy_with([](auto& p) { p.frequency_penalty = 2; }), kSeen), 0);
  const Sequence prompt_only = {tokens({0, 0, 0}), {}, {}};
  EXPECT_EQ(pick(row, greedy_with([](auto& p) { p.repetition_penalty = 1.2; }), prompt_only), 1);
}

TEST(Penalties, LeaveNothingBehindForTheNextRow) {
  Sampler sampler(4);
  const std::vector<float> row = {0, 1, 0.5f, 0};
  const auto penalised = greedy_with([](auto& p) { p.frequency_penalty = 2; });
  const Tokens first = tokens({1}), second = tokens({2});
  EXPECT_EQ(sampler.sample(row, {penalised, 1, 0, {{}, first}, {}})->token, TokenId{2});
  EXPECT_EQ(sampler.sample(row, {penalised, 1, 0, {{}, second}, {}})->token, TokenId{1});
}

TEST(Penalties, ExtremeValuesStayNumbers) {
  const Sequence all = {tokens({0, 1, 2, 3}), tokens({0, 1, 2, 3}), {}};
  for (double penalty : {5e-324, 1e-9, 1e9, 1e308})
    for (double temperature : {0.0, 5e-324, 1e-9, 1.0, 1e308}) {
      const auto params =
          with([&](auto& p) { p.repetition_penalty = penalty, p.temperature = temperature; });
      const int id = pick({kMax, -kMax, 0, -kInf}, params, all);
      EXPECT_TRUE(id >= 0 && id <= 2) << penalty << " " << temperature << " gives " << id;
    }
}

TEST(MinTokens, BarsEveryEndOfAnswerUntilReached) {
  const auto params =
      greedy_with([](auto& p) { p.min_tokens = 2, p.stop_token_ids = tokens({1}); });
  const std::vector<float> row = {1, 3, 2, 0};
  EXPECT_EQ(pick(row, params, {{}, {}, tokens({2})}), 0);
  EXPECT_EQ(pick(row, params, {{}, tokens({0}), tokens({2})}), 0);
  EXPECT_EQ(pick(row, params, {{}, tokens({0, 0}), tokens({2})}), 1);
}

TEST(MinTokens, IsAnErrorIfNothingElseIsPossible) {
  const auto result =
      sample({-kInf, 3}, with([](auto& p) { p.min_tokens = 1; }), {{}, {}, tokens({1})});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(result.error().message.find("min_tokens"), std::string::npos);
}

TEST(AllowedTokens, NoOtherIsDrawn) {
  const std::vector<float> row = {1, 5, 2, 4};
  EXPECT_EQ(pick(row, greedy_with([](auto& p) { p.allowed_token_ids = tokens({0, 2, 2}); })), 2);
  EXPECT_EQ(ids_drawn(row, with([](auto& p) {
                        p.allowed_token_ids = tokens({0, 3});
                      })),
            (std::set<int>{0, 3}));
  const auto none = sample({-kInf, 3}, with([](auto& p) { p.allowed_token_ids = tokens({0}); }));
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("allowed_token_ids"), std::string::npos);
  EXPECT_FALSE(sample(row, with([](auto& p) { p.allowed_token_ids = tokens({4}); })));
}

TEST(Sampler, Mask) {
  std::vector<float> row(70, 0.0f);
  row[3] = 9, row[66] = 8, row[69] = 7;
  const Sequence s{{}, {}, {}, {0b0111, 0b100100}};
  EXPECT_EQ(pick(row, greedy_with([](auto&) {}), s), 66);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const int id = raw(sample(row, {.temperature = 5}, s, seed)->token);
    EXPECT_TRUE(id < 3 || id == 66 || id == 69) << id;
  }
  const auto only = greedy_with([](auto& p) { p.allowed_token_ids = tokens({0, 3, 69}); });
  EXPECT_EQ(pick(row, only, s), 69);
  EXPECT_FALSE(sample(row, {}, {{}, {}, {}, {0b0111}})) << "too short";
  const auto none = sample(row, {}, {{}, {}, {}, {0, 0}});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::invalid_argument);
}

TEST(BadWords, BarTheLastTokenWhereTheAnswerEndsInTheOthers) {
  const std::vector<Tokens> words = {tokens({0, 1, 3}), tokens({2})};
  const std::vector<float> row = {0, 1, 3, 2};
  const auto pick_after = [&](const Tokens& prompt, const Tokens& answer) {
    Sampler sampler(static_cast<int>(row.size()));
    const SamplingParams params = greedy_with([](auto&) {});
    const TokenRules rules = TokenRules::create(params, words, sampler.num_tokens()).value();
    const auto result = sampler.sample(row, {params, 1, 0, {prompt, answer}, {}, &rules});
    return result ? raw(result->token) : -1;
  };
  EXPECT_EQ(pick_after({}, {}), 3) << "a word of one token is always barred";
  EXPECT_EQ(pick_after({}, tokens({0, 1})), 1);
  EXPECT_EQ(pick_after({}, tokens({3, 0, 1})), 1);
  EXPECT_EQ(pick_after({}, tokens({0, 1, 1})), 3);
  EXPECT_EQ(pick_after({}, tokens({1})), 3);
  EXPECT_EQ(pick_after(tokens({0}), tokens({1})), 3) << "the prompt does not count";
}

TEST(Filters, KeepExactlyTheseTokens) {
  // By probability: 2 (0.4), 0 (0.3), 4 (0.15), 1 (0.1), 3 (0.05).
  const std::vector<float> row = logs({0.3, 0.1, 0.4, 0.05, 0.15});
  struct Case {
    SamplingParams params;
    std::set<int> kept;
  };
  const Case cases[] = {
      {with([](auto&) {}), {0, 1, 2, 3, 4}},
      {with([](auto& p) { p.top_k = -1; }), {0, 1, 2, 3, 4}},
      {with([](auto& p) { p.top_k = 1; }), {2}},
      {with([](auto& p) { p.top_k = 3; }), {0, 2, 4}},
      {with([](auto& p) { p.top_k = 5; }), {0, 1, 2, 3, 4}},
      {with([](auto& p) { p.top_k = std::numeric_limits<int>::max(); }), {0, 1, 2, 3, 4}},
      {with([](auto& p) { p.top_p = 1e-300; }), {2}},
      {with([](auto& p) { p.top_p = 0.39; }), {2}},
      {with([](auto& p) { p.top_p = 0.41; }), {0, 2}},
      {with([](auto& p) { p.top_p = 0.84; }), {0, 2, 4}},
      {with([](auto& p) { p.top_p = 0.86; }), {0, 1, 2, 4}},
      {with([](auto& p) { p.min_p = 1; }), {2}},
      {with([](auto& p) { p.min_p = 0.7; }), {0, 2}},
      {with([](auto& p) { p.min_p = 0.3; }), {0, 2, 4}},
      {with([](auto& p) { p.min_p = 1e-9; }), {0, 1, 2, 3, 4}},
      // top_p counts the mass of what top_k and min_p left: 0.4 / 0.7 = 0.57.
      {with([](auto& p) { p.top_k = 2, p.top_p = 0.5; }), {2}},
      {with([](auto& p) { p.top_k = 2, p.top_p = 0.6; }), {0, 2}},
      {with([](auto& p) { p.min_p = 0.7, p.top_p = 0.5; }), {2}},
      // Temperature comes first: at 0.5 the ratio to the best is squared, 0.3 / 0.4 becomes 0.5625.
      {with([](auto& p) { p.min_p = 0.7, p.temperature = 0.5; }), {2}},
      {with([](auto& p) { p.min_p = 0.5, p.temperature = 0.5; }), {0, 2}},
  };
  for (size_t i = 0; i < std::size(cases); ++i)
    EXPECT_EQ(ids_drawn(row, cases[i].params), cases[i].kept) << "case " << i;
}

TEST(Filters, BreakTiesByLowerId) {
  const std::vector<float> flat(100, 1.0f);
  EXPECT_EQ(ids_drawn(flat, with([](auto& p) { p.top_k = 3; })), (std::set<int>{0, 1, 2}));
  EXPECT_EQ(ids_drawn(flat, with([](auto& p) { p.top_p = 0.035; })), (std::set<int>{0, 1, 2, 3}));
}

// The plain definition: sort everything, walk.
std::vector<int> kept_by_sorting(const std::vector<float>& logits, const SamplingParams& params) {
  std::vector<int> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](int a, int b) { return logits[a] > logits[b]; });
  const auto weight = [&](int id) {
    return std::exp((logits[id] - double{logits[ids[0]]}) / params.temperature);
  };
  const double best = weight(ids[0]);
  std::erase_if(ids, [&](int id) { return weight(id) < params.min_p * best * (1 - 1e-12); });
  if (params.top_k > 0) ids.resize(std::min(ids.size(), static_cast<size_t>(params.top_k)));
  double total = 0, sum = 0;
  for (int id : ids) total += weight(id);
  size_t kept = 0;
  while (kept < ids.size() && sum < params.top_p * total * (1 + 1e-12)) sum += weight(ids[kept++]);
  ids.resize(kept);
  return ids;
}

TEST(Filters, NeverLetAnythingElseThrough) {
  std::mt19937 random(3);
  Sampler sampler(500);
  for (int round = 0; round < 300; ++round) {
    std::vector<float> row(500);
    const double spread = 0.1 + random() % 100 / 10.0;
    for (float& x : row) x = static_cast<float>(random() % 1000 * spread / 1000);
    SamplingParams params;
    params.temperature = 0.1 + random() % 30 / 10.0;
    if (random() % 2) params.top_k = 1 + static_cast<int>(random() % 600);
    if (random() % 2) params.top_p = (1 + random() % 999) / 1000.0;
    if (random() % 2) params.min_p = random() % 1000 / 1000.0;
    const std::vector<int> kept = kept_by_sorting(row, params);
    const std::set<int> allowed(kept.begin(), kept.end());
    for (uint64_t seed = 0; seed < 50; ++seed) {
      const auto result = sampler.sample(row, {params, seed, 0, {}, {}});
      ASSERT_TRUE(result);
      ASSERT_TRUE(allowed.contains(raw(result->token))) << "round " << round << " seed " << seed;
    }
  }
}

TEST(Draw, InvertsTheCumulativeDistributionByDescendingProbability) {
  const std::vector<float> row = logs({0.2, 0.5, 0.05, 0.25});  // in order: 1, 3, 0, 2
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const double u = uniform(seed, 0, 0);
    const int expected = u < 0.5 ? 1 : u < 0.75 ? 3 : u < 0.95 ? 0 : 2;
    EXPECT_EQ(raw(sample(row, {}, {}, seed)->token), expected) << u;
  }
}

// 3000 tokens: the walk has to sort several pieces, and the far tail is reached.
TEST(Draw, EqualsAWalkOverTheFullySortedRow) {
  constexpr int kTokens = 3000;
  std::mt19937 random(9);
  std::vector<float> row(kTokens);
  for (float& x : row) x = static_cast<float>(random() % 1000) / 400;
  const std::vector<int> order = kept_by_sorting(row, {});
  ASSERT_EQ(order.size(), static_cast<size_t>(kTokens));
  double total = 0;
  for (float x : row) total += std::exp(double{x});
  Sampler sampler(kTokens);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const SamplingParams params;
    double left = uniform(seed, 0, 0) * total;
    size_t i = 0;
    while ((left -= std::exp(double{row[order[i]]})) >= 0) ++i;
    EXPECT_EQ(raw(sampler.sample(row, {params, seed, 0, {}, {}})->token), order[i]);
  }
}

TEST(Draw, TinyTemperaturesAreGreedyAndHugeOnesFlat) {
  const std::vector<float> row = {1, 3, 2, -kInf};
  for (double temperature : {5e-324, 1e-300, 1e-9})
    EXPECT_EQ(ids_drawn(row, with([&](auto& p) { p.temperature = temperature; })),
              std::set<int>{1});
  for (double temperature : {1e9, 1e308}) {
    const auto counts = histogram(row, with([&](auto& p) { p.temperature = temperature; }), 3000);
    EXPECT_EQ(counts[3], 0);
    for (int id : {0, 1, 2}) EXPECT_NEAR(counts[id], 1000, 120);
  }
}

TEST(Draw, ExtremeLogitsStayNumbers) {
  for (double temperature : {5e-324, 1.0, 1e308})
    for (const std::vector<float>& row :
         {std::vector<float>{kMax, -kMax, -kInf}, {-kMax, -kInf, -kInf}, {1e-45f, 0, -kInf}}) {
      const int id = pick(row, with([&](auto& p) { p.temperature = temperature; }));
      EXPECT_TRUE(id == 0 || id == 1);
    }
}

TEST(Draw, IsKeyedBySeedChoiceAndPositionOnly) {
  const std::vector<float> flat(1000, 0.0f);
  const SamplingParams params = with([](auto& p) { p.temperature = 0.8; });
  const Tokens history(64, TokenId{3});
  const auto draw_all = [&](Sampler& sampler, uint64_t seed, uint32_t choice) {
    std::vector<int> ids;
    for (size_t i = 0; i < history.size(); ++i) {
      const TokenHistory so_far{std::span(history).first(10), std::span(history).first(i)};
      ids.push_back(raw(sampler.sample(flat, {params, seed, choice, so_far, {}})->token));
    }
    return ids;
  };
  Sampler alone(1000), shared(1000);
  const std::vector<int> expected = draw_all(alone, 42, 0);
  draw_all(shared, 7, 0);  // a neighbour in the same batch
  EXPECT_EQ(draw_all(shared, 42, 0), expected);
  EXPECT_NE(draw_all(shared, 42, 1), expected);
  EXPECT_NE(draw_all(shared, 43, 0), expected);

  // The place in the sequence counts, not which part of it was called the prompt.
  const auto at = [&](size_t prompt, size_t generated) {
    const TokenHistory so_far{std::span(history).first(prompt),
                              std::span(history).first(generated)};
    return alone.sample(flat, {params, 42, 0, so_far, {}})->token;
  };
  EXPECT_EQ(at(10, 20), at(30, 0));
  EXPECT_NE(at(10, 20), at(10, 21));
}

TEST(Padding, IsNeverProducedNorListed) {
  Sampler sampler(3);
  const std::vector<float> row = {1, 2, 0, 50, std::nanf("")};  // two padding rows
  const SamplingParams greedy = greedy_with([](auto& p) { p.logprobs = 20; });
  const auto best = sampler.sample(row, {greedy, 1, 0, {}, {}});
  ASSERT_TRUE(best);
  EXPECT_EQ(best->token, TokenId{1});
  ASSERT_EQ(best->logprobs->entries.size(), 3u);
  for (const LogprobEntry& e : best->logprobs->entries) EXPECT_LT(raw(e.id), 3);

  const SamplingParams sampled = with([](auto& p) { p.temperature = 100; });
  for (uint64_t seed = 0; seed < 200; ++seed)
    EXPECT_LT(raw(sampler.sample(row, {sampled, seed, 0, {}, {}})->token), 3);
}

TEST(SampledLogprobs, ComeFromTheUntouchedRow) {
  const std::vector<float> row = logs({0.5, 0.3, 0.2});
  const Sequence seen = {tokens({0}), tokens({0}), {}};
  const auto params = with([](auto& p) {
    p.temperature = 0.1, p.top_k = 1, p.repetition_penalty = 1.5, p.presence_penalty = 2;
    p.logit_bias = {{TokenId{2}, 100.0f}}, p.logprobs = 1;
  });
  const auto result = sample(row, params, seen);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->token, TokenId{2});
  ASSERT_EQ(result->logprobs->entries.size(), 2u);
  EXPECT_EQ(result->logprobs->entries[0].id, TokenId{0});
  EXPECT_NEAR(result->logprobs->entries[0].logprob, std::log(0.5), 1e-6);
  EXPECT_EQ(result->logprobs->entries[1].id, TokenId{2});
  EXPECT_EQ(result->logprobs->entries[1].rank, 3);
  EXPECT_NEAR(result->logprobs->entries[1].logprob, std::log(0.2), 1e-6);
}

TEST(SampledLogprobs, ArePresentOnlyIfAskedFor) {
  EXPECT_FALSE(sample({1, 2}, {})->logprobs);
  const auto none_but_chosen = sample({1, 2}, with([](auto& p) { p.logprobs = 0; }));
  EXPECT_EQ(none_but_chosen->logprobs->entries.size(), 1u);
  EXPECT_EQ(none_but_chosen->logprobs->entries[0].id, none_but_chosen->token);
}

TEST(BadInput, IsThatRequestsError) {
  const auto code = [](const Result<Sample>& result) {
    EXPECT_FALSE(result);
    return result ? ErrorCode::cancelled : result.error().code;
  };
  for (const SamplingParams& params : {with([](auto&) {}), greedy_with([](auto&) {})}) {
    EXPECT_EQ(code(sample({0, std::nanf(""), 1}, params)), ErrorCode::numeric_error);
    EXPECT_EQ(code(sample({0, kInf}, params)), ErrorCode::numeric_error);
    EXPECT_EQ(code(sample({-kInf, -kInf}, params)), ErrorCode::numeric_error);
  }
  for (int id : {-1, 2, 191222}) {
    EXPECT_EQ(code(sample({0, 1}, {}, {tokens({id}), {}, {}})), ErrorCode::invalid_argument);
    EXPECT_EQ(code(sample({0, 1}, {}, {{}, tokens({id}), {}})), ErrorCode::invalid_argument);
    EXPECT_EQ(code(sample({0, 1}, {}, {{}, {}, tokens({id})})), ErrorCode::invalid_argument);
    const auto bias = with([&](auto& p) { p.logit_bias = {{TokenId{id}, 1.0f}}; });
    EXPECT_EQ(code(sample({0, 1}, bias)), ErrorCode::invalid_argument);
  }
  Sampler sampler(3);
  const SamplingParams params;
  EXPECT_EQ(code(sampler.sample(std::vector<float>{1, 2}, {params, 1, 0, {}, {}})),
            ErrorCode::invalid_argument);
  const TokenRules others = TokenRules::create(params, {}, 4).value();
  EXPECT_EQ(code(sampler.sample(std::vector<float>{1, 2, 3}, {params, 1, 0, {}, {}, &others})),
            ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace octavo
