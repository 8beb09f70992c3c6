// A language of six letters, small enough that the exact probabilities of whole answers can be
// worked out: what tests of distributions with guesses share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "base/rng.h"
#include "support/chi_square.h"
#include "support/guess_rig.h"
#include "support/tiny_tokenizer.h"

namespace octavo::testing {

// The sanitizers look for other faults than wrong probabilities: a tenth of the draws does.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

inline constexpr int kFirst = 3, kTokens = 9;  // <unk>, <bos> and <eos> are never said
inline constexpr int kLength = 6;              // of an answer
inline constexpr int kChoices = 100;           // of a request
inline constexpr int kManyAnswers = 16'700;    // 100,200 draws
inline constexpr int kAnswers = kIsSanitized ? 1'700 : kManyAnswers;
// Of few draws chi-square is a rough measure.
inline constexpr double kLeastProbability = kIsSanitized ? 1e-5 : 1e-3;
inline constexpr int kPart = 3;  // tokens whose joint probability is looked at

inline TokenizerSpec six_letters() {
  return tiny_piece_spec({"a", "b", "c", "d", "e", "f"}, false);
}

// What comes next depends on the last two tokens. `salt` tells models apart, as far as `share`
// says. at() throws for what no sequence holds, such as what layers that were skipped have left.
inline StubModel::Logits says(uint64_t salt, double share) {
  constexpr uint32_t kSeen = 16;  // wrong guesses are no tokens
  using Row = std::vector<float>;
  std::vector<std::vector<Row>> table(kSeen, std::vector<Row>(kSeen, Row(kTokens)));
  for (uint32_t last = 0; last < kSeen; ++last)
    for (uint32_t before = 0; before < kSeen; ++before)
      for (uint32_t id = 0; id < kTokens; ++id) {
        const double own = uniform(salt, last * 16 + before, id), common = uniform(0, last, id);
        table[last][before][id] =
            id < kFirst ? -std::numeric_limits<float>::infinity()
                        : static_cast<float>(4 * (share * own + (1 - share) * common));
      }
  return [table](const std::vector<TokenId>& history, std::span<float> row) {
    const auto last = static_cast<size_t>(raw(history.back()));
    const auto before = static_cast<size_t>(history.size() < 2 ? 0 : raw(history.end()[-2]));
    std::ranges::copy(table.at(last).at(before), row.begin());
  };
}

inline const StubModel::Logits& target() {
  static const StubModel::Logits model = says(1, 0.5);
  return model;
}
inline const StubModel::Logits& draft() {
  static const StubModel::Logits model = says(2, 0.7);
  return model;
}

// Every token is in it, so that there is always something to repeat.
inline std::vector<TokenId> prompt() {
  std::vector<TokenId> ids;
  for (const int id : {3, 4, 5, 3, 6, 7, 8, 4, 6, 3, 8}) ids.push_back(TokenId{id});
  return ids;
}

struct Filter {
  const char* name;
  SamplingParams params;
  TokenMask mask = {};
};

// Not the same token again, and after the first two of an answer no 'f'.
inline void bar(std::span<const TokenId> answer, std::span<uint64_t> allowed) {
  if (!answer.empty()) allowed[0] &= ~(uint64_t{1} << raw(answer.back()));
  if (answer.size() > 2) allowed[0] &= ~(uint64_t{1} << 8);
}

inline const std::vector<Filter>& filters() {
  static const std::vector<Filter> all = {
      {"none", {}},
      {"temperature", {.temperature = 0.6}},
      {"top_k", {.top_k = 3}},
      {"top_p", {.top_p = 0.8}},
      {"min_p", {.min_p = 0.2}},
      {"penalties", {.presence_penalty = 0.4, .frequency_penalty = 0.7, .repetition_penalty = 1.3}},
      {"mask", {}, bar},
      {"all",
       {.temperature = 1.4,
        .top_p = 0.9,
        .top_k = 5,
        .min_p = 0.05,
        .frequency_penalty = 0.5,
        .logit_bias = {{TokenId{5}, 1.0f}}},
       bar},
  };
  return all;
}

// The first seed of a setting of a test: no two of them draw with the same numbers.
inline uint64_t seed_of(uint64_t test, const Filter& filter, int k) {
  const auto index = static_cast<uint64_t>(&filter - filters().data());
  return (test * 100 + index * 10 + static_cast<uint64_t>(k)) * 1000;
}

inline std::vector<Request> requests(const Filter& filter, int answers, uint64_t first_seed = 0) {
  std::vector<Request> all;
  for (int i = 0; i < answers / kChoices; ++i) {
    Request r{.prompt_token_ids = prompt(), .params = filter.params};
    r.params.seed = first_seed + static_cast<uint64_t>(i);
    r.params.n = kChoices;
    r.params.max_tokens = kLength;
    r.allowed_tokens = filter.mask;
    all.push_back(std::move(r));
  }
  return all;
}

// Of each part of kPart tokens of an answer, how often it was each of the 6^kPart there are.
struct Parts {
  std::vector<double> first = std::vector<double>(216), last = std::vector<double>(216);

  void add(std::span<const TokenId> answer, double amount) {
    first[index_of(answer.first(kPart))] += amount;
    last[index_of(answer.last(kPart))] += amount;
  }
  static size_t index_of(std::span<const TokenId> part) {
    size_t index = 0;
    for (const TokenId id : part) index = index * 6 + static_cast<size_t>(raw(id) - kFirst);
    return index;
  }
};

// The exact probabilities.
class Expected {
 public:
  explicit Expected(const Filter& filter) : filter_(filter) { add(1); }

  Parts parts;

 private:
  void add(double probability) {
    if (answer_.size() == kLength) return parts.add(answer_, probability);
    std::vector<TokenId> history = prompt_;
    history.insert(history.end(), answer_.begin(), answer_.end());
    std::vector<float> row(kTokens);
    target()(history, row);
    const auto allowed = allowed_after(&filter_.mask, answer_, kTokens);
    const auto next = sampler_.distribution(row, {.params = filter_.params,
                                                  .seed = 0,
                                                  .history = {prompt_, answer_},
                                                  .eog = {},
                                                  .rules = &rules_,
                                                  .allowed = allowed});
    for (const auto& entry : next.value().entries) {
      answer_.push_back(entry.id);
      add(probability * entry.probability);
      answer_.pop_back();
    }
  }

  const Filter& filter_;
  const TokenRules rules_ = TokenRules::create(filter_.params, {}, kTokens).value();
  Sampler sampler_{kTokens};
  std::vector<TokenId> prompt_ = prompt(), answer_;
};

inline const Parts& expected(const Filter& filter) {
  static std::map<const Filter*, Parts> all;
  const auto found = all.find(&filter);
  return found != all.end() ? found->second
                            : all.emplace(&filter, Expected(filter).parts).first->second;
}

inline std::vector<int> whole(const std::vector<double>& counts) {
  return {counts.begin(), counts.end()};
}

inline Parts count(const std::vector<RequestOutput>& outputs) {
  Parts counts;
  for (const RequestOutput& output : outputs) {
    EXPECT_FALSE(output.error);
    for (const CompletionOutput& choice : output.outputs) counts.add(choice.token_ids, 1);
  }
  return counts;
}

// Looks at each distribution, and in the end at all of them: a rule that is wrong by a little makes
// many that are all barely right.
class GuessDistribution : public ::testing::Test {
 protected:
  static void expect_distributed(const std::vector<int>& counts,
                                 const std::vector<double>& shares) {
    ASSERT_EQ(counts.size(), shares.size());
    seen().push_back(probability_of(counts, shares));
    EXPECT_GT(seen().back(), kLeastProbability);
  }

  static void expect_distributed(const std::vector<RequestOutput>& outputs, const Filter& filter) {
    const Parts counts = count(outputs);
    ASSERT_EQ(std::accumulate(counts.first.begin(), counts.first.end(), 0.0), kAnswers);
    expect_distributed(whole(counts.first), expected(filter).first);
    expect_distributed(whole(counts.last), expected(filter).last);
  }

  // Of many answers: the rule is wrong that they come of.
  static void expect_bent(const std::vector<RequestOutput>& outputs, const Filter& filter) {
    const Parts counts = count(outputs);
    EXPECT_LT(probability_of(whole(counts.first), expected(filter).first), 1e-4);
    EXPECT_LT(probability_of(whole(counts.last), expected(filter).last), 1e-4);
  }

  static void TearDownTestSuite() {
    const auto total = static_cast<double>(seen().size());
    if (total < 50) return;
    const auto share = [&](auto is) { return std::ranges::count_if(seen(), is) / total; };
    EXPECT_LT(share([](double p) { return p < 0.02; }), 0.05);
    EXPECT_LT(share([](double p) { return p > 0.98; }), 0.05);
    const double mean = std::accumulate(seen().begin(), seen().end(), 0.0) / total;
    EXPECT_NEAR(mean, 0.5, 4 * std::sqrt(1 / 12.0 / total));
    std::printf("%d distributions, mean p %.3f, least %.5f\n", static_cast<int>(total), mean,
                *std::ranges::min_element(seen()));
  }

 private:
  static std::vector<double>& seen() {
    static std::vector<double> all;
    return all;
  }
};

}  // namespace octavo::testing
